"""Padding: what is added at the ends of an axis is a constant, or is taken from the array itself.

Modes that repeat or reflect elements are one table, made by NumPy from the numbers of the elements; its runs of
rising, falling or equal numbers become slices, reversed slices and broadcasts, which are joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.core.dimensions import index as size_of
from pullback.core.dimensions import is_at_least, is_symbolic
from pullback.numpy._arguments import Array, arrays, broadcast_to, check_arraylike, concrete_or_error, const, convert
from pullback.numpy._creation import asarray
from pullback.numpy._quantiles import median as _median
from pullback.numpy._reducers import max as _max
from pullback.numpy._reducers import mean as _mean
from pullback.numpy._reducers import min as _min
from pullback.numpy._ufuncs import round
from pullback.util import dtypes

_OPTIONS: dict[str, set[str]] = {
    "constant": {"constant_values"},
    "edge": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
    "empty": set(),
}


def _pairs(name: str, value: Any, rank: int) -> np.ndarray:
    """A number, (before, after), or one such pair an axis, as an array of shape (rank, 2)."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise TypeError(f"pad: the entries of '{name}' must be of one shape, got {value}") from None
    if given.shape not in ((), (1,), (2,), (1, 2), (rank, 2)):
        raise _unsupported(name, given.shape, rank)
    return np.broadcast_to(given, (rank, 2))


def _unsupported(name: str, shape: tuple[int, ...], rank: int) -> ValueError:
    return ValueError(
        f"pad: argument '{name}' has unsupported shape {shape}; expected a number, (before, after), or {rank} such "
        "pairs, one an axis"
    )


def _traced_pairs(name: str, value: Any, rank: int) -> list[list[Any]]:
    """As _pairs, of values that may be traced; an entry is a scalar array."""
    if isinstance(value, (Array, Tracer)):
        spread = broadcast_to(value, (rank, 2))
        return [[spread[k, j] for j in (0, 1)] for k in range(rank)]
    if isinstance(value, (tuple, list)):
        if not value or (not isinstance(value[0], (tuple, list)) and np.ndim(value[0]) == 0 and len(value) > 2):
            raise _unsupported(name, (len(value),), rank)
        rows = [list(v) if isinstance(v, (tuple, list)) else v for v in value]
        if rows and all(isinstance(v, list) for v in rows):
            if len(rows) not in (1, rank):
                raise ValueError(f"pad: argument '{name}' has {len(rows)} pairs for {rank} axes")
            rows = rows * rank if len(rows) == 1 else rows
            return [[asarray(v) for v in (row if len(row) == 2 else row * 2)] for row in rows]
        return [[asarray(v) for v in (rows if len(rows) == 2 else rows * 2)]] * rank
    return [[asarray(value)] * 2] * rank


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """The array with elements added at the ends of its axes: `pad_width` before and behind, one pair for all or one an
    axis.

    Modes: constant (constant_values), edge, linear_ramp (end_values), maximum, mean, median, minimum (stat_length),
    reflect and symmetric (reflect_type), wrap, empty, or a function as NumPy's. Raises TypeError for widths that are
    not integers, ValueError for negative ones and unknown options, NotImplementedError for unknown modes.
    """
    (array,) = arrays("pad", array)
    pad_width = concrete_or_error(
        pad_width, "pad: argument 'pad_width' must be static, as the result's shape depends on it"
    )
    result = _pad(array, pad_width, mode, kwargs)
    return convert(result, array.dtype, array.aval.weak_type) if result.dtype == array.dtype else result


def _pad(array: Any, pad_width: Any, mode: Any, kwargs: dict[str, Any]) -> Any:
    widths = _pairs("pad_width", pad_width, array.ndim)
    symbolic = widths.dtype == object and all(is_symbolic(n) or isinstance(n, int) for n in widths.flat)
    if widths.dtype.kind not in "iu" and widths.size and not symbolic:
        raise TypeError("`pad_width` must be of integral type.")
    if any(n < 0 for n in widths.flat):
        raise ValueError("index can't contain negative values")
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in _OPTIONS:
        modes = ", ".join(map(repr, _OPTIONS))
        raise NotImplementedError(f"Unimplemented padding mode {mode!r} for np.pad; modes are {modes}, or a function")
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode {mode!r}: {unknown}")
    if mode == "constant":
        return _constant(array, widths, kwargs.get("constant_values", 0))
    if mode == "empty":
        return _constant(array, widths, 0)
    if mode == "linear_ramp":
        return _linear_ramp(array, widths, kwargs.get("end_values", 0))
    if mode in _STATISTICS:
        return _statistic(array, widths, _STATISTICS[mode], kwargs.get("stat_length"))
    reflect_type = kwargs.get("reflect_type", "even")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"pad: argument 'reflect_type' is {reflect_type!r}; expected 'even' or 'odd'")
    for axis, (before, behind) in enumerate(widths):
        if before == 0 and behind == 0:
            continue
        if array.shape[axis] == 0:
            raise ValueError(f"Cannot apply '{mode}' padding to empty axis")
        if any(is_symbolic(n) for n in (before, behind, array.shape[axis])):
            if mode == "edge":
                array = _edge(array, axis, before, behind)
            elif mode in ("reflect", "symmetric"):
                array = _of_unknown_length(array, axis, before, behind, mode, reflect_type == "odd")
            else:
                raise NotImplementedError(f"pad: mode {mode!r} is not implemented along symbolic dimensions")
        elif mode in ("reflect", "symmetric") and reflect_type == "odd":
            array = _odd(array, axis, int(before), int(behind), mode)
        else:
            array = _from_table(
                array, axis, np.pad(np.arange(array.shape[axis]), (int(before), int(behind)), mode=mode)
            )
    return array


