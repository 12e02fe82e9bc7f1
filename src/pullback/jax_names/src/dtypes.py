"""Stands for jax._src.dtypes: types that NumPy does not have, and the error of mixed ones."""

from typing import Any

import numpy as np

from pullback.dtypes import canonicalize_dtype, extended, float0
from pullback.numpy import finfo, iinfo
from pullback.util.dtypes import (
    DType,
    ExtendedDType,
    TypePromotionError,
    issubdtype,
    to_complex_dtype,
    to_floating_dtype,
    to_inexact_dtype,
    to_numeric_dtype,
)


def supports_inf(dtype: Any) -> bool:
    """Whether a float type has infinities."""
    return bool(np.isinf(np.asarray(np.inf, np.dtype(dtype)).astype(np.float32)))


__all__ = [
    "DType", "ExtendedDType", "TypePromotionError", "canonicalize_dtype", "extended", "finfo", "float0", "iinfo",
    "issubdtype", "supports_inf", "to_complex_dtype", "to_floating_dtype", "to_inexact_dtype", "to_numeric_dtype",
]  # fmt: skip
