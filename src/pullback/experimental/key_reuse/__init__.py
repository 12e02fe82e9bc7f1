"""The error of the option `jax_debug_key_reuse`, which finds keys that are consumed twice (random/_reuse.py)."""

from pullback.errors import KeyReuseError

__all__ = ["KeyReuseError"]
