"""Integrals of elementary functions against mpmath, their derivatives against differences, their ends."""

import mpmath
import numpy as np
import pytest
import scipy.special

import pullback as jax
import pullback.numpy as jnp
from pullback.scipy import special, stats
from pullback.util import config

mpmath.mp.dps = 50


def fresnel(function, x):
    """mpmath's function; far out, where its series need as many digits as x^2 has, its first terms at infinity."""
    if abs(x) < 50:
        return function(x)
    with mpmath.workdps(100):
        turn = mpmath.pi / 2 * mpmath.fmod(x * x, 4)
        # The next terms are (3 / (pi x^2)^2) and (15 / (pi x^2)^2) times these.
        f, g = 1 / (mpmath.pi * x), 1 / (mpmath.pi**2 * x**3)
        first, second = 1 - 3 / (mpmath.pi * x * x) ** 2, 1 - 15 / (mpmath.pi * x * x) ** 2
        half = mpmath.sign(x) / 2
        if function is mpmath.fresnels:
            return half - first * f * mpmath.cos(turn) - second * g * mpmath.sin(turn)
        return half + first * f * mpmath.sin(turn) - second * g * mpmath.cos(turn)


# name -> (what it is, decimal exponents of the points, units in the last place allowed)
FUNCTIONS = {
    "exp1": (mpmath.e1, (-12, 1.9), 4),
    "expi": (mpmath.ei, (-12, 1.9), 4),
    "dawsn": (lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), (-9, 4), 3),
    "spence": (lambda x: mpmath.re(mpmath.polylog(2, 1 - x)), (-12, 12), 4),
    "si": (mpmath.si, (-8, 2), 3),
    "ci": (mpmath.ci, (-8, 2), 4),
    "fresnel_s": (lambda x: fresnel(mpmath.fresnels, x), (-4, 10), 4),
    "fresnel_c": (lambda x: fresnel(mpmath.fresnelc, x), (-4, 10), 4),
}
PARTS = {"si": ("sici", 0), "ci": ("sici", 1), "fresnel_s": ("fresnel", 0), "fresnel_c": ("fresnel", 1)}


def function(name):
    if name in PARTS:
        whole, part = PARTS[name]
        return lambda x: getattr(special, whole)(x)[part]
    return getattr(special, name)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, bits):
    exact, (low, high), units = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    seams = [0.3725, 0.37250741, 0.5, 0.6165, 0.61650549, 3.384, 3.38418042, 1, 1.5, 1.75, 2, 3, 3.9, 3.99, 4, 6, 8]
    x = np.concatenate([10 ** rng.uniform(low, high, 60), rng.uniform(0.01, 10, 60), seams]).astype(f"f{bits // 8}")
    if name in ("expi", "dawsn", "si", "fresnel_s", "fresnel_c"):
        x = np.concatenate([x, -x])
    expected = np.array([float(exact(mpmath.mpf(float(v)))) for v in x])
    for f in (function(name), jax.jit(function(name))):
        error = np.abs(np.asarray(f(x), np.float64) - expected)
        # Far out the zeros of Ci follow each other; it is f(x) sin(x) - g(x) cos(x), and f(x) about 1/x.
        scale = np.where((name == "ci") & (x > 4), 1 / np.maximum(np.abs(x), 1), 0)
        unit = np.finfo(x.dtype).eps * np.maximum(np.abs(expected), scale)
        assert (error <= units * unit).all(), x[np.argmax(error / unit)]


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 40])
def test_expn(n, bits):
    x = np.array([1e-6, 0.1, 0.7, 1, 1.3, 5, 30, 80], f"f{bits // 8}")
    expected = [float(mpmath.expint(n, mpmath.mpf(float(v)))) for v in x]
    np.testing.assert_allclose(special.expn(n, x), expected, rtol=3e-6 if bits == 32 else 3e-14)
    if n > 0:
        slopes = jax.vmap(jax.grad(special.expn, 1), (None, 0))(float(n), x)
        np.testing.assert_allclose(slopes, -special.expn(n - 1, x), rtol=1e-5)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name):
    with config.enable_x64(True):
        f = function(name)
        x = np.array([0.2, 0.45, 0.9, 1.2, 2.5, 3.7, 4.4, 7.5, 9.0])
        h = 1e-4
        differences = (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)
        forwards = jax.jvp(f, (x,), (np.ones_like(x),))[1]
        np.testing.assert_allclose(forwards, differences, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(x), forwards, rtol=1e-12)
        second = jax.vmap(jax.grad(jax.grad(f)))(x)
        slopes = jax.vmap(jax.grad(f))
        np.testing.assert_allclose(second, (slopes(x + h) - slopes(x - h)) / (2 * h), rtol=1e-4, atol=2e-6)


