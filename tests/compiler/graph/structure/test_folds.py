"""lax.reduce by functions of the user's, and the largest element as top_k gives it, are reductions."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax


def nests(f, *args):
    """The program's loop nests, as text."""
    return jax.jit(f).lower(*args).as_text("loops")


def better(a, b):
    first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
    return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])


def pairs(axis):
    def best(x):
        places = lax.broadcasted_iota(jnp.int32, x.shape, axis)
        return lax.reduce((x, places), (-jnp.inf, jnp.int32(2**31 - 1)), better, (axis,))

    return best


def moments(axis):
    def merge(a, b):
        n, d = a[0] + b[0], b[1] - a[1]
        whole = jnp.where(n > 0, n, 1)
        return n, a[1] + d * b[0] / whole, a[2] + b[2] + d * d * a[0] * b[0] / whole

    return lambda x: lax.reduce((jnp.ones_like(x), x, jnp.zeros_like(x)), (0.0, 0.0, 0.0), merge, (axis,))


@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (3, 130), (600, 70)])
@pytest.mark.parametrize("axis", [0, 1])
def test_values(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    value, place = jax.jit(pairs(axis))(x)
    np.testing.assert_array_equal(place, x.argmax(axis))
    np.testing.assert_array_equal(value, x.max(axis))
    _, mean, squares = jax.jit(moments(axis))(x)
    np.testing.assert_allclose(mean, x.mean(axis), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(squares, x.var(axis) * shape[axis], rtol=1e-5, atol=1e-5)


def test_they_are_reductions():
    x = np.ones((60, 70), "f4")
    for f in (pairs(0), pairs(1), moments(1)):
        assert "reduce" in nests(f, x) and "sequential" not in nests(f, x)


def test_a_start_that_is_not_neutral_counts_once():
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("f4")

    def sums(x):
        return lax.reduce((x, x), (1.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))

    for f in (sums, jax.jit(sums)):
        one, zero = f(x)
        np.testing.assert_allclose(one, x.sum(0) + 1, rtol=1e-5)
        np.testing.assert_allclose(zero, x.sum(0), rtol=1e-5, atol=1e-6)
    assert "sequential" in nests(sums, x)


def test_types_and_empty_rows():
    def both(x):
        return lax.reduce((x, x), (x.dtype.type(0), x.dtype.type(0)), lambda a, b: (a[0] | b[0], a[1] ^ b[1]), (1,))

    for dtype in ("i4", "u1", "i8"):
        x = np.random.default_rng(0).integers(0, 100, (3, 50)).astype(dtype)
        some, odd = jax.jit(both)(x)
        np.testing.assert_array_equal(some, np.bitwise_or.reduce(x, 1))
        np.testing.assert_array_equal(odd, np.bitwise_xor.reduce(x, 1))
    assert jax.jit(pairs(1))(np.ones((2, 0), "f4"))[0].tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u1"])
def test_the_largest_of_top_k(dtype):
    x = np.random.default_rng(0).integers(0, 9, (4, 3, 40)).astype(dtype)
    if dtype[0] == "f":
        x[0, 0, :3], x[1, 1], x[2, 2, 5] = [-0.0, 0.0, np.nan], -np.inf, -np.nan
    largest = jax.jit(lambda x, axis: lax.top_k(x, 1, axis=axis), static_argnums=1)
    for axis in (0, 2, -1):
        for eager, compiled in zip(lax.top_k(x, 1, axis=axis), largest(x, axis)):
            np.testing.assert_array_equal(eager, compiled)
    assert "pb_top_k" not in nests(lambda x: lax.top_k(x, 1), x)
