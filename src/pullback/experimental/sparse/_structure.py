"""What changes where the entries of a sparse array lie, not their values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api import vmap
from pullback.core import Tracer
from pullback.experimental.sparse._bcoo import BCOO


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


def cleared(mat: BCOO) -> BCOO:
    """The array with zeros in padding, whose places are its size in all sparse dimensions, as in JAX."""
    if not mat.n_sparse or not mat.nse:
        return mat
    within = inside(mat.indices, sparse_shape(mat))
    places = jnp.where(within[..., None], mat.indices, jnp.array(sparse_shape(mat), mat.indices.dtype))
    data = jnp.where(within.reshape(within.shape + (1,) * mat.n_dense), mat.data, jnp.zeros((), mat.dtype))
    return BCOO((data, places), shape=mat.shape, **mat.info)


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


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None, *, remove_zeros: bool = False) -> BCOO:
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
            raise ValueError(
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


def fewer(mat: BCOO) -> BCOO:
    """The array with room for no more entries than it has sparse places."""
    most = math.prod(sparse_shape(mat))
    return bcoo_sum_duplicates(mat, most, remove_zeros=False) if mat.nse > most else mat


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Dimensions in another order; NotImplementedError unless batch, sparse and dense ones stay among themselves."""
    order = [operator.index(p) for p in permutation]
    a, b = mat.n_batch, mat.n_batch + mat.n_sparse
    parts = (order[:a], range(a)), (order[a:b], range(a, b)), (order[b:], range(b, mat.ndim))
    if any(sorted(found) != list(wanted) for found, wanted in parts):
        kind = TypeError if sorted(order) != list(range(mat.ndim)) else NotImplementedError
        raise kind(
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


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without some dimensions of size 1, which count from the end if negative; ValueError for others."""
    for d in dimensions:
        if not -arr.ndim <= d < arr.ndim:
            raise ValueError(f"bcoo_squeeze: dimension {d} is out of bounds: the array has {arr.ndim}")
        if arr.shape[d] != 1:
            raise ValueError(
                f"bcoo_squeeze: only dimensions of size 1 can be left out; dimension {d} of shape={arr.shape} has "
                f"{arr.shape[d]}"
            )
    found = bcoo_reduce_sum(arr, axes=[d % arr.ndim for d in dimensions])
    return BCOO((found.data, found.indices), shape=found.shape, **arr.info)
