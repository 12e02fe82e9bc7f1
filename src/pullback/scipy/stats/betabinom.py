"""The beta-binomial distribution: binomial, with a beta-distributed probability."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """log C(n, k) B(k + a, n - k + b) / B(a, b), 0 <= k <= n, k rounded down; nan for n < 0, a <= 0 or b <= 0."""
    k, n, a, b, loc = promoted(k, n, a, b, loc)
    k = jnp.floor(k)
    y = k - loc
    choose = -jnp.log(n + 1) - special.betaln(n - y + 1, y + 1)
    value = choose + special.betaln(y + a, n - y + b) - special.betaln(a, b)
    value = jnp.where((y < 0) | (y > n), -np.inf, value)
    return jnp.where((n >= 0) & (a > 0) & (b > 0), value, np.nan)


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Any:
    """P(X = k)."""
    return jnp.exp(logpmf(k, n, a, b, loc))
