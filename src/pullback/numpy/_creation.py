"""Functions that make arrays: from values (`array`), of one value (`zeros`, `full`), from buffers and files."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.core import Array as AnyArray
from pullback.core import ShapedArray, Tracer, hooks
from pullback.core.explain import check
from pullback.core.interpreter import is_within_transformation
from pullback.core.kinds import INTEGER
from pullback.core.staging import as_staged
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.movement.creation import cut_like, full_extended, sharding_said
from pullback.numpy._arguments import (
    PYTHON_SCALAR_TYPES,
    PYTHON_SCALARS,
    Array,
    as_array,
    broadcast_to,
    canonical_shape,
    check_arraylike,
    convert,
    make_array,
)
from pullback.sharding import Mesh, NamedSharding, PartitionSpec
from pullback.util import config, dtypes
from pullback.util.tracebacks import api_boundary, shorten
from pullback.util.warning import warn_if_real

_NONE_IN_ARRAY = "array: None is no element of an array; jnp.nan can stand for a number that is missing"


def default_float() -> np.dtype:
    return np.dtype(dtypes.canonicalize_dtype(np.float64))


def place(x: Any, device: Any, out_sharding: Any = None, name: str = "") -> Any:
    """x on the device, or laid out by out_sharding, if one of them is given; ValueError if both are."""
    if device is None:
        return x if out_sharding is None else out_placed(f"jnp.{name}", x, out_sharding)
    if out_sharding is not None:
        raise ValueError(
            f"{name}: arguments 'device' and 'out_sharding' exclude each other, got {device} and {out_sharding}"
        )
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

    Python scalars stay weakly typed unless a dtype is given. As in NumPy, words are read as numbers of a given dtype,
    and of a masked array the data are copied. Raises TypeError for what is not numeric, ValueError for None and for
    nested sequences of unequal lengths, OverflowError for integers that do not fit, NotImplementedError for another
    `order` than 'K'.
    """
    kind = type(object)
    try:
        if dtype is device is out_sharding is None and not args and ndmin == 0 and (order == "K" or order is None):
            if kind is np.ndarray or kind in PYTHON_SCALAR_TYPES:  # by far the most frequent
                made = as_array(object)
                if _core.is_tracing():
                    return as_staged(made)
                if hooks.check_values is not None:
                    _look_at(made)
                return made if config.mesh_in_force.value is None else _over_mesh(made)
        return _array(object, dtype, copy, order, ndmin, args, device, out_sharding)
    except Exception as error:
        shorten(error, sys._getframe())
        raise


def _array(
    object: Any, dtype: Any, copy: Any, order: Any, ndmin: int, args: tuple[Any, ...], device: Any, out_sharding: Any
) -> Any:
    """What `array` gives where it is not at once clear."""
    kind = type(object)
    if args:  # the older way to give them, by position
        if len(args) > 3:
            raise TypeError(f"array: takes at most 5 arguments by position, got {len(args) + 2}")
        named: tuple[Any, ...] = (copy, order, ndmin)
        copy, order, ndmin = args + named[len(args) :]
    check("array", INTEGER, ndmin=ndmin)
    if order is not None and order != "K":
        raise NotImplementedError(f"array: only order='K' is implemented, got order={order!r}")
    if object is None:
        raise ValueError(_NONE_IN_ARRAY)
    if hooks.transfers is not None and isinstance(object, (list, tuple)):
        hooks.transfers.from_host(object)
    target = None if dtype is None else dtypes.check_user_dtype_supported(dtype, "array")
    if kind is np.ndarray:
        result = make_array(_of_held_type(object, target), target)
    elif kind is not Array and hasattr(object, "__jax_array__") and not isinstance(object, type):
        return array(object.__jax_array__(), dtype, copy, order, ndmin, device=device, out_sharding=out_sharding)
    elif kind is Array or isinstance(object, (Array, Tracer)):
        result = object if target is None else convert(object, target)
        if copy and result is object:
            result = lax.copy_p.bind(object)
    elif isinstance(object, AnyArray):
        if target is not None and target != (kind := object.dtype):  # type: ignore[attr-defined,assignment]
            raise ValueError(f"array: a value of {kind} can't be converted to {target}")
        result = object
    elif isinstance(object, (np.ndarray, np.generic)):
        if copy and isinstance(object, np.ndarray) and isinstance(object, np.ma.MaskedArray):
            object = object.data
        result = make_array(_of_held_type(object, target), target)
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
    if type(result) is Array and not isinstance(object, AnyArray):
        if _core.is_tracing():
            result = as_staged(result)
        elif hooks.check_values is not None:
            _look_at(result)
    if device is out_sharding is None and config.mesh_in_force.value is not None and not isinstance(object, AnyArray):
        return _over_mesh(result)
    return place(result, device, out_sharding, "array")


