"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import weakly_promoted


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """log C(n, k) + k log p + (n - k) log(1 - p), 0 <= k <= n."""
    k, n, p, loc = weakly_promoted(k, n, p, loc)
    y = k - loc
    choose = special.gammaln(n + 1) - special.gammaln(y + 1) - special.gammaln(n - y + 1)
    value = choose + special.xlogy(y, p) + special.xlog1py(n - y, -p)
    return jnp.where((y >= 0) & (y < n + 1), value, -np.inf)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
    """P(X = k)."""
    return jnp.exp(logpmf(k, n, p, loc))
