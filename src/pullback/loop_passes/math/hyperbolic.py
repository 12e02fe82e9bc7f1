"""tanh, sinh, cosh and their inverses.

sinh and cosh: with |x| = n ln 2 + r, cosh x = C (a + c) + S (a - c) and sinh x = C (a - c) + S (a + c), where
C = cosh r, S = sinh r, a = 2^(n-1), c = 2^(-n-1): no division and no cancellation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...loop_ir.ir import Expr
from ._kit import clamp_high, format_of, polynomial, with_sign_of
from ._tables import hyperbolic as tables
from .exponential import expm1_scaled, reduce_by_ln2

if TYPE_CHECKING:
    from ...loop_ir.build import Builder

COSH = {"f32": tables.COSH_F32, "f64": tables.COSH_F64}
SINH = {"f32": tables.SINH_F32, "f64": tables.SINH_F64}


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


def _parts(b: Builder, x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """(a + c, a - c, cosh r - 1, sinh r), the first two halved: n reaches 129 (f32), where 2^(n-1) is no number."""
    f = format_of(x)
    size = clamp_high(b, b.abs(x), 89.5 if f.name == "f32" else 710.6)
    i, r = reduce_by_ln2(b, size, f.bias - 2)
    up = b.shl(i, f.mantissa)
    down = b.max(b.const(f.bits, (2 * f.bias - 4) << f.mantissa) - up, b.const(f.bits, 0))  # 2^(-n-2), 0 for large n
    a, c = b.bitcast(up, f.name), b.bitcast(down, f.name)
    z = r * r
    cosh_r = z * polynomial(b, z, COSH[f.name])
    sinh_r = b.fma(r * z, polynomial(b, z, SINH[f.name]), r)
    return a + c, a - c, cosh_r, sinh_r


def sinh(b: Builder, x: Expr) -> Expr:
    """The hyperbolic sine, odd; overflows to +-inf."""
    plus, minus, cosh_r, sinh_r = _parts(b, x)
    y = minus + b.fma(plus, sinh_r, minus * cosh_r)
    return with_sign_of(b, y + y, x)


def cosh(b: Builder, x: Expr) -> Expr:
    """The hyperbolic cosine, even; overflows to inf."""
    plus, minus, cosh_r, sinh_r = _parts(b, x)
    y = plus + b.fma(minus, sinh_r, plus * cosh_r)
    return y + y
