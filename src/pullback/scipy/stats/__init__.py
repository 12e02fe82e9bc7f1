"""Distributions: a module each, with logpdf, pdf, cdf, ... as SciPy has them; and summary statistics."""

from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.distributions import DISTRIBUTIONS as _DISTRIBUTIONS
from pullback.manual.scipy.stats import PAGES as _PAGES
from pullback.scipy import _parameters
from pullback.scipy.stats import (
    bernoulli,
    beta,
    betabinom,
    binom,
    cauchy,
    chi2,
    dirichlet,
    expon,
    gamma,
    gennorm,
    geom,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    multinomial,
    multivariate_normal,
    nbinom,
    norm,
    pareto,
    poisson,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from pullback.scipy.stats._kernel_density import gaussian_kde
from pullback.scipy.stats._summary import mode, rankdata, sem

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gaussian_kde",
    "gennorm", "geom", "gumbel_l", "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal",
    "nbinom", "norm", "pareto", "poisson", "rankdata", "sem", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

for _module in [globals(), *(vars(globals()[_name]) for _name in __all__ if type(globals()[_name]) is type(norm))]:
    _remember_all(_module, _parameters.STATS)
    _explain_all(_module, _parameters.STATS, {})

_add_pages(globals(), _PAGES)
for _name, _pages in _DISTRIBUTIONS.items():
    _add_pages(vars(globals()[_name]), _pages)
