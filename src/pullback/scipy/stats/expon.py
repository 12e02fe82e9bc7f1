"""The exponential distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.stats._common import inside, promoted_reals, weakly_promoted


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-z - log(scale), z >= 0."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    z = (x - loc) / scale
    return inside(~(x < loc), -z - jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """1 - exp(-z)."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    z = (x - loc) / scale
    below = x < loc
    return jnp.where(below, 0, -jnp.expm1(-jnp.where(below, 0, z)))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    z = (x - loc) / scale
    below = x <= loc
    return jnp.where(below, -np.inf, jnp.log1p(-jnp.exp(-jnp.where(below, 1, z))))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """exp(-z)."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    z = (x - loc) / scale
    below = x < loc
    return jnp.where(below, 1, jnp.exp(-jnp.where(below, 0, z)))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-z."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    z = (x - loc) / scale
    return jnp.where(x < loc, 0, -z)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-log(1 - q); nan outside [0, 1]."""
    q, loc, scale = promoted_reals(q, loc, scale, by=weakly_promoted)
    return jnp.where((q < 0) | (q > 1), np.nan, loc - scale * jnp.log1p(-q))
