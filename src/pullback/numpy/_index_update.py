"""Writing at NumPy's index expressions.

A dynamic_update_slice where the place is static and contiguous, a scatter elsewhere. Indices out of bounds are left
out, unless `mode` says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Array as AnyArray
from pullback.core.dimensions import is_symbolic
from pullback.core.explain import check, with_held_arrays
from pullback.core.kinds import FUNCTION
from pullback.core.types import in_use, traced_without_types, type_on_mesh
from pullback.numpy import _index_shown as shown
from pullback.numpy._arguments import PYTHON_SCALARS, as_array, broadcast_to, convert, is_arraylike, promote_dtypes
from pullback.numpy._index_keys import Advanced, At, Entry, Slice, Span, parse
from pullback.numpy._indexing import (
    Mode,
    index_vectors,
    is_in_program,
    is_inside,
    is_static,
    last_axes,
    layout_of,
    mode_of,
    nearest_inside,
    normalize,
    refuse_empty_axes,
    span_of,
    type_of_places,
)
from pullback.util import dtypes
from pullback.util.errors import ShardingTypeError
from pullback.util.static import check_flags, check_truth
from pullback.util.warning import warn, warn_if_real

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
    check_flags(f".at[...].{op}", indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)
    check_truth(f".at[...].{op}", wrap_negative_indices=wrap_negative_indices)
    if not is_arraylike(y):
        from pullback.numpy._creation import asarray

        y = asarray(y)
    y = with_held_arrays(y) if hasattr(y, "__jax_array__") else y
    x = as_array(x)
    x = convert(x, dtypes.canonicalize_dtype(x.dtype, allow_extended_dtype=True), x.aval.weak_type)
    dtype, weak = x.dtype, x.aval.weak_type
    x, y = _common_dtype(x, y, op)
    entries = parse(x.shape, index)
    refuse_empty_axes(x.shape, entries)
    if any(_takes_nothing(e) for e in entries):
        layout_of(entries)  # which refuses arrays of indices that do not broadcast
        return _back_to(x, dtype, weak)
    how = Mode.FILL_OR_DROP if mode == "one_hot" else mode_of(mode, Mode.FILL_OR_DROP)
    result = None
    if (op == "set" or op in _COMBINE) and not shown.is_for_readers(x, entries):
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


def _fitted(y: Any, shape: Any) -> Any:
    """The values, broadcast to the shape of x[index]."""
    try:
        return broadcast_to(y, shape)
    except ValueError as error:
        part = f"x.at[index] has shape {tuple(shape)}, the values have shape {np.shape(y)}"
        raise ValueError(f"{error} ({part})") from None


def _takes_nothing(entry: Entry) -> bool:
    if isinstance(entry, (Slice, Span)):
        return entry.size == 0
    return isinstance(entry, Advanced) and np.size(entry.index) == 0


def _back_to(x: Any, dtype: Any, weak: bool) -> Any:
    if dtypes.issubdtype(x.dtype, np.complexfloating) and not dtypes.issubdtype(dtype, np.complexfloating):
        warn_if_real(x.dtype, dtype)
        x = lax.real(x)
    return convert(x, dtype, weak)


def _common_dtype(x: Any, y: Any, op: str) -> tuple[Any, Any]:
    """x and y in the dtype in which they are combined."""
    if type(y) in (bool, int, float, complex) or not isinstance(y, AnyArray) or y.aval is not x.aval:  # type: ignore[attr-defined]
        common = dtypes.lattice_result_type(x, y)[0]
        if common != x.dtype:
            warn(
                f"scatter inputs have incompatible types: values of {dtypes.dtype_of(y)} are cast to the array's "
                f"{x.dtype}, which cannot hold them all. Cast them by astype; this is going to be an error.",
                FutureWarning,
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
    if not is_static(entries) or any(isinstance(e, Slice) and e.step != 1 for e in entries):
        return None
    starts, sizes, result_shape = [0] * x.ndim, [1] * x.ndim, []
    for e in entries:
        if isinstance(e, At):
            if not is_inside(e.index, x.shape[e.axis], wrap):
                if is_symbolic(x.shape[e.axis]) or (is_in_program(x) and x.shape[e.axis]):
                    return None  # as a scatter, which checkify sees
                if op in ("add", "subtract", "multiply") and x.dtype == np.bool_:
                    return None  # as a scatter, which refuses booleans
                if how is Mode.FILL_OR_DROP:
                    _fitted(y, _result_shape(entries))
                    return x
                if x.shape[e.axis] == 0:
                    raise IndexError(f"index {e.index} is out of bounds: axis {e.axis} has no elements")
            starts[e.axis] = nearest_inside(e.index, x.shape[e.axis], wrap)
        elif isinstance(e, Slice):
            starts[e.axis], sizes[e.axis] = e.start, e.size
            result_shape.append(e.size)
        else:
            result_shape.append(1)
    value = _fitted(y, result_shape)
    if value.size == 0:
        return x
    if value.shape != tuple(sizes):
        value = lax.reshape(value, tuple(sizes))
    if op != "set":
        limits = tuple(s + n for s, n in zip(starts, sizes))
        piece = x if tuple(sizes) == x.shape else lax.slice(x, tuple(starts), limits, None)
        value = _COMBINE[op](piece, value)
    if tuple(sizes) == x.shape and not (op == "set" and in_use() and type_on_mesh(x).is_typed):  # as x the result lies
        return value
    try:
        with traced_without_types() if in_use() else nullcontext():  # the value may be whole where x is cut
            return lax.dynamic_update_slice(x, value, tuple(starts))
    except ShardingTypeError as error:
        raise ShardingTypeError(
            f"how the updated array lies does not follow from its parts: {error} "
            "Use `.at[...].set/add/mul/...(out_sharding=)` to say it."
        ) from error


def _result_shape(entries: list[Entry]) -> tuple[int, ...]:
    return tuple(e.size if isinstance(e, Slice) else 1 for e in entries if not isinstance(e, At))


def _scatter_arguments(
    x: Any, entries: list[Entry], y: Any, is_sorted: bool, is_unique: bool, wrap: bool
) -> tuple[Any, Any, Any, dict[str, bool]]:
    """(index vectors, updates, dimension numbers, flags) of the scatter that writes y to x[entries].

    `y` None stands for updates of zeros.
    """
    layout = layout_of(entries, strided=True)
    if shown.is_for_readers(x, entries):
        return shown.scatter_arguments(x, entries, layout, y, is_sorted, is_unique, wrap, _fitted)
    index_rank = len(layout.index_shape)
    sizes = {e.axis: e.size for e in entries if isinstance(e, (Slice, Span))}
    own = [e for e in entries if isinstance(e, (Slice, Span)) and e.step != 1]
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
            components.append((component, tuple(place[k] for k in last_axes(e.index, index_rank))))
            indexed.append(e.axis)
            inserted.append(e.axis)
        elif isinstance(e, Span):
            component, known_inside = span_of(e, x.shape[e.axis])
            inside = inside and known_inside
            components.append((component, () if e.step == 1 else (place[next_own],)))
            indexed.append(e.axis)
            if e.step != 1:
                inserted.append(e.axis)
                next_own += 1
        elif isinstance(e, Slice) and e.step != 1:
            component = _places(e, type_of_places(x.shape[e.axis]))
            components.append((component, (place[next_own],)))
            next_own += 1
            indexed.append(e.axis)
            inserted.append(e.axis)
        elif isinstance(e, Slice) and (e.start != 0 or e.size != x.shape[e.axis]):
            components.append((np.asarray(e.start, type_of_places(x.shape[e.axis])), ()))
            indexed.append(e.axis)
    indices = index_vectors(components, batch_shape)
    lengths = layout.lengths(batch_lengths, sizes)
    updates = lax.full(tuple(lengths), 0, x.dtype) if y is None else _fitted(y, lengths)
    updates, numbers = layout.written(updates, inserted, indexed)
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
    check(".at[...].apply", FUNCTION, func=function)
    check_flags(".at[...].apply", indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)
    check_truth(".at[...].apply", wrap_negative_indices=wrap_negative_indices)
    x = as_array(x)
    entries = parse(x.shape, index)
    indices, updates, numbers, flags = _scatter_arguments(
        x, entries, None, indices_are_sorted, unique_indices, wrap_negative_indices
    )
    if updates.size == 0:
        return x
    how = Mode.FILL_OR_DROP if mode == "one_hot" else mode_of(mode, Mode.FILL_OR_DROP)
    how = Mode.PROMISE_IN_BOUNDS if flags.pop("inside") else how

    def cast(v: Any) -> Any:
        return convert(function(v), x.dtype)

    result = lax.scatter_apply(x, indices, cast, numbers, update_shape=updates.shape, mode=how, **flags)
    return convert(result, x.dtype, x.aval.weak_type)


def _places(e: Slice, dtype: np.dtype) -> Any:
    """The places along its axis that a slice means."""
    if is_symbolic(e.start) or is_symbolic(e.size):
        return lax.add(
            lax.mul(lax.iota(np.int32, e.size), np.int32(e.step)), convert(as_array(e.start), np.dtype(np.int32))
        )
    return (e.start + e.step * np.arange(e.size)).astype(dtype)
