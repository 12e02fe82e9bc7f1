"""Elements by number: take, put, choose and their relatives; the numbers of positions, diagonals and triangles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.dimensions import Dimension, min_dim
from pullback.lax.movement.gather import fill_number
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_shapes_of,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    const,
    convert,
    is_weak,
    make_array,
    promote,
    promote_dtypes,
    refuse_out,
    static_int,
)
from pullback.numpy._diagonals import tril, triu
from pullback.numpy._index_update import index_update
from pullback.numpy._indexing import Mode, index_get, normalize, rewriting_take
from pullback.numpy._select import _INT32, clip, index_dtype, nonzero
from pullback.numpy._ufuncs import floor_divide, remainder
from pullback.util import dtypes
from pullback.util.static import check_flags

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
    check_flags("take", unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)
    refuse_out("take", out)
    a, indices = arrays("take", a, indices)
    if (indices.dtype == np.bool_ and mode != "clip") or (indices.dtype.kind == "f" and not indices.size):
        # `jnp.array([])` is of a float type, and says no place that could be wrong
        indices = convert(indices, np.dtype(np.int32))
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"indices must have an integer type, got {indices.dtype} (take)")
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = canonical_axis("take", axis, a.ndim)
    n, wrap = a.shape[axis], False
    if mode is None or mode == "fill":
        how: Any = Mode.FILL_OR_DROP
        wrap = True
        fill_value = fill_number("take", fill_value, a.dtype)
    elif mode == "raise":
        raise NotImplementedError("take: mode 'raise' is not supported; accepted are 'fill', 'clip' and 'wrap'")
    elif mode == "wrap":
        how, indices = Mode.PROMISE_IN_BOUNDS, remainder(indices, make_array(n, indices.dtype))
    elif mode == "clip":
        # As in NumPy, negative numbers are out of bounds here; they do not count from the end.
        how = Mode.CLIP
    else:
        raise ValueError(f"Invalid mode {mode!r} for np.take; expected 'fill', 'clip' or 'wrap'")
    if n == 0 and indices.size:
        raise IndexError(f"take: {indices.size} indices into axis {axis}, which is an empty axis")
    return index_get(
        a,
        (slice(None),) * axis + (indices,),
        mode=how,
        fill_value=fill_value,
        unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted,
        wrap_negative_indices=wrap,
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
    check_flags("take_along_axis", wrap_negative_indices=wrap_negative_indices)
    arr, indices = arrays("take_along_axis", arr, indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"take_along_axis: argument 'indices' is of dtype {indices.dtype}; expected integers")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(
                f"take_along_axis: without an axis 'indices' has to be a vector, got shape {indices.shape}"
            )
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    if arr.ndim != indices.ndim:
        raise ValueError(
            f"take_along_axis: 'arr' has rank {arr.ndim} and 'indices' rank {indices.ndim}; expected equal ranks"
        )
    axis = canonical_axis("take_along_axis", axis, arr.ndim)
    how = Mode.from_any(mode)
    if how is Mode.ONE_HOT:  # a product with one-hot rows, which are zero for indices out of bounds
        how, fill_value = Mode.FILL_OR_DROP, 0
    if how is Mode.FILL_OR_DROP:
        fill_value = fill_number("take_along_axis", fill_value, arr.dtype)
    promised = how is Mode.PROMISE_IN_BOUNDS
    wrap = not promised if wrap_negative_indices is None else wrap_negative_indices
    return _take_along(arr, indices, axis, how, fill_value, wrap)


def _take_along(arr: Any, indices: Any, axis: int, how: Any, fill_value: Any, wrap: bool) -> Any:
    rank = arr.ndim
    others = [k for k in range(rank) if k != axis]
    lead = broadcast_shapes_of(
        "take_along_axis", [tuple(arr.shape[k] for k in others), tuple(indices.shape[k] for k in others)]
    )
    shape = list(lead)
    shape.insert(axis, indices.shape[axis])
    if arr.shape[axis] == 0 and how is not Mode.FILL_OR_DROP:  # no element is the nearest: zeros, as in JAX
        return lax.full_like(arr, 0, shape=tuple(shape))
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
        lax.reshape(component, (*component.shape, 1)),
        numbers,
        tuple([min_dim(n, 1) for n in arr.shape]),
        mode=Mode.PROMISE_IN_BOUNDS if inside else how,
        fill_value=fill_value,
    )


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"{name}: inplace=True cannot be done, as arrays are immutable; with inplace=False the result is returned"
        )


def put_along_axis(
    arr: Any, indices: Any, values: Any, axis: int | None, inplace: bool = True, *, mode: Any = None
) -> Any:
    """arr with the elements that `take_along_axis` takes replaced by values; `inplace=False` must be given."""
    check_flags("put_along_axis", inplace=inplace)
    _refuse_inplace("put_along_axis", inplace)
    arr, indices, values = arrays("put_along_axis", arr, indices, values)
    if axis is not None and arr.ndim != indices.ndim:
        raise ValueError(
            f"put_along_axis: 'arr' has shape {arr.shape} and 'indices' {indices.shape}; expected as many dimensions "
            "in both"
        )
    shape = arr.shape
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(
                f"put_along_axis: without an axis argument 'indices' must have one dimension, got shape {indices.shape}"
            )
        arr, axis = lax.reshape(arr, (arr.size,)), 0
    if broadcast_shapes_of("put_along_axis", [values.shape, indices.shape]) != indices.shape:
        raise ValueError(
            f"put_along_axis: argument 'values', of shape {values.shape}, does not broadcast to 'indices', of shape "
            f"{indices.shape}"
        )
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
    if a.ndim == 0:
        raise ValueError("put: argument 'a' must have at least one dimension, got a scalar")
    flat_index, flat_values = lax.reshape(ind, (ind.size,)), lax.reshape(v, (v.size,))
    if a.size == 0 or flat_index.size == 0 or flat_values.size == 0:
        return a
    flat_values = _as_long_as(flat_values, flat_index.size)
    if flat_index.dtype.kind == "b" or flat_index.dtype.itemsize < 4:
        flat_index = lax.convert_element_type(flat_index, np.int32)  # bools are the numbers 0 and 1; a.size must fit
    how: Any = mode
    if mode is None:
        how = "clip"  # negative numbers count from the end
    elif mode == "clip":
        flat_index = lax.clamp(const(flat_index, 0), flat_index, const(flat_index, a.size - 1))
    elif mode == "wrap":
        how, flat_index = "clip", remainder(flat_index, make_array(a.size, flat_index.dtype))
    elif mode == "raise":
        raise NotImplementedError("put: mode 'raise' is not supported; accepted are 'clip' and 'wrap'")
    else:
        raise ValueError(f"put: argument 'mode' is {mode!r}; accepted are 'clip', 'wrap' and None")
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
        raise ValueError("place: argument 'vals' is empty; expected at least one value")
    if arr.size == 0:
        return arr
    condition = lax.reshape(convert(mask, np.dtype(bool)), (arr.size,))
    # The k-th True takes the k-th value, over and over.
    number = lax.sub(lax.cumsum(convert(condition, _INT32), axis=0), lax.full((arr.size,), 1, _INT32))
    flat = lax.reshape(convert(vals, arr.dtype, is_weak(arr)), (vals.size,))
    chosen = rewriting_take(flat, remainder(number, make_array(vals.size, _INT32)))
    return lax.reshape(lax.select(condition, chosen, lax.reshape(arr, (arr.size,))), arr.shape)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """For each element of a the element of that one of the choices which it numbers.

    Mode: 'raise' (needs concrete numbers), 'wrap' or 'clip'.
    """
    refuse_out("choose", out)
    check_arraylike("choose", a, *choices)
    index = as_array(a)
    if not dtypes.issubdtype(index.dtype, np.integer):
        raise ValueError("choose: `a` array must be integer typed")
    index = convert(index, _INT32)
    count = len(choices)
    if mode == "raise":
        known = np.asarray(
            concrete_or_error(
                index,
                "jnp.choose: mode='raise' looks at the values of the indices, which are traced. Pass mode='clip' or "
                "'wrap'.",
            )
        )
        if known.size and (known.min() < 0 or known.max() >= count):
            raise ValueError("invalid entry in choice array")
    elif mode == "wrap":
        index = remainder(index, make_array(count, _INT32))
    elif mode == "clip":
        index = lax.clamp(np.int32(0), index, np.int32(count - 1))
    else:
        raise ValueError(f"choose: argument 'mode' is {mode!r}; accepted are 'clip', 'raise' and 'wrap'")
    promoted = promote_dtypes(*choices)
    shape = broadcast_shapes_of("choose", [index.shape, *(c.shape for c in promoted)])
    index = broadcast_to(index, shape)
    result = broadcast_to(promoted[-1], shape)
    for k in range(count - 2, -1, -1):
        result = lax.select(lax.eq(index, lax.full_like(index, k)), broadcast_to(promoted[k], shape), result)
    return convert(result, result.dtype)


# ---- numbers of positions


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Positions along each axis of numbers in C order; numbers out of bounds become the last (or first) position."""
    (indices,) = arrays("unravel_index", indices)
    if dtypes.issubdtype(indices.dtype, np.bool_):
        indices = convert(indices, np.dtype("int32"))
    elif not any(dtypes.issubdtype(indices.dtype, kind) for kind in (np.integer, np.floating)):
        raise TypeError(f"unravel_index: argument 'indices' has dtype {indices.dtype}; expected numbers with an order")
    lengths = _lengths(shape)
    out = []
    for n in reversed(lengths):  # a position has the type of the number and of the lengths from here on
        out.append(remainder(indices, n))
        indices = floor_divide(indices, n)
    # What is left is 0, or -1 of numbers counted from the end; anything else was out of bounds.
    above = lax.gt(indices, const(indices, 0))
    below = None if dtypes.issubdtype(indices.dtype, np.unsignedinteger) else lax.lt(indices, const(indices, -1))
    found = []
    for position, n in zip(reversed(out), lengths):
        length = convert(as_array(n), position.dtype, is_weak(position))
        last = broadcast_to(lax.sub(length, const(length, 1)), position.shape)
        position = lax.select(above, last, position)
        found.append(position if below is None else lax.select(below, lax.full_like(position, 0), position))
    return tuple(found)


