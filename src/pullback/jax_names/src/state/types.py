"""Stands for jax._src.state.types."""

from pullback.core.avals import AbstractRef

__all__ = ["AbstractRef"]
