"""From NumPy's index expressions to slice, reverse, dynamic_slice, gather and scatter.

`parse` turns what stands between the brackets into one entry for each axis of the operand and each new axis:

    New()                       None: a new axis of length 1
    Slice(axis, start, size, step)   static; start is the first element taken
    At(axis, index)             one element; index is an int or an integer scalar array
    Advanced(axis, index)       an integer array; axis None for a scalar boolean, which only adds an axis of length 0 or
    1

Reading takes the cheapest form: static entries are views (slice, rev, squeeze), traced scalars a dynamic_slice of
that view, arrays a gather of it. Writing is a dynamic_update_slice where the place is static and contiguous, and a
scatter elsewhere.

Indices out of bounds: reading takes the nearest element, writing leaves them out, unless `mode` says otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Array as AnyArray
from pullback.core import Tracer
from pullback.numpy._arguments import (
    PYTHON_SCALARS,
    Array,
    as_array,
    broadcast_shapes_of,
    broadcast_to,
    convert,
    is_arraylike,
    make_array,
    promote_dtypes,
)
from pullback.util import dtypes
from pullback.util.errors import NonConcreteBooleanIndexError

Mode = lax.GatherScatterMode
_INT32 = np.dtype(np.int32)


@dataclasses.dataclass(slots=True)
class New:
    """A new axis of length 1."""


@dataclasses.dataclass(slots=True)
class Slice:
    """Elements start, start + step, ... of an axis, `size` in all."""

    axis: int
    start: int
    size: int
    step: int


@dataclasses.dataclass(slots=True)
class At:
    """One element of an axis, which vanishes."""

    axis: int
    index: Any


@dataclasses.dataclass(slots=True)
class Advanced:
    """Elements of an axis numbered by an integer array of rank 1 or more."""

    axis: int | None
    index: Any


Entry = New | Slice | At | Advanced


# ---- what stands between the brackets


def parse(shape: tuple[int, ...], index: Any) -> list[Entry]:
    """One entry for each axis of the shape and each new axis, in order.

    Raises IndexError for too many indices, a second ellipsis, or a boolean mask of another shape; TypeError for lists,
    strings and floats; NonConcreteBooleanIndexError for traced masks.
    """
    if not isinstance(index, tuple):
        if isinstance(index, (list, str)) or (isinstance(index, Sequence) and not is_arraylike(index)):
            raise _not_an_index(index)
        index = (index,)
    items = [_item(x, position) for position, x in enumerate(index)]
    consumed = sum(_consumed(x) for x in items)
    ellipses = sum(x is Ellipsis for x in items)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    rank = len(shape)
    if consumed > rank:
        raise IndexError(f"Too many indices: array is {rank}-dimensional, but {consumed} were indexed")
    if not ellipses:
        items.append(Ellipsis)
    entries: list[Entry] = []
    axis = 0
    for position, item in enumerate(items):
        if item is Ellipsis:
            for _ in range(rank - consumed):
                entries.append(Slice(axis, 0, shape[axis], 1))
                axis += 1
        elif item is None:
            entries.append(New())
        elif isinstance(item, slice):
            entries.append(_slice(axis, shape[axis], item, position))
            axis += 1
        elif isinstance(item, int):
            entries.append(At(axis, item))
            axis += 1
        elif item.dtype == np.bool_:
            entries.extend(_mask(axis, shape, item, position))
            axis += item.ndim
        else:
            entries.append(At(axis, item) if item.ndim == 0 else Advanced(axis, item))
            axis += 1
    return entries


def _not_an_index(index: Any) -> TypeError:
    if isinstance(index, str):
        return TypeError(f"JAX does not support string indexing; got idx={index!r}")
    return TypeError(
        "Using a non-tuple sequence for multidimensional indexing is not allowed; "
        "use `arr[array(seq)]` instead of `arr[seq]`."
    )


def _item(x: Any, position: int) -> Any:
    """None, Ellipsis, a slice, a Python int, or an integer or boolean array (Array, Tracer or NumPy)."""
    if x is None or x is Ellipsis or type(x) is int or isinstance(x, slice):
        return x
    if isinstance(x, (bool, np.bool_)):
        return np.asarray(bool(x))
    if isinstance(x, np.integer):
        return int(x)
    if isinstance(x, str):
        raise _not_an_index(x)
    if isinstance(x, (list, tuple)):
        x = np.asarray(x, dtype=np.int32) if not x else _from_list(x)
    elif not isinstance(x, (Array, Tracer, np.ndarray)):
        if isinstance(x, (float, complex)):
            raise _wrong_type(np.asarray(x).dtype, position, x)
        if hasattr(x, "__jax_array__"):
            x = x.__jax_array__()
        elif hasattr(x, "__index__"):
            return operator.index(x)
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or boolean arrays are "
                "valid "
                f"indices. Got {x}"
            )
    if not (x.dtype == np.bool_ or dtypes.issubdtype(x.dtype, np.integer)):
        raise _wrong_type(x.dtype, position, x)
    return x


def _from_list(x: Any) -> Any:
    from pullback.numpy._creation import asarray

    return asarray(x)


def _wrong_type(dtype: Any, position: int, x: Any) -> TypeError:
    return TypeError(
        f"Indexer must have integer or boolean type, got indexer with type {dtype} at position {position}, indexer "
        f"value {x}"
    )


def _consumed(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, (slice, int)):
        return 1
    return item.ndim if item.dtype == np.bool_ else 1


def _slice(axis: int, length: int, item: slice, position: int) -> Slice:
    parts = (item.start, item.stop, item.step)
    for part in parts:
        if isinstance(part, Tracer) and part.to_concrete() is None:
            raise IndexError(
                "Slice entries must be static integers. "
                f"Got slice{parts} at position {position}; use lax.dynamic_slice for a start that is traced"
            )
    start, stop, step = slice(*(None if p is None else operator.index(p) for p in parts)).indices(length)
    size = len(range(start, stop, step))
    return Slice(axis, start if size else 0, size, step if size > 1 else 1)


def _mask(axis: int, shape: tuple[int, ...], mask: Any, position: int) -> list[Entry]:
    """A boolean array as the integer arrays of its True elements, one an axis."""
    if isinstance(mask, Tracer):
        concrete = mask.to_concrete()
        if concrete is None:
            raise NonConcreteBooleanIndexError(mask)
        mask = concrete
    mask = np.asarray(mask)
    if mask.ndim == 0:
        return [Advanced(None, np.zeros((int(mask),), np.int32))]
    expected = shape[axis : axis + mask.ndim]
    if mask.shape != tuple(expected):
        raise IndexError(
            f"boolean index did not match shape of indexed array in index {position}: got {mask.shape}, "
            f"expected {list(expected)}"
        )
    return [Advanced(axis + k, where_true.astype(np.int32)) for k, where_true in enumerate(np.nonzero(mask))]


# ---- helpers of reading and writing


def _mode(mode: Any, default: Any) -> Any:
    if mode is None:
        return default
    if isinstance(mode, str):
        found = {
            "clip": Mode.CLIP,
            "fill": Mode.FILL_OR_DROP,
            "drop": Mode.FILL_OR_DROP,
            "promise_in_bounds": Mode.PROMISE_IN_BOUNDS,
        }.get(mode)
        if found is None:
            raise ValueError(f'Unknown gather mode "{mode}"; expected "clip", "fill", "drop" or "promise_in_bounds"')
        return found
    return mode


def _static(entries: list[Entry]) -> bool:
    return all(not isinstance(e, Advanced) and (not isinstance(e, At) or type(e.index) is int) for e in entries)


def _inside(index: int, length: int, wrap: bool) -> int:
    """The static index from 0 to length - 1 nearest to the one given."""
    if index < 0 and wrap:
        index += length
    return min(max(index, 0), length - 1)


def _is_inside(index: int, length: int, wrap: bool) -> bool:
    return (-length if wrap else 0) <= index < length


def concrete_index(index: Any) -> np.ndarray | None:
    """The NumPy value of an index that is known now, else None."""
    if isinstance(index, (int, np.ndarray)):
        return np.asarray(index)
    if isinstance(index, Array):
        return np.asarray(index)
    return None


def _normalize_known(index: np.ndarray, length: int, wrap: bool) -> tuple[np.ndarray, bool]:
    dtype = np.dtype(np.int32 if length < 2**31 - 1 else np.int64)
    if index.size == 0:
        return index.astype(dtype), True
    low, high = int(index.min()), int(index.max())
    if low >= 0 and high < length:
        return index.astype(dtype, copy=False), True
    # What is far out of bounds must stay so in fewer bits.
    wide = index if index.dtype != np.uint64 else np.minimum(index, np.uint64(2**62))
    wide = wide.astype(np.int64, copy=False)
    if wrap:
        wide = np.where(wide < 0, wide + length, wide)
    inside = (low >= -length if wrap else low >= 0) and high < length
    return np.clip(wide, -1, max(length, 1)).astype(dtype), inside


def normalize(index: Any, length: int, wrap: bool) -> tuple[Any, bool]:
    """(int32 or int64 index with negative ones counted from the end, whether it is known to be in bounds)."""
    known = concrete_index(index)
    if known is not None:
        return _normalize_known(known, length, wrap)
    unsigned = dtypes.issubdtype(index.dtype, np.unsignedinteger)
    if unsigned:
        bits = dtypes.iinfo(index.dtype).bits
        if bits >= 32:
            index = lax.min(index, lax.full_like(index, 2**31 - 1))
        return convert(index, _INT32), False
    if dtypes.iinfo(index.dtype).bits < 32:
        index = convert(index, _INT32)
    elif index.aval.weak_type:
        index = convert(index, index.dtype)
    if wrap:
        negative = lax.lt(index, lax.full_like(index, 0))
        index = lax.select(negative, lax.add(index, lax.full_like(index, length)), index)
    return index, False


def _view(x: Any, entries: list[Entry], wrap: bool) -> Any:
    """x with all static entries applied but nothing squeezed: axes of static At entries have length 1."""
    rank = x.ndim
    starts, limits, strides, reversed_axes = [0] * rank, list(x.shape), [1] * rank, []
    for e in entries:
        if isinstance(e, Slice):
            if e.step > 0:
                starts[e.axis], strides[e.axis] = e.start, e.step
                limits[e.axis] = e.start + (e.size - 1) * e.step + 1 if e.size else e.start
            else:
                last = e.start + (e.size - 1) * e.step
                starts[e.axis], limits[e.axis], strides[e.axis] = last, e.start + 1, -e.step
                reversed_axes.append(e.axis)
        elif isinstance(e, At) and type(e.index) is int:
            starts[e.axis] = _inside(e.index, x.shape[e.axis], wrap)
            limits[e.axis] = starts[e.axis] + 1
    if limits != list(x.shape) or any(starts) or any(s != 1 for s in strides):
        x = lax.slice(x, tuple(starts), tuple(limits), tuple(strides) if any(s != 1 for s in strides) else None)
    return lax.rev(x, tuple(reversed_axes)) if reversed_axes else x


def _drop_and_add(x: Any, entries: list[Entry]) -> Any:
    """x without the axes of At entries, with the new axes."""
    dropped = tuple(e.axis for e in entries if isinstance(e, At))
    if dropped:
        x = lax.squeeze(x, dropped)
    left = [e for e in entries if not isinstance(e, At)]
    added = tuple(k for k, e in enumerate(left) if isinstance(e, New))
    return lax.expand_dims(x, added) if added else x


# ---- reading


def rewriting_take(x: Any, index: Any) -> Any:
    """x[index], by NumPy's rules; indices out of bounds take the nearest element."""
    if x.ndim:
        kind = type(index)
        n = x.shape[0]
        if kind is int and n:
            return lax.index_in_dim(x, _inside(index, n, True), 0, keepdims=False)
        if (kind is Array or kind is np.ndarray) and n and index.ndim and index.dtype.kind in "iu":
            return _take_rows(x, index)
    return index_get(x, index)


