"""Stands for jax._src.pjit: the primitive of calls (quax), and what lays functions out (jaxns)."""

from pullback.experimental.pjit import pjit
from pullback.extend.core import primitives
from pullback.sharding import auto_axes, explicit_axes, reshard

jit_p = primitives.jit_p

__all__ = ["auto_axes", "explicit_axes", "jit_p", "pjit", "reshard"]