def _look_at(x: Any) -> None:
    """FloatingPointError if an array of values of the host has some that are errors, as these are set."""
    if not is_within_transformation():
        hooks.check_values([x], "convert_element_type")


def _over_mesh(x: Any) -> Any:
    """An array of values of the host, whole on each device of the mesh in force; as it is over processes, who would
    have to compare their values.
    """
    mesh = config.mesh_in_force.value
    if not isinstance(mesh, Mesh) or mesh.empty or mesh.is_multi_process or type(x) is not Array:
        return x
    if x._device is not None:  # made of arrays that lie somewhere
        return x
    return hooks.device_put(x, NamedSharding(mesh, PartitionSpec()))


def _of_held_type(x: Any, target: Any) -> Any:
    """NumPy's array of a type that arrays do not hold as one of the type that is asked for, as NumPy converts it: wider
    floats, bytes in another order, objects, times, words.
    """
    if not isinstance(target, np.dtype) or dtypes.is_supported(x.dtype) or x.dtype.kind not in "iufcOmMSU":
        return x
    return _read(x, target) if x.dtype.kind in "SU" else np.asarray(x).astype(target)


def _read(words: Any, dtype: np.dtype) -> np.ndarray:
    """The numbers that words say; NumPy reads none of the narrow floats."""
    return np.asarray(words).astype(dtype if dtype.num < 256 else np.float64).astype(dtype)


def _fitting(value: Any, dtype: Any) -> Any:
    """The Python scalar; TypeError if it is complex and the dtype real, OverflowError if an integer does not fit an
    integer dtype.
    """
    if isinstance(value, complex) and not isinstance(value, np.generic):
        refuse_complex(value, dtype)
    if isinstance(value, float) and dtypes.issubdtype(dtype, np.integer):
        value = int(value)  # ValueError for NaN, OverflowError for infinities
        _check_fits(value, dtype)
    if isinstance(value, int) and not isinstance(value, bool) and dtypes.issubdtype(dtype, np.integer):
        return dtypes.fitting_integer(value, dtype)
    return value


def _check_fits(value: int, dtype: Any) -> None:
    limits = dtypes.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise OverflowError(f"Python integer {value} out of bounds for {np.dtype(dtype)}")


def refuse_complex(value: Any, dtype: Any) -> None:
    """TypeError where a Python complex would lose its imaginary part."""
    if dtypes.issubdtype(dtype, np.integer) or dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"a complex number can't be converted to {np.dtype(dtype)}: got {value!r}; take its real part")


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
        return make_array(np.asarray(nested, np.float32), default_float() if dtype is None else dtype)
    kinds = set(map(type, leaves))
    if dtype is None and kinds == {float}:  # by far the most frequent: cast by C on the way into the array
        value = np.array(nested)
        return _core.from_numpy(value, ShapedArray(value.shape, default_float()), None, True)
    if type(None) in kinds:
        raise ValueError(_NONE_IN_ARRAY)
    leaves_are_scalars = kinds <= {bool, int, float, complex}
    if dtype is None and not leaves_are_scalars:
        representatives = [x if hasattr(x, "dtype") else as_array_like(x) for x in leaves]
        dtype = dtypes.lattice_result_type(*representatives)[0]
    if any(isinstance(x, (Tracer, AnyArray)) or hasattr(x, "__jax_array__") for x in leaves):
        return _stack_nested(nested, dtype)
    if leaves_are_scalars:
        value = np.array(nested)
        if value.dtype == object:
            value = _of_large_integers(nested, dtype, kinds)
        if dtype is None:
            dtype = dtypes.canonicalize_dtype(value.dtype if value.dtype != np.uint64 else np.int64)
        elif complex in kinds:
            refuse_complex(next(x for x in leaves if isinstance(x, complex)), dtype)
    else:
        value = _numeric(nested, np.array(nested), dtype)
    if value.dtype.kind in "iuf" and dtypes.issubdtype(dtype, np.integer) and value.size and leaves_are_scalars:
        limits = dtypes.iinfo(dtype)
        are_few_integers = len(leaves) < 64 and float not in kinds
        extremes = (min(leaves), max(leaves)) if are_few_integers else (value.min(), value.max())
        for extreme in map(int, extremes):  # of floats, ValueError for NaN
            if float in kinds or limits.bits >= 8:  # integers of less than a byte keep their lowest bits
                _check_fits(extreme, dtype)
    return make_array(value, dtype)


