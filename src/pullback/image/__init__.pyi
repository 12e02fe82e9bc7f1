# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

ARRAY: Any
ResizeMethod: Any
SEQUENCE: Any
TEXT: Any
def resize(image: Any, shape: Any, method: Any, antialias: Any = ..., precision: Any = ...) -> Array: ...
def scale_and_translate(image: Any, shape: Any, spatial_dims: Any, scale: Any, translation: Any, method: Any, antialias: Any = ..., precision: Any = ...) -> Array: ...

def __getattr__(name: str) -> Any: ...
