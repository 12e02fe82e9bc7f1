"""Threefry-2x32 with 20 rounds: counters and a key in, random words out; and the layouts in which keys and bits use it.

Source of the cipher: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. The layouts
below are those that give JAX's numbers. With c = (hi, lo) a counter and E(c) = (y0, y1) the two words it is enciphered
to:

    partitionable      element i of a result uses the counter i, hi and lo being its upper and lower 32 bits:
                       8, 16 and 32 bits: the low bits of y0 ^ y1; 64 bits: y0 above y1; key i of a split: (y0, y1)
    sequential         the words w_0 ... w_{n-1} of a result come from m = ceil(n/2) blocks: (w_i, w_{i+m}) = E((i,
    i+m)), where
                       the counter m + m - 1 of an odd n is 0; 8 and 16 bits: pieces of words, low ones first;
                       64 bits: word i above word i + n; key i of a split: words 2i and 2i + 1
    fold_in            the key E((0, data)), in both

Data of keys is u32[..., 2]; leading dimensions are independent keys, so batching only adds one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core import ZERO, NoRule, Primitive, ShapedArray, hooks, not_mapped
from pullback.core.lowering import Pointwise

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_COST = 90  # integer operations of one block, less what compiles to one instruction


def _key_schedule(k0: Any, k1: Any, parity: Any) -> tuple[Any, Any, Any]:
    return k0, k1, k0 ^ k1 ^ parity


# -------------------------------------------------------------------------------------------------- the NumPy meaning


def encipher(k0: np.ndarray, k1: np.ndarray, x0: np.ndarray, x1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The words (y0, y1) of counters (x0, x1) under keys (k0, k1): uint32 arrays, broadcast together."""
    keys = _key_schedule(np.asarray(k0), np.asarray(k1), np.uint32(_PARITY))
    with np.errstate(over="ignore"):
        y0, y1 = x0 + keys[0], x1 + keys[1]
        for group in range(5):
            for rotation in _ROTATIONS[group % 2]:
                y0 = y0 + y1
                y1 = (y1 << np.uint32(rotation)) | (y1 >> np.uint32(32 - rotation))
                y1 = y1 ^ y0
            y0 = y0 + keys[(group + 1) % 3]
            y1 = y1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return y0, y1


