"""Keys used twice are not found yet: the option `jax_debug_key_reuse` is refused; the name of its error is there."""

from pullback.errors import KeyReuseError

__all__ = ["KeyReuseError"]
