"""Stands for jax._src.dispatch: waiting for effects, and evaluating a primitive by its rule for compilation.

`wait_for_tokens`: equinox. `runtime_tokens`: brainpy. `xla_primitive_callable`: gpax, which empties its cache.
`prim_requires_devices_during_lowering`: jaxdecomp adds its primitives. `apply_primitive`: what libraries give as the
implementation of primitives of their own.
"""

import functools
from typing import Any

from pullback.api import effects_barrier, jit
from pullback.interpreters.xla import apply_primitive
from pullback.lax import device_put_p

# Primitives whose lowering asks for the devices: here a program always knows them.
prim_requires_devices_during_lowering: set[Any] = set()


def wait_for_tokens() -> None:
    """Return when all callbacks that have been started are done."""
    effects_barrier()


class _RuntimeTokens:
    """Callbacks that have been started: nothing is kept of them, so nothing is to be cleared."""

    def clear(self) -> None:
        """Forget them."""

    def block_until_ready(self) -> None:
        """Return when all are done."""
        effects_barrier()


runtime_tokens = _RuntimeTokens()


@functools.lru_cache
def xla_primitive_callable(prim: Any, **params: Any) -> Any:
    """The compiled function of a primitive with these parameters."""
    return jit(functools.partial(prim.bind, **params))


__all__ = [
    "apply_primitive", "device_put_p", "prim_requires_devices_during_lowering", "runtime_tokens", "wait_for_tokens",
    "xla_primitive_callable",
]  # fmt: skip
