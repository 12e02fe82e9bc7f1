"""The generators `philox2x32`, `philox4x32` and `threefry4x32`: words of a key and a counter, a block for each element.

`block(key, counter)` is a bijection of counters for every key (J. Salmon et al., "Parallel random numbers: as easy as
1, 2, 3", SC 2011). The key of a seed is a block, too; key number i of a split, and the key with i folded in, are the
block of the counter i in its last words; the bits of element i are those of the counter i in its first words. So what
an element is hangs on its number alone, not on how many there are.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.random._jit import jitted

Block = Callable[[Sequence[Any], Sequence[Any]], list[Any]]  # (words of the key, words of the counter) -> words

_ROUNDS = 10
_THREEFRY_ROUNDS = 20
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85  # of the golden ratio and of the square root of 3
_MULTIPLIER_2X32 = 0xD256D193
_MULTIPLIERS_4X32 = 0xD2511F53, 0xCD9E8D57
_PARITY = 0x1BD11BDA
_ROTATIONS = (10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)


def _u32(value: int) -> np.uint32:
    return np.uint32(value & 0xFFFFFFFF)


def _product(x: Any, by: int) -> tuple[Any, Any]:
    """The upper and the lower 32 bits of x * by, from products of 16 bits."""
    low, high, half = _u32(by & 0xFFFF), _u32(by >> 16), _u32(16)
    x_low, x_high = x & _u32(0xFFFF), x >> half
    middle = x_high * low + ((x_low * low) >> half)
    upper = x_low * high + (middle & _u32(0xFFFF))
    return x_high * high + (middle >> half) + (upper >> half), x * _u32(by)


def philox_2x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Philox-2x32-10: one word of key, two of counter."""
    (k,), (a, b) = key, counter
    for i in range(_ROUNDS):
        high, low = _product(a, _MULTIPLIER_2X32)
        a, b = high ^ (k + _u32(i * _KEY_STEPS[0])) ^ b, low
    return [a, b]


def philox_4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Philox-4x32-10: two words of key, four of counter."""
    (k, m), (a, b, c, d) = key, counter
    for i in range(_ROUNDS):
        high_a, low_a = _product(a, _MULTIPLIERS_4X32[0])
        high_c, low_c = _product(c, _MULTIPLIERS_4X32[1])
        a = high_c ^ b ^ (k + _u32(i * _KEY_STEPS[0]))
        c = high_a ^ d ^ (m + _u32(i * _KEY_STEPS[1]))
        b, d = low_c, low_a
    return [a, b, c, d]


def threefry_4x32(key: Sequence[Any], counter: Sequence[Any]) -> list[Any]:
    """Threefry-4x32-20: four words of key, four of counter."""
    keys = [*key, functools.reduce(lambda a, b: a ^ b, key, _u32(_PARITY))]
    words = [c + k for c, k in zip(counter, keys)]
    for i in range(_THREEFRY_ROUNDS):
        ends = (1, 3) if i % 2 == 0 else (3, 1)
        for start, end, bits in zip((0, 2), ends, _ROTATIONS[i % len(_ROTATIONS)]):
            words[start] = words[start] + words[end]
            turned = (words[end] << _u32(bits)) | (words[end] >> _u32(32 - bits))
            words[end] = turned ^ words[start]
        if i % 4 == 3:
            step = i // 4 + 1
            words = [w + keys[(step + j) % 5] for j, w in enumerate(words)]
            words[3] = words[3] + _u32(step)
    return words


def seed_of_counter(block: Block, n_key: int, n_counter: int) -> Callable[[Any], Any]:
    """The key of a seed's two words: the block of these as the first ones of the counter, under the key 0."""

    @jitted()
    def seed(words: Any) -> Any:
        counter = [words[0], words[1], *[_zero(words)] * (n_counter - 2)]
        return lax.concatenate([w.reshape(1) for w in block([_zero(words)] * n_key, counter)[:n_key]], 0)

    return seed


def seed_of_key(block: Block, n_key: int, n_counter: int) -> Callable[[Any], Any]:
    """The key of a seed's two words: the block of the counter 0 under these as the first words of a key."""

    @jitted()
    def seed(words: Any) -> Any:
        key = [words[0], words[1], *[_zero(words)] * (n_key - 2)]
        return lax.concatenate([w.reshape(1) for w in block(key, [_zero(words)] * n_counter)[:n_key]], 0)

    return seed


def _zero(words: Any) -> Any:
    return lax.full_like(words[0], 0)


def _numbers(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The upper and lower words of the number of each element."""
    size = math.prod(shape)
    if size <= 1 << 32:
        low = lax.reshape(lax.iota(np.uint32, size), shape)
        return lax.full_like(low, 0), low
    high = low = lax.full(shape, 0, np.uint32)
    for axis in range(len(shape)):
        step = math.prod(shape[axis + 1 :])
        index = lax.broadcasted_iota(np.uint32, shape, axis)
        upper, lower = _product(index, step & 0xFFFFFFFF)
        low = low + lower
        high = high + upper + index * _u32(step >> 32) + (low < lower).astype(np.uint32)
    return high, low


def split(block: Block, n_key: int, n_counter: int) -> Callable[..., Any]:
    """Keys of the given shape from one: the blocks of their numbers, as the last words of the counter."""

    @jitted("shape")
    def split(key: Any, shape: tuple[int, ...]) -> Any:
        high, low = _numbers(shape)
        words = block(_words(key), [*[lax.full_like(low, 0)] * (n_counter - 2), high, low])
        return lax.concatenate([w.reshape((*shape, 1)) for w in words[:n_key]], len(shape))

    return split


def fold_in(block: Block, n_key: int, n_counter: int) -> Callable[..., Any]:
    """The key of one and an integer of 32 bits: the block of that as the last word of the counter."""

    @jitted()
    def fold_in(key: Any, data: Any) -> Any:
        words = block(_words(key), [*[lax.full_like(data, 0)] * (n_counter - 1), data])
        return lax.concatenate([w.reshape(1) for w in words[:n_key]], 0)

    return fold_in


def random_bits(block: Block, n_counter: int) -> Callable[..., Any]:
    """Unsigned words: up to 32 bits of the exclusive or of a block's words, or 64 bits of two halves side by side."""

    @jitted("width", "shape")
    def random_bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
        high, low = _numbers(shape)
        words = block(_words(key), [high, low, *[lax.full_like(low, 0)] * (n_counter - 2)])
        if width == 64:
            high, low = (lax.convert_element_type(w, np.uint64) for w in _halves(block, words))
            return (high << np.uint64(32)) | low
        whole = functools.reduce(lambda a, b: a ^ b, words)
        return whole if width == 32 else lax.convert_element_type(whole, np.dtype(f"uint{width}"))

    return random_bits


def _halves(block: Block, words: list[Any]) -> tuple[Any, Any]:
    """The upper and lower halves of 64 bits: Philox's first words, of Threefry's every other one combined."""
    return (words[0] ^ words[2], words[1] ^ words[3]) if block is threefry_4x32 else (words[0], words[1])


def _words(key: Any) -> list[Any]:
    return [key[i] for i in range(key.shape[0])]
