"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import inside, promoted, weakly_promoted, within


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(a-1) log z - z - log Gamma(a) - log(scale), z >= 0."""
    x, a, loc, scale = promoted(x, a, loc, scale)
    z = (x - loc) / scale
    normal = special.gammaln(a) + jnp.log(scale)
    below = x < loc
    z = jnp.where(below, 1, z)
    return inside(~below, special.xlogy(a - 1, z) - z - normal)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The regularized lower incomplete gamma function of z."""
    x, a, loc, scale = promoted(x, a, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, 0, lambda z: special.gammainc(a, z), z, 1)


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    x, a, loc, scale = promoted(x, a, loc, scale)
    z = (x - loc) / scale
    # Where nothing lies below z, the logarithm has no derivative: it is taken as a constant there.
    return within((z < 0) | ((z == 0) & (a > 0)), -np.inf, lambda z: jnp.log(special.gammainc(a, z)), z, 1)


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, a, loc, scale = weakly_promoted(x, a, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, 1, lambda z: special.gammaincc(a, z), z, 1)


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    x, a, loc, scale = weakly_promoted(x, a, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, 0, lambda z: jnp.log(special.gammaincc(a, z)), z, 1)
