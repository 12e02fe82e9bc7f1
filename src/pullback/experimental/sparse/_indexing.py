"""Parts of sparse arrays: slices, and elements at indices, which may be arrays.

As of dense arrays: integers outside of the array are moved into it, and arrays of integers broadcast. Their dimensions
are batch dimensions of the result where they come first; otherwise the result has sparse dimensions only.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api import vmap
from pullback.core.dimensions import index as size_of
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._layout import bcoo_update_layout
from pullback.experimental.sparse._sampled import bcoo_dynamic_slice
from pullback.experimental.sparse._shapes import bcoo_broadcast_in_dim
from pullback.experimental.sparse._structure import bcoo_reduce_sum, bcoo_squeeze, bcoo_transpose, cleared, fewer
from pullback.lax import GatherDimensionNumbers, GatherScatterMode


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array backwards along some dimensions, which count from the end if negative; TypeError for others."""
    n = operand.ndim
    for d in dimensions:
        if not -n <= d < n:
            raise TypeError(
                f"bcoo_rev: dimensions={tuple(dimensions)} has {d}, which an operand of {n} dimensions does not have"
            )
    backwards = {d % n for d in dimensions}
    for d in sorted(backwards):
        operand = _sliced(operand, d, slice(None, None, -1))
    return operand


