"""`rng_bit_generator`: random words and the state after them, by Philox or threefry on states of 128 bits.

A state is a key (k0, k1) and a counter (c0, c1), low words first. Philox gives the words of philox.py; the counter
grows by one for each block of four words. Threefry enciphers the counters c, c + 1, ... to two words each, which are
neighbours along one axis of the result: the first of even length, else the longest. Of states that are mapped the first
alone is used and advanced, as in JAX.

`rng_uniform`: numbers of a generator that the process keeps, other ones at each run.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback.core import ZERO, NoRule, Primitive, ShapedArray, hooks
from pullback.core.kinds import SEQUENCE
from pullback.core.lowering import HostCall
from pullback.lax.collectives.compatibility import RandomAlgorithm
from pullback.lax.control.callback import Effect
from pullback.lax.generators.philox import first_row, philox_words, wide_words
from pullback.lax.generators.threefry import encipher
from pullback.lax.movement.joining import concatenate
from pullback.lax.movement.shape import slice_in_dim
from pullback.lax.records.operands import as_array
from pullback.util import dtypes
from pullback.util.locks import Lock

__all__ = ["rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p"]


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
        raise TypeError(f"rng_bit_generator: argument 'key' must be u32[4] or u64[2], got {key.short()}")
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


RNG = Effect("Rng")  # two equal equations give different numbers
_lock = Lock()
_generator: np.random.Generator | None = None


def _draw(a: np.ndarray, b: np.ndarray, *, shape: tuple[int, ...]) -> np.ndarray:
    global _generator
    dtype = a.dtype
    with _lock:
        if _generator is None:
            _generator = np.random.default_rng()
        if dtypes.kind_of(dtype) in "iu":
            low, high = int(a), int(b)
            wide = np.int64 if dtypes.kind_of(dtype) == "i" else np.uint64
            return _generator.integers(low, max(high, low + 1), shape, wide).astype(dtype)
        unit = _generator.random(shape)
    # In the precision of the result, b is not reached unless rounding reaches it.
    first, last = np.asarray(a, np.float64), np.asarray(b, np.float64)
    drawn = (first + (last - first) * unit).astype(dtype)
    return np.where(drawn >= b, a, drawn)


def _drawn_aval(a: ShapedArray, b: ShapedArray, *, shape: tuple[int, ...]) -> ShapedArray:
    if a.dtype != b.dtype:
        raise ValueError(f"rng_uniform: 'a' and 'b' must be of one dtype, got {a.dtype} and {b.dtype}")
    if a.shape or b.shape:
        raise ValueError(f"rng_uniform: 'a' and 'b' must be scalars, got shapes {a.shape} and {b.shape}")
    if dtypes.kind_of(a.dtype) not in "iuf":
        raise TypeError(f"rng_uniform: arguments must be real numbers, got {a.dtype}")
    return ShapedArray(shape, a.dtype, a.weak_type and b.weak_type)


rng_uniform_p = Primitive(
    "rng_uniform",
    abstract_eval=_drawn_aval,
    reference=_draw,
    jvp=NoRule("random numbers of a generator have no derivative; use jax.random"),
    batch=NoRule("how many numbers a batch draws is not defined; use jax.random"),
    transpose=NoRule("random numbers are not linear in their limits"),
    lower=HostCall(),
    effects=lambda _params: frozenset({RNG}),
    traits={"opaque"},
    doc="Random numbers of [a, b), other ones at each run.",
)


def rng_uniform(a: Any, b: Any, shape: Any) -> Any:
    """Random numbers of `shape`, uniform on [a, b), of the dtype of the scalars a and b; other ones at each call.

    They come from a generator of the process and cannot be repeated; `jax.random` gives numbers that can be. Raises
    ValueError if a and b are no scalars or of two dtypes, TypeError if they are no real numbers.

    >>> import jax
    >>> x = jax.lax.rng_uniform(0.0, 1.0, (3,))
    >>> bool((x >= 0).all() & (x < 1).all())
    True
    """
    if not SEQUENCE.accepts(shape):
        raise TypeError(f"rng_uniform: argument 'shape' must be a sequence of integers, got {shape!r}")
    sizes = tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"rng_uniform: argument 'shape' is {sizes}; dimensions must not be negative")
    return rng_uniform_p.bind(as_array(a, "rng_uniform", 0), as_array(b, "rng_uniform", 1), shape=sizes)
