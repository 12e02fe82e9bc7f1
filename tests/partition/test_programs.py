"""Partitioned programs against the whole ones: operations of each family, for cuts of arguments drawn at random."""

import functools
import logging

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
N = np.random.default_rng(0)
A, B = (N.normal(size=(8, 8)).astype(np.float32) for _ in range(2))
T = N.normal(size=(4, 8, 8)).astype(np.float32)
V = N.normal(size=8).astype(np.float32)
I = np.array([1, 7, 3, 1], np.int32)
SPECS = {
    1: [P(), P("x"), P("y"), P(("x", "y")), P(("y", "x"))],
    2: [P(), P("x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x"))],
    3: [P(), P("x"), P(None, "x", "y"), P("y", None, "x"), P(("x", "y"))],
}


def loops(a, v):
    c, ys = lax.scan(lambda c, r: (jnp.tanh(c + r), c * r), v, a)
    i, w = lax.while_loop(lambda s: (s[0] < 3) & (s[1].sum() < 1e6), lambda s: (s[0] + 1, s[1] * 1.5 + c), (0, v))
    b = lax.cond(v.sum() > 0, lambda a: a @ a, lambda a: a.T, a)
    return c, ys, i, w, b


def attention(t, a):
    q, k, v = t @ a, t @ a.T, t
    s = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) * 0.1)
    return jnp.einsum("bqk,bkd->bqd", s, v)


def network(w1, w2, x):
    def loss(w1, w2):
        h = jax.nn.relu(x @ w1)
        return jnp.mean((h @ w2 - x) ** 2)

    return jax.value_and_grad(loss, (0, 1))(w1, w2)


