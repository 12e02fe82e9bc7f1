"""Numbers of Python and arrays of NumPy that say their dtype.

Functions with derivative rules get numbers of Python as such where they are called eagerly, as in JAX: what is a size
or an option there may be a static argument, a key, or the bound of a range; and what they return is not changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class _Typed:
    """What the numbers have in common; beside it they are Python's own."""

    dtype: np.dtype
    weak_type = True

    def __new__(cls, value: complex, dtype: Any) -> Any:
        made: Any = super().__new__(cls, value)  # type: ignore[call-arg]
        made.dtype = np.dtype(dtype)
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype.name})"


class TypedInt(_Typed, int):
    """An integer with a dtype."""


class TypedFloat(_Typed, float):
    """A float with a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""


class TypedNdArray(np.ndarray):
    """An array of NumPy as programs hold it."""
