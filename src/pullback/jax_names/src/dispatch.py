"""Stands for jax._src.dispatch: waiting for effects, and evaluating a primitive by its rule for compilation.

`wait_for_tokens`: equinox. `prim_requires_devices_during_lowering`: jaxdecomp adds its primitives. `apply_primitive`:
what libraries give as the implementation of primitives of their own.
"""

from typing import Any

from pullback.api import effects_barrier
from pullback.interpreters.xla import apply_primitive

# Primitives whose lowering asks for the devices: here a program always knows them.
prim_requires_devices_during_lowering: set[Any] = set()


def wait_for_tokens() -> None:
    """Return when all callbacks that have been started are done."""
    effects_barrier()


__all__ = ["apply_primitive", "prim_requires_devices_during_lowering", "wait_for_tokens"]
