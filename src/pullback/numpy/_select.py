"""Choosing elements: where, take, nonzero, select, clip and their relatives, and comparisons of whole arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.lax import _selection
from pullback.numpy._arguments import (
    Array,
    arrays,
    as_array,
    broadcast_shapes_of,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
    dtype_of,
    make_array,
    promote,
    promote_dtypes,
    promote_inexact,
    refuse_out,
    static_int,
)
from pullback.numpy._indexing import Mode, index_get, index_update, normalize, rewriting_take
from pullback.numpy._reducers import all as _all
from pullback.numpy._reducers import count_nonzero
from pullback.numpy._ufuncs import const, isinf, isnan, maximum, minimum, remainder
from pullback.util import dtypes

_INT32 = np.dtype(np.int32)


def _index_dtype() -> np.dtype:
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
        raise ValueError("size and fill_value arguments cannot be used in three-term where function.")
    if x is None or y is None:
        check_arraylike("where", condition, x, y)
        raise ValueError("Either both or neither of the x and y arguments should be provided to jax.numpy.where")
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
        shape = broadcast_shapes_of("where", [shape, x.shape, y.shape])
        # A scalar condition chooses one of the arrays as a whole, without being broadcast.
        condition = condition if condition.ndim == 0 else broadcast_to(condition, shape)
        x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    return lax.select(condition, x, y)


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each element the choice of the first condition that holds, or the default."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
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
    if isinstance(condlist, (Array, Tracer, np.ndarray)):
        condlist = list(condlist) if condlist.ndim > x.ndim else [condlist]
    conditions = [as_array(c) for c in condlist]
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        functions = functions[-1:] + functions[:-1]
    elif len(functions) == len(conditions):
        functions = [0, *functions]
    else:
        raise ValueError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or {len(conditions) + 1} functions are "
            "expected; "
            f"got {len(functions)}"
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
    del copy
    (x,) = arrays("nan_to_num", x)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.complex(*(nan_to_num(p, True, nan, posinf, neginf) for p in (lax.real(x), lax.imag(x))))
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
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr)
    if any(dtypes.issubdtype(dtype_of(t), np.complexfloating) for t in (arr, min, max) if t is not None):
        raise ValueError(
            "Clip received a complex value either through the input or the min/max keywords. Complex values have no "
            "ordering and cannot be clipped. Please convert to a real value or array by taking the real or imaginary "
            "components via jax.numpy.real/imag respectively."
        )
    result = as_array(arr)
    if min is not None:
        result = maximum(min, result)
    if max is not None:
        result = minimum(max, result)
    return result


# ---- by index


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """Elements of a along an axis (or of all in C order) by number.

    Numbers out of bounds give `fill_value` (mode 'fill', the default: NaN for floats), the nearest element ('clip')
    or the one that counting on from the other end meets ('wrap').
    """
    refuse_out("take", out)
    a, indices = arrays("take", a, indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices must have an integer type, got {indices.dtype} (take)")
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = canonical_axis("take", axis, a.ndim)
    n = a.shape[axis]
    if mode is None or mode == "fill":
        how: Any = Mode.FILL_OR_DROP
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    elif mode == "wrap":
        how, indices = Mode.PROMISE_IN_BOUNDS, remainder(indices, make_array(n, indices.dtype))
    elif mode == "clip":
        # As in NumPy, negative numbers are out of bounds here; they do not count from the end.
        how, indices = Mode.CLIP, lax.max(indices, lax.full_like(indices, 0))
    else:
        raise ValueError(f"Invalid mode {mode!r} for np.take; expected 'fill', 'clip' or 'wrap'")
    if n == 0 and indices.size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if indices.ndim == 0:
        # As an array of rank 1, so that an index out of bounds gives the fill value as for any other.
        column = index_get(
            a, (slice(None),) * axis + (lax.expand_dims(indices, (0,)),), mode=how, fill_value=fill_value
        )
        return lax.squeeze(column, (axis,))
    return index_get(
        a,
        (slice(None),) * axis + (indices,),
        mode=how,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
    )


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: Any = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """For each position of the indices, the element of arr with that position but for the axis, where it is the index.

    The other axes broadcast. Indices out of bounds give the fill value unless mode is 'clip'.
    """
    arr, indices = arrays("take_along_axis", arr, indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"take_along_axis indices must be of integer type, got {indices.dtype}")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape {indices.shape}")
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    if arr.ndim != indices.ndim:
        raise ValueError(f"indices and arr must have the same number of dimensions; {indices.ndim} vs. {arr.ndim}")
    axis = canonical_axis("take_along_axis", axis, arr.ndim)
    how = Mode.FILL_OR_DROP if mode is None else mode
    if isinstance(how, str):
        how = {"fill": Mode.FILL_OR_DROP, "clip": Mode.CLIP, "promise_in_bounds": Mode.PROMISE_IN_BOUNDS}.get(how, how)
    wrap = True if wrap_negative_indices is None else wrap_negative_indices
    return _take_along(arr, indices, axis, how, fill_value, wrap)


def _take_along(arr: Any, indices: Any, axis: int, how: Any, fill_value: Any, wrap: bool) -> Any:
    rank = arr.ndim
    others = [k for k in range(rank) if k != axis]
    lead = broadcast_shapes_of(
        "take_along_axis", [tuple(arr.shape[k] for k in others), tuple(indices.shape[k] for k in others)]
    )
    shape = list(lead)
    shape.insert(axis, indices.shape[axis])
    component, inside = normalize(indices, arr.shape[axis], wrap)
    component = broadcast_to(as_array(component), shape)
    # Axes along which both go together are batch axes; where arr has length 1, its one element serves all.
    batch = tuple(k for k in others if arr.shape[k] == shape[k] and arr.shape[k] != 1)
    dropped = tuple(k for k in others if k not in batch)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(),
        collapsed_slice_dims=tuple(sorted((axis, *dropped))),
        start_index_map=(axis,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return lax.gather(
        arr,
        lax.expand_dims(component, (rank,)),
        numbers,
        (1,) * rank,
        mode=Mode.PROMISE_IN_BOUNDS if inside else how,
        fill_value=fill_value,
    )


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array."
        )


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Any:
    """arr with the elements that `take_along_axis` takes replaced by values; `inplace=False` must be given."""
    _refuse_inplace("put_along_axis", inplace)
    arr, indices, values = arrays("put_along_axis", arr, indices, values)
    shape = arr.shape
    if axis is None:
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    axis = canonical_axis("put_along_axis", axis, arr.ndim)
    lead = list(
        broadcast_shapes_of(
            "put_along_axis",
            [tuple(n for k, n in enumerate(s) if k != axis) for s in (arr.shape, indices.shape)],
        )
    )
    lead.insert(axis, indices.shape[axis])
    index = []
    for k in range(arr.ndim):
        if k == axis:
            index.append(indices)
        else:
            index.append(lax.broadcasted_iota(_INT32, tuple(lead[k] if j == k else 1 for j in range(arr.ndim)), k))
    return lax.reshape(index_update(arr, tuple(index), values, "set", mode=mode), shape)


def put(a: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """a with elements, numbered in C order, replaced by values, over and over if these are fewer.

    `inplace=False` must be given. Mode: 'clip' (the default), 'wrap'.
    """
    _refuse_inplace("put", inplace)
    a, ind, v = arrays("put", a, ind, v)
    flat_index, flat_values = lax.reshape(ind, (ind.size,)), lax.reshape(v, (v.size,))
    if a.size == 0 or flat_index.size == 0 or flat_values.size == 0:
        return a
    flat_values = _as_long_as(flat_values, flat_index.size)
    how: Any = mode
    if mode is None or mode == "clip":
        how = "clip"
    elif mode == "wrap":
        how, flat_index = "clip", remainder(flat_index, make_array(a.size, flat_index.dtype))
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    return lax.reshape(index_update(lax.reshape(a, (a.size,)), flat_index, flat_values, "set", mode=how), a.shape)


def _as_long_as(x: Any, n: int) -> Any:
    from pullback.numpy._shape import tile

    return lax.slice_in_dim(tile(x, -(-n // x.size)), 0, n, axis=0) if x.size != n else x


def place(arr: Any, mask: Any, vals: Any, *, inplace: bool = True) -> Any:
    """arr with the elements where the mask holds replaced by values in turn; `inplace=False` must be given."""
    _refuse_inplace("place", inplace)
    arr, mask, vals = arrays("place", arr, mask, vals)
    if arr.size != mask.size:
        raise ValueError(f"place: arr and mask must have the same size, got {arr.shape} and {mask.shape}")
    if vals.size == 0:
        raise ValueError("Cannot place values from an empty array")
    if arr.size == 0:
        return arr
    condition = lax.reshape(convert(mask, np.bool_), (arr.size,))
    # The k-th True takes the k-th value, over and over.
    number = lax.sub(lax.cumsum(convert(condition, _INT32), axis=0), lax.full((arr.size,), 1, _INT32))
    flat = lax.reshape(convert(vals, arr.dtype), (vals.size,))
    chosen = rewriting_take(flat, remainder(number, make_array(vals.size, _INT32)))
    return lax.reshape(lax.select(condition, chosen, lax.reshape(arr, (arr.size,))), arr.shape)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element of a the element of that one of the choices which it numbers.

    Mode: 'raise' (needs concrete numbers), 'wrap' or 'clip'.
    """
    refuse_out("choose", out)
    check_arraylike("choose", a, *choices)
    index = as_array(a)
    if not (index.dtype == np.bool_ or dtypes.issubdtype(index.dtype, np.integer)):
        raise ValueError("`a` array must be integer typed")
    index = convert(index, _INT32)
    count = len(choices)
    if mode == "raise":
        known = np.asarray(
            concrete_or_error(
                index,
                "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use mode='wrap' or "
                "mode='clip' instead.",
            )
        )
        if known.size and (known.min() < 0 or known.max() >= count):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        index = remainder(index, make_array(count, _INT32))
    elif mode == "clip":
        index = lax.clamp(np.int32(0), index, np.int32(count - 1))
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    promoted = promote_dtypes(*choices)
    shape = broadcast_shapes_of("choose", [index.shape, *(c.shape for c in promoted)])
    index = broadcast_to(index, shape)
    result = broadcast_to(promoted[-1], shape)
    for k in range(count - 2, -1, -1):
        result = lax.select(lax.eq(index, lax.full_like(index, k)), broadcast_to(promoted[k], shape), result)
    return result