@functools.lru_cache(maxsize=256)
def _row_numbers(rank: int, index_rank: int) -> Any:
    return lax.GatherDimensionNumbers(
        offset_dims=tuple(range(index_rank, index_rank + rank - 1)), collapsed_slice_dims=(0,), start_index_map=(0,)
    )


def _take_rows(x: Any, index: Any) -> Any:
    """x[index] for one integer array that is known now: the general way, with fewer steps."""
    component, inside = _normalize_known(np.asarray(index), x.shape[0], True)
    return lax.gather(
        x,
        make_array(component.reshape((*component.shape, 1))),
        _row_numbers(x.ndim, component.ndim),
        (1, *x.shape[1:]),
        mode=Mode.PROMISE_IN_BOUNDS if inside else Mode.CLIP,
    )


def index_get(
    x: Any,
    index: Any,
    *,
    mode: Any = None,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Any:
    """x[index] with the options of `x.at[index].get`."""
    x = as_array(x)
    wrap = wrap_negative_indices
    entries = parse(x.shape, index)
    how = _mode(mode, Mode.CLIP)
    at = [e for e in entries if isinstance(e, At)]
    for e in at:
        if x.shape[e.axis] == 0 and how is not Mode.FILL_OR_DROP:
            raise IndexError(f"index is out of bounds for axis {e.axis} with size 0")
    filling = how is Mode.FILL_OR_DROP and not all(
        type(e.index) is int and _is_inside(e.index, x.shape[e.axis], wrap) for e in at
    )
    advanced = [e for e in entries if isinstance(e, Advanced)]
    if not advanced and not filling:
        x = _view(x, entries, wrap)
        traced = [e for e in at if type(e.index) is not int]
        if traced:
            starts: list[Any] = [make_array(0, _INT32)] * x.ndim
            sizes = list(x.shape)
            for e in traced:
                starts[e.axis], _ = normalize(e.index, x.shape[e.axis], wrap)
                starts[e.axis] = as_array(starts[e.axis])
                sizes[e.axis] = 1
            wide = any(s.dtype != _INT32 for s in starts)
            if wide:
                starts = [convert(s, np.dtype(np.int64)) for s in starts]
            x = _dynamic_slice(x, starts, sizes)
        return _drop_and_add(x, entries)
    # Static slices first, as views; all that is left are whole axes, new axes and indices.
    view = _view(x, [e for e in entries if isinstance(e, Slice)], wrap)
    return _gather(view, entries, how, fill_value, indices_are_sorted, unique_indices, wrap)


def _dynamic_slice(x: Any, starts: list[Any], sizes: list[int]) -> Any:
    # Negative starts have been dealt with; lax would wrap them a second time, so they are clamped to 0 here.
    starts = [s if isinstance(s, np.ndarray) else lax.max(s, lax.full_like(s, 0)) for s in starts]
    return lax.dynamic_slice(x, starts, tuple(sizes))


@dataclasses.dataclass(slots=True)
class _Layout:
    """How the axes of x[index] arise.

    index_shape: shape of the index arrays, all broadcast. parts: for each axis of the result ("batch", k) for axis k
    of the index arrays, ("window", axis) for an axis of the operand, or ("new", 0).
    """

    index_shape: tuple[int, ...]
    parts: list[tuple[str, int]]


def _layout(entries: list[Entry], strided: bool = False) -> _Layout:
    """By NumPy's rule: the axes of the index arrays stand where the arrays stand if these are neighbours, else in
    front.

    With `strided`, slices of a step other than 1 are index arrays of an axis of their own.
    """
    has_arrays = any(isinstance(e, Advanced) for e in entries)
    is_index = [isinstance(e, Advanced) or (has_arrays and isinstance(e, At)) for e in entries]
    where_index = [k for k, flag in enumerate(is_index) if flag]
    index_shapes = [np.shape(e.index) for e in entries if isinstance(e, Advanced) or (has_arrays and isinstance(e, At))]
    shape = broadcast_shapes_of("indexing", index_shapes)
    neighbours = bool(where_index) and where_index[-1] - where_index[0] + 1 == len(where_index)
    block = [("batch", k) for k in range(len(shape))]
    parts: list[tuple[str, int]] = []
    own_axis = len(shape)
    if has_arrays and not neighbours:
        parts.extend(block)
    for k, e in enumerate(entries):
        if isinstance(e, New):
            parts.append(("new", 0))
        elif isinstance(e, Slice):
            if strided and e.step != 1:
                parts.append(("batch", own_axis))
                own_axis += 1
            else:
                parts.append(("window", e.axis))
        elif has_arrays and neighbours and k == where_index[0]:
            parts.extend(block)
    return _Layout(shape, parts)


def _index_vectors(components: list[tuple[Any, tuple[int, ...]]], shape: tuple[int, ...]) -> Any:
    """The index vectors of gather or scatter, shape (*shape, len(components)).

    Each component is an integer array and the axes of `shape` that its axes lie along.
    """
    if all(isinstance(c, np.ndarray) for c, _ in components):
        columns = [np.broadcast_to(_spread_numpy(c, axes, len(shape)), shape) for c, axes in components]
        dtype = np.result_type(*(c.dtype for c in columns)) if columns else np.dtype(np.int32)
        return make_array(np.stack(columns, -1).astype(dtype) if columns else np.zeros((*shape, 0), np.int32), None)
    dtype = np.dtype(np.int64) if any(np.dtype(c.dtype) == np.int64 for c, _ in components) else _INT32
    if len(components) == 1 and components[0][0].shape == shape:
        c = convert(as_array(components[0][0]), dtype)
        return lax.broadcast_in_dim(c, (*shape, 1), tuple(range(len(shape))))
    columns = []
    for c, axes in components:
        c = convert(as_array(c), dtype)
        kept = [k for k, n in enumerate(c.shape) if n == shape[axes[k]]]
        c = lax.squeeze(c, tuple(k for k in range(c.ndim) if k not in kept)) if len(kept) < c.ndim else c
        columns.append(lax.broadcast_in_dim(c, (*shape, 1), tuple(axes[k] for k in kept)))
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(shape))


