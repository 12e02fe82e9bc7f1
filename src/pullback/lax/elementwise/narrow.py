"""Values of 8 bits and fewer as bytes, for compiled programs: `decode` to a type that the machine has, `encode` back.

Made by the pass `narrow` (compiler/graph/simplify/narrow.py); there is no public function for them.
"""

from __future__ import annotations

from typing import Any

from pullback.core.lowering import Elementwise
from pullback.lax.records.compiler_made import compiler_primitive
from pullback.lax.records.families import *
from pullback.lax.records.rules import batch_nary
from pullback.util.record import NamedTuple

__all__ = ["INTEGERS", "decode_p", "encode_p", "is_narrow", "nextafter_p", "work_dtype"]


class _Format(NamedTuple):
    """How a float lies in its bits: sign, exponent, mantissa, from the highest to the lowest."""

    bits: int
    mantissa: int
    bias: int
    largest: int  # the code of the largest finite number
    overflow: int  # the code of what is larger
    nan: int
    one_zero: bool = False  # the code of -0 is that of nan


_FLOATS: dict[np.dtype, _Format] = {
    np.dtype(dtypes.float8_e4m3fn): _Format(8, 3, 7, 0x7E, 0x7F, 0x7F),
    np.dtype(dtypes.float8_e5m2): _Format(8, 2, 15, 0x7B, 0x7C, 0x7E),
    np.dtype(dtypes.float8_e3m4): _Format(8, 4, 3, 0x6F, 0x70, 0x78),
    np.dtype(dtypes.float8_e4m3): _Format(8, 3, 7, 0x77, 0x78, 0x7C),
    np.dtype(dtypes.float8_e4m3b11fnuz): _Format(8, 3, 11, 0x7F, 0x80, 0x80, True),
    np.dtype(dtypes.float8_e4m3fnuz): _Format(8, 3, 8, 0x7F, 0x80, 0x80, True),
    np.dtype(dtypes.float8_e5m2fnuz): _Format(8, 2, 16, 0x7F, 0x80, 0x80, True),
    np.dtype(dtypes.float4_e2m1fn): _Format(4, 1, 1, 7, 7, 0),
}
_SCALE = np.dtype(dtypes.float8_e8m0fnu)  # an exponent alone: 2**(code - 127)
INTEGERS: dict[np.dtype, int] = {
    np.dtype(dtypes.int2): 2,
    np.dtype(dtypes.uint2): 2,
    np.dtype(dtypes.int4): 4,
    np.dtype(dtypes.uint4): 4,
}
_LEAST = 0x00400000  # the least value of _SCALE, as bits of a float32; ml_dtypes and XLA round what is above it up


def is_narrow(dtype: Any) -> bool:
    """Whether values lie in memory as bytes that only `decode` understands."""
    return dtype in _FLOATS or dtype in INTEGERS or dtype == _SCALE


def work_dtype(dtype: np.dtype) -> np.dtype:
    """The type in which operations compute: it holds all values, and XLA computes in it too."""
    if dtype in INTEGERS:
        return np.dtype(np.int8 if dtypes.kind_of(dtype) == "i" else np.uint8)
    return np.dtype(np.float32 if dtype == _SCALE else np.float16)


def _decode_reference(x, *, dtype, new_dtype):
    return x.view(dtype).astype(new_dtype)


