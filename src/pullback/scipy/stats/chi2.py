"""The chi-squared distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import inside, promoted, within


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(df/2-1) log z - z/2 - log Gamma(df/2) - df/2 log 2 - log(scale), z >= 0."""
    x, df, loc, scale = promoted(x, df, loc, scale)
    z, half = (x - loc) / scale, df / 2
    value = special.xlogy(half - 1, z) - z / 2 - special.gammaln(half) - half * math.log(2) - jnp.log(scale)
    return inside(~(x < loc), value)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, df, loc, scale))


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The regularized lower incomplete gamma function of z/2."""
    x, df, loc, scale = promoted(x, df, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, 0, lambda z: special.gammainc(df / 2, z / 2), z, 1)


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    x, df, loc, scale = promoted(x, df, loc, scale)
    z = (x - loc) / scale
    # Where nothing lies below z, the logarithm has no derivative: it is taken as a constant there.
    outside = (z < 0) | ((z == 0) & (df > 0))
    return within(outside, -np.inf, lambda z: jnp.log(special.gammainc(df / 2, z / 2)), z, 1)


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, df, loc, scale = promoted(x, df, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, 1, lambda z: special.gammaincc(df / 2, z / 2), z, 1)


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    x, df, loc, scale = promoted(x, df, loc, scale)
    z = (x - loc) / scale
    return within(z < 0, 0, lambda z: jnp.log(special.gammaincc(df / 2, z / 2)), z, 1)
