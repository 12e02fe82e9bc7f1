"""Window functions."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import assert_same, check, check_gradient

import pullback
import pullback.numpy as jnp
from pullback.errors import ConcretizationTypeError

NAMES = ["bartlett", "blackman", "hamming", "hanning"]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 17])
@pytest.mark.parametrize("name", NAMES)
def test_windows(name, m, x64):
    with pullback.enable_x64(x64):
        got = getattr(jnp, name)(m)
        assert got.dtype == (jnp.float64 if x64 else jnp.float32)
        np.testing.assert_allclose(got, getattr(np, name)(m), rtol=1e-12 if x64 else 1e-5, atol=1e-15 if x64 else 1e-6)


@pytest.mark.parametrize("m", [0, 1, 2, 5, 12])
@pytest.mark.parametrize("beta", [0.0, 3.0, 8.6, 14.0])
def test_kaiser(m, beta):
    assert_same(jnp.kaiser(m, beta), np.kaiser(m, beta))
    check(lambda b: jnp.kaiser(m, b), lambda b: np.kaiser(m, b), np.float32(beta))


@pytest.mark.parametrize("m", [jnp.float16(5.5), np.float32(5.5), jnp.bfloat16(5), jnp.uint8(5), np.array(5), "5"])
def test_points_of_other_types(m):
    """Whatever int() takes."""
    np.testing.assert_array_equal(jnp.blackman(m), jnp.blackman(5))
    np.testing.assert_array_equal(jnp.kaiser(m, 3.0), jnp.kaiser(5, 3.0))


def test_gradient_of_kaiser():
    check_gradient(lambda beta: jnp.kaiser(5, beta), np.asarray(3.0))


@pytest.mark.parametrize("name", NAMES)
def test_mistakes(name):
    window = getattr(jnp, name)
    with pytest.raises(TypeError, match="nonnegative"):
        window(-1)
    assert_same(window(4.7), getattr(np, name)(4))  # as in JAX
    with pytest.raises(ConcretizationTypeError):
        pullback.jit(window)(3)
