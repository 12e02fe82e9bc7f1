"""log, log1p: x = 2^k m with m in [sqrt(1/2), sqrt(2)), log x = k ln 2 + log m.

f32: log(1 + f) = f - f^2/2 + f^3 p(f) with f = m - 1. f64: s = f / (2 + f), log(1 + f) = 2 atanh(s), where the
leading terms are rearranged so that f enters unrounded: f - (f^2/2 - s (f^2/2 + s^2 q(s^2))). See Muller, Elementary
Functions, 3rd ed., 11.4; ln 2 is split in two.

Largest errors measured (ulp, f32 / f64): log 0.89 / 0.76, log1p 1.39 / 0.98.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import bits_of, format_of, polynomial, with_sign_of
from ._tables import logarithm as tables

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

SQRT_HALF_BITS = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
INF = float("inf")
NAN = float("nan")


def split_exponent(b: Builder, x: Expr, extra: Expr | None = None) -> tuple[Expr, Expr, Expr]:
    """(k, m, e): x = 2^k m, m in [sqrt(1/2), sqrt(2)), for normal x > 0; k as a float, e the integer k + bias.

    `extra` (a float, 0 or small) is subtracted from k.
    """
    f = format_of(x)
    root = SQRT_HALF_BITS[f.name]
    one = f.bias << f.mantissa
    i = bits_of(b, x) + (one - root)  # the exponent field steps where m passes sqrt(1/2) * 2
    e = b.shr_logical(i, f.mantissa)
    m = b.bitcast((i & ((1 << f.mantissa) - 1)) + root, f.name)
    magic_bits = {"f32": 0x4B400000, "f64": 0x4338000000000000}[f.name]
    k = b.bitcast(e | magic_bits, f.name)
    return k - (f.magic + f.bias if extra is None else extra), m, e


def log_of_split(b: Builder, k: Expr, g: Expr) -> Expr:
    """k ln 2 + log(1 + g) for g in [sqrt(1/2) - 1, sqrt(2) - 1]."""
    f = format_of(g)
    g2 = g * g
    if f.name == "f32":
        p = polynomial(b, g, (-0.5, *tables.LOG_F32.coefficients))
        y = b.fma(g2, p, b.fma(k, f.ln2[1], g))
        return b.fma(k, f.ln2[0], y)
    s = g / (g + 2.0)
    z = s * s
    half = g2 * 0.5
    inner = b.fma(s, b.fma(z, polynomial(b, z, tables.LOG_F64), half), k * f.ln2[1])
    return b.fma(k, f.ln2[0], g - (half - inner))


def log(b: Builder, x: Expr) -> Expr:
    """The natural logarithm; log(0) = -inf, of negative numbers NaN, log(inf) = inf; denormal arguments included."""
    f = format_of(x)
    small = x < f.min_normal
    scaled = b.select(small, x * 2.0 ** (f.mantissa + 1), x)
    bias = b.const(f.name, f.magic + f.bias)
    k, m, _ = split_exponent(b, scaled, b.select(small, f.magic + f.bias + f.mantissa + 1, bias))
    return log_edges(b, x, log_of_split(b, k, m - 1.0))


def log_edges(b: Builder, x: Expr, y: Expr) -> Expr:
    """y = log(x) corrected where x is not a positive finite number."""
    above = b.select(x < INF, y, x)
    return b.select(x > 0.0, above, b.select(b.eq(x, 0.0), b.const(x.dtype, -INF), NAN))


def log1p(b: Builder, x: Expr) -> Expr:
    """log(1 + x), accurate near 0; log1p(-1) = -inf, below NaN, log1p(-0) = -0."""
    one = b.const(x.dtype, 1.0)
    u = b.add(x, one, exact=True)
    rest = b.sub(u, one, exact=True)  # u + lost = 1 + x exactly
    lost = b.add(b.sub(one, b.sub(u, rest, exact=True), exact=True), b.sub(x, rest, exact=True), exact=True)
    return with_sign_of(b, log_of_sum(b, u, lost), x)


def log_of_sum(b: Builder, u: Expr, lost: Expr, extra: Expr | None = None) -> Expr:
    """log(u + lost) - extra ln 2 for |lost| <= ulp(u); u = 0, negative, infinite or NaN as in log; no denormal u."""
    f = format_of(u)
    k, m, e = split_exponent(b, u)
    if extra is not None:
        k = k - extra
    negated = b.max(b.const(f.bits, 2 * f.bias) - e, 0)  # for the largest k, where `lost` does not matter, 0
    scale = b.bitcast(b.shl(negated, f.mantissa), f.name)  # 2^-k
    return log_edges(b, u, log_of_split(b, k, b.fma(lost, scale, m - 1.0)))
