"""Functions at the ends of their domains, eagerly and compiled, against mpmath: tails, zeros, infinite parts."""

import mpmath
import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

WAYS = (lambda f: f, pullback.jit)


pytestmark = pytest.mark.usefixtures("x64")


def units(got, true):
    """The largest error in units in the last place, of real parts as of complex numbers in their larger part."""
    info = np.finfo(np.asarray(got).dtype)
    worst = 0.0
    for g, t in zip(np.asarray(got), true):
        size = max(abs(t.real), abs(t.imag))
        exponent = max(int(mpmath.floor(mpmath.log(size, 2))), info.minexp)
        error = max(abs(mpmath.mpf(float(g.real)) - t.real), abs(mpmath.mpf(float(g.imag)) - t.imag))
        worst = max(worst, float(error / mpmath.mpf(2) ** exponent / float(info.eps)))
    return worst


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_error_functions_err_by_two_units_at_most_down_to_their_tails(dtype):
    rng = np.random.default_rng(0)
    end = 9.1 if dtype == np.float32 else 26.4
    x = np.concatenate([rng.uniform(-6, end, 700), rng.uniform(0.45, 0.65, 200), 10.0 ** rng.uniform(-12, 0, 100)])
    x = x.astype(dtype)
    with mpmath.workprec(120):
        for name in ("erf", "erfc"):
            true = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
            for way in WAYS:
                assert units(way(getattr(lax, name))(x), true) <= 2, name


def test_log_gamma_has_no_lost_digits_around_its_zeros():
    x = np.concatenate([1 + np.linspace(-0.09, 0.09, 30), 2 + np.linspace(-0.19, 0.19, 30)])
    with mpmath.workprec(120):
        true = [mpmath.loggamma(mpmath.mpf(v)) for v in x]
        for way in WAYS:
            assert units(way(lax.lgamma)(x), true) <= 20  # SciPy's errs by thousands


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_exponentials_and_logarithms_hold_where_they_almost_overflow(dtype):
    large = 90.0 if dtype == np.complex64 else 710.0
    parts = [0.0, 1e-20, 0.5, -1.0, 3.5, -30.0, large - 2, -100.0, 1e4, 2e8]
    z = np.array([complex(a, b) for a in parts for b in parts if abs(a) < large], dtype)
    wide = [mpmath.mpc(complex(v)) for v in z]
    with mpmath.workprec(400):
        functions = {
            "exp2": [mpmath.exp(v * mpmath.log(2)) for v in wide], "expm1": [mpmath.exp(v) - 1 for v in wide],
        }  # fmt: skip
        for name, true in functions.items():
            kept = [k for k, t in enumerate(true) if t != 0]
            for way in WAYS:
                assert units(np.asarray(way(getattr(lax, name))(z))[kept], [true[k] for k in kept]) <= 4, name


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_infinite_parts_of_complex_numbers_leave_the_other_as_it_is(dtype):
    inf, nan = np.inf, np.nan
    made = lambda *v: np.array(v, dtype)
    for way in WAYS:
        found = way(lax.expm1)(made(inf, complex(inf, -0.0), complex(-inf, 2), complex(-inf, inf), complex(800, 0)))
        np.testing.assert_array_equal(found.real, [inf, inf, -1, -1, inf])
        np.testing.assert_array_equal(np.signbit(found.imag[:2]), [False, True])
        np.testing.assert_array_equal(found.imag, [0, -0.0, 0, 0, 0])
        for log, scale in ((jnp.log10, np.log(10)), (jnp.log2, np.log(2))):
            found = way(log)(made(complex(inf, 1), complex(0, inf), complex(-inf, 1)))
            np.testing.assert_array_equal(found.real, [inf] * 3)
            np.testing.assert_allclose(found.imag, np.array([0, np.pi / 2, np.pi]) / scale, rtol=1e-6)
        ones = way(jnp.power)(made(1, 1, 1), made(complex(nan, nan), complex(inf, 0), complex(0, nan)))
        np.testing.assert_array_equal(ones, [1, 1, 1])


@pytest.mark.parametrize("dtype, near", [(np.complex64, 1.4e19), (np.complex128, 1e154)])
def test_squares_of_complex_numbers_near_overflow(dtype, near):
    """x^2 - y^2 as (x - y)(x + y): the squares overflow, and of parts of almost one size all digits cancel."""
    unit = np.array([1 + 1j, 1 - 1j, 0.9 + 0.8j], dtype)
    z = np.concatenate(
        [unit * dtype(near), 3 * dtype(near) * unit[:2], np.array([1 + (1 + 1e-6) * 1j, 0, np.inf + 1j], dtype)]
    )
    re, im = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    with pullback.enable_x64(True), np.errstate(all="ignore"):
        real, imag = ((re - im) * (re + im)).astype(z.real.dtype), (2 * re * im).astype(z.real.dtype)
        for square in (lax.square, jnp.square, lambda x: x**2, lambda x: lax.integer_pow(x, 2)):
            for way in (lambda f: f, pullback.jit, pullback.vmap):
                found = way(square)(jnp.asarray(z))
                np.testing.assert_allclose(found.real, real, rtol=4 * np.finfo(dtype).eps)
                np.testing.assert_allclose(found.imag, imag, rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_logistic_far_to_the_left_is_0_eagerly_as_compiled(dtype):
    parts = [-np.inf, -1e30, -800.0, -90.0, -1.0, 0.0, 2.0, 90.0, 1e30, np.inf]
    with pullback.enable_x64(True):
        x = np.array([complex(a, b) for a in parts for b in (-2.0, 0.0, 0.5)], dtype)
        eager, compiled = np.asarray(lax.logistic(x)), np.asarray(pullback.jit(lax.logistic)(x))
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(eager, compiled, 8 * np.finfo(dtype).eps, tiny)
    assert np.isfinite(eager).all() and (abs(eager[:6]) == 0).all() and (eager[-6:] == 1).all()


def test_slopes_of_acosh_left_of_its_domain_are_not_nan():
    slope = pullback.grad(lambda x: jnp.where(x > 1, lax.acosh(x), 0.0).sum())
    np.testing.assert_allclose(slope(jnp.array([-jnp.inf, -2.0, 2.0, 30.0])), [0, 0, 3**-0.5, 899**-0.5], rtol=1e-12)
    assert slope(jnp.array([1e300])) == 1e-300 and jnp.isnan(pullback.grad(lax.acosh)(0.5))
    z = jnp.array([-1.5 - 1j, -1.5 + 2j, 0.5 + 1j])
    step = 1e-6
    told = pullback.vmap(pullback.grad(lax.acosh, holomorphic=True))(z)
    np.testing.assert_allclose(told, (lax.acosh(z + step) - lax.acosh(z - step)) / (2 * step), rtol=1e-8)
