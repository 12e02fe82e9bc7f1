"""tanh, sinh, cosh and their inverses.

sinh and cosh: with |x| = n ln 2 + r, cosh x = C (a + c) + S (a - c) and sinh x = C (a - c) + S (a + c), where
C = cosh r, S = sinh r, a = 2^(n-1), c = 2^(-n-1): no division and no cancellation.

Largest errors measured (ulp, f32 / f64): tanh 1.59 / 1.96, sinh 1.34 / 1.68, cosh 1.93 / 1.47, asinh 1.53 / 1.56,
acosh 1.2 / 1.3, atanh 1.51 / 1.48.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import clamp_high, fast_two_sum, format_of, polynomial, two_sum, with_sign_of
from ._tables import hyperbolic as tables
from .exponential import expm1_scaled, reduce_by_ln2
from .logarithm import log_of_sum

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

COSH = {"f32": tables.COSH_F32, "f64": tables.COSH_F64}
SINH = {"f32": tables.SINH_F32, "f64": tables.SINH_F64}
LARGE = {"f32": 2.0**14, "f64": 2.0**28}  # from here on sqrt(x^2 + 1) = |x| in effect


def tanh(b: Builder, x: Expr) -> Expr:
    """The hyperbolic tangent; tanh(-0) = -0, tanh(+-inf) = +-1.

    With t = expm1(2 |x|): t / (t + 2) = h - h t / (t + 2), h = t / 2, for small |x|, and 1 - 2 / (t + 2) beyond.
    """
    f = format_of(x)
    size = clamp_high(b, b.abs(x), 10.0 if f.name == "f32" else 20.0)  # rounds to 1 from 9.02, 19.07 on
    t = expm1_scaled(b, size + size, f.bias)
    large = t > 2.0
    quotient = b.select(large, 2.0, t) / (t + 2.0)
    first = b.select(large, 1.0, t * 0.5)
    return with_sign_of(b, b.fma(-first, quotient, first), x)


def _parts(b: Builder, size: Expr, less: Expr | int = 0) -> tuple[Expr, Expr, Expr, Expr]:
    """(a + c, a - c, cosh r - 1, sinh r) of size >= 0; a and c are halved, as n reaches 129 (f32), and over 2**less."""
    f = format_of(size)
    i, r = reduce_by_ln2(b, size, f.bias - 2)
    up = b.shl(i - less, f.mantissa)
    down = b.max(b.const(f.bits, (2 * f.bias - 4) << f.mantissa) - b.shl(i, f.mantissa), b.const(f.bits, 0))
    a, c = b.bitcast(up, f.name), b.bitcast(down, f.name)  # c = 2^(-n-2), or 0 where n is large
    z = r * r
    cosh_r = z * polynomial(b, z, COSH[f.name])
    sinh_r = b.fma(r * z, polynomial(b, z, SINH[f.name]), r)
    return a + c, a - c, cosh_r, sinh_r


def _sinh_of(b: Builder, parts: tuple[Expr, Expr, Expr, Expr]) -> Expr:
    plus, minus, cosh_r, sinh_r = parts
    return minus + b.fma(plus, sinh_r, minus * cosh_r)


def _cosh_of(b: Builder, parts: tuple[Expr, Expr, Expr, Expr]) -> Expr:
    plus, minus, cosh_r, sinh_r = parts
    return plus + b.fma(minus, sinh_r, plus * cosh_r)


def _limited(b: Builder, x: Expr) -> Expr:
    """|x|, but no larger than needed to overflow."""
    return clamp_high(b, b.abs(x), 89.5 if x.dtype == "f32" else 710.6)


def sinh(b: Builder, x: Expr) -> Expr:
    """The hyperbolic sine, odd; overflows to +-inf."""
    f = format_of(x)
    size = _limited(b, x)
    y = _sinh_of(b, _parts(b, size))
    tiny = size < 2.0 ** -(f.mantissa // 2 + 2)  # of the least such numbers half would be flushed
    return with_sign_of(b, b.select(tiny, size, y + y), x)


def cosh(b: Builder, x: Expr) -> Expr:
    """The hyperbolic cosine, even; overflows to inf."""
    y = _cosh_of(b, _parts(b, _limited(b, x)))
    return y + y


# Beyond `start`, e^|x| is computed over 2^less, to be multiplied twice by 2^(less / 2): e^limit times the least
# denormal overflows, so a factor below 1 may still bring any smaller exponential back into range.
SCALED = {"f32": (80.0, 195.0, 156), "f64": (700.0, 1460.0, 1080)}


def scaled_sinh_cosh(b: Builder, x: Expr) -> tuple[Expr, Expr, tuple[Expr, Expr]]:
    """(s, c, (k, l)): sinh x = s k l, cosh x = c k l, where products of s and c with sines do not overflow early."""
    f = format_of(x)
    start, limit, less = SCALED[f.name]
    size = clamp_high(b, b.abs(x), limit)
    far = size > start
    parts = _parts(b, size, b.select(far, b.const(f.bits, less), 0))
    k = b.select(far, b.const(f.name, 2.0 ** (less // 2 + 1)), 2.0)
    return with_sign_of(b, _sinh_of(b, parts), x), _cosh_of(b, parts), (k, b.select(far, k * 0.5, 1.0))


def asinh(b: Builder, x: Expr) -> Expr:
    """The inverse hyperbolic sine, odd: log1p(|x| + x^2 / (1 + sqrt(1 + x^2))), and log(2 |x|) for large |x|."""
    f = format_of(x)
    size = b.abs(x)
    large = size > LARGE[f.name]
    square = size * size
    more = square / (b.sqrt(square + 1.0) + 1.0)
    w, lost = two_sum(b, size, more)
    u, lost_too = two_sum(b, b.const(f.name, 1.0), w)
    y = log_of_sum(
        b, b.select(large, size, u), b.select(large, 0.0, lost + lost_too), b.select(large, -1.0, b.const(f.name, 0.0))
    )
    return with_sign_of(b, y, x)


def acosh(b: Builder, x: Expr) -> Expr:
    """The inverse hyperbolic cosine, NaN below 1: log1p(t + sqrt(2 t + t^2)) with t = x - 1; log(2 x) for large x."""
    f = format_of(x)
    large = x > LARGE[f.name]
    t = x - 1.0
    square = b.fma(t, t, t + t)
    root = b.sqrt(square)
    root_low = b.fma(-root, root, square) / b.fma(root, 2.0, b.const(f.name, f.min_normal))  # 0 / tiny at x = 1
    w, lost = fast_two_sum(b, root, t)
    lost = lost + root_low
    u, lost_too = two_sum(b, b.const(f.name, 1.0), w)
    u = b.select(large, x, b.select(x < 1.0, float("nan"), u))
    return log_of_sum(b, u, b.select(large, 0.0, lost + lost_too), b.select(large, -1.0, b.const(f.name, 0.0)))


def atanh(b: Builder, x: Expr) -> Expr:
    """The inverse hyperbolic tangent, odd, +-inf at +-1, NaN beyond: log1p(q) / 2 with q = 2 |x| / (1 - |x|).

    q is corrected for the rounding of the division: 1 / (1 - |x|) = (2 + q) / 2.
    """
    f = format_of(x)
    size = b.abs(x)
    one = b.const(f.name, 1.0)
    d, d_low = fast_two_sum(b, one, -size)
    twice = size + size
    q = twice / d
    rest = b.fma(-q, d_low, b.fma(-q, d, twice))
    u, lost = two_sum(b, one, q)
    lost = b.fma(rest, b.fma(u, 0.5, b.const(f.name, 0.5)), lost)
    return with_sign_of(b, log_of_sum(b, u, lost) * 0.5, x)
