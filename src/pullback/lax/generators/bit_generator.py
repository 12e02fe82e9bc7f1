"""`rng_bit_generator`: random words and the state after them, by Philox or threefry on states of 128 bits.

A state is a key (k0, k1) and a counter (c0, c1), low words first. Philox gives the words of philox.py; the counter
grows by one for each block of four words. Threefry enciphers the counters c, c + 1, ... to two words each, which are
neighbours along one axis of the result: the first of even length, else the longest. Of states that are mapped the first
alone is used and advanced, as in JAX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core import ZERO, NoRule, Primitive, ShapedArray, hooks
from pullback.core.lowering import HostCall
from pullback.lax.collectives.compatibility import RandomAlgorithm
from pullback.lax.generators.philox import first_row, philox_words, wide_words
from pullback.lax.generators.threefry import encipher
from pullback.lax.movement.joining import concatenate
from pullback.lax.movement.shape import slice_in_dim
from pullback.lax.records.operands import as_array
from pullback.util import dtypes

__all__ = ["rng_bit_generator", "rng_bit_generator_p"]


def _halved(shape: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """(axis along which the two words of a block lie, shape of the blocks)."""
    axis = next((i for i, n in enumerate(shape) if n % 2 == 0), None)
    if axis is None:
        axis = max(range(len(shape)), key=lambda i: shape[i])
    return axis, tuple(-(-n // 2) if i == axis else n for i, n in enumerate(shape))


def _threefry_words(state: np.ndarray, shape: tuple[int, ...], width: int) -> tuple[np.ndarray, int]:
    """(words, how many counters were used)."""
    axis, blocks = (0, shape) if width == 64 else _halved(shape or (1,))
    count = math.prod(blocks)
    with np.errstate(over="ignore"):
        counters = _counter(state) + np.arange(count, dtype=np.uint64)
        low, high = encipher(
            state[0], state[1], counters.astype(np.uint32), (counters >> np.uint64(32)).astype(np.uint32)
        )
    if width == 64:
        return wide_words(np.stack([low, high], -1)).reshape(shape), count
    pairs = np.stack([low.reshape(blocks), high.reshape(blocks)], axis + 1)
    joined = pairs.reshape(*blocks[:axis], 2 * blocks[axis], *blocks[axis + 1 :])
    kept = joined[(slice(None),) * axis + (slice((shape or (1,))[axis]),)]
    return kept.reshape(shape), count


def _counter(state: np.ndarray) -> np.uint64:
    return wide_words(state[2:])[0]


def _reference(key: np.ndarray, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: int) -> list[np.ndarray]:
    state = key if key.dtype == np.uint32 else np.stack([key & np.uint64(0xFFFFFFFF), key >> np.uint64(32)], -1).ravel()
    state, width = state.astype(np.uint32), 8 * dtype.itemsize
    if algorithm == RandomAlgorithm.RNG_THREE_FRY:
        words, used = _threefry_words(state, shape, width)
    else:
        n = math.prod(shape) * (2 if width == 64 else 1)
        flat, used = philox_words(state, n), -(-n // 4)
        if width == 64:
            flat = wide_words(flat)
        words = flat.reshape(shape)
    with np.errstate(over="ignore"):
        counter = _counter(state) + np.uint64(used)
    advanced = np.array([state[0], state[1], counter & np.uint64(0xFFFFFFFF), counter >> np.uint64(32)], np.uint32)
    if key.dtype == np.uint64:
        advanced = wide_words(advanced)
    return [advanced, words.astype(dtype)]


def _avals(key: ShapedArray, *, shape: tuple[int, ...], dtype: np.dtype, algorithm: int) -> list[ShapedArray]:
    if (key.shape, key.dtype) not in (((4,), np.dtype(np.uint32)), ((2,), np.dtype(np.uint64))):
        raise TypeError(f"rng_bit_generator: argument 'key' must be u32[4] or u64[2], got {key.str_short()}")
    return [ShapedArray(key.shape, key.dtype), ShapedArray(shape, dtype)]


def _batch(args: Any, dims: Any, *, shape: tuple[int, ...], **params: Any) -> tuple[list[Any], list[int]]:
    keys = hooks.moveaxis(args[0], dims[0], 0)
    n = keys.shape[0]
    advanced, words = rng_bit_generator_p.bind(first_row(keys), shape=(n, *shape), **params)
    return [concatenate([hooks.broadcast(advanced, 1, 0), slice_in_dim(keys, 1, n)], 0), words], [0, 0]


rng_bit_generator_p = Primitive(
    "rng_bit_generator",
    abstract_eval=_avals,
    reference=_reference,
    jvp=ZERO,
    batch=_batch,
    lower=HostCall(),
    transpose=NoRule("random words are integers, which have no cotangents"),
    multiple_results=True,
    doc="The state after them and random words: u32[4] or u64[2] -> (the same type, u8/u16/u32/u64[*shape]).",
)


def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """(state after them, random words of `shape`) for a state u32[4] or u64[2]; by default of the algorithm Philox.

    `dtype` is that of the words, uint8 to uint64. Raises TypeError for other dtypes and for states of other types.

    >>> import jax
    >>> jax.lax.rng_bit_generator(jax.numpy.array([1, 2, 3, 4], "uint32"), (2,))
    (Array([1, 2, 4, 4], dtype=uint32), Array([ 512747620, 1298009047], dtype=uint32))
    """
    if out_sharding is not None:
        raise NotImplementedError("rng_bit_generator: argument 'out_sharding' is not supported")
    dtype = np.dtype(dtypes.canonicalize_dtype(dtype))
    if dtype.kind != "u":
        raise TypeError(f"rng_bit_generator: unsupported dtype {dtype}; expected uint8, uint16, uint32 or uint64")
    sizes = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else [shape]))
    if any(n < 0 for n in sizes):
        raise ValueError(f"rng_bit_generator: argument 'shape' is {sizes}; dimensions must not be negative")
    key = as_array(key, "rng_bit_generator", 0)
    return tuple(rng_bit_generator_p.bind(key, shape=sizes, dtype=dtype, algorithm=int(RandomAlgorithm(algorithm))))
