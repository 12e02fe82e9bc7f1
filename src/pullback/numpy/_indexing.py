"""Reading at NumPy's index expressions: from their entries (`_index_keys`) to slice, reverse, dynamic_slice and gather.

Reading takes the cheapest form: static entries are views (slice, rev, squeeze), traced scalars a dynamic_slice of
that view, arrays a gather of it. Indices out of bounds give the nearest element, unless `mode` says otherwise; what is
read there gets no cotangent where the index is an array.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.core import ShapedArray, Tracer
from pullback.core.dimensions import Dimension, is_at_least, max_dim, min_dim
from pullback.core.interpreter import is_within_transformation
from pullback.lax.movement.gather import fill_number
from pullback.numpy import _index_shown as shown
from pullback.numpy._arguments import Array, as_array, broadcast_shapes_of, const, make_array
from pullback.numpy._index_keys import Advanced, At, Entry, New, Slice, Span, check_fits, parse
from pullback.util import dtypes
from pullback.util.errors import EmptyAxisError
from pullback.util.record import record
from pullback.util.tracebacks import shorten

Mode = lax.GatherScatterMode
_INT32 = np.dtype(np.int32)


# ---- helpers of reading and writing


def mode_of(mode: Any, default: Any) -> Any:
    """The gather mode of a `mode` argument; ValueError for a name that is none."""
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
    return Mode.from_any(mode)


def refuse_empty_axes(shape: tuple[int, ...], entries: list[Entry]) -> None:
    """IndexError for a single index, in whatever mode, into an axis that has no elements, unless there are arrays."""
    if not any(isinstance(e, Advanced) for e in entries):
        for e in entries:
            if isinstance(e, At) and shape[e.axis] == 0:
                raise IndexError(f"the index is out of bounds: axis {e.axis} has no elements")


def is_static(entries: list[Entry]) -> bool:
    """Whether all entries are known places: no index array, no traced index, no window."""
    return all(not isinstance(e, (Advanced, Span)) and (not isinstance(e, At) or type(e.index) is int) for e in entries)


def nearest_inside(index: int, length: int, wrap: bool) -> int:
    """The static index from 0 to length - 1 nearest to the one given."""
    if index < 0 and wrap:
        index += length
    return min_dim(max_dim(index, 0), length - 1)


def is_inside(index: int, length: int, wrap: bool) -> bool:
    """Whether a static index is in bounds; with `wrap` negative ones count from the end."""
    return is_at_least(index, -length if wrap else 0) and is_at_least(length - 1, index)


def concrete_index(index: Any) -> np.ndarray | None:
    """The NumPy value of an index that is known now, and not committed to a device, else None."""
    if isinstance(index, (int, np.ndarray)) or (type(index) is Array and index._device is None):
        return np.asarray(index)
    return None


def type_of_places(length: int) -> np.dtype:
    """The type of indices along an axis."""
    return np.dtype(np.int32 if not isinstance(length, int) or length < 2**31 - 1 else np.int64)


def _normalize_known(index: np.ndarray, length: int, wrap: bool) -> tuple[np.ndarray, bool]:
    dtype = type_of_places(length)
    if index.size == 0:
        return index.astype(dtype), True
    low, high = int(index.min()), int(index.max())
    if low >= 0 and is_at_least(length - 1, high):
        return index.astype(dtype, copy=False), True
    # What is far out of bounds must stay so in fewer bits.
    wide = index if index.dtype != np.uint64 else np.minimum(index, np.uint64(2**62))
    wide = wide.astype(np.int64, copy=False)
    if wrap:
        wide = np.where(wide < 0, wide + length, wide) if low < 0 else wide
    inside = is_at_least(low, -length if wrap else 0) and is_at_least(length - 1, high)
    bits = 8 * dtype.itemsize - 1
    return np.clip(wide, -(2**bits), 2**bits - 1).astype(dtype), inside


# Along an axis that int32 cannot number, indices are of int64, whatever `jax_enable_x64` says.


def _places(index: Any) -> Any:
    """Indices, or those that are known as an array, of the type that they have."""
    if isinstance(index, (np.ndarray, np.generic)):
        return _core.from_numpy(np.asarray(index), ShapedArray(index.shape, index.dtype), None, True)
    return index


def _number(n: int, index: Any) -> Any:
    """A number beside indices."""
    return _places(np.asarray(n, index.dtype)) if index.dtype == np.int64 else const(index, n)


def _typed(index: Any, dtype: np.dtype) -> Any:
    """An array of indices of a type, not weakly."""
    if index.dtype == dtype and not index.aval.weak_type:
        return index
    return lax.convert_element_type_p.bind(index, new_dtype=dtype, weak_type=False, sharding=None)


def _from_a_symbolic_end(index: np.ndarray, length: Any) -> bool:
    return isinstance(length, Dimension) and index.size > 0 and bool(index.min() < 0)


def normalize(index: Any, length: int, wrap: bool) -> tuple[Any, bool]:
    """(int32 or int64 index with negative ones counted from the end, whether it is known to be in bounds)."""
    known = concrete_index(index)
    if known is not None and not _from_a_symbolic_end(known, length):
        return _normalize_known(known, length, wrap)
    index = make_array(index) if known is not None else index
    dtype = type_of_places(length)
    unsigned = dtypes.issubdtype(index.dtype, np.unsignedinteger)
    if unsigned:
        if dtypes.iinfo(index.dtype).bits >= 8 * dtype.itemsize:
            index = lax.min(index, lax.full_like(index, dtypes.iinfo(dtype).max))
        return _typed(index, dtype), False
    if dtypes.iinfo(index.dtype).bits < 8 * dtype.itemsize:
        index = _typed(index, dtype)
    if wrap:
        all_of_it = lax.full_like(index, length) if isinstance(length, Dimension) else _number(length, index)
        index = lax.select(lax.lt(index, _number(0, index)), lax.add(index, all_of_it), index)
    return _typed(index, index.dtype), False


def _view(x: Any, entries: list[Entry], wrap: bool) -> Any:
    """x with all static entries applied but nothing squeezed: axes of static At entries have length 1."""
    rank = x.ndim
    starts, limits, strides, reversed_axes = [0] * rank, list(x.shape), [1] * rank, []
    for e in entries:
        if isinstance(e, Slice):
            start, step = e.start, e.step
            if step < 0 and e.reach is not None:  # which place is the last is not known: from the other end
                x, start, step = lax.rev(x, (e.axis,)), x.shape[e.axis] - 1 - start, -step
            if step > 0:
                starts[e.axis], strides[e.axis] = start, step
                if isinstance(e.size, Dimension) and e.size == (x.shape[e.axis] - start + step - 1) // step:
                    continue  # to the end
                if e.reach is not None:
                    limits[e.axis] = start + e.reach
                else:
                    limits[e.axis] = start + ((e.size - 1) * step + 1 if e.size else 0)
            else:
                last = e.start + (e.size - 1) * e.step
                starts[e.axis], limits[e.axis], strides[e.axis] = last, e.start + 1, -e.step
                reversed_axes.append(e.axis)
        elif isinstance(e, At) and type(e.index) is int:
            starts[e.axis] = nearest_inside(e.index, x.shape[e.axis], wrap)
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


def is_in_program(x: Any) -> bool:
    """Whether what is done with x is recorded, and not only its result."""
    return isinstance(x, Tracer) or is_within_transformation()


def rewriting_take(x: Any, index: Any) -> Any:
    """x[index], by NumPy's rules; indices out of bounds take the nearest element."""
    try:
        if x.ndim:
            kind = type(index)
            n = x.shape[0]
            if kind is int and n and (is_inside(index, n, True) or not is_in_program(x)):
                check_fits(index, n)
                return lax.index_in_dim(x, nearest_inside(index, n, True), 0, keepdims=False)
            if (
                (kind is np.ndarray or (kind is Array and index._device is None))
                and n
                and index.ndim
                and index.dtype.kind in "iu"
                and not shown.are_shown()
            ):
                return _take_rows(x, index)
        return index_get(x, index)
    except Exception as error:
        shorten(error, sys._getframe())
        raise


