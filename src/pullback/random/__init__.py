"""Random numbers from explicit keys: the same numbers as JAX for the same key.

    key = random.key(0)
    key, sub = random.split(key)
    x = random.normal(sub, (3,))

Functions are pure: the same key gives the same numbers, so every use needs a new one, from `split` or `fold_in`.
"""

from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.random import PAGES as _PAGES
from pullback.random import _parameters
from pullback.random._continuous import (
    cauchy,
    double_sided_maxwell,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from pullback.random._discrete import binomial, categorical, choice, geometric, multinomial, permutation, poisson
from pullback.random._gamma import ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t
from pullback.random._key_arrays import key_dtype
from pullback.random._keys import (
    PRNGKey,
    clone,
    fold_in,
    key,
    key_data,
    key_impl,
    split,
    wrap_key_data,
)
from pullback.random._matrix import multivariate_normal, orthogonal
from pullback.random._uniform import bernoulli, bits, normal, rademacher, randint, uniform
from pullback.util.absent import absent_names, listed

__getattr__ = absent_names(__name__)

__all__ = [
    "PRNGKey",
    "ball",
    "bernoulli",
    "beta",
    "binomial",
    "bits",
    "categorical",
    "cauchy",
    "chisquare",
    "choice",
    "clone",
    "dirichlet",
    "double_sided_maxwell",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "generalized_normal",
    "geometric",
    "gumbel",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "laplace",
    "loggamma",
    "logistic",
    "lognormal",
    "maxwell",
    "multinomial",
    "multivariate_normal",
    "normal",
    "orthogonal",
    "pareto",
    "permutation",
    "poisson",
    "rademacher",
    "randint",
    "rayleigh",
    "split",
    "t",
    "triangular",
    "truncated_normal",
    "uniform",
    "wald",
    "weibull_min",
    "wrap_key_data",
]

# Those called most say themselves what is wrong; a wrapper costs a tenth of a microsecond.
_explain_all(
    globals(),
    _parameters.RANDOM,
    _parameters.RANDOM_OWN,
    skip=("normal", "uniform", "bits", "split", "fold_in", "randint"),
)
_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
