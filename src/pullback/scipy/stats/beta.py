"""The beta distribution."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import inside, promoted


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(a-1) log z + (b-1) log(1-z) - log B(a, b) - log(scale), 0 <= z <= 1."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    z = (x - loc) / scale
    shape = special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z)
    value = shape - special.betaln(a, b) - jnp.log(scale)
    return inside(~((z < 0) | (z > 1)), value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, a, b, loc, scale))


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The regularized incomplete beta function of z."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    return special.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    return jnp.log(cdf(x, a, b, loc, scale))


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, a, b, loc, scale = promoted(x, a, b, loc, scale)
    return special.betainc(b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    return jnp.log(sf(x, a, b, loc, scale))