def test_slopes_where_formulas_cancel():
    with config.enable_x64(True):
        assert float(jax.grad(special.spence)(1.0)) == -1
        assert float(jax.grad(lambda x: special.sici(x)[0])(0.0)) == 1
        far = np.array([3.1, 5000.3, 1e9, 1e160, -1e300])
        squares = [float(mpmath.fmod(mpmath.mpf(float(v)) ** 2, 4)) for v in far]
        for part, wave in ((0, np.sin), (1, np.cos)):
            slopes = jax.vmap(jax.grad(lambda x, part=part: special.fresnel(x)[part]))(far)
            np.testing.assert_allclose(slopes, wave(np.pi / 2 * np.array(squares)), rtol=1e-9)
        x = 1e4
        np.testing.assert_allclose(jax.grad(special.dawsn)(x), -1 / (2 * x * x) - 3 / (4 * x**4), rtol=1e-12)


def test_ends_and_types():
    x = np.array([-np.inf, -3, -0.0, 0, 1, np.inf, np.nan], np.float32)
    for name in ("exp1", "expi", "dawsn"):
        np.testing.assert_allclose(getattr(special, name)(x), getattr(scipy.special, name)(x), rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(np.asarray(special.spence(x))[[0, 1, -2, -1]], [np.nan, np.nan, -np.inf, np.nan])
    for name in ("sici", "fresnel"):
        np.testing.assert_allclose(getattr(special, name)(x), getattr(scipy.special, name)(x), rtol=1e-6, err_msg=name)
    np.testing.assert_array_equal(
        special.expn(np.array([0, 1, 2, 3, -1, 1.5]), 0.0), [np.inf, np.inf, 1, 0.5, np.nan, np.nan]
    )
    assert special.expi(jnp.bfloat16(1)).dtype == jnp.bfloat16 and special.exp1(1).dtype == np.float32
    assert special.expn(2, jnp.bfloat16(1)).dtype == jnp.bfloat16
    assert special.sici(jnp.zeros((0, 3)))[1].shape == (0, 3)
    with pytest.raises(ValueError, match="complex"):
        special.expi(1j)
    with pytest.raises(ValueError, match="complex"):
        special.expn(1, 1j)


@pytest.mark.parametrize("options", [{}, {"bw_method": "silverman"}, {"bw_method": 0.3}, {"weights": np.arange(1, 21)}])
@pytest.mark.parametrize("d", [1, 2])
def test_gaussian_kde(d, options):
    points = np.random.default_rng(0).normal(size=(d, 20))
    with config.enable_x64(True):
        ours, theirs = stats.gaussian_kde(points, **options), scipy.stats.gaussian_kde(points, **options)
        at = points[:, :5] + 0.1
        np.testing.assert_allclose(ours(at), theirs(at), rtol=1e-10)
        np.testing.assert_allclose(ours.logpdf(at), theirs.logpdf(at), rtol=1e-10)
        np.testing.assert_allclose(ours.integrate_kde(ours), theirs.integrate_kde(theirs), rtol=1e-10)
        mean, cov = np.zeros(d), np.eye(d)
        np.testing.assert_allclose(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), rtol=1e-10)
        if d == 1:
            np.testing.assert_allclose(ours.integrate_box_1d(-1, 1), theirs.integrate_box_1d(-1, 1), rtol=1e-10)
        drawn = ours.resample(jax.random.key(0), (5000,))
        spread = theirs.covariance + np.cov(points, aweights=theirs.weights, bias=True)
        np.testing.assert_allclose(np.cov(drawn), spread, atol=0.15)
        slope = jax.jit(jax.grad(lambda k, x: k.logpdf(x).sum(), argnums=1))(ours, at)
        assert slope.shape == at.shape
        with pytest.raises(ValueError, match="dimension"):
            ours(np.zeros((3, 4)))


def test_gaussian_kde_draws_the_numbers_of_jax():
    points = np.random.default_rng(0).normal(size=(1, 20)).astype("f")
    drawn = stats.gaussian_kde(points, bw_method=0.3).resample(jax.random.key(0), (3,))
    np.testing.assert_allclose(drawn, [[-0.53476441, -1.07739162, -0.67843658]], rtol=1e-5)
