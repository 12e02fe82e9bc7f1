"""Stands for jax._src.dtypes: types that NumPy does not have, the error of mixed ones, bits (ejkernel), and the type of
a value (genjax)."""

from typing import Any

import numpy as np

from pullback import dtypes as public
from pullback.dtypes import canonicalize_dtype, extended, float0
from pullback.jax_names.src import names_of
from pullback.numpy import finfo, iinfo, result_type
from pullback.util.dtypes import (
    DType,
    ExtendedDType,
    TypePromotionError,
    dtype_of,
    int2,
    int4,
    issubdtype,
    itemsize_bits,
    lattice_result_type,
    promote_types,
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
    "DType", "ExtendedDType", "TypePromotionError", "canonicalize_dtype", "default_float_dtype", "dtype", "extended",
    "finfo", "float0",
    "iinfo", "is_weakly_typed", "int2", "int4", "issubdtype", "lattice_result_type", "promote_types", "uint2", "uint4",
    "itemsize_bits", "safe_to_cast", "supports_inf", "to_complex_dtype", "to_floating_dtype",
    "to_inexact_dtype", "to_numeric_dtype",
]  # fmt: skip
