"""exp, exp2, expm1, logistic by Cody and Waite's reduction: e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2) / 2.

n comes from adding a magic number, which leaves n (plus a bias chosen here) in the low mantissa bits of the sum, ready
to be shifted into an exponent. r = x - n ln 2 takes two fma: the first is exact. See Muller, Elementary Functions,
3rd ed., chapters 11.1 and 14. Coefficients are our own (tools/minimax.py).

Largest errors measured (ulp, f32 / f64): exp 0.86 / 0.84, exp2 0.77 / 0.77, expm1 1.25 / 1.39, logistic 1.997 / 1.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import bits_of, clamp_high, clamp_low, format_of, polynomial, with_sign_of
from ._tables import exponential as tables

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

EXP = {"f32": tables.EXP_F32, "f64": tables.EXP_F64}
EXP2 = {"f32": tables.EXP2_F32, "f64": tables.EXP2_F64}
# The least and the largest x whose e^x is a normal number; below, results are 0 (or denormal, by the op scale in a
# thread that does not flush them).
LEAST = {"f32": -87.33654022216797, "f64": -708.3964185322641}
LARGEST = {"f32": 88.72283172607422, "f64": 709.782712893384}


def reduce_by_ln2(b: Builder, x: Expr, offset: int) -> tuple[Expr, Expr]:
    """(i, r): x = n ln 2 + r with |r| <= 0.3466, and i an integer whose low bits are n + offset.

    For |x| < 2**20 ln 2 (f32), 2**50 (f64); the bits of i above the low 9 (f32) or 12 (f64) are zeros and magic.
    """
    t, _, r = _reduced(b, x, offset)
    return b.bitcast(t, format_of(x).bits), r


def _reduced(b: Builder, x: Expr, offset: int) -> tuple[Expr, Expr, Expr]:
    """(a float with the bits i, n, r) of `reduce_by_ln2`."""
    f = format_of(x)
    magic = f.magic + offset
    t = b.fma(x, f.log2e, magic)
    n = t - magic
    r = b.fma(n, -f.ln2[0], x)
    return t, n, b.fma(n, -f.ln2[1], r)


def power_of_two(b: Builder, i: Expr, dtype: str) -> Expr:
    """2**(i - bias), where i (an integer, only its low bits count) is in [1, 2 bias]."""
    return b.bitcast(b.shl(i, 23 if dtype == "f32" else 52), dtype)


def scale_twice(b: Builder, p: Expr, i: Expr) -> Expr:
    """p * 2**(i - 2 bias) in two steps, rounded once in effect: right for denormal results and for overflow."""
    half = b.shr_logical(i, 1)
    return p * power_of_two(b, half, p.dtype) * power_of_two(b, i - half, p.dtype)


def exp(b: Builder, x: Expr, scales: bool = False) -> Expr:
    """e^x on all reals; exp(-inf) = 0, exp(inf) = inf; `scales`: by the op scale."""
    f = format_of(x)
    if scales:
        x = clamp_high(b, clamp_low(b, x, LEAST[f.name] - f.mantissa), LARGEST[f.name] + 1)
    t, n, r = _reduced(b, x, 0)
    return _scaled(b, x, (t, n, r), (1.0, 1.0, *EXP[f.name].coefficients), LEAST[f.name], LARGEST[f.name], scales)


def exp2(b: Builder, x: Expr, scales: bool = False) -> Expr:
    """2^x on all reals, exact for integers; exp2(-inf) = 0, exp2(inf) = inf; `scales`: by the op scale."""
    f = format_of(x)
    least, largest = 1.0 - f.bias, f.bias + 1 - 2.0 ** (f.bias.bit_length() - 1 - f.mantissa)
    if scales:
        x = clamp_high(b, clamp_low(b, x, least - f.mantissa - 2), largest + 1)
    t = b.add(x, f.magic, exact=True)
    n = b.sub(t, f.magic, exact=True)
    r = b.sub(x, n, exact=True)
    return _scaled(b, x, (t, n, r), (1.0, *EXP2[f.name].coefficients), least, largest, scales)


def _scaled(
    b: Builder,
    x: Expr,
    reduced: tuple[Expr, Expr, Expr],
    coefficients: Sequence[float],
    least: float,
    largest: float,
    scales: bool,
) -> Expr:
    """p(r) 2**n of `reduced` (a float whose low bits are n, n, r); 0 for x < `least`, infinity for x > `largest`.

    `scales`: by the op scale, of a clamped x, where denormal results are flushed by the machine. Else n is added to the
    exponent of p(r), where 2**n may itself be too large or too small.
    """
    f = format_of(x)
    t, n, r = reduced
    y = polynomial(b, r, coefficients)
    if scales:
        return b.scale(y, n)
    y = b.bitcast(bits_of(b, y) + b.shl(b.bitcast(t, f.bits), f.mantissa), f.name)
    y = b.select(x <= largest, y, x * f.max)  # infinity, or NaN, whose bits were added to
    return b.select(x < least, 0.0, y)


def expm1_scaled(b: Builder, x: Expr, offset: int) -> Expr:
    """2**(offset - bias) (e^x - 1), where the scale makes room for n = bias + 1; |x| small enough not to overflow.

    e^x - 1 = ((s - 1) + s r) + s (e^r - 1 - r) with s = 2^n: the first sum loses half an ulp at most.
    """
    f = format_of(x)
    i, r = reduce_by_ln2(b, x, offset)
    s = power_of_two(b, i, f.name)
    y = b.fma(s, r, s - 2.0 ** (offset - f.bias))
    return b.fma(s, r * r * polynomial(b, r, EXP[f.name]), y)


def expm1(b: Builder, x: Expr) -> Expr:
    """e^x - 1, accurate near 0; expm1(-0) = -0, expm1(-inf) = -1, expm1(inf) = inf."""
    f = format_of(x)
    low, high = (-18.0, 89.0) if f.name == "f32" else (-38.0, 710.0)
    y = expm1_scaled(b, clamp_high(b, clamp_low(b, x, low), high), f.bias - 1)
    tiny = b.abs(x) < 2.0 ** -(f.mantissa + 2)  # of such x half might be flushed
    return with_sign_of(b, b.select(tiny, b.abs(x), y + y), x)


def logistic(b: Builder, x: Expr, scales: bool = False) -> Expr:
    """1 / (1 + e^-x) without cancellation or overflow; `scales`: by the op scale.

    With e = e^-|x| = s (1 + p), s = 2^n, and q = 1 / (1 + e): q itself, or e q = s (q + p q) where x < 0, which rounds
    less than e / (1 + e) does. There what the quotient lost by its rounding is added to the smaller term.
    """
    f = format_of(x)
    least = LEAST[f.name]
    t, n, r = _reduced(b, clamp_low(b, -b.abs(x), least - f.mantissa if scales else least), f.bias)
    p = b.fma(r * r, polynomial(b, r, EXP[f.name]), r)
    s = b.scale(1.0, n) if scales else power_of_two(b, b.bitcast(t, f.bits), f.name)
    d = b.fma(s, p, s + 1.0)
    q = 1.0 / d
    lost = b.fma(-q, d, 1.0) * q
    y = q + b.fma(p, q, lost)
    if scales:
        return b.select(x < 0.0, b.scale(y, n), q)
    return b.select(x < least, 0.0, b.select(x < 0.0, y * s, q))
