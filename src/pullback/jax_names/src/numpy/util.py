"""Stands for jax._src.numpy.util: operands of functions checked (vbjax) and brought to one dtype (orthax, s2fft)."""

from typing import Any

from pullback.numpy._arguments import (
    check_arraylike,
    convert,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_dtypes_numeric,
    to_complex_dtype,
)
from pullback.util import dtypes

__all__ = [
    "check_arraylike",
    "promote_dtypes",
    "promote_dtypes_complex",
    "promote_dtypes_inexact",
    "promote_dtypes_numeric",
]


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """As promote_dtypes; all other numbers become complex ones of as many bits in each part."""
    dtype, weak = dtypes.lattice_result_type(*args)
    return [convert(x, to_complex_dtype(dtypes.to_inexact_dtype(dtype)), weak) for x in args]
