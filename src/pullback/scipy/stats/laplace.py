"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback.scipy.stats._common import promoted_reals


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-|z| - log(2 scale)."""
    x, loc, scale = promoted_reals(x, loc, scale)
    return -(jnp.abs(x - loc) / scale + jnp.log(2 * scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """P(X <= x)."""
    x, loc, scale = promoted_reals(x, loc, scale)
    z = (x - loc) / scale
    left = z <= 0
    return jnp.where(left, 0.5 * jnp.exp(jnp.where(left, z, 0)), 1 - 0.5 * jnp.exp(-jnp.where(left, 0, z)))