def _of_large_integers(nested: Any, dtype: Any, kinds: set[type]) -> np.ndarray:
    """Scalars some of which are integers that no integer dtype holds, as floats, complex numbers or booleans."""
    wanted = np.dtype(complex if complex in kinds else float if float in kinds else int) if dtype is None else dtype
    if not isinstance(wanted, np.dtype) or wanted.kind not in "fcb":
        raise OverflowError("Python integer out of bounds for int64")
    with np.errstate(over="ignore"):  # float16 has infinity for them
        return np.array(nested, wanted)


def as_array_like(x: Any) -> Any:
    """x, if it is a scalar or array; else its NumPy array; TypeError if that is not numeric."""
    if isinstance(x, PYTHON_SCALARS):
        return x
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return _numeric(x, np.asarray(x), None)


def _numeric(x: Any, value: np.ndarray, dtype: Any) -> np.ndarray:
    """What NumPy made of x, of words the numbers that they say; TypeError for what is not numeric."""
    if value.dtype.kind in "SU" and isinstance(dtype, np.dtype):
        return _read(value, dtype)
    if value.dtype.kind in "OSUMm":
        raise TypeError(
            f"{str(x)!r} has dtype {value.dtype}, not a valid JAX array type: expected booleans, integers, floats or "
            "complex numbers"
        )
    return value


def _stack_nested(nested: Any, dtype: Any) -> Any:
    """Nested sequence that has arrays among its leaves."""
    if not isinstance(nested, (list, tuple)):
        return array(nested, dtype, copy=False)
    parts = [_stack_nested(x, dtype) for x in nested]
    if not parts:
        return full((0,), 0, dtype)
    shapes = {p.shape for p in parts}
    if len(shapes) != 1:
        raise TypeError(  # as JAX, which joins them, and unlike for lists of numbers
            "setting an array element with a sequence. The requested array has an inhomogeneous shape: "
            f"its parts have shapes {sorted(shapes)}"
        )
    return lax.concatenate([lax.expand_dims(p, (0,)) for p in parts], 0)


def _from_other(object: Any, dtype: Any) -> Any:
    """Anything that NumPy or the buffer protocol makes numeric."""
    value = _numeric(object, np.asarray(object), dtype)
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
    try:
        if copy is False and not isinstance(a, AnyArray) and not isinstance(a, np.ndarray):
            raise ValueError(
                f"asarray: argument 'copy' is False, but a value of type {type(a).__name__} can't be used without one"
            )
        return array(a, dtype, copy=bool(copy), order=order, device=device, out_sharding=out_sharding)
    except Exception as error:
        shorten(error, sys._getframe())
        raise


def from_list(x: Any) -> Any:
    """An array of a list or tuple; what else there is as it is. For the functions of JAX's that convert lists."""
    return asarray(x) if isinstance(x, (list, tuple)) else x


def copy(a: Any, order: str | None = None) -> Any:
    """Copy of an array."""
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


