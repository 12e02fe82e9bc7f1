"""Exchange of arrays with other libraries through DLPack, without copies where that is possible."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.numpy import from_dlpack
from pullback.util import dtypes

__all__ = ["from_dlpack", "is_supported_dtype"]


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of this type can be exchanged."""
    found = dtypes.as_dtype(dtype)
    return isinstance(found, np.dtype) and (found.kind in "biufc" or found == dtypes.as_dtype(dtypes.bfloat16))
