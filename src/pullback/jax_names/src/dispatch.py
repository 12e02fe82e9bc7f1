"""Stands for jax._src.dispatch: waiting for effects."""

from pullback.api import effects_barrier


def wait_for_tokens() -> None:
    """Return when all callbacks that have been started are done."""
    effects_barrier()
