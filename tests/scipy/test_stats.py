"""Distributions against SciPy; summary statistics."""

import numpy as np
import pytest
import scipy.special
import scipy.stats

import pullback as jax
import pullback.numpy as jnp
from pullback.scipy import stats
from pullback.util import config

X = np.array([-3.0, -0.7, 0.0, 0.2, 0.5, 0.9, 1.0, 1.8, 4.0])
Q = np.array([-0.1, 0.0, 0.01, 0.3, 0.5, 0.95, 1.0, 1.2])
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 5.0, 7.0])

CONTINUOUS = [
    ("norm", (), True), ("cauchy", (), True), ("expon", (), True), ("laplace", (), True), ("logistic", (), True),
    ("uniform", (), True), ("gumbel_r", (), True), ("gumbel_l", (), True), ("beta", (2.5, 1.5), True),
    ("gamma", (2.5,), True), ("chi2", (3.0,), True), ("pareto", (2.5,), True), ("t", (3.5,), True),
    ("truncnorm", (-1.0, 2.0), True), ("truncnorm", (3.0, 9.0), True), ("gennorm", (1.5,), False),
    ("vonmises", (2.0,), False), ("wrapcauchy", (0.4,), False),
]  # fmt: skip
DISCRETE = [
    ("bernoulli", (0.3,)), ("binom", (6.0, 0.3)), ("geom", (0.3,)), ("nbinom", (3.0, 0.4)), ("poisson", (2.5,)),
    ("betabinom", (6.0, 1.5, 2.5)),
]  # fmt: skip


def agree(actual, expected, message):
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-9, atol=1e-12, err_msg=message)


@pytest.mark.parametrize("name,parameters,scaled", CONTINUOUS)
@pytest.mark.parametrize("location", [(), (0.5, 2.0)])
def test_continuous(name, parameters, scaled, location):
    if location and not scaled:
        return
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    points = np.abs(X) if name == "wrapcauchy" else X
    with config.enable_x64(True), np.errstate(all="ignore"):
        for method in ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf"):
            if hasattr(ours, method):
                at = Q if method in ("ppf", "isf") else points
                if name in ("logistic", "gumbel_r", "gumbel_l", "cauchy") and method in ("ppf", "isf"):
                    at = Q[(Q > 0) & (Q < 1)]  # outside of it these give what the formula gives
                expected = getattr(theirs, method)(at, *parameters, *location)
                agree(getattr(ours, method)(at, *parameters, *location), expected, f"{name}.{method}")


@pytest.mark.parametrize("name,parameters", DISCRETE)
def test_discrete(name, parameters):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    with config.enable_x64(True), np.errstate(all="ignore"):
        for method in ("logpmf", "pmf", "cdf"):
            if hasattr(ours, method):
                expected = getattr(theirs, method)(COUNTS, *parameters)
                agree(getattr(ours, method)(COUNTS, *parameters), expected, f"{name}.{method}")
        agree(ours.pmf(COUNTS + 1, *parameters, 1), theirs.pmf(COUNTS, *parameters), name)


