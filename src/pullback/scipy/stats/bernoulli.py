"""The Bernoulli distribution: 1 with probability p, else 0."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.numpy._arguments import const
from pullback.scipy import special
from pullback.scipy.stats._common import promoted_reals


def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """x log p + (1 - x) log(1 - p), 0 <= x <= 1."""
    k, p, loc = promoted_reals(k, p, loc)
    x = k - loc
    value = special.xlogy(x, p) + special.xlog1py(1 - x, -p)
    return jnp.where((x < 0) | (x > 1), -np.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """P(X = k)."""
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: Any, p: Any) -> Any:
    """0 below 0, 1 - p up to 1, then 1; nan for p outside [0, 1]."""
    k, p = promoted_reals(k, p)
    value = jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1))
    return jnp.where(jnp.isnan(k) | jnp.isnan(p) | (p < 0) | (p > 1), np.nan, value)


def ppf(q: Any, p: Any) -> Any:
    """0 for q <= 1 - p, else 1; nan for q or p outside [0, 1]."""
    q, p = promoted_reals(q, p)
    bad = jnp.isnan(q) | jnp.isnan(p) | (p < 0) | (p > 1) | (q < 0) | (q > 1)
    return jnp.where(bad, const(q, np.nan), jnp.where(q <= 1 - p, const(q, 0), const(q, 1)))
