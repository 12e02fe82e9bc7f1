"""The negative binomial distribution: failures before the n-th success."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """log C(k + n - 1, k) + n log p + k log(1 - p), k >= 0."""
    k, n, p, loc = promoted(k, n, p, loc)
    y = k - loc
    choose = special.gammaln(y + n) - special.gammaln(n) - special.gammaln(y + 1)
    return jnp.where(y < 0, -np.inf, choose + special.xlogy(n, p) + special.xlog1py(y, -p))


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """P(X = k)."""
    return jnp.exp(logpmf(k, n, p, loc))
