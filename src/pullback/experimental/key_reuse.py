"""The error of the option `jax_debug_key_reuse`, which finds keys that are consumed twice (random/_reuse.py)."""

from pullback.core.explain import explain_all as _explain_all
from pullback.errors import KeyReuseError

__all__ = ["KeyReuseError"]

_explain_all(globals())
