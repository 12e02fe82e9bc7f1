"""The Gumbel distribution of maxima."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.stats._common import inside, promoted_reals, weakly_promoted


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-z - exp(-z) - log(scale)."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    z = (x - loc) / scale
    return inside(scale > 0, -(z + jnp.exp(-z)) - jnp.log(scale), np.nan)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-exp(-z)."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    return inside(scale > 0, -jnp.exp((loc - x) / scale), np.nan)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """exp(-exp(-z))."""
    return jnp.exp(logcdf(x, loc, scale))


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-log(-log p)."""
    p, loc, scale = promoted_reals(p, loc, scale, by=weakly_promoted)
    return inside(scale > 0, loc - scale * jnp.log(-jnp.log(p)), np.nan)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, loc, scale = promoted_reals(x, loc, scale)
    return inside(scale > 0, -jnp.expm1(-jnp.exp((loc - x) / scale)), np.nan)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    return jnp.log(sf(x, loc, scale))
