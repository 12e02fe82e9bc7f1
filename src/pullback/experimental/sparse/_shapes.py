"""Sparse arrays in other shapes: reshaped, broadcast, one after the other.

Which dimensions of a result are batch, sparse and dense follows from those of the operand: new dimensions in front of
the first sparse one belong to the batch, those behind the last sparse one to the dense ones if there are any.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.dimensions import index as size_of
from pullback.experimental.sparse._base import refuse_sharding
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._structure import bcoo_transpose, full, inside, sparse_shape, values_where
from pullback.util import config


def bcoo_reshape(
    mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: None = None
) -> BCOO:
    """The elements in another shape, where one size may be -1; of the dimensions in the order `dimensions` if given.

    Raises TypeError for a shape of another size; ValueError for one whose dimensions hold elements of batch and
    sparse dimensions together, or of sparse and dense ones, and for an array whose elements 32 bits cannot count
    without jax_enable_x64.
    """
    refuse_sharding("bcoo_reshape", "sharding", sharding)
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    sizes = [size_of(n) for n in new_sizes]
    asked = tuple(sizes)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = mat.size // max(-math.prod(sizes), 1)
    if min(sizes, default=0) < 0 or math.prod(sizes) != mat.size:
        raise TypeError(f"cannot reshape array of shape {mat.shape} (size {mat.size}) into shape {asked}")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = _leading(mat, sizes, math.prod(mat.shape[:first]), "batch and sparse", f"n_batch={first}")
    tail = math.prod(mat.shape[last:])
    back = [] if tail == 1 and 0 not in mat.shape else sizes[batch:][::-1]
    dense = _leading(mat, back, tail, "sparse and dense", f"n_dense={mat.n_dense}", most=False)
    leading, inner, trailing = sizes[:batch], sizes[batch : len(sizes) - dense], sizes[len(sizes) - dense :]

    large = max(mat.size, *sizes, 0) > np.iinfo(np.int32).max  # padding lies at the size
    if large and not config.enable_x64.value:
        raise ValueError(
            f"bcoo_reshape of {mat.shape}: its {mat.size} elements are too many to be counted in 32 bits; set "
            'jax.config.update("jax_enable_x64", True)'
        )
    index_dtype = mat.indices.dtype
    if max(inner, default=0) > np.iinfo(index_dtype).max:
        index_dtype = np.int64 if large else np.int32
    data, indices = full(mat)
    data = data.reshape(*leading, mat.nse, *trailing)
    indices = indices.reshape(*leading, mat.nse, mat.n_sparse)
    flat = jnp.zeros(indices.shape[:-1], np.int64 if large else np.int32)
    for k, n in enumerate(sparse_shape(mat)):
        flat = flat * n + jnp.clip(indices[..., k], 0, n)
    kept = inside(indices, sparse_shape(mat))
    if not inner:
        return BCOO((values_where(kept, data), indices[..., :0]), shape=sizes, **mat.info)
    places = jnp.stack(jnp.unravel_index(flat, inner), axis=-1).astype(index_dtype)
    places = jnp.where(kept[..., None], places, jnp.array(inner, index_dtype))
    return BCOO((data, places), shape=sizes, **mat.info)


def _leading(mat: BCOO, sizes: Sequence[int], product: int, what: str, which: str, most: bool = True) -> int:
    """How many leading sizes have this product: the largest number, or the smallest. ValueError if none has."""
    found = [k for k in range(len(sizes) + 1) if math.prod(sizes[:k]) == product]
    if not found:
        raise ValueError(
            f"bcoo_reshape: new shape cannot mix {what} dimensions; got shape={mat.shape} with {which}, and {product} "
            f"elements of them do not fit the sizes {tuple(sizes)}"
        )
    if most and math.prod(mat.shape[mat.n_batch :]) == 1:
        return found[0]  # sizes of 1 behind the batch belong to what follows it
    return found[-1] if most else found[0]


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> BCOO:
    """The array with new dimensions, and those of size 1 repeated, at increasing places. ValueError if they don't fit.

    New dimensions before the first sparse one are batch dimensions, those after the first dense one dense.
    """
    refuse_sharding("bcoo_broadcast_in_dim", "sharding", sharding)
    sizes, places = tuple(shape), tuple(operator.index(p) for p in broadcast_dimensions)
    fits = len(places) == mat.ndim and all(0 <= p < len(sizes) for p in places)
    if not fits or any(n not in (1, sizes[p]) for n, p in zip(mat.shape, places, strict=True)):
        raise ValueError(f"bcoo_broadcast_in_dim: cannot bring {mat!r} to shape {sizes} with dimensions {places}")
    if any(p >= q for p, q in itertools.pairwise(places)):
        raise ValueError(f"bcoo_broadcast_in_dim: broadcast_dimensions {places} must increase")
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    n_dense = len(sizes) - places[b] if mat.n_dense else 0
    n_batch = places[a] if mat.n_sparse else len(sizes) - n_dense
    last = len(sizes) - n_dense
    data, indices = full(mat)
    of_data = (*places[:a], n_batch, *[p - last + n_batch + 1 for p in places[b:]])
    data = lax.broadcast_in_dim(data, (*sizes[:n_batch], mat.nse, *sizes[last:]), of_data)
    indices = lax.broadcast_in_dim(
        indices, (*sizes[:n_batch], mat.nse, mat.n_sparse), (*places[:a], n_batch, n_batch + 1)
    )
    valid = inside(indices, sparse_shape(mat))
    old = {p: k for k, p in enumerate(places[a:b]) if mat.shape[a + k] == sizes[p]}
    inner = range(n_batch, last)
    # Entries are repeated for each place along sparse dimensions that are new.
    repeats = [1 if p in old else sizes[p] for p in inner]
    count = math.prod(repeats)
    moved = np.indices(repeats, np.int32).reshape(len(repeats), count).T.astype(indices.dtype)
    nothing = jnp.zeros(indices.shape[:-1], indices.dtype)
    columns = []
    for k, p in enumerate(inner):
        found = indices[..., old[p]] if p in old else nothing
        columns.append(jnp.where(valid, found, sizes[p])[..., None] + moved[:, k])
    batch = indices.shape[:n_batch]
    if columns:
        indices = jnp.stack(columns, axis=-1).reshape(*batch, mat.nse * count, len(repeats))
    else:
        data, indices = values_where(valid, data), indices[..., :0]
    if count != 1:
        data = jnp.repeat(data, count, axis=n_batch)
    return BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays one after the other along a batch or sparse dimension.

    Raises TypeError or ValueError if shapes or layouts do not fit, NotImplementedError for a dense dimension.
    """
    first, *rest = operands
    shapes = ", ".join(str(m.shape) for m in operands)
    if any(m.ndim != first.ndim for m in rest):
        raise TypeError(f"bcoo_concatenate: expected arrays of as many dimensions, got shapes {shapes}")
    if len({(*m.shape[:dimension], *m.shape[dimension + 1 :]) for m in operands}) > 1:
        raise TypeError(
            f"bcoo_concatenate: arrays that are joined along dimension {dimension} have the same sizes along all "
            f"others; got shapes {shapes}"
        )
    for name in ("n_batch", "n_dense"):
        if any(getattr(m, name) != getattr(first, name) for m in rest):
            raise ValueError(
                f"bcoo_concatenate requires inputs to have matching {name[2:]} dimensions; their numbers are "
                f"{[getattr(m, name) for m in operands]}"
            )
    if not 0 <= dimension < first.n_batch + first.n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    total = sum(m.shape[dimension] for m in operands)
    shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
    parts = [full(m) for m in operands]
    if dimension < first.n_batch:
        most = max(m.nse for m in operands)
        parts = [_with_room(data, indices, most, sparse_shape(first)) for data, indices in parts]
        joined = tuple(jnp.concatenate(both, dimension) for both in zip(*parts, strict=True))
        return BCOO(joined, shape=shape, unique_indices=all(m.unique_indices for m in operands))  # type: ignore[arg-type]
    column, start = dimension - first.n_batch, 0
    found = []
    for mat, (_, places) in zip(operands, parts, strict=True):
        valid = inside(places, sparse_shape(mat))
        found.append(places.at[..., column].set(jnp.where(valid, places[..., column] + start, total)))
        start += mat.shape[dimension]
    data = jnp.concatenate([values for values, _ in parts], first.n_batch)
    indices = jnp.concatenate(found, first.n_batch)
    return BCOO((data, indices), shape=shape, unique_indices=all(m.unique_indices for m in operands))


def _with_room(data: jnp.ndarray, indices: jnp.ndarray, nse: int, shape: Sequence[int]) -> tuple:
    """data[*batch, n, *dense] and indices[*batch, n, n_sparse] padded to nse entries."""
    at = indices.ndim - 2
    more = nse - indices.shape[at]
    if not more:
        return data, indices
    outside = jnp.broadcast_to(jnp.array(shape, indices.dtype), (*indices.shape[:at], more, len(shape)))
    zeros = jnp.zeros((*data.shape[:at], more, *data.shape[at + 1 :]), data.dtype)
    return jnp.concatenate([data, zeros], at), jnp.concatenate([indices, outside], at)
