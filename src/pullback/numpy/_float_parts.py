"""Parts of floating-point numbers (sign, mantissa, exponent), bits of integers, and functions of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import lax
from pullback.api import custom_jvp
from pullback.numpy._arguments import (
    arrays,
    broadcast_arrays,
    broadcast_shapes_of,
    canonical_axis,
    const,
    convert,
    dtype_of,
    is_weak,
    of_operands,
    of_scalars,
    promote,
    promote_dtypes,
    promote_inexact,
    refuse_out,
    shape_of_operands,
)
from pullback.numpy._comparison import isfinite, isnan
from pullback.numpy._ufuncs import where as _where
from pullback.util import dtypes

_UNSIGNED: dict[int, Any] = {16: np.dtype(np.uint16), 32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}
_SIGNED: dict[int, Any] = {16: np.dtype(np.int16), 32: np.dtype(np.int32), 64: np.dtype(np.int64)}


def _layout(dtype: Any) -> tuple[int, int, int]:
    """(bits, bits of the mantissa that are stored, bias of the exponent) of a float type."""
    info = dtypes.finfo(dtype)
    bits, mantissa = int(info.bits), int(info.nmant)
    return bits, mantissa, (1 << (bits - mantissa - 2)) - 1


def _refuse_complex(name: str, *xs: Any, error: type[Exception] = TypeError) -> None:
    for x in xs:
        if dtypes.issubdtype(dtype_of(x), np.complexfloating):
            raise error(f"{name} does not support complex-valued inputs, got {dtype_of(x)}")


def signbit(x: Any, /) -> Any:
    """Whether the sign bit is set, elementwise: for negative numbers, -0.0 and NaN with it; ValueError for complex
    numbers.
    """
    (x,) = arrays("signbit", x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError(f"jax.numpy.signbit is not well defined for {x.dtype}")
    if dtypes.issubdtype(x.dtype, np.integer):
        return convert(lax.lt(x, const(x, 0)), np.bool_)
    if x.dtype == np.bool_:
        return lax.full(x.shape, False, np.bool_)
    x = convert(x, np.dtype(np.float32) if x.dtype.itemsize == 1 else x.dtype)
    bits = _SIGNED[_layout(x.dtype)[0]]
    return lax.lt(lax.bitcast_convert_type(x, bits), lax.full(x.shape, 0, bits))


def copysign(x1: Any, x2: Any, /) -> Any:
    """|x1| with the sign of x2, elementwise; TypeError for complex numbers."""
    operands = arrays("copysign", x1, x2)
    _refuse_complex("copysign", *operands)
    broadcast_shapes_of("copysign", [x.shape for x in operands])
    x1, x2 = broadcast_arrays("copysign", *promote_inexact("copysign", x1, x2))
    size = lax.abs(x1)
    return lax.select(signbit(x2), lax.neg(size), size)


def nextafter(x: Any, y: Any, /) -> Any:
    """The neighbour of x in the direction of y, elementwise; TypeError for complex numbers."""
    _refuse_complex("nextafter", *arrays("nextafter", x, y))
    return lax.nextafter(*broadcast_arrays("nextafter", *promote_inexact("nextafter", x, y)))


def spacing(x: Any, /) -> Any:
    """Distance from x to its neighbour away from 0, with the sign of x; NaN where there is none.

    Of float16 as NumPy has it: the distance to the neighbour above, which is positive.
    """
    (x,) = arrays("spacing", x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    end: Any = np.asarray(np.inf).astype(x.dtype)
    if np.isnan(end):  # some narrow types have no infinity
        end = np.asarray(dtypes.finfo(x.dtype).max, x.dtype)
    end = lax.full_like(x, end)
    away = end if x.dtype == np.float16 else lax.select(signbit(x), lax.neg(end), end)
    inside = lax.bitwise_and(isfinite(x), lax.ne(x, away))
    distance = lax.sub(lax.nextafter(x, away), x)
    if (tiny := _subnormal_spacing(x)) is not None:
        distance = _where(lax.eq(distance, lax.full_like(x, 0)), copysign(tiny, away), distance)
    return _where(inside, distance, lax.full_like(x, np.nan))


def _subnormal_spacing(x: Any) -> Any:
    """The distance from |x| to its neighbour above where that is subnormal, which subtracting would give as 0.

    None for narrow types: they are subtracted in float32, where their distances are normal numbers.
    """
    bits, mantissa, _ = _layout(x.dtype)
    if x.dtype == np.float16 or bits < 16:
        return None
    unsigned = _UNSIGNED[bits]
    as_bits = lambda value: lax.full(x.shape, value, unsigned)
    magnitude = lax.shift_right_logical(lax.shift_left(lax.bitcast_convert_type(x, unsigned), as_bits(1)), as_bits(1))
    exponent = lax.shift_right_logical(magnitude, as_bits(mantissa))
    # x is a multiple of 2**(exponent - 1) times the least subnormal, whose bits are those of 1
    steps = lax.sub(lax.max(exponent, as_bits(1)), as_bits(1))
    return lax.bitcast_convert_type(lax.shift_left(as_bits(1), steps), x.dtype)


def frexp(x: Any, /) -> tuple[Any, Any]:
    """(mantissa, exponent) with x = mantissa * 2**exponent and 0.5 <= |mantissa| < 1, elementwise; exponent int32.

    0, infinities and NaN are their own mantissas, with exponent 0. TypeError for complex numbers.
    """
    (x,) = arrays("frexp", x)
    _refuse_complex("frexp", x)
    x = convert(x, dtypes.to_inexact_dtype(x.dtype))
    bits, nmant, bias = _layout(x.dtype)
    unsigned = _UNSIGNED[bits]

    def word(value: int) -> Any:
        return lax.full(x.shape, np.asarray(value, np.uint64).astype(unsigned), unsigned)

    # Numbers below the normal ones are scaled up first, by a power of 2 that brings the smallest of them into range.
    tiny = lax.lt(lax.abs(x), lax.full_like(x, float(dtypes.finfo(x.dtype).tiny)))
    lift = nmant + 1
    scaled = lax.select(tiny, lax.mul(x, lax.full_like(x, 2.0**lift)), x)
    raw = lax.bitcast_convert_type(scaled, unsigned)
    exponent_mask = (1 << (bits - nmant - 1)) - 1
    exponent = convert(
        lax.bitwise_and(lax.shift_right_logical(raw, word(nmant)), word(exponent_mask)), np.dtype(np.int32)
    )
    exponent = lax.sub(exponent, lax.full_like(exponent, bias - 1))
    exponent = lax.select(tiny, lax.sub(exponent, lax.full_like(exponent, lift)), exponent)
    special = lax.bitwise_or(lax.bitwise_not(isfinite(x)), lax.eq(x, lax.full_like(x, 0)))
    exponent = lax.select(special, lax.full_like(exponent, 0), exponent)
    # A product with a power of 2 is exact, and gives the mantissa its derivative.
    return _scale(x, lax.neg(exponent)), exponent


def ldexp(x1: Any, x2: Any, /) -> Any:
    """x1 * 2**x2 for integers x2, elementwise, exact unless it over- or underflows; ValueError if x2 is not integer."""
    x1, x2 = arrays("ldexp", x1, x2)
    if dtypes.issubdtype(x1.dtype, np.complexfloating) or not (
        dtypes.issubdtype(x2.dtype, np.integer) or x2.dtype == np.bool_
    ):
        raise ValueError(f"ldexp not supported for input types {(x1.dtype, x2.dtype)}")
    shape_of_operands("ldexp", [x1.shape, x2.shape])
    x1 = convert(x1, dtypes.to_inexact_dtype(x1.dtype))
    x1, x2 = broadcast_arrays("ldexp", x1, convert(x2, np.dtype(np.int32)))
    return _scale(x1, x2)


def _scale(x: Any, exponent: Any) -> Any:
    """x * 2**exponent, for an int32 exponent of the same shape."""
    bits, nmant, bias = _layout(x.dtype)
    unsigned = _UNSIGNED[bits]
    # The power may be out of range where the result is not: multiply in three steps, each by a power that is in range.
    limit = 3 * (bias - 1)
    left = lax.clamp(np.int32(-limit), exponent, np.int32(limit))
    for _ in range(3):
        part = lax.clamp(np.int32(-(bias - 1)), left, np.int32(bias - 1))
        left = lax.sub(left, part)
        field = convert(lax.add(part, lax.full_like(part, bias)), unsigned)
        x = lax.mul(x, lax.bitcast_convert_type(lax.shift_left(field, lax.full(x.shape, nmant, unsigned)), x.dtype))
    return x


def modf(x: Any, /, out: None = None) -> tuple[Any, Any]:
    """(fractional part, integer part), both with the sign of x, elementwise; TypeError for complex numbers."""
    refuse_out("modf", out)
    _refuse_complex("modf", *arrays("modf", x))
    (x,) = promote_inexact("modf", x)
    whole = _where(lax.ge(x, const(x, 0)), lax.floor(x), lax.ceil(x))
    return lax.sub(x, whole), whole


def heaviside(x1: Any, x2: Any, /) -> Any:
    """0 for negative x1, 1 for positive, x2 at 0, NaN for NaN, elementwise; TypeError for complex numbers."""
    operands = arrays("heaviside", x1, x2)
    _refuse_complex("heaviside", *operands)
    broadcast_shapes_of("heaviside", [x.shape for x in operands])
    given = np.ndim(x1)
    x1, x2 = broadcast_arrays("heaviside", *promote_inexact("heaviside", x1, x2))
    zero = lax.full_like(x1, 0)
    step = lax.select(lax.gt(x1, zero), lax.full_like(x1, 1), zero)
    result = lax.select(isnan(x1), x1, lax.select(lax.eq(x1, zero), x2, step))
    return of_operands(result, x1) if given == 0 else convert(result, result.dtype, False)


def unscaled(x: Any, value: Any) -> Any:
    """exp(|x|) times the value, which overflows where the product does, not where exp(|x|) does."""
    size = lax.abs(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return lax.mul(convert(lax.exp(size), value.dtype), value)
    far = lax.gt(size, const(size, np.log(float(dtypes.finfo(x.dtype).max)) - 8))
    shift, scale = (_where(far, const(size, part), const(size, rest)) for part, rest in ((8, 0), (np.exp(8), 1)))
    return lax.mul(lax.mul(lax.exp(lax.sub(size, shift)), value), scale)


@custom_jvp
def bessel_i0(x: Any) -> Any:
    """I_0 of floats."""
    return unscaled(x, lax.bessel_i0e(x))


@bessel_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (x_dot,) = primals, tangents
    return bessel_i0(x), lax.mul(x_dot, bessel_i1(x))


@custom_jvp
def bessel_i1(x: Any) -> Any:
    """I_1 of floats, whose derivatives are again written with I_0 and I_1: scaled ones would overflow before them."""
    return unscaled(x, lax.bessel_i1e(x))


@bessel_i1.defjvp
def _i1_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    (x,), (x_dot,) = primals, tangents
    y = bessel_i1(x)
    small = lax.lt(lax.abs(x), const(x, dtypes.finfo(x.dtype).eps))  # there I_1(x) / x is 1/2
    ratio = _where(small, const(x, 0.5), lax.div(y, _where(small, const(x, 1), x)))
    slope = _where(lax.eq(lax.abs(y), const(x, np.inf)), lax.abs(y), lax.sub(bessel_i0(x), ratio))
    return y, lax.mul(x_dot, slope)


def i0(x: Any) -> Any:
    """Modified Bessel function of the first kind and order 0 of real numbers; ValueError for complex ones."""
    (x,) = arrays("i0", x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {x.dtype}")
    (x,) = promote_inexact("i0", x)
    if x.dtype.itemsize == 1:  # what is computed with e^8 does not fit
        return convert(bessel_i0(convert(x, np.dtype(np.float32))), x.dtype)
    return bessel_i0(x)


# ---- whole numbers


def _integers(name: str, x1: Any, x2: Any) -> list[Any]:
    x1, x2 = promote_dtypes(*arrays(name, x1, x2))
    if not dtypes.issubdtype(x1.dtype, np.integer):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers, got {x1.dtype}.")
    try:
        lax.broadcast_shapes(x1.shape, x2.shape)
    except ValueError:
        shapes = [x1.shape, x2.shape]
        raise ValueError(f"{name}: Incompatible shapes for broadcasting: shapes={shapes}") from None
    return broadcast_arrays(name, *promote(name, x1, x2))


def gcd(x1: Any, x2: Any) -> Any:
    """Greatest common divisor of integers, elementwise, by Euclid's algorithm; ValueError for other types."""
    given = (x1, x2)
    x1, x2 = _integers("gcd", x1, x2)
    weak = all(type(x) is bool or is_weak(x) for x in given)
    a, b = (_magnitude(convert(x, x.dtype)) for x in (x1, x2))

    def unfinished(state: Any) -> Any:
        second = state[1]
        return lax.reduce_or(lax.ne(second, lax.full_like(second, 0)), tuple(range(second.ndim)))

    def step(state: Any) -> Any:
        first, second = state
        done = lax.eq(second, lax.full_like(second, 0))
        divisor = lax.select(done, lax.full_like(second, 1), second)
        return lax.select(done, first, second), lax.select(done, second, lax.rem(first, divisor))

    return convert(lax.while_loop(unfinished, step, (a, b))[0], x1.dtype, weak and x1.ndim == 0)


