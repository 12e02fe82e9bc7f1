"""The standard normal distribution restricted to [a, b], shifted and scaled."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats import norm
from pullback.scipy.stats._common import inside, promoted


def _log_mass(a: Any, b: Any) -> Any:
    """log(Phi(b) - Phi(a)), computed in the tail nearer to which the interval lies."""
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    log_high, log_low = special.log_ndtr(high), special.log_ndtr(low)
    return log_high + jnp.log1p(-jnp.exp(jnp.where(high <= low, -np.inf, log_low - log_high)))


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log phi(z) - log(Phi(b) - Phi(a)) - log(scale), a <= z <= b; nan unless a < b."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    value = norm.logpdf(x, loc, scale) - _log_mass(a, b)
    z = (x - loc) / scale
    return jnp.where(a >= b, np.nan, inside(~((z < a) | (z > b)), value))


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    value = _log_mass(a, jnp.clip(z, a, b)) - _log_mass(a, b)
    return jnp.where(a >= b, np.nan, jnp.where(z <= a, -np.inf, jnp.where(z >= b, 0, value)))


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X <= x)."""
    return jnp.exp(logcdf(x, a, b, loc, scale))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    value = _log_mass(jnp.clip(z, a, b), b) - _log_mass(a, b)
    return jnp.where(a >= b, np.nan, jnp.where(z <= a, 0, jnp.where(z >= b, -np.inf, value)))


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    return jnp.exp(logsf(x, a, b, loc, scale))
