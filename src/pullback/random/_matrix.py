"""Multivariate normal vectors and random orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.lax.collectives.sharding import out_placed
from pullback.numpy._arguments import static_int
from pullback.random._arguments import batch_shape, check_parameters, float_dtype, inexact_dtype, shape_of
from pullback.random._continuous import Shape
from pullback.random._generators import PRNGImpl
from pullback.random._jit import jitted
from pullback.random._keys import open_key
from pullback.random._uniform import normal_of
from pullback.util import dtypes
from pullback.util.promoting import promoting_freely


@promoting_freely
def multivariate_normal(
    key: Any,
    mean: Any,
    cov: Any,
    shape: Any = None,
    dtype: Any = None,
    method: str = "cholesky",
    *,
    out_sharding: Any = None,
) -> Any:
    """Normal vectors of mean[..., n] and covariance cov[..., n, n]: f[*shape, n].

    `method`: the factorization of cov, 'cholesky', 'eigh' or 'svd'. Raises ValueError for another one, and if shapes
    do not fit.
    """
    impl, words, _ = open_key("multivariate_normal", key)
    check_parameters("multivariate_normal", mean=mean, cov=cov)
    mean_shape, cov_shape = np.shape(mean), np.shape(cov)
    dtype = (
        float_dtype("multivariate_normal", dtype)
        if dtype is not None
        else dtypes.to_floating_dtype(dtypes.result_type(mean, cov))
    )
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError(f"multivariate_normal: argument 'method' is 'cholesky', 'eigh' or 'svd', got {method!r}")
    if len(mean_shape) < 1:
        raise ValueError("multivariate_normal: argument 'mean' must be a vector or several, got a scalar")
    n = mean_shape[-1]
    if len(cov_shape) < 2:
        raise ValueError(f"multivariate_normal: argument 'cov' must be a matrix or several, got shape {cov_shape}")
    if cov_shape[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal: argument 'cov' has shape {cov_shape}; means of {n} elements need {n} x {n} matrices"
        )
    shape = batch_shape(
        "multivariate_normal", shape, **{"mean.shape[:-1]": mean_shape[:-1], "cov.shape[:-2]": cov_shape[:-2]}
    )
    return out_placed(
        "multivariate_normal",
        _multivariate_normal(words, mean, cov, impl=impl, shape=shape, dtype=dtype, method=method),
        out_sharding,
    )


@jitted("impl", "shape", "dtype", "method")
def _multivariate_normal(
    words: Any, mean: Any, cov: Any, *, impl: PRNGImpl, shape: Shape, dtype: np.dtype, method: str
) -> Any:
    """mean + F z, where F F^T = cov"""
    # `dtype` is that of the samples of one variable: the result promotes with mean and cov
    whole = dtypes.to_floating_dtype(dtypes.result_type(mean, cov))
    mean, cov = (lax.convert_element_type(jnp.asarray(x), whole) for x in (mean, cov))
    if method == "svd":
        u, s, _ = jnp.linalg.svd(cov)
        factor = u * jnp.sqrt(s[..., None, :])
    elif method == "eigh":
        w, v = jnp.linalg.eigh(cov)
        factor = v * jnp.sqrt(w[..., None, :])
    else:
        factor = jnp.linalg.cholesky(cov)
    z = normal_of(impl, words, (*shape, mean.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", factor, z)


def orthogonal(
    key: Any, n: int, shape: Any = (), dtype: Any = None, m: int | None = None, *, out_sharding: Any = None
) -> Any:
    """Orthogonal (complex: unitary) matrices, uniform by Haar measure: [*shape, n, n].

    With m, [*shape, n, m] with orthonormal rows (n <= m) or columns. Raises ValueError for negative sizes or another
    dtype.
    """
    impl, words, _ = open_key("orthogonal", key)
    dtype, shape = inexact_dtype("orthogonal", dtype), shape_of("orthogonal", shape)
    rows = static_int(n, "orthogonal: argument 'n'")
    columns = rows if m is None else static_int(m, "orthogonal: argument 'm'")
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got n={n} and m={m}")
    return out_placed(
        "orthogonal", _orthogonal(words, impl=impl, n=rows, m=columns, shape=shape, dtype=dtype), out_sharding
    )


@jitted("impl", "n", "m", "shape", "dtype")
def _orthogonal(words: Any, *, impl: PRNGImpl, n: int, m: int, shape: Shape, dtype: np.dtype) -> Any:
    """Q of the QR factors of normal variables, its columns by the signs of R's diagonal.

    Mezzadri, "How to generate random matrices from the classical compact groups", 2007.
    """
    if 0 in (n, m):  # of every dtype, also of those that have no factors
        return jnp.zeros((*shape, n, m), dtype)
    z = normal_of(impl, words, (*shape, max(n, m), min(n, m)), dtype)
    q, r = jnp.linalg.qr(z)
    diagonal = jnp.linalg.diagonal(r)
    q = q * jnp.expand_dims(lax.sign(diagonal), -2)
    return jnp.swapaxes(q, -1, -2) if n < m else q
