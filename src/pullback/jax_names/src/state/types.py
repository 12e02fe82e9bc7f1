"""Stands for jax._src.state.types."""

from pullback.core.avals import AbstractRef
from pullback.ref import TransformedRef

__all__ = ["AbstractRef", "TransformedRef"]
