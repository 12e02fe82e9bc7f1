"""The Hurwitz zeta function by Euler and Maclaurin's formula, and polygamma from it. Computed in f64.

zeta(s, q) = sum_{k < N} (q + k)^-s + w^(1-s) / (s - 1) + w^-s / 2 + sum_j B_2j / (2 j)! s (s + 1) ... w^(1-s-2j)
with w = q + N (DLMF 25.11.5 and 2.10.1). The sum over k is a loop in front of the statement that uses the value.

Largest errors measured (eps, f32 / f64): zeta 0.5 / 1.5, polygamma up to m = 7 1.4 / 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Expr, Lambda, Op, Read, Var

from .exponential import exp
from .gamma import digamma, lgamma
from .logarithm import INF, NAN
from .power import pow

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

STEPS = 10
# B_2j / (2 j)!, j = 1 .. 12: (-1)^(j+1) 2 zeta(2 j) / (2 pi)^(2 j)
BERNOULLI = (
    0.08333333333333333, -0.001388888888888889, 3.306878306878307e-05, -8.267195767195768e-07,
    2.08767569878681e-08, -5.284190138687493e-10, 1.3382536530684679e-11, -3.3896802963225827e-13,
    8.586062056277845e-15, -2.174868698558062e-16, 5.50900282836023e-18, -1.3954464685812523e-19,
)  # fmt: skip


def _zeta(b: Builder, s: Expr, q: Expr) -> Expr:
    """zeta(s, q) for s > 1 in f64; infinite where a term divides by zero, and where q < 0, only for whole s.

    There the terms up to zero are those of zeta functions of positive numbers, with (-1)^s:
    zeta(s, q) = zeta(s, q - floor(q)) + (-1)^s (zeta(s, ceil(q) - q) - zeta(s, 1 - q))
    """
    negative = q < 0.0
    start = b.select(negative, q - b.floor(q), q)
    with b.carried_loop(STEPS, [((b.const("f64", 0.0),), None)], "sequential", name="k") as loop:
        k = b.convert((STEPS - 1) - loop.i, "f64")  # small terms first
        loop.update(loop.var + pow(b, start + k, -s))
    value = loop.result + _rest(b, s, start)
    half = s * 0.5
    sign = b.select(b.eq(b.floor(half), half), b.const("f64", 1.0), -1.0)
    # Half-way between two poles the first two cancel for odd s.
    mirrored = b.fma(sign, _written_out(b, s, b.op("ceil", q) - q), value)
    mirrored = b.fma(-sign, _written_out(b, s, 1.0 - q), mirrored)
    value = b.op("select", negative, mirrored, value, attrs=(RARE,))
    pole = (q <= 0.0) & b.eq(b.floor(q), q)
    return b.select(pole, INF, b.select(negative & b.ne(b.floor(s), s), NAN, value))


def _rest(b: Builder, s: Expr, q: Expr) -> Expr:
    """The sum of all terms after the first ten."""
    w = q + float(STEPS)
    power = pow(b, w, 1.0 - s)
    inverse = 1.0 / w
    square = inverse * inverse
    factor = s * inverse
    tail = factor * BERNOULLI[0]
    for j, c in enumerate(BERNOULLI[1:], 1):
        factor = factor * (s + float(2 * j - 1)) * (s + float(2 * j)) * square
        tail = b.fma(factor, c, tail)
    # terms of the tail grow with s, where the power has vanished: 0 times inf
    return b.select(b.eq(power, 0.0), 0.0, power * (1.0 / (s - 1.0) + (0.5 + tail) * inverse))


def _written_out(b: Builder, s: Expr, q: Expr) -> Expr:
    """zeta(s, q) for q > 0 without a loop, for a branch that is seldom taken."""
    base, exponent = Var("base", "f64"), Var("exponent", "f64")
    power = Lambda("pow", (base, exponent), pow(b, Read(base), Read(exponent)))
    total = b.const("f64", 0.0)
    for k in reversed(range(STEPS)):
        total = total + Op("pow", "f64", (q + float(k), -s), (("function", power),))
    return total + _rest(b, s, q)


def zeta(b: Builder, s: Expr, q: Expr) -> Expr:
    """The Hurwitz zeta function, sum of (q + k)^-s over k >= 0.

    inf at s = 1 and where q is a whole number below 1, NaN for s < 1 and for q < 0 where s is not whole.
    """
    value = b.convert(_zeta(b, b.convert(s, "f64"), b.convert(q, "f64")), s.dtype)
    value = b.select((s < 1.0) | b.ne(s, s) | b.ne(q, q), NAN, value)
    return b.select(b.eq(s, 1.0), INF, value)


def polygamma(b: Builder, m: Expr, x: Expr) -> Expr:
    """The m-th derivative of digamma for whole m >= 0: (-1)^(m+1) m! zeta(m + 1, x); NaN for other m."""
    wide, at = b.convert(m, "f64"), b.convert(x, "f64")
    order = wide + 1.0
    size = exp(b, lgamma(b, order)) * _zeta(b, order, at)
    half = wide * 0.5
    value = b.convert(b.select(b.eq(b.floor(half), half), -size, size), m.dtype)
    value = b.select(b.eq(m, 0.0), digamma(b, x), value)
    return b.select((m < 0.0) | b.ne(b.floor(m), m) | b.eq(m, INF) | b.ne(x, x), NAN, value)
