"""Stands for jax._src.earray: the class of arrays of element types that users define (flax asks for it)."""

from pullback.lax.elementwise.extended_types import EArray

__all__ = ["EArray"]
