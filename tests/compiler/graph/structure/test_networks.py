"""Sorts and medians of short rows by exchanges: what a call gives, bit for bit."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -1, 1e-40], np.float32)
RNG = np.random.default_rng(3)


def names(f, *args):
    return {e.primitive.name for e in optimize_jaxpr(pullback.make_jaxpr(f)(*args)).eqns}


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("axis", [0, 1])
def test_what_a_stable_sort_gives(n, axis):
    x = RNG.choice(SPECIAL, (300, n) if axis else (n, 300))
    places = pullback.jit(lambda x: jnp.argsort(x, axis))(x)
    want = np.argsort(x, axis, kind="stable")
    np.testing.assert_array_equal(places, want)
    got = np.asarray(pullback.jit(lambda x: jnp.sort(x, axis))(x))
    want = np.take_along_axis(x, want, axis)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f2", "f8", "?"])
def test_each_type(dtype):
    with pullback.enable_x64(True):
        x = RNG.integers(0, 4, (100, 4)).astype(dtype)
        np.testing.assert_array_equal(pullback.jit(lambda x: jnp.sort(x, 1))(x), np.sort(x, 1))
        np.testing.assert_array_equal(pullback.jit(lambda x: jnp.sort(x, 0))(x.T), np.sort(x.T, 0))


def test_medians_are_no_calls():
    x = RNG.standard_normal((9, 40, 50)).astype("f4")
    median = lambda x: jnp.median(x, 0)
    assert names(median, x).isdisjoint({"sort", "order_statistics", "partition"})
    np.testing.assert_array_equal(pullback.jit(median)(x), np.median(x, 0))
    np.testing.assert_array_equal(pullback.jit(lambda x: jnp.sort(x, 0)[2])(x), np.sort(x, 0)[2])


def test_gradients():
    x = RNG.standard_normal((60, 5)).astype("f4")
    got = pullback.jit(pullback.grad(lambda x: jnp.sum(jnp.sort(x, 1) * jnp.arange(5.0))))(x)
    np.testing.assert_array_equal(got, np.argsort(np.argsort(x, 1), 1))


def test_long_rows_and_few_are_calls():
    assert "sort" in names(lambda x: jnp.sort(x, 1), np.ones((100, 10), "f4"))
    assert "sort" in names(lambda x: jnp.sort(x, 1), np.ones((3, 5), "f4"))
