"""The generators `rbg` and `unsafe_rbg`: bits by Philox (lax/generators/philox.py), on keys of four words.

`rbg` splits and folds as threefry does on each half of the key; `unsafe_rbg` takes rows of bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pullback import lax
from pullback.lax.generators.philox import philox_bits_p


def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    """Unsigned words of `width` bits, of the given shape."""
    return philox_bits_p.bind(key, shape=shape, width=width)


def seed(words: Any) -> Any:
    """The key of a seed: its two words, twice."""
    return lax.concatenate([words, words], 0)


def on_halves(key: Any, step: Callable[[Any], Any]) -> Any:
    """`step`, threefry's, on the two halves of a key, joined again."""
    halves = [step(lax.slice_in_dim(key, 2 * i, 2 * i + 2, axis=-1)) for i in (0, 1)]
    return lax.concatenate(halves, halves[0].ndim - 1)


def unsafe_split(key: Any, shape: tuple[int, ...]) -> Any:
    """Keys made of every tenth row of bits."""
    n = math.prod(shape)
    rows = random_bits(key, 32, (n, 10, 4))
    return lax.reshape(lax.slice_in_dim(rows, 0, 1, axis=-2), (*key.shape[:-1], *shape, 4))


def unsafe_fold_in(key: Any, data: Any) -> Any:
    """The key, combined by exclusive or with the tenth row of bits under `data` as a seed."""
    one = lax.reshape(data, (1,))
    rows = random_bits(seed(lax.concatenate([lax.full_like(one, 0), one], 0)), 32, (10, 4))
    return lax.bitwise_xor(key, lax.reshape(lax.slice_in_dim(rows, 9, 10, axis=0), (4,)))
