"""The Cauchy distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.stats._common import promoted


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-log(pi scale (1 + z^2))."""
    x, loc, scale = promoted(x, loc, scale)
    z = (x - loc) / scale
    return -jnp.log(np.pi * scale) - jnp.log1p(z * z)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """1/2 + atan(z) / pi."""
    x, loc, scale = promoted(x, loc, scale)
    return 0.5 + jnp.arctan((x - loc) / scale) / np.pi


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    return jnp.log(cdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, loc, scale = promoted(x, loc, scale)
    return 0.5 - jnp.arctan((x - loc) / scale) / np.pi


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    return jnp.log(sf(x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The x with cdf(x) = q."""
    q, loc, scale = promoted(q, loc, scale)
    return loc + scale * jnp.tan(np.pi * (q - 0.5))


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The x with sf(x) = q."""
    q, loc, scale = promoted(q, loc, scale)
    return loc + scale * jnp.tan(np.pi * (0.5 - q))