def _edge(x: Any, axis: int, before: Any, behind: Any) -> Any:
    """The first and last element repeated, for widths and lengths that may be symbolic."""
    n = x.shape[axis]

    def repeated(place: Any, count: Any) -> Any:
        one = lax.slice_in_dim(x, place, place + 1, axis=axis)
        return broadcast_to(one, (*x.shape[:axis], count, *x.shape[axis + 1 :]))

    return lax.concatenate([repeated(0, before), x, repeated(n - 1, behind)], axis)


def _constant(x: Any, widths: np.ndarray, values: Any) -> Any:
    """One `lax.pad` where all values are one; else one for each end of an axis, so that later axes
    win in the corners.
    """
    entries = _traced_pairs("constant_values", values, x.ndim)
    flat = [v for row in entries for v in row]
    if not flat:
        return x
    if all(v is flat[0] for v in flat) or np.ndim(values) == 0:
        return lax.pad(x, convert(flat[0], x.dtype), [(size_of(b), size_of(a), 0) for b, a in widths])
    for axis, (before, behind) in enumerate(widths):
        for side, width in enumerate((before, behind)):
            if width:
                config = [(0, 0, 0)] * x.ndim
                config[axis] = (size_of(width), 0, 0) if side == 0 else (0, size_of(width), 0)
                x = lax.pad(x, convert(entries[axis][side], x.dtype), config)
    return x


def _from_table(x: Any, axis: int, table: np.ndarray) -> Any:
    """x[table] along an axis, as a join of slices."""
    pieces, start, n = [], 0, len(table)
    while start < n:
        stop = start + 1
        step = 0
        if stop < n and abs(int(table[stop]) - int(table[start])) <= 1:
            step = int(table[stop]) - int(table[start])
            while stop < n and table[stop] - table[stop - 1] == step:
                stop += 1
        first, last, count = int(table[start]), int(table[stop - 1]), stop - start
        piece = lax.slice_in_dim(x, min(first, last), max(first, last) + 1, axis=axis)
        if step < 0:
            piece = lax.rev(piece, (axis,))
        elif step == 0 and count > 1:
            piece = broadcast_to(piece, tuple(count if k == axis else d for k, d in enumerate(x.shape)))
        pieces.append(piece)
        start = stop
    return pieces[0] if len(pieces) == 1 else lax.concatenate(pieces, axis)


def _odd(x: Any, axis: int, before: int, behind: int, mode: str) -> Any:
    """Reflection through the end points: 2 * end - mirrored, as often as the width asks for."""
    include_edge = mode == "symmetric"
    if x.shape[axis] == 1 and not include_edge:
        return _from_table(x, axis, np.zeros(1 + before + behind, int))
    while before or behind:
        n = x.shape[axis]
        most = n if include_edge else n - 1
        take_before, take_behind = min(before, most), min(behind, most)
        x = _mirrored(x, axis, take_before, take_behind, include_edge, is_odd=True)
        before, behind = before - take_before, behind - take_behind
    return x


def _of_unknown_length(x: Any, axis: int, before: Any, behind: Any, mode: str, is_odd: bool) -> Any:
    """Reflection of what is long enough for that, whatever its symbolic length is."""
    most = x.shape[axis] - (mode == "reflect")
    for width in (before, behind):
        if is_symbolic(width) or not is_at_least(most, width):
            raise ValueError(
                f"pad: mode {mode!r} along an axis of size {x.shape[axis]} takes at most {most} elements, and whether "
                f"{width} are more is not known"
            )
    return _mirrored(x, axis, before, behind, mode == "symmetric", is_odd)


