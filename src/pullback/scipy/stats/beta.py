"""The beta distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import inside, promoted, within


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(a-1) log z + (b-1) log(1-z) - log B(a, b) - log(scale), 0 <= z <= 1."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    shape = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z)
    value = shape - special.betaln(a, b) - jnp.log(scale)
    value = inside(~((z < 0) | (z > 1)), value)
    return inside((a > 0) & (b > 0) & (scale > 0), value, np.nan)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def _within(z: Any, below: float, above: float, function: Callable[[Any], Any], edge: Any = False) -> Any:
    """The function of z; a constant below 0, above 1, and at an `edge`, where logarithms of 0 have no derivative."""
    return within((z < 0) | (z > 1) | edge, jnp.where(z <= 0, below, above), function, z, 0.5)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The regularized incomplete beta function of z."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    return _within(z, 0, 1, lambda z: special.betainc(a, b, z))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    edge = (z == 0) & (a > 0) & (b > 0)
    return _within(z, -np.inf, 0, lambda z: jnp.log(special.betainc(a, b, z)), edge)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    return _within(z, 1, 0, lambda z: special.betainc(b, a, 1 - z))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    edge = (z == 1) & (a > 0) & (b > 0)
    return _within(z, 0, -np.inf, lambda z: jnp.log(special.betainc(b, a, 1 - z)), edge)
