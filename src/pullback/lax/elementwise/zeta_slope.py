"""The derivative of the Hurwitz zeta function in its first argument, in primitives."""

from __future__ import annotations

import math

from pullback.lax.elementwise.arithmetic import add_p, mul_p, neg_p, sub_p, where
from pullback.lax.records.families import *

__all__ = ["zeta_slope"]


def zeta_slope(s, q):
    """d zeta(s, q) / ds for s > 1 and q > 0, by Euler and Maclaurin's formula (DLMF 25.11.5), term by term.

    0 for an infinite q, -inf at s = 1, where zeta has its pole, and NaN elsewhere: below q = 0 zeta is known for whole
    s alone.
    """
    from pullback.loops.math.zeta import BERNOULLI, STEPS  # with 32 modules that the import shall not take

    above_one, above_zero = lax.gt_p.bind(s, constant(s, 1)), lax.gt_p.bind(q, constant(q, 0))
    inside = lax.and_p.bind(above_one, lax.and_p.bind(above_zero, lax.is_finite_p.bind(q)))
    at = where(inside, s, constant(s, 2))  # derivatives of what is not taken are harmless
    start = where(inside, q, constant(q, 1))
    lowered = neg_p.bind(at)

    def term(base):
        return mul_p.bind(lax.log_p.bind(base), lax.pow_p.bind(base, lowered))

    total = constant(s, 0)
    for k in reversed(range(STEPS)):  # small terms first
        total = add_p.bind(total, term(add_p.bind(start, constant(start, k))))
    w = add_p.bind(start, constant(start, STEPS))
    log_w, power = lax.log_p.bind(w), lax.pow_p.bind(w, lowered)
    above = lax.div_p.bind(constant(s, 1), sub_p.bind(at, constant(at, 1)))
    integral = mul_p.bind(mul_p.bind(w, power), mul_p.bind(above, add_p.bind(log_w, above)))
    half = mul_p.bind(constant(s, 0.5), mul_p.bind(log_w, power))
    rest = constant(s, 0)
    inverse = lax.div_p.bind(constant(w, 1), w)
    # w^-s s / w (s + 1) / w ..., and the derivative of the product of quotients: without w they overflow for large s.
    slope = mul_p.bind(power, inverse)
    product = mul_p.bind(slope, at)
    for j, b in enumerate(BERNOULLI):
        if j:
            for step in (2 * j - 1, 2 * j):
                factor = mul_p.bind(add_p.bind(at, constant(at, step)), inverse)
                slope = add_p.bind(mul_p.bind(slope, factor), mul_p.bind(product, inverse))
                product = mul_p.bind(product, factor)
        each = sub_p.bind(mul_p.bind(log_w, product), slope)
        rest = add_p.bind(rest, mul_p.bind(constant(s, b), each))
    found = neg_p.bind(add_p.bind(add_p.bind(total, rest), add_p.bind(integral, half)))
    pole = lax.eq_p.bind(s, constant(s, 1))
    far = lax.and_p.bind(above_one, lax.eq_p.bind(q, constant(q, math.inf)))
    other = where(pole, constant(s, -math.inf), where(far, constant(s, 0), constant(s, math.nan)))
    return where(inside, found, other)
