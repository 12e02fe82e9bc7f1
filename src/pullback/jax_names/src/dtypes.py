"""Stands for jax._src.dtypes: types that NumPy does not have, the error of mixed ones, bits (ejkernel), and the type of
a value (genjax)."""

from typing import Any

import numpy as np

from pullback import dtypes as public
from pullback.dtypes import canonicalize_dtype, extended, float0
from pullback.jax_names.src import names_of
from pullback.numpy import can_cast, finfo, iinfo, isdtype, result_type
from pullback.util.dtypes import (
    DType,
    ExtendedDType,
    TypePromotionError,
    check_user_dtype_supported,
    dtype_of,
    int2,
    int4,
    issubdtype,
    itemsize_bits,
    lattice_result_type,
    promote_types,
    short_name,
    to_complex_dtype,
    to_floating_dtype,
    to_inexact_dtype,
    to_numeric_dtype,
    uint2,
    uint4,
)


def supports_inf(dtype: Any) -> bool:
    """Whether a float type has infinities."""
    return bool(np.isinf(np.asarray(np.inf, np.dtype(dtype)).astype(np.float32)))


def default_float_dtype() -> Any:
    """The type of Python floats: float32, or float64 under `jax_enable_x64`."""
    return canonicalize_dtype(np.float64)


def default_int_dtype() -> Any:
    """The type of Python integers: int32, or int64 under `jax_enable_x64`."""
    return canonicalize_dtype(np.int64)


def default_uint_dtype() -> Any:
    """The unsigned type of that width."""
    return canonicalize_dtype(np.uint64)


def default_complex_dtype() -> Any:
    """The type of Python's complex numbers: complex64, or complex128 under `jax_enable_x64`."""
    return canonicalize_dtype(np.complex128)


# NumPy's types of Python's numbers, before any is narrowed.
bool_, int_, uint, float_, complex_ = np.bool_, np.int64, np.uint64, np.float64, np.complex128
python_scalar_types = {bool, int, float, complex}
python_scalar_types_to_dtypes = {
    bool: np.dtype(bool_),
    int: np.dtype(int_),
    float: np.dtype(float_),
    complex: np.dtype(complex_),
}
short_dtype_name = short_name


def is_weakly_typed_scalar(x: Any) -> bool:
    """Whether a value is a number of Python's."""
    return type(x) in python_scalar_types


def scalar_type_to_dtype(typ: type, value: Any = None) -> Any:
    """The dtype of numbers of a Python type; OverflowError for an integer that it does not hold."""
    found = canonicalize_dtype(python_scalar_types_to_dtypes[typ])
    if typ is int and value is not None and not np.iinfo(found).min <= value <= np.iinfo(found).max:
        raise OverflowError(f"{found} does not hold the Python int {value}")
    return found


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> Any:
    """The type that an argument `dtype` means now; ValueError for None, TypeError for what is no type of arrays."""
    if dtype is None:
        raise ValueError("dtype must be specified.")
    return canonicalize_dtype(check_user_dtype_supported(dtype, fun_name))


def is_weakly_typed(x: Any) -> bool:
    """Whether the type of a value gives way to that of others: Python numbers, and what is computed of them alone."""
    if type(x) in (bool, int, float, complex):
        return type(x) is not bool
    return bool(getattr(getattr(x, "aval", x), "weak_type", False))


def safe_to_cast(input_value_or_dtype: Any, output_dtype: Any) -> bool:
    """Whether a value, or all of a type, may become another type: both promote to that."""
    target = canonicalize_dtype(output_dtype)
    return canonicalize_dtype(result_type(input_value_or_dtype, target)) == target


def dtype(x: Any) -> Any:
    """The dtype of an array or number."""
    return dtype_of(x)


__getattr__ = names_of(__name__, public)

__all__ = [
    "DType", "ExtendedDType", "TypePromotionError", "bool_", "can_cast", "canonicalize_dtype",
    "check_and_canonicalize_user_dtype", "check_user_dtype_supported", "complex_", "default_complex_dtype",
    "default_float_dtype", "default_int_dtype", "default_uint_dtype", "dtype", "extended", "finfo", "float0", "float_",
    "iinfo", "int2", "int4", "int_", "is_weakly_typed", "is_weakly_typed_scalar", "isdtype", "issubdtype",
    "itemsize_bits", "lattice_result_type", "promote_types", "python_scalar_types", "python_scalar_types_to_dtypes",
    "safe_to_cast", "scalar_type_to_dtype", "short_dtype_name", "supports_inf", "to_complex_dtype",
    "to_floating_dtype", "to_inexact_dtype", "to_numeric_dtype", "uint", "uint2", "uint4",
]  # fmt: skip