def _decode(b, x, *, dtype, new_dtype):
    if dtype in INTEGERS:
        if dtypes.kind_of(new_dtype) == "u":
            return b.and_(x, (1 << INTEGERS[dtype]) - 1)
        shift = 8 - INTEGERS[dtype]
        return b.shr_arithmetic(b.shl(b.bitcast(x, "i8"), shift), shift)
    code = b.convert(x, "u32")
    if dtype == _SCALE:
        bits = b.select(b.eq(code, 0), b.const("u32", _LEAST), b.shl(code, 23))
        bits = b.select(b.eq(code, 255), b.const("u32", 0x7FC00000), bits)
        return b.convert(b.bitcast(bits, "f32"), b.out_dtype)
    f = _FLOATS[dtype]
    top = 1 << (f.bits - 1)
    size = b.and_(code, top - 1)
    # With the narrow type's bias in a float32, subnormals included, the value is too small by this power of two.
    value = b.mul(b.bitcast(b.shl(size, 23 - f.mantissa), "f32"), b.const("f32", 2.0 ** (127 - f.bias)))
    bits = b.bitcast(value, "u32")
    if f.one_zero:
        bits = b.select(b.eq(code, f.nan), b.const("u32", 0x7FC00000), bits)
    elif f.largest < top - 1:
        special = b.const("u32", 0x7FC00000)
        if f.overflow != f.nan:
            special = b.select(b.eq(size, f.overflow), b.const("u32", 0x7F800000), special)
        bits = b.select(b.gt(size, f.largest), special, bits)
    bits = b.or_(bits, b.shl(b.and_(code, top), 32 - f.bits))
    return b.convert(b.bitcast(bits, "f32"), b.out_dtype)


def _to_odd(x):
    """float64 as float32 whose last bit is 1 where it is inexact: rounding that again equals rounding once."""
    size = np.abs(x)
    near = size.astype(np.float32)
    bits = near.view(np.uint32)
    odd = (bits - (near > size)) | (near != size)
    return np.copysign(np.where(np.isnan(x), near, odd.astype(np.uint32).view(np.float32)), x)


def _encode_reference(x, *, dtype, saturate=False):
    x = np.asarray(x)
    if dtype in INTEGERS:
        if saturate:
            limits = dtypes.iinfo(dtype)
            x = np.clip(x, int(limits.min), int(limits.max))
        return x.astype(np.uint8) & np.uint8((1 << INTEGERS[dtype]) - 1)
    with np.errstate(all="ignore"):
        x = np.asarray(_to_odd(x) if x.dtype == np.float64 else x.astype(np.float32))
        if saturate and not _has_infinity(dtype):
            limits = dtypes.finfo(dtype)
            x = np.clip(x, np.float32(limits.min), np.float32(limits.max))
        return x.astype(dtype).view(np.uint8)


def _encode(b, x, *, dtype, saturate=False):
    if dtype in INTEGERS:
        if saturate:
            limits = dtypes.iinfo(dtype)
            x = b.min(b.max(x, int(limits.min)), int(limits.max))
        return b.and_(x if x.dtype == "u8" else b.bitcast(x, "u8"), (1 << INTEGERS[dtype]) - 1)
    if x.dtype == "f64":
        wide = b.abs(x)
        near = b.convert(wide, "f32")
        again = b.convert(near, "f64")
        odd = b.sub(b.bitcast(near, "u32"), b.convert(b.gt(again, wide), "u32"))
        odd = b.or_(odd, b.convert(b.ne(again, wide), "u32"))
        size = b.select(b.ne(wide, wide), b.const("u32", 0x7FC00000), odd)
        sign = b.convert(b.shr_logical(b.bitcast(x, "u64"), 63), "u32")
    else:
        bits = b.bitcast(x if x.dtype == "f32" else b.convert(x, "f32"), "u32")
        size = b.and_(bits, 0x7FFFFFFF)
        sign = b.shr_logical(bits, 31)
    if dtype == _SCALE:
        return b.convert(_scale_code(b, size, sign, saturate), "u8")
    f = _FLOATS[dtype]
    if saturate and not _has_infinity(dtype):
        f = f._replace(overflow=f.largest)
    return b.convert(_float_code(b, size, sign, f), "u8")


def _has_infinity(dtype):
    return dtype != _SCALE and _FLOATS[dtype].overflow not in (_FLOATS[dtype].nan, _FLOATS[dtype].largest)


def _rounded(b, size, dropped):
    """Bits without the last ones, to the nearest, ties to even."""
    last = b.and_(b.shr_logical(size, dropped), 1)
    return b.shr_logical(b.add(b.add(size, (1 << (dropped - 1)) - 1), last), dropped)


