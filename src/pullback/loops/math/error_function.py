"""erf, erfc, erf_inv.

erf: x (1 + p(x^2)) for small |x|, 1 - e^L(|x|) beyond, L a polynomial for log(erfc). erfc: e^(-x^2) g(t) / (1 + 2 x)
with t = (x - K) / (x + K), as proposed by Shepherd and Laframboise, Math. Comp. 36 (1981). erf_inv: x times a function
of w = -log(1 - x^2) or its root, as in M. Giles, Approximating the erfinv function, GPU Computing Gems (2011).

Largest errors measured (ulp, f32 / f64): erf 0.9 / 0.8, erfc 1.93 / 1.52, erf_inv 1.8 / 1.7; of f32 by
pieces erf 1.03, erfc 1.63.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr

from ._kit import by_pieces, clamp_high, format_of, polynomial, two_product, with_sign_of
from ._tables import error_function as tables
from .exponential import EXP, power_of_two, reduce_by_ln2
from .logarithm import INF, NAN, log_of_split, split_exponent

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

    from ._polynomials import Pieces

ERF = {"f32": tables.ERF_F32, "f64": tables.ERF_F64}
LOG_ERFC = {"f32": (tables.LOG_ERFC_F32, 4.0), "f64": (tables.LOG_ERFC_F64, 6.0)}  # erf rounds to 1 from there on
ERFC = {"f32": tables.ERFC_F32, "f64": tables.ERFC_F64}
K = 3.75


def _erf_near(b: Builder, x: Expr) -> Expr:
    """erf(x) for |x| <= 0.9."""
    return b.fma(x, polynomial(b, x * x, ERF[x.dtype]), x)


def erf(b: Builder, x: Expr) -> Expr:
    """The error function, odd, +-1 at +-inf."""
    f = format_of(x)
    table, high = LOG_ERFC[f.name]
    size = b.abs(x)
    i, r = reduce_by_ln2(b, polynomial(b, clamp_high(b, size, high), table), f.bias)
    p = b.fma(r * r, polynomial(b, r, EXP[f.name]), r) + 1.0
    far = b.fma(-p, power_of_two(b, i, f.name), b.const(f.name, 1.0))
    return b.select(size > 0.9, with_sign_of(b, far, x), _erf_near(b, x))


def erfc(b: Builder, x: Expr, pieces: Pieces | None = None) -> Expr:
    """1 - erf(x) without cancellation, down to denormal results; 2 - erfc(-x) for x < -0.9, or 0 with `pieces`.

    `pieces` are of g(x) = e^(x^2) erfc(x). Measured (EPYC Genoa): 20,000 elements 14 -> 10 us, with AVX2
    19 -> 12; 1.63 ulp.
    """
    f = format_of(x)
    size = clamp_high(b, b.abs(x), 28.0 if f.name == "f64" else pieces.limit if pieces else 11.0)
    square, square_low = two_product(b, size, size)
    i, r = reduce_by_ln2(b, -square, 2 * f.bias)
    r = r - square_low
    p = b.fma(r * r, polynomial(b, r, EXP[f.name]), r)  # e^(-x^2) = 2^n (1 + p)
    half = b.shr_logical(i, 1)
    if pieces is not None:
        g = by_pieces(b, size, pieces)
        y = b.fma(g, p, g) * power_of_two(b, half, f.name) * power_of_two(b, i - half, f.name)
        return b.select(x < 0.0, 2.0 - y, y)
    g = polynomial(b, (size - K) / (size + K), ERFC[f.name])
    # g (1 + p) / (1 + 2 x), where what the numerator and the denominator lose by rounding is put back
    above, below = b.fma(g, p, g), b.fma(size, 2.0, b.const(f.name, 1.0))
    above_low, below_low = b.fma(g, p, g - above), b.fma(size, 2.0, 1.0 - below)
    inverse = 1.0 / below
    y = above * inverse
    y = b.fma(b.fma(-y, below, above) + b.fma(-y, below_low, above_low), inverse, y)
    y = y * power_of_two(b, half, f.name) * power_of_two(b, i - half, f.name)
    near = (x < 0.5) & (x > -0.9)
    return b.select(near, 1.0 - _erf_near(b, x), b.select(x < 0.0, 2.0 - y, y))


def erf_inv(b: Builder, x: Expr) -> Expr:
    """The inverse of erf on [-1, 1], odd, +-inf at +-1, NaN outside."""
    f = format_of(x)
    rest = b.fma(-x, x, b.const(f.name, 1.0))  # 1 - x^2, rounded once
    k, m, _ = split_exponent(b, rest)
    w = -log_of_split(b, k, m - 1.0)
    s = b.sqrt(w)
    if f.name == "f32":
        near = polynomial(b, w, tables.ERF_INV_NEAR_F32)
        ratio = b.select(w < 5.0, near, polynomial(b, s, tables.ERF_INV_FAR_F32))
    else:
        near = polynomial(b, w, tables.ERF_INV_NEAR_F64)
        far = polynomial(b, s, tables.ERF_INV_FAR_F64)
        end = polynomial(b, s, tables.ERF_INV_END_F64)
        ratio = b.select(w < 4.0, near, b.select(s < 3.3, far, end))
    edge = b.select(b.eq(rest, 0.0), with_sign_of(b, b.const(f.name, INF), x), NAN)
    return b.select(rest > 0.0, x * ratio, edge)