def _mirrored(x: Any, axis: int, before: Any, behind: Any, include_edge: bool, is_odd: bool) -> Any:
    """x and as many of its own elements on either side, in reverse; what is odd is mirrored at the end points, too."""
    n = x.shape[axis]

    def turned(start: Any, stop: Any, place: Any) -> Any:
        part = lax.rev(lax.slice_in_dim(x, start, stop, axis=axis), (axis,))
        if not is_odd:
            return part
        edge = broadcast_to(lax.slice_in_dim(x, place, place + 1, axis=axis), part.shape)
        return lax.sub(lax.mul(edge, lax.full_like(part, 2)), part)

    parts = [x]
    if before:
        first = 0 if include_edge else 1
        parts.insert(0, turned(first, first + before, 0))
    if behind:
        last = n if include_edge else n - 1
        parts.append(turned(last - behind, last, n - 1))
    return lax.concatenate(parts, axis)


def _linear_ramp(x: Any, widths: np.ndarray, values: Any) -> Any:
    ends = _traced_pairs("end_values", values, x.ndim)
    for axis, (before, behind) in enumerate(widths):
        n = x.shape[axis]

        def ramp(edge: Any, end: Any, width: int, axis: int = axis, dtype: Any = x.dtype) -> Any:
            """From the end value (included) to the edge (excluded)."""
            work = np.dtype(dtypes.to_inexact_dtype(dtype))
            edge, end = convert(edge, work), convert(end, work)
            shape = tuple(width if k == axis else d for k, d in enumerate(edge.shape))
            number = lax.broadcasted_iota(work, shape, axis)
            t = lax.div(number, lax.full(shape, width, work))
            end = broadcast_to(end, shape)
            out = lax.add(end, lax.mul(lax.sub(broadcast_to(edge, shape), end), t))
            if dtype.kind in "iu":  # as linspace rounds: downwards, also below zero
                out = lax.floor(out)
            first = lax.eq(number, lax.full_like(number, 0))  # the end value, even where the edge is infinite
            return convert(lax.select(first, end, out), dtype)

        parts = [x]
        if before:
            parts.insert(0, ramp(lax.slice_in_dim(x, 0, 1, axis=axis), ends[axis][0], int(before)))
        if behind:
            parts.append(lax.rev(ramp(lax.slice_in_dim(x, n - 1, n, axis=axis), ends[axis][1], int(behind)), (axis,)))
        x = lax.concatenate(parts, axis) if len(parts) > 1 else x
    return x


_STATISTICS: dict[str, Callable[..., Any]] = {"maximum": _max, "minimum": _min, "mean": _mean, "median": _median}


def _statistic(x: Any, widths: np.ndarray, function: Callable[..., Any], stat_length: Any) -> Any:
    if stat_length is not None:
        lengths = _pairs("stat_length", stat_length, x.ndim)
        if lengths.dtype.kind not in "iu":
            raise TypeError(f"jnp.pad: argument 'stat_length' must be of integers, got {stat_length!r}")
        if lengths.size and lengths.min() < 1:
            raise ValueError(f"stat_length of 0 or less yields no value for padding, got {stat_length}")
    for axis, (before, behind) in enumerate(widths):
        n = x.shape[axis]

        def value(part: Any, width: int, axis: int = axis, dtype: Any = x.dtype) -> Any:
            result = function(part, axis=axis, keepdims=True)
            if dtypes.issubdtype(dtype, np.integer) and dtypes.issubdtype(result.dtype, np.inexact):
                result = round(result)
            shape = tuple(width if k == axis else d for k, d in enumerate(result.shape))
            return broadcast_to(convert(result, dtype), shape)

        first = n if stat_length is None else min(int(lengths[axis][0]), n)
        last = n if stat_length is None else min(int(lengths[axis][1]), n)
        parts = [x]
        if before:
            parts.insert(0, value(lax.slice_in_dim(x, 0, first, axis=axis), int(before)))
        if behind:
            parts.append(value(lax.slice_in_dim(x, n - last, n, axis=axis), int(behind)))
        x = lax.concatenate(parts, axis) if len(parts) > 1 else x
    return x


def _by_function(x: Any, widths: np.ndarray, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    """The function gets each padded vector, (before, behind), the axis and the options, and returns the vector."""
    from pullback.numpy._functional import apply_along_axis

    padded = lax.pad(x, const(convert(x, x.dtype), 0), [(size_of(b), size_of(a), 0) for b, a in widths])
    for axis, (before, behind) in enumerate(widths):
        check_arraylike("pad", padded)
        padded = apply_along_axis(function, axis, padded, (int(before), int(behind)), axis, kwargs)
    return padded