def _lengths(shape: Any) -> list[Any]:
    """The lengths that `unravel_index` is given, each a number or a scalar, which may be traced."""
    if isinstance(shape, (tuple, list)):
        lengths = list(shape)
    else:
        (shape,) = arrays("unravel_index", shape) if not isinstance(shape, int) else ([shape],)
        lengths = [shape] if np.ndim(shape) == 0 else list(shape)
    check_arraylike("unravel_index", *lengths)
    if any(np.ndim(n) for n in lengths):
        raise ValueError(f"unravel_index: argument 'shape' must be a number or a sequence of numbers, got {shape!r}")
    return lengths


def ravel_multi_index(multi_index: Any, dims: Any, mode: str = "raise", order: str = "C", *, dtype: Any = None) -> Any:
    """Numbers in C (or Fortran) order of positions given as one index array an axis.

    Mode, or a tuple of one an axis: 'raise' (needs concrete positions; ValueError if one is out of bounds), 'wrap',
    'clip', or 'ignore', which takes positions as they are.
    """
    lengths = [
        static_int(d, "ravel_multi_index: argument 'dims'")
        for d in (dims if isinstance(dims, (tuple, list)) else [dims])
    ]
    parts = arrays("ravel_multi_index", *multi_index)
    if len(parts) != len(lengths):
        raise ValueError(f"len(multi_index)={len(parts)} != len(dims)={len(lengths)}")
    modes = mode if isinstance(mode, tuple) else (mode,) * len(lengths)
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if dtype is not None and not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"ravel_multi_index: argument 'dtype' must be an integer type, got {dtype!r}")
    if len(modes) != len(lengths):
        raise ValueError(f"ravel_multi_index: argument 'mode' must be one mode or {len(lengths)}, got {mode!r}")
    checked = []
    for k, (x, n, how) in enumerate(zip(parts, lengths, modes)):
        if not dtypes.issubdtype(x.dtype, np.integer):
            raise ValueError(f"ravel_multi_index: positions along axis {k} are of dtype {x.dtype}, not an integer type")
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
        elif how != "ignore":
            raise ValueError(
                f"ravel_multi_index: mode {how!r} is unknown; accepted are 'clip', 'ignore', 'raise' and 'wrap'"
            )
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


