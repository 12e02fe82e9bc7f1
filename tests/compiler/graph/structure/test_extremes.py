"""Extremes of 16-bit floats by whole numbers in their order."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

DTYPES = ["bfloat16", "float16"]


def patterns(dtype):
    return jax.lax.bitcast_convert_type(jnp.arange(1 << 16).astype(jnp.uint16), jnp.dtype(dtype))


def wide(x):
    return np.asarray(x).astype(np.float32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("axis", [0, 1, (0, 1)])
def test_every_bit_pattern(dtype, name, axis):
    found = jax.jit(lambda x: getattr(jnp, name)(x, axis=axis))
    every, rng = patterns(dtype), np.random.default_rng(0)
    numbers = np.flatnonzero(~np.isnan(wide(every)))
    for places in (rng.integers(0, 1 << 16, (33, 40)), numbers[rng.integers(0, len(numbers), (33, 40))]):
        x = every[places]
        np.testing.assert_array_equal(wide(found(x)), getattr(np, name)(wide(x), axis=axis))
    text = found.lower(x).as_text("fused") + found.lower(x).as_text("loops")
    assert "carry (acc: u16" in text


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["max", "min"])
def test_what_is_no_number_of_either_sign_and_infinities(dtype, name):
    found = jax.jit(getattr(jnp, name))
    for value in (np.inf, -np.inf):
        assert wide(found(jnp.full(5, value, dtype))) == value
    for value in (np.nan, -np.nan):
        for place in (0, 3):
            assert np.isnan(wide(found(jnp.arange(5).astype(dtype).at[place].set(value))))


def test_what_is_computed_stays_in_wider_registers():
    x = jnp.ones((40, 30), jnp.bfloat16)
    assert "u16" not in jax.jit(lambda x: jnp.max(jnp.sin(x) + 1, 0)).lower(x).as_text("loops").split("carry", 1)[1]


def test_other_reductions_of_the_same_share_their_loop():
    x = jnp.ones((40, 30), jnp.bfloat16)
    assert "u16" not in jax.jit(lambda x: (x.max(1), x.argmax(1))).lower(x).as_text("loops")
    assert "u16" in jax.jit(lambda x: (x.max(1), x.min(1))).lower(x).as_text("loops")


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients_and_softmax(dtype):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((6, 9)), dtype)
    slope = jax.jit(jax.grad(lambda x: x.max(1).astype("f4").sum()))(x)
    np.testing.assert_array_equal(wide(slope), wide(x) == wide(x).max(1, keepdims=True))
    np.testing.assert_allclose(wide(jax.jit(jax.nn.softmax)(x)).sum(1), 1, rtol=2e-2)
