"""Functions that make arrays: from values (`array`, `asarray`), of one value (`zeros`, `full`), along a line
(`arange`).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.core import Array as AnyArray
from pullback.core import ShapedArray, Tracer
from pullback.numpy._arguments import (
    PYTHON_SCALARS,
    Array,
    arrays,
    as_array,
    broadcast_arrays,
    broadcast_to,
    canonical_axis,
    canonical_shape,
    check_arraylike,
    concrete_or_error,
    convert,
    is_integer,
    make_array,
    static_int,
)
from pullback.numpy._ufuncs import const
from pullback.util import dtypes


def _float() -> np.dtype:
    return np.dtype(dtypes.canonicalize_dtype(np.float64))


def _int() -> np.dtype:
    return np.dtype(dtypes.canonicalize_dtype(np.int64))


def place(x: Any, device: Any) -> Any:
    """x on the device, if one is given."""
    if device is None:
        return x
    from pullback.api import device_put

    return device_put(x, device)


# ---- from values


def array(
    object: Any,
    dtype: Any = None,
    *args: Any,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Array from an array, a scalar, a nested sequence of them, or what NumPy can convert.

    Python scalars stay weakly typed unless a dtype is given. Raises TypeError for what is not numeric, ValueError for
    None and for nested sequences of unequal lengths, OverflowError for integers that do not fit, NotImplementedError
    for another `order` than 'K'.
    """
    del args, out_sharding
    if order is not None and order != "K":
        raise NotImplementedError(f"array: only order='K' is implemented, got order={order!r}")
    if object is None:
        raise ValueError("None is not a valid value for jnp.array")
    target = None if dtype is None else dtypes.check_user_dtype_supported(dtype, "array")
    if hasattr(object, "__jax_array__") and not isinstance(object, type):
        object = object.__jax_array__()
    if isinstance(object, (Array, Tracer)):
        result = object if target is None else convert(object, target)
        if copy and result is object:
            result = lax.copy_p.bind(object)
    elif isinstance(object, AnyArray):
        result = object
    elif isinstance(object, (np.ndarray, np.generic)):
        result = make_array(object, target)
    elif isinstance(object, PYTHON_SCALARS):
        result = as_array(object) if target is None else make_array(_fitting(object, target), target)
    elif isinstance(object, (list, tuple)):
        result = _from_sequence(object, target)
    else:
        result = _from_other(object, target)
    if ndmin > result.ndim:
        result = lax.broadcast_in_dim(
            result, (1,) * (ndmin - result.ndim) + result.shape, tuple(range(ndmin - result.ndim, ndmin))
        )
    return place(result, device)


def _fitting(value: Any, dtype: Any) -> Any:
    """The Python scalar; complex to real gives the real part; OverflowError if an integer does not fit an integer
    dtype.
    """
    if type(value) is complex and dtype.kind not in "cb":
        return value.real
    if isinstance(value, float) and dtypes.issubdtype(dtype, np.integer):
        value = int(value)  # ValueError for NaN, OverflowError for infinities
    if isinstance(value, int) and not isinstance(value, bool) and dtypes.issubdtype(dtype, np.integer):
        limits = dtypes.iinfo(dtype)
        if not limits.min <= value <= limits.max:
            raise OverflowError(f"Python integer {value} out of bounds for {dtype}")
    return value


def _leaves(nested: Any, found: list[Any]) -> list[Any]:
    for item in nested:
        if isinstance(item, (list, tuple)):
            _leaves(item, found)
        else:
            found.append(item)
    return found


