# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core import Array

T = TypeVar("T")

from pullback import jnp as jnp
def logpdf(x: Any, c: Any) -> Array: ...
def pdf(x: Any, c: Any) -> Array: ...
def promoted_reals(*args: Any) -> Array: ...

def __getattr__(name: str) -> Any: ...
