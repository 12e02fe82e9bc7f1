"""lgamma and digamma.

lgamma: a polynomial on [1.25, 2.5) reaches [-0.5, 3.5) by one or two steps of Gamma(a + 1) = a Gamma(a), whose
factors are collected under one logarithm; Stirling's formula with a fitted remainder above; reflection below -1/2.
digamma: eight steps of the recurrence as one quotient of polynomials, then the asymptotic expansion; reflection below
1/2; around its positive zero a polynomial times the distance from it. See
Abramowitz and Stegun, 6.1.17, 6.1.40, 6.3.5, 6.3.7, 6.3.18. Coefficients are our own (tools/minimax.py).

Largest errors measured for x > 0 (ulp, f32 / f64): lgamma 2.5 / 2.1, digamma 9.6 / 6.7 (just above 3; 4 elsewhere).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import format_of, polynomial
from ._tables import gamma as tables
from .inverse_trigonometric import HALF_PI
from .logarithm import INF, NAN, log
from .trigonometric import SIN, pi_over_tan_pi

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

LGAMMA = {"f32": tables.LGAMMA_F32, "f64": tables.LGAMMA_F64}
STIRLING = {"f32": tables.STIRLING_F32, "f64": tables.STIRLING_F64}
DIGAMMA = {"f32": tables.DIGAMMA_F32, "f64": tables.DIGAMMA_F64}
LOG_PI = 1.1447298858494002
# log(2 pi) / 2 - 1/2
STIRLING_CONSTANT = 0.4189385332046727
STEPS = 8  # of the recurrence of digamma
# The positive zero of digamma in two parts
ZERO = {"f32": (1.4616321325302124, 1.2438149938918909e-08), "f64": (1.4616321449683622, 9.549995429965697e-17)}
ROOT = {"f32": tables.DIGAMMA_ROOT_F32, "f64": tables.DIGAMMA_ROOT_F64}


def lgamma(b: Builder, x: Expr) -> Expr:
    """log |Gamma(x)|; inf at 0, the negative integers and +-inf.

    Relative error a few ulp for x > 0; below, absolute, as the zeros between the poles are not resolved.
    """
    f = format_of(x)
    zero, one = b.const(f.name, 0.0), b.const(f.name, 1.0)
    reflect = x < -0.5
    a = b.select(reflect, -x, x)
    tiny, up, core, large = a < 0.5, a < 1.25, a < 2.5, a >= 3.5
    # |Gamma(a)| = Gamma(2 + h) * factor**+-1
    h = b.select(tiny, a, b.select(up, a - 1.0, b.select(core, a - 2.0, a - 3.0)))
    factor = b.select(tiny, b.abs(b.fma(a, a, a)), b.select(up, a, b.select(core, one, a - 1.0)))
    logarithm = log(b, b.select(large, a, factor))
    near = b.fma(h, polynomial(b, h, LGAMMA[f.name]), b.select(up, -logarithm, logarithm))
    inverse = 1.0 / a
    tail = b.fma(inverse, polynomial(b, inverse * inverse, STIRLING[f.name]), b.const(f.name, STIRLING_CONSTANT))
    far = b.fma(a - 0.5, logarithm - 1.0, tail)
    far = b.select(a < INF, far, a)
    positive = b.select(large, far, near)
    # lgamma(-a) = log(pi / (a |sin(pi a)|)) - lgamma(a)
    r = (a - b.round_even(a)) * (2 * HALF_PI[f.name][0])
    sine = b.fma(r, polynomial(b, r * r, (0.0, *SIN[f.name].coefficients)), r)
    mirrored = (LOG_PI - log(b, a * b.abs(sine))) - positive
    mirrored = b.select(b.eq(sine, 0.0) | b.eq(a, INF), b.const(f.name, INF), mirrored)
    return b.select(reflect, mirrored, b.select(b.eq(x, zero), INF, positive))


def _rising_factorial() -> list[int]:
    """Coefficients of y (y + 1) ... (y + STEPS - 1), lowest power first."""
    product = [1]
    for j in range(STEPS):
        product = [j * c + d for c, d in zip([*product, 0], [0, *product], strict=True)]
    return product


def digamma(b: Builder, x: Expr) -> Expr:
    """The derivative of log Gamma; -inf at +0, +inf at -0, NaN at the negative integers and at -inf.

    Relative error a few ulp for x > 0; near the zeros between the poles, absolute.
    """
    f = format_of(x)
    reflect = x < 0.5
    y = b.select(reflect, 1.0 - x, x)
    # [1/2, 3): one step, up or down, into [1, 2)
    first, second, core = y < 1.0, y < 2.0, y < 3.0
    v = b.select(first, y + 1.0, b.select(second, y, y - 1.0))
    distance = (v - ZERO[f.name][0]) - ZERO[f.name][1]
    near = distance * polynomial(b, v, ROOT[f.name])
    near_top = b.select(first, -1.0, b.select(second, b.const(f.name, 0.0), 1.0))
    near_bottom = b.select(first, y, b.select(second, b.const(f.name, 1.0), y - 1.0))
    # up to STEPS + 1/2: all steps at once, 1/y + ... + 1/(y + STEPS - 1) = product' / product
    product = [float(c) for c in _rising_factorial()]
    slope = [k * c for k, c in enumerate(product)][1:]
    step = y < STEPS + 0.5
    small = b.select(step, y, 1.0)
    top = b.select(core, near_top, -polynomial(b, small, slope))
    bottom = b.select(core, near_bottom, polynomial(b, small, product))
    z = b.select(step, y + float(STEPS), y)
    inverse = 1.0 / z
    u = inverse * inverse
    far = log(b, z) - b.fma(u, polynomial(b, u, DIGAMMA[f.name]), inverse * 0.5)
    value = b.select(step, b.select(core, near, far) + top / bottom, far)
    # digamma(x) = digamma(1 - x) - pi / tan(pi x)
    r = x - b.round_even(x)
    mirrored = value - pi_over_tan_pi(b, r)
    mirrored = b.select(b.eq(r, 0.0), b.select(b.eq(x, 0.0), -1.0 / x, NAN), mirrored)
    mirrored = b.select(b.eq(x, -INF), NAN, mirrored)
    return b.select(reflect, mirrored, value)
