"""Stands for jax._src.compilation_cache: the folder of compiled code, as programs that change it in the middle ask."""

from pullback.experimental.compilation_cache.compilation_cache import reset_cache, set_cache_dir
from pullback.util.config import config


def is_persistent_cache_enabled() -> bool:
    """Whether compiled code is kept on disk."""
    return bool(config.jax_enable_compilation_cache)


__all__ = ["is_persistent_cache_enabled", "reset_cache", "set_cache_dir"]