# ---- positions of True


def _static_size(name: str, size: Any) -> int | None:
    return None if size is None else static_int(size, f"The size argument of jnp.{name} must be statically specified")


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """Positions of the elements that are not zero, as one index array an axis, in C order.

    How many there are depends on values, so that a traced array needs a static `size`: the result is cut to it, or
    filled up with `fill_value` (0 by default; a number, or a tuple of one an axis).
    """
    (a,) = arrays("nonzero", a)
    if a.ndim == 0:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use jnp.atleast_1d(scalar).nonzero() instead.")
    dtype = _index_dtype()
    size = _static_size("nonzero", size)
    concrete = a.to_concrete() if isinstance(a, Tracer) else a
    if size is None or concrete is not None:
        if concrete is None:
            concrete_or_error(
                count_nonzero(a),
                "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero within JAX "
                "transformations: jnp.nonzero(x, size=n), or jnp.where(mask, x, fill) in place of jnp.where(mask).",
            )
        if size is None or fill_value is None or not _any_traced(fill_value):
            return _nonzero_concrete(np.asarray(concrete), size, fill_value, dtype)
    mask = lax.ne(a, const(a, 0)) if a.dtype != np.bool_ else a
    flat = lax.reshape(mask, (a.size,))
    fill = _fill_values(fill_value, a.ndim)
    if a.size == 0 or size == 0:
        return tuple(lax.broadcast_in_dim(convert(f, dtype), (size or 0,), ()) for f in fill)
    found, count = _selection.positions(flat, size, dtype)
    valid = lax.lt(lax.iota(dtype, size), broadcast_to(count, (size,)))
    positions = _unravel(found, a.shape)
    return tuple(select_where(valid, p, convert(f, dtype)) for p, f in zip(positions, fill))


