"""The geometric distribution: trials up to the first success."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted_reals


def logpmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """(k - 1) log(1 - p) + log p, k >= 1."""
    k, p, loc = promoted_reals(k, p, loc)
    x = k - loc
    return jnp.where(x <= 0, -np.inf, special.xlog1py(x - 1, -p) + jnp.log(p))


def pmf(k: Any, p: Any, loc: Any = 0) -> Any:
    """P(X = k)."""
    return jnp.exp(logpmf(k, p, loc))