def _spread_numpy(c: np.ndarray, axes: tuple[int, ...], rank: int) -> np.ndarray:
    shape = [1] * rank
    for k, axis in enumerate(axes):
        shape[axis] = c.shape[k]
    return c.reshape(shape)


def _axes_of(index: Any, rank: int) -> tuple[int, ...]:
    """Broadcasting aligns the last axes."""
    n = np.ndim(index)
    return tuple(range(rank - n, rank))


def _gather(
    x: Any, entries: list[Entry], how: Any, fill_value: Any, is_sorted: bool, is_unique: bool, wrap: bool
) -> Any:
    layout = _layout(entries)
    rank = len(layout.index_shape)
    components, indexed, inside = [], [], True
    for e in entries:
        if isinstance(e, (At, Advanced)) and e.axis is not None:
            component, known_inside = normalize(e.index, x.shape[e.axis], wrap)
            components.append((component, _axes_of(e.index, rank)))
            indexed.append(e.axis)
            inside = inside and known_inside
    batch_shape = layout.index_shape
    result_parts = [p for p in layout.parts if p[0] != "new"]
    if not indexed:  # only scalar booleans
        x = lax.broadcast_in_dim(x, batch_shape + x.shape, tuple(range(len(batch_shape), len(batch_shape) + x.ndim)))
        order = tuple(number if kind == "batch" else len(batch_shape) + number for kind, number in result_parts)
        x = lax.transpose(x, order)
    else:
        if any(x.shape[a] == 0 for a in indexed) and how is not Mode.FILL_OR_DROP and np.prod(batch_shape, dtype=int):
            raise IndexError(f"index is out of bounds for an axis of size 0, in an array of shape {x.shape}")
        dimension_numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(k for k, (kind, _) in enumerate(result_parts) if kind == "window"),
            collapsed_slice_dims=tuple(sorted(indexed)),
            start_index_map=tuple(indexed),
        )
        x = lax.gather(
            x,
            _index_vectors(components, batch_shape),
            dimension_numbers,
            tuple(1 if k in indexed else n for k, n in enumerate(x.shape)),
            unique_indices=is_unique,
            indices_are_sorted=is_sorted,
            mode=Mode.PROMISE_IN_BOUNDS if inside else how,
            fill_value=fill_value,
        )
    added = tuple(k for k, (kind, _) in enumerate(layout.parts) if kind == "new")
    return lax.expand_dims(x, added) if added else x


