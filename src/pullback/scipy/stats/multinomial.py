"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.numpy._arguments import check_arraylike
from pullback.scipy import special
from pullback.util import dtypes


def logpmf(x: Any, n: Any, p: Any) -> Any:
    """log n! + sum(x log p - log x!) over the last axis; -inf unless the x sum to n."""
    check_arraylike("multinomial.logpmf", x, n, p)
    x, n, p = jnp.asarray(x), jnp.asarray(n), jnp.asarray(p)
    for argument, value in (("x", x), ("n", n)):
        if value.dtype != np.bool_ and not dtypes.issubdtype(value.dtype, np.integer):
            raise ValueError(f"multinomial: argument '{argument}' must be of an integer type, got {value.dtype}")
    kind = dtypes.to_inexact_dtype(p.dtype)
    x, p = jnp.broadcast_arrays(x.astype(kind), p.astype(kind))
    n = n.astype(x.dtype)
    value = special.gammaln(n + 1) + jnp.sum(special.xlogy(x, p) - special.gammaln(x + 1), axis=-1)
    return jnp.where(jnp.sum(x, axis=-1) == n, value, -np.inf)


def pmf(x: Any, n: Any, p: Any) -> Any:
    """P(X = x)."""
    return jnp.exp(logpmf(x, n, p))
