"""Sparse arrays from dense ones, and from nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import random
from pullback.api import vmap
from pullback.core import Tracer
from pullback.errors import ConcretizationTypeError
from pullback.experimental.sparse._base import operations
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR


def bcoo_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCOO:
    """The sparse form of `mat`, whose first n_batch dimensions are a batch, and the last n_dense dense.

    nse entries for each element of the batch, by default as many as the fullest one has; with fewer the last are lost.
    Raises ValueError if the dimensions do not fit, TypeError if nse is not given and mat is traced.
    """
    mat = jnp.asarray(mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} are too many for shape {mat.shape}")
    places = mat != 0
    if n_dense:
        places = places.any(axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        if isinstance(places, Tracer):
            raise ConcretizationTypeError(
                places,
                "bcoo_fromdense: argument 'nse', the number of entries, must be given inside jit and other "
                "transformations, where it cannot be counted",
            )
        counts = np.asarray(places).sum(axis=tuple(range(n_batch, places.ndim)))
        nse = int(counts.max(initial=0))

    def one(mat: Any, places: Any) -> tuple[Any, Any]:
        if not n_sparse:
            found = jnp.zeros((nse, 0), index_dtype)
            return jnp.where(jnp.arange(nse).reshape(-1, *[1] * n_dense) == 0, mat, jnp.zeros_like(mat)), found
        if mat.size == 0:
            return jnp.zeros((nse, *mat.shape[n_sparse:]), mat.dtype), jnp.zeros((nse, n_sparse), index_dtype)
        at = jnp.nonzero(places, size=nse, fill_value=mat.shape[:n_sparse])
        data = mat.at[at].get(mode="fill", fill_value=0)
        return data, jnp.stack(at, axis=-1).astype(index_dtype)

    for _ in range(n_batch):
        one = vmap(one)
    data, indices = one(mat, places)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def empty(
    shape: Sequence[int],
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    *,
    nse: int = 0,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """The sparse array of zeros, in a format of bcoo, bcsr, coo, csr and csc; ValueError for others."""
    _check_format(sparse_format)
    if sparse_format != "bcoo":
        return _in_format(sparse_format, empty(shape, dtype, index_dtype, nse=nse, n_batch=n_batch, n_dense=n_dense))
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse, nse) < 0:
        raise ValueError(f"empty: invalid nse={nse}, n_batch={n_batch}, n_dense={n_dense} for shape {shape}")
    batch = shape[:n_batch]
    indices = jnp.broadcast_to(jnp.array(shape[n_batch : n_batch + n_sparse], index_dtype), (*batch, nse, n_sparse))
    data = jnp.zeros((*batch, nse, *shape[n_batch + n_sparse :]), dtype)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = None,
    index_dtype: Any = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
) -> Any:
    """The N x M matrix with ones on its k-th diagonal, in a format of bcoo, bcsr, coo, csr and csc.

    The first n_batch of its dimensions are a batch, the last n_dense dense, in the format bcoo alone (TypeError).
    Raises ValueError for other formats and for more than two dimensions.
    """
    _check_format(sparse_format)
    if sparse_format != "bcoo":
        if n_batch or n_dense:
            raise TypeError(f"eye: format {sparse_format!r} has no arguments 'n_batch' and 'n_dense'")
        return _in_format(sparse_format, eye(N, M, k, dtype, index_dtype))
    if n_batch or n_dense:
        if min(n_batch, n_dense) < 0 or n_batch + n_dense > 2:
            raise ValueError(f"eye: a matrix has no n_batch={n_batch} and n_dense={n_dense} dimensions")
        dense = jnp.eye(N, M, k, dtype)
        return bcoo_fromdense(dense, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    columns = N if M is None else M
    row, column = max(-k, 0), max(k, 0)
    n = max(min(N - row, columns - column), 0)
    indices = np.arange(n)[:, None] + np.array([row, column])
    return BCOO(
        (jnp.ones(n, dtype), jnp.asarray(indices, index_dtype)),
        shape=(N, columns),
        indices_sorted=True,
        unique_indices=True,
    )


def _in_format(sparse_format: str, mat: BCOO) -> Any:
    return BCSR.from_bcoo(mat) if sparse_format == "bcsr" else operations.matrix(sparse_format, mat)


def _check_format(sparse_format: str) -> None:
    formats = ["bcsr", "bcoo", "coo", "csr", "csc"]
    if sparse_format not in formats:
        raise ValueError(f"{sparse_format=} not recognized; must be one of {formats}")


def random_bcoo(
    key: Any,
    shape: Sequence[int],
    *,
    dtype: Any = np.float32,
    indices_dtype: Any = None,
    nse: int | float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """A sparse array with nse random values, or (nse < 1) that fraction of the sparse places, at random places.

    `generator(key, shape=..., dtype=..., **kwds)` draws the values. Raises ValueError if the dimensions do not fit,
    TypeError if nse is neither an integer nor a fraction.
    """
    shape = tuple(shape)
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0 or nse < 0:
        raise ValueError(f"random_bcoo: invalid nse={nse}, n_batch={n_batch}, n_dense={n_dense} for shape {shape}")
    batch, sparse = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
    places = math.prod(sparse)
    if nse >= 1 and not isinstance(nse, (int, np.integer)):
        raise TypeError(f"random_bcoo: nse={nse} must be an integer, or a fraction below 1")
    count = math.ceil(nse * places) if nse < 1 else int(nse)
    if unique_indices and count > places:
        raise ValueError(f"random_bcoo: {count} different places asked for, but there are {places}")
    for_data, for_places = random.split(key)
    data = generator(for_data, shape=(*batch, count, *shape[n_batch + n_sparse :]), dtype=dtype, **kwds)

    def draw(key: Any) -> Any:
        return random.choice(key, places, (count,), replace=not unique_indices)

    flat = vmap(draw)(random.split(for_places, math.prod(batch))) if batch else draw(for_places)
    found = jnp.unravel_index(flat.reshape(*batch, count), sparse) if sparse else []
    indices = jnp.stack(found, axis=-1) if sparse else jnp.zeros((*batch, count, 0), np.int32)
    made = BCOO((data, indices.astype(indices_dtype or np.int32)), shape=shape, unique_indices=unique_indices)
    return made.sort_indices() if sorted_indices else made