# ---- writing

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add,
    "subtract": lax.sub,
    "multiply": lax.mul,
    "min": lax.min,
    "max": lax.max,
}
_SCATTER: dict[str, Callable[..., Any]] = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "subtract": lax.scatter_sub,
    "multiply": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def index_update(
    x: Any,
    index: Any,
    y: Any,
    op: str,
    *,
    mode: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Any:
    """x with `op` (set, add, subtract, multiply, min, max) of y applied at x[index]; dtype of x.

    Raises ValueError if y cannot be broadcast to the shape of x[index]; warns (FutureWarning) if y's dtype does not
    promote to x's.
    """
    if not is_arraylike(y):
        from pullback.numpy._creation import asarray

        y = asarray(y)
    x = as_array(x)
    dtype, weak = x.dtype, x.aval.weak_type
    x, y = _common_dtype(x, y, op)
    entries = parse(x.shape, index)
    how = _mode(mode, Mode.FILL_OR_DROP)
    result = None
    if op == "set" or op in _COMBINE:
        result = _update_static(x, entries, y, op, how, wrap_negative_indices)
    if result is None:
        indices, updates, numbers, flags = _scatter_arguments(
            x, entries, y, indices_are_sorted, unique_indices, wrap_negative_indices
        )
        if updates.size == 0:
            result = x
        else:
            how = Mode.PROMISE_IN_BOUNDS if flags.pop("inside") else how
            result = _SCATTER[op](x, indices, updates, numbers, mode=how, **flags)
    return _back_to(result, dtype, weak)


def _back_to(x: Any, dtype: Any, weak: bool) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating) and not dtypes.issubdtype(dtype, np.complexfloating):
        warnings.warn(
            "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, stacklevel=4
        )
        x = lax.real(x)
    return convert(x, dtype, weak)


