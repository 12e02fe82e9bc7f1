"""An array taken in the order of its sort is the sorted array."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def values(shape, dtype):
    x = (RNG.standard_normal(shape) * 3).astype(dtype)
    if dtype == "f4" and x.size > 7:
        x.flat[::5], x.flat[1::7], x.flat[2::7], x.flat[3] = np.nan, 0.0, -0.0, np.inf
    return x


@pytest.mark.parametrize("dtype", ["f4", "i4", "i1", "c8"])
@pytest.mark.parametrize("shape, axis", [((50,), 0), ((7, 40), 1), ((40, 7), 0), ((3, 20, 4), 1), ((300,), 0)])
def test_nothing_is_gathered(shape, axis, dtype):
    x = values(shape, dtype)
    program = pullback.jit(lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis), axis))
    text = program.lower(x).as_text("jaxpr")
    assert "gather" not in text and "iota" not in text, text
    want = np.take_along_axis(x, np.argsort(x, axis, kind="stable"), axis)
    np.testing.assert_array_equal(program(x), want)
    if dtype == "f4":
        there = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(program(x))[there], np.signbit(want)[there])


@pytest.mark.parametrize("shape, axis", [((1,), 0), ((0,), 0), ((3, 1), 1), ((3, 0), 1), ((0, 3), 1)])
def test_hardly_any_elements(shape, axis):
    x = values(shape, "f4")
    found = pullback.jit(lambda x: jnp.take_along_axis(x, jnp.argsort(x, axis), axis))(x)
    np.testing.assert_array_equal(found, np.sort(x, axis))


def test_by_an_index_and_mapped():
    x = values((30, 20), "f4")
    for f in (lambda x: x[jnp.argsort(x)], lambda x: jnp.take(x, jnp.argsort(x))):
        assert "gather" not in pullback.jit(f).lower(x[0]).as_text("jaxpr")
        np.testing.assert_array_equal(pullback.jit(f)(x[0]), np.sort(x[0]))
        np.testing.assert_array_equal(pullback.jit(pullback.vmap(f))(x), np.sort(x))


def test_other_orders_are_gathered():
    x, y = values((40,), "i4"), values((40,), "i4")

    def f(x, y):
        order = jnp.argsort(x)
        return y[order], x[order], x[order[::-1]], x[order + 1], order

    order = np.argsort(x, kind="stable")
    want = y[order], x[order], x[order[::-1]], x[np.minimum(order + 1, 39)], order
    for found, each in zip(pullback.jit(f)(x, y), want):
        np.testing.assert_array_equal(found, each)


@pytest.mark.parametrize("shape, axis", [((20, 60), 1), ((60, 20), 0), ((5000,), 0), ((40, 5), 1), ((4, 30, 6), 1)])
def test_quantiles_one_after_the_other_are_selected_together(shape, axis):
    x = RNG.standard_normal(shape).astype("f4")

    def apart(x):
        return jnp.quantile(x, 0.1, axis), jnp.median(x, axis), jnp.quantile(x, 0.9, axis), jnp.quantile(x, 0.1, axis)

    program = pullback.jit(apart)
    assert program.lower(x).as_text("jaxpr").count("= order_statistics") <= 1
    want = np.quantile(x.astype("f8"), [0.1, 0.5, 0.9, 0.1], axis)
    for found, each in zip(program(x), want):
        np.testing.assert_allclose(found, each, rtol=1e-5, atol=1e-6)
    x.flat[7] = np.nan
    for found, each in zip(program(x), np.quantile(x, [0.1, 0.5, 0.9, 0.1], axis)):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(each))


@pytest.mark.parametrize("shape, axis", [((7, 1), 1), ((1, 7), 0), ((3, 1, 4), 1), ((3, 0, 4), 1)])
def test_an_axis_of_one_element_is_in_order(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    if x.size:
        x.flat[0] = np.nan

    def ordered(x):
        top = pullback.lax.top_k(jnp.moveaxis(x, axis, -1), x.shape[axis])
        return jnp.sort(x, axis), jnp.argsort(x, axis), jnp.argsort(x, axis, descending=True), *top

    found = pullback.jit(ordered)(x)
    for value, wanted in zip(found, ordered(jnp.asarray(x))):
        assert value.dtype == wanted.dtype and value.shape == wanted.shape
        np.testing.assert_array_equal(value, wanted)
    np.testing.assert_array_equal(found[0], x)
    assert "sort[" not in pullback.jit(ordered).lower(x).as_text("jaxpr")


@pytest.mark.parametrize("dtype", ["f4", "i4"])
@pytest.mark.parametrize("shape, axis", [((50,), 0), ((7, 40), 1), ((40, 7), 0), ((3, 33, 4), 1)])
def test_the_order_of_an_order_is_put_in_its_places(shape, axis, dtype):
    x, v = values(shape, dtype), values(shape, "f4")

    def ranks(x):
        return jnp.argsort(jnp.argsort(x, axis), axis)

    def carried(x, v):
        return pullback.lax.sort((jnp.argsort(x, axis), v, 2 * v), dimension=axis, num_keys=1)

    order = np.argsort(x, axis, kind="stable")
    text = pullback.jit(ranks).lower(x).as_text("jaxpr")
    assert text.count(" sort[") == 1 and "scatter[" in text, text
    np.testing.assert_array_equal(pullback.jit(ranks)(x), np.argsort(order, axis))
    places, one, other = pullback.jit(carried)(x, v)
    want = np.take_along_axis(v, np.argsort(order, axis), axis)
    np.testing.assert_array_equal(places, np.sort(order, axis))
    np.testing.assert_array_equal(one, want)
    np.testing.assert_array_equal(other, 2 * want)


def test_what_is_no_order_is_sorted():
    x = values((50,), "f4")
    for f in (
        lambda x: jnp.argsort(jnp.argsort(x) // 2),
        lambda x: jnp.argsort(jnp.argsort(x).astype("i1")),
        lambda x: jnp.argsort(jnp.argsort(x.reshape(5, 10), 1).reshape(50)),
        lambda x: jnp.argsort(jnp.argsort(x)[:40]),
    ):
        np.testing.assert_array_equal(pullback.jit(f)(x), f(jnp.asarray(x)))
    turned = lambda x: jnp.argsort(jnp.argsort(x, 0), 1)
    np.testing.assert_array_equal(pullback.jit(turned)(x.reshape(1, 50)), turned(jnp.asarray(x.reshape(1, 50))))
    y = values((40, 40), "f4")
    np.testing.assert_array_equal(pullback.jit(turned)(y), turned(jnp.asarray(y)))


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("shape, axis, k", [((50,), 0, 7), ((7, 40), 1, 40), ((40, 7), 0, 3), ((6, 300), -1, 5)])
def test_the_smallest_are_the_largest_by_other_keys(shape, axis, k, dtype):
    """approx_min_k, which ran on the host: equal ones as they lie, zeros with their signs, NaN last."""
    x = (RNG.standard_normal(shape) * 3).round().astype(dtype)
    x.flat[::5], x.flat[1::7], x.flat[2::7], x.flat[3], x.flat[4] = np.nan, 0.0, -0.0, np.inf, -np.nan
    program = pullback.jit(lambda x: pullback.lax.approx_min_k(x, k, axis))
    assert "approx_top_k" not in program.lower(x).as_text("fused")
    numbers, places = program(x)
    order = np.take(np.argsort(x, axis, kind="stable"), range(k), axis)
    np.testing.assert_array_equal(places, order)
    want = np.take_along_axis(x, order, axis)
    np.testing.assert_array_equal(numbers, want)
    np.testing.assert_array_equal(np.signbit(numbers)[want == 0], np.signbit(want)[want == 0])


@pytest.mark.parametrize("shape, axis", [((600,), 0), ((3, 700), 1), ((513, 4), 0)])
def test_what_is_sorted_by_truths_is_counted(shape, axis):
    rng = np.random.default_rng(0)
    mask, x = rng.random(shape) < 0.3, rng.standard_normal(shape).astype("f4")
    order = np.argsort(mask, axis, kind="stable")
    for f, expected in (
        (lambda m, x: jnp.argsort(m, axis), order),
        (lambda m, x: jnp.argsort(m, axis, stable=True, descending=True), np.argsort(~mask, axis, kind="stable")),
        (lambda m, x: jnp.sort(m, axis), np.sort(mask, axis)),
        (lambda m, x: pullback.lax.sort((m, x), dimension=axis, num_keys=1)[1], np.take_along_axis(x, order, axis)),
    ):
        names = [e.primitive.name for e in optimize_jaxpr(pullback.make_jaxpr(f)(mask, x)).jaxpr.eqns]
        assert "sort" not in names
        np.testing.assert_array_equal(pullback.jit(f)(mask, x), expected)
    for all_alike in (np.zeros(shape, bool), np.ones(shape, bool)):
        np.testing.assert_array_equal(
            pullback.jit(lambda m: jnp.argsort(m, axis))(all_alike), np.argsort(all_alike, axis, kind="stable")
        )
