"""Stands for jax._src.pjit: the primitive of calls (quax), and what lays functions out (jaxns)."""

from pullback.experimental.layout import with_layout_constraint
from pullback.experimental.pjit import pjit
from pullback.extend.core import primitives
from pullback.lax import with_sharding_constraint
from pullback.sharding import auto_axes, explicit_axes, reshard
from pullback.sharding._shardings import UNSPECIFIED

jit_p = primitives.jit_p
reshard_p, sharding_constraint_p = primitives.reshard_p, primitives.sharding_constraint_p

__all__ = [
    "UNSPECIFIED", "auto_axes", "explicit_axes", "jit_p", "pjit", "reshard", "reshard_p", "sharding_constraint_p",
    "with_layout_constraint", "with_sharding_constraint",
]  # fmt: skip