def _common_dtype(x: Any, y: Any, op: str) -> tuple[Any, Any]:
    """x and y in the dtype in which they are combined."""
    if type(y) in (bool, int, float, complex) or not isinstance(y, AnyArray) or y.aval is not x.aval:  # type: ignore[attr-defined]
        common = dtypes.lattice_result_type(x, y)[0]
        if common != x.dtype:
            warnings.warn(
                "scatter inputs have incompatible types: cannot safely cast value "
                f"from dtype={dtypes.dtype_of(y)} to dtype={x.dtype} with jax_numpy_dtype_promotion=standard. "
                "In future JAX releases this will result in an error.",
                FutureWarning,
                stacklevel=4,
            )
            if op == "set" and not dtypes.issubdtype(common, np.complexfloating):
                return x, convert(as_array(y), x.dtype)
            return tuple(promote_dtypes(x, y))  # type: ignore[return-value]
        if isinstance(y, PYTHON_SCALARS) and not isinstance(y, np.generic):
            return convert(x, x.dtype), convert(y, x.dtype)
        return convert(x, x.dtype), convert(as_array(y), x.dtype)
    return x, y


def _update_static(x: Any, entries: list[Entry], y: Any, op: str, how: Any, wrap: bool) -> Any:
    """The update where the place is static and contiguous; None where it is not."""
    if not _static(entries) or any(isinstance(e, Slice) and e.step != 1 for e in entries):
        return None
    starts, sizes, result_shape = [0] * x.ndim, [1] * x.ndim, []
    for e in entries:
        if isinstance(e, At):
            if not _is_inside(e.index, x.shape[e.axis], wrap):
                if how is Mode.FILL_OR_DROP:
                    broadcast_to(y, _result_shape(x, entries))
                    return x
                if x.shape[e.axis] == 0:
                    raise IndexError(f"index {e.index} is out of bounds for axis {e.axis} with size 0")
            starts[e.axis] = _inside(e.index, x.shape[e.axis], wrap)
        elif isinstance(e, Slice):
            starts[e.axis], sizes[e.axis] = e.start, e.size
            result_shape.append(e.size)
        else:
            result_shape.append(1)
    value = broadcast_to(y, result_shape)
    if value.size == 0:
        return x
    if value.shape != tuple(sizes):
        value = lax.reshape(value, tuple(sizes))
    if op != "set":
        limits = tuple(s + n for s, n in zip(starts, sizes))
        piece = x if tuple(sizes) == x.shape else lax.slice(x, tuple(starts), limits, None)
        value = _COMBINE[op](piece, value)
    if tuple(sizes) == x.shape:
        return value
    return lax.dynamic_update_slice(x, value, tuple(starts))