def _any_traced(x: Any) -> bool:
    return any(isinstance(v, Tracer) for v in (x if isinstance(x, tuple) else (x,)))


def _fill_values(fill_value: Any, rank: int) -> tuple[Any, ...]:
    if fill_value is None:
        return (0,) * rank
    if isinstance(fill_value, tuple):
        if len(fill_value) != rank:
            raise ValueError(
                f"nonzero: argument 'fill_value' has {len(fill_value)} entries, but the array has rank {rank}"
            )
        return fill_value
    return (fill_value,) * rank


def _nonzero_concrete(a: np.ndarray, size: int | None, fill_value: Any, dtype: np.dtype) -> tuple[Any, ...]:
    found = np.nonzero(a)
    out = []
    for positions, fill in zip(found, _fill_values(fill_value, a.ndim)):
        if size is not None:
            filler = np.full(max(0, size - positions.size), np.asarray(fill))
            positions = np.concatenate([positions[:size], filler])
        out.append(make_array(positions.astype(dtype), dtype))
    return tuple(out)


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Positions in C order of the elements that are not zero; size as for `nonzero`."""
    (a,) = arrays("flatnonzero", a)
    return nonzero(lax.reshape(a, (a.size,)), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Positions of the elements that are not zero, as rows of a matrix; size as for `nonzero`."""
    (a,) = arrays("argwhere", a)
    if a.ndim == 0:
        count = int(np.asarray(concrete_or_error(a, "argwhere of a scalar")) != 0) if size is None else size
        return make_array(np.zeros((count, 0), _index_dtype()))
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
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = canonical_axis("compress", axis, a.ndim)
    n = a.shape[axis]
    if size is not None and not 0 < size <= n:
        raise ValueError(
            f"size must be positive and not greater than the size of the array axis; got size={size} for "
            f"a.shape[axis]={n}"
        )
    if condition.shape[0] > n:
        rest = condition.to_concrete() if isinstance(condition, Tracer) else condition
        if rest is not None and np.asarray(rest)[n:].any():
            raise ValueError("condition contains entries that are out of bounds")
        condition = lax.slice_in_dim(condition, 0, n, axis=0)
    numbers = nonzero(condition, size=size, fill_value=n)[0]
    return index_get(
        a, (slice(None),) * axis + (numbers,), mode=Mode.FILL_OR_DROP, fill_value=_static(fill_value, a.dtype)
    )


