"""Every collective inside of shard_map, for every dtype, against NumPy; on a line and on a grid of devices."""

import sys

import ml_dtypes
import numpy as np

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import multihost_utils as together
from pullback.sharding import AxisType
from pullback.sharding import PartitionSpec as P

jax.config.update("jax_enable_x64", True)
jax.distributed.initialize()
n = jax.device_count()
line = jax.make_mesh((n,), ("i",), axis_types=(AxisType.Auto,))
rng = np.random.default_rng(0)


def over(mesh, function, x, into, out, check=True):
    y = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=into, out_specs=out, check_vma=check))(x)
    return together.process_allgather(y, tiled=True) if not y.is_fully_addressable else np.asarray(y)


def same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
    exact = want.dtype.kind in "biu"
    np.testing.assert_allclose(
        got.astype(complex if want.dtype.kind == "c" else float),
        want.astype(complex if want.dtype.kind == "c" else float),
        rtol=0 if exact else 2 * float(jnp.finfo(want.dtype).eps) * n,
    )


TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]
TYPES += ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
shift = [(k, (k + 1) % n) for k in range(n)]
for name in TYPES if n < 4 else ("bool", "int32", "bfloat16", "float32", "complex64"):
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    for shape in ((n, 3), (n, 4099), *([(n, 0)] if name in ("float32", "int8") else [])):
        if shape[1] == 4099 and name not in ("bool", "int32", "float16", "bfloat16", "float32", "complex64"):
            continue
        x = rng.integers(0, 2 if name == "bool" else 5, shape).astype(dtype)
        if dtype.kind == "c":
            x = (x + 1j * rng.integers(0, 5, shape)).astype(dtype)
        rows = jnp.asarray(x)
        if name != "bool":
            want = sum(x[k].astype(np.complex128 if dtype.kind == "c" else np.float64) for k in range(n)).astype(dtype)
            same(over(line, lambda v: lax.psum(v[0], "i"), rows, P("i"), P()), want)
        if dtype.kind != "c" and shape[1]:
            same(over(line, lambda v: lax.pmax(v[0], "i"), rows, P("i"), P()), x.max(0))
            same(over(line, lambda v: lax.pmin(v[0], "i"), rows, P("i"), P()), x.min(0))
        same(over(line, lambda v: lax.all_gather(v[0], "i"), rows, P("i"), P(), check=False), x)
        same(over(line, lambda v: lax.ppermute(v, "i", shift), rows, P("i"), P("i")), np.roll(x, 1, 0))
        same(over(line, lambda v: lax.pbroadcast(v, "i", n - 1), rows, P("i"), P("i")), np.repeat(x[-1:], n, 0))

# Not a number stays one; a maximum of nan and something is nan.
odd = np.zeros((n, 2), np.float32)
odd[0, 0], odd[n - 1, 1] = np.nan, np.inf
got = over(line, lambda v: lax.pmax(v[0], "i"), odd, P("i"), P())
assert np.isnan(got[0]) and got[1] == np.inf
# Some send nothing.
got = over(line, lambda v: lax.ppermute(v, "i", [(0, n - 1)]), np.ones((n, 2)), P("i"), P("i"))
assert np.array_equal(got, np.eye(n)[-1][:, None] * np.ones((1, 2)))

square = rng.normal(size=(n * n, n * 2, 3))
for tiled in (False, True):
    blocks, both = square[:, :n] if not tiled else square, (P("i"), P("i"))
    got = over(
        line, lambda v, tiled=tiled: lax.psum_scatter(v, "i", scatter_dimension=1, tiled=tiled), blocks, P("i"), P("i")
    )
    total = blocks.reshape(n, n, *blocks.shape[1:]).sum(0)
    parts = total.reshape(n, n, -1, 3).transpose(1, 0, 2, 3)
    want = parts.reshape(n * n, -1, 3) if tiled else parts[:, :, 0].reshape(n * n, 3)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    got = over(line, lambda v, tiled=tiled: lax.all_to_all(v, "i", 1, 0, tiled=tiled), blocks, P("i"), P("i"))
    cut = blocks.reshape(n, n, n, -1, 3)  # [from, row, to, ...]
    want = cut.transpose(2, 0, 1, 3, 4)  # [to, from, row, ...]
    same(got, want.reshape(n * n * n, -1, 3) if tiled else want.reshape(n * n, n, 3))
    got = over(
        line, lambda v, tiled=tiled: lax.all_gather(v, "i", axis=1, tiled=tiled), square, P("i"), P(), check=False
    )
    want = square.reshape(n, n, 2 * n, 3).transpose(1, 0, 2, 3)
    same(got, want.reshape(n, -1, 3) if tiled else want)


# In loops and branches.
def walk(v):
    def body(k, c):
        return lax.cond(k % 2 == 0, lambda c: lax.psum(c, "i") / n, lambda c: lax.ppermute(c, "i", shift), c)

    return lax.fori_loop(0, 5, body, v)


got = over(line, walk, np.arange(float(n))[:, None], P("i"), P("i"), check=False)
np.testing.assert_allclose(got, np.full((n, 1), (n - 1) / 2))

