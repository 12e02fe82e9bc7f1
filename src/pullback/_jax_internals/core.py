"""Stands for jax._src.core: whether anything is being traced."""

from pullback.core import current_interpreter, eval_interpreter


def trace_state_clean() -> bool:
    """Whether operations run on concrete arrays now."""
    return current_interpreter() is eval_interpreter()