def _static(fill_value: Any, dtype: Any) -> Any:
    value = concrete_or_error(fill_value, "compress: argument 'fill_value' must be static")
    return np.asarray(value).astype(dtype)[()]


# ---- numbers of positions


def _unravel(flat: Any, shape: Sequence[int]) -> list[Any]:
    """Positions along each axis of numbers in C order, which are in bounds."""
    out = []
    for n in reversed(shape[1:]):
        length = lax.full_like(flat, n)
        out.append(lax.rem(flat, length))
        flat = lax.div(flat, length)
    return [flat, *out[::-1]]


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Positions along each axis of numbers in C order; numbers out of bounds become the last (or first) position."""
    (indices,) = arrays("unravel_index", indices)
    lengths = [
        operator.index(n) for n in (shape if isinstance(shape, (tuple, list)) else np.atleast_1d(np.asarray(shape)))
    ]
    total = math.prod(lengths)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"unravel_index: argument 'indices' has dtype {indices.dtype}; expected integers")
    indices = convert(indices, indices.dtype)
    wrapped = lax.select(
        lax.lt(indices, lax.full_like(indices, 0)), lax.add(indices, lax.full_like(indices, total)), indices
    )
    inside = lax.clamp(const(wrapped, 0), wrapped, const(wrapped, max(total - 1, 0)))
    return tuple(_unravel(inside, lengths)) if lengths else ()


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None) -> Any:
    """Numbers in C (or Fortran) order of positions given as one index array an axis.

    Mode, or a tuple of one an axis: 'raise' (needs concrete positions; ValueError if one is out of bounds), 'wrap',
    'clip'.
    """
    lengths = [operator.index(d) for d in (dims if isinstance(dims, (tuple, list)) else [dims])]
    parts = arrays("ravel_multi_index", *multi_index)
    if len(parts) != len(lengths):
        raise ValueError(f"len(multi_index)={len(parts)} != len(dims)={len(lengths)}")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(lengths)
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    checked = []
    for k, (x, n, how) in enumerate(zip(parts, lengths, modes)):
        if not dtypes.issubdtype(x.dtype, np.integer):
            raise TypeError("only int indices permitted")
        if how == "raise":
            known = np.asarray(
                concrete_or_error(
                    x,
                    f"ravel_multi_index: positions along axis {k}; use mode='wrap' or mode='clip' for traced ones",
                )
            )
            if known.size and (known.min() < 0 or known.max() >= n):
                raise ValueError("invalid entry in coordinates array")
        elif how == "clip":
            x = clip(x, 0, n - 1)
        elif how == "wrap":
            x = remainder(x, make_array(n, x.dtype))
        else:
            raise ValueError(f"invalid mode={how!r}. Expected 'raise', 'wrap', or 'clip'")
        checked.append(x)
    strides = [1] * len(lengths)
    axes = range(len(lengths) - 2, -1, -1) if order == "C" else range(1, len(lengths))
    for k in axes:
        strides[k] = strides[k + 1] * lengths[k + 1] if order == "C" else strides[k - 1] * lengths[k - 1]
    target = np.dtype(
        dtypes.canonicalize_dtype(np.int64) if dtype is None else dtypes.check_user_dtype_supported(dtype)
    )
    total = None
    for x, s in zip(checked, strides):
        term = lax.mul(convert(x, target), const(convert(x, target), s))
        total = term if total is None else lax.add(*promote("ravel_multi_index", total, term))
    return make_array(0, target) if total is None else total


# ---- whole arrays


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether |a - b| <= atol + rtol |b|, elementwise; equal infinities are close, NaN are if `equal_nan`."""
    check_arraylike("isclose", a, b)
    a, b = promote("isclose", a, b)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        a, b = promote_inexact("isclose", a, b) if dtypes.issubdtype(a.dtype, np.integer) else (a, b)
    if a.dtype == np.bool_:
        return convert(lax.eq(a, b), np.bool_)
    shape = broadcast_shapes_of("isclose", [a.shape, b.shape])
    a, b = broadcast_to(convert(a, a.dtype), shape), broadcast_to(convert(b, b.dtype), shape)
    distance = lax.abs(lax.sub(a, b))
    size = lax.abs(b)
    rtol, atol = convert(rtol, size.dtype), convert(atol, size.dtype)
    close = lax.le(distance, broadcast_to(lax.add(atol, lax.mul(rtol, size)), shape))
    infinite = lax.bitwise_or(isinf(a), isinf(b))
    close = lax.select(infinite, lax.eq(a, b), close)
    unordered = lax.bitwise_or(isnan(a), isnan(b))
    if equal_nan:
        return lax.select(unordered, lax.bitwise_and(isnan(a), isnan(b)), close)
    return lax.bitwise_and(close, lax.bitwise_not(unordered))


