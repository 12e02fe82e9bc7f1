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


def _tail(z: Any) -> Any:
    """1/2 - atan(z) / pi, which cancels far out, where it is atan(1 / z) / pi."""
    far = z > 1
    near = 0.5 - jnp.arctan(jnp.where(far, 1, z)) / np.pi
    return jnp.where(far, jnp.arctan(1 / jnp.where(far, z, 1)) / np.pi, near)


def _cotangent(q: Any) -> Any:
    """cot(pi q), 0 <= q <= 1, from whichever of q, 1/2 - q and 1 - q is exact and small."""
    low, high = q < 0.25, q > 0.75
    end = jnp.where(low, q, jnp.where(high, -(1 - q), 0.25))
    middle = jnp.tan(np.pi * (0.5 - jnp.where(low | high, 0.25, q)))
    return jnp.where(low | high, 1 / jnp.tan(np.pi * end), middle)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """1/2 + atan(z) / pi."""
    x, loc, scale = promoted(x, loc, scale)
    return _tail(-(x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X <= x)."""
    return jnp.log(cdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X > x)."""
    x, loc, scale = promoted(x, loc, scale)
    return _tail((x - loc) / scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """log P(X > x)."""
    return jnp.log(sf(x, loc, scale))


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The x with cdf(x) = q."""
    q, loc, scale = promoted(q, loc, scale)
    return loc - scale * _cotangent(q)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The x with sf(x) = q."""
    q, loc, scale = promoted(q, loc, scale)
    return loc + scale * _cotangent(q)