def _from_sequence(nested: Any, dtype: Any) -> Any:
    leaves = _leaves(nested, [])
    if not leaves:
        return make_array(np.asarray(nested, np.float32), _float() if dtype is None else dtype)
    kinds = set(map(type, leaves))
    if dtype is None and kinds == {float}:  # by far the most frequent: cast by C on the way into the array
        value = np.array(nested)
        return _core.from_numpy(value, ShapedArray(value.shape, _float()), None, True)
    if type(None) in kinds:
        raise ValueError("None is not a valid value for jnp.array")
    leaves_are_scalars = kinds <= {bool, int, float, complex}
    if dtype is None and not leaves_are_scalars:
        representatives = [x if hasattr(x, "dtype") else as_array_like(x) for x in leaves]
        dtype = dtypes.lattice_result_type(*representatives)[0]
    if any(isinstance(x, (Tracer, AnyArray)) or hasattr(x, "__jax_array__") for x in leaves):
        return _stack_nested(nested, dtype)
    if leaves_are_scalars:
        value = np.array(nested)
        if value.dtype == object:
            raise OverflowError("Python integer out of bounds for int64")
        if dtype is None:
            dtype = dtypes.canonicalize_dtype(value.dtype if value.dtype != np.uint64 else np.int64)
    else:
        value = np.array(nested)
        if value.dtype.kind in "OSUMm":
            raise _not_numeric(nested, value)
    if value.dtype.kind in "iuf" and dtypes.issubdtype(dtype, np.integer) and value.size and leaves_are_scalars:
        limits = dtypes.iinfo(dtype)
        for extreme in (int(value.min()), int(value.max())):  # of floats, ValueError for NaN
            if not limits.min <= extreme <= limits.max:
                raise OverflowError(f"Python integer {extreme} out of bounds for {np.dtype(dtype)}")
    return make_array(value, dtype)


def as_array_like(x: Any) -> Any:
    """x, if it is a scalar or array; else its NumPy array; TypeError if that is not numeric."""
    if isinstance(x, PYTHON_SCALARS) or hasattr(x, "__jax_array__"):
        return x
    value = np.asarray(x)
    if value.dtype.kind in "OSUMm":
        raise _not_numeric(x, value)
    return value


def _not_numeric(x: Any, value: np.ndarray) -> TypeError:
    return TypeError(
        f"Value {str(x)!r} with dtype {value.dtype} is not a valid JAX array type. "
        "Only arrays of numeric types are supported by JAX."
    )


def _stack_nested(nested: Any, dtype: Any) -> Any:
    """Nested sequence that has arrays among its leaves."""
    if not isinstance(nested, (list, tuple)):
        return array(nested, dtype, copy=False)
    parts = [_stack_nested(x, dtype) for x in nested]
    if not parts:
        return full((0,), 0, dtype)
    shapes = {p.shape for p in parts}
    if len(shapes) != 1:
        raise ValueError(
            "setting an array element with a sequence. The requested array has an inhomogeneous shape: "
            f"its parts have shapes {sorted(shapes)}"
        )
    return lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0)


def _from_other(object: Any, dtype: Any) -> Any:
    """Anything that NumPy or the buffer protocol makes numeric."""
    value = np.asarray(object)
    if value.dtype.kind in "OSUMm":
        raise _not_numeric(object, value)
    return make_array(value, dtypes.canonicalize_dtype(value.dtype) if dtype is None else dtype)


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Any:
    """As `array`, without a copy where none is needed; ValueError if copy=False and one is needed."""
    if copy is False and not isinstance(a, AnyArray) and not isinstance(a, np.ndarray):
        raise ValueError(
            f"asarray: argument 'copy' is False, but a value of type {type(a).__name__} can't be used without a copy"
        )
    return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)


def copy(a: Any, order: str | None = None) -> Any:
    """Copy of an array."""
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


# ---- of one value


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of a shape, filled with a value or with an array broadcast to the shape; dtype of the value by default."""
    del out_sharding
    check_arraylike("full", fill_value)
    target = None if dtype is None else dtypes.check_user_dtype_supported(dtype, "full")
    shape = canonical_shape(shape)
    if np.ndim(fill_value) == 0:
        return place(_fill(shape, fill_value, target), device)
    return place(broadcast_to(asarray(fill_value, dtype=target), shape), device)


def _fill(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    if any(d < 0 for d in shape):
        raise TypeError(f"shape must have every element be nonnegative, got {shape}.")
    scalar = as_array(value) if dtype is None else convert(value, dtype)
    return scalar if not shape else lax.broadcast_in_dim(scalar, shape, ())


def _filled(name: str, value: Any, shape: Any, dtype: Any, device: Any) -> Any:
    shape = canonical_shape(shape)
    return place(
        _fill(shape, value, _float() if dtype is None else dtypes.check_user_dtype_supported(dtype, name)), device
    )


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of zeros; the default float by default."""
    return _filled("zeros", 0, shape, dtype, device)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of ones; the default float by default."""
    return _filled("ones", 1, shape, dtype, device)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of zeros: memory without a defined value does not exist in a functional language."""
    return _filled("empty", 0, shape, dtype, device)


