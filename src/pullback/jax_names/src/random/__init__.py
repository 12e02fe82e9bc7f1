"""Stands for jax._src.random: the names of jax.random (numpyro), its files `prng` and `threefry2x32` (quax), and what
annotations are written with (evermore).
"""

from pullback import random, typing
from pullback.jax_names.src import names_of
from pullback.jax_names.src import prng as prng
from pullback.jax_names.src import threefry as threefry2x32
from pullback.jax_names.src.types import Shape

DTypeLikeFloat = DTypeLikeInt = DTypeLikeUInt = typing.DTypeLike
IntegerArray = RealArray = typing.ArrayLike

__getattr__ = names_of(__name__, random)
__all__ = [
    "DTypeLikeFloat", "DTypeLikeInt", "DTypeLikeUInt", "IntegerArray", "RealArray", "Shape", "prng", "threefry2x32",
]  # fmt: skip
