"""Stands for jax._src.state: mutable arrays."""

from pullback.core.avals import AbstractRef

__all__ = ["AbstractRef"]
