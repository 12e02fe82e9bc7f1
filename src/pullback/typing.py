"""Types for annotations."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from pullback.core import Array
from pullback.util.absent import listed


@runtime_checkable
class SupportsDType(Protocol):
    """Anything with a `dtype`."""

    @property
    def dtype(self) -> np.dtype: ...


# What numpy-like functions take as an array, and as a `dtype=` argument.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType

__all__ = ["ArrayLike", "DTypeLike"]

__dir__ = listed(__name__)
