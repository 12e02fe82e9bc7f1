"""Bits that are moved and counted: by masks and shifts, one by one, by a function."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._family import family

SIZE = 1_000_000


def _words(rng: np.random.Generator) -> tuple:
    return (rng.integers(0, 1 << 32, SIZE, dtype=np.uint32),)


def _reversals() -> list[Any]:
    """The bits of each number in reverse."""

    def one_by_one(jax, x):
        return sum(((x >> k) & 1) << (31 - k) for k in range(32))

    def masks(jax, x):
        for k, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
            x = ((x >> k) & mask) | ((x & mask) << k)
        return (x >> 16) | (x << 16)

    return [one_by_one, masks]


def _counts() -> list[Any]:
    """The number of bits that are set."""

    def function(jax, x):
        return jax.lax.population_count(x)

    def one_by_one(jax, x):
        return sum((x >> k) & 1 for k in range(32))

    def masks(jax, x):
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        return (((x + (x >> 4)) & 0x0F0F0F0F) * np.uint32(0x01010101)) >> 24

    return [function, one_by_one, masks]


PROGRAMS = [
    *family("bits of 1,000,000 words reversed", _words, *_reversals()),
    *family("bits of 1,000,000 words counted", _words, *_counts()),
]
