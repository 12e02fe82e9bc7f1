"""The normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-((x - loc)/scale)^2 / 2 - log(scale sqrt(2 pi))."""
    x, loc, scale = promoted(x, loc, scale)
    square = jnp.square(scale)
    return (jnp.log(2 * np.pi * square) + jnp.square(x - loc) / square) / -2


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X <= x)."""
    x, loc, scale = promoted(x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x), accurate far below loc."""
    x, loc, scale = promoted(x, loc, scale)
    return special.log_ndtr((x - loc) / scale)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, loc, scale = promoted(x, loc, scale)
    return special.ndtr((loc - x) / scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    x, loc, scale = promoted(x, loc, scale)
    return special.log_ndtr((loc - x) / scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The x with cdf(x) = q; nan outside [0, 1]."""
    q, loc, scale = promoted(q, loc, scale)
    return special.ndtri(q) * scale + loc


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The x with sf(x) = q."""
    q, loc, scale = promoted(q, loc, scale)
    return loc - special.ndtri(q) * scale
