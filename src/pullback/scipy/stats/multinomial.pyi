# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

from pullback.util import dtypes as dtypes
from pullback import jnp as jnp
from pullback.scipy import special as special
def check_arraylike(name: Any, *args: Any) -> None: ...
def logpmf(x: Any, n: Any, p: Any) -> Array: ...
def pmf(x: Any, n: Any, p: Any) -> Array: ...

def __getattr__(name: str) -> Any: ...
