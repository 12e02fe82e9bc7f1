"""Partitioned programs against the whole ones: operations of each family, for cuts of arguments drawn at random."""

import functools
import logging

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental.shard_alike import shard_alike
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
    "logical": (
        lambda a, b: ((a > b).any(0), (a > b).all(1), (a > b).any(), jnp.bitwise_or.reduce(a.astype(int), 0)),
        A,
        B,
    ),
    "while of rows": (lambda a: jax.vmap(lambda r: lax.while_loop(lambda r: r.sum() < 9, lambda r: r + 1, r))(a), A),
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


def test_an_axis_that_a_result_keeps_is_not_summed_over():
    # x cuts what is summed over in the left operand, and columns of the result in the right one
    both = NamedSharding(MESH, P(None, "x"))
    for run in (lambda a, b: a @ b, jax.jit(lambda a, b: a @ b)):
        got = run(jax.device_put(A, both), jax.device_put(B, both))
        assert got.sharding.spec == P(None, "x")
        np.testing.assert_allclose(got, A @ B, rtol=1e-5)


def test_scatter_of_a_sum():
    # each device wants one part of a sum over all: a reduce-scatter moves less than a sum on all
    place = NamedSharding(MESH, P("x"))
    text = jax.jit(lambda a, b: a @ b, in_shardings=(NamedSharding(MESH, P(None, "x")), place), out_shardings=place)
    assert "reduce_scatter" in text.lower(A, B).as_text("partitioned")


def test_a_missing_rule_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        got = jax.jit(lambda a: jnp.linalg.eigh(a + a.T)[0])(jax.device_put(A, NamedSharding(MESH, P("x"))))
    np.testing.assert_allclose(got, np.linalg.eigvalsh(A + A.T), rtol=1e-4, atol=1e-4)
    assert not [r for r in caplog.records if "partitioning" in r.message]
    with caplog.at_level(logging.WARNING):
        got = jax.jit(lambda a: jax.pure_callback(np.sin, a, a))(jax.device_put(A, NamedSharding(MESH, P("x"))))
    np.testing.assert_allclose(got, np.sin(A), rtol=1e-6)
    said = [r.message for r in caplog.records if "partitioning" in r.message]
    assert said and "test_programs.py" in said[0]


@pytest.mark.parametrize("spec", [P("x", "y"), P("y"), P()])
def test_a_function_of_the_user_is_called_once(spec):
    """Whatever many devices there are; all of them get its results, of all types and to the sign of 0."""
    seen = []

    def host(a):
        seen.append(a.shape)
        return -a, a > 0, np.sign(a).astype(np.int8)

    types = [jax.ShapeDtypeStruct(A.shape, t) for t in (A.dtype, bool, np.int8)]
    x = jax.device_put(jnp.asarray(A).at[0, :2].set(jnp.array([0.0, jnp.inf])), NamedSharding(MESH, spec))
    found = jax.jit(lambda x: [2 * y if y.dtype == A.dtype else y for y in jax.pure_callback(host, types, x)])(x)
    assert seen == [A.shape]
    for got, wanted in zip(found, host(np.asarray(x)), strict=True):
        wanted = 2 * wanted if wanted.dtype == A.dtype else wanted
        np.testing.assert_array_equal(got, wanted)
    assert np.signbit(found[0][0, 0])


def test_donated_arguments_are_gone():
    x = jax.device_put(A, NamedSharding(MESH, P("x")))
    y = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(y, A + 1)


@pytest.mark.parametrize(("ins", "outs", "gone"), [("x", (None, "x"), True), ("x", (), False), ((), "x", False)])
def test_donated_arguments_are_gone_if_parts_of_results_are_as_large(ins, outs, gone):
    """As in JAX, however the parts are cut."""
    x = jax.device_put(A, NamedSharding(MESH, P(*ins)))
    y = jax.jit(lambda x: x + 1, donate_argnums=0, out_shardings=NamedSharding(MESH, P(*outs)))(x)
    assert x.is_deleted() == gone
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


