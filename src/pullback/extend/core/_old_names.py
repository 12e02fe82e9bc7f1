"""Names that `jax.core` has had for long, and that libraries still ask for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.api.values import ensure_compile_time_eval
from pullback.core import Tracer, Var, current_interpreter
from pullback.core.array_types import pytype_aval_mappings
from pullback.core.dimensions import max_dim, min_dim
from pullback.util.errors import InconclusiveDimensionOperation

no_axis_name = object()
literalable_types = set(pytype_aval_mappings)
array_types = {np.ndarray, np.generic, _core.Array}
Value = Any
Effects = frozenset[Any]
ParamDict = dict[str, Any]
OutputType = Any


class _TraceContext:
    """What is in force in this thread."""

    @property
    def trace(self) -> Any:
        """The trace that primitives are bound under."""
        return current_interpreter()


trace_ctx = _TraceContext()


def gensym() -> Callable[[Any], Var]:
    """A function that makes a new variable of a type."""
    return Var


def eval_context() -> Any:
    """A context manager in which operations run on arrays at once."""
    return ensure_compile_time_eval()


def is_concrete(x: Any) -> bool:
    """Whether a value is known now, as it is where it is differentiated outside of jit."""
    return not isinstance(x, Tracer) or x.to_concrete() is not None


def is_constant_dim(d: Any) -> bool:
    """Whether a dimension is an integer."""
    return isinstance(d, (int, np.integer))


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether all dimensions are integers."""
    return all(map(is_constant_dim, s))


def call_impl(f: Callable, *args: Any, **params: Any) -> Any:
    """f(*args)."""
    del params
    return f(*args)


_tags = itertools.count()


class TraceTag:
    """What tells one trace from another."""

    def __init__(self) -> None:
        self.number = next(_tags)


__all__ = [
    "Effects", "InconclusiveDimensionOperation", "OutputType", "ParamDict", "TraceTag", "Value", "array_types",
    "call_impl", "ensure_compile_time_eval", "eval_context", "gensym", "is_concrete", "is_constant_dim",
    "is_constant_shape", "literalable_types", "max_dim", "min_dim", "no_axis_name", "trace_ctx",
]  # fmt: skip