def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as `isclose` says."""
    check_arraylike("allclose", a, b)
    return _all(isclose(a, b, rtol, atol, equal_nan))


def _pair(a1: Any, a2: Any) -> tuple[Any, Any] | None:
    from pullback.numpy._creation import asarray

    try:
        return asarray(a1), asarray(a2)
    except (TypeError, ValueError):
        return None


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether two arrays have one shape and the same elements; lists are accepted."""
    pair = _pair(a1, a2)
    if pair is None or pair[0].shape != pair[1].shape:
        return make_array(np.asarray(False))
    a, b = promote("array_equal", *pair)
    same = lax.eq(a, b)
    if equal_nan and dtypes.issubdtype(a.dtype, np.inexact):
        same = lax.bitwise_or(same, lax.bitwise_and(isnan(a), isnan(b)))
    return _all(same)


def array_equiv(a1: Any, a2: Any) -> Any:
    """Whether two arrays broadcast to the same elements; lists are accepted."""
    pair = _pair(a1, a2)
    if pair is None:
        return make_array(np.asarray(False))
    try:
        broadcast_shapes_of("array_equiv", [pair[0].shape, pair[1].shape])
    except ValueError:
        return make_array(np.asarray(False))
    return _all(lax.eq(*promote("array_equiv", *pair)))


