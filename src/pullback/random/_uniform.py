"""Bits, and what comes from them in one step: uniform, normal, integers, coin flips."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.explain import shown
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.records.operands import constant
from pullback.random._arguments import (
    above,
    as_dtype,
    batch_shape,
    check_parameters,
    float_dtype,
    inexact_dtype,
    shape_of,
)
from pullback.random._generators import PRNGImpl
from pullback.random._jit import jitted
from pullback.random._keys import open_key, random_bits
from pullback.util import dtypes
from pullback.util.tracebacks import api_boundary


@api_boundary
def bits(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform random bits: unsigned integers over their whole range. `dtype`: u8, u16, u32 (default) or u64.

    Raises ValueError for another dtype, or a key array of several keys.
    """
    impl, words, _ = open_key("bits", key)
    dtype = dtypes.check_user_dtype_supported(
        np.uint64
        if dtype is None and dtypes.canonicalize_dtype(np.uint64).itemsize == 8
        else np.uint32
        if dtype is None
        else dtype,
        "bits",
    )
    if not dtypes.issubdtype(dtype, np.unsignedinteger) or dtypes.itemsize_bits(dtype) < 8:
        raise ValueError(f"bits: argument 'dtype' must be uint8, uint16, uint32 or uint64, got {dtype}")
    return out_placed(
        "bits", random_bits(impl, words, dtypes.itemsize_bits(dtype), shape_of("bits", shape)), out_sharding
    )


@api_boundary
def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, *, out_sharding: Any = None
) -> Any:
    """Uniform on [minval, maxval), which broadcast to `shape`; further axes of theirs, in front and of length 1, are
    those of the result, too.

    Raises ValueError if `dtype` is not a float dtype, or the limits do not broadcast.
    """
    impl, words, _ = open_key("uniform", key)
    dtype, shape = float_dtype("uniform", dtype), shape_of("uniform", shape)
    check_parameters("uniform", real=False, minval=minval, maxval=maxval)
    limits = (np.shape(minval), np.shape(maxval))
    further = [s[: max(0, len(s) - len(shape))] for s in limits]
    if all(n == 1 for axes in further for n in axes):  # as in JAX, on which libraries for replays rely
        shape = (*max(further, key=len), *shape)
    batch_shape("uniform", shape, minval=limits[0], maxval=limits[1])
    return out_placed("uniform", _uniform(words, minval, maxval, impl=impl, shape=shape, dtype=dtype), out_sharding)


