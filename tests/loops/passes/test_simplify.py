"""Simplified expressions."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

WORDS = np.random.default_rng(0).integers(0, 1 << 32, 50, dtype=np.uint32)


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint8"])
def test_shifts_by_indices_within_all_bits_are_not_asked_about(dtype):
    """`shift` of a number by at least its bits is 0, or all sign, which is chosen: not where no index is so large."""
    words, bits = WORDS.astype(dtype), np.dtype(dtype).itemsize * 8

    def f(words):
        return ((words[:, None] >> jnp.arange(bits, dtype=dtype)) & 3).sum(1, dtype=jnp.int32)

    text = jax.jit(f).lower(words).as_text("nests")
    assert f", {bits - 1}:" in text and "and(" in text
    assert f"<64 x i32> splat (i32 {bits})" not in jax.jit(f).lower(words).as_text("llvm")
    want = ((words[:, None] >> np.arange(bits, dtype=dtype)) & 3).sum(1, dtype="i4")
    np.testing.assert_array_equal(jax.jit(f)(words), want)


@pytest.mark.parametrize("dtype", ["uint32", "int32"])
def test_shifts_by_more_than_all_bits_stay_as_they_are(dtype):
    words = WORDS.astype(dtype)
    by_all = lambda words: jax.lax.shift_right_logical(
        words[:, None] + jnp.zeros(40, dtype), jnp.zeros((50, 1), dtype) + jnp.arange(40, dtype=dtype)
    )
    shifted = jax.jit(by_all)(words)
    by = np.arange(40, dtype=np.uint64)
    want = np.where(by < 32, WORDS.astype(np.uint64)[:, None] >> by, 0).astype(np.uint32).astype(dtype)
    np.testing.assert_array_equal(shifted, want)
    left = jax.jit(lambda words: words[:, None] << (jnp.arange(40) - 4).astype(dtype))(words)
    want = np.where((by >= 4) & (by < 36), WORDS.astype(np.uint64)[:, None] << (by - 4) % 64, 0)
    np.testing.assert_array_equal(left, want.astype(np.uint32).astype(dtype))


def test_places_of_32_bits_are_compared_there():
    """Whether a place that the data give is inside is asked of twice as many at once as of 64 bits."""
    x = np.arange(5 * 300, dtype="f4").reshape(5, 300)
    places = np.random.default_rng(0).integers(-700, 700, (5, 80)).astype("i4")
    places[0, :6] = -(1 << 31), (1 << 31) - 1, -301, -300, 299, 300

    def f(x, places):
        return jnp.take_along_axis(x, places, 1)

    text = jax.jit(f).lower(x, places).as_text("nests")
    assert "299:i32)" in text and "299)" not in text
    wide = places.astype("i8")
    wide = np.where(wide < 0, wide + 300, wide)
    inside = (wide >= 0) & (wide < 300)
    want = np.where(inside, np.take_along_axis(x, np.where(inside, wide, 0), 1), np.nan)
    np.testing.assert_array_equal(jax.jit(f)(x, places), want)