# ---- diagonals and triangles as indices


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """a with its diagonal replaced; `inplace=False` must be given, and `wrap` is not implemented."""
    _refuse_inplace("fill_diagonal", inplace)
    if wrap:
        raise NotImplementedError("wrap=True not implemented, must pass wrap=False")
    a, val = arrays("fill_diagonal", a, val)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    positions = np.arange(n, dtype=np.int32)
    values = val if val.ndim == 0 else _as_long_as(lax.reshape(val, (val.size,)), n)
    return index_update(a, (positions,) * a.ndim, values, "set", unique_indices=True)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Index arrays of the diagonal of an array of rank ndim and length n."""
    n = static_int(n, "'n' argument of jnp.diag_indices()")
    ndim = static_int(ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (lax.iota(_index_dtype(), n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """Index arrays of the diagonal of arr; ValueError unless all its lengths are equal."""
    (arr,) = arrays("diag_indices_from", arr)
    if arr.ndim < 2 or len(set(arr.shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length, and at least 2, got shape {arr.shape}")
    return diag_indices(arr.shape[0], ndim=arr.ndim)


def _triangle(name: str, find: Callable[..., Any], n: Any, k: Any, m: Any) -> tuple[Any, Any]:
    n, k = static_int(n, f"n argument of jnp.{name}"), static_int(k, f"k argument of jnp.{name}")
    m = n if m is None else static_int(m, f"m argument of jnp.{name}")
    dtype = _index_dtype()
    rows, columns = find(n, k, m)
    return make_array(rows.astype(dtype), dtype), make_array(columns.astype(dtype), dtype)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Index arrays of the elements on and below the k-th diagonal of an n x m matrix."""
    return _triangle("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """Index arrays of the elements on and above the k-th diagonal of an n x m matrix."""
    return _triangle("triu_indices", np.triu_indices, n, k, m)


def tril_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """Index arrays of the elements of a matrix on and below its k-th diagonal."""
    rows, columns = _matrix_shape(arr)
    return tril_indices(rows, k=k, m=columns)


def triu_indices_from(arr: Any, k: int = 0) -> tuple[Any, Any]:
    """Index arrays of the elements of a matrix on and above its k-th diagonal."""
    rows, columns = _matrix_shape(arr)
    return triu_indices(rows, k=k, m=columns)


def _matrix_shape(arr: Any) -> tuple[int, int]:
    shape = np.shape(arr)
    if len(shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted, got shape {shape}")
    return shape


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Any, ...]:
    """Index arrays of the elements that a function such as `triu` leaves of an n x n matrix of ones."""
    ones = lax.full((n, n), 1, _index_dtype())
    return nonzero(mask_func(ones, k), size=size)
