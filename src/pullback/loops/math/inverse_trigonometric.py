"""atan, atan2, asin, acos: odd polynomials on a core interval, reached by arc identities with pi/2 in two parts.

Largest errors measured (ulp, f32 / f64): atan 1.26 / 1.52, atan2 1.39 / 1.43, asin 1.88 / 1.86, acos 1.07 / 1.10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import bits_of, flip_sign, format_of, polynomial, with_sign_of
from ._tables import trigonometric as tables

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

ATAN = {"f32": tables.ATAN_F32, "f64": tables.ATAN_F64}
ASIN = {"f32": tables.ASIN_F32, "f64": tables.ASIN_F64}
# pi / 2 in two parts, rounded to nearest
HALF_PI = {"f32": (1.5707963705062866, -4.371138828673793e-08), "f64": (1.5707963267948966, 6.123233995736766e-17)}


def _atan_core(b: Builder, t: Expr) -> Expr:
    """atan(t) for 0 <= t <= 1."""
    return b.fma(t, polynomial(b, t * t, (0.0, *ATAN[t.dtype].coefficients)), t)


def atan(b: Builder, x: Expr) -> Expr:
    """The arc tangent, odd; atan(+-inf) = +-pi/2. Above 1: pi/2 - atan(1/x)."""
    size = b.abs(x)
    over = size > 1.0
    t = b.select(over, 1.0 / size, size)
    y = _atan_core(b, t)
    high, low = HALF_PI[x.dtype]
    return with_sign_of(b, b.select(over, high - (y - low), y), x)


def atan2(b: Builder, y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y) in [-pi, pi], with the C99 values at zeros and infinities."""
    f = format_of(x)
    up, side = b.abs(y), b.abs(x)
    steep = up > side
    t = b.select(steep, side, up) / b.select(steep, up, side)
    t = b.select(b.eq(up, side), b.select(up > 0.0, b.const(f.name, 1.0), 0.0), t)  # 0/0 and inf/inf
    angle = _atan_core(b, t)
    left = b.convert(b.shr_logical(b.bitcast(x, "u" + f.bits[1:]), f.top), "bool")
    high, low = (b.select(steep, part, b.select(left, b.const(f.name, 2 * part), 0.0)) for part in HALF_PI[f.name])
    angle = b.select(b.ne(steep, left), -angle, angle)
    # |y| = |x| = 0 or an underflowing quotient: angle and low may cancel only where both are zero
    return with_sign_of(b, b.abs(high + (angle + low)), y)


def _asin_core(b: Builder, t: Expr, z: Expr) -> Expr:
    """asin(t) / t - 1 for 0 <= t <= 1/2, z = t^2."""
    return polynomial(b, z, (0.0, *ASIN[t.dtype].coefficients))


def asin(b: Builder, x: Expr) -> Expr:
    """The arc sine, odd, NaN for |x| > 1. Above 1/2: pi/2 - 2 asin(sqrt((1 - |x|) / 2))."""
    size = b.abs(x)
    large = size > 0.5
    z = b.select(large, 0.5 - size * 0.5, size * size)
    t = b.select(large, b.sqrt(z), size)
    more = _asin_core(b, t, z)
    high, low = HALF_PI[x.dtype]
    twice = t + t
    beyond = (high - twice) - b.fma(twice, more, b.const(x.dtype, -low))
    return with_sign_of(b, b.select(large, beyond, b.fma(t, more, t)), x)


def acos(b: Builder, x: Expr) -> Expr:
    """The arc cosine, NaN for |x| > 1. Beyond 1/2: 2 asin(sqrt((1 - |x|) / 2)), or pi minus that."""
    f = format_of(x)
    size = b.abs(x)
    large = size > 0.5
    z = b.select(large, 0.5 - size * 0.5, size * size)
    t = b.select(large, b.sqrt(z), size)
    y = b.fma(t, _asin_core(b, t, z), t)
    y = b.select(large, y + y, y)
    sign = bits_of(b, x) & f.sign_bit
    negative = b.lt(x, 0.0)
    high, low = HALF_PI[f.name]
    # x > 1/2: y; x < -1/2: pi - y; between: pi/2 - y with the sign of x
    base_high = b.select(large, b.select(negative, b.const(f.name, 2 * high), 0.0), high)
    base_low = b.select(large, b.select(negative, b.const(f.name, 2 * low), 0.0), low)
    y = flip_sign(b, y, sign)
    return b.select(large & b.not_(negative), y, base_high - (b.select(large, -y, y) - base_low))