def unit_interval(impl: PRNGImpl, words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Uniform on [0, 1): random bits as the mantissa of a number in [1, 2), less 1.

    `words` may be those of an array of keys, whose dimensions then lead; so in the functions below that take `words`.
    """
    info = dtypes.finfo(dtype)
    width, mantissa = info.bits, info.nmant
    if width < 8:
        raise TypeError(f"uniform: argument 'dtype' must have 8, 16, 32 or 64 bits, got {dtype}")
    drawn = 8 if mantissa < 8 else width  # few mantissa bits: do not draw more than are used
    word = np.dtype(f"uint{width}")
    raw = random_bits(impl, words, drawn, shape)
    if drawn != width:
        raw = lax.convert_element_type(raw, word)
    one = np.array(1, dtype).view(word)[()]
    raw = lax.bitwise_or(lax.shift_right_logical(raw, constant(raw, drawn - mantissa)), one)
    numbers = lax.bitcast_convert_type(raw, dtype)
    return lax.sub(numbers, constant(numbers, 1))


def uniform_of(
    impl: PRNGImpl, words: Any, shape: tuple[int, ...], dtype: np.dtype, low: Any = 0.0, high: Any = 1.0
) -> Any:
    """Uniform on [low, high); limits are arrays or scalars that broadcast to `shape`."""
    unit = unit_interval(impl, words, shape, dtype)
    if isinstance(low, float) and isinstance(high, float) and (low, high) == (0.0, 1.0):
        return unit
    low, high = (as_dtype(limit, dtype) for limit in (low, high))
    low, high = (x if x.ndim == 0 else jnp.broadcast_to(x, unit.shape) for x in (low, high))
    return lax.max(low, lax.add(lax.mul(unit, lax.sub(high, low)), low))


@jitted("impl", "shape", "dtype")
def _uniform(words: Any, minval: Any, maxval: Any, *, impl: PRNGImpl, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return uniform_of(impl, words, shape, dtype, jnp.asarray(minval), jnp.asarray(maxval))


@api_boundary
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard normal; for a complex dtype real and imaginary parts are independent, of variance 1/2 each.

    Raises ValueError if `dtype` is not a float or complex dtype.
    """
    impl, words, _ = open_key("normal", key)
    return out_placed(
        "normal",
        _normal(words, impl=impl, shape=shape_of("normal", shape), dtype=inexact_dtype("normal", dtype)),
        out_sharding,
    )


def normal_of(impl: PRNGImpl, words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """sqrt(2) erfinv(u), u uniform on (-1, 1)."""
    if dtypes.issubdtype(dtype, np.complexfloating):
        real_dtype = dtypes.finfo(dtype).dtype
        real, imag = (normal_of(impl, half, shape, real_dtype) for half in two_keys(impl, words))
        z = lax.complex(real, imag)
        return lax.div(z, constant(z, np.sqrt(2)))
    u = uniform_of(impl, words, shape, dtype, above(-1, dtype), np.dtype(dtype).type(1))
    return lax.mul(constant(u, np.sqrt(2)), lax.erf_inv(u))


@jitted("impl", "shape", "dtype")
def _normal(words: Any, *, impl: PRNGImpl, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return normal_of(impl, words, shape, dtype)


def keys_of(impl: PRNGImpl, words: Any, n: int) -> list[Any]:
    """The words of n keys split from one."""
    rows = impl.split(words, (n,))
    return [lax.index_in_dim(rows, i, 0, keepdims=False) for i in range(n)]


def two_keys(impl: PRNGImpl, words: Any) -> list[Any]:
    """The words of the two keys split from one."""
    return keys_of(impl, words, 2)


# ----------------------------------------------------------------------------------------------------------- integers


@api_boundary
def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Uniform integers in [minval, maxval), which broadcast to `shape`; limits outside the type are clipped to it.

    An empty interval gives minval. Raises TypeError if `dtype` is not an integer dtype.
    """
    impl, words, _ = open_key("randint", key)
    shape = shape_of("randint", shape)
    dtype = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "randint")
    if not dtypes.issubdtype(dtype, np.integer):
        raise TypeError(f"randint: argument 'dtype' must be one of integers, got {dtype}")
    default = dtypes.iinfo(dtypes.canonicalize_dtype(np.int64))
    for name, value in (("minval", minval), ("maxval", maxval)):
        if isinstance(value, (list, tuple)):
            raise TypeError(
                f"randint: argument '{name}' must be an array or a number, got {shown(value)}; the shape comes second: "
                "randint(key, shape, minval, maxval)"
            )
        if type(value) is int and not int(default.min) <= value <= int(default.max):
            raise OverflowError(f"randint: argument '{name}' is {value}, which does not fit into {default.dtype}")
    batch_shape("randint", shape, minval=np.shape(minval), maxval=np.shape(maxval))
    return out_placed("randint", _randint(words, minval, maxval, impl=impl, shape=shape, dtype=dtype), out_sharding)


def randint_of(impl: PRNGImpl, words: Any, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: np.dtype) -> Any:
    """(h 2**w + l) mod span from two words h, l of w bits, with all arithmetic modulo 2**w.

    Types under 32 bits are drawn as 32-bit ones, which changes the numbers but not the bias; the limits are clipped
    first.
    """
    info = dtypes.iinfo(dtype)
    low, high = jnp.asarray(minval), jnp.asarray(maxval)
    if info.bits < 32:
        low = jnp.clip(as_dtype(low, np.int32), int(info.min), int(info.max))
        high = jnp.clip(as_dtype(high, np.int32), int(info.min), int(info.max) + 1)
        return lax.convert_element_type(randint_of(impl, words, shape, low, high, np.dtype(np.int32)), dtype)
    low, high = (x if dtypes.issubdtype(x.dtype, np.integer) else as_dtype(x, dtype) for x in (low, high))
    largest = min(int(info.max), int(dtypes.iinfo(high.dtype).max))
    beyond = jnp.broadcast_to(
        lax.gt(high, lax.full_like(high, largest)), shape
    )  # maxval is more than the type can hold
    low, high = _clipped(low, dtype), _clipped(high, dtype)
    low, high = jnp.broadcast_to(low, shape), jnp.broadcast_to(high, shape)
    upper, lower = (random_bits(impl, half, info.bits, shape) for half in two_keys(impl, words))
    word = upper.dtype
    span = lax.convert_element_type(lax.sub(high, low), word)
    one = lax.full(shape, 1, word)
    span = lax.select(lax.le(high, low), one, span)
    span = lax.select(jnp.logical_and(beyond, lax.gt(high, low)), lax.add(span, one), span)
    half = lax.rem(lax.full(shape, 2 ** (info.bits // 2), word), span)
    factor = lax.rem(lax.mul(half, half), span)  # 2**w mod span
    offset = lax.rem(lax.add(lax.mul(lax.rem(upper, span), factor), lax.rem(lower, span)), span)
    return lax.add(low, lax.convert_element_type(offset, dtype))


def _clipped(x: Any, dtype: np.dtype) -> Any:
    """Integers x as `dtype`, values outside its range at the nearest end."""
    info, other = dtypes.iinfo(dtype), dtypes.iinfo(x.dtype)
    least, most = max(int(info.min), int(other.min)), min(int(info.max), int(other.max))
    if (least, most) != (int(other.min), int(other.max)):
        x = lax.clamp(lax.full_like(x, least), x, lax.full_like(x, most))
    return as_dtype(x, dtype)


@jitted("impl", "shape", "dtype")
def _randint(words: Any, minval: Any, maxval: Any, *, impl: PRNGImpl, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return randint_of(impl, words, shape, minval, maxval, dtype)


# -------------------------------------------------------------------------------------------------------------- flips


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, mode: str = "low", *, out_sharding: Any = None) -> Any:
    """True with probability p. `mode='high'` draws twice as many bits, so that small p are exact.

    Raises TypeError if p is not of a float type, ValueError for another mode or if p does not broadcast to `shape`.
    """
    impl, words, _ = open_key("bernoulli", key)
    if mode not in ("low", "high"):
        raise ValueError(f"bernoulli: argument 'mode' is 'low' or 'high', got {mode!r}")
    dtype = dtypes.dtype_of(p)
    if not dtypes.issubdtype(dtype, np.floating):
        raise TypeError(f"bernoulli: argument 'p' is a probability of a float dtype, got {dtype}")
    shape = batch_shape("bernoulli", shape, p=np.shape(p))
    return out_placed("bernoulli", _bernoulli(words, p, impl=impl, shape=shape, mode=mode), out_sharding)


def bernoulli_of(impl: PRNGImpl, words: Any, p: Any, shape: tuple[int, ...], mode: str) -> Any:
    """True with probability p; mode 'high' also resolves p below the spacing of uniform variables."""
    p = jnp.asarray(p)
    dtype = p.dtype
    p = jnp.broadcast_to(p, shape)
    if mode == "low":
        return lax.lt(uniform_of(impl, words, shape, dtype), p)
    both = uniform_of(impl, words, (2, *shape), dtype)
    first, second = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    fine = lax.mul(second, lax.full(shape, 2.0 ** -dtypes.finfo(dtype).nmant, dtype))
    return lax.lt(fine, lax.sub(p, first))


@jitted("impl", "shape", "mode")
def _bernoulli(words: Any, p: Any, *, impl: PRNGImpl, shape: tuple[int, ...], mode: str) -> Any:
    return bernoulli_of(impl, words, p, shape, mode)


def rademacher(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """-1 or 1 with equal probability, of an integer or float `dtype` (default: the default integer).

    Of dtype bool, where -1 and 1 are both True, all elements are True.
    """
    impl, words, _ = open_key("rademacher", key)
    dtype = dtypes.check_user_dtype_supported(int if dtype is None else dtype, "rademacher")
    return out_placed(
        "rademacher", _rademacher(words, impl=impl, shape=shape_of("rademacher", shape), dtype=dtype), out_sharding
    )


def rademacher_of(impl: PRNGImpl, words: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """-1 or 1 with equal probability, of a dtype."""
    if dtype == np.bool_:
        return lax.full(shape, True)
    p = lax.full((), 0.5, dtypes.canonicalize_dtype(np.float64))
    flips = lax.convert_element_type(bernoulli_of(impl, words, p, shape, "low"), dtype)
    return lax.sub(lax.mul(lax.full(shape, 2, dtype), flips), lax.full(shape, 1, dtype))


@jitted("impl", "shape", "dtype")
def _rademacher(words: Any, *, impl: PRNGImpl, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return rademacher_of(impl, words, shape, dtype)