def _filled_like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Any:
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        check_arraylike(name, a)
        a = as_array(a)
    weak = dtype is None and bool(getattr(a, "weak_type", False))
    target = dtypes.canonicalize_dtype(a.dtype) if dtype is None else dtypes.check_user_dtype_supported(dtype, name)
    shape = a.shape if shape is None else canonical_shape(shape)
    if np.ndim(value) != 0:
        return place(broadcast_to(asarray(value, dtype=target), shape), device)
    return place(_fill(tuple(shape), convert(value, target, weak), None), device)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros of the shape and dtype of a, unless others are given."""
    return _filled_like("zeros_like", a, 0, dtype, shape, device)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones of the shape and dtype of a, unless others are given."""
    return _filled_like("ones_like", a, 1, dtype, shape, device)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of the prototype, unless others are given."""
    return _filled_like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """The fill value in the shape and dtype of a, unless others are given."""
    check_arraylike("full_like", 0, fill_value)
    return _filled_like("full_like", a, fill_value, dtype, shape, device)


# ---- along a line


def arange(
    start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """Values start, start + step, ... below stop (above it for a negative step); from 0 if only one bound is given.

    The bounds must be concrete, since they give the shape: ConcretizationTypeError otherwise. ValueError unless they
    are real scalars, ZeroDivisionError for step 0.
    """
    if dtype is not None:
        dtype = dtypes.check_user_dtype_supported(dtype, "arange")
    given = {"start": start, "stop": stop, "step": step}
    if stop is None and step is None:
        given = {"stop": start}
    for which, value in given.items():
        if value is None:
            if which == "stop" and stop is None and step is None:
                raise TypeError("arange: argument 'stop' must be a real number, not None")
            continue
        concrete = concrete_or_error(value, f"It arose in the jnp.arange argument '{which}'")
        if np.ndim(concrete) != 0:
            raise ValueError(f"arange: arguments must be scalars; got {which}={value}")
        if np.iscomplexobj(np.asarray(concrete)):
            raise ValueError(f"arange: arguments must be real; got {which}={value}")
        given[which] = concrete
    if dtype is None:
        dtype = dtypes.result_type(*(v for v in given.values() if v is not None))
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        raise TypeError(
            "arange does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, complexfloating."
        )
    number = {k: _number(v) for k, v in given.items() if v is not None}
    if "start" not in number:
        if "stop" in number and len(number) == 1:
            length = max(0, math.ceil(number["stop"]))
            return place(lax.iota(dtype, length), device)
        number["start"] = 0
    if "stop" not in number:  # arange(start, None, step)
        number["start"], number["stop"] = 0, number["start"]
    by = number.get("step", 1)
    length = max(0, math.ceil((number["stop"] - number["start"]) / by))
    result = lax.iota(dtype, length)
    if by != 1:
        result = lax.mul(make_array(np.asarray(by).astype(dtype), dtype), result)
    if number["start"] != 0 or dtype.kind not in "iu":
        if number["start"] != 0:
            result = lax.add(make_array(np.asarray(number["start"]).astype(dtype), dtype), result)
    return place(result, device)


def _number(x: Any) -> Any:
    return x if isinstance(x, (int, float)) else np.asarray(x).item()


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
) -> Any:
    """`num` values from start to stop at equal distances, along a new axis; with `retstep` the distance, too.

    Start and stop may be arrays. Integer dtypes round down. Raises ValueError for a negative num.
    """
    num = static_int(num, "'num' argument of jnp.linspace")
    axis = static_int(axis, "'axis' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    dtype = np.dtype(dtypes.check_user_dtype_supported(dtype, "linspace"))
    work = np.dtype(dtypes.to_inexact_dtype(dtype))
    compute = dtypes.to_inexact_dtype(dtypes.result_type(start, stop, work))
    start, stop = broadcast_arrays("linspace", convert(start, compute), convert(stop, compute))
    shape = start.shape
    axis = canonical_axis("linspace", axis, start.ndim + 1)
    intervals = num - 1 if endpoint else num
    delta = lax.sub(stop, start)
    distance = lax.div(delta, const(delta, intervals)) if intervals > 0 else lax.full(shape, math.nan, compute)
    if num == 0:
        result = lax.full((0, *shape), 0, compute)
    elif intervals <= 0:  # one value, with endpoint
        result = lax.expand_dims(start, (0,))
    else:
        real = np.zeros((), compute).real.dtype if np.dtype(compute).kind == "c" else compute
        count = intervals if endpoint else num
        t = lax.div(lax.iota(real, count), make_array(intervals, real))
        t = convert(lax.reshape(t, (count,) + (1,) * len(shape)), compute)
        first, last = lax.expand_dims(start, (0,)), lax.expand_dims(stop, (0,))
        result = lax.add(lax.mul(first, lax.sub(const(t, 1), t)), lax.mul(last, t))
        if endpoint:
            result = lax.concatenate([result, last], 0)
    if axis != 0:
        order = list(range(1, result.ndim))
        order.insert(axis, 0)
        result = lax.transpose(result, tuple(order))
    if dtypes.issubdtype(dtype, np.integer) and not dtypes.issubdtype(compute, np.integer):
        result = lax.floor(result)
    result = place(convert(result, dtype), device)
    return (result, distance) if retstep else result


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """`num` values from base**start to base**stop, of equal ratios."""
    num = static_int(num, "'num' argument of jnp.logspace")
    check_arraylike("logspace", start, stop, base)
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    dtype = np.dtype(dtypes.check_user_dtype_supported(dtype, "logspace"))
    compute = dtypes.to_inexact_dtype(dtypes.result_type(start, stop, dtype))
    exponents = linspace(convert(start, compute), convert(stop, compute), num, endpoint=endpoint, dtype=None, axis=axis)
    from pullback.numpy._ufuncs import power

    return convert(power(convert(base, compute), exponents), dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` values from start to stop, of equal ratios; both must be nonzero and, if real, of one sign."""
    num = static_int(num, "'num' argument of jnp.geomspace")
    check_arraylike("geomspace", start, stop)
    if dtype is None:
        dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop))
    dtype = np.dtype(dtypes.check_user_dtype_supported(dtype, "geomspace"))
    compute = dtypes.to_inexact_dtype(dtypes.result_type(start, stop, dtype))
    start, stop = broadcast_arrays("geomspace", convert(start, compute), convert(stop, compute))
    axis = canonical_axis("geomspace", axis, start.ndim + 1)
    # Ratios to start are positive for real numbers; their logarithms grow linearly.
    ratio = lax.div(stop, start)
    exponents = linspace(lax.full_like(ratio, 0), lax.log(ratio), num, endpoint=endpoint, axis=axis)
    result = lax.mul(lax.exp(exponents), lax.expand_dims(start, (axis,)))
    if num > 1 and endpoint:
        last = lax.slice_in_dim(result, 0, num - 1, axis=axis)
        result = lax.concatenate([last, lax.expand_dims(stop, (axis,))], axis)
    if dtypes.issubdtype(dtype, np.integer):
        # exp(log(8)) may fall short of 8 by one rounding, which truncation would turn into 7.
        result = lax.floor(
            lax.add(result, lax.mul(const(result, 4 * float(dtypes.finfo(compute).eps)), lax.abs(result)))
        )
    return convert(result, dtype)


