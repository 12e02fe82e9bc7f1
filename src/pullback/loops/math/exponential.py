"""exp, exp2, expm1, logistic by Cody and Waite's reduction: e^x = 2^n e^r, n = round(x / ln 2), |r| <= ln(2) / 2.

n comes from adding a magic number, which leaves n (plus a bias chosen here) in the low mantissa bits of the sum, ready
to be shifted into an exponent. r = x - n ln 2 takes two fma: the first is exact. See Muller, Elementary Functions,
3rd ed., chapters 11.1 and 14. Coefficients are our own (tools/minimax.py).

Largest errors measured (ulp, f32 / f64): exp 0.86 / 0.84, exp2 0.77 / 0.77, expm1 1.25 / 1.39, logistic 1.997 / 1.9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Expr

from ._kit import F32, clamp_high, clamp_low, format_of, polynomial, with_sign_of
from ._tables import exponential as tables

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

EXP = {"f32": tables.EXP_F32, "f64": tables.EXP_F64}
EXP2 = {"f32": tables.EXP2_F32, "f64": tables.EXP2_F64}
# Below: e^x rounds to 0 (a margin under the logarithm of half the least denormal). Above: e^x overflows.
EXP_RANGE = {"f32": (-105.0, 89.0), "f64": (-746.0, 710.0)}
NORMAL = {"f32": -86.9899, "f64": -708.0498}  # from here on n > -bias + 1, and below e^x < 2**(2 - bias)

# Of the larger of x and a number: (an integer whose low bits are n + an offset, n, r).
Reduced = Callable[[float, int], tuple[Expr, Expr, Expr]]


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
    """e^x on all reals; exp(-inf) = 0, exp(inf) = inf, denormal results included; `scales`: by the op scale."""
    f = format_of(x)
    low, high = EXP_RANGE[f.name]

    def reduced(low: float, offset: int) -> tuple[Expr, Expr, Expr]:
        t, n, r = _reduced(b, clamp_high(b, clamp_low(b, x, low), high), offset)
        return b.bitcast(t, f.bits), n, r

    return _scaled(b, x, (low, NORMAL[f.name]), reduced, (1.0, 1.0, *EXP[f.name].coefficients), scales)


def _scaled(
    b: Builder,
    x: Expr,
    denormal: tuple[float, float],
    reduced: Reduced,
    coefficients: Sequence[float],
    scales: bool,
) -> Expr:
    """p(r) 2**n, for x by `reduced`.

    Results are denormal where x lies in the range `denormal`, with some that are hardly larger, and 0 below. Of f32
    results of both kinds are computed alike, in units of 1 or of the least denormal: both are common side by side
    (tails of distributions, masks), and a few instructions take less than branches that nobody can predict. `scales`:
    by the op scale; else with twice p, as 2**n may be too large itself.

    Measured (EPYC Genoa): sums of 2,000 normal densities at 500 points 297 -> 184 us, with AVX2 447 -> 309; exp of a
    million normal numbers 107 -> 115 us, with AVX2 154 -> 178, of these times 100 255 -> 125, with AVX2 380 -> 178.
    """
    f = format_of(x)
    low, normal = denormal
    i, n, r = reduced(low if f is F32 else normal, f.bias - 1)
    y = polynomial(b, r, coefficients if scales else tuple(2 * c for c in coefficients))
    is_small = x < normal
    if f is F32:
        units = f.bias + f.mantissa - 1  # the least denormal is 2**-units
        n = n if scales else i
        n = n + b.select(is_small, b.const(n.dtype, units), 0)
        y = b.scale(y, n) if scales else y * power_of_two(b, n, f.name)
        return b.select(is_small, _small(b, y), y)
    large = b.scale(y, n) if scales else y * power_of_two(b, i, f.name)
    return b.op("select", is_small, _rare(b, x, low, reduced, coefficients), large, attrs=(RARE,))


def _rare(b: Builder, x: Expr, low: float, reduced: Reduced, coefficients: Sequence[float]) -> Expr:
    """p(r) 2**n where that is denormal or hardly larger; 0 for x below `low`, where nothing is computed."""
    f = format_of(x)
    i, _, r = reduced(low, 2 * f.bias + f.mantissa - 1)
    small = _small(b, polynomial(b, r, coefficients) * power_of_two(b, i, f.name))
    return b.op("select", x > low, small, b.const(f.name, 0.0), attrs=(RARE,))


def _small(b: Builder, units: Expr) -> Expr:
    """So many least denormals, less than 2**(mantissa + 1): rounded once, and without a product that underflows.

    Such a product takes Intel's cores 150 cycles. The result is a whole number of least denormals, which is its bits.

    Measured (Sapphire Rapids): softmax of 16 x 256 x 256 under a causal mask of -inf took 1560 us, now 225; sigmoid of
    a million normal numbers times 100, 25 ms, now 0.3; exp of numbers that do not underflow as long as before.
    """
    f = format_of(units)
    if f is F32:
        return b.bitcast(b.op("nearest", units, dtype=f.bits), f.name)
    most = 2.0 ** (f.mantissa + 1)  # subtracted, so that units above half of it, which are whole, stay as they are
    whole = b.add(b.sub(units, most, exact=True), most, exact=True)
    return b.bitcast(b.convert(whole, f.bits), f.name)


def exp2(b: Builder, x: Expr, scales: bool = False) -> Expr:
    """2^x on all reals, exact for integers; denormal results included; `scales`: by the op scale."""
    f = format_of(x)
    low, high = (-151.0, 129.0) if f.name == "f32" else (-1076.0, 1025.0)

    def reduced(low: float, offset: int) -> tuple[Expr, Expr, Expr]:
        magic, clamped = f.magic + offset, clamp_high(b, clamp_low(b, x, low), high)
        t = b.add(clamped, magic, exact=True)
        n = b.sub(t, magic, exact=True)
        return b.bitcast(t, f.bits), n, b.sub(clamped, n, exact=True)

    return _scaled(b, x, (low, 1.75 - f.bias), reduced, (1.0, *EXP2[f.name].coefficients), scales)


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
    return with_sign_of(b, y + y, x)


def logistic(b: Builder, x: Expr, scales: bool = False) -> Expr:
    """1 / (1 + e^-x) without cancellation or overflow, denormal results included; `scales`: by the op scale.

    With e = e^-|x| = s (1 + p), s = 2^n, and q = 1 / (1 + e): q itself, or e q = s (q + p q) where x < 0, which rounds
    less than e / (1 + e) does. There what the quotient lost by its rounding is added to the smaller term.
    """
    f = format_of(x)
    t, n, r = _reduced(b, clamp_low(b, -b.abs(x), NORMAL[f.name]), f.bias)
    p = b.fma(r * r, polynomial(b, r, EXP[f.name]), r)
    s = b.scale(1.0, n) if scales else power_of_two(b, b.bitcast(t, f.bits), f.name)
    d = b.fma(s, p, s + 1.0)
    q = 1.0 / d
    lost = b.fma(-q, d, 1.0) * q
    y = q + b.fma(p, q, lost)
    y = b.select(x < 0.0, b.scale(y, n) if scales else y * s, q)
    low = EXP_RANGE[f.name][0]

    def reduced(low: float, offset: int) -> tuple[Expr, Expr, Expr]:
        t, n, r = _reduced(b, clamp_low(b, x, low), offset)
        return b.bitcast(t, f.bits), n, r

    small = _rare(b, x, low, reduced, (1.0, 1.0, *EXP[f.name].coefficients))
    return b.op("select", x < NORMAL[f.name], small, y, attrs=(RARE,))
