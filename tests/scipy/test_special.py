"""Special functions against SciPy, in float32 and float64, with derivatives against differences."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.scipy import special
from pullback.util import config

X = np.array([-6.5, -2.3, -1.0, -0.4, 0.0, 0.3, 1.0, 1.7, 4.2, 9.0])
P = np.array([0.0, 1e-30, 1e-8, 0.02, 0.3, 0.5, 0.7, 0.999, 1.0])
POSITIVE = np.array([0.05, 0.4, 1.0, 2.5, 7.0, 20.0])

UNARY = [
    ("gammaln", POSITIVE), ("gamma", X[X != 0]), ("gammasgn", np.array([-2.5, -1.5, 0.5, 3.0])), ("digamma", POSITIVE),
    ("erf", X), ("erfc", X), ("erfcx", X), ("erfinv", np.array([-0.9, -0.1, 0.0, 0.5, 0.99])), ("ndtr", X),
    ("log_ndtr", np.array([-30.0, -8.0, *X])), ("ndtri", P), ("entr", np.array([-1.0, 0.0, 0.5, 2.0])), ("expit", X),
    ("logit", P), ("i0", X), ("i0e", X), ("i1", X), ("i1e", X), ("factorial", np.array([-1.0, 0.0, 1.0, 4.5, 10.0])),
]  # fmt: skip
BINARY = [
    ("xlogy", [0, 0, 1, 2.5], [0, 3, 2, 0.5]), ("xlog1py", [0, 0, 1, 2.5], [-1, 3, 2, 0.5]),
    ("rel_entr", [0, 1, 2, -1, 1], [0, 2, 0.5, 1, 0]), ("kl_div", [0, 1, 2, -1, 1], [0, 2, 0.5, 1, 0]),
    ("beta", [0.5, 2, 30, 8], [0.5, 3, 2, 100]), ("betaln", [0.5, 2, 30, 8, 1e-3], [0.5, 3, 2, 1000, 1e4]),
    ("boxcox", [0.5, 2, 3, 4], [0, 1, -0.5, 2]), ("boxcox1p", [0.5, 2, 3, 4], [0, 1, -0.5, 2]),
    ("poch", [1.5, 2, 3.5, 4], [0, 2, 1.5, -2]), ("gammainc", [0.5, 2, 10, 3], [0.1, 2, 12, 0]),
    ("gammaincc", [0.5, 2, 10, 3], [0.1, 2, 12, 0]), ("zeta", [2.0, 3.5, 1.1], [1.0, 2.5, 3.0]),
    ("polygamma", [1, 2, 3], [0.5, 2.5, 10]),
]  # fmt: skip


def close(actual, expected, bits, message=""):
    tolerance = 2e-5 if bits == 32 else 2e-12
    np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol=tolerance, atol=tolerance / 10,
                               err_msg=message)  # fmt: skip


@pytest.mark.parametrize("name,points", UNARY)
def test_unary(name, points, bits):
    x = points.astype(f"f{bits // 8}")
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(x.astype(np.float64))
    if bits == 32:
        keep = np.abs(expected) < 1e37
        x, expected = x[keep | ~np.isfinite(expected)], expected[keep | ~np.isfinite(expected)]
    close(getattr(special, name)(x), expected, bits, name)
    close(jax.jit(getattr(special, name))(x), expected, bits, name)


@pytest.mark.parametrize("name,a,b", BINARY)
def test_binary(name, a, b, bits):
    a, b = np.array(a, "i4" if name == "polygamma" else f"f{bits // 8}"), np.array(b, f"f{bits // 8}")
    with np.errstate(all="ignore"):
        first = a if name == "polygamma" else a.astype(float)
        expected = getattr(scipy.special, name)(first, b.astype(float))
    close(getattr(special, name)(a, b), expected, bits, name)


def test_others(bits):
    kind = f"f{bits // 8}"
    close(special.betainc(*np.array([[0.5, 2, 3], [1.5, 2, 0.5], [0.1, 0.5, 0.99]], kind)),
          scipy.special.betainc(*np.array([[0.5, 2, 3], [1.5, 2, 0.5], [0.1, 0.5, 0.99]])), bits)  # fmt: skip
    close(special.multigammaln(np.array([3.5, 8], kind), 4),
          [scipy.special.multigammaln(3.5, 4), scipy.special.multigammaln(8, 4)], bits)  # fmt: skip
    n, k = np.array([5, 10, 3, 4], kind), np.array([2, 0, 5, -1], kind)
    close(special.comb(n, k), scipy.special.comb(n, k), bits)
    close(special.comb(n, k, repetition=True), [15.0, 1.0, 21.0, 0.0], bits)
    close(special.bernoulli(8), scipy.special.bernoulli(8), bits)
    close(special.logsumexp(np.array([1, 2, 3], kind)), scipy.special.logsumexp([1, 2, 3]), bits)
    close(special.softmax(np.array([[1, 2, 3]], kind), axis=0), [[1, 1, 1]], bits)


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "ndtri", "entr", "logit", "gammaln", "i0e", "i1e", "ndtr"])
def test_derivatives(name):
    with config.enable_x64(True):
        points = np.array([0.2, 0.45, 0.8]) if name in ("ndtri", "entr", "logit") else np.array([0.3, 1.7, 4.2])
        function = getattr(special, name)
        slope = jax.vmap(jax.grad(function))(points)
        h = 1e-5
        expected = (np.asarray(function(points + h)) - np.asarray(function(points - h))) / (2 * h)
        np.testing.assert_allclose(np.asarray(slope), expected, rtol=1e-7, atol=1e-8)


def test_derivatives_where_a_factor_is_zero():
    assert float(jax.grad(special.xlogy)(0.0, 2.0)) == pytest.approx(np.log(2), rel=1e-6)
    assert float(jax.grad(special.xlogy, argnums=1)(0.0, 2.0)) == 0
    assert float(jax.grad(special.xlog1py)(0.0, 1.0)) == pytest.approx(np.log(2), rel=1e-6)


def test_errors():
    with pytest.raises(NotImplementedError, match="exact=True"):
        special.factorial(3, exact=True)
    with pytest.raises(ValueError, match="non-negative"):
        special.bernoulli(-1)
    with pytest.raises(TypeError, match="series_order"):
        special.log_ndtr(jnp.ones(2), 1.5)


def test_the_logarithm_of_the_gamma_function_has_no_real_values_below_0():
    x = np.array([-0.5, -2.0, 0.0, 1.5, np.inf, np.nan], np.float32)
    np.testing.assert_allclose(special.loggamma(x), [np.nan, np.nan, np.nan, -0.1207822, np.inf, np.nan], rtol=1e-6)
    assert special.loggamma(2.0).weak_type and special.entr(2.0).weak_type and special.factorial(2.0).weak_type
    assert special.comb(5, 2).weak_type and special.rel_entr(2.0, 3).weak_type and special.kl_div(2, 3).weak_type
    assert not special.comb(5, np.float32(2)).weak_type


def test_shapes_that_do_not_fit_and_complex_arguments_are_refused():
    for name in ("rel_entr", "kl_div", "xlogy", "beta", "poch", "gammainc", "zeta", "boxcox"):
        with pytest.raises(TypeError, match="incompatible shapes"):
            getattr(special, name)(np.ones(3), np.ones(4))
        with pytest.raises(ValueError, match="Incompatible shapes"):
            getattr(special, name)(np.ones(3), np.ones((2, 4)))
    counts = {"rel_entr": 2, "kl_div": 2, "beta": 2, "poch": 2, "betainc": 3, "entr": 1, "gammasgn": 1}
    for name, count in counts.items():
        with pytest.raises(ValueError, match=f"{name} does not support complex"):
            getattr(special, name)(*[np.ones(2, np.complex64)] * count)


def test_incomplete_gamma_functions_in_limits():
    """Eager and compiled, where SciPy's are NaN or a series needs many terms."""
    nan, inf = np.nan, np.inf
    a = np.array([1e308, 1e308, inf, 3, 3, 0.5, 1e6, -1, 0, nan, 2])
    x = np.array([10, 1e30, inf, inf, 0, inf, 1e6, 0, 0, 0, nan])
    lower = [0, 0, 1, 1, 0, 1, 0.500132980760, nan, nan, nan, nan]
    slope = [0, 0, 0, 0, 0, 0, -3.989423136466252e-4, nan, nan, nan, nan]
    with jax.enable_x64(True):
        for f, wanted in (
            (lax.igamma, lower),
            (lax.igammac, 1 - np.array(lower)),
            (lax.igamma_grad_a, slope),
            (lax.random_gamma_grad, [..., ..., ..., ..., 0, ..., 1.0000001666666833, nan, nan, nan, nan]),
        ):
            known = [k for k, value in enumerate(wanted) if value is not ...]
            for got in (f(a, x), jax.jit(f)(a, x)):
                expected = np.array([wanted[k] for k in known], float)
                np.testing.assert_allclose(np.asarray(got)[known], expected, rtol=1e-9, err_msg=f.__name__)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_beta_of_a_large_and_a_negative_argument_does_not_cancel(dtype):
    mpmath = pytest.importorskip("mpmath")
    large = np.array([1971439946, 1e5, 37.5, 9, 1e9], dtype)
    negative = np.array([-1.9949346, -3.25, -0.5, -0.75, -0.125], dtype)
    want = [float(mpmath.beta(float(a), float(b))) for a, b in zip(large, negative)]
    with jax.enable_x64(True):
        for way in (lambda f: f, jax.jit):
            np.testing.assert_allclose(way(special.beta)(large, negative), want, rtol=64 * np.finfo(dtype).eps)
            np.testing.assert_allclose(
                way(special.betaln)(negative, large), np.log(np.abs(want)), rtol=8 * np.finfo(dtype).eps
            )


