"""Few places of a dimension that is cut, taken and written: right, and the array is not gathered."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

N = np.random.default_rng(0)
T = N.normal(size=(16, 8)).astype(np.float32)
T[2, 3] = -0.0
I = np.array([1, 3, -1, 15, 3, 0], np.int32)
FAR = np.array([1, 3, 40, -1, -30, 15], np.int32)
BATCH = N.integers(0, 16, size=32).astype(np.int32)
MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
LINE = 8 * 4


def on_mesh(a, spec):
    return jax.device_put(a, NamedSharding(MESH, spec))


def sweep(t):
    return lax.fori_loop(0, 16, lambda i, s: (s[0] + s[1][i], s[1].at[15 - i].add(s[0] * 0.1)), (t[0] * 0, t))


TAKEN = {
    "the first": (lambda t: t[0], ()),
    "the last, in part": (lambda t: t[-1, 2:5], ()),
    "some of one part": (lambda t: t[1:4:2], ()),
    "computed": (lambda t, i: t[i], (np.int32(7),)),
    "computed, past the end": (lambda t, i: lax.dynamic_slice_in_dim(t, i, 1), (np.int32(99),)),
    "before the beginning": (lambda t, i: lax.dynamic_slice_in_dim(t, i, 1), (np.int32(-99),)),
    "several": (lambda t, i: t[i], (I,)),
    "nothing outside": (lambda t, i: jnp.take(t, i, 0), (FAR,)),
    "a value outside": (lambda t, i: t.at[i].get(mode="fill", fill_value=7), (FAR,)),
    "the nearest outside": (lambda t, i: t.at[i].get(mode="clip"), (FAR,)),
    "single elements": (lambda t, i: t[i, i % 8], (I,)),
    "whole numbers": (lambda t, i: (t * 9).astype(int)[i], (I,)),
    "masks": (lambda t, i: (t > 0)[i], (I,)),
}
WRITTEN = {
    "a line": (lambda t, i: t.at[i].set(2), (np.int32(7),)),
    "a line outside": (lambda t, i: lax.dynamic_update_slice_in_dim(t, t[:1] * 2, i, 0), (np.int32(99),)),
    "set": (lambda t, i: t.at[i].set(t[i] * 2), (I,)),
    "added": (lambda t, i: t.at[i].add(1.5), (FAR,)),
    "added to the nearest": (lambda t, i: t.at[i].add(1.5, mode="clip"), (FAR,)),
    "the larger": (lambda t, i: t.at[i, i % 8].max(0.5), (I,)),
    "multiplied": (lambda t, i: t.at[i].multiply(2.0), (I,)),
    "a loop": (sweep, ()),
    "a step of descent": (lambda t, i: t - jax.grad(lambda t: (t[i] ** 2).sum())(t), (I,)),
    "a step of one line": (lambda t, i: t - jax.grad(lambda t: (t[i] ** 2).sum())(t), (np.int32(5),)),
}


@pytest.mark.parametrize("name", [*TAKEN, *WRITTEN])
def test_few_places(name):
    f, args = (TAKEN | WRITTEN)[name]
    want = jax.jit(f)(T, *args)
    for spec in (P("x"), P("y", "x"), P(("x", "y")), P(("y", "x"))):
        t = on_mesh(T, spec)
        made = jax.jit(f).lower(t, *args).compile()
        got = made(t, *args)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, 1e-6, 1e-6)
        if name in WRITTEN:
            assert jax.tree.leaves(got)[-1].sharding.is_equivalent_to(t.sharding, 2)


def test_what_is_moved():
    t, i = on_mesh(T, P("x")), np.int32(7)

    def moved(f, *args):
        return jax.jit(f).lower(*args).compile().cost_analysis()["collective bytes"]

    assert moved(lambda t: t[0], t) == LINE
    assert moved(lambda t, i: t[i], t, i) == LINE
    assert moved(lambda t, i: t[i], t, I[:3]) == 3 * LINE
    assert moved(lambda t, i: t.at[i].set(2), t, i) == 0
    assert moved(lambda t, i: t.at[i].add(2), t, I) == 0
    assert moved(lambda t: sum(t[i] for i in range(16)), t) == 8 * LINE  # all of them: it is gathered, once


def test_each_device_counts_its_own_part():
    b = on_mesh(BATCH, P(("x", "y")))
    v = np.cos(BATCH.astype(np.float32))
    for f in (
        lambda b: jnp.bincount(b, length=16),
        lambda b: jax.ops.segment_sum(v, b, 16),
        lambda b: jax.ops.segment_max(v, b, 16),
        lambda b: jnp.full(16, 0.5).at[b].min(v),
        lambda b: jnp.ones(16).at[b].add(v),
    ):
        np.testing.assert_allclose(jax.jit(f)(b), f(BATCH), 1e-5, 1e-6)
    made = jax.jit(lambda b: jnp.bincount(b, length=4)).lower(b).compile()
    assert made.cost_analysis()["collective bytes"] == 3 * 4 * 4  # the counts of the others


def test_tables_and_tokens_that_are_cut_alike():
    t, b = on_mesh(T, P("x")), on_mesh(BATCH, P("x"))

    def step(t, b):
        return t - 0.1 * jax.grad(lambda t: (t[b] ** 2).sum())(t)

    np.testing.assert_allclose(jax.jit(step)(t, b), step(T, BATCH), 1e-5, 1e-5)
    assert jax.jit(step)(t, b).sharding.is_equivalent_to(t.sharding, 2)
