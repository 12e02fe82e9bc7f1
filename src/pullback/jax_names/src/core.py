"""Stands for jax._src.core: types of traced values, and whether anything is being traced."""

from pullback.core import AbstractValue, ShapedArray, Tracer, current_interpreter, eval_interpreter


def trace_state_clean() -> bool:
    """Whether operations run on concrete arrays now."""
    return current_interpreter() is eval_interpreter()


__all__ = ["AbstractValue", "ShapedArray", "Tracer", "trace_state_clean"]