def test_polygamma_of_python_numbers_is_weakly_typed():
    for n, x, weak in [(0, 1, True), (1, 1.5, True), (jnp.arange(2), 1, False), (1, jnp.float32(2), False)]:
        assert special.polygamma(n, x).aval.weak_type is weak, (n, x)
    assert special.polygamma(jnp.arange(2), jnp.ones(2, "float16")).dtype == "float16"


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_tails_of_the_normal_distribution_are_right_to_few_units(kind):
    """Against mpmath, compiled and eager; erfcx erred by 50 units left of 0 in float32 and by 400 in float64."""
    deep = {"float32": 38, "float64": 300}[kind]
    p = np.concatenate([np.geomspace(10.0**-deep, 0.49, 40), 1 - np.geomspace(1e-6, 0.4, 20)]).astype(kind)
    x = np.concatenate([-np.geomspace(0.1, 9, 20), np.geomspace(1e-3, 1e6, 20)]).astype(kind)
    with config.enable_x64(True), mp.workdps(40):
        exact = {
            "ndtri": (p, [_normal_quantile(v) for v in p]),
            "erfcx": (x, [mp.exp(mp.mpf(float(v)) ** 2) * mp.erfc(mp.mpf(float(v))) for v in x]),
            "log_ndtr": (x, [mp.log1p(-mp.erfc(mp.mpf(float(v)) / mp.sqrt(2)) / 2) for v in x]),
        }
        for name, (points, wanted) in exact.items():
            function = getattr(special, name)
            for got in (function(points), jax.jit(function)(points)):
                assert got.dtype == kind
                for value, want in zip(np.asarray(got), wanted):
                    unit = np.spacing(np.abs(np.asarray(float(want), kind)))
                    assert abs(mp.mpf(float(value)) - want) <= 4 * float(unit), (name, value, want)


