"""Spaces of memory, as `device_put` takes them."""

from pullback.sharding._shardings import MemorySpace as Space

__all__ = ["Space"]
