# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

def map_coordinates(input: Any, coordinates: Any, order: Any, mode: Any = ..., cval: Any = ...) -> Array: ...

def __getattr__(name: str) -> Any: ...
