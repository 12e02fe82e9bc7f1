"""Where compiled programs are kept on disk."""

from __future__ import annotations

from pullback.util.config import config


def set_cache_dir(path: str) -> None:
    """Keep compiled code in this folder from now on; PULLBACK_CACHE_DIR, where it is set, goes first."""
    config.update("jax_compilation_cache_dir", path)


def reset_cache() -> None:
    """Nothing has to be forgotten: the folder is looked up at each compilation."""


__all__ = ["reset_cache", "set_cache_dir"]
