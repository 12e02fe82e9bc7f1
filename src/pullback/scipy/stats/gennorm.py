"""The generalized normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import inside, weakly_promoted


def logpdf(x: Any, beta: Any) -> Any:
    """log(beta / (2 Gamma(1/beta))) - |x|^beta."""
    x, beta = weakly_promoted(x, beta)
    return jnp.log(0.5 * beta) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def pdf(x: Any, beta: Any) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, beta))


def cdf(x: Any, beta: Any) -> Any:
    """P(X <= x), by the regularized incomplete gamma function of |x|^beta."""
    x, beta = weakly_promoted(x, beta)
    value = 0.5 * (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta))
    return inside(beta > 0, value, np.nan)
