"""sin, cos, tan and their inverses.

sin and cos reduce by multiples of pi to |r| <= pi/2, where one odd polynomial serves both: sin(n pi + r) = (-1)^n
sin r, and cos x = sin(x + pi/2). Up to a bound on |x|, r = x - n pi by Cody and Waite with three fma; beyond it by
Payne and Hanek with integers (see _reduction.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...loop_ir.ir import Expr
from ._kit import RARE, flip_sign, format_of, polynomial
from ._reduction import fraction_of_turn, half_turn_remainder
from ._tables import trigonometric as tables

if TYPE_CHECKING:
    from ...loop_ir.build import Builder

SIN = {"f32": tables.SIN_F32, "f64": tables.SIN_F64}
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
    """(-1)^n sin(r), with r and n found anew where |x| is large."""
    size = b.abs(x)
    hard = size > EASY[x.dtype]
    hard_r, hard_odd = half_turn_remainder(b, fraction_of_turn(b, x), quarter_turn=cosine, like=x)
    r = b.op("select", hard, hard_r, r, attrs=RARE)
    odd = b.op("select", hard, hard_odd, odd, attrs=RARE)
    z = r * r
    # The lowest coefficient is +0, not nothing: z = 0 must give +0 here for sin(-0) to be -0.
    y = b.fma(r, polynomial(b, z, (0.0, *SIN[x.dtype].coefficients)), r)
    return flip_sign(b, y, odd)
