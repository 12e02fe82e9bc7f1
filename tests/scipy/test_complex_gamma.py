"""Functions of the gamma family, and others that lost digits, against SciPy in double precision."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special as reference

import pullback
import pullback.numpy as jnp
from pullback.scipy import special

RNG = np.random.default_rng(0)


def points(scale, dtype):
    parts = [RNG.normal(size=(2, 300)) * scale, 1 + 0.1 * RNG.normal(size=(2, 100)) * [[1], [0]]]
    z = np.concatenate([p[0] + 1j * p[1] for p in parts] + [1 + 0.2 * RNG.normal(size=50) * 1j, [2 + 0.1j, 5, 1.5]])
    return z.astype(dtype)


@pytest.mark.parametrize("dtype, tolerance", [("complex64", 3e-5), ("complex128", 1e-12)])
@pytest.mark.parametrize("scale", [1, 5, 30])
def test_complex_arguments(scale, dtype, tolerance):
    with pullback.enable_x64(dtype == "complex128"):
        z = points(scale, dtype)
        wide = z.astype(np.complex128)
        size = 1 + np.abs(reference.loggamma(wide))
        assert np.all(np.abs(special.loggamma(z) - reference.loggamma(wide)) <= tolerance * size)
        true = reference.gamma(wide)
        usable = (np.abs(true) > 1e-30) & (np.abs(true) < 1e30)
        got = np.asarray(special.gamma(z))
        assert got.dtype == dtype
        assert np.all(np.abs(got - true)[usable] <= 40 * tolerance * np.abs(true)[usable])
        near = z[np.abs(z) < 6]
        np.testing.assert_allclose(special.erfcx(near), reference.erfcx(near.astype(np.complex128)), rtol=tolerance)


def test_the_logarithm_is_continuous_off_its_cut_and_holomorphic():
    y = np.linspace(0.05, 30, 2000)
    for x in (-7.3, -2.5, -0.5, 0.3, 4):
        for sign in (1, -1):
            values = np.asarray(special.loggamma((x + sign * 1j * y).astype(np.complex64)))
            assert np.all(np.abs(np.diff(values.imag)) < 0.3)
    slope = pullback.grad(special.loggamma, holomorphic=True)(np.complex64(2.5 + 1j))
    np.testing.assert_allclose(slope, reference.digamma(2.5 + 1j), rtol=1e-4)
    assert np.isnan(special.loggamma(-1.5)) and special.loggamma(np.float32(3)).dtype == np.float32


def relative(got, true):
    return np.max(np.abs(np.asarray(got).astype(np.float64) - true) / np.abs(true)) * 2**24


def test_exponentials_of_large_logarithms_keep_their_digits():
    """In float32 exp(lgamma(x)) loses as many digits as the logarithm has before its point."""
    x = RNG.uniform(0.1, 33, 3000).astype(np.float32)
    m = RNG.integers(0, 6, 3000).astype(np.float32)
    wide, more = x.astype(np.float64), m.astype(np.float64)
    for function in (lambda f: f, pullback.jit):
        assert relative(function(special.gamma)(x), reference.gamma(wide)) < 3
        assert relative(function(special.factorial)(x), reference.gamma(wide + 1)) < 3
        assert relative(function(special.poch)(x, m), reference.poch(wide, more)) < 8
        assert relative(function(special.beta)(x, 2 * x), reference.beta(wide, 2 * wide)) < 8
        assert relative(function(special.comb)(x + 6, m), reference.binom((x + np.float32(6)).astype(float), more)) < 8
    assert special.factorial(1.5).weak_type and special.gamma(np.float16(3)).dtype == np.float16


def test_counts_of_choices_are_for_real_numbers():
    with pullback.enable_x64(True):
        for dtype in ("complex64", "complex128"):
            for refused in (lambda x: special.comb(x, 2), special.factorial):
                with pytest.raises((TypeError, ValueError), match=r"does not accept dtype|complex"):
                    refused(np.ones(2, dtype))


def test_tails_and_zeros():
    x = np.linspace(-12.5, 12, 4001).astype(np.float32)
    wide = x.astype(np.float64)
    assert relative(special.ndtr(x), reference.ndtr(wide)) < 12
    assert relative(special.log_ndtr(x), reference.log_ndtr(wide)) < 12
    near = (0.5 + np.linspace(-0.4, 0.4, 2000)).astype(np.float32)
    assert relative(special.logit(near), reference.logit(near.astype(np.float64))) < 5
    np.testing.assert_array_equal(special.ndtr(np.array([-np.inf, np.inf, np.nan])), [0, 1, np.nan])
    np.testing.assert_array_equal(special.logit(np.array([0, 1, 0.5, 2], np.float32)), [-np.inf, np.inf, 0, np.nan])
    far = np.array([-1e20, -11623.178, -20, -3, -0.5, 3, 10], np.float32)
    middle = far[2:].astype(np.float64)
    density = np.exp(-(middle**2) / 2 - reference.log_ndtr(middle)) / np.sqrt(2 * np.pi)
    exact = np.concatenate([-far[:2].astype(np.float64), density])
    np.testing.assert_allclose(pullback.vmap(pullback.grad(special.log_ndtr))(far), exact, rtol=1e-5)
    slope = pullback.vmap(pullback.grad(special.ndtr))(x)
    np.testing.assert_allclose(slope, np.exp(-wide * wide / 2) / np.sqrt(2 * np.pi), rtol=2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_normal_distribution_is_right_far_below(dtype):
    """What the rounding of x / sqrt 2 loses counts x^2 there: 850 units in the last place at -37."""
    with pullback.enable_x64(dtype == np.float64), mp.workprec(120):
        x = np.linspace(-12.5 if dtype == np.float32 else -37, 4, 401).astype(dtype)
        got = np.asarray(pullback.jit(special.ndtr)(x))
        exact = [mp.erfc(-mp.mpf(float(v)) / mp.sqrt(2)) / 2 for v in x]
        unit = np.spacing(np.array([float(v) for v in exact], dtype))
        worst = max(abs(mp.mpf(float(y)) - v) / mp.mpf(float(u)) for y, v, u in zip(got, exact, unit))
    assert got.dtype == dtype and worst < 2.5


def test_bessel_functions_overflow_where_they_do():
    x = np.array([89.0, 90.5, 91.5, -91.0, 0, 3], np.float32)
    wide = x.astype(np.float64)
    for function, true in ((special.i0, reference.i0), (special.i1, reference.i1), (jnp.i0, reference.i0)):
        np.testing.assert_allclose(function(x), true(wide), rtol=2e-6)
    assert np.isinf(special.i0(np.float32(95)))


@pytest.mark.parametrize("name", ["gamma", "beta", "poch", "comb", "factorial"])
def test_products_of_gamma_functions_have_derivatives_of_derivatives(name):
    """Their values are computed in float64, which nothing that differentiates them may meet."""
    x = jnp.asarray([0.5, 1.5], "f4")
    f = {
        "gamma": special.gamma,
        "factorial": special.factorial,
        "beta": lambda x: special.beta(x, 2.5),
        "poch": lambda x: special.poch(x, 2.5),
        "comb": lambda x: special.comb(x + 2, 1.5),
    }[name]
    second = pullback.grad(pullback.grad(f))
    with pullback.enable_x64(True):
        wanted = [float(second(float(v))) for v in (0.5, 1.5)]
    np.testing.assert_allclose(pullback.vmap(second)(x), wanted, rtol=2e-5)
    np.testing.assert_allclose(pullback.jit(pullback.vmap(second))(x), wanted, rtol=2e-5)
    np.testing.assert_allclose([second(x[0]), second(x[1])], wanted, rtol=2e-5)
    np.testing.assert_allclose(np.diag(pullback.hessian(lambda x: f(x).sum())(x)), wanted, rtol=2e-5)


@pytest.mark.parametrize("dtype, rtol", [(np.complex64, 4e-7), (np.complex128, 4e-16)])
def test_far_from_the_real_axis(dtype, rtol):
    """There z (z + 1) ... (z + 7) overflowed, so that log-gamma and gamma were NaN."""
    top = 30.0 if dtype == np.complex64 else 300.0
    size = 10.0 ** np.array([1.0, 1.37, 1.39, 2, 5, 9, top])
    with pullback.enable_x64(True), mp.workdps(40):
        for x in (0.5, 1.25, 7.9, -5.5):
            z = (x + 1j * size * np.array([1, -1, 1, -1, 1, -1, 1])).astype(dtype)
            want = np.array([complex(mp.loggamma(mp.mpc(complex(v)))) for v in z])
            for function in (special.loggamma, pullback.jit(special.loggamma)):
                found = np.asarray(function(z)).astype(complex)
                assert np.all(abs(found - want) <= 4 * rtol * abs(want))
            assert np.all(np.asarray(special.gamma(z))[4:] == 0)


def test_poles_are_nan():
    z = np.array([0, -1, -7, -0.0], np.complex64)
    assert np.isnan(special.loggamma(z).real).all() and np.isnan(special.loggamma(z).imag).all()
    assert np.isfinite(special.loggamma(np.array([-1.5, -1 + 1e-3j], np.complex64))).all()