def _halves(index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (index >> np.uint64(32)).astype(np.uint32), index.astype(np.uint32)


def _sequential_words(k0: np.ndarray, k1: np.ndarray, n: int) -> np.ndarray:
    """u32[..., n] of the sequential layout; k0 and k1 have a last dimension of 1."""
    m = (n + 1) // 2
    first = np.arange(m, dtype=np.uint32)
    second = np.arange(m, 2 * m, dtype=np.uint32)
    if n % 2:
        second[-1] = 0
    return np.concatenate(encipher(k0, k1, first, second), axis=-1)[..., :n]


def _bits_reference(key: np.ndarray, *, shape: tuple[int, ...], width: int, partitionable: bool) -> np.ndarray:
    n = math.prod(shape)
    out_shape, dtype = key.shape[:-1] + shape, np.dtype(f"uint{width}")
    if out_shape == () and n == 1 and partitionable and width == 32:  # a scalar: Python's integers are quicker
        return np.asarray(_scalar_block(int(key[0]), int(key[1]), 0, 0, xor=True), np.uint32)
    k0, k1 = key[..., :1], key[..., 1:]
    if partitionable:
        y0, y1 = encipher(k0, k1, *_halves(np.arange(n, dtype=np.uint64)))
        bits = (y0.astype(np.uint64) << np.uint64(32)) | y1 if width == 64 else y0 ^ y1
    elif width == 64:
        words = _sequential_words(k0, k1, 2 * n).astype(np.uint64)
        bits = (words[..., :n] << np.uint64(32)) | words[..., n:]
    else:
        words = _sequential_words(k0, k1, -(-n * width // 32))
        shifts = np.arange(0, 32, width, dtype=np.uint32)
        bits = (words[..., None] >> shifts).reshape(key.shape[:-1] + (-1,))[..., :n]
    return bits.astype(dtype).reshape(out_shape)


def _split_reference(key: np.ndarray, *, shape: tuple[int, ...], partitionable: bool) -> np.ndarray:
    n = math.prod(shape)
    k0, k1 = key[..., :1], key[..., 1:]
    if not partitionable:
        keys = _sequential_words(k0, k1, 2 * n)
    elif key.ndim == 1 and n <= 4:
        keys = np.array([_scalar_block(int(key[0]), int(key[1]), 0, i) for i in range(n)], np.uint32)
    else:
        keys = np.stack(encipher(k0, k1, *_halves(np.arange(n, dtype=np.uint64))), axis=-1)
    return keys.reshape(*key.shape[:-1], *shape, 2)


def _fold_in_reference(key: np.ndarray, data: np.ndarray) -> np.ndarray:
    return np.stack(encipher(key[..., 0], key[..., 1], np.zeros_like(data), data), axis=-1)


def _scalar_block(k0: int, k1: int, x0: int, x1: int, xor: bool = False) -> Any:
    """One block on Python integers: 15 times as fast as NumPy on one element."""
    mask = 0xFFFFFFFF
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = (x0 + k0) & mask, (x1 + k1) & mask
    for group in range(5):
        for rotation in _ROTATIONS[group & 1]:
            x0 = (x0 + x1) & mask
            x1 = (((x1 << rotation) | (x1 >> (32 - rotation))) & mask) ^ x0
        x0 = (x0 + keys[(group + 1) % 3]) & mask
        x1 = (x1 + keys[(group + 2) % 3] + group + 1) & mask
    return x0 ^ x1 if xor else (x0, x1)


# ------------------------------------------------------------------------------------------------ the same as loop IR


def block(b: Any, k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """The words of one block as u32 expressions."""
    keys = _key_schedule(k0, k1, b.const("u32", _PARITY))
    y0, y1 = b.add(x0, keys[0]), b.add(x1, keys[1])
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            y0 = b.add(y0, y1)
            y1 = b.op("or", b.shl(y1, b.const("u32", rotation)), b.shr_logical(y1, b.const("u32", 32 - rotation)))
            y1 = b.xor(y1, y0)
        y0 = b.add(y0, keys[(group + 1) % 3])
        y1 = b.add(y1, b.add(keys[(group + 2) % 3], b.const("u32", group + 1)))
    return y0, y1


def _linear(b: Any, index: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    position = b.index(0)
    for i, extent in zip(index, shape, strict=True):
        position = b.add(b.mul(position, b.index(extent)), i)
    return position


def _key_at(ctx: Any, index: tuple[Any, ...]) -> tuple[Any, Any]:
    return ctx.operand(0, (*index, ctx.b.index(0))), ctx.operand(0, (*index, ctx.b.index(1)))


def _block_of(b: Any, key: tuple[Any, Any], position: Any, small: bool) -> tuple[Any, Any]:
    """The block of a 64-bit counter; `small`: it is known to be below 2**32."""
    high = b.const("u32", 0) if small else b.convert(b.shr_logical(position, b.index(32)), "u32")
    return block(b, *key, high, b.convert(position, "u32"))


def _sequential_word(b: Any, key: tuple[Any, Any], position: Any, n: int) -> Any:
    m = (n + 1) // 2
    upper = b.ge(position, b.index(m))
    i = b.select(upper, b.sub(position, b.index(m)), position)
    partner = b.add(i, b.index(m))
    if n % 2:
        partner = b.select(b.eq(i, b.index(m - 1)), b.index(0), partner)
    y0, y1 = block(b, *key, b.convert(i, "u32"), b.convert(partner, "u32"))
    return b.select(upper, y1, y0)


def _bits_at(ctx: Any, index: tuple[Any, ...]) -> Any:
    b, shape, width = ctx.b, ctx.params["shape"], ctx.params["width"]
    batch = len(index) - len(shape)
    key = _key_at(ctx, index[:batch])
    position, n, dtype = _linear(b, index[batch:], shape), math.prod(shape), f"u{width}"
    if ctx.params["partitionable"]:
        y0, y1 = _block_of(b, key, position, n <= 2**32)
        if width == 64:
            return b.op("or", b.shl(b.convert(y0, "u64"), b.const("u64", 32)), b.convert(y1, "u64"))
        return b.convert(b.xor(y0, y1), dtype)
    if width == 64:
        upper = _sequential_word(b, key, position, 2 * n)
        lower = _sequential_word(b, key, b.add(position, b.index(n)), 2 * n)
        return b.op("or", b.shl(b.convert(upper, "u64"), b.const("u64", 32)), b.convert(lower, "u64"))
    pieces, words = 32 // width, -(-n * width // 32)
    if pieces == 1:
        return _sequential_word(b, key, position, words)
    word = _sequential_word(b, key, b.floordiv(position, b.index(pieces)), words)
    shift = b.mul(b.floormod(position, b.index(pieces)), b.index(width))
    return b.convert(b.shr_logical(word, b.convert(shift, "u32")), dtype)


def _split_at(ctx: Any, index: tuple[Any, ...]) -> Any:
    b, shape = ctx.b, ctx.params["shape"]
    batch = len(index) - len(shape) - 1
    key = _key_at(ctx, index[:batch])
    position, n, which = _linear(b, index[batch:-1], shape), math.prod(shape), index[-1]
    if ctx.params["partitionable"]:
        y0, y1 = _block_of(b, key, position, n <= 2**32)
        return b.select(b.eq(which, b.index(0)), y0, y1)
    return _sequential_word(b, key, b.add(b.mul(position, b.index(2)), which), 2 * n)


def _fold_in_at(ctx: Any, index: tuple[Any, ...]) -> Any:
    b = ctx.b
    y0, y1 = block(b, *_key_at(ctx, index[:-1]), b.const("u32", 0), ctx.operand(1, index[:-1]))
    return b.select(b.eq(index[-1], b.index(0)), y0, y1)


# -------------------------------------------------------------------------------------------------------- the records


def _check_key(name: str, key: ShapedArray) -> None:
    if key.dtype != np.uint32 or not key.shape or key.shape[-1] != 2:
        raise TypeError(f"{name}: key data must be of type u32[..., 2], got {key.short()}")


def _bits_aval(key: ShapedArray, *, shape: tuple[int, ...], width: int, partitionable: bool) -> ShapedArray:
    _check_key("threefry_bits", key)
    if not partitionable and math.prod(shape) * max(width, 32) // 32 >= 2**32:
        raise ValueError("threefry_bits: jax_threefry_partitionable=False cannot number 2**32 or more words")
    return ShapedArray(key.shape[:-1] + shape, np.dtype(f"uint{width}"))


def _split_aval(key: ShapedArray, *, shape: tuple[int, ...], partitionable: bool) -> ShapedArray:
    _check_key("threefry_split", key)
    return ShapedArray((*key.shape[:-1], *shape, 2), np.dtype(np.uint32))


def _fold_in_aval(key: ShapedArray, data: ShapedArray) -> ShapedArray:
    _check_key("threefry_fold_in", key)
    if data.dtype != np.uint32 or data.shape != key.shape[:-1]:
        raise TypeError(
            f"threefry_fold_in: data must be u32 of the keys' shape, got {data.short()} with key data "
            f"{key.short()}"
        )
    return key


def _batch_leading(primitive_of: Any) -> Any:
    def batch(args: Any, dims: Any, **params: Any) -> tuple[Any, int]:
        (key,), (dim,) = args, dims
        return primitive_of().bind(hooks.moveaxis(key, dim, 0), **params), 0

    return batch


def _fold_in_batch(args: Any, dims: Any) -> tuple[Any, int]:
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not not_mapped)
    moved = [
        hooks.broadcast(x, size, 0) if d is not_mapped else hooks.moveaxis(x, d, 0)
        for x, d in zip(args, dims, strict=True)
    ]
    return threefry_fold_in_p.bind(*moved), 0


_NOT_LINEAR = NoRule("random words are integers, which have no cotangents")

threefry_bits_p = Primitive(
    "threefry_bits",
    abstract_eval=_bits_aval,
    reference=_bits_reference,
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=_batch_leading(lambda: threefry_bits_p),
    lower=Pointwise(_bits_at, cost=_COST),
    traits={"inside"},
    doc="Random words: u32[*K, 2] -> u8/u16/u32/u64[*K, *shape], each key's by itself.",
)

threefry_split_p = Primitive(
    "threefry_split",
    abstract_eval=_split_aval,
    reference=_split_reference,
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=_batch_leading(lambda: threefry_split_p),
    lower=Pointwise(_split_at, cost=_COST),
    traits={"inside"},
    doc="New keys from each key: u32[*K, 2] -> u32[*K, *shape, 2].",
)

threefry_fold_in_p = Primitive(
    "threefry_fold_in",
    abstract_eval=_fold_in_aval,
    reference=_fold_in_reference,
    jvp=ZERO,
    transpose=_NOT_LINEAR,
    batch=_fold_in_batch,
    lower=Pointwise(_fold_in_at, cost=_COST),
    traits={"inside"},
    doc="A new key from each key and a word: u32[*K, 2], u32[*K] -> u32[*K, 2].",
)
