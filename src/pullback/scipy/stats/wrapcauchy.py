"""The wrapped Cauchy distribution on the circle."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.stats._common import promoted_reals, weakly_promoted


def logpdf(x: Any, c: Any) -> Any:
    """log((1 - c^2) / (2 pi (1 + c^2 - 2 c cos x))), 0 <= x <= 2 pi; nan unless 0 < c < 1."""
    x, c = promoted_reals(x, c, by=weakly_promoted)
    value = jnp.log1p(-c * c) - math.log(2 * np.pi) - jnp.log1p(c * c - 2 * c * jnp.cos(x))
    return jnp.where((c > 0) & (c < 1), jnp.where((x >= 0) & (x <= 2 * np.pi), value, -np.inf), np.nan)


def pdf(x: Any, c: Any) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, c))
