"""Stands for jax._src.typing: the names of jax.typing (jaxtyping), and what annotations are written with (furax)."""

from typing import Any

import numpy as np

from pullback import typing
from pullback.core import Array
from pullback.jax_names.src import names_of
from pullback.util.dtypes import ExtendedDType

DType = np.dtype
Shape = tuple[Any, ...]

__getattr__ = names_of(__name__, typing)

__all__ = ["Array", "DType", "ExtendedDType", "Shape"]
