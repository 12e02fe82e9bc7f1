"""Numbers of Python and arrays of NumPy that say their dtype.

Functions with derivative rules get integers of Python as such where they are called eagerly, as in JAX: what is a size
or an option there may be a static argument, a key, or the bound of a range.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class TypedInt(int):
    """An integer with a dtype."""

    dtype: np.dtype

    def __new__(cls, value: int, dtype: Any) -> TypedInt:
        made = super().__new__(cls, value)
        made.dtype = np.dtype(dtype)
        return made

    def __repr__(self) -> str:
        return f"TypedInt({int(self)}, dtype={self.dtype.name})"


class TypedFloat(float):
    """A float with a dtype."""

    dtype: np.dtype

    def __new__(cls, value: float, dtype: Any) -> TypedFloat:
        made = super().__new__(cls, value)
        made.dtype = np.dtype(dtype)
        return made

    def __repr__(self) -> str:
        return f"TypedFloat({float(self)}, dtype={self.dtype.name})"


class TypedComplex(complex):
    """A complex number with a dtype."""

    dtype: np.dtype

    def __new__(cls, value: complex, dtype: Any) -> TypedComplex:
        made = super().__new__(cls, value)
        made.dtype = np.dtype(dtype)
        return made

    def __repr__(self) -> str:
        return f"TypedComplex({complex(self)}, dtype={self.dtype.name})"


class TypedNdArray(np.ndarray):
    """An array of NumPy as programs hold it."""
