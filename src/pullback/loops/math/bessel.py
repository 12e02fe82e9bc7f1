"""Exponentially scaled modified Bessel functions: e^-|x| I0(x), e^-|x| I1(x).

Up to 8 a polynomial in x, beyond 1 / sqrt(x) times one in 1 / x (the shape of Abramowitz and Stegun, 9.8.1 to 9.8.4),
both in shifted variables, where powers do not cancel.

Largest errors measured (ulp, f32 / f64): i0e 3.8 / 3.3, i1e 4.0 / 3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import clamp_high, format_of, polynomial, with_sign_of
from ._polynomials import Polynomial
from ._tables import bessel as tables

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

I0E = {"f32": (tables.I0E_SMALL_F32, tables.I0E_LARGE_F32), "f64": (tables.I0E_SMALL_F64, tables.I0E_LARGE_F64)}
I1E = {"f32": (tables.I1E_SMALL_F32, tables.I1E_LARGE_F32), "f64": (tables.I1E_SMALL_F64, tables.I1E_LARGE_F64)}


def _parts(b: Builder, size: Expr, table: tuple[Polynomial, Polynomial]) -> tuple[Expr, Expr]:
    one = b.const(size.dtype, -1.0)
    small = polynomial(b, b.fma(clamp_high(b, size, 8.0), 0.25, one), table[0])
    far = b.select(size > 8.0, size, 8.0)
    large = polynomial(b, b.fma(1.0 / far, 16.0, one), table[1]) / b.sqrt(far)
    return small, large


def bessel_i0e(b: Builder, x: Expr) -> Expr:
    """e^-|x| I0(x), even; 0 at +-inf."""
    size = b.abs(x)
    small, large = _parts(b, size, I0E[format_of(x).name])
    return b.select(size > 8.0, large, small)


def bessel_i1e(b: Builder, x: Expr) -> Expr:
    """e^-|x| I1(x), odd; 0 at +-inf."""
    size = b.abs(x)
    small, large = _parts(b, size, I1E[format_of(x).name])
    return with_sign_of(b, b.select(size > 8.0, large, small * size), x)
