"""Sums of padded arrays and slices of them, as derivatives of rolls and of rims make them."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

RNG = np.random.default_rng(0)


def optimized(f, *args):
    return pullback.jit(f).lower(*args).as_text("jaxpr")


def by_rolls(xp, x):
    return xp.roll(x, 1, 0) + xp.roll(x, -1, 0) + xp.roll(x, 1, 1) + xp.roll(x, -1, 1) - 4 * x


def by_rim(x):
    wide = jnp.pad(x, 1, mode="wrap")
    return wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:] - 4 * x


@pytest.mark.parametrize("stencil", [lambda x: by_rolls(jnp, x), by_rim])
@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (40, 33)])
def test_cotangents_of_rolls_are_rolls(shape, stencil):
    x = RNG.standard_normal(shape).astype("f4")

    def loss(x):
        return jnp.sum(stencil(x) ** 2) / 2

    if shape == (40, 33):
        assert " pad[" not in optimized(pullback.grad(loss), x)
    want = by_rolls(np, by_rolls(np, x.astype("f8")))
    np.testing.assert_allclose(pullback.jit(pullback.grad(loss))(x), want, rtol=1e-4, atol=1e-4)


def test_padded_arrays_one_after_the_other_are_joined():
    x, y = RNG.standard_normal((4, 3)).astype("f4"), RNG.standard_normal((2, 3)).astype("f4")

    def f(x, y, z):
        a = lax.pad(x, 0.0, ((0, 2, 0), (1, 0, 0)))
        return (a - z) + lax.pad(y, 0.0, ((4, 0, 0), (1, 0, 0)))

    z = RNG.standard_normal((6, 4)).astype("f4")
    assert optimized(f, x, y, z).count(" pad[") == 1
    want = np.pad(x, ((0, 2), (1, 0))) - z + np.pad(y, ((4, 0), (1, 0)))
    np.testing.assert_allclose(pullback.jit(f)(x, y, z), want, rtol=1e-6)


@pytest.mark.parametrize(
    "edges",
    [
        [(0, 3, 0), (4, 0, 0)],  # they overlap
        [(0, 5, 0), (6, 0, 0)],  # there is room between them
        [(0, 4, 1), (8, 0, 0)],  # zeros between elements
        [(-1, 4, 0), (3, 0, 0)],  # the first is cropped
    ],
)
def test_padded_arrays_that_lie_otherwise(edges):
    x = RNG.standard_normal(4).astype("f4")
    sizes = [4 + lo + hi + 3 * between for lo, hi, between in edges]

    def f(x):
        a, b = (lax.pad(x * k, 0.0, [edge]) for k, edge in zip((1.0, 2.0), edges))
        n = min(sizes)
        return a[:n] + b[:n]

    np.testing.assert_allclose(pullback.jit(f)(x), f(jnp.asarray(x)), rtol=1e-6)


def test_the_same_array_subtracted_stays():
    x, y = RNG.standard_normal((2, 4)).astype("f4")

    def f(x, y):
        return (y[:, None] * jnp.ones(2)).reshape(8) - lax.pad(x, 0.0, [(0, 4, 0)]) + lax.pad(y, 0.0, [(4, 0, 0)])

    want = np.repeat(y, 2) - np.pad(x, (0, 4)) + np.pad(y, (4, 0))
    np.testing.assert_allclose(pullback.jit(f)(x, y), want, rtol=1e-6)


@pytest.mark.parametrize("window", [(0, 2), (0, 1), (1, 6), (2, 9), (8, 9), (3, 4)])
@pytest.mark.parametrize("value", [0.0, 2.0])
def test_slices_of_padded_arrays(window, value):
    x = RNG.standard_normal((4, 5)).astype("f4")
    low, high = window

    def f(x):
        return lax.pad(x, np.float32(value), ((2, 3, 0), (0, 1, 1)))[low:high, 1:]

    np.testing.assert_array_equal(pullback.jit(f)(x), f(jnp.asarray(x)))


@pytest.mark.parametrize("dtype", ["f4", "i4", "c8"])
def test_slices_of_sums_with_padded_arrays(dtype):
    x, y = ((10 * RNG.standard_normal((2, 6, 5))).astype(dtype) for _ in range(2))

    def f(x, y):
        total = y[0] - lax.pad(x[0, :4], np.zeros((), dtype), ((0, 2, 0), (0, 0, 0))) + x[1]
        return total[4:], total[:3, 1:] * 2, lax.pad(x[0, 1:], np.zeros((), dtype), ((1, 0, 0), (0, 0, 0)))[:1]

    for found, want in zip(pullback.jit(f)(x, y), f(*map(jnp.asarray, (x, y)))):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["wrap", "edge", "reflect", "symmetric"])
def test_gradients_of_rims_in_three_directions(mode):
    x = RNG.standard_normal((4, 5, 6)).astype("f4")

    def loss(x):
        wide = jnp.pad(x, 1, mode=mode)
        return jnp.sum(jnp.sin(wide[2:, 1:-1, 1:-1] * wide[:-2, 1:-1, 1:-1]) + wide[1:-1, 2:, :-2] ** 3)

    with pullback.disable_jit():
        want = pullback.grad(loss)(x)
    np.testing.assert_allclose(pullback.jit(pullback.grad(loss))(x), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("f", [lambda y: y + 0.5, lambda y: y - 0.5, lambda y: 0.5 - y])
def test_slices_of_a_padded_array_and_a_scalar(f):
    def both(x):
        y = f(jnp.pad(x, ((2, 0), (0, 0))))
        return y[:3] * 2, y[5:]

    x = np.arange(24.0, dtype=np.float32).reshape(6, 4)
    y = f(np.pad(x, ((2, 0), (0, 0))))
    for got, want in zip(pullback.jit(both)(x), (y[:3] * 2, y[5:]), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("sign", [1, -1])
def test_slices_of_padding_alone_and_a_number(sign):
    """What is left of the sum there is the number, in every element."""

    def f(b, c):
        a = 2.0 * b + sign * jnp.pad(c, ((0, 6), (0, 0)))
        return a[13:16], a[:3]

    for got, want in zip(pullback.jit(f)(np.float32(3), np.ones((10, 3), "f4")), (6.0, 6.0 + sign)):
        np.testing.assert_array_equal(got, np.full((3, 3), want, "f4"))