def _magnitude(x: Any) -> Any:
    return x if dtypes.issubdtype(x.dtype, np.unsignedinteger) else lax.abs(x)


def lcm(x1: Any, x2: Any) -> Any:
    """Least common multiple of integers, elementwise; 0 where one is 0; ValueError for other types."""
    given = (x1, x2)
    x1, x2 = _integers("lcm", x1, x2)
    divisor = gcd(x1, x2)
    zero = const(divisor, 0)
    nothing = lax.eq(divisor, zero)
    a, b = _magnitude(x1), _magnitude(x2)
    multiple = _where(nothing, zero, lax.mul(a, lax.div(b, _where(nothing, const(divisor, 1), divisor))))
    return of_scalars(multiple, *given)


# ---- bits in bytes


def _check_bitorder(bitorder: str) -> None:
    if bitorder not in ("little", "big"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")


def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Any:
    """Eight elements along an axis (of all in C order) as the bits of a byte, 1 for nonzero; the last is filled with
    0.
    """
    (a,) = arrays("packbits", a)
    if not (a.dtype == np.bool_ or dtypes.issubdtype(a.dtype, np.integer)):
        raise TypeError(f"packbits: argument 'a' must hold integers or booleans, got dtype {a.dtype}")
    _check_bitorder(bitorder)
    bits = convert(a if a.dtype == np.bool_ else lax.ne(a, const(a, 0)), np.dtype(np.uint8))
    if axis is None:
        bits, axis = lax.reshape(bits, (bits.size,)), 0
    axis = canonical_axis("packbits", axis, bits.ndim)
    order = (*(k for k in range(bits.ndim) if k != axis), axis)
    bits = lax.transpose(bits, order)
    n = bits.shape[-1]
    octets = -(-n // 8)
    zero = lax.full((), 0, np.dtype(np.uint8))
    bits = lax.pad(bits, zero, [(0, 0, 0)] * (bits.ndim - 1) + [(0, octets * 8 - n, 0)])
    bits = lax.reshape(bits, (*bits.shape[:-1], octets, 8))
    places = np.arange(8, dtype=np.uint8) if bitorder == "little" else np.arange(7, -1, -1, dtype=np.uint8)
    shifted = lax.shift_left(bits, lax.broadcast_in_dim(places, bits.shape, (bits.ndim - 1,)))
    packed = lax.convert_element_type(
        lax.reduce_sum(lax.convert_element_type(shifted, np.dtype(np.int32)), (bits.ndim - 1,)), np.dtype(np.uint8)
    )
    return lax.transpose(packed, tuple(int(k) for k in np.argsort(order)))


def unpackbits(a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Any:
    """The bits of bytes along an axis (of all in C order) as uint8, cut or filled with 0 to `count` of them."""
    (a,) = arrays("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError(f"unpackbits: argument 'a' must hold bytes, of dtype uint8; got {a.dtype}")
    _check_bitorder(bitorder)
    if axis is None:
        a, axis = lax.reshape(a, (a.size,)), 0
    axis = canonical_axis("unpackbits", axis, a.ndim)
    order = (*(k for k in range(a.ndim) if k != axis), axis)
    octets = lax.transpose(a, order)
    places = np.arange(8, dtype=np.uint8) if bitorder == "little" else np.arange(7, -1, -1, dtype=np.uint8)
    shape = (*octets.shape, 8)
    spread = lax.broadcast_in_dim(octets, shape, tuple(range(octets.ndim)))
    bits = lax.shift_right_logical(spread, lax.broadcast_in_dim(places, shape, (octets.ndim,)))
    bits = lax.bitwise_and(bits, lax.full_like(bits, 1))
    bits = lax.reshape(bits, (*octets.shape[:-1], octets.shape[-1] * 8))
    if count is not None:
        n = bits.shape[-1]
        wanted = count if count >= 0 else n + count
        if wanted > n:
            zero = lax.full((), 0, np.dtype(np.uint8))
            bits = lax.pad(bits, zero, [(0, 0, 0)] * (bits.ndim - 1) + [(0, wanted - n, 0)])
        else:
            bits = lax.slice_in_dim(bits, 0, wanted, axis=bits.ndim - 1)
    return lax.transpose(bits, tuple(int(k) for k in np.argsort(order)))