def _float_code(b, size, sign, f):
    code = b.sub(_rounded(b, size, 23 - f.mantissa), (127 - f.bias) << f.mantissa)
    # Adding this power of two rounds to a multiple of the least number, and leaves the multiple in the last bits.
    large = (127 + 1 - f.bias - f.mantissa + 23) << 23
    sum_ = b.add(b.bitcast(size, "f32"), b.bitcast(b.const("u32", large), "f32"))
    below = b.lt(size, (127 + 1 - f.bias) << 23)
    code = b.select(below, b.sub(b.bitcast(sum_, "u32"), large), code)
    code = b.select(b.gt(code, f.largest), b.const("u32", f.overflow), code)
    code = b.select(b.gt(size, 0x7F800000), b.const("u32", f.nan), code)
    signed = b.or_(code, b.shl(sign, f.bits - 1))
    return b.select(b.eq(code, 0), code, signed) if f.one_zero else signed


def _scale_code(b, size, sign, saturate):
    code = b.shr_logical(b.add(size, 1 << 22), 23)  # ties go up: there is no last bit that could be even
    code = b.select(b.lt(size, 0x00800000), b.convert(b.gt(size, _LEAST), "u32"), code)
    if saturate:
        code = b.select(b.ne(sign, 0), b.const("u32", 0), b.min(code, 254))
        return b.select(b.gt(size, 0x7F800000), b.const("u32", 255), code)
    wrong = b.or_(b.or_(b.ge(size, 0x7F800000), b.eq(size, 0)), b.ne(sign, 0))
    return b.select(wrong, b.const("u32", 255), b.min(code, 255))


def _nextafter_reference(x, y, *, dtype):
    with np.errstate(all="ignore"):
        return np.asarray(np.nextafter(x.view(dtype), y.view(dtype))).view(np.uint8)


def _nextafter(b, x, y, *, dtype):
    b.out_dtype = "f32"
    start, end = (_decode(b, code, dtype=dtype, new_dtype=np.dtype(np.float32)) for code in (x, y))
    b.out_dtype = "u8"
    up = b.lt(start, end)
    if dtype == _SCALE:
        code, nan = b.select(up, b.add(x, 1), b.sub(x, 1)), 255
    else:
        f = _FLOATS[dtype]
        top, nan = 1 << (f.bits - 1), f.nan
        size = b.and_(x, top - 1)
        grows = b.eq(up, b.lt(x, top))
        code = b.select(grows, b.add(x, 1), b.sub(x, 1))
        if f.one_zero:
            code = b.select(b.and_(b.eq(size, 1), b.not_(grows)), b.const("u8", 0), code)
        first = b.select(up, b.const("u8", 1), b.const("u8", top | 1))
        code = b.select(b.eq(size, 0), first, code)
    code = b.select(b.eq(start, end), y, code)
    unordered = b.or_(b.ne(start, start), b.ne(end, end))
    return b.select(unordered, b.const("u8", nan), code)


def _of_bytes(name: str, doc: str, aval: Any, reference: Any, scalar: Any, cost: int) -> Primitive:
    p = compiler_primitive(
        name,
        doc=doc,
        abstract_eval=aval,
        reference=reference,
        lower=Elementwise(scalar, cost=cost),
        traits={"elementwise"},
    )
    p.batch = batch_nary(p.bind)  # a later pass makes batches of loops
    return p


decode_p = _of_bytes(
    "decode_narrow",
    "Bytes that are values of the narrow type `dtype`, as `new_dtype`.",
    lambda aval, *, dtype, new_dtype: ShapedArray(aval.shape, new_dtype),
    _decode_reference,
    _decode,
    cost=3,
)
encode_p = _of_bytes(
    "encode_narrow",
    "Values as bytes that are those of the narrow type `dtype`, rounded to nearest even; integers wrap around.",
    lambda aval, *, dtype, saturate=False: ShapedArray(aval.shape, np.dtype(np.uint8)),
    _encode_reference,
    _encode,
    cost=12,
)
nextafter_p = _of_bytes(
    "nextafter_narrow",
    "The bytes of the number after x towards y, both bytes of floats of the narrow type `dtype`.",
    lambda x, y, *, dtype: x,
    _nextafter_reference,
    _nextafter,
    cost=8,
)