# ---- matrices of a pattern


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """N x M matrix with ones on the k-th diagonal and zeros elsewhere; ValueError for negative sizes."""
    dtype = _float() if dtype is None else dtypes.check_user_dtype_supported(dtype, "eye")
    if isinstance(k, AnyArray) and not is_integer(k) and not isinstance(k, Tracer):
        raise ValueError(f"k must be a scalar integer; got {k}")
    (n,) = canonical_shape((N,), "argument of 'N' jnp.eye()")
    m = n if M is None else canonical_shape((M,), "argument of 'M' jnp.eye()")[0]
    if n < 0 or m < 0:
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    return place(convert(diagonal_mask((n, m), k), dtype), device)


def diagonal_mask(shape: tuple[int, ...], k: Any = 0) -> Any:
    """Booleans that are True where column == row + k, over the last two axes of the shape."""
    rows, columns = _rows_and_columns(shape)
    return lax.eq(lax.add(rows, convert(k, rows.dtype)), columns)


def _rows_and_columns(shape: tuple[int, ...]) -> tuple[Any, Any]:
    index = np.dtype(np.int32)
    return lax.broadcasted_iota(index, shape, len(shape) - 2), lax.broadcasted_iota(index, shape, len(shape) - 1)


def lower_mask(shape: tuple[int, ...], k: Any = 0) -> Any:
    """Booleans that are True where column <= row + k, over the last two axes of the shape."""
    rows, columns = _rows_and_columns(shape)
    return lax.ge(lax.add(rows, convert(k, rows.dtype)), columns)


