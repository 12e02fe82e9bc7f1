# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

ARRAY: Any
ARRAYS: Any
FLAG: Any
NESTED: Any
RegularGridInterpolator: Any
TEXT: Any

def __getattr__(name: str) -> Any: ...
