"""Choosing elements by condition: where, select, clip, nonzero and their relatives; comparisons of whole arrays."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.core.explain import check
from pullback.core.kinds import NESTED
from pullback.lax.records.operands import check_places
from pullback.numpy._arguments import (
    arrays,
    as_array,
    beside,
    broadcast_alike,
    broadcast_arrays,
    broadcast_shapes_of,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    const,
    convert,
    dtype_of,
    is_integer,
    make_array,
    promote,
    promote_dtypes,
    promote_inexact,
    refuse_out,
    static_int,
)
from pullback.numpy._comparison import isfinite, isnan, maximum, minimum
from pullback.numpy._index_keys import where_true
from pullback.numpy._indexing import Mode, index_get
from pullback.numpy._reducers import all as _all
from pullback.numpy._reducers import count_nonzero
from pullback.util import config, dtypes
from pullback.util.static import check_flags

_INT32 = np.dtype(np.int32)


def index_dtype() -> np.dtype:
    """The dtype of positions: int64, or int32 without x64."""
    return np.dtype(dtypes.canonicalize_dtype(np.int64))


# ---- by condition


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """x where the condition holds and y elsewhere, broadcast and promoted; of a condition alone, its `nonzero`.

    Raises TypeError for lists, ValueError if size or fill_value come with three arguments.
    """
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError(
            "where: 'size' and 'fill_value' are for the indices that where(condition) returns; leave them out to "
            "choose between x and y"
        )
    if x is None or y is None:
        check_arraylike("where", condition, *(a for a in (x, y) if a is not None))
        given, missing = ("x", "y") if y is None else ("y", "x")
        raise TypeError(
            f"where: argument '{given}' was given without '{missing}'; call where(condition, x, y) to choose, or "
            "where(condition) for indices"
        )
    check_arraylike("where", condition, x, y)
    return select_where(condition, x, y)


def select_where(condition: Any, x: Any, y: Any) -> Any:
    """where of three array-likes."""
    condition = as_array(condition)
    if condition.dtype != np.bool_:
        condition = lax.ne(condition, const(condition, 0))
    x, y = promote_dtypes(x, y)
    shape = condition.shape
    if x.shape != shape or y.shape != shape:
        if condition.ndim == 0:  # it chooses one of the arrays as a whole, without being broadcast
            x, y = broadcast_arrays("where", x, y)
        else:
            condition, x, y = broadcast_arrays("where", condition, x, y)
    return lax.select(condition, x, y)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds, or the default."""
    if getattr(condlist, "ndim", 0) or getattr(choicelist, "ndim", 0):  # an array is the sequence of its rows
        condlist, choicelist = [*condlist], [*choicelist]
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions for {len(choicelist)} choices; expected as many")
    if len(condlist) == 0:
        raise ValueError("select: argument 'condlist' is empty; expected at least one condition")
    check_arraylike("select", *condlist, *choicelist, default)
    *choices, result = promote_dtypes(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        result = select_where(condition, choice, result)
    return result


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """For each element of x the function (or number) of the last condition that holds; one more function is the
    default.
    """
    (x,) = arrays("piecewise", x)
    if not isinstance(condlist, (list, tuple)) and getattr(condlist, "ndim", 0) == 0:
        raise TypeError(
            f"piecewise: argument 'condlist' must be a sequence or an array of conditions, got {condlist!r}"
        )
    from pullback.numpy._creation import asarray

    conditions = [asarray(c) for c in condlist]
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        functions = functions[-1:] + functions[:-1]
    elif len(functions) == len(conditions):
        functions = [0, *functions]
    else:
        raise ValueError(
            f"piecewise: {len(functions)} functions for {len(conditions)} conditions; pass one for each, and if need "
            "be one more as the default"
        )
    result = _piece(functions[0], x, args, kw)
    for condition, function in zip(conditions, functions[1:]):
        result = convert(select_where(condition, _piece(function, x, args, kw), result), x.dtype)
    return result


def _piece(function: Any, x: Any, args: Any, kw: Any) -> Any:
    value = function(x, *args, **kw) if callable(function) else function
    return broadcast_to(convert(as_array(value), x.dtype), x.shape)


def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """x with NaN and infinities replaced by numbers, by default 0 and the largest and smallest of the type."""
    check("nan_to_num", NESTED, copy=copy)
    (x,) = arrays("nan_to_num", x)
    from pullback.numpy._creation import from_list

    nan, posinf, neginf = from_list(nan), from_list(posinf), from_list(neginf)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        parts = lax.real(x), lax.imag(x)  # a complex number for both is warned of once
        nan, posinf, neginf = (None if v is None else convert(v, parts[0].dtype) for v in (nan, posinf, neginf))
        return lax.complex(*(nan_to_num(p, True, nan, posinf, neginf) for p in parts))
    limits = dtypes.finfo(x.dtype)
    x = convert(x, x.dtype)
    high = const(x, float(limits.max)) if posinf is None else convert(posinf, x.dtype)
    low = const(x, float(limits.min)) if neginf is None else convert(neginf, x.dtype)
    out = select_where(isnan(x), convert(nan, x.dtype), x)
    out = select_where(lax.eq(out, const(out, math.inf)), high, out)
    return select_where(lax.eq(out, const(out, -math.inf)), low, out)


def clip(arr: Any = None, /, min: Any = None, max: Any = None) -> Any:
    """arr with elements below min replaced by min, then those above max by max; ValueError for complex numbers."""
    if arr is None:
        raise ValueError("clip: argument 'arr' is missing")
    check_arraylike("clip", arr)
    for given, values in (("arr", arr), ("min", min), ("max", max)):
        if values is not None and dtypes.issubdtype(dtype_of(values), np.complexfloating):
            raise ValueError(
                f"clip: argument '{given}' is of dtype {dtype_of(values)}, which has no order; clip jnp.real(x) and "
                "jnp.imag(x) apart"
            )
    result = as_array(arr)
    if min is not None:
        result = maximum(min, result)
    if max is not None:
        result = minimum(max, result)
    return result


# ---- positions of True


def unravel(flat: Any, shape: Sequence[int]) -> list[Any]:
    """Positions along each axis of numbers in C order, which are in bounds; of floats the last keeps the fraction."""
    whole = dtypes.issubdtype(flat.dtype, np.integer)
    out = []
    for n in reversed(shape[1:]):
        length = lax.full_like(flat, n)
        out.append(lax.rem(flat, length))
        flat = lax.div(flat, length) if whole else lax.floor(lax.div(flat, length))
    return [flat, *out[::-1]]


def _static_size(name: str, size: Any) -> int | None:
    if size is None:
        return None
    size = static_int(size, f"{name}: argument 'size'")
    if size < 0:
        raise TypeError(f"{name}: argument 'size' must not be negative, got {size}")
    return size


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """Positions of the elements that are not zero, as one index array an axis, in C order.

    How many there are depends on values, so that a traced array needs a static `size`: the result is cut to it, or
    filled up with `fill_value` (0 by default; a number, or a tuple of one an axis).
    """
    (a,) = arrays("nonzero", a)
    if a.ndim == 0:
        raise ValueError("nonzero: argument 'a' is a scalar, which has no indices; pass jnp.atleast_1d(a)")
    dtype = index_dtype()
    if not isinstance(a.dtype, np.dtype):
        raise TypeError(f"nonzero does not accept dtype {a.dtype}; accepted are numbers and booleans")
    for length in a.shape:
        check_places("nonzero", length, dtype)
    size = _static_size("nonzero", size)
    fill = _fill_values(fill_value, a.ndim)
    if size is not None and (a.size == 0 or size == 0):
        return tuple(lax.full((size,), 0, dtype) for _ in fill)
    concrete = a.to_concrete() if isinstance(a, Tracer) else a
    if size is None or concrete is not None:
        if concrete is None:
            concrete_or_error(
                count_nonzero(a),
                "jnp.nonzero: the number of elements found is a shape, which has to be known while tracing. Pass it: "
                "jnp.nonzero(x, size=n), or call jnp.where(mask, x, fill) in place of jnp.where(mask).",
            )
        if size is None or all(is_integer(f) and not isinstance(f, Tracer) for f in fill):
            return beside(concrete, _nonzero_concrete(np.asarray(concrete), size, fill, dtype))
    mask = lax.ne(a, const(a, 0)) if a.dtype != np.bool_ else a
    flat = lax.reshape(mask, (a.size,))
    from pullback.lax.ordering.selection import positions  # which most programs do not need

    found, count = positions(flat, size, dtype)
    valid = lax.lt(lax.iota(dtype, size), broadcast_to(count, (size,)))
    return tuple(select_where(valid, p, f) for p, f in zip(unravel(found, a.shape), fill))


def _fill_values(fill_value: Any, rank: int) -> tuple[Any, ...]:
    if fill_value is None:
        return (0,) * rank
    if isinstance(fill_value, tuple):
        if len(fill_value) != rank:
            raise ValueError(
                f"nonzero: argument 'fill_value' has {len(fill_value)} entries, but the array has rank {rank}"
            )
        check_arraylike("nonzero: argument 'fill_value'", *fill_value)
        return fill_value
    if np.ndim(fill_value) != 0:
        raise ValueError(
            f"nonzero: argument 'fill_value' is {fill_value}; accepted are one number and, in a tuple, {rank}"
        )
    check_arraylike("nonzero: argument 'fill_value'", fill_value)
    return (fill_value,) * rank


def _nonzero_concrete(a: np.ndarray, size: int | None, fill: tuple[Any, ...], dtype: np.dtype) -> tuple[Any, ...]:
    found = where_true(a, dtype)
    out = []
    for positions, value in zip(found, fill):
        if size is not None:
            filler = np.full(max(0, size - positions.size), np.asarray(value))
            positions = np.concatenate([positions[:size], filler])
        out.append(make_array(positions.astype(dtype, copy=False), dtype))
    return tuple(out)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Positions in C order of the elements that are not zero; size as for `nonzero`."""
    (a,) = arrays("flatnonzero", a)
    return nonzero(lax.reshape(a, (a.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Positions of the elements that are not zero, as rows of a matrix; size as for `nonzero`."""
    (a,) = arrays("argwhere", a)
    if a.ndim == 0:
        size = _static_size("argwhere", size)
        count = int(np.asarray(concrete_or_error(a, "argwhere of a scalar")) != 0) if size is None else size
        return make_array(np.zeros((count, 0), index_dtype()))
    found = nonzero(a, size=size, fill_value=fill_value)
    return lax.concatenate([lax.expand_dims(f, (1,)) for f in found], 1)


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """Elements of arr, in C order, where the condition holds; size as for `nonzero`."""
    condition, arr = arrays("extract", condition, arr)
    return compress(
        lax.reshape(condition, (condition.size,)), lax.reshape(arr, (arr.size,)), size=size, fill_value=fill_value
    )


def compress(
    condition: Any, a: Any, axis: int | None = None, *, size: int | None = None, fill_value: Any = 0, out: None = None
) -> Any:
    """Slices of a along an axis (elements in C order) where the condition holds; size as for `nonzero`.

    The condition may be shorter than the axis; what is beyond it counts as False.
    """
    refuse_out("compress", out)
    condition, a, fill_value = arrays("compress", condition, a, fill_value)
    if condition.ndim != 1:
        raise ValueError(f"condition must be a 1D array, got shape {condition.shape}")
    if size is not None:  # of a known number of elements, what fills up counts, too, and the result is strongly typed
        a = convert(a, a.dtype)
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = canonical_axis("compress", axis, a.ndim)
    n = a.shape[axis]
    size = None if size is None else static_int(size, "compress: argument 'size'")
    if size is not None and not 0 <= size <= builtins.min(n, condition.shape[0]):
        raise ValueError(
            f"compress: argument 'size' is {size}; accepted are 0 to {builtins.min(n, condition.shape[0])}"
        )
    if condition.shape[0] > n:
        rest = condition.to_concrete() if isinstance(condition, Tracer) else condition
        if rest is not None and np.asarray(rest)[n:].any():
            raise ValueError(f"compress: argument 'condition' is true beyond the {n} elements of axis {axis}")
        condition = lax.slice_in_dim(condition, 0, n, axis=0)
    numbers = nonzero(condition, size=size, fill_value=n)[0]
    if isinstance(fill_value, Tracer):
        found = index_get(a, (slice(None),) * axis + (numbers,), mode=Mode.FILL_OR_DROP, fill_value=0)
        there = lax.expand_dims(lax.lt(numbers, const(numbers, n)), tuple(range(1, a.ndim - axis)))
        return select_where(there, found, convert(fill_value, a.dtype))
    return index_get(
        a, (slice(None),) * axis + (numbers,), mode=Mode.FILL_OR_DROP, fill_value=_static(fill_value, a.dtype)
    )


def _static(fill_value: Any, dtype: Any) -> Any:
    value = concrete_or_error(fill_value, "compress: argument 'fill_value' must be static")
    return np.asarray(value).astype(dtype)[()]


# ---- whole arrays


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol |b|, elementwise; equal infinities are close, NaN are if `equal_nan`."""
    check_flags("isclose", equal_nan=equal_nan)
    check_arraylike("isclose", a, b)
    if any(dtypes.is_extended(getattr(x, "dtype", None)) for x in (a, b)):
        return a == b  # keys are no numbers: none are close but equal ones
    a, b = promote_inexact("isclose", *promote("isclose", a, b))
    a, b = broadcast_alike("isclose", convert(a, a.dtype), convert(b, b.dtype))
    size = lax.abs(b)
    rtol, atol = convert(rtol, size.dtype), convert(atol, size.dtype)
    bound = broadcast_to(lax.add(atol, lax.mul(rtol, size)), a.shape)
    near = lax.bitwise_and(isfinite(b), lax.le(lax.abs(lax.sub(a, b)), bound))
    close = lax.bitwise_or(near, lax.eq(a, b))
    return lax.bitwise_or(close, lax.bitwise_and(isnan(a), isnan(b))) if equal_nan else close


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as `isclose` says."""
    check_flags("allclose", equal_nan=equal_nan)
    check_arraylike("allclose", a, b)
    return _all(isclose(a, b, rtol, atol, equal_nan))


def _pair(a1: Any, a2: Any) -> tuple[Any, Any]:
    from pullback.numpy._creation import asarray

    return asarray(a1), asarray(a2)


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have one shape and the same elements; lists are accepted. TypeError for what is no array."""
    pair = _pair(a1, a2)
    if pair[0].shape != pair[1].shape:
        return make_array(np.asarray(False))
    a, b = promote("array_equal", *pair)
    same = lax.eq(a, b)
    if equal_nan and dtypes.issubdtype(a.dtype, np.inexact):
        same = lax.bitwise_or(same, lax.bitwise_and(isnan(a), isnan(b)))
    return _all(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays broadcast to the same elements; lists are accepted."""
    pair = _pair(a1, a2)
    # Whatever is set: no array of the common type and rank is seen.
    with config.numpy_dtype_promotion("standard"), config.numpy_rank_promotion("allow"):
        try:
            broadcast_shapes_of("array_equiv", [pair[0].shape, pair[1].shape])
            one, other = promote("array_equiv", *pair)
        except ValueError:  # of shapes, or of types without a common one
            return make_array(np.asarray(False))
        return _all(lax.eq(one, other))
