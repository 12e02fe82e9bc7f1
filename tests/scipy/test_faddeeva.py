"""Faddeeva's function and Owen's T against mpmath, their derivatives, their ends."""

import mpmath
import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.scipy import special
from pullback.util import config

mpmath.mp.dps = 40
RNG = np.random.default_rng(0)


def faddeeva(z):
    z = mpmath.mpc(complex(z))
    return complex(mpmath.exp(-z * z) * mpmath.erfc(-1j * z))


def owen(h, a):
    h, a = mpmath.mpf(float(h)), mpmath.mpf(float(a))
    inner = mpmath.quad(lambda x: mpmath.exp(-h * h * x * x / 2) / (1 + x * x), mpmath.linspace(0, min(a, 20 / h), 6))
    return float(inner * mpmath.exp(-h * h / 2) / (2 * mpmath.pi))


@pytest.mark.parametrize("sign, top, units", [(1, 20, 5), (-1, 2, 10)])
def test_wofz(bits, sign, top, units):
    x = np.concatenate([10 ** RNG.uniform(-6, 1.3, 60), RNG.uniform(0, 8, 60), [0, 0, 0.4, 6]])
    y = np.concatenate([10 ** RNG.uniform(-6, np.log10(top), 60), RNG.uniform(0, min(top, 8), 60), [0, 1, 0, 0]])
    z = (x + sign * 1j * y).astype(f"c{bits // 4}")
    z = np.concatenate([z, -z.conj()])
    expected = np.array([faddeeva(v) for v in z])
    for f in (special.wofz, jax.jit(special.wofz)):
        error = abs(np.asarray(f(z)).astype(complex) - expected) / abs(expected) / np.finfo(z.dtype).eps
        assert error.max() <= units, z[np.argmax(error)]
    x = z.real[z.imag == 0]
    np.testing.assert_allclose(special.wofz(x).real, np.exp(-(x.astype(float) ** 2)), rtol=20 * np.finfo(x.dtype).eps)


def test_wofz_ends():
    with config.enable_x64(True):
        z = np.array([1e30 + 1j, 1e200j, 3e9 - 2e9j])
        np.testing.assert_allclose(special.wofz(z), 1j / np.sqrt(np.pi) / z, rtol=1e-14)
        z = 0.7 + 0.4j
        slope = jax.grad(lambda z: special.wofz(z), holomorphic=True)(z)
        expected = -2 * z * faddeeva(z) + 2j / np.sqrt(np.pi)
        np.testing.assert_allclose(slope, expected, rtol=1e-13)
    found = special.wofz(np.array([np.nan, np.inf, 0], np.float32))
    assert found.dtype == np.complex64 and np.isnan(found[0]) and found[1] == 0 and found[2] == 1


def test_owens_t(bits):
    h = np.concatenate([10 ** RNG.uniform(-3, 0.5, 30), RNG.uniform(0, 12, 30), [8.5, 10.7]]).astype(f"f{bits // 8}")
    a = np.concatenate([10 ** RNG.uniform(-3, 3, 59), [1, 0.95, 0.86]]).astype(h.dtype)
    expected = np.array([owen(x, y) for x, y in zip(h, a, strict=True)])
    for f in (special.owens_t, jax.jit(special.owens_t)):
        error = abs(np.asarray(f(h, a), float) - expected) / expected / np.finfo(h.dtype).eps
        assert error.max() <= 6, (h[np.argmax(error)], a[np.argmax(error)])
    np.testing.assert_array_equal(special.owens_t(-h, -a), -special.owens_t(h, a))


def test_owens_t_ends_and_derivatives():
    inf, nan = np.inf, np.nan
    found = special.owens_t(np.array([0, 0, 0, inf, nan, 1, 1e30], "f"), np.array([1, inf, 0, 1, 1, nan, -2], "f"))
    np.testing.assert_allclose(found, [1 / 8, 1 / 4, 0, 0, nan, nan, 0], rtol=1e-6)
    with pytest.raises(ValueError, match="complex"):
        special.owens_t(1j, 1)
    with config.enable_x64(True):
        for h, a in ((0.3, 0.4), (1.2, 2.5), (-0.7, -1.5)):
            along_h, along_a = jax.grad(special.owens_t, (0, 1))(h, a)
            d = 1e-5
            differences = [
                (special.owens_t(h + d, a) - special.owens_t(h - d, a)) / (2 * d),
                (special.owens_t(h, a + d) - special.owens_t(h, a - d)) / (2 * d),
            ]
            np.testing.assert_allclose([along_h, along_a], differences, rtol=1e-6)


def test_slopes_of_wofz_far_out(bits):
    """2 i / sqrt(pi) - 2 z w cancels there: the derivative was rounding errors of 1."""
    kind = f"c{bits // 4}"
    z = np.array([837, -14172.66, 15.9, 16.1, 17 + 3j, -40 + 1e-3j, 25j, 1e8 + 2e7j, 14 - 16j, -30 - 2j, -2e10], kind)
    exact = []
    for v in z:
        v = mpmath.mpc(complex(v))
        with mpmath.workdps(60):
            w = mpmath.exp(-v * v) * mpmath.erfc(-1j * v) if abs(v) < 1e3 else None
            far = -1j / (mpmath.sqrt(mpmath.pi) * v * v) * (1 + 3 / (2 * v * v) + 15 / (4 * v**4))
            exact.append(complex(far if w is None else 2j / mpmath.sqrt(mpmath.pi) - 2 * v * w))
    _, slope = jax.jvp(special.wofz, (z,), (np.ones_like(z),))
    error = abs(np.asarray(slope).astype(complex) - exact) / np.abs(exact) / np.finfo(z.dtype).eps
    assert np.all(error <= np.where(abs(z) < 16, 2000, np.where(z.imag < 0, 1000, 10))), error
    real = z.real[z.imag == 0]
    assert np.all(np.isfinite(jax.vmap(jax.grad(lambda x: jnp.imag(special.wofz(x))))(real)))
    ends = jax.jvp(special.wofz, (np.array([np.inf, -np.inf, 0, np.nan], kind),), (np.ones(4, kind),))[1]
    assert ends[0] == 0 and ends[1] == 0 and abs(ends[2] - 2j / np.sqrt(np.pi)) < 1e-6 and np.isnan(ends[3])


def test_owens_t_of_narrow_types_is_of_float32():
    for dtype in ("float16", jnp.bfloat16):
        x = jnp.asarray([0.5, 1.0], dtype)
        np.testing.assert_array_equal(special.owens_t(x, x), special.owens_t(x.astype("float32"), x.astype("float32")))
