"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.scipy.linalg import solve_triangular
from pullback.scipy.stats._common import promoted


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """-(x-mean)^T cov^-1 (x-mean) / 2 - log det(2 pi cov) / 2.

    x, mean: [..., n], cov: [..., n, n], or a scalar variance. Raises NotImplementedError for `allow_singular`,
    ValueError for shapes that do not fit.
    """
    if allow_singular is not None:
        raise NotImplementedError("multivariate_normal.logpdf: argument 'allow_singular' is not supported")
    x, mean, cov = promoted(x, mean, cov)
    if mean.ndim == 0:
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (math.log(2 * np.pi) + jnp.log(cov))
    n = mean.shape[-1]
    if cov.ndim == 0:
        y = x - mean
        return -0.5 * jnp.einsum("...i,...i->...", y, y) / cov - n / 2 * (math.log(2 * np.pi) + jnp.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError(f"multivariate_normal.logpdf got incompatible shapes: mean {mean.shape}, cov {cov.shape}")
    factor = jnp.linalg.cholesky(cov)
    y = jnp.vectorize(_whiten, signature="(n,n),(n)->(n)")(factor, x - mean)
    log_det = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * jnp.einsum("...i,...i->...", y, y) - n / 2 * math.log(2 * np.pi) - log_det


def _whiten(factor: Any, y: Any) -> Any:
    return solve_triangular(factor, y, lower=True)


def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density."""
    return jnp.exp(logpdf(x, mean, cov))
