"""Calls read NumPy's arrays where they lie, without a copy, whatever multiple of 16 bytes they begin at."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


def placed(x: np.ndarray, offset: int) -> np.ndarray:
    """The same array, `offset` bytes after a multiple of 64."""
    raw = np.zeros(x.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    there = raw[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    there[...] = x
    return there


@pytest.mark.parametrize("dtype", ["f4", "i4", "c8", "i1", "f2"])
@pytest.mark.parametrize("shape", [(0,), (1,), (15,), (17,), (33, 70), (1000,)])
@pytest.mark.parametrize("offset", [16, 4, 48])
def test_results_do_not_depend_on_where_an_array_lies(dtype, shape, offset):
    x = (np.arange(np.prod(shape)).reshape(shape) % 7).astype(dtype)

    def f(x):
        return x, x[..., ::-1] + x, jnp.sum(x, axis=-1), jnp.cumsum(x, axis=-1), x.T @ x, jnp.sort(x), x.T

    call = jax.jit(f)
    expected = call(placed(x, 0))
    there = placed(x, offset)
    for _ in range(3):
        results = call(there)
    there[...] = 0  # no result may share its memory
    for result, value in zip(results, expected):
        np.testing.assert_array_equal(result, value)


@pytest.mark.parametrize("size", [17, 5000])
@pytest.mark.parametrize("fun", [jnp.array, jnp.ravel, jnp.transpose, jnp.flip, jnp.sum, jnp.negative, jnp.squeeze])
def test_eager_results_do_not_share_what_can_change(fun, size):
    x = placed(np.arange(2.0 * size, dtype=np.float32).reshape(1, 2, size), 16)
    for _ in range(3):
        result = fun(x)
    expected = np.array(getattr(np, fun.__name__)(x))
    x[...] = 0
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [99_999, 400_000])
def test_large_eager_arrays_may_lie_anywhere(size):
    x = np.linspace(-3, 3, size, dtype=np.float32)
    expected = [np.asarray(jnp.tanh(placed(x, 0))) for _ in range(60)][-1]
    for offset in (16, 4, 48):
        np.testing.assert_array_equal(jnp.tanh(placed(x, offset)), expected)


@pytest.mark.parametrize("jitted", [True, False])
def test_arrays_are_read_in_place(jitted):
    """By a call that takes an array that is not at a multiple of 64 bytes: no memory is asked for but the result's."""
    x = placed(np.ones(1_000_000, np.float32), 16)
    f = jax.jit(jnp.max) if jitted else jnp.max
    for _ in range(3):
        f(x)
    copied = placed(x, 16)[::2].copy()  # of half the length, so that a block of x's size is not at hand by chance
    assert float(f(copied)) == 1
    x[-1] = 5
    assert float(f(x)) == 5, "what is read is what is there now"