def identity(n: Any, dtype: Any = None) -> Any:
    """Identity matrix of n rows."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """N x M matrix with ones on and below the k-th diagonal."""
    dtype = np.dtype(np.float32) if dtype is None else dtypes.check_user_dtype_supported(dtype, "tri")
    m = N if M is None else M
    return convert(lower_mask((operator.index(N), operator.index(m)), k), dtype)


def _at_least_2d(name: str, m: Any) -> Any:
    (m,) = arrays(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {m.shape}")
    return m


def tril(m: Any, k: int = 0) -> Any:
    """m with zeros above the k-th diagonal of its last two axes; ValueError below rank 2."""
    m = _at_least_2d("tril", m)
    mask = broadcast_to(lower_mask(m.shape[-2:], k), m.shape)
    return lax.select(mask, m, lax.full_like(m, 0))


def triu(m: Any, k: int = 0) -> Any:
    """m with zeros below the k-th diagonal of its last two axes; ValueError below rank 2."""
    m = _at_least_2d("triu", m)
    mask = broadcast_to(lower_mask(m.shape[-2:], _minus_one(k)), m.shape)
    return lax.select(mask, lax.full_like(m, 0), m)


def _minus_one(k: Any) -> Any:
    return k - 1 if isinstance(k, int) else lax.sub(as_array(k), const(as_array(k), 1))


def diag(v: Any, k: int = 0) -> Any:
    """Of a vector, the matrix with it on the k-th diagonal; of a matrix, its k-th diagonal. ValueError for other
    ranks.
    """
    (v,) = arrays("diag", v)
    k = operator.index(k)
    if v.ndim == 1:
        n = v.shape[0] + abs(k)
        # The element of row i is v[i] for k >= 0, of column j v[j] for k < 0.
        edge = lax.pad(v, const(convert(v, v.dtype), 0), ((0, n - v.shape[0], 0),))
        spread = lax.broadcast_in_dim(edge, (n, n), (0,) if k >= 0 else (1,))
        return lax.select(diagonal_mask((n, n), k), spread, lax.full_like(spread, 0))
    if v.ndim == 2:
        return diagonal(v, k)
    raise ValueError(f"diag input must be 1d or 2d, got shape {v.shape}")


def diagflat(v: Any, k: int = 0) -> Any:
    """Matrix with the elements of v on the k-th diagonal."""
    (v,) = arrays("diagflat", v)
    return diag(lax.reshape(v, (v.size,)), k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Elements a[..., i, i + offset] over two axes, as the last axis of the result; ValueError for
    axes out of bounds.
    """
    (a,) = arrays("diagonal", a)
    offset = operator.index(offset)
    if a.ndim < 2:
        raise ValueError(f"diagonal requires an array of at least two dimensions, got shape {a.shape}")
    axis1 = canonical_axis("diagonal", axis1, a.ndim, "axis1")
    axis2 = canonical_axis("diagonal", axis2, a.ndim, "axis2")
    if axis1 == axis2:
        raise ValueError(f"diagonal: axis1 and axis2 cannot be the same, got {axis1} for both")
    batch = tuple(d for d in range(a.ndim) if d not in (axis1, axis2))
    if batch + (axis1, axis2) != tuple(range(a.ndim)):
        a = lax.transpose(a, (*batch, axis1, axis2))
    *lead, n, m = a.shape
    count = max(0, min(n + min(offset, 0), m - max(offset, 0)))
    # Rows laid end to end, neighbours on the diagonal are m + 1 apart: a strided slice, which is a view.
    flat = lax.reshape(a, (*lead, n * m))
    first = offset if offset >= 0 else -offset * m
    zeros_ = (0,) * len(lead)
    if count == 0:
        return lax.slice(flat, (*zeros_, 0), (*lead, 0), None)
    return lax.slice(flat, (*zeros_, first), (*lead, first + (count - 1) * (m + 1) + 1), (*(1 for _ in lead), m + 1))


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """Matrix of the powers x**(N-1), ..., x, 1 of a vector as columns, or in increasing order; ValueError unless 1D."""
    (x,) = arrays("vander", x)
    if x.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array, got shape {x.shape}")
    n = x.shape[0] if N is None else static_int(N, "'N' argument of jnp.vander()")
    if n < 0:
        raise ValueError(f"N must be nonnegative, got {n}")
    exponents = lax.iota(x.dtype if dtypes.issubdtype(x.dtype, np.number) else np.dtype(np.int32), n)
    if not increasing:
        exponents = lax.rev(exponents, (0,))
    from pullback.numpy._ufuncs import power

    return power(lax.expand_dims(x, (1,)), lax.expand_dims(exponents, (0,)))


