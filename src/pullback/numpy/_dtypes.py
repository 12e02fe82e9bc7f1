"""Element types as users see them: `float32` and its like, which make arrays when called, and questions about types."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from pullback.core import Array as AnyArray
from pullback.core import Tracer
from pullback.numpy._arguments import Array, check_arraylike
from pullback.util import dtypes
from pullback.util.tracebacks import api_boundary
from pullback.util.warning import warn

TypePromotionError = getattr(dtypes, "TypePromotionError", TypeError)


class ScalarType(type):
    """Class of the scalar types: equal to NumPy's and to their dtype, but not to names and to Python's types, usable
    wherever a dtype is, and making an array when called.
    """

    dtype: np.dtype

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: Any) -> bool:
        return cls is other or bool(cls.dtype.type == other)

    def __ne__(cls, other: Any) -> bool:
        return not cls == other

    @api_boundary
    def __call__(cls, x: Any) -> Any:
        from pullback.numpy._creation import asarray

        if isinstance(x, str):  # ml_dtypes' own types crash on texts that are no numbers
            x = float(x) if cls.dtype.isbuiltin == 2 and dtypes.kind_of(cls.dtype) not in "iu" else cls.dtype.type(x)
        return asarray(x, dtype=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.dtype.type)


def _abstract_init(self: Any, *args: Any, **kwargs: Any) -> None:
    """Calling a scalar type makes an array; there are no instances."""


def _scalar_type(numpy_type: Any) -> Any:
    dtype = np.dtype(numpy_type)
    made = ScalarType(
        dtype.name, (object,), {"dtype": dtype, "__init__": _abstract_init, "__module__": "pullback.numpy"}
    )
    made.__doc__ = (
        f"Scalar type of {dtype.name}: calling it makes an array of that type, and it stands for the dtype.\n\n"
        f">>> jnp.zeros(2, jnp.{dtype.name}).dtype == jnp.{dtype.name}\nTrue\n"
    )
    return made


bool_ = _scalar_type(np.bool_)
uint8, uint16, uint32, uint64 = (_scalar_type(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
int8, int16, int32, int64 = (_scalar_type(t) for t in (np.int8, np.int16, np.int32, np.int64))
int1, uint1 = (_scalar_type(getattr(ml_dtypes, n, None) or getattr(ml_dtypes, n[:-1] + "2")) for n in ("int1", "uint1"))
int2, uint2, int4, uint4 = (_scalar_type(t) for t in (ml_dtypes.int2, ml_dtypes.uint2, ml_dtypes.int4, ml_dtypes.uint4))
bfloat16 = _scalar_type(ml_dtypes.bfloat16)
float16, float32, float64 = (_scalar_type(t) for t in (np.float16, np.float32, np.float64))
complex64, complex128 = (_scalar_type(t) for t in (np.complex64, np.complex128))
float4_e2m1fn = _scalar_type(ml_dtypes.float4_e2m1fn)
float6_e2m3fn = _scalar_type(ml_dtypes.float6_e2m3fn)
float6_e3m2fn = _scalar_type(ml_dtypes.float6_e3m2fn)
float8_e3m4 = _scalar_type(ml_dtypes.float8_e3m4)
float8_e4m3 = _scalar_type(ml_dtypes.float8_e4m3)
float8_e4m3b11fnuz = _scalar_type(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = _scalar_type(ml_dtypes.float8_e4m3fn)
float8_e4m3fnuz = _scalar_type(ml_dtypes.float8_e4m3fnuz)
float8_e5m2 = _scalar_type(ml_dtypes.float8_e5m2)
float8_e5m2fnuz = _scalar_type(ml_dtypes.float8_e5m2fnuz)
float8_e8m0fnu = _scalar_type(ml_dtypes.float8_e8m0fnu)
single, double, csingle, cdouble = float32, float64, complex64, complex128
float_, complex_, int_, uint = float64, complex128, int64, uint64
# NumPy's abstract types serve as they are, for `issubdtype`.
generic, number, inexact, floating, complexfloating = np.generic, np.number, np.inexact, np.floating, np.complexfloating
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
flexible, character, object_ = np.flexible, np.character, np.object_
dtype = np.dtype
finfo, iinfo = dtypes.finfo, dtypes.iinfo
can_cast = np.can_cast
issubdtype = dtypes.issubdtype
ComplexWarning = np.exceptions.ComplexWarning


def promote_types(a: Any, b: Any) -> Any:
    """dtype to which values of two dtypes are promoted; `int`, `float`, `complex` count as Python scalars.

    Where one of them is of 64 bits, so may be the result, also without x64. Raises TypePromotionError where the two
    have no common type.
    """
    found = dtypes.promote_types(a, b)
    wide = any(d != dtypes.canonicalize_dtype(d) for d in map(dtypes.as_dtype, (a, b)))
    return found if wide else dtypes.canonicalize_dtype(found)


def result_type(*args: Any) -> Any:
    """dtype that an operation on these arrays, scalars and dtypes gives; ValueError without arguments."""
    return dtypes.result_type(*args)


_KINDS = {
    "bool": {np.dtype(bool)},
    "signed integer": {np.dtype(t) for t in ("int8", "int16", "int32", "int64", ml_dtypes.int2, ml_dtypes.int4)},
    "unsigned integer": {
        np.dtype(t) for t in ("uint8", "uint16", "uint32", "uint64", ml_dtypes.uint2, ml_dtypes.uint4)
    },
    "real floating": {
        t.dtype
        for t in [bfloat16, float16, float32, float64, float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4]
        + [
            float8_e4m3,
            float8_e4m3b11fnuz,
            float8_e4m3fn,
            float8_e4m3fnuz,
            float8_e5m2,
            float8_e5m2fnuz,
            float8_e8m0fnu,
        ]
    },
    "complex floating": {np.dtype("complex64"), np.dtype("complex128")},
}
_KINDS["integral"] = _KINDS["signed integer"] | _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] | _KINDS["real floating"] | _KINDS["complex floating"]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a name of the array API standard, a dtype, or a tuple of those (any of them).

    Raises ValueError for a kind that is neither a name known nor a dtype.
    """
    wanted = dtypes.dtype_of(dtype) if isinstance(dtype, (Array, Tracer)) else np.dtype(dtype)
    members: set[Any] = set()
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            members |= _KINDS[one]
            continue
        try:
            members.add(np.dtype(one))
        except TypeError:
            raise ValueError(
                f"Unrecognized kind={one!r}; expected one of {sorted(_KINDS)}, or what jnp.dtype() accepts"
            ) from None
    return wanted in members


