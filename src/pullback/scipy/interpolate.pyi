# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core import Array

T = TypeVar("T")

from pullback.util import dtypes as dtypes
from pullback import jnp as jnp
ARRAY: Any
ARRAYS: Any
FLAG: Any
NESTED: Any
RegularGridInterpolator: Any
TEXT: Any
Tracer: Any
def check(function: Any, kind: Any, **values: Any) -> None: ...
def explain_methods(cls: Any, kinds: Any) -> None: ...
def table(**names: Any) -> Any: ...

def __getattr__(name: str) -> Any: ...
