"""Stands for jax._src.random.prng: typed keys and the primitives on them.

`PRNGKeyArray`, `random_wrap`, `random_unwrap`: libraries that take keys apart, or that have a rule for each primitive.
"""

from typing import Any

from pullback.random._generators import PRNGImpl
from pullback.random._generators import implementations as prngs
from pullback.random._key_arrays import KeyDType as KeyTy
from pullback.random._key_arrays import PRNGKeyArray, random_unwrap_p, random_wrap_p, unwrap, wrap
from pullback.random._key_primitives import random_bits_p, random_fold_in_p, random_seed_p, random_split_p

random_unwrap = unwrap


def random_wrap(base_arr: Any, *, impl: PRNGImpl) -> Any:
    """Typed keys of their words."""
    return wrap(impl, base_arr)


__all__ = [
    "KeyTy", "PRNGImpl", "PRNGKeyArray", "prngs", "random_bits_p", "random_fold_in_p", "random_seed_p",
    "random_split_p", "random_unwrap", "random_unwrap_p", "random_wrap", "random_wrap_p",
]  # fmt: skip