def bcoo_slice(
    mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> BCOO:
    """mat[start:limit:stride] for each dimension, all within the array (ValueError)."""
    starts, limits = ([size_of(i) for i in given] for given in (start_indices, limit_indices))
    steps = [1] * mat.ndim if strides is None else [operator.index(i) for i in strides]
    if not len(starts) == len(limits) == len(steps) == mat.ndim or any(
        not 0 <= a <= b <= n or step < 1 for a, b, step, n in zip(starts, limits, steps, mat.shape, strict=True)
    ):
        raise ValueError(
            f"bcoo_slice: no part of shape={mat.shape} is from start_indices={starts} to limit_indices={limits} in "
            f"steps of strides={steps}"
        )
    for dim, bounds in enumerate(zip(starts, limits, steps, strict=True)):
        mat = _sliced(mat, dim, slice(*bounds))
    return fewer(cleared(mat))


def get(mat: BCOO, index: Any) -> BCOO:
    """mat[index] for integers, slices, None, an ellipsis, arrays of integers and known ones of booleans.

    Raises IndexError for too many indices, TypeError for what is no index.
    """
    whole = mat
    parts = list(index) if isinstance(index, tuple) else [index]
    parts = [k for part in parts for k in _part(part)]
    if sum(p is Ellipsis for p in parts) == 0:
        parts.append(Ellipsis)
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > mat.ndim or sum(p is Ellipsis for p in parts) > 1:
        raise IndexError(f"Too many indices: {used} for an array of {mat.ndim} dimensions, with at most one Ellipsis")
    at = next(k for k, p in enumerate(parts) if p is Ellipsis)
    parts[at : at + 1] = [slice(None)] * (mat.ndim - used)
    dims = list(range(mat.ndim))
    arrays = {}  # of each dimension that is indexed by an array
    new: list[int] = []  # dimensions of the result that are new
    gone: list[int] = []
    first = None  # where in the result the dimensions of arrays come
    groups = 0  # of arrays side by side
    before = False
    for part in parts:
        if part is None:
            new.append(len(new) + sum(d not in arrays and d not in gone for d in range(mat.ndim - len(dims))))
            before = False
            continue
        dim = dims.pop(0)
        if isinstance(part, slice):
            mat = _sliced(mat, dim, part)
        elif jnp.ndim(part) == 0 and not _is_traced(part):
            k, n = operator.index(part), mat.shape[dim]
            k = min(max(k + n if k < 0 else k, 0), max(n - 1, 0))
            mat = _sliced(mat, dim, slice(k, k + 1))
            gone.append(dim)
        else:
            arrays[dim] = part
            if first is None:
                first = len(new) + sum(d not in arrays and d not in gone for d in range(dim))
            groups += not before
        before = dim in arrays or (dim in gone and before)
    mat = fewer(mat if mat is whole else cleared(mat))
    if arrays:
        return _gathered(mat, arrays, gone, new, 0 if groups > 1 else first or 0)
    mat = fewer(bcoo_reduce_sum(mat, axes=gone)) if gone else mat
    return _with_new(mat, new)


def _is_traced(part: Any) -> bool:
    return not isinstance(part, (int, np.integer)) and not hasattr(part, "__array__")


def _part(part: Any) -> list[Any]:
    """One entry of an index as those that it stands for."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return [part]
    if isinstance(part, str):
        raise TypeError(f"JAX does not support string indexing; got idx={part!r}")
    if isinstance(part, (list, tuple)):
        raise TypeError(
            f"a list within an index is not read: {part!r}. jnp.array(seq) is an index of one dimension, tuple(seq) "
            "one of several."
        )
    part = part if isinstance(part, (int, np.integer)) and not isinstance(part, bool) else jnp.asarray(part)
    dtype = getattr(part, "dtype", np.dtype(int))
    if dtype == np.bool_:
        if part.ndim == 0:
            raise TypeError("sparse arrays are not indexed by a boolean alone")
        return [jnp.asarray(k) for k in np.nonzero(np.asarray(part))]
    if not np.issubdtype(dtype, np.integer):
        raise TypeError(f"an index of type {dtype} came; expected integers or booleans")
    return [part]


def bcoo_gather(
    operand: BCOO,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: Any = None,
    fill_value: Any = None,
) -> BCOO:
    """`lax.gather` from a sparse array: a slice at each index, whose dimensions are `offset_dims` of the result.

    Slices that reach out of the array are moved into it. Where the dimensions of indices come first they are batch
    dimensions, otherwise all are sparse. `unique_indices` and `indices_are_sorted` are promises that nothing needs.
    Raises NotImplementedError for mode 'fill' and for batching dimensions, TypeError for what is no sparse array,
    ValueError for sizes that do not fit.
    """
    if not isinstance(operand, BCOO):
        raise TypeError(f"bcoo_gather: argument 'operand' must be a BCOO array, got {type(operand)}")
    parsed = GatherScatterMode.from_any(mode)
    if parsed == GatherScatterMode.FILL_OR_DROP and mode is not None:
        raise NotImplementedError(f"bcoo_gather: argument 'mode' is {mode!r}, which sparse arrays do not have")
    numbers = dimension_numbers
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: argument 'dimension_numbers' has batching dimensions")
    sizes = [size_of(n) for n in slice_sizes]
    if len(sizes) != operand.ndim or any(not 0 <= n <= most for n, most in zip(sizes, operand.shape)):
        raise ValueError(f"bcoo_gather: slice_sizes={tuple(sizes)} do not fit an array of shape {operand.shape}")
    gone = sorted(numbers.collapsed_slice_dims)
    if any(sizes[d] != 1 for d in gone):
        raise ValueError(f"bcoo_gather: slice_sizes={tuple(sizes)} must be 1 in collapsed_slice_dims={tuple(gone)}")
    indices = jnp.asarray(start_indices)
    if indices.shape[-1:] != (len(numbers.start_index_map),):
        raise ValueError(
            f"bcoo_gather: start_indices of shape {indices.shape} must end in a dimension of size "
            f"{len(numbers.start_index_map)}, as start_index_map={tuple(numbers.start_index_map)}"
        )

    def one(at: Any) -> tuple[Any, Any]:
        starts: list[Any] = [0] * operand.ndim
        for k, d in enumerate(numbers.start_index_map):
            starts[d] = jnp.clip(at[k], 0, operand.shape[d] - sizes[d]) if mode is not None else at[k]
        found = fewer(bcoo_squeeze(bcoo_dynamic_slice(operand, starts, sizes), dimensions=gone))
        return found.data, found.indices

    batch = indices.shape[:-1]
    for _ in batch:
        one = vmap(one)  # type: ignore[assignment]
    data, places = one(indices)
    kept = tuple(n for d, n in enumerate(sizes) if d not in gone)
    out = BCOO((data, places), shape=(*batch, *kept))
    offset = sorted(numbers.offset_dims)
    if offset == list(range(len(batch), out.ndim)):
        return out
    out = bcoo_update_layout(out, n_batch=0, n_dense=0, on_inefficient=None)
    first = iter(range(len(batch)))
    last = iter(range(len(batch), out.ndim))
    return bcoo_transpose(out, permutation=[next(last) if d in offset else next(first) for d in range(out.ndim)])


def _gathered(mat: BCOO, arrays: dict[int, Any], gone: list[int], new: list[int], first: int) -> BCOO:
    """mat at arrays of indices, their dimensions at `first` of the result."""
    picked = sorted(arrays)
    indices = jnp.broadcast_arrays(*[jnp.asarray(arrays[d]) for d in picked])
    shape = indices[0].shape
    sizes = [1 if d in arrays else n for d, n in enumerate(mat.shape)]

    def one(*at: Any) -> tuple[Any, Any]:
        starts: list[Any] = [0] * mat.ndim
        for d, k in zip(picked, at, strict=True):
            starts[d] = jnp.where(k < 0, k + mat.shape[d], k)
        found = fewer(bcoo_reduce_sum(bcoo_dynamic_slice(mat, starts, sizes), axes=sorted([*picked, *gone])))
        return found.data, found.indices

    flat = [k.reshape(-1) for k in indices]
    data, places = vmap(one)(*flat)
    left = tuple(n for d, n in enumerate(mat.shape) if d not in arrays and d not in gone)
    data, places = (x.reshape(*shape, *x.shape[1:]) for x in (data, places))
    out = BCOO((data, places), shape=(*shape, *left))
    kept_before = first - sum(d < first for d in new)
    if kept_before and shape:
        out = bcoo_update_layout(out, n_batch=0, n_dense=0, on_inefficient=None)
        n = len(shape)
        order = [*range(n, n + kept_before), *range(n), *range(n + kept_before, out.ndim)]
        out = bcoo_transpose(out, permutation=order)
    return _with_new(out, [d if d <= first else d + len(shape) for d in new])


def _with_new(mat: BCOO, new: Sequence[int]) -> BCOO:
    if not new:
        return mat
    shape = list(mat.shape)
    for d in new:
        shape.insert(d, 1)
    return bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=[d for d in range(len(shape)) if d not in new])


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


__all__ = ["bcoo_gather", "bcoo_rev", "bcoo_slice", "get"]
