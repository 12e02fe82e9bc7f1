# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

from pullback import jnp as jnp
from pullback.scipy import special as special
def logpmf(k: Any, n: Any, p: Any, loc: Any = ...) -> Array: ...
def pmf(k: Any, n: Any, p: Any, loc: Any = ...) -> Array: ...
def promoted(*args: Any) -> Array: ...

def __getattr__(name: str) -> Any: ...
