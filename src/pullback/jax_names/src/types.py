"""Stands for jax._src.typing: the names of jax.typing (jaxtyping), and what annotations are written with (furax)."""

from types import EllipsisType
from typing import Any, Protocol

import numpy as np

from pullback import typing
from pullback.core import Array
from pullback.jax_names.src import names_of
from pullback.util.dtypes import ExtendedDType

AnyInt = int | np.integer
DimSize = int | Any  # or a symbolic size
DType = np.dtype
Shape = tuple[Any, ...]
StaticScalar = np.bool_ | np.number | bool | int | float | complex
StaticIndex = int | np.integer | slice | EllipsisType


class SupportsNdim(Protocol):
    """What has `ndim`."""

    @property
    def ndim(self) -> int: ...


class SupportsShape(Protocol):
    """What has `shape`."""

    @property
    def shape(self) -> tuple[int, ...]: ...


class SupportsSize(Protocol):
    """What has `size`."""

    @property
    def size(self) -> int: ...


class DuckTypedArray(Protocol):
    """What has a dtype and a shape."""

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> Shape: ...


__getattr__ = names_of(__name__, typing)

__all__ = [
    "AnyInt", "Array", "DType", "DimSize", "DuckTypedArray", "ExtendedDType", "Shape", "StaticIndex", "StaticScalar",
    "SupportsNdim", "SupportsShape", "SupportsSize",
]  # fmt: skip