def test_several_variables():
    with config.enable_x64(True):
        x, alpha = np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.0, 0.7])
        agree(stats.dirichlet.logpdf(x, alpha), scipy.stats.dirichlet.logpdf(x, alpha), "dirichlet")
        agree(stats.dirichlet.logpdf(x[:2], alpha), scipy.stats.dirichlet.logpdf(x, alpha), "dirichlet, one fewer")
        agree(
            stats.multinomial.logpmf(np.array([1, 2, 3]), 6, x),
            scipy.stats.multinomial.logpmf([1, 2, 3], 6, x),
            "multinomial",
        )
        mean, cov = np.array([1.0, 2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
        y = np.array([[0.1, 0.2], [3.0, 1.0]])
        expected = scipy.stats.multivariate_normal.logpdf(y, mean, cov)
        agree(stats.multivariate_normal.logpdf(y, mean, cov), expected, "multivariate_normal")
        agree(stats.poisson.entropy(np.array([0.0, 0.5, 20.0, 150.0])),
              scipy.stats.poisson.entropy(np.array([0.0, 0.5, 20.0, 150.0])), "entropy")  # fmt: skip
        agree(stats.bernoulli.ppf(Q, 0.3)[1:-1], [0, 0, 0, 0, 1, 1], "bernoulli.ppf")


def test_gradients_stay_finite_outside_the_support():
    slope = jax.grad(lambda x: stats.gamma.pdf(x, 2.0))
    assert np.isfinite(float(slope(1.0)))
    assert float(jax.grad(lambda s: stats.norm.logpdf(0.5, 0.0, s))(2.0)) == pytest.approx(-0.5 + 0.25 / 8, rel=1e-5)


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
def test_ranks(method):
    x = np.array([[3, 1, 2, 3], [5, 5, 5, 1]])
    agree(stats.rankdata(x, method), scipy.stats.rankdata(x, method).ravel(), method)
    agree(stats.rankdata(x, method, axis=1), scipy.stats.rankdata(x, method, axis=1), method)
    for y in (
        [3.0, 1, 1, 2, -0.0, 0.0, np.inf, np.inf, -np.inf],
        [True, False, True],
        [],
        np.zeros((0, 3)),
        [[2.0, np.nan, 1], [1, 1, 0]],
    ):
        for axis in (None, 0, -1):
            ours = jax.jit(lambda y, axis=axis: stats.rankdata(y, method, axis=axis))(np.asarray(y))
            assert ours.dtype == np.float32
            np.testing.assert_array_equal(
                ours, scipy.stats.rankdata(np.asarray(y), method, axis=axis).reshape(ours.shape)
            )
    many = np.random.default_rng(0).integers(0, 50_000, 200_000)  # by pairs it would be forty thousand million of them
    np.testing.assert_array_equal(stats.rankdata(many, method), scipy.stats.rankdata(many, method).astype(np.float32))
    assert stats.mode(many).count == np.bincount(many).max()


def test_mode_and_sem():
    x = np.array([[3, 1, 2, 3], [3, 5, 5, 1], [2, 5, 2, 1]])
    for axis in (0, 1, None):
        ours, theirs = stats.mode(x, axis=axis), scipy.stats.mode(x, axis=axis)
        agree(ours.mode, theirs.mode, f"mode {axis}")
        agree(ours.count, theirs.count, f"count {axis}")
    y = np.array([[1.0, 2.0, 4.0], [3.0, np.nan, 5.0]], np.float32)
    np.testing.assert_allclose(stats.sem(y, axis=1), scipy.stats.sem(y, axis=1), rtol=1e-6)
    omitted = scipy.stats.sem(y, axis=1, nan_policy="omit")
    np.testing.assert_allclose(stats.sem(y, axis=1, nan_policy="omit"), omitted, rtol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match="unknown method 'best'"):
        stats.rankdata(jnp.ones(3), "best")
    with pytest.raises(NotImplementedError, match="allow_singular"):
        stats.multivariate_normal.logpdf(jnp.ones(2), jnp.ones(2), jnp.eye(2), allow_singular=True)
    with pytest.raises(ValueError, match="argument 'alpha' has shape"):
        stats.dirichlet.logpdf(jnp.ones(2), jnp.ones((2, 2)))
    with pytest.raises(ValueError, match="argument 'nan_policy' is 'perhaps'"):
        stats.sem(jnp.ones(3), nan_policy="perhaps")


@pytest.mark.parametrize("name", ["logpdf", "pdf", "cdf", "logcdf", "sf", "logsf"])
@pytest.mark.parametrize(("family", "parameters"), [(stats.expon, ()), (stats.pareto, (2.5,))])
def test_gradients_far_outside_of_the_support_are_zero(family, parameters, name):
    """Where what is not chosen is inf, which made them nan in reverse mode."""
    f = jax.grad(lambda x: getattr(family, name)(x, *parameters))
    assert [float(f(np.float32(x))) for x in (-1e30, -1e4, -3.0, 0.0 if family is stats.pareto else -1.0)] == [0.0] * 4


NAN_DENSITIES = {
    "beta": (2.0, 3.0), "chi2": (3.0,), "expon": (), "gamma": (2.0,), "pareto": (1.5,), "truncnorm": (-1.0, 1.0),
    "norm": (), "poisson": (2.0,), "bernoulli": (0.3,), "geom": (0.3,), "nbinom": (5, 0.3), "betabinom": (5, 2.0, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", NAN_DENSITIES)
def test_of_nan_there_is_nan_and_of_python_numbers_weakly_typed_results(name):
    family = getattr(stats, name)
    logs = getattr(family, "logpdf", None) or family.logpmf
    found = logs(np.array([np.nan, 1.0, -2.0], np.float32), *NAN_DENSITIES[name])
    assert np.isnan(found[0]) and not np.isnan(found[1:]).any()
    for x, is_weak in ((1.0, True), (1, True), (np.float32(1), False), (jnp.array([1, 2]), False)):
        weakly = is_weak or (name == "poisson" and not isinstance(x, np.generic))
        assert logs(x, *NAN_DENSITIES[name]).aval.weak_type is (weakly and name != "truncnorm")
    if name == "truncnorm":
        for tail in (family.sf, family.cdf, family.logsf, family.logcdf):
            assert np.isnan(tail(np.nan, -1.0, 1.0))


@pytest.mark.parametrize("policy", ["propagate", "omit"])
def test_standard_error_of_all_elements_keeps_the_rank(policy):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    got = stats.sem(x, axis=None, keepdims=True, nan_policy=policy)
    assert got.shape == (1, 1)
    np.testing.assert_allclose(got, scipy.stats.sem(x, axis=None, keepdims=True), rtol=1e-6)
    np.testing.assert_allclose(stats.sem(x, axis=None, nan_policy=policy), scipy.stats.sem(x, axis=None), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32"])
def test_mode_of_no_elements_is_nan_with_a_count_of_floats(dtype):
    got = stats.mode(jnp.zeros((0, 3), dtype))
    for x in got:
        assert x.shape == (3,) and x.dtype == jnp.zeros(0).dtype and not x.aval.weak_type
    assert np.isnan(got.mode).all() and not np.any(got.count)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_kernel_densities_promote_freely(dtype):
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 9)), dtype)

    def results():
        made = stats.gaussian_kde(x, weights=jnp.abs(x[0]))
        return [
            made(x), made.logpdf(x), made.integrate_kde(made),
            made.integrate_gaussian(x[:, 0], jnp.eye(2, dtype=dtype)),
            made.resample(jax.random.key(0), (3,)), stats.poisson.entropy(x[0] ** 2),
        ]  # fmt: skip

    want = results()
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        for found, expected in zip(results(), want, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


INTEGERS = jnp.arange(3)
WEAK = "expon.logpdf expon.cdf gumbel_l.sf gumbel_r.logpdf binom.logpmf poisson.pmf uniform.ppf gamma.sf logistic.cdf"


@pytest.mark.parametrize("name", WEAK.split())
def test_weak_where_promotion_is(name):
    """Integer arrays and Python floats: weakly typed here, where no constants fill arrays; and of scalars anywhere."""
    family, method = name.split(".")
    function = getattr(getattr(stats, family), method)
    assert function(INTEGERS, 0.5, *((0.5,) if family == "binom" else ())).weak_type
    assert not function(jnp.float32(1), 0.5, *((0.5,) if family == "binom" else ())).weak_type


def test_strong_where_constants_fill_arrays():
    for function in (stats.cauchy.logpdf, stats.norm.pdf, stats.laplace.cdf, stats.t.pdf):
        assert not function(INTEGERS, 0.5).weak_type and function(True, 0.5).weak_type and function(2, 0.5).weak_type
    assert not stats.uniform.cdf(2.5, 0.3).weak_type


def test_poisson_of_a_fractional_location():
    """Whole are the numbers themselves, as in JAX, not their distances from the location."""
    got = stats.poisson.pmf(jnp.array([0.0, 1.0, 2.0, 2.5]), 3.0, 0.4)
    x = np.array([0.6, 1.6])
    want = np.exp(x * np.log(3) - 3 - scipy.special.gammaln(x + 1))
    np.testing.assert_allclose(got, [0, *want, 0], rtol=1e-5)
    assert stats.poisson.entropy(2.0, jnp.zeros(3)).shape == (3,)


def test_derivatives_outside_of_supports_are_zero():
    """Densities at the edge may be infinite: derivatives there must not meet those of what is outside."""
    x = jnp.array([-np.inf, -2.0, -1e-3, 3.0])
    for distribution, args in (("gamma", (0.5,)), ("gamma", (1.0,)), ("chi2", (1.0,)), ("beta", (0.5, 0.5))):
        for name in ("cdf", "logcdf", "sf", "logsf"):
            function = lambda x, f=getattr(getattr(stats, distribution), name), args=args: f(x, *args)
            outside = x[:3] if distribution != "beta" else x
            np.testing.assert_array_equal(jax.vmap(jax.grad(function))(outside), 0)
            np.testing.assert_array_equal(jax.jvp(function, (outside,), (jnp.ones_like(outside),))[1], 0)
    # At the edges of supports, and where two pieces meet, derivatives are those from inside.
    for function, at, slope in (
        (stats.gamma.cdf, (0.0, 1.0), 1),
        (stats.gamma.cdf, (np.inf, 2.0), 0),
        (stats.chi2.sf, (0.0, 2.0), -0.5),
        (stats.beta.cdf, (1.0, 1.0, 1.0), 1),
        (stats.expon.cdf, (0.0,), 1),
        (stats.expon.logsf, (0.0,), -1),
        (stats.pareto.sf, (1.0, 2.0), -2),
        (stats.laplace.cdf, (0.0,), 0.5),
    ):
        assert float(jax.grad(function)(*at)) == slope


def test_cauchy_is_exact_far_out():
    x = np.array([-1e6, -100, -2, 0, 0.5, 3, 1e5], np.float32)
    for name in ("cdf", "sf"):
        np.testing.assert_allclose(
            getattr(stats.cauchy, name)(x), getattr(scipy.stats.cauchy, name)(x.astype(float)), rtol=1e-6
        )
    q = np.array([0, 1e-6, 0.1, 0.3, 0.5, 0.8, 0.999999, 1], np.float32)
    for name in ("ppf", "isf"):
        want = getattr(scipy.stats.cauchy, name)(q.astype(float))
        np.testing.assert_allclose(getattr(stats.cauchy, name)(q), want, rtol=2e-6, atol=1e-9)


def test_bernoulli_of_python_numbers_is_weakly_typed():
    assert stats.bernoulli.cdf(1, 0.3).weak_type and stats.bernoulli.ppf(0.5, 0.3).weak_type
    assert not stats.bernoulli.cdf(np.float32(1), 0.3).weak_type


def test_the_beta_binomial_distribution_is_that_of_whole_numbers_at_most_k():
    np.testing.assert_array_equal(stats.betabinom.pmf(1.5, 10, 2, 3), stats.betabinom.pmf(1, 10, 2, 3))


def test_densities_outside_of_supports_do_not_depend_on_parameters():
    for x in (-1.0, -np.inf):
        for f in (stats.gamma.pdf, stats.gamma.logpdf):
            assert [float(g) for g in jax.grad(f, (0, 1))(x, 2.0)] == [0.0, 0.0]
    assert float(jax.grad(stats.gamma.logpdf, 1)(1.5, 2.0)) == pytest.approx(
        np.log(1.5) - scipy.special.digamma(2), rel=1e-4
    )


def test_edges_of_uniform_distributions_belong_to_these():
    for x in (0.5, 2.0):
        assert float(jax.grad(stats.uniform.cdf)(x, 0.5, 1.5)) == pytest.approx(1 / 1.5)
    assert float(stats.uniform.logpdf(np.nan, 0.0, 2.0)) == pytest.approx(-np.log(2))
    np.testing.assert_array_equal(stats.uniform.cdf(jnp.array([-1.0, 0.5, 3.0])), [0, 0.5, 1])


def test_types_of_quantiles_and_kernels():
    with jax.enable_x64(True):
        assert stats.bernoulli.ppf(jnp.float32(0.3), 0.2).dtype == np.float32
        found = stats.bernoulli.ppf(jnp.float64(0.9), 0.2)
        assert found.dtype == np.float64 and not found.weak_type and float(found) == 1.0
        for of in ("int64", "float64"):  # int32 gives float32, as promotion has it
            points = jnp.array([1, 2, 3, 0]).astype(of)
            assert stats.gaussian_kde(points)(points[:2]).dtype == np.float64


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("beta", (-1.0, 2.0)),
        ("beta", (2.0, 2.0, 0.0, -1.0)),
        ("gumbel_r", (0.0, -1.0)),
        ("gumbel_l", (0.0, 0.0)),
    ],
)
@pytest.mark.parametrize("method", ["logpdf", "pdf"])
def test_parameters_outside_of_their_domain_give_nan(name, parameters, method):
    family = getattr(stats, name)
    assert np.isnan(getattr(family, method)(jnp.array([-1.0, 0.25, 3.0]), *parameters)).all()
    assert np.isnan(stats.gennorm.cdf(jnp.array([-1.0, 0.25]), 0.0)).all()
    if name.startswith("gumbel"):
        for other in ("cdf", "logcdf", "sf", "logsf", "ppf"):
            assert np.isnan(getattr(family, other)(jnp.array([0.25, 0.5]), *parameters)).all()


def test_supports_are_decided_by_the_variable_itself():
    x = jnp.array([-2.0, 0.5, 3.0])
    for family, parameters in ((stats.expon, ()), (stats.chi2, (2.5,)), (stats.gamma, (1.5,)), (stats.pareto, (2.5,))):
        values = np.asarray(family.logpdf(x, *parameters, 0.0, -1.0))
        assert np.isneginf(values[0]) and np.isnan(values[1:]).all(), family


def test_masses_between_whole_numbers_follow_the_formula():
    np.testing.assert_allclose(
        stats.bernoulli.pmf(jnp.array([-0.5, 0.25, 1.5]), 0.3), [0, 0.3**0.25 * 0.7**0.75, 0], rtol=1e-5
    )
    assert stats.binom.pmf(3.0, 2.5, 0.3) > 0 and stats.binom.pmf(3.5, 2.5, 0.3) == 0
    assert stats.beta.cdf(1, 0.5, 0.25).weak_type and stats.beta.logsf(1, 0.5, 0.25).weak_type


@pytest.mark.parametrize(
    "name, parameters, x", [("gamma", (2.0,), 0.0), ("chi2", (3.5,), 0.0), ("beta", (2.0, 3.0), 0.0)]
)
def test_logarithms_of_no_probability_have_no_slope(name, parameters, x):
    distribution = getattr(stats, name)
    assert distribution.logcdf(x, *parameters) == -np.inf
    assert jax.grad(distribution.logcdf)(x, *parameters) == 0
    if name == "beta":
        assert distribution.logsf(1 - x, *parameters) == -np.inf
        assert jax.grad(distribution.logsf)(1 - x, *parameters) == 0
