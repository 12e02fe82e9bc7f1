"""Stands for jax._src.random: the names of jax.random (numpyro), and its files `prng` and `threefry2x32` (quax)."""

from pullback import random
from pullback.jax_names.src import names_of
from pullback.jax_names.src import prng as prng
from pullback.jax_names.src import threefry as threefry2x32

__getattr__ = names_of(__name__, random)
__all__ = ["prng", "threefry2x32"]