KEYS = jax.random.split(jax.random.key(0), (8, 4))
each = lambda f: jax.vmap(jax.vmap(f))
ON_KEYS = {
    "nothing": (lambda k: k, "same"),
    "draws": (each(jax.random.uniform), "same"),
    "folded": (each(lambda k: jax.random.fold_in(k, 3)), "same"),
    "split": (each(jax.random.split), "same"),
    "gamma": (each(lambda k: jax.random.gamma(k, 2.0)), "same"),
    "transposed": (lambda k: k.T, None),
    "reversed": (lambda k: k[::-1], "same"),
    "reshaped": (lambda k: k.reshape(32), None),
    "joined": (lambda k: jnp.concatenate([k, k]), "same"),
    "picked": (lambda k: k[jnp.array([3, 1])], None),
    "words": (lambda k: jax.random.key_data(k) ^ 1, "same"),
    "scanned": (
        lambda k: lax.scan(lambda c, q: (jax.random.fold_in(c, 1), jax.random.normal(q)), k[0, 0], k[:, 1]),
        None,
    ),
    "carried": (lambda k: lax.fori_loop(0, 3, lambda i, c: each(lambda q: jax.random.fold_in(q, i))(c), k), "same"),
    "chosen": (lambda k: lax.cond(jax.random.key_data(k).sum() > 0, lambda k: k, lambda k: k[::-1], k), "same"),
    "closed over": (lambda k: (k, KEYS, k == KEYS), None),
}


def _words(tree):
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return [np.asarray(jax.random.key_data(x) if is_key(x) else x) for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("name", ON_KEYS)
def test_keys(name):
    run, lies = ON_KEYS[name]
    want = _words(run(KEYS))
    for spec in SPECS[2]:
        found = jax.jit(run)(jax.device_put(KEYS, NamedSharding(MESH, spec)))
        for got, whole in zip(_words(found), want, strict=True):
            np.testing.assert_array_equal(got, whole, err_msg=str(spec))
        if lies == "same":
            (result,) = jax.tree.leaves(found)
            assert result.sharding.is_equivalent_to(NamedSharding(MESH, spec), result.ndim), (spec, result.sharding)


def test_keys_where_asked():
    place = NamedSharding(MESH, P("x"))
    for f in (lambda k: k, lambda k: lax.with_sharding_constraint(k, place)):
        got = jax.jit(f, out_shardings=place)(KEYS)
        assert got.sharding.is_equivalent_to(place, 2) and got.dtype == KEYS.dtype
        assert [s.data.shape for s in got.addressable_shards] == [(4, 4)] * 4
        np.testing.assert_array_equal(jax.random.key_data(got), jax.random.key_data(KEYS))


IN_PLACE = {
    "sort": lambda a: jnp.sort(a, 0),
    "argsort": lambda a: jnp.argsort(a, 1),
    "cumsum": lambda a: jnp.cumsum(a, 0),
    "flip": lambda a: jnp.flip(a),
    "pad": lambda a: jnp.pad(a, 2),
    "concatenate": lambda a: jnp.concatenate([a, a]),
    "split": lambda a: jnp.split(a, 2, 1)[0],
    "slice": lambda a: a[2:6, ::2],
    "dynamic_slice": lambda a: lax.dynamic_slice(a, (jnp.int32(1), 0), (4, 8)),
    "set": lambda a: a.at[2].set(0),
    "fft": lambda a: jnp.fft.fft(a, axis=0),
    "window": lambda a: lax.reduce_window(a, 0.0, lax.add, (2, 1), (2, 1), "VALID"),
    "convolution": lambda a: lax.conv_general_dilated(a[None, None], jnp.ones((1, 1, 3, 3)), (1, 1), "SAME")[0, 0],
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_what_is_computed_whole_is_cut_again(name):
    for spec in (P("x"), P(None, "y"), P("x", "y"), P("y", "x")):
        got = jax.jit(IN_PLACE[name])(jax.device_put(A, NamedSharding(MESH, spec)))
        np.testing.assert_allclose(got, jax.jit(IN_PLACE[name])(A), rtol=1e-5, atol=1e-5)
        assert got.sharding.is_equivalent_to(NamedSharding(MESH, spec), 2), (spec, got.sharding)


def test_arrays_that_are_cut_alike():
    cut = NamedSharding(MESH, P("x", "y"))
    a = jax.device_put(A, cut)
    programs = [
        lambda a: shard_alike(a, jnp.ones((8, 8)))[1],
        lambda a: shard_alike(jnp.zeros((8, 8)), a)[0],
        lambda a: shard_alike({"a": a}, {"a": 2 * a.T})[1]["a"],
        jax.vmap(lambda r: shard_alike(r, jnp.zeros(8))[1]),
        jax.grad(lambda a: shard_alike(a, jnp.sin(a))[1].sum()),
    ]
    for f in programs:
        got = jax.jit(f)(a)
        assert got.sharding.spec == P("x", "y")
        np.testing.assert_allclose(got, f(A), rtol=1e-6)
    said = jax.jit(lambda a: shard_alike(a, lax.with_sharding_constraint(jnp.ones((8, 8)), cut))[0])
    assert said(A).sharding.spec == P("x", "y") == shard_alike(a, A)[1].sharding.spec
