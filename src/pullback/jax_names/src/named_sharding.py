"""Stands for jax._src.named_sharding."""

from pullback.sharding import DuplicateSpecError, NamedSharding

__all__ = ["DuplicateSpecError", "NamedSharding"]
