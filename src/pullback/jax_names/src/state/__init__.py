"""Stands for jax._src.state: mutable arrays."""

from pullback.core.avals import AbstractRef
from pullback.jax_names.src.state import discharge, primitives, types

__all__ = ["AbstractRef", "discharge", "primitives", "types"]
