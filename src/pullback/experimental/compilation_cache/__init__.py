"""The cache of compiled programs on disk."""

from pullback.experimental.compilation_cache import compilation_cache as compilation_cache

__all__ = ["compilation_cache"]