# ---- of one value


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of a shape, filled with a value or with an array broadcast to the shape; dtype of the value by default."""
    check_arraylike("full", fill_value)
    target = None if dtype is None else dtypes.check_user_dtype_supported(dtype, "full")
    shape = canonical_shape(shape)
    if dtypes.is_extended(target) or dtypes.is_extended(getattr(fill_value, "dtype", None)):
        return place(full_extended("full", shape, fill_value, target), device, out_sharding, "full")
    if np.ndim(fill_value) == 0:
        if target is None and device is not None:
            target = as_array(fill_value).dtype  # with a place said, the type is strong, as in JAX
        return place(_fill(shape, fill_value, target), device, out_sharding, "full")
    return place(broadcast_to(asarray(fill_value, dtype=target), shape), device, out_sharding, "full")


def _fill(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    if any(d < 0 for d in shape):
        raise TypeError(f"shape must have every element be nonnegative, got {shape}.")
    if dtype is not None and type(value) is complex:
        refuse_complex(value, dtype)
        warn_if_real(np.dtype(np.complex64), dtype)
    if dtype == dtypes.float0:
        return np.zeros(shape, dtypes.float0)  # such arrays have nothing in them, and stay NumPy's
    if type(value) is int and dtype is not None and dtypes.issubdtype(dtype, np.inexact):
        value = float(value)  # which holds integers that the default integer does not
    scalar = as_array(value) if dtype is None else convert(value, dtype)
    return lax.full((), scalar) if not shape else lax.broadcast_in_dim(scalar, shape, ())


def _filled(name: str, value: Any, shape: Any, dtype: Any, device: Any, out_sharding: Any) -> Any:
    shape = canonical_shape(shape)
    target = default_float() if dtype is None else dtypes.check_user_dtype_supported(dtype, name)
    if dtypes.is_extended(target):
        return place(full_extended(name, shape, value, target), device, out_sharding, name)
    return place(_fill(shape, value, target), device, out_sharding, name)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of zeros; the default float by default."""
    return _filled("zeros", 0, shape, dtype, device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of ones; the default float by default."""
    return _filled("ones", 1, shape, dtype, device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Array of zeros: memory without a defined value does not exist in a functional language."""
    return _filled("empty", 0, shape, dtype, device, out_sharding)


def _filled_like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any, out_sharding: Any = None) -> Any:
    if not (hasattr(a, "dtype") and hasattr(a, "shape")):
        check_arraylike(name, a)
        a = as_array(a)
    elif not dtypes.is_supported(a.dtype):
        raise TypeError(f"{name}: dtype {a.dtype} is not a valid JAX array type: expected numbers")
    if dtype is None and dtypes.is_extended(a.dtype):
        shape = a.shape if shape is None else canonical_shape(shape)
        return place(full_extended(name, shape, value, a.dtype), device, out_sharding, name)
    weak = dtype is None and bool(getattr(a, "weak_type", False))
    target = dtypes.canonicalize_dtype(a.dtype) if dtype is None else dtypes.check_user_dtype_supported(dtype, name)
    shape = a.shape if shape is None else canonical_shape(shape)
    if np.ndim(value) != 0:
        filled = broadcast_to(asarray(value, dtype=target), shape)
    else:
        if type(value) is complex:
            refuse_complex(value, target)
            warn_if_real(np.dtype(np.complex64), target)
        if type(value) is int and dtypes.kind_of(target) in "fc":
            value = float(value)  # which may be more than integers hold
        if target == dtypes.float0:
            return _fill(tuple(shape), value, target)
        filled = _fill(tuple(shape), convert(value, target, weak), None)
    if device is None and out_sharding is None and np.ndim(value) == 0:  # an array lies where it does itself
        device = sharding_said(a, tuple(shape))
        filled = cut_like(filled, a)
    return place(filled, device, out_sharding, name)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Zeros of the shape and dtype of a, unless others are given."""
    return _filled_like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None) -> Any:
    """Ones of the shape and dtype of a, unless others are given."""
    return _filled_like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of the prototype, unless others are given."""
    return _filled_like("empty_like", prototype, 0, dtype, shape, device)


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None, out_sharding: Any = None
) -> Any:
    """The fill value in the shape and dtype of a, unless others are given."""
    check_arraylike("full_like", 0, fill_value)
    return _filled_like("full_like", a, fill_value, dtype, shape, device, out_sharding)


# ---- from buffers, files


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Any:
    """1D array of the bytes of a buffer, read as a dtype."""
    return asarray(np.frombuffer(buffer=buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Any:
    """1D array of the numbers written in a text."""
    return asarray(np.fromstring(string=string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfile(*args: Any, **kwargs: Any) -> Any:
    """Not available: reading a file is not a pure function. Use asarray(np.fromfile(...))."""
    raise NotImplementedError(
        "fromfile: a traced function would read the file once, and not again when it runs. Read it outside, by "
        "jnp.asarray(np.fromfile(...))."
    )


def fromiter(*args: Any, **kwargs: Any) -> Any:
    """Not available: an iterator may have side effects. Use asarray(np.fromiter(...))."""
    raise NotImplementedError(
        "fromiter: a traced function would use the iterator up once, and not again when it runs. Go through it "
        "outside, by jnp.asarray(np.fromiter(...))."
    )


@api_boundary
def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Array sharing the memory of an object that exports DLPack, where its layout allows; 64 bits become 32 as always.

    Raises TypeError for other objects, BufferError for what is on another device or has a type without a counterpart,
    ValueError where `copy` is False and sharing is not possible.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(
            "from_dlpack: argument 'x' must have __dlpack__ and __dlpack_device__, by which arrays are exchanged; got "
            f"{str(x)[:80]!r} of type {type(x)}"
        )
    if isinstance(x, AnyArray):
        if isinstance(x, _core.Array) and x.sharding.num_devices > 1:
            raise BufferError(
                "from_dlpack: __dlpack__ is only supported for unsharded arrays; this lies on several devices"
            )
        return place(array(x, x.dtype, copy=bool(copy)), device)
    try:
        capsule = x.__dlpack__(max_version=(1, 1))
    except TypeError:  # from before there were versions
        capsule = x.__dlpack__()
    found: Any = _core.from_dlpack(capsule, copy)
    dtype = dtypes.canonicalize_dtype(found.dtype)
    if dtype != found.dtype:
        if copy is False:
            raise ValueError(
                f"from_dlpack: copy is False, but {found.dtype} becomes {dtype} while jax_enable_x64 is False"
            )
        found = lax.convert_element_type(found, dtype)
    return place(found, device)
