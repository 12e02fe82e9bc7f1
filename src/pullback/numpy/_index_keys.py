"""What stands between the brackets of an index expression.

`parse` turns it into one entry for each axis of the operand and each new axis:

    New()                       None: a new axis of length 1
    Slice(axis, start, size, step)   static; start is the first element taken
    Span(axis, start, size, step)    a `ds`; start is an int or an integer scalar array, as it was given
    At(axis, index)             one element; index is an int or an integer scalar array
    Advanced(axis, index)       an integer array; axis None for a scalar boolean, which only adds an axis of length 0 or
    1
    Apart()                     an ellipsis of no axes beside index arrays
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import Tracer, typeof
from pullback.core.dimensions import Dimension, slice_of_symbolic
from pullback.core.dimensions import index as size_of
from pullback.numpy._arguments import Array, is_arraylike
from pullback.numpy._windows import Slice as Window
from pullback.util import dtypes
from pullback.util.errors import NonConcreteBooleanIndexError
from pullback.util.record import record


@record
class New:
    """A new axis of length 1."""


@record
class Slice:
    """Elements start, start + step, ... of an axis, `size` in all."""

    axis: int
    start: int
    size: int
    step: int
    skips: bool = False  # whether the step that was asked for leaves elements out
    reach: Any = None  # of symbolic ones: the number of places from start to where it ends, in steps of 1


@record
class Span:
    """Elements start, start + step, ... of an axis, `size` in all, wherever start is."""

    axis: int
    start: Any
    size: int
    step: int


@record
class At:
    """One element of an axis, which vanishes."""

    axis: int
    index: Any


@record
class Advanced:
    """Elements of an axis numbered by an integer array of rank 1 or more."""

    axis: int | None
    index: Any


@record
class Apart:
    """An ellipsis that stands for no axis, between index arrays, which are no neighbours then."""


Entry = New | Slice | Span | At | Advanced | Apart


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
        raise IndexError(f"Too many indices: {consumed} for an array with {rank} axes")
    if not ellipses:
        items.append(Ellipsis)
    entries: list[Entry] = []
    axis = 0
    for position, item in enumerate(items):
        if item is Ellipsis:
            if rank == consumed:
                entries.append(Apart())
            for _ in range(rank - consumed):
                entries.append(Slice(axis, 0, shape[axis], 1))
                axis += 1
        elif item is None:
            entries.append(New())
        elif isinstance(item, slice):
            entries.append(_slice(axis, shape[axis], item, position))
            axis += 1
        elif isinstance(item, int):
            if type(index[position]) is int:
                check_fits(item, shape[axis])
            entries.append(At(axis, item))
            axis += 1
        elif isinstance(item, Window):
            entries.append(_span(axis, item))
            axis += 1
        elif item.dtype == np.bool_:
            entries.extend(_mask(axis, shape, item, position))
            axis += item.ndim
        else:
            entries.append(At(axis, item) if item.ndim == 0 else Advanced(axis, item))
            axis += 1
    if any(isinstance(e, Advanced) for e in entries):
        return entries
    return [e for e in entries if not isinstance(e, Apart)]


def check_fits(index: int, length: Any) -> None:
    """OverflowError for an index outside of an axis that the default integer does not hold."""
    if -(2**31) <= index < 2**31 or (isinstance(length, int) and -length <= index < length):
        return
    default = dtypes.canonicalize_dtype(np.int64)
    if not dtypes.iinfo(default).min <= index <= dtypes.iinfo(default).max:
        raise OverflowError(f"Python int {index} too large to convert to {default.name}")


def _not_an_index(index: Any) -> TypeError:
    if isinstance(index, str):
        return TypeError(f"JAX does not support string indexing; got idx={index!r}")
    return TypeError(
        f"Using a non-tuple sequence as an index can mean two things, got a {type(index).__name__}: write "
        "x[jnp.array(seq)] to take elements of the first axis, or x[tuple(seq)] to index one axis after the other."
    )


def _item(x: Any, position: int) -> Any:
    """None, Ellipsis, a slice, a `ds`, a Python int, or an integer or boolean array (Array, Tracer or NumPy)."""
    if x is None or x is Ellipsis or type(x) is int or isinstance(x, slice) or type(x) is Window:
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
        if isinstance(x, (float, complex, np.inexact)):
            raise _wrong_type(np.asarray(x).dtype, position, x)
        if dtypes.issubdtype(getattr(x, "dtype", None), dtypes.prng_key):
            raise _wrong_type(x.dtype, position, x)
        if hasattr(x, "__jax_array__"):
            x = x.__jax_array__()
        elif hasattr(x, "__index__"):
            return operator.index(x)
        else:
            raise IndexError(
                f"index {position} is {x}, of type {type(x).__name__}; valid indices are integers, slices, `...`, "
                "`None`, and arrays of integers or booleans"
            )
    if not (x.dtype == np.bool_ or dtypes.issubdtype(x.dtype, np.integer)):
        raise _wrong_type(x.dtype, position, x)
    return x


def _from_list(x: Any) -> Any:
    from pullback.numpy._creation import asarray

    return asarray(x)


def _wrong_type(dtype: Any, position: int, x: Any) -> TypeError:
    return TypeError(f"an index needs integer or boolean type, got {dtype} at position {position}: {x}")


def _consumed(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if isinstance(item, (slice, int, Window)):
        return 1
    return item.ndim if item.dtype == np.bool_ else 1


def _slice(axis: int, length: int, item: slice, position: int) -> Slice:
    parts = (item.start, item.stop, item.step)
    for part in parts:
        if isinstance(part, Tracer) and part.to_concrete() is None:
            raise IndexError(
                "Slice entries must be static integers. "
                f"Got slice{parts} at position {position}; use lax.dynamic_slice for a start that is traced, or mark "
                "what a size comes from static (static_argnums)"
            )
    try:
        start, stop, step = (None if p is None else size_of(p) for p in parts)
    except (TypeError, ValueError):
        given = ":".join("" if p is None else repr(p) for p in (parts if item.step is not None else parts[:2]))
        raise TypeError(f"Slice entries must be integers, got {given} at position {position}") from None
    if any(isinstance(n, Dimension) for n in (start, stop, step, length)):
        start, size, step, reach = slice_of_symbolic(start, stop, step, length)
        return Slice(axis, start, size, step, abs(step) > 1, reach)
    start, stop, step = slice(start, stop, step).indices(length)
    size = len(range(start, stop, step))
    return Slice(axis, start if size else 0, size, step if size > 1 else 1, abs(step) > 1)


def _span(axis: int, window: Window) -> Span:
    try:
        size = operator.index(window.size)
    except TypeError:
        raise TypeError(f"ds: the size of a window must be an integer that is known, got {window.size!r}") from None
    if size < 0:
        raise TypeError(f"ds: the size of a window must not be negative, got {size}")
    start = window.start
    if isinstance(start, (int, np.integer)):
        return Span(axis, int(start), size, window.stride)
    aval = typeof(start)
    if aval.shape != () or aval.dtype.kind not in "iu":
        raise TypeError(f"ds: the start of a window must be an integer scalar, got {aval.short()}")
    known = None if isinstance(start, Tracer) else int(start)
    return Span(axis, start if known is None else known, size, window.stride)


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
    if len(expected) != mask.ndim or any(m not in (0, n) for m, n in zip(mask.shape, expected)):  # of length 0: nothing
        raise IndexError(
            f"boolean index {position} has shape {mask.shape}, but the axes of the array that it goes over have "
            f"shape {tuple(expected)}"
        )
    return [Advanced(axis + k, where) for k, where in enumerate(where_true(mask, np.dtype(np.int32)))]


PART = 1 << 22  # elements


def where_true(mask: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """As np.nonzero, positions of a dtype; in parts, between which Ctrl-C is heard."""
    if mask.size <= PART:
        return tuple([where.astype(dtype) for where in np.nonzero(mask)])
    flat = mask.reshape(-1)
    parts = [(start, flat[start : start + PART]) for start in range(0, flat.size, PART)]
    counts = [int(np.count_nonzero(part)) for _, part in parts]
    found = tuple([np.empty(sum(counts), dtype) for _ in mask.shape])
    done = 0
    for (start, part), count in zip(parts, counts):
        where = np.flatnonzero(part) + start
        for target, positions in zip(found, np.unravel_index(where, mask.shape)):
            target[done : done + count] = positions
        done += count
    return found