# ---- from functions, buffers, files


def fromfunction(function: Any, shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """The array of function(i, j, ...) over all indices of the shape; the function is mapped, not called on arrays."""
    from pullback.api import vmap

    shape = canonical_shape(shape, "shape argument of jnp.fromfunction()")
    for axis in reversed(range(len(shape))):
        in_axes = [0 if axis == other else None for other in range(len(shape))]
        function = vmap(function, in_axes=tuple(in_axes))
    # Keyword arguments are closed over, so that they are not mapped.
    inner = function
    return (lambda *ids: _call_with(inner, ids, kwargs))(*(arange(n, dtype=dtype) for n in shape))


def _call_with(function: Any, ids: Any, kwargs: dict[str, Any]) -> Any:
    return function(*ids, **kwargs)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """1D array of the bytes of a buffer, read as a dtype."""
    return asarray(np.frombuffer(buffer=buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """1D array of the numbers written in a text."""
    return asarray(np.fromstring(string=string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not available: reading a file is not a pure function. Use asarray(np.fromfile(...))."""
    raise NotImplementedError(
        "fromfile() is not implemented because it may be non-pure and thus unsafe for use with JIT and other "
        "transformations. Consider using jnp.asarray(np.fromfile(...)) instead."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not available: an iterator may have side effects. Use asarray(np.fromiter(...))."""
    raise NotImplementedError(
        "fromiter() is not implemented because it may be non-pure and thus unsafe for use with JIT and other "
        "transformations. Consider using jnp.asarray(np.fromiter(...)) instead."
    )


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Array sharing the memory of an object that exports DLPack, where possible; TypeError for other objects."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            "The array passed to from_dlpack must have __dlpack__ and __dlpack_device__ methods, but got "
            f"{str(x)[:80]!r} of type {type(x)}"
        )
    if isinstance(x, AnyArray):
        return place(array(x, copy=bool(copy)), device)
    return place(array(np.from_dlpack(x), copy=bool(copy)), device)
