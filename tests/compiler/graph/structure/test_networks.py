"""Sorts and medians of short rows by exchanges: what a call gives, bit for bit."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.compiler.graph.structure import networks
from pullback.compiler.pipelines import optimize_jaxpr

SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -1, 1e-40], np.float32)
RNG = np.random.default_rng(3)


@pytest.fixture
def some_rows_are_many(monkeypatch):
    monkeypatch.setattr(networks, "MIN_ROWS_OF_MANY", 256)


def names(f, *args):
    return {e.primitive.name for e in optimize_jaxpr(pullback.make_jaxpr(f)(*args)).eqns}


@pytest.mark.usefixtures("some_rows_are_many")
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9, 12, 16])
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


def test_few_rows_are_not_worth_the_compilation():
    assert "sort" in names(lambda x: jnp.sort(x, -1), np.ones((2000, 9), "f4"))
    assert "sort" in names(lambda x: jnp.sort(x, 0), np.ones((12, 2000), "f4"))


@pytest.mark.usefixtures("some_rows_are_many")
@pytest.mark.parametrize("n", [6, 9, 12, 16])
def test_whole_rows_side_by_side_are_no_calls(n):
    x = RNG.integers(-9, 9, (16, 20, n)).astype("i4")
    sort = lambda x: jnp.sort(x, -1)
    assert "sort" not in names(sort, x)
    np.testing.assert_array_equal(pullback.jit(sort)(x), np.sort(x, -1))
    if n <= 12:
        both = lambda x, y: pullback.lax.sort_key_val(x, y)
        y = RNG.standard_normal(x.shape).astype("f4")
        assert "sort" not in names(both, x, y)
        keys, values = pullback.jit(both)(x, y)
        np.testing.assert_array_equal(keys, np.sort(x, -1))
        np.testing.assert_array_equal(values, np.take_along_axis(y, np.argsort(x, -1, kind="stable"), -1))


@pytest.mark.usefixtures("some_rows_are_many")
def test_medians_of_sixteen_are_no_calls():
    x = RNG.choice(SPECIAL[[0, 1, 4, 5, 6, 7]], (300, 16)) + RNG.integers(0, 2, (300, 16)).astype("f4")
    x = np.where(np.isnan(x), np.float32(2), x)
    median = lambda x: jnp.quantile(x, 0.25, axis=1, method="lower")
    assert names(median, x).isdisjoint({"sort", "order_statistics", "partition"})
    np.testing.assert_array_equal(pullback.jit(median)(x), np.quantile(x, 0.25, axis=1, method="lower"))


def test_gradients():
    x = RNG.standard_normal((60, 5)).astype("f4")
    got = pullback.jit(pullback.grad(lambda x: jnp.sum(jnp.sort(x, 1) * jnp.arange(5.0))))(x)
    np.testing.assert_array_equal(got, np.argsort(np.argsort(x, 1), 1))


def test_long_rows_and_few_are_calls():
    assert "sort" in names(lambda x: jnp.sort(x, 1), np.ones((100, 10), "f4"))
    assert "sort" in names(lambda x: jnp.sort(x, 1), np.ones((300, 17), "f4"))
    assert "sort" in names(lambda x: jnp.argsort(x, 1), np.ones((300, 10), "f4"))
    assert "sort" in names(lambda x: jnp.sort(x, 1), np.ones((3, 5), "f4"))


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1", "f2"])
@pytest.mark.parametrize("k", [2, 5])
def test_largest_of_short_rows(dtype, k):
    x = RNG.choice(SPECIAL if dtype[0] == "f" else np.arange(4), (300, 5)).astype(dtype)
    if dtype[0] == "f":
        bits = x.view(f"i{x.itemsize}").astype("i8")
        keys = np.where(bits < 0, bits ^ np.iinfo(f"i{x.itemsize}").max, bits)  # the total order of floats
    else:
        keys = x.astype("i8")
    want = np.argsort(-keys, 1, kind="stable")[:, :k]
    for axis in (1, 0):
        largest = lambda x, axis=axis: pullback.lax.top_k(x, k, axis=axis)
        operand, places = (x, want) if axis else (x.T, want.T)
        assert "top_k" not in names(largest, operand)
        got = pullback.jit(largest)(operand)
        np.testing.assert_array_equal(got[1], places)
        taken = np.take_along_axis(operand, places, axis)
        assert np.asarray(got[0]).tobytes() == np.ascontiguousarray(taken).tobytes()
