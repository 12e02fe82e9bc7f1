"""Stands for jax._src.random: the names of jax.random (numpyro), its files `prng` and `threefry2x32` (quax), and what
annotations are written with (evermore).
"""

from pullback import random, typing
from pullback.jax_names.src import names_of
from pullback.jax_names.src import prng as prng
from pullback.jax_names.src import threefry as threefry2x32
from pullback.jax_names.src.types import Shape
from pullback.random._generators import PRNGImpl
from pullback.random._key_arrays import resolve_impl as resolve_prng_impl

DTypeLikeFloat = DTypeLikeInt = DTypeLikeUInt = typing.DTypeLike
IntegerArray = RealArray = typing.ArrayLike


def default_prng_impl() -> PRNGImpl:
    """The generator of keys for which none is named."""
    return resolve_prng_impl(None)


__getattr__ = names_of(__name__, random)
__all__ = [
    "DTypeLikeFloat", "DTypeLikeInt", "DTypeLikeUInt", "IntegerArray", "RealArray", "Shape", "default_prng_impl",
    "prng", "resolve_prng_impl", "threefry2x32",
]  # fmt: skip