def _normal_quantile(p):
    p = mp.mpf(float(p))
    tail = min(p, 1 - p)
    x = -mp.sqrt(-2 * mp.log(tail))
    for _ in range(30):
        log_phi = mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
        x -= (log_phi - mp.log(tail)) * mp.sqrt(2 * mp.pi) * mp.exp(x * x / 2 + log_phi)
    return x if p < 0.5 else -x


def test_ends_of_the_normal_quantile():
    p = np.array([0, 1, -0.5, 1.5, np.nan, 0.5, 1e-45], np.float32)
    np.testing.assert_allclose(special.ndtri(p), [-np.inf, np.inf, np.nan, np.nan, np.nan, 0, -14.121427], rtol=1e-6)
    assert special.ndtri(jnp.float16(0.25)).dtype == jnp.float16
    np.testing.assert_array_equal(special.erfcx(np.array([np.inf, -np.inf, np.nan], "f4")), [0, np.inf, np.nan])
    np.testing.assert_array_equal(special.log_ndtr(np.array([np.inf, -np.inf, np.nan], "f4")), [0, -np.inf, np.nan])


ONE_ARGUMENT = "ndtri ndtr log_ndtr erfcx expi exp1 spence sici fresnel dawsn erfinv gammaln digamma i0e i1 zeta"


