"""What changes where the entries of a sparse array lie, not their values."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api import vmap
from pullback.core import Tracer
from pullback.experimental.sparse._base import JAXSparse, refuse_sharding
from pullback.experimental.sparse._bcoo import BCOO
from pullback.util import config


def _for_each(one: Callable[..., Any], mat: BCOO) -> Any:
    """one(data[nse, *dense], indices[nse, n_sparse]) for each element of the batch."""
    data, indices = full(mat)
    for _ in range(mat.n_batch):
        one = vmap(one)
    return one(data, indices)


def full(mat: BCOO) -> tuple[Any, Any]:
    """data and indices with all of their batch dimensions, of which they may have 1 in the place of many."""
    batch = mat.shape[: mat.n_batch]
    at = mat.n_batch
    return (
        jnp.broadcast_to(mat.data, (*batch, *mat.data.shape[at:])),
        jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[at:])),
    )


def sparse_shape(mat: BCOO) -> tuple[int, ...]:
    """The sizes of the sparse dimensions."""
    return mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse]


def inside(indices: Any, shape: Sequence[int]) -> Any:
    """Which entries are no padding: [..., nse] from indices[..., nse, n_sparse]."""
    return ((indices >= 0) & (indices < jnp.array(shape, indices.dtype))).all(axis=-1)


def columns(indices: Any, chosen: Sequence[int]) -> Any:
    """Some of the sparse dimensions of indices[..., n_sparse], in this order."""
    if not len(chosen):
        return indices[..., :0]
    return jnp.stack([indices[..., k] for k in chosen], axis=-1)


def zero(data: Any) -> Any:
    """0 of the dtype of data: the number would make an int32 of a bool."""
    return jnp.zeros((), data.dtype)


def values_where(condition: Any, data: Any, other: Any = None) -> Any:
    """data[*batch, nse, *dense] where condition[*batch, nse] holds; elsewhere other, by default zeros."""
    shape = *condition.shape, *[1] * (data.ndim - condition.ndim)
    return jnp.where(condition.reshape(shape), data, zero(data) if other is None else other)


def scatter(data: Any, indices: Any, shape: Sequence[int]) -> Any:
    """zeros(shape) with data[nse, ...] added at indices[nse, n]; what lies outside is left out."""
    zeros = jnp.zeros(shape, data.dtype)
    if indices.shape[-1] == 0:
        return data.sum(axis=0, dtype=data.dtype) if data.dtype != bool else data.any(axis=0)
    at = tuple(indices[:, k] for k in range(indices.shape[1]))
    if data.dtype == bool:
        return zeros.at[at].max(data, mode="drop", wrap_negative_indices=False)
    return zeros.at[at].add(data, mode="drop", wrap_negative_indices=False)


def bcoo_todense(mat: BCOO) -> Any:
    """The array with all its elements."""
    shape = mat.shape[mat.n_batch :]
    return _for_each(lambda data, indices: scatter(data, indices, shape), mat)


def todense(arr: Any) -> Any:
    """The array with all its elements, if it is sparse; otherwise itself."""
    return arr.todense() if isinstance(arr, JAXSparse) else arr


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of the array `arr` at the places of `sparr`; of entries at one place the first has it.

    With assume_unique all of them have it; by default as the array says of itself. ValueError if shapes differ.
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: the array has shape {arr.shape}, the places {sparr.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique

    def one(arr: Any, indices: Any) -> Any:
        at = tuple(indices[:, k] for k in range(indices.shape[1]))
        if not at:
            return jnp.broadcast_to(arr, (indices.shape[0], *arr.shape))
        data = arr.at[at].get(mode="fill", fill_value=0, wrap_negative_indices=False)
        return data if unique else values_where(_is_first(indices), data)

    indices = full(sparr)[1]
    for _ in range(sparr.n_batch):
        one = vmap(one)
    return BCOO((one(arr, indices), indices), shape=sparr.shape, **sparr.info)


def _order(indices: Any) -> Any:
    return jnp.lexsort(tuple(indices[:, k] for k in range(indices.shape[1]))[::-1])


def _is_first(indices: Any) -> Any:
    order = _order(indices)
    ordered = indices[order]
    new = jnp.concatenate([jnp.ones(min(1, len(order)), bool), (ordered[1:] != ordered[:-1]).any(axis=-1)])
    return jnp.zeros(len(order), bool).at[order].set(new)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Entries in the order of their indices, those of one place in the order they had."""

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        order = _order(indices)
        return data[order], indices[order]

    if mat.indices_sorted or 0 in mat.indices.shape:
        return mat
    return BCOO(_for_each(one, mat), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None, *, remove_zeros: bool = True) -> BCOO:
    """Entries of one place summed into one, in the order of their indices, with room for nse of them.

    By default there is room for as many as there are; entries that have no room are lost. With remove_zeros zeros are
    no entries. Raises TypeError if nse is not given and the array is traced.
    """
    shape = sparse_shape(mat)

    def places(data: Any, indices: Any) -> tuple[Any, Any, Any]:
        kept = inside(indices, shape)
        if remove_zeros:
            kept &= (data != 0).any(axis=tuple(range(1, data.ndim)))
        indices = jnp.where(kept[:, None], indices, jnp.array(shape, indices.dtype))
        data = values_where(kept, data)
        if 0 in indices.shape:
            return data, indices, jnp.zeros(len(data), np.int32)
        order = _order(indices)
        data, indices = data[order], indices[order]
        new = (indices[1:] != indices[:-1]).any(axis=-1)
        number = jnp.concatenate([jnp.zeros(min(1, len(order)), np.int32), jnp.cumsum(new, dtype=np.int32)])
        return data, indices, number

    data, indices, number = _for_each(places, mat)
    if nse is None:
        if isinstance(number, Tracer):
            raise TypeError(
                "bcoo_sum_duplicates: argument 'nse', the number of entries, must be given inside jit and other "
                "transformations, where it cannot be counted"
            )
        counted = inside(indices, shape)
        nse = int(np.where(counted, np.asarray(number) + 1, 0).max(initial=0))

    def one(data: Any, indices: Any, number: Any) -> tuple[Any, Any]:
        total = scatter(data, number[:, None], (nse, *data.shape[1:]))
        empty = jnp.broadcast_to(jnp.array(shape, indices.dtype), (nse, len(shape)))
        return total, empty.at[number].set(indices, mode="drop")

    for _ in range(mat.n_batch):
        one = vmap(one)
    return BCOO(one(data, indices, number), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Dimensions in another order; ValueError unless batch, sparse and dense ones stay among themselves."""
    order = [operator.index(p) for p in permutation]
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    parts = (order[:a], range(a)), (order[a:b], range(a, b)), (order[b:], range(b, mat.ndim))
    if any(sorted(found) != list(wanted) for found, wanted in parts):
        raise ValueError(
            f"bcoo_transpose: permutation {tuple(order)} must keep the {a} batch, {mat.n_sparse} sparse and "
            f"{mat.n_dense} dense dimensions among themselves"
        )
    data = mat.data.transpose(*order[:a], a, *[p - mat.n_sparse + 1 for p in order[b:]])
    indices = columns(mat.indices.transpose(*order[:a], a, a + 1), [p - a for p in order[a:b]])
    same = order[a:b] == list(range(a, b))
    return BCOO(
        (data, indices),
        shape=[mat.shape[p] for p in order],
        indices_sorted=mat.indices_sorted and same,
        unique_indices=mat.unique_indices,
    )


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over axes, each of them counted from the front."""
    axes = sorted({operator.index(a) for a in axes})
    if any(not 0 <= a < mat.ndim for a in axes):
        raise ValueError(f"bcoo_reduce_sum: axes {tuple(axes)} are out of bounds for {mat!r}")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    over_batch = [a for a in axes if a < first]
    over_sparse = [a for a in axes if first <= a < last]
    data, indices = full(mat) if over_batch else (mat.data, mat.indices)
    if over_sparse:
        data = jnp.broadcast_to(
            data, (*np.broadcast_shapes(data.shape[:first], indices.shape[:first]), *data.shape[first:])
        )
        data = values_where(inside(indices, sparse_shape(mat)), data)
    kept = [k for k in range(mat.n_sparse) if k + first not in over_sparse]
    indices = columns(indices, kept)
    over_dense = tuple(a - mat.n_sparse + 1 for a in axes if a >= last)
    if over_dense:
        data = data.sum(axis=over_dense)
    if over_batch:
        rest = [a for a in range(first) if a not in over_batch]
        data, indices = (
            x.transpose(*rest, *over_batch, *range(first, x.ndim)).reshape(
                *[x.shape[a] for a in rest], math.prod(x.shape[a] for a in (*over_batch, first)), *x.shape[first + 1 :]
            )
            for x in (data, indices)
        )
    return BCOO((data, indices), shape=[n for a, n in enumerate(mat.shape) if a not in axes])


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Any = None, sharding: Any = None) -> BCOO:
    """The elements in another shape, where one size may be -1.

    Raises ValueError for a shape of another size and for an array whose elements 32 bits cannot count without
    jax_enable_x64, NotImplementedError for batch and dense dimensions.
    """
    refuse_sharding("bcoo_reshape", "sharding", sharding)
    if dimensions is not None and list(dimensions) != list(range(mat.ndim)):
        raise NotImplementedError("bcoo_reshape: argument 'dimensions' is not supported")
    if mat.n_batch or mat.n_dense:
        raise NotImplementedError("bcoo_reshape of arrays with batch or dense dimensions is not supported")
    sizes = [operator.index(n) for n in new_sizes]
    asked = tuple(sizes)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = mat.size // max(-math.prod(sizes), 1)
    if min(sizes, default=0) < 0 or math.prod(sizes) != mat.size:
        raise ValueError(f"cannot reshape array of shape {mat.shape} (size {mat.size}) into shape {asked}")
    large = max(mat.size, *sizes, 0) > np.iinfo(np.int32).max  # padding lies at the size
    if large and not config.enable_x64.value:
        raise ValueError(
            f"bcoo_reshape of {mat.shape}: its {mat.size} elements are too many to be counted in 32 bits; set "
            'jax.config.update("jax_enable_x64", True)'
        )
    index_dtype = mat.indices.dtype
    if max(sizes, default=0) > np.iinfo(index_dtype).max:
        index_dtype = np.int64 if large else np.int32
    flat = jnp.zeros(mat.nse, np.int64 if large else np.int32)
    for k, n in enumerate(mat.shape):
        flat = flat * n + jnp.clip(mat.indices[:, k], 0, n)
    kept = inside(mat.indices, mat.shape)
    found = jnp.unravel_index(flat, sizes) if sizes else []
    indices = jnp.stack(found, axis=-1).astype(index_dtype) if sizes else jnp.zeros((mat.nse, 0), index_dtype)
    indices = jnp.where(kept[:, None], indices, jnp.array(sizes, index_dtype))
    data = mat.data if sizes else values_where(kept, mat.data)
    return BCOO((data, indices), shape=sizes, **mat.info)


