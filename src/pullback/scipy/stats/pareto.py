"""The Pareto distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.stats._common import inside, promoted, promoted_reals, weakly_promoted


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log(b) - (b+1) log z - log(scale), z >= 1."""
    x, b, loc, scale = promoted_reals(x, b, loc, scale)
    below, z = x < loc + scale, (x - loc) / scale
    return inside(~below, jnp.log(b) - (b + 1) * jnp.log(jnp.where(below, 1, z)) - jnp.log(scale))


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """1 - z^-b."""
    x, b, loc, scale = promoted(x, b, loc, scale)
    below, z = x < loc + scale, (x - loc) / scale
    return jnp.where(below, 0, 1 - jnp.power(jnp.where(below, 1, z), -b))


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    x, b, loc, scale = weakly_promoted(x, b, loc, scale)
    outside, z = x <= loc + scale, (x - loc) / scale
    return jnp.where(outside, -np.inf, jnp.log1p(-jnp.power(jnp.where(outside, 2, z), -b)))


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """z^-b."""
    x, b, loc, scale = promoted(x, b, loc, scale)
    below, z = x < loc + scale, (x - loc) / scale
    return jnp.where(below, 1, jnp.power(jnp.where(below, 1, z), -b))


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-b log z."""
    x, b, loc, scale = promoted(x, b, loc, scale)
    below, z = x < loc + scale, (x - loc) / scale
    return jnp.where(below, 0, -b * jnp.log(jnp.where(below, 1, z)))


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(1 - q)^(-1/b); nan outside [0, 1]."""
    q, b, loc, scale = promoted(q, b, loc, scale)
    return jnp.where((q < 0) | (q > 1), np.nan, loc + scale * jnp.power(1 - q, -1 / b))