# Derivatives inside.
w, xs = np.array([1.0, -2.0]), rng.normal(size=(2 * n, 2))


def loss(w, x):
    return lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), "i")


got = over(line, lambda x: jax.grad(lambda w: loss(w, x))(jnp.asarray(w)), xs, P("i"), P())
want = jax.grad(lambda w: jnp.mean(jnp.tanh(xs @ w) ** 2))(jnp.asarray(w))
np.testing.assert_allclose(got, want, rtol=1e-12)


# Derivatives and vmap outside, by jit and without it.
def total(w, x, check=True):
    into = (P(), P("i"))
    return jax.shard_map(loss, mesh=line, in_specs=into, out_specs=P(), check_vma=check)(w, x)


for run in (lambda f: f, jax.jit):
    for check in (True, False):
        got = run(jax.grad(lambda w, x, check=check: total(w, x, check)))(jnp.asarray(w), xs)
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)
    got = run(jax.hessian(total))(jnp.asarray(w), xs)
    plain = jax.hessian(lambda w: jnp.mean(jnp.tanh(xs @ w) ** 2))(jnp.asarray(w))
    np.testing.assert_allclose(np.asarray(got), plain, rtol=1e-9)
    got = run(jax.vmap(total, (0, None)))(jnp.stack([w, 2 * w]), xs)
    np.testing.assert_allclose(np.asarray(got), [jnp.mean(jnp.tanh(xs @ (k * w)) ** 2) for k in (1, 2)], rtol=1e-12)

# A result that differs along an axis may not be said to be the same.
try:
    over(line, lambda v: v, np.ones(n), P("i"), P())
    assert n == 1 or not jax.process_count() > 1
except ValueError as error:
    assert "depends on the device" in str(error)

if n % 2 == 0:
    grid = jax.make_mesh((2, n // 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    x = rng.normal(size=(2, n // 2, 3))
    spec = P("a", "b")
    np.testing.assert_allclose(over(grid, lambda v: lax.psum(v, "a"), x, spec, P(None, "b")), x.sum(0, keepdims=True))
    np.testing.assert_allclose(over(grid, lambda v: lax.psum(v, "b"), x, spec, P("a")), x.sum(1, keepdims=True))
    np.testing.assert_allclose(over(grid, lambda v: lax.psum(v, ("a", "b")), x, spec, P())[0, 0], x.sum((0, 1)))
    got = over(grid, lambda v: v * 0 + lax.axis_index(("b", "a")), x, spec, spec)
    assert np.array_equal(got[..., 0], np.arange(2)[:, None] + 2 * np.arange(n // 2)[None])
    got = over(grid, lambda v: lax.all_gather(v, ("b", "a")), x, spec, P(), check=False)
    assert np.array_equal(got[:, 0, 0], x.transpose(1, 0, 2).reshape(n, 3))
    # Partly manual: the other axis stays the compiler's, also where the program prints, so that it is not partitioned.
    square = np.arange(64, dtype=np.float32).reshape(8, 8)
    lies = jax.make_array_from_callback((8, 8), jax.NamedSharding(grid, P("a", "b")), lambda index: square[index])

    def partly(v, prints=False):
        total = lax.psum(v.sum(), "a")
        if prints:
            jax.debug.callback(lambda _: None, total)
        return v * total + v.T.sum()

    def nested(v):
        inner = jax.shard_map(lambda v: lax.psum(v, "b"), in_specs=P(None, "b"), out_specs=P(), axis_names={"b"})
        return inner(2 * v)

    def by_a(f, out):
        return jax.jit(jax.shard_map(f, mesh=grid, in_specs=P("a"), out_specs=out, axis_names={"a"}))

    want = np.concatenate([part * square.sum() + part.sum() for part in np.split(square, 2)])
    columns = sum(np.split(2 * square, n // 2, axis=1))
    for prints in (False, True):
        got = by_a(lambda v, prints=prints: partly(v, prints), P("a"))(lies)
        np.testing.assert_allclose(together.process_allgather(got, tiled=True), want)
    got = jax.jit(jax.grad(lambda x: by_a(lambda v: partly(v) / square.sum(), P("a"))(x).sum()))(lies)
    np.testing.assert_allclose(
        together.process_allgather(got, tiled=True), np.full((8, 8), 2 + 32 / square.sum()), rtol=1e-5
    )
    np.testing.assert_allclose(together.process_allgather(by_a(nested, P("a"))(lies), tiled=True), columns)
    got = over(grid, lambda v: lax.ppermute(v, "b", [(0, n // 2 - 1)]), x, spec, spec)
    want = np.zeros_like(x)
    want[:, -1] = x[:, 0]
    assert np.array_equal(got, want)

# The same bits again.
f = jax.jit(jax.shard_map(lambda v: lax.psum(v, "i"), mesh=line, in_specs=P("i"), out_specs=P()))
big = rng.normal(size=(n, 50001)).astype(np.float32)
first = np.asarray(f(big))
assert all(np.array_equal(first, f(big)) for _ in range(5))
together.assert_equal(first)
sys.stdout.write(f"done {first.tobytes()[:8].hex()}\n")  # in one piece: the others write, too
