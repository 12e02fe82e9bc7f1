"""Stands for jax._src.core, where all names of jax.core and jax.extend.core live, and whether anything is being traced.

quax writes its interpreter with these, saiunit, brainstate and jax_md read a few.
"""

from typing import Any

from pullback import core
from pullback.api_util import safe_map
from pullback.core import AbstractValue, ShapedArray, Tracer, current_interpreter, eval_interpreter
from pullback.extend import core as extended
from pullback.extend.core.primitives import call_p, closed_call_p
from pullback.jax_names.src.util import safe_zip


def trace_state_clean() -> bool:
    """Whether operations run on concrete arrays now."""
    return current_interpreter() is eval_interpreter()


def full_lower(value: Any) -> Any:
    """What a library's own tracer says that it stands for; other values as they are."""
    return value.full_lower() if isinstance(value, Tracer) else value


def __getattr__(name: str) -> Any:
    for place in (core, extended):
        if not name.startswith("__") and hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"module 'jax._src.core' has no attribute {name!r} where pullback stands in for jax")


__all__ = [
    "AbstractValue", "ShapedArray", "Tracer", "call_p", "closed_call_p", "full_lower", "safe_map", "safe_zip",
    "trace_state_clean",
]  # fmt: skip
