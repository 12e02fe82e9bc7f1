"""Functions that change the shape or the order of elements: reshape, transpose, broadcasting, flips, rolls,
repetition.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pullback import lax
from pullback.api.eager import eager
from pullback.core import Tracer, current_interpreter, eval_interpreter
from pullback.core.asked import is_asked
from pullback.core.dimensions import Dimension, is_symbolic
from pullback.core.types import place_of_type, type_of_operands
from pullback.lax.collectives.sharding import out_placed
from pullback.numpy._arguments import (
    Array,
    arrays,
    as_array,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    check_arraylike,
    concrete_or_error,
    const,
    convert,
    is_integer,
    promote,
    static_int,
)
from pullback.numpy._arguments import broadcast_arrays as _broadcast_arrays
from pullback.numpy._arguments import broadcast_to as _broadcast_to
from pullback.numpy._indexing import rewriting_take
from pullback.numpy._ufuncs import remainder
from pullback.sharding._current import get_abstract_mesh
from pullback.util import dtypes
from pullback.util.errors import (
    ArgumentError,
    ConcretizationTypeError,
    InconclusiveDimensionOperation,
    ShardingTypeError,
)
from pullback.util.tracebacks import api_boundary

# ---- reshape


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None, out_sharding: Any = None) -> Any:
    """a with the same elements in another shape, of which one length may be -1 (what is left).

    Elements are read and written in C order (the last axis fastest) or Fortran order. Raises TypeError if the numbers
    of elements differ (ValueError for NumPy's arrays, as NumPy does), ValueError for an unknown order,
    NotImplementedError for order 'A'. While a function is traced NumPy's arrays stay NumPy's, whose values are known.
    """
    error: type[Exception] = TypeError
    if isinstance(a, (np.ndarray, np.generic)):
        error = ValueError
        # Outside of traces results do not share NumPy's memory, which changes.
        if out_sharding is None and current_interpreter() is not eval_interpreter():
            new = complete_shape(a.shape, canonical_shape(shape), error)
            if all(isinstance(n, int) for n in new):
                known = a.reshape(new, order=order)  # type: ignore[call-overload]
                return known.copy() if copy else known
    (array,) = arrays("reshape", a)
    reshaped = _reshape(array, shape, order, error)
    return out_placed("jnp.reshape", reshaped, out_sharding)


def _reshape(a: Any, shape: Any, order: str, error: type[Exception] = TypeError) -> Any:
    new = complete_shape(a.shape, canonical_shape(shape), error)
    if order == "C":
        return a if new == a.shape else lax.reshape(a, new)
    if order == "F":
        reversed_axes = tuple(range(a.ndim - 1, -1, -1))
        out_axes = tuple(range(len(new) - 1, -1, -1))
        return lax.transpose(lax.reshape(lax.transpose(a, reversed_axes), new[::-1]), out_axes)
    if order == "A":
        raise NotImplementedError("reshape: order='A' is not implemented; arrays have no memory order")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def complete_shape(old: tuple[int, ...], new: tuple[int, ...], error: type[Exception] = TypeError) -> tuple[int, ...]:
    """The new shape with -1 replaced by what the number of elements asks for; the error if that is impossible."""
    unknown = new.count(-1)
    size = math.prod(old)
    if unknown > 1:
        raise error(f"reshape: {unknown} lengths of {new} are -1; at most one can be worked out")
    if any(d < -1 for d in new):
        raise error(f"reshape: shape {new} has a negative length other than -1, for an array of shape {old}")
    if unknown:
        known = -math.prod(new)
        if known == 0 or size % known:
            if known == 0 and size == 0:
                raise error(f"cannot reshape array of shape {old} into shape {new}: the length for -1 is ambiguous")
            if isinstance(size % known if known != 0 else 0, Dimension):
                raise InconclusiveDimensionOperation(
                    f"cannot reshape array of shape {old} into shape {new}: whether {known} divides {size} depends on "
                    "its dimensions"
                )
            raise error(
                f"cannot reshape array of shape {old} into shape {new}: the given lengths make {known}, which does "
                f"not divide the {size} elements"
            )
        return tuple(size // known if d == -1 else d for d in new)
    if math.prod(new) != size:
        raise error(
            f"cannot reshape array of shape {old} into shape {new}: {size} elements for {math.prod(new)} places"
        )
    return new


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Any:
    """All elements along one axis, in C or Fortran order; NotImplementedError for other orders."""
    (a,) = arrays("ravel", a)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    return out_placed("jnp.ravel", _reshape(a, (a.size,), order), out_sharding)


def squeeze(a: Any, axis: Any = None) -> Any:
    """a without axes of length 1: all of them, or those given; ValueError if one given has another length."""
    (a,) = arrays("squeeze", a)
    if axis is None:
        if any(map(is_symbolic, a.shape)):
            raise ValueError(f"squeeze: argument 'axis' is needed, as symbolic dimensions of {a.shape} may be 1 or not")
        axes = tuple(k for k, n in enumerate(a.shape) if n == 1)
    else:
        axes = canonical_axes("squeeze", axis, a.ndim)
        if any(a.shape[k] != 1 for k in axes):
            raise ValueError(
                f"squeeze: argument 'axis' names {axes} of shape {a.shape}; only axes of length 1 can be removed"
            )
    return lax.squeeze(a, axes) if axes else a


def expand_dims(a: Any, axis: Any) -> Any:
    """a with new axes of length 1 at the positions given, counted in the result; ValueError if they repeat."""
    (a,) = arrays("expand_dims", a)
    given = (axis,) if is_integer(axis) else tuple(axis)
    rank = a.ndim + len(given)
    axes = tuple(canonical_axis("expand_dims", k, rank) for k in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in expand_dims: {given}")
    return lax.expand_dims(a, tuple(sorted(axes))) if axes else a


def atleast_1d(*arys: Any) -> Any:
    """Arrays of at least one axis; a list if there are several arguments."""
    out = [x if x.ndim else lax.expand_dims(x, (0,)) for x in arrays("atleast_1d", *arys)]
    return out[0] if len(out) == 1 else out


def atleast_2d(*arys: Any) -> Any:
    """Arrays of at least two axes, new ones in front; a list if there are several arguments."""
    out = [x if x.ndim >= 2 else lax.expand_dims(x, tuple(range(2 - x.ndim))) for x in arrays("atleast_2d", *arys)]
    return out[0] if len(out) == 1 else out


def atleast_3d(*arys: Any) -> Any:
    """Arrays of at least three axes; a vector becomes (1, n, 1), a matrix (n, m, 1); a list if there are several
    arguments.
    """
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}
    out = [x if x.ndim >= 3 else lax.expand_dims(x, new[x.ndim]) for x in arrays("atleast_3d", *arys)]
    return out[0] if len(out) == 1 else out


# ---- order of axes


def transpose(a: Any, axes: Any = None) -> Any:
    """a with its axes reversed, or in the order given; TypeError if that is no permutation of the axes."""
    (a,) = arrays("transpose", a)
    if axes is None:
        order = tuple(range(a.ndim - 1, -1, -1))
    else:
        given = (axes,) if is_integer(axes) else tuple(axes)
        order = tuple(operator.index(k) + (a.ndim if operator.index(k) < 0 else 0) for k in given)
        if sorted(order) != list(range(a.ndim)):
            for k in given:
                canonical_axis("transpose", k, a.ndim, "axes")
            raise TypeError(
                f"transpose: axes={given} isn't a permutation of the {a.ndim} axes of an array of shape {a.shape}"
            )
    return a if order == tuple(range(a.ndim)) else lax.transpose(a, order)


def permute_dims(a: Any, /, axes: Any) -> Any:
    """a with its axes in the order given, counted from 0; TypeError without one or for negative axes."""
    if axes is None:
        raise TypeError("permute_dims: argument 'axes' must be a sequence of integers, got None")
    axes = (axes,) if is_integer(axes) else tuple(axes)
    if any(not 0 <= operator.index(k) < np.ndim(a) for k in axes):
        raise TypeError(
            f"permute_dims: argument 'axes' is {axes}; expected axes from 0 on, transpose takes negative ones"
        )
    return transpose(a, axes)


@api_boundary
def matrix_transpose(x: Any, /) -> Any:
    """x with its last two axes exchanged; ValueError below rank 2."""
    (x,) = arrays("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: argument 'x' has shape {x.shape}; expected matrices, of rank 2 or more")
    order = list(range(x.ndim))
    order[-1], order[-2] = order[-2], order[-1]
    return lax.transpose(x, tuple(order))


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """a with two axes exchanged; IndexError for axes out of bounds."""
    (a,) = arrays("swapaxes", a)
    order = list(range(a.ndim))
    i = canonical_axis("swapaxes", axis1, a.ndim, "axis1", IndexError)
    j = canonical_axis("swapaxes", axis2, a.ndim, "axis2", IndexError)
    order[i], order[j] = order[j], order[i]
    return a if i == j else lax.transpose(a, tuple(order))


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """a with the axes `source` at the positions `destination`, the others in their order."""
    (a,) = arrays("moveaxis", a)
    source = canonical_axes("moveaxis", source, a.ndim, "source")
    destination = canonical_axes("moveaxis", destination, a.ndim, "destination")
    if len(source) != len(destination):
        raise ValueError(f"Inconsistent number of elements: {len(source)} vs {len(destination)} (moveaxis)")
    order = [k for k in range(a.ndim) if k not in source]
    for to, k in sorted(zip(destination, source)):
        order.insert(to, k)
    return a if order == list(range(a.ndim)) else lax.transpose(a, tuple(order))


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """a with an axis moved in front of the axis `start`."""
    (a,) = arrays("rollaxis", a)
    axis = canonical_axis("rollaxis", axis, a.ndim)
    start = static_int(start, "rollaxis: argument 'start'")
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"rollaxis: argument 'start' is {start}, expected {-a.ndim} to {a.ndim}")
    start = start + a.ndim if start < 0 else start
    return moveaxis(a, axis, start - 1 if start > axis else start)


# ---- broadcasting


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Any:
    """The array broadcast to a shape; ValueError if it cannot be."""
    (array,) = arrays("broadcast_to", array)
    shape = canonical_shape(shape)
    if any(n < 0 for n in shape):
        raise ArgumentError(f"broadcast_to: argument 'shape' must have lengths of at least 0, got {shape}")
    return out_placed("jnp.broadcast_to", _broadcast_to(array, shape), out_sharding)


def broadcast_arrays(*args: Any) -> list[Any]:
    """The arrays broadcast to their common shape; ValueError if there is none."""
    converted = arrays("broadcast_arrays", *args)
    return _broadcast_arrays("broadcast_arrays", *converted) if converted else []


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast; ValueError if there is none, TypeError for negative lengths."""
    return lax.broadcast_shapes(*[canonical_shape(s, "argument of broadcast_shapes") for s in shapes])


# ---- order of elements


def flip(m: Any, axis: Any = None) -> Any:
    """m with the elements along axes (all by default) in reverse order."""
    (m,) = arrays("flip", m)
    if isinstance(axis, (tuple, list)):
        axes = [canonical_axis("flip", k, m.ndim) for k in axis]
        if len({*axes}) != len(axes):
            raise TypeError(f"flip: argument 'axis' must have different axes, got {axis}")
    return lax.rev(m, canonical_axes("flip", axis, m.ndim))


def fliplr(m: Any) -> Any:
    """m with axis 1 reversed."""
    return flip(m, 1)


def flipud(m: Any) -> Any:
    """m with axis 0 reversed."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """m turned by 90 degrees k times, from the first of the axes towards the second; ValueError if
    they are the same.
    """
    (m,) = arrays("rot90", m)
    first, second = (canonical_axis("rot90", axis, m.ndim, "axes") for axis in axes)
    if first == second:
        raise ValueError("Axes must be different")
    turns = static_int(k, "rot90: argument 'k'") % 4
    if turns == 0:
        return m
    if turns == 2:
        return flip(m, (first, second))
    if turns == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """a with elements moved along axes, those pushed out coming in at the other end; of all in C order without axis."""
    (a,) = arrays("roll", a)
    if isinstance(shift, (list, tuple)) and any(isinstance(s, (Array, Tracer)) for s in shift):
        shift = lax.concatenate([lax.reshape(s, (1,)) for s in promote("roll", *shift)], 0)
    if np.ndim(shift) > 1:
        raise ValueError(f"roll: argument 'shift' must be a scalar or a vector, got shape {np.shape(shift)}")
    if axis is None:
        return lax.reshape(roll(lax.reshape(a, (a.size,)), shift, 0), a.shape)
    axes = (axis,) if is_integer(axis) else tuple(axis)
    axes = tuple(canonical_axis("roll", k, a.ndim) for k in axes)
    if isinstance(shift, (Array, Tracer)):
        return _rolled_by_array(a, shift, axes)
    return _rolled(a, [static_int(s, "roll: argument 'shift'") for s in np.atleast_1d(np.asarray(shift)).ravel()], axes)


def _roll_dynamic(a: Any, shift: Any, axes: tuple[int, ...]) -> Any:
    flat = lax.reshape(shift, (shift.size,))
    return _rolled(a, [lax.index_in_dim(flat, k, 0, keepdims=False) for k in range(flat.size)], axes)


_rolled_by_array = eager(_roll_dynamic, (2,))


def _rolled(a: Any, shifts: list[Any], axes: tuple[int, ...]) -> Any:
    """a with elements moved by each shift along its axis; one shift goes along all axes, one axis has all shifts."""
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    if len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts do not go with {len(axes)} axes")
    for s, k in zip(shifts, axes):
        a = _roll_one(a, s, k)
    return a


def _roll_one(a: Any, shift: Any, axis: int) -> Any:
    n = a.shape[axis]
    if n == 0:
        return a
    if isinstance(shift, int) or is_symbolic(shift):
        first = -shift % n
        if first == 0:
            return a
        return lax.concatenate(
            [lax.slice_in_dim(a, first, n, axis=axis), lax.slice_in_dim(a, 0, first, axis=axis)], axis
        )
    if shift.dtype.itemsize < 4 or shift.dtype == bool:
        shift = convert(shift, np.dtype(np.int32))
    moved = convert(remainder(shift, const(shift, n)), np.dtype(np.int32))
    return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), lax.sub(const(moved, n), moved), n, axis)


# ---- repetition


def tile(A: Any, reps: Any) -> Any:
    """A repeated as a whole, reps times along each axis."""
    (A,) = arrays("tile", A)
    counts = (reps,) if is_integer(reps) or isinstance(reps, str) else tuple(reps)
    counts = tuple(static_int(r, "tile: argument 'reps', or each of a sequence,") for r in counts)
    rank = max(A.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - A.ndim) + A.shape
    placing = getattr(type_of_operands()(A), "placing", None)
    if placing is None:
        return lax.tile(_broadcast_to(A, shape), counts)
    paired = tuple(n for c, d in zip(counts, shape) for n in (c, d))
    spread = lax.broadcast_in_dim(lax.reshape(A, shape), paired, tuple(range(1, 2 * rank, 2)))
    tiled = tuple(c * d for c, d in zip(counts, shape))
    parts = (*(None,) * (rank - A.ndim), *placing.spec)
    for axis, (count, part) in enumerate(zip(counts, parts)):
        if count != 1 and part is not None:
            raise ShardingTypeError(
                f"tile: axis {axis - rank + A.ndim} of {type_of_operands()(A).str_short(False)} is divided between "
                f"devices and cannot be repeated; got repetitions {counts}"
            )
    return lax.reshape(spread, tiled, out_sharding=placing.update(spec=placing.spec.update(partitions=parts)))


def repeat(
    a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None
) -> Any:
    """a with each element along an axis (or of all in C order) repeated; `repeats` is a number or one for each element.

    Traced numbers need `total_repeat_length`, to which the result is cut or filled with the last element.
    """
    check_arraylike("repeat", a)
    if not is_integer(repeats):
        check_arraylike("repeat", a, repeats)
    (a,) = arrays("repeat", a)
    if axis is None or a.ndim == 0:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = canonical_axis("repeat", axis, a.ndim)
    n = a.shape[axis]
    if (
        total_repeat_length is not None
        and static_int(total_repeat_length, "repeat: argument 'total_repeat_length'") < 0
    ):
        raise TypeError(f"repeat: argument 'total_repeat_length' must not be negative, got {total_repeat_length}")
    if isinstance(repeats, Tracer) and (known := repeats.to_concrete()) is not None:
        repeats = known
    traced = isinstance(repeats, Tracer)
    found_later = traced or is_symbolic(n) or is_symbolic(total_repeat_length)
    kind = dtypes.dtype_of(repeats)
    if not dtypes.issubdtype(kind, np.integer) and kind != np.bool_:
        raise TypeError(f"repeat: argument 'repeats' must be integers, got {kind}")
    equal = not traced and np.ndim(repeats) == 0 and total_repeat_length is None
    spec = place_of_type(type_of_operands()(a))
    if out_sharding is None and spec is not None and spec[axis] is not None and not is_asked():
        # JAX asks under a mesh; elsewhere only where it is not plain how many elements of the result each device has.
        if not equal or not np.any(repeats) or not get_abstract_mesh().empty:
            raise ValueError(
                f"repeat: axis {axis} is divided between devices; say by 'out_sharding' how the result is to be divided"
            )
    if equal:
        return out_placed("jnp.repeat", _repeated_alike(a, int(np.asarray(repeats)), axis), out_sharding)
    if traced and total_repeat_length is None:
        raise ConcretizationTypeError(
            repeats,
            "jnp.repeat: the sum of 'repeats' is the length of the result, and it is traced. Pass it as "
            "'total_repeat_length', or pass repeats that are no tracers.",
        )
    repeats = lax.reshape(repeats, (repeats.size,)) if traced and repeats.ndim > 1 else repeats
    length = np.size(repeats) if not traced else repeats.size
    if length not in (1, n):
        raise ValueError(
            f"repeat: argument 'repeats' has length {length}, but axis {axis} of an array of shape {a.shape} has {n}; "
            "operands could not be broadcast together"
        )
    if n == 0:  # there is no last element to fill the result with
        return out_placed("jnp.repeat", a, out_sharding)
    if not found_later:
        source = np.repeat(np.arange(n), np.broadcast_to(np.asarray(repeats).reshape(-1), (n,)))
        if total_repeat_length is not None:
            total = static_int(total_repeat_length, "repeat: argument 'total_repeat_length'")
            source = np.concatenate([source, np.full(max(0, total - source.size), n - 1)])[:total]
        return out_placed("jnp.repeat", _take_static(a, source, axis), out_sharding)
    total = static_int(total_repeat_length, "repeat: argument 'total_repeat_length'")
    index = (slice(None),) * axis + (_sources(as_array(repeats), n, total),)
    return out_placed("jnp.repeat", rewriting_take(a, index), out_sharding)


def _repeated_alike(a: Any, count: int, axis: int) -> Any:
    """a with each element along the axis so many times."""
    if count < 0:
        raise TypeError(f"repeat: argument 'repeats' is {count}; expected at least 0")
    spread_shape = (*a.shape[: axis + 1], count, *a.shape[axis + 1 :])
    kept = tuple(k for k in range(len(spread_shape)) if k != axis + 1)
    spread = lax.broadcast_in_dim(a, spread_shape, kept)
    return lax.reshape(spread, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1 :]))


def _sources(repeats: Any, n: Any, total: Any) -> Any:
    """The number of the element that is at each of `total` places, where n elements are repeated so many times."""
    counts = _broadcast_to(lax.reshape(repeats, (repeats.size,)), (n,))
    if counts.dtype.itemsize < 4:
        counts = convert(counts, np.dtype(np.int32))  # sums of numbers of 8 bits do not fit into 8 bits
    ends = lax.min(lax.cumsum(counts, axis=0), lax.full_like(counts, total))
    # Element i fills the positions from ends[i-1] to ends[i]: as many ends are at or before a position as it has
    # predecessors. Ends are counted where they lie, and the counts summed: a pass over each, whatever their numbers.
    marks = lax.scatter_add(
        lax.full((total,), 0, np.dtype(np.int32)),
        lax.expand_dims(convert(ends, np.dtype(np.int32)), (1,)),
        lax.full((n,), 1, np.dtype(np.int32)),
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=True,
        mode="drop",
    )
    sources = lax.cumsum(marks, axis=0)
    return lax.min(sources, lax.full_like(sources, max(n - 1, 0)))


def _take_static(a: Any, source: np.ndarray, axis: int) -> Any:
    return rewriting_take(a, (slice(None),) * axis + (source.astype(np.int32),))


def resize(a: Any, new_shape: Any) -> Any:
    """The elements of a in C order, over and over, in another shape."""
    (a,) = arrays("resize", a)
    shape = canonical_shape(new_shape)
    if any(d < 0 for d in shape):
        raise ValueError(f"resize: argument 'new_shape' is {shape}; lengths start at 0")
    size = math.prod(shape)
    if a.size == 0 or size == 0:
        return lax.full(shape, 0, a.dtype)
    flat = lax.reshape(a, (a.size,))
    times = -(-size // a.size)
    if is_symbolic(times) or times > 1:
        flat = tile(flat, times)
    return lax.reshape(lax.slice_in_dim(flat, 0, size, axis=0), shape)


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """A concrete array without the zeros at its front ('f'), back ('b') or both; along all axes by default."""
    (filt,) = arrays("trim_zeros", filt)
    if filt.ndim == 0:
        return filt
    nonzero = np.nonzero(
        np.asarray(concrete_or_error(filt, "trim_zeros: the shape of the result depends on where 'filt' is zero"))
    )
    axes = canonical_axes("trim_zeros", axis, filt.ndim)
    index: list[Any] = [slice(None)] * filt.ndim
    for k in axes:
        found = nonzero[k]
        if found.size == 0:
            index[k] = slice(0, 0)
            continue
        start = int(found.min()) if "f" in trim.lower() else None
        stop = int(found.max()) + 1 if "b" in trim.lower() else None
        index[k] = slice(start, stop)
    return rewriting_take(filt, tuple(index))


def ix_(*args: Any) -> tuple[Any, ...]:
    """Vectors as index arrays of an open grid: the k-th along axis k. Booleans become the numbers of their True
    elements.
    """
    converted = arrays("ix_", *args)
    out = []
    for k, x in enumerate(converted):
        if x.ndim != 1:
            raise ValueError(f"Arguments to ix_ must be 1-dimensional, got shape {x.shape}")
        if x.dtype == np.bool_:
            if isinstance(x, Tracer):
                raise NotImplementedError("Boolean arguments to ix_ are not implemented for traced arrays")
            x = as_array(np.flatnonzero(np.asarray(x)).astype(np.int32))
        elif x.size == 0:
            # An empty list becomes an array of floats, which could index nothing.
            x = lax.full((0,), 0, dtypes.canonicalize_dtype(np.int64))
        out.append(lax.broadcast_in_dim(x, tuple(x.size if j == k else 1 for j in range(len(converted))), (k,)))
    return tuple(out)