@pytest.mark.parametrize("name", [n for n in ONE_ARGUMENT.split() if hasattr(special, n)])
def test_with_64_bits_float32_is_computed_in_float32(name):
    f = getattr(special, name)
    x = jnp.linspace(0.1, 0.9, 5, dtype="float32")
    want = f(x)
    with jax.enable_x64(True), config.numpy_dtype_promotion("strict"), config.numpy_rank_promotion("raise"):
        closed = jax.make_jaxpr(f)(x)
        found = f(x)
    assert "f64[5" not in str(closed)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_far_out_a_factor_that_is_zero_meets_no_infinite_one():
    """Derivatives and values that were NaN where parts of them leave the range of float32, and the others are 0."""
    nan, inf, largest = np.nan, np.inf, float(np.finfo(np.float32).max)
    assert float(jax.grad(special.gammainc, 1)(12.3, 2e-38)) == 0
    assert float(jax.grad(special.betainc, 2)(12.0, 3.0, 1e-38)) == 0
    assert float(jax.grad(special.owens_t, 1)(0.0, inf)) == 0
    for h, a in ((largest, 1.0), (inf, 1.0), (inf, 0.0), (-largest, largest)):
        assert np.isfinite(jax.grad(special.owens_t, (0, 1))(h, a)).all()
    with np.errstate(over="ignore"):
        assert float(special.expi(np.float32(largest))) == inf
    spence = np.float32(scipy.special.spence(largest))
    np.testing.assert_allclose(special.spence(np.float32([largest, 3.0])), [spence, scipy.special.spence(3)], rtol=1e-6)
    for function in (special.xlogy, special.xlog1py):
        np.testing.assert_array_equal(function(np.zeros(3, np.float32), np.float32([nan, inf, 2])), [nan, 0, 0])


def test_complex_arguments_are_refused_with_each_of_the_kinds_of_errors_that_jax_has():
    for function in (special.fresnel, special.spence, special.expi):
        for error in (TypeError, ValueError, NotImplementedError):
            with pytest.raises(error, match="complex"):
                function(1j)


def test_the_transform_of_box_and_cox_of_tiny_powers_is_the_logarithm():
    tiny = np.float32([0, 1e-38, -1e-38, 1e-30, 1e-15, 1e-10])
    np.testing.assert_allclose(
        special.boxcox(np.float32(1.001), tiny), np.log(np.float64(np.float32(1.001))), rtol=2e-7
    )
    np.testing.assert_allclose(special.boxcox1p(np.float32(0.5), tiny), np.log(1.5), rtol=2e-7)


def test_beta_of_the_largest_numbers():
    largest = float(np.finfo(np.float32).max)
    for a in (0.5, 1.0, 2.0):
        want = float(mp.loggamma(a) - a * mp.log(largest))  # the rest is 1 / largest of it
        np.testing.assert_allclose(special.betaln(np.float32(a), np.float32(largest)), want, rtol=1e-6)
    assert float(special.betaln(1.0, np.inf)) == -np.inf
    slopes = jax.grad(special.betaln, (0, 1))(2.0, 1e20)
    np.testing.assert_allclose(slopes, [scipy.special.digamma(2) - np.log(1e20), -2e-20], rtol=1e-5)
