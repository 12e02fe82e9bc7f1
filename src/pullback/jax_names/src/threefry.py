"""Stands for jax._src.random.threefry2x32: the generator on keys as words.

`threefry_seed`, `threefry_split`, `threefry_random_bits`: quax.
"""

from typing import Any

from pullback.random import PRNGKey
from pullback.random._generators import threefry


def threefry_seed(seed: Any) -> Any:
    """The key u32[2] of an integer."""
    return PRNGKey(seed, impl=threefry.name)


threefry_split = threefry.split
threefry_fold_in = threefry.fold_in
threefry_random_bits = threefry.random_bits

__all__ = ["threefry_fold_in", "threefry_random_bits", "threefry_seed", "threefry_split"]
