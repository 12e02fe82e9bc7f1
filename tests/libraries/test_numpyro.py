"""numpyro from PyPI, unmodified: distributions, handlers, samplers, variational inference."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, autoguide, log_likelihood
from numpyro.infer.reparam import LocScaleReparam

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 50, dtype=np.float32)
Y = (0.5 + 2 * X + 0.1 * np.sin(37 * X)).astype(np.float32)


def regression(x, y=None):
    a, b = numpyro.sample("a", dist.Normal(0, 1)), numpyro.sample("b", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(a + b * x, numpyro.sample("s", dist.Exponential(1.0))), obs=y)


def eight_schools(errors, y=None):
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", len(errors)), handlers.reparam(config={"theta": LocScaleReparam(0)}):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    numpyro.sample("obs", dist.Normal(theta, errors), obs=y)


def test_nuts_on_eight_schools():
    y, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mcmc = MCMC(NUTS(eight_schools), num_warmup=200, num_samples=300, progress_bar=False)
    mcmc.run(KEY, errors, y=y)
    found = mcmc.get_samples()
    assert found["theta"].shape == (300, 8)
    # The posterior means known of this data are mu 4.4, tau 3.6, and effects between 2 and 7.
    assert 3 < float(found["mu"].mean()) < 6 and 2.5 < float(found["tau"].mean()) < 5
    assert np.argmax(np.asarray(found["theta"]).mean(0)) in (0, 6)


@pytest.mark.filterwarnings("ignore:If both `num_steps`")
def test_hmc_gives_the_numbers_of_jax():
    mcmc = MCMC(HMC(regression, num_steps=10), num_warmup=200, num_samples=300, progress_bar=False)
    mcmc.run(KEY, X, Y)
    found = mcmc.get_samples()
    means = [float(found[name].mean()) for name in "abs"]
    np.testing.assert_allclose(means, [0.4999, 2.0009, 0.0781], atol=2e-3)  # those of JAX 0.10.2 from this key
    predicted = Predictive(regression, found)(jax.random.key(1), X)["y"]
    assert predicted.shape == (300, 50) and abs(float(predicted.mean()) - 0.5) < 0.01
    assert 55 < float(log_likelihood(regression, found, X, Y)["y"].sum(-1).mean()) < 65


@pytest.mark.parametrize("guide", ["AutoNormal", "AutoMultivariateNormal"])
def test_variational_inference(guide):
    guide = getattr(autoguide, guide)(regression)
    result = SVI(regression, guide, numpyro.optim.Adam(0.05), Trace_ELBO()).run(KEY, 400, X, Y, progress_bar=False)
    drawn = guide.sample_posterior(jax.random.key(2), result.params, sample_shape=(200,))
    assert abs(float(drawn["b"].mean()) - 2) < 0.1 and float(result.losses[-1]) < -35


def test_discrete_variables_by_gibbs_steps():
    def mixture(probabilities, places):
        numpyro.sample("x", dist.Normal(places[numpyro.sample("c", dist.Categorical(probabilities))], 0.5))

    kernel = numpyro.infer.DiscreteHMCGibbs(NUTS(mixture), modified=True)
    mcmc = MCMC(kernel, num_warmup=100, num_samples=500, progress_bar=False)
    mcmc.run(KEY, jnp.array([0.15, 0.3, 0.3, 0.25]), jnp.array([-2.0, 0, 2, 4]))
    assert abs(float(mcmc.get_samples()["x"].mean()) - 1.3) < 0.6


def test_handlers_and_dependencies():
    values = handlers.trace(handlers.seed(eight_schools, 0)).get_trace(np.ones(8))
    np.testing.assert_allclose(values["mu"]["value"], -12.2123, rtol=1e-5)  # JAX's number
    fixed = handlers.condition(regression, {"b": 2.0})
    assert handlers.trace(handlers.seed(fixed, 0)).get_trace(X)["b"]["is_observed"]
    relations = numpyro.infer.inspect.get_model_relations(regression, (X, Y))
    assert sorted(relations["sample_sample"]["y"]) == ["a", "b", "s"]


@pytest.mark.filterwarnings("error:Explicitly requested")
@pytest.mark.parametrize(
    "made",
    [
        lambda: dist.LKJCholesky(3, 1.5), lambda: dist.Dirichlet(jnp.ones(3)), lambda: dist.VonMises(0.0, 1.0),
        lambda: dist.Gompertz(1.0, 1.0), lambda: dist.TruncatedNormal(0.0, 1.0, low=-1.0),
        lambda: dist.ZeroInflatedPoisson(0.3, 2.0), lambda: dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)),
        lambda: dist.CAR(0.0, 0.5, 1.0, np.array([[0.0, 1], [1, 0]])), lambda: dist.GaussianRandomWalk(1.0, 4),
    ],
)  # fmt: skip
def test_distributions(made):
    distribution = made()
    x = distribution.sample(KEY, (3,))
    assert bool(jnp.isfinite(distribution.log_prob(x)).all())
    if jnp.issubdtype(x.dtype, jnp.floating):
        assert jax.grad(lambda v: distribution.log_prob(v).sum())(x).shape == x.shape


def test_discrete_variables_are_enumerated():
    import funsor
    from numpyro.contrib.funsor import config_enumerate

    funsor.set_backend("jax")
    data = np.array([0.0, 1, 10, 11, 12, 0.5])

    @config_enumerate
    def mixture(data):
        weights = numpyro.sample("weights", dist.Dirichlet(0.5 * jnp.ones(2)))
        with numpyro.plate("components", 2):
            places = numpyro.sample("places", dist.Normal(0, 10))
        with numpyro.plate("data", len(data)):
            chosen = numpyro.sample("chosen", dist.Categorical(weights))
            numpyro.sample("x", dist.Normal(places[chosen], 1), obs=data)

    mcmc = MCMC(NUTS(mixture), num_warmup=150, num_samples=150, progress_bar=False)
    mcmc.run(KEY, data)
    np.testing.assert_allclose(np.sort(np.asarray(mcmc.get_samples()["places"]).mean(0)), [0.5, 11], atol=0.5)