def _result_shape(x: Any, entries: list[Entry]) -> tuple[int, ...]:
    return tuple(e.size if isinstance(e, Slice) else 1 for e in entries if not isinstance(e, At))


def _scatter_arguments(
    x: Any, entries: list[Entry], y: Any, is_sorted: bool, is_unique: bool, wrap: bool
) -> tuple[Any, Any, Any, dict[str, bool]]:
    """(index vectors, updates, dimension numbers, flags) of the scatter that writes y to x[entries].

    `y` None stands for updates of zeros.
    """
    layout = _layout(entries, strided=True)
    index_rank = len(layout.index_shape)
    sizes = {e.axis: e.size for e in entries if isinstance(e, Slice)}
    own = [e for e in entries if isinstance(e, Slice) and e.step != 1]
    batch_lengths = [*layout.index_shape, *(e.size for e in own)]
    # The axes of the index vectors stand in the order in which they stand in the updates.
    order = [number for kind, number in layout.parts if kind == "batch"]
    place = {number: k for k, number in enumerate(order)}
    batch_shape = tuple(batch_lengths[number] for number in order)
    has_arrays = any(isinstance(e, Advanced) for e in entries)
    components: list[tuple[Any, tuple[int, ...]]] = []
    indexed, inserted, inside = [], [], True
    next_own = index_rank
    for e in entries:
        if isinstance(e, (At, Advanced)):
            if e.axis is None:
                continue
            component, known_inside = normalize(e.index, x.shape[e.axis], wrap)
            inside = inside and known_inside
            components.append((component, tuple(place[k] for k in _axes_of(e.index, index_rank))))
            indexed.append(e.axis)
            inserted.append(e.axis)
        elif isinstance(e, Slice) and e.step != 1:
            component = (e.start + e.step * np.arange(e.size)).astype(np.int32)
            components.append((component, (place[next_own],)))
            next_own += 1
            indexed.append(e.axis)
            inserted.append(e.axis)
        elif isinstance(e, Slice) and (e.start != 0 or e.size != x.shape[e.axis]):
            components.append((np.asarray(e.start, np.int32), ()))
            indexed.append(e.axis)
    indices = _index_vectors(components, batch_shape)
    lengths = [
        batch_lengths[number] if kind == "batch" else sizes[number] if kind == "window" else 1
        for kind, number in layout.parts
    ]
    updates = lax.full(tuple(lengths), 0, x.dtype) if y is None else broadcast_to(y, lengths)
    new = tuple(k for k, (kind, _) in enumerate(layout.parts) if kind == "new")
    if new:
        updates = lax.squeeze(updates, new)
    parts = [p for p in layout.parts if p[0] != "new"]
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(k for k, (kind, _) in enumerate(parts) if kind == "window"),
        inserted_window_dims=tuple(sorted(inserted)),
        scatter_dims_to_operand_dims=tuple(indexed),
    )
    flags = {
        "indices_are_sorted": is_sorted or (not has_arrays and all(e.step > 0 for e in own)),
        "unique_indices": is_unique or not has_arrays,
        "inside": inside,
    }
    return indices, updates, numbers, flags


def index_apply(
    x: Any,
    index: Any,
    function: Callable[[Any], Any],
    *,
    mode: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    wrap_negative_indices: bool = True,
) -> Any:
    """x with the function applied to x[index], once for each time an element is named."""
    x = as_array(x)
    entries = parse(x.shape, index)
    indices, updates, numbers, flags = _scatter_arguments(
        x, entries, None, indices_are_sorted, unique_indices, wrap_negative_indices
    )
    if updates.size == 0:
        return x
    how = Mode.PROMISE_IN_BOUNDS if flags.pop("inside") else _mode(mode, Mode.FILL_OR_DROP)

    def cast(v: Any) -> Any:
        return convert(function(v), x.dtype)

    result = lax.scatter_apply(x, indices, cast, numbers, update_shape=updates.shape, mode=how, **flags)
    return convert(result, x.dtype, x.aval.weak_type)
