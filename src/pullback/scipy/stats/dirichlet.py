"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy import special
from pullback.scipy.stats._common import promoted


def logpdf(x: Any, alpha: Any) -> Any:
    """sum((alpha - 1) log x) - log B(alpha), over the first axis of x: [k, ...], or [k - 1, ...] without the last part.

    alpha: [k]. Raises ValueError if the sizes do not fit; -inf where x is not on the simplex.
    """
    x, alpha = promoted(x, alpha)
    if alpha.ndim != 1:
        raise ValueError(f"dirichlet: argument 'alpha' has shape {alpha.shape}; expected a vector")
    k = alpha.shape[0]
    if x.shape[0] not in (k, k - 1):
        raise ValueError(f"dirichlet: x has shape {x.shape}; expected {k} or {k - 1} rows for {k} entries of alpha")
    if x.shape[0] == k - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)], axis=0)
    weights = alpha.reshape((k,) + (1,) * (x.ndim - 1))
    log_beta = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    value = jnp.sum(special.xlogy(weights - 1, x), axis=0) - log_beta
    on_simplex = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)
    return jnp.where(on_simplex, value, -np.inf)


def pdf(x: Any, alpha: Any) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, alpha))
