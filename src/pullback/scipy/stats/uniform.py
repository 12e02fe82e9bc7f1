"""The uniform distribution on [loc, loc + scale]."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.numpy._arguments import convert
from pullback.scipy.stats._common import inside, promoted, promoted_reals, weakly_promoted


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """-log(scale) inside, and of NaN, which is on neither side."""
    x, loc, scale = promoted_reals(x, loc, scale, by=weakly_promoted)
    return inside(~((x < loc) | (x > loc + scale)), -jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """(x - loc) / scale, clipped to [0, 1]."""
    x, loc, scale = promoted(x, loc, scale)
    value = (x - loc) / scale
    value = jnp.where(value < 0, 0, jnp.where(value > 1, 1, value))  # whose edges have the derivatives of the inside
    return convert(value, x.dtype)  # never weakly typed


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Any:
    """loc + q scale; nan outside [0, 1]."""
    q, loc, scale = weakly_promoted(q, loc, scale)
    return jnp.where((q < 0) | (q > 1), np.nan, loc + q * scale)