# ---- diagonals and triangles as indices


def fill_diagonal(a: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """a with its diagonal replaced; `inplace=False` must be given, and `wrap` is not implemented."""
    if inplace:
        raise NotImplementedError(
            "fill_diagonal: inplace=True cannot be done, as arrays are immutable; with inplace=False the result is "
            "returned"
        )
    if wrap:
        raise NotImplementedError("fill_diagonal: wrap=True is not supported")
    a, val = arrays("fill_diagonal", a, val)
    if a.ndim < 2:
        raise ValueError(f"fill_diagonal: argument 'a' has shape {a.shape}; expected at least two axes")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError(
            f"fill_diagonal: argument 'a' has shape {a.shape}; the lengths of more than two axes must agree"
        )
    n = min(a.shape)
    positions = np.arange(n, dtype=np.int32)
    values = val if val.ndim == 0 else _as_long_as(lax.reshape(val, (val.size,)), n)
    return index_update(a, (positions,) * a.ndim, values, "set", unique_indices=True)


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """Index arrays of the diagonal of an array of rank ndim and length n."""
    n = static_int(n, "'n' argument of jnp.diag_indices()")
    ndim = static_int(ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0:
        raise ValueError(f"diag_indices: argument 'n' is {n}; expected at least 0")
    if ndim < 0:
        raise ValueError(f"diag_indices: argument 'ndim' is {ndim}; expected at least 0")
    return (lax.iota(index_dtype(), n),) * ndim


def diag_indices_from(arr: Any) -> tuple[Any, ...]:
    """Index arrays of the diagonal of arr; ValueError unless all its lengths are equal."""
    (arr,) = arrays("diag_indices_from", arr)
    if arr.ndim < 2 or len(set(arr.shape)) != 1:
        raise ValueError(
            f"diag_indices_from: argument 'arr' has shape {arr.shape}; expected two or more axes of one length"
        )
    return diag_indices(arr.shape[0], ndim=arr.ndim)


def _triangle(name: str, find: Callable[..., Any], n: Any, k: Any, m: Any) -> tuple[Any, Any]:
    n, k = static_int(n, f"n argument of jnp.{name}"), static_int(k, f"k argument of jnp.{name}")
    m = n if m is None else static_int(m, f"m argument of jnp.{name}")
    if n < 0 or m < 0:
        raise TypeError(f"{name}: arguments 'n' and 'm' must not be negative, got {n} and {m}")
    dtype = index_dtype()
    if isinstance(n, Dimension) and n == m and k == 0:
        mask = (tril if find is np.tril_indices else triu)(lax.full((n, n), True, np.bool_))
        rows, columns = nonzero(mask, size=n * (n + 1) // 2)
        return rows, columns
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
    check_arraylike("tril_indices_from and triu_indices_from", arr)
    shape = np.shape(arr)
    if len(shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted, got shape {shape}")
    return shape


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *, size: int | None = None) -> tuple[Any, ...]:
    """Index arrays of the elements that a function such as `triu` leaves of an n x n matrix of ones."""
    ones = lax.full((n, n), 1, index_dtype())
    return nonzero(mask_func(ones, k), size=size)
