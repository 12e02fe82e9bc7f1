"""Reduction of huge angles: x / (2 pi) modulo 1 as an integer fraction, by Payne and Hanek's method.

x = m 2^e with an integer m. Bits of 1 / (2 pi) so high that their product with m 2^e is a whole number do not matter,
those far below do not either: a window of 96 bits (f32) or 192 bits (f64) starting at bit e is multiplied by m modulo
1, in limbs of 32 bits. The window is cut out of a table by selects on the bits of e, since an expression has no
memory. See M. Payne, R. Hanek, SIGNUM Newsletter 18 (1983); Muller, Elementary Functions, 3rd ed., 11.6.
Error: below 2^-62 turns (f32), 2^-120 turns (f64); the least remainders of floats are 2^-33 and 2^-64 turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import bits_of, fast_two_sum, flip_sign, format_of

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

# floor(2**1280 / (2 pi))
INVERSE_TURN = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f877ac72c4a69cf"
    "ba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603fbcbc462d6829b47db4d9fb3c9f2c26d"
    "d3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580cc11bf1edaeafc33ef0826bd0d87",
    16,
)
LENGTH = 1280
LOW32 = 0xFFFFFFFF
TURN_HIGH, TURN_LOW = 6.283185307179586, 2.4492935982947064e-16


def _window(b: Builder, e: Expr, limbs: int, most: int, skip: int) -> list[Expr]:
    """The first `limbs` limbs (u64 below 2^32) of the fraction of 2^(e - skip) / (2 pi); 0 <= e < most, e: u64."""
    count = (most - 1) // 32 + 1 + limbs
    # entry i holds the bits 32 i .. 32 i + 63 behind the binary point of 2^-skip / (2 pi)
    table = [
        b.const("u64", ((INVERSE_TURN >> skip) >> (LENGTH - 32 * i - 64)) & ((1 << 64) - 1)) for i in range(count)
    ]
    position = b.shr_logical(e, 5)
    bit = 1 << ((most - 1) // 32).bit_length() - 1
    while bit:  # shift the table by each bit of the position, dropping entries nobody can reach any more
        wanted = bit - 1 + limbs
        on = b.ne(position & bit, b.const("u64", 0))
        shifted = [table[i + bit] if i + bit < len(table) else b.const("u64", 0) for i in range(wanted)]
        table = [b.select(on, shifted[i], table[i]) for i in range(min(wanted, len(table)))]
        bit >>= 1
    amount = e & 31
    return [b.shr_logical(b.shl(entry, amount), 32) for entry in table[:limbs]]


def fraction_of_turn(b: Builder, x: Expr) -> tuple[Expr, Expr | None]:
    """|x| / (2 pi) modulo 1 as a fraction of 2^64 (u64), and for f64 the next 64 bits; |x| > 2^16 (f32), 2^39 (f64)."""
    f = format_of(x)
    unsigned = "u32" if f.name == "f32" else "u64"
    raw = b.bitcast(x, unsigned) & ((1 << (f.top)) - 1)
    wide = b.convert(raw, "u64")
    m = (wide & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    least = f.bias + 16 if f.name == "f32" else f.bias + 39  # the exponent field of the least x in question
    e = b.shr_logical(wide, f.mantissa) - least
    # |x| = m 2^(e + least - bias - mantissa), where least - bias - mantissa = -7 (f32), -13 (f64)
    if f.name == "f32":
        f0, f1, f2 = _window(b, e, 3, 112, 7)
        return b.shl(m * f0, 32) + m * f1 + b.shr_logical(m * f2, 32), None
    window = _window(b, e, 6, 985, 13)
    low, high = m & LOW32, b.shr_logical(m, 32)
    a = [low * limb for limb in window[:5]]
    c = [high * limb for limb in window]  # one limb higher
    column = _upper(b, a[4]) + (a[3] & LOW32) + (c[4] & LOW32) + _upper(b, c[5])
    columns = [column]
    for i in (2, 1, 0):
        total = _upper(b, a[i + 1]) + (a[i] & LOW32) + (c[i + 1] & LOW32) + _upper(b, c[i + 2]) + _upper(b, columns[-1])
        columns.append(total)
    d3, d2, d1, d0 = columns
    return b.shl(d0, 32) | (d1 & LOW32), b.shl(d2, 32) | (d3 & LOW32)


def _upper(b: Builder, x: Expr) -> Expr:
    return b.shr_logical(x, 32)


def half_turn_remainder(b: Builder, turn: tuple[Expr, Expr | None], quarter_turn: bool, like: Expr) -> Expr:
    """(-1)^n r where the angle is n pi + r, |r| <= pi/2; NaN if `like`, the original x, is not finite.

    The angle is x, its sign taken from `like`, or with `quarter_turn` |x| + pi/2.
    """
    f = format_of(like)
    top, rest = turn
    if quarter_turn:
        top = top + (1 << 62)
    parity = b.shr_logical(top + (1 << 62), 63)  # of n = round(2 * angle / turn)
    flip = b.shl(b.convert(parity, f.bits), f.top)
    if not quarter_turn:
        flip = flip ^ (bits_of(b, like) & f.sign_bit)
    if rest is None:
        r = signed_angle(b, b.shl(top, 1), None, 0.5)
    else:
        r = signed_angle(b, b.shl(top, 1) | b.shr_logical(rest, 63), b.shl(rest, 1), 0.5)
    invalid = like - like  # 0, or NaN for inf and NaN
    return flip_sign(b, b.convert(r, f.name), flip) + invalid


def quarter_turn_remainder(b: Builder, turn: tuple[Expr, Expr | None], like: Expr) -> tuple[Expr, Expr, Expr]:
    """(r, r_low, n): `like`, whose |like| is `turn` turns, is n pi/2 + r + r_low; only the last bit of n counts.

    |r| <= pi/4; r_low is 0 for f64, where r is as good as its rounding.
    """
    f = format_of(like)
    top, rest = turn
    n = b.convert(b.shr_logical(top + (1 << 61), 62), f.bits)
    sign = bits_of(b, like) & f.sign_bit
    invalid = like - like
    if rest is not None:
        r = signed_angle(b, b.shl(top, 2) | b.shr_logical(rest, 62), b.shl(rest, 2), 0.25)
        return flip_sign(b, r, sign) + invalid, b.const(f.name, 0.0), n
    wide = signed_angle(b, b.shl(top, 2), None, 0.25)
    r = b.convert(wide, f.name)
    r_low = b.convert(b.sub(wide, b.convert(r, "f64"), exact=True), f.name)
    return flip_sign(b, r, sign) + invalid, flip_sign(b, r_low, sign), n


def signed_angle(b: Builder, top: Expr, rest: Expr | None, turns: float) -> Expr:
    """The f64 angle of `turns` turns times the fraction top / 2^64, taken as signed (u64, and the next 64 bits)."""
    high, low = turns * TURN_HIGH * 2.0**-64, turns * TURN_LOW * 2.0**-64
    upper = _whole(b, _upper(b, top) ^ (1 << 31), 2.0**31)  # signed: the upper half less 2^31 after flipping its sign
    value, error = fast_two_sum(b, b.mul(upper, 2.0**32, exact=True), _whole(b, top & LOW32))
    if rest is None:
        return value * high
    error = b.fma(_whole(b, rest & LOW32), 2.0**-64, b.fma(_whole(b, _upper(b, rest)), 2.0**-32, error))
    return b.fma(value, high, b.fma(error, high, value * low))


def _whole(b: Builder, x: Expr, less: float = 0.0) -> Expr:
    """x - less as f64 for u64 x < 2^32: few machines convert vectors of 64-bit integers, so by a float's low bits."""
    return b.sub(b.bitcast(x | 0x4330000000000000, "f64"), 2.0**52 + less, exact=True)