PROGRAMS = {
    "elementwise": (lambda a, b, v: jnp.where(a > b, jnp.sin(a) * v, jnp.clip(b, -1, 1) + 2), A, B, V),
    "reductions": (
        lambda a, t: (a.sum(), a.max(0), a.min(1), t.mean((0, 2)), a.prod(0), jnp.argmax(a, 1), a.std()),
        A,
        T,
    ),
    "products": (lambda a, b, v: (a @ b, a.T @ v, jnp.outer(v, v), a @ b.T @ a), A, B, V),
    "batched": (lambda t, a: (jnp.einsum("bij,bjk->bik", t, t), jnp.einsum("bij,jk->ikb", t, a)), T, A),
    "movement": (
        lambda a, t: (a.T, a.reshape(4, 2, 8), a.reshape(64), t.reshape(32, 8), t.transpose(2, 0, 1), a[None]),
        A,
        T,
    ),
    "odd": (lambda a, t: (a.reshape(4, 16), t.reshape(2, 128), a[::2], a[1:7, 2:4], jnp.pad(a, 1), a[::-1]), A, T),
    "joining": (
        lambda a, b: (
            jnp.concatenate([a, b]),
            jnp.stack([a, b]),
            jnp.split(a, 2),
            jnp.tile(a, (2, 1)),
            jnp.roll(b, 3, 0),
        ),
        A,
        B,
    ),
    "indexing": (
        lambda a, i: (a[i], a[:, i], a.at[i].add(1.0), a.at[:, i].set(0.0), jnp.take_along_axis(a[:4], i[:, None], 1)),
        A,
        I,
    ),
    "dynamic": (
        lambda a, i: (lax.dynamic_slice(a, (i[0], 0), (2, 8)), lax.dynamic_update_slice(a, a[:2], (i[2], 0))),
        A,
        I,
    ),
    "ordering": (lambda a: (jnp.sort(a, 0), jnp.argsort(a, 1), lax.top_k(a, 3), jnp.cumsum(a, 0), jnp.median(a, 1)), A),
    "linear algebra": (
        lambda t: (jnp.linalg.inv(t @ t.mT + jnp.eye(8)), jnp.linalg.cholesky(t @ t.mT + 9 * jnp.eye(8))),
        T,
    ),
    "transforms": (lambda t: jnp.abs(jnp.fft.fft(t)), T),
    "convolution": (lambda t, k: lax.conv_general_dilated(t[:, None], k[None, None, :3, :3], (1, 1), "SAME"), T, A),
    "windows": (lambda t: lax.reduce_window(t, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID"), T),
    "random": (
        lambda a: (jax.random.normal(jax.random.key(1), (8, 8)) + a, jax.random.permutation(jax.random.key(2), a)),
        A,
    ),
    "loops": (loops, A, V),
    "attention": (attention, T, A),
    "network": (network, A, B, T[0]),
    "mapped": (lambda t, a: jax.vmap(lambda m: jnp.tanh(m @ a).sum(0))(t), T, A),
    "second derivative": (lambda v, a: jax.hessian(lambda v: jnp.sin(a @ v).sum())(v), V, A),
}


@functools.cache
def whole(name):
    run, *args = PROGRAMS[name]
    return jax.tree.leaves(jax.jit(run)(*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    run, *args = PROGRAMS[name]
    program = jax.jit(run)
    draw = np.random.default_rng(len(name))
    for _ in range(4):
        specs = [SPECS[x.ndim][draw.integers(len(SPECS[x.ndim]))] for x in args]
        specs = [P() if any(n % 4 for n in x.shape) else s for s, x in zip(specs, args)]
        cut = [jax.device_put(x, NamedSharding(MESH, s)) for x, s in zip(args, specs)]
        found = jax.tree.leaves(program(*cut))
        for got, want in zip(found, whole(name), strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=f"{name} {specs}")
        for got, again in zip(found, jax.tree.leaves(program(*cut))):
            np.testing.assert_array_equal(got, again)  # to the bit
            assert got.sharding.device_set == set(MESH.devices.flat)


def test_results_are_cut_as_asked():
    for spec in SPECS[2]:
        place = NamedSharding(MESH, spec)
        got = jax.jit(lambda a, b: a @ b, out_shardings=place)(A, B)
        assert got.sharding == place
        np.testing.assert_allclose(got, A @ B, rtol=1e-5, atol=1e-5)


def test_text_names_collectives_and_their_bytes():
    rows, columns = NamedSharding(MESH, P("x")), NamedSharding(MESH, P(None, "x"))
    program = jax.jit(lambda a, b: (a @ b).sum(), in_shardings=(columns, rows))
    lowered = program.lower(A, B)
    text = lowered.as_text("partitioned")
    assert " bytes  # " in text and "test_programs.py" in text
    assert lowered.cost_analysis()["collective bytes"] == lowered.compile().cost_analysis()["collective bytes"] > 0
    np.testing.assert_allclose(lowered.compile()(A, B), (A @ B).sum(), rtol=1e-5)
    local = jax.jit(lambda a: jnp.sin(a), in_shardings=rows).lower(A)
    assert "0 bytes in 0 collectives" in local.as_text("partitioned")
    assert "not partitioned" in jax.jit(jnp.sin).lower(A).as_text("partitioned")


def test_random_bits_need_no_communication():
    place = NamedSharding(MESH, P("x", "y"))
    program = jax.jit(lambda key: jax.random.normal(key, (64, 64)), out_shardings=place)
    assert program.lower(jax.random.key(0)).cost_analysis()["collective bytes"] == 0
    np.testing.assert_array_equal(program(jax.random.key(0)), jax.random.normal(jax.random.key(0), (64, 64)))


def test_scatter_of_a_sum():
    # each device wants one part of a sum over all: a reduce-scatter moves less than a sum on all
    place = NamedSharding(MESH, P("x"))
    text = jax.jit(lambda a, b: a @ b, in_shardings=(NamedSharding(MESH, P(None, "x")), place), out_shardings=place)
    assert "reduce_scatter" in text.lower(A, B).as_text("partitioned")


def test_a_missing_rule_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        got = jax.jit(lambda a: jnp.linalg.eigh(a + a.T)[0])(jax.device_put(A, NamedSharding(MESH, P("x"))))
    np.testing.assert_allclose(got, np.linalg.eigvalsh(A + A.T), rtol=1e-4, atol=1e-4)
    got = jax.jit(lambda a: lax.approx_max_k(a, 2)[0])(jax.device_put(A, NamedSharding(MESH, P("x"))))
    np.testing.assert_array_equal(got, -np.sort(-A)[:, :2])
    said = [r.message for r in caplog.records if "partitioning" in r.message]
    assert said and "test_programs.py" in said[0]


def test_donated_arguments_are_gone():
    x = jax.device_put(A, NamedSharding(MESH, P("x")))
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(y, A + 1)


def test_other_types():
    for dtype in ("bfloat16", "int8", "bool", "complex64", "uint32"):
        x = jax.device_put(jnp.asarray(A * 3).astype(dtype), NamedSharding(MESH, P("x", "y")))
        got = jax.jit(lambda x: (x.T, x.sum(0), x.reshape(16, 4)))(x)
        whole = jnp.asarray(A * 3).astype(dtype)
        for g, w in zip(got, (whole.T, whole.sum(0), whole.reshape(16, 4))):
            assert g.dtype == w.dtype
            np.testing.assert_allclose(np.asarray(g).astype(complex), np.asarray(w).astype(complex), rtol=2e-2)
    empty = jax.device_put(jnp.zeros((0, 8)), NamedSharding(MESH, P(None, "x")))
    assert jax.jit(lambda x: (x * 2).sum(0))(empty).tolist() == [0] * 8


def test_keys():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(MESH, P("x")))
    got = jax.jit(jax.vmap(jax.random.uniform))(keys)
    np.testing.assert_array_equal(got, jax.vmap(jax.random.uniform)(jax.random.split(jax.random.key(0), 8)))