def bcoo_broadcast_in_dim(
    mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCOO:
    """The array with new dimensions, and those of size 1 repeated, at increasing places.

    Raises ValueError where they do not fit, NotImplementedError for batch and dense dimensions.
    """
    refuse_sharding("bcoo_broadcast_in_dim", "sharding", sharding)
    if mat.n_batch or mat.n_dense:
        raise NotImplementedError("bcoo_broadcast_in_dim of arrays with batch or dense dimensions is not supported")
    sizes, places = tuple(shape), tuple(broadcast_dimensions)
    fits = len(places) == mat.ndim and all(0 <= p < len(sizes) for p in places)
    if not fits or any(n not in (1, sizes[p]) for n, p in zip(mat.shape, places, strict=True)):
        raise ValueError(f"bcoo_broadcast_in_dim: cannot bring {mat!r} to shape {sizes} with dimensions {places}")
    if any(p >= q for p, q in itertools.pairwise(places)):
        raise ValueError(f"bcoo_broadcast_in_dim: broadcast_dimensions {places} must increase")
    kept = {p for n, p in zip(mat.shape, places, strict=True) if n == sizes[p]}
    repeats = [1 if p in kept else n for p, n in enumerate(sizes)]
    new = jnp.stack([g.reshape(-1) for g in jnp.indices(repeats, mat.indices.dtype)], axis=-1)
    padding = inside(mat.indices, mat.shape)
    columns = []
    for p, n in enumerate(sizes):
        old = mat.indices[:, places.index(p)] if p in kept else jnp.zeros(mat.nse, mat.indices.dtype)
        columns.append(jnp.where(padding, old, n)[:, None] + new[None, :, p])
    indices = jnp.stack(columns, axis=-1).reshape(-1, len(sizes)) if sizes else jnp.zeros((mat.nse, 0), np.int32)
    data = jnp.repeat(mat.data, len(new), axis=0)
    return BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Arrays one after the other along a sparse dimension. ValueError if shapes do not fit."""
    first, *rest = operands
    if any((m.n_batch, m.n_dense, m.ndim) != (first.n_batch, first.n_dense, first.ndim) for m in rest):
        raise ValueError(f"bcoo_concatenate: layouts differ: {', '.join(map(repr, operands))}")
    if not first.n_batch <= dimension < first.n_batch + first.n_sparse:
        raise NotImplementedError("bcoo_concatenate along a batch or dense dimension is not supported")
    shapes = [(*m.shape[:dimension], *m.shape[dimension + 1 :]) for m in operands]
    if len(set(shapes)) > 1:
        raise ValueError(f"bcoo_concatenate: shapes {[m.shape for m in operands]} differ outside of {dimension}")
    total = sum(m.shape[dimension] for m in operands)
    column, start = dimension - first.n_batch, 0
    data, indices = [], []
    for mat in operands:
        values, places = full(mat)
        valid = inside(places, sparse_shape(mat))
        moved = jnp.where(valid, places[..., column] + start, total)
        data.append(values)
        indices.append(places.at[..., column].set(moved))
        start += mat.shape[dimension]
    shape = (*first.shape[:dimension], total, *first.shape[dimension + 1 :])
    joined = jnp.concatenate(data, first.n_batch), jnp.concatenate(indices, first.n_batch)
    return BCOO(joined, shape=shape, unique_indices=all(m.unique_indices for m in operands))


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without some dimensions of size 1; ValueError for others."""
    for d in dimensions:
        if not 0 <= d < arr.ndim or arr.shape[d] != 1:
            raise ValueError(f"bcoo_squeeze: dimension {d} of {arr!r} is not of size 1")
    return bcoo_reduce_sum(arr, axes=dimensions)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array backwards along some dimensions, which count from the end if negative; ValueError for others."""
    n = operand.ndim
    for d in dimensions:
        if not -n <= d < n:
            raise ValueError(f"bcoo_rev: dimension {d} is out of bounds for an array of {n} dimensions")
    backwards = {d % n for d in dimensions}
    return get(operand, tuple(slice(None, None, -1 if d in backwards else None) for d in range(n)))


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """mat[start:limit:stride] for each dimension."""
    steps = [1] * mat.ndim if strides is None else strides
    return get(mat, tuple(slice(*bounds) for bounds in zip(start_indices, limit_indices, steps, strict=True)))


def get(mat: BCOO, index: Any) -> BCOO:
    """mat[index] for integers, slices, None and an ellipsis; NotImplementedError for arrays."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if sum(p is Ellipsis for p in parts) == 0:
        parts.append(Ellipsis)
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > mat.ndim or sum(p is Ellipsis for p in parts) > 1:
        raise IndexError(f"index {index!r} has too many entries for {mat!r}")
    at = next(k for k, p in enumerate(parts) if p is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (mat.ndim - used)
    new: list[int] = []
    dropped: list[int] = []
    dim = 0
    for part in parts:
        if part is None:
            new.append(dim - len(dropped) + len(new))
            continue
        if isinstance(part, slice):
            mat = _sliced(mat, dim, part)
        else:
            mat = _sliced(mat, dim, _at(part, mat.shape[dim]))
            dropped.append(dim)
        dim += 1
    mat = bcoo_reduce_sum(mat, axes=dropped) if dropped else mat
    if not new:
        return mat
    shape = list(mat.shape)
    for d in new:
        shape.insert(d, 1)
    kept = [d for d in range(len(shape)) if d not in new]
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=kept)


def _at(part: Any, n: int) -> slice:
    try:
        k = operator.index(part)
    except TypeError:
        raise NotImplementedError(f"sparse arrays are indexed by integers and slices, not by {part!r}") from None
    if not -n <= k < n:
        raise IndexError(f"index {k} is out of bounds for a dimension of size {n}")
    return slice(k % n, k % n + 1)


def _sliced(mat: BCOO, dim: int, part: slice) -> BCOO:
    n = mat.shape[dim]
    chosen = range(*part.indices(n))
    if chosen == range(n):
        return mat
    shape = (*mat.shape[:dim], len(chosen), *mat.shape[dim + 1 :])
    column = dim - mat.n_batch
    if 0 <= column < mat.n_sparse:
        place = mat.indices[..., column] - chosen.start
        inner = (place % chosen.step == 0) & (mat.indices[..., column] >= 0) & (mat.indices[..., column] < n)
        place = place // chosen.step
        inner &= (place >= 0) & (place < len(chosen))
        indices = mat.indices.at[..., column].set(jnp.where(inner, place, len(chosen)))
        return BCOO((mat.data, indices), shape=shape)
    selected = (slice(None),) * (dim if column < 0 else mat.n_batch + 1 + column - mat.n_sparse) + (part,)
    data = mat.data if column < 0 and mat.data.shape[dim] == 1 else mat.data[selected]
    indices = mat.indices if column >= 0 or mat.indices.shape[dim] == 1 else mat.indices[selected]
    return BCOO((data, indices), shape=shape, **mat.info)
