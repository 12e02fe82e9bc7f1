# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

from pullback import jnp as jnp

def logpdf(x: Any, mean: Any, cov: Any, allow_singular: Any = ...) -> Array: ...
def pdf(x: Any, mean: Any, cov: Any) -> Array: ...
def promoted(*args: Any) -> Array: ...
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = ...,
    lower: Any = ...,
    unit_diagonal: Any = ...,
    overwrite_b: Any = ...,
    debug: Any = ...,
    check_finite: Any = ...,
) -> Array: ...
def __getattr__(name: str) -> Any: ...
