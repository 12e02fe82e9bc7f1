"""The logistic distribution."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback import lax
from pullback.scipy import special
from pullback.scipy.stats._common import promoted, weakly_promoted


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-z - 2 log(1 + exp(-z)) - log(scale)."""
    x, loc, scale = promoted(x, loc, scale)
    half = (x - loc) / (2 * scale)
    return -2 * jnp.logaddexp(half, -half) - jnp.log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """1 / (1 + exp(-z))."""
    x, loc, scale = weakly_promoted(x, loc, scale)
    return lax.logistic((x - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, loc, scale = weakly_promoted(x, loc, scale)
    return lax.logistic((loc - x) / scale)


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log(x / (1 - x))."""
    x, loc, scale = promoted(x, loc, scale)
    return special.logit(x) * scale + loc


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log((1 - x) / x)."""
    x, loc, scale = promoted(x, loc, scale)
    return -special.logit(x) * scale + loc
