"""Keys that are used twice are found by `jax_debug_key_reuse`; its error is `errors.KeyReuseError`."""

from pullback.errors import KeyReuseError

__all__ = ["KeyReuseError"]
