"""Stands for jax._src.dispatch: waiting for effects, and evaluating a primitive by its rule for compilation.

`wait_for_tokens`: equinox. `apply_primitive`: what libraries give as the implementation of primitives of their own.
"""

from pullback.api import effects_barrier
from pullback.interpreters.xla import apply_primitive


def wait_for_tokens() -> None:
    """Return when all callbacks that have been started are done."""
    effects_barrier()


__all__ = ["apply_primitive", "wait_for_tokens"]