def take_inside(x: Any, index: Any) -> Any:
    """x[index] of one integer array whose numbers are all in 0 <= index < x.shape[0], which is not checked."""
    where = lax.reshape(index, (*index.shape, 1))
    sizes = (1, *x.shape[1:])
    return lax.gather(x, where, _row_numbers(x.ndim, index.ndim), sizes, mode=Mode.PROMISE_IN_BOUNDS)


@functools.lru_cache(maxsize=256)
def _row_numbers(rank: int, index_rank: int) -> Any:
    return lax.GatherDimensionNumbers(
        offset_dims=tuple(range(index_rank, index_rank + rank - 1)), collapsed_slice_dims=(0,), start_index_map=(0,)
    )


def _take_rows(x: Any, index: Any) -> Any:
    """x[index] for one integer array that is known now: the general way, with fewer steps."""
    component, _ = _normalize_known(np.asarray(index), x.shape[0], True)
    return lax.gather(
        x,
        _places(component.reshape((*component.shape, 1))),
        _row_numbers(x.ndim, component.ndim),
        (1, *x.shape[1:]),
        mode=Mode.PROMISE_IN_BOUNDS,
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
    # By default an index out of bounds reads the nearest element, which gets no cotangent for it: as a promise.
    how = mode_of(mode, Mode.PROMISE_IN_BOUNDS)
    if how is Mode.FILL_OR_DROP:  # also where no index is out of bounds
        fill_value = fill_number("x.at[...].get", fill_value, x.dtype)
    if how in (Mode.FILL_OR_DROP, Mode.ONE_HOT) and shown.is_for_readers(x, entries) and shown.names_places(x, entries):
        refuse_empty_axes(x.shape, entries)
        return _gather_for_readers(x, entries, how, fill_value, indices_are_sorted, unique_indices, wrap)
    if how is not Mode.CLIP and is_in_program(x):
        # An index that is known to be out of bounds stays one in the program, where checkify sees it.
        entries = [_as_in_program(e, x.shape, wrap) for e in entries]
    at = [e for e in entries if isinstance(e, At)]
    refuse_empty_axes(x.shape, entries)
    outside = not all(type(e.index) is int and is_inside(e.index, x.shape[e.axis], wrap) for e in at)
    advanced = [e for e in entries if isinstance(e, Advanced)]
    spans = [e for e in entries if isinstance(e, Span)]
    # Beside slices with steps a scalar that may be out of bounds is gathered, with an array's derivatives.
    skips = any(isinstance(e, Slice) and e.skips for e in entries)
    fills, stepped = how is Mode.FILL_OR_DROP, how is Mode.PROMISE_IN_BOUNDS and skips
    gathered = bool(advanced) or (outside and (stepped or fills))
    if shown.is_for_readers(x, entries) and (gathered or any(type(e.index) is not int for e in at) or spans):
        if not (gathered or skips):
            return _drop_and_add(shown.window(x, entries, wrap), entries)
        if all(x.shape[e.axis] for e in at):
            return _gather_for_readers(x, entries, how, fill_value, indices_are_sorted, unique_indices, wrap)
    if not gathered and not (spans and (skips or fills or any(e.step != 1 for e in spans))):
        x = _view(x, entries, wrap)
        traced = [e for e in at if type(e.index) is not int]
        if traced or spans:
            starts: list[Any] = [make_array(0, _INT32)] * x.ndim
            sizes = list(x.shape)
            for e in traced:
                starts[e.axis], _ = normalize(e.index, x.shape[e.axis], wrap)
                starts[e.axis] = _places(starts[e.axis])
                sizes[e.axis] = 1
            for span in spans:
                if not wrap and type(span.start) is int and span.start < 0:
                    raise ValueError(f"index {span.start} is negative where wrap_negative_indices=False")
                starts[span.axis] = _places(normalize(span.start, x.shape[span.axis], wrap)[0])
                sizes[span.axis] = span.size
            wide = any(s.dtype != _INT32 for s in starts)
            if wide:
                starts = [_typed(s, np.dtype(np.int64)) for s in starts]
            x = lax.dynamic_slice(x, starts, tuple(sizes), allow_negative_indices=False)
        return _drop_and_add(x, entries)
    # Static slices first, as views; all that is left are whole axes, new axes and indices.
    view = _view(x, [e for e in entries if isinstance(e, Slice)], wrap)
    return _gather(view, entries, how, fill_value, indices_are_sorted, unique_indices, wrap)


def _gather_for_readers(
    x: Any, entries: list[Entry], how: Any, fill_value: Any, is_sorted: bool, is_unique: bool, wrap: bool
) -> Any:
    layout = layout_of(entries, strided=True)
    x = shown.gathered(x, entries, layout, how, fill_value, is_sorted, is_unique, wrap)
    added = tuple(k for k, (kind, _) in enumerate(layout.parts) if kind == "new")
    return lax.expand_dims(x, added) if added else x


def _as_in_program(entry: Entry, shape: tuple[Any, ...], wrap: bool) -> Entry:
    if not isinstance(entry, At) or type(entry.index) is not int or is_inside(entry.index, shape[entry.axis], wrap):
        return entry
    return dataclasses.replace(entry, index=np.asarray(min(max(entry.index, -(2**62)), 2**62)))


@record
class _Layout:
    """How the axes of x[index] arise.

    index_shape: shape of the index arrays, all broadcast. parts: for each axis of the result ("batch", k) for axis k
    of the index arrays, ("window", axis) for an axis of the operand, or ("new", 0).
    """

    index_shape: tuple[int, ...]
    parts: list[tuple[str, int]]

    def lengths(self, batch: Sequence[int], windows: Mapping[int, int]) -> list[int]:
        """The shape of x[index], by the lengths of the index arrays' axes and of what is taken of the operand's."""
        return [batch[n] if kind == "batch" else windows[n] if kind == "window" else 1 for kind, n in self.parts]

    def written(self, updates: Any, dropped: Sequence[int], indexed: Sequence[int]) -> tuple[Any, Any]:
        """(updates, dimension numbers) of the scatter that writes updates of that shape."""
        new = tuple(k for k, (kind, _) in enumerate(self.parts) if kind == "new")
        kinds = [kind for kind, _ in self.parts if kind != "new"]
        numbers = lax.ScatterDimensionNumbers(
            update_window_dims=tuple(k for k, kind in enumerate(kinds) if kind == "window"),
            inserted_window_dims=tuple(sorted(dropped)),
            scatter_dims_to_operand_dims=tuple(indexed),
        )
        return lax.squeeze(updates, new) if new else updates, numbers


def layout_of(entries: list[Entry], strided: bool = False) -> _Layout:
    """By NumPy's rule: the axes of the index arrays stand where the arrays stand if these are neighbours, else in
    front.

    With `strided`, slices of a step other than 1 are index arrays of an axis of their own, as such windows always are.
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
        elif isinstance(e, (Slice, Span)):
            if e.step != 1 and (strided or isinstance(e, Span)):
                parts.append(("batch", own_axis))
                own_axis += 1
            else:
                parts.append(("window", e.axis))
        elif has_arrays and neighbours and k == where_index[0]:
            parts.extend(block)
    return _Layout(shape, parts)


def index_vectors(components: list[tuple[Any, tuple[int, ...]]], shape: tuple[int, ...]) -> Any:
    """The index vectors of gather or scatter, shape (*shape, len(components)).

    Each component is an integer array and the axes of `shape` that its axes lie along.
    """
    if all(isinstance(c, np.ndarray) for c, _ in components):
        columns: list[Any] = [np.broadcast_to(_spread_numpy(c, axes, len(shape)), shape) for c, axes in components]
        dtype = np.result_type(*(c.dtype for c in columns)) if columns else np.dtype(np.int32)
        if len(columns) == 1:
            return _places(columns[0][..., None])
        joined = np.stack(columns, -1).astype(dtype, copy=False) if columns else np.zeros((*shape, 0), np.int32)
        return _places(joined)
    dtype = np.dtype(np.int64) if any(np.dtype(c.dtype) == np.int64 for c, _ in components) else _INT32
    if len(components) == 1 and components[0][0].shape == shape:
        c = _typed(as_array(_places(components[0][0])), dtype)
        return lax.broadcast_in_dim(c, (*shape, 1), tuple(range(len(shape))))
    columns = []
    for c, axes in components:
        c = _typed(as_array(_places(c)), dtype)
        kept = [k for k, n in enumerate(c.shape) if n == shape[axes[k]]]
        c = lax.squeeze(c, tuple(k for k in range(c.ndim) if k not in kept)) if len(kept) < c.ndim else c
        columns.append(lax.broadcast_in_dim(c, (*shape, 1), tuple(axes[k] for k in kept)))
    return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(shape))


def _spread_numpy(c: np.ndarray, axes: tuple[int, ...], rank: int) -> np.ndarray:
    shape = [1] * rank
    for k, axis in enumerate(axes):
        shape[axis] = c.shape[k]
    return c.reshape(shape)


def span_of(e: Span, length: int) -> tuple[Any, bool]:
    """(int32 or int64 start of a window, or the places of one with steps, whether all is known to be inside).

    A negative start is out of bounds, as gather and scatter see it.
    """
    start, _ = normalize(e.start, length, False)
    inside = type(e.start) is int and e.start >= 0 and is_at_least(length - 1, e.start + (e.size - 1) * e.step)
    if e.step == 1:
        return start, inside
    return start + start.dtype.type(e.step) * np.arange(e.size, dtype=start.dtype), inside


def last_axes(index: Any, rank: int) -> tuple[int, ...]:
    """Broadcasting aligns the last axes."""
    n = np.ndim(index)
    return tuple(range(rank - n, rank))


def _gather(
    x: Any, entries: list[Entry], how: Any, fill_value: Any, is_sorted: bool, is_unique: bool, wrap: bool
) -> Any:
    layout = layout_of(entries)
    rank = len(layout.index_shape)
    own = [e for e in entries if isinstance(e, Span) and e.step != 1]
    batch_shape: tuple[int, ...] = (*layout.index_shape, *(e.size for e in own))
    result_parts = [p for p in layout.parts if p[0] != "new"]
    if own:  # the axes of the index vectors stand in the order in which they stand in the result
        order_of_batch = [number for kind, number in result_parts if kind == "batch"]
        batch_shape = tuple(batch_shape[number] for number in order_of_batch)
    place = {number: k for k, number in enumerate(order_of_batch if own else range(rank))}
    components, inside = [], True
    indexed: list[int] = []
    slice_sizes, windows = list(x.shape), set()
    for e in entries:
        if isinstance(e, (At, Advanced)) and e.axis is not None:
            component, known_inside = normalize(e.index, x.shape[e.axis], wrap)
            components.append((component, tuple(place[k] for k in last_axes(e.index, rank))))
            slice_sizes[e.axis] = 1
        elif isinstance(e, Span):
            component, known_inside = span_of(e, x.shape[e.axis])
            components.append((component, () if e.step == 1 else (place[rank + own.index(e)],)))
            slice_sizes[e.axis] = e.size if e.step == 1 else 1
            windows |= {e.axis} if e.step == 1 else set()
        else:
            continue
        indexed.append(e.axis)  # type: ignore[arg-type]
        inside = inside and known_inside
    if not indexed:  # only scalar booleans
        x = lax.broadcast_in_dim(x, batch_shape + x.shape, tuple(range(len(batch_shape), len(batch_shape) + x.ndim)))
        order = tuple(number if kind == "batch" else len(batch_shape) + number for kind, number in result_parts)
        x = lax.transpose(x, order)
    else:
        if any(x.shape[a] == 0 for a in indexed):  # which gather, whose slices have size 1, refuses
            sizes = {"batch": batch_shape, "window": tuple(slice_sizes)}
            result_shape = tuple(1 if kind == "new" else sizes[kind][n] for kind, n in layout.parts)
            if 0 in result_shape:
                return lax.reshape(x, result_shape)
            if how is not Mode.FILL_OR_DROP:
                raise EmptyAxisError(f"index is out of bounds for an axis of size 0, in an array of shape {x.shape}")
        dimension_numbers = lax.GatherDimensionNumbers(
            offset_dims=tuple(k for k, (kind, _) in enumerate(result_parts) if kind == "window"),
            collapsed_slice_dims=tuple(sorted(set(indexed) - windows)),
            start_index_map=tuple(indexed),
        )
        x = lax.gather(
            x,
            index_vectors(components, batch_shape),
            dimension_numbers,
            tuple(slice_sizes),
            unique_indices=is_unique or not layout.index_shape,
            indices_are_sorted=is_sorted or not layout.index_shape,
            mode=Mode.PROMISE_IN_BOUNDS if inside else how,
            fill_value=fill_value,
        )
    added = tuple(k for k, (kind, _) in enumerate(layout.parts) if kind == "new")
    return lax.expand_dims(x, added) if added else x
