"""Philox-4x32 with 10 rounds: words from keys of four words.

Source of the cipher: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A key is
(k0, k1, c0, c1). Block i enciphers the 128-bit counter ((k1, k0), (c1, c0) + i), the sum carrying over, under the key
(k0, k1), and gives the words 4i to 4i + 3. 8- and 16-bit results are the low bits of one word each; a 64-bit one
takes two words, the first below. Of keys that are mapped the first alone is used, for the words of all, as in JAX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core import ZERO, NoRule, Primitive, ShapedArray, hooks
from pullback.core.lowering import Pointwise
from pullback.lax.movement.shape import index_in_dim

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


# -------------------------------------------------------------------------------------------------- the NumPy meaning


def _mulhilo(x: np.ndarray, factor: int) -> tuple[np.ndarray, np.ndarray]:
    product = x.astype(np.uint64) * np.uint64(factor)
    return (product >> np.uint64(32)).astype(np.uint32), product.astype(np.uint32)


def _philox(key: list[np.ndarray], counter: list[np.ndarray]) -> list[np.ndarray]:
    with np.errstate(over="ignore"):
        for step in range(10):
            if step:
                key = [k + np.uint32(w) for k, w in zip(key, _WEYL, strict=True)]
            high0, low0 = _mulhilo(counter[0], _MULTIPLIERS[0])
            high1, low1 = _mulhilo(counter[2], _MULTIPLIERS[1])
            counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0]
    return counter


def philox_words(key: np.ndarray, n: int) -> np.ndarray:
    """The first n words of each key: u32[..., n]."""
    blocks = np.arange(-(-n // 4), dtype=np.uint64)
    upper, lower = _pair(key, 0), _pair(key, 2)
    with np.errstate(over="ignore"):
        total = lower + blocks
        upper = upper + (total < lower).astype(np.uint64)
    counter = [
        total.astype(np.uint32),
        (total >> np.uint64(32)).astype(np.uint32),
        upper.astype(np.uint32),
        (upper >> np.uint64(32)).astype(np.uint32),
    ]
    out = np.stack(_philox([key[..., 0:1], key[..., 1:2]], counter), axis=-1)
    return out.reshape(*out.shape[:-2], -1)[..., :n]


def _pair(key: np.ndarray, at: int) -> np.ndarray:
    return wide_words(key[..., at : at + 2])


def wide_words(words: np.ndarray) -> np.ndarray:
    """u64[..., n] of u32[..., 2 n]: pairs of words, the low one first."""
    return words[..., 0::2].astype(np.uint64) | (words[..., 1::2].astype(np.uint64) << np.uint64(32))


def _reference(key: np.ndarray, *, shape: tuple[int, ...], width: int) -> np.ndarray:
    n = math.prod(shape)
    if width == 64:
        bits = wide_words(philox_words(key, 2 * n))
    else:
        bits = philox_words(key, n).astype(f"uint{width}")
    return bits.reshape(key.shape[:-1] + shape)


# ------------------------------------------------------------------------------------------------ the same as loop IR


def _at(ctx: Any, index: tuple[Any, ...]) -> Any:
    b, shape, width = ctx.b, ctx.params["shape"], ctx.params["width"]
    batch = len(index) - len(shape)
    words = [ctx.operand(0, (*index[:batch], b.index(i))) for i in range(4)]
    position = b.index(0)
    for i, extent in zip(index[batch:], shape, strict=True):
        position = b.add(b.mul(position, b.index(extent)), i)
    if width == 64:
        twice = b.mul(position, b.index(2))
        low, high = _word(b, words, twice), _word(b, words, b.add(twice, b.index(1)))
        return b.op("or", b.convert(low, "u64"), b.shl(b.convert(high, "u64"), b.const("u64", 32)))
    return b.convert(_word(b, words, position), f"u{width}")


def _word(b: Any, key: list[Any], position: Any) -> Any:
    def joined(low: Any, high: Any) -> Any:
        return b.op("or", b.convert(low, "u64"), b.shl(b.convert(high, "u64"), b.const("u64", 32)))

    def halves(x: Any) -> list[Any]:
        return [b.convert(x, "u32"), b.convert(b.shr_logical(x, b.const("u64", 32)), "u32")]

    upper, lower = joined(key[0], key[1]), joined(key[2], key[3])
    total = b.add(lower, b.convert(b.floordiv(position, b.index(4)), "u64"))
    upper = b.add(upper, b.convert(b.lt(total, lower), "u64"))
    counter, keys = [*halves(total), *halves(upper)], key[:2]
    for step in range(10):
        if step:
            keys = [b.add(k, b.const("u32", w)) for k, w in zip(keys, _WEYL, strict=True)]
        low0, high0 = halves(b.mul(b.convert(counter[0], "u64"), b.const("u64", _MULTIPLIERS[0])))
        low1, high1 = halves(b.mul(b.convert(counter[2], "u64"), b.const("u64", _MULTIPLIERS[1])))
        counter = [b.xor(b.xor(high1, counter[1]), keys[0]), low1, b.xor(b.xor(high0, counter[3]), keys[1]), low0]
    lane = b.floormod(position, b.index(4))
    pairs = [b.select(b.eq(lane, b.index(i)), counter[i], counter[i + 1]) for i in (0, 2)]
    return b.select(b.lt(lane, b.index(2)), pairs[0], pairs[1])


def _aval(key: ShapedArray, *, shape: tuple[int, ...], width: int) -> ShapedArray:
    if key.dtype != np.uint32 or not key.shape or key.shape[-1] != 4:
        raise TypeError(f"philox_bits: key data must be of type u32[..., 4], got {key.short()}")
    return ShapedArray(key.shape[:-1] + shape, np.dtype(f"uint{width}"))


def _batch(args: Any, dims: Any, *, shape: tuple[int, ...], width: int) -> tuple[Any, int]:
    """Bits for the whole batch, of each first key; their axis comes after those of the keys."""
    keys = hooks.moveaxis(args[0], dims[0], 0)
    return philox_bits_p.bind(first_row(keys), shape=(keys.shape[0], *shape), width=width), keys.ndim - 2


def first_row(x: Any) -> Any:
    """x[0], of two dimensions or more."""
    return index_in_dim(x, 0, keepdims=False)


philox_bits_p = Primitive(
    "philox_bits",
    abstract_eval=_aval,
    reference=_reference,
    jvp=ZERO,
    batch=_batch,
    lower=Pointwise(_at, cost=90),
    traits={"mixed"},
    transpose=NoRule("random words are integers, which have no cotangents"),
    doc="Random words: u32[*K, 4] -> u8/u16/u32/u64[*K, *shape], each key's by itself.",
)