def iscomplexobj(x: Any) -> bool:
    """Whether x has a complex dtype; its values do not matter."""
    if x is None:
        return False
    try:
        kind = x.dtype
    except AttributeError:
        kind = np.asarray(x).dtype
    if not dtypes.is_supported(kind):
        raise TypeError(f"iscomplexobj: {x!r} has dtype {kind}, not a valid JAX array type")
    return dtypes.issubdtype(kind, np.complexfloating)


def isrealobj(x: Any) -> bool:
    """Whether x does not have a complex dtype."""
    return not iscomplexobj(x)


def isscalar(element: Any) -> bool:
    """Whether x is a scalar: a Python or NumPy one, or an array of rank 0."""
    if isinstance(element, (AnyArray, np.ndarray)) or hasattr(element, "__jax_array__"):
        return ndim(element) == 0
    return np.isscalar(element)


def ndim(a: Any) -> int:
    """Number of axes."""
    return a.ndim if hasattr(a, "ndim") else len(_shape("ndim", a))


def shape(a: Any) -> tuple[int, ...]:
    """Lengths of the axes."""
    return _shape("shape", a)


def _shape(name: str, a: Any) -> tuple[int, ...]:
    if hasattr(a, "shape"):
        return a.shape
    if hasattr(a, "__jax_array__"):
        return a.__jax_array__().shape
    if a is None or isinstance(a, (list, tuple, dict)):
        warn(
            f"{name} of a {type(a).__name__} will be an error; convert it first with asarray, or use np.{name}",
            DeprecationWarning,
        )
    return np.shape(a)


def size(a: Any, axis: Any = None) -> int:
    """Number of elements, or the length along an axis, or the product of the lengths along several."""
    lengths = _shape("size", a)
    if axis is None:
        return math.prod(lengths)
    from pullback.numpy._arguments import canonical_axes

    return math.prod(lengths[k] for k in canonical_axes("size", axis, len(lengths)))


def iterable(y: Any) -> bool:
    """Whether y can be iterated over."""
    try:
        iter(y)
    except TypeError:
        return False
    return True


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """x converted to a dtype; complex to real drops the imaginary part with a warning; None means the default float."""
    from pullback import lax
    from pullback.numpy._arguments import arrays
    from pullback.numpy._creation import place

    check_arraylike("astype", x)
    bool(copy)  # decides nothing, as arrays are immutable, but must be a truth value
    (x,) = arrays("astype", x)
    target = (
        np.dtype(dtypes.canonicalize_dtype(np.float64))
        if dtype is None
        else dtypes.check_user_dtype_supported(dtype, "astype")
    )
    if dtypes.issubdtype(x.dtype, np.complexfloating) and not dtypes.issubdtype(target, np.complexfloating):
        if target == np.bool_:
            from pullback.numpy._arguments import const

            return place(lax.convert_element_type(lax.ne(x, const(x, 0)), target), device)
        text = (
            f"Casting from complex to real ({x.dtype} to {target}) drops the imaginary parts, and will be an error. "
            "Say which part is meant: x.real or x.imag."
        )
        warn(text, DeprecationWarning)
        x = lax.real(x)
    return place(lax.convert_element_type(x, target), device)


__all__ = [name for name in dir() if not name.startswith("_")]
