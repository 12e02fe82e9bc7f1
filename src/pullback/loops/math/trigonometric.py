"""sin, cos, tan.

sin and cos reduce by multiples of pi to |r| <= pi/2, where one odd polynomial serves both: sin(n pi + r) = (-1)^n
sin r, and cos x = sin(x + pi/2). Up to a bound on |x|, r = x - n pi by Cody and Waite with three fma; beyond it by
Payne and Hanek with integers (see _reduction.py), in a branch that is jumped over while no lane needs it. The tangent
reduces by multiples of pi/2.

Largest errors measured (ulp, f32 / f64), huge arguments included: sin 1.82 / 1.62, cos 1.76 / 1.72, tan 1.2 / 1.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Expr

from ._kit import fast_two_sum, flip_sign, format_of, polynomial, two_product, two_sum
from ._reduction import fraction_of_turn, half_turn_remainder, quarter_turn_remainder
from ._tables import trigonometric as tables

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

SIN = {"f32": tables.SIN_F32, "f64": tables.SIN_F64}
TAN = {"f32": tables.TAN_F32, "f64": tables.TAN_F64}
INV_PI = {"f32": 0.31830987334251404, "f64": 0.3183098861837907}
# The largest |x| that three fma reduce: n must be right to 0.01, and n pi to 1 ulp of the least remainder.
EASY = {"f32": 3e5, "f64": 2.0**40}


def _remove_multiples_of_pi(b: Builder, x: Expr, n: Expr) -> Expr:
    for part in format_of(x).pi:
        x = b.fma(n, -part, x)
    return x


def sin(b: Builder, x: Expr) -> Expr:
    """The sine, for arguments of any size; sin(-0) = -0, sin(+-inf) = NaN."""
    f = format_of(x)
    t = b.fma(x, INV_PI[f.name], f.magic)
    r = _remove_multiples_of_pi(b, x, t - f.magic)
    odd = b.shl(b.bitcast(t, f.bits), f.top)
    return _finish(b, x, r, odd, cosine=False)


def cos(b: Builder, x: Expr) -> Expr:
    """The cosine, for arguments of any size; cos(+-inf) = NaN."""
    f = format_of(x)
    # x = (n - 1/2) pi + r, n = round(x / pi + 1/2): cos x = sin(n pi + r)
    t = b.add(b.fma(x, INV_PI[f.name], 0.5), f.magic, exact=True)
    n = b.sub(t, f.magic, exact=True)
    r = _remove_multiples_of_pi(b, x, n - 0.5)
    odd = b.shl(b.bitcast(t, f.bits), f.top)
    return _finish(b, x, r, odd, cosine=True)


def _finish(b: Builder, x: Expr, r: Expr, odd: Expr, cosine: bool) -> Expr:
    """(-1)^n sin(r) = sin((-1)^n r), the argument found anew where |x| is large."""
    hard_r = half_turn_remainder(b, fraction_of_turn(b, x), quarter_turn=cosine, like=x)
    r = b.op("select", b.abs(x) > EASY[x.dtype], hard_r, flip_sign(b, r, odd), attrs=(RARE,))
    # The lowest coefficient is +0, not nothing: z = 0 must give +0 here for sin(-0) to be -0.
    return b.fma(r, polynomial(b, r * r, (0.0, *SIN[x.dtype].coefficients)), r)


def tan(b: Builder, x: Expr) -> Expr:
    """The tangent, for arguments of any size; tan(-0) = -0, tan(+-inf) = NaN.

    x = n pi/2 + r + r_low, tan(r + r_low) = t + t_low, and x has t or -1 / (t + t_low): near pi/4 and in the quotient
    the low parts are worth one ulp each.
    """
    f = format_of(x)
    rounded = b.fma(x, 2 * INV_PI[f.name], f.magic)
    n = rounded - f.magic
    first = b.fma(n, -f.pi[0] / 2, x)
    p, p_low = two_product(b, n, b.const(f.name, f.pi[1] / 2))
    rest, rest_low = two_sum(b, first, -p)
    r, r_low = two_sum(b, rest, b.fma(n, -f.pi[2] / 2, b.sub(rest_low, p_low, exact=True)))
    hard = b.abs(x) > EASY[f.name] / 2
    hard_r, hard_low, hard_odd = quarter_turn_remainder(b, fraction_of_turn(b, x), x)
    r = b.op("select", hard, hard_r, r, attrs=(RARE,))
    r_low = b.op("select", hard, hard_low, r_low, attrs=(RARE,))
    odd = b.ne(b.op("select", hard, hard_odd, b.bitcast(rounded, f.bits), attrs=(RARE,)) & 1, 0)
    z = r * r
    cubic = r * polynomial(b, z, (0.0, *TAN[f.name].coefficients))
    rough = r + cubic
    t, t_low = fast_two_sum(b, r, b.fma(r_low, b.fma(rough, rough, b.const(f.name, 1.0)), cubic))
    inverse = -1.0 / t
    residue = b.fma(inverse, t_low, b.fma(inverse, t, b.const(f.name, 1.0)))
    corrected = b.fma(inverse, residue, inverse)
    return b.select(b.eq(x, 0.0), x, b.select(odd, corrected, t))


def pi_over_tan_pi(b: Builder, f: Expr) -> Expr:
    """pi / tan(pi f) for |f| <= 1/2: by tan on [0, pi/4], or by its reciprocal on the other half."""
    pi = format_of(f).pi[0]
    size = b.abs(f)
    swap = size > 0.25
    r = b.select(swap, 0.5 - size, size) * pi
    t = b.fma(r, polynomial(b, r * r, (0.0, *TAN[f.dtype].coefficients)), r)
    t = t * b.select(f < 0.0, b.const(f.dtype, -1.0), 1.0)
    return b.select(swap, t * pi, pi / t)
