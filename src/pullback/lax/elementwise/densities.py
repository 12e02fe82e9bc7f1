"""The densities of the gamma and beta distributions, in primitives: derivatives of their distribution functions.

Logarithms of gamma functions of large parameters cancel: by their difference the density of gamma(1e6) has no digit in
f32. There it is written with phi(q) = q - 1 - log q, which is at least 0 and small near the mean, and with S(a) of
Gamma(a + 1) = (a / e)^a S(a), by Stirling's series. Elements for which one way is not made are given arguments at which
it is harmless, as derivatives of these run through both.
"""

from __future__ import annotations

import math

from pullback.lax.elementwise.arithmetic import add_p, mul_p, neg_p, sub_p, where
from pullback.lax.records.families import *

__all__ = ["beta_density", "gamma_density"]

LARGE = 10.0  # from there on the terms of STIRLING reach f64's precision
HUGE = 1e30  # beyond, sums of logarithms decide between 0 and infinity
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
LOG_TERMS = tuple(2.0 / (2 * k + 3) for k in range(12))  # log((1 + s) / (1 - s)) = 2 s + s^3 (2/3 + 2/5 s^2 + ...)


def _log(x):
    return lax.log_p.bind(x)


def _divide(x, y):
    return lax.div_p.bind(x, y)


def _both(x, y):
    return lax.and_p.bind(x, y)


def _polynomial(z, coefficients):
    total = constant(z, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = add_p.bind(mul_p.bind(total, z), constant(z, c))
    return total


def _times_phi(a, excess, ratio):
    """a (ratio - 1 - log ratio) where excess = a (ratio - 1), which is more exact."""
    mu = _divide(excess, a)
    near = lax.lt_p.bind(lax.abs_p.bind(mu), constant(mu, 0.29))
    small = where(near, mu, constant(mu, 0))
    s = _divide(small, add_p.bind(small, constant(small, 2)))
    square = mul_p.bind(s, s)
    by_series = mul_p.bind(s, sub_p.bind(small, mul_p.bind(square, _polynomial(square, LOG_TERMS))))
    by_log = sub_p.bind(excess, mul_p.bind(a, _log(where(near, constant(ratio, 1), ratio))))
    return where(near, mul_p.bind(a, by_series), by_log)


def _scale(a):
    """(log, factor) of S(a)."""
    large = lax.ge_p.bind(a, constant(a, LARGE))
    big, small = where(large, a, constant(a, LARGE)), where(large, constant(a, 1), a)
    inverse = _divide(constant(a, 1), big)
    stirling = mul_p.bind(inverse, _polynomial(mul_p.bind(inverse, inverse), STIRLING))
    log_gamma = lax.lgamma_p.bind(add_p.bind(small, constant(a, 1)))
    direct = add_p.bind(sub_p.bind(log_gamma, mul_p.bind(small, _log(small))), small)
    root = lax.sqrt_p.bind(mul_p.bind(big, constant(a, 2 * math.pi)))
    return where(large, stirling, direct), where(large, root, constant(a, 1))


def _sum_of_logs(*terms):
    total, *rest = terms
    for term in rest:
        total = add_p.bind(total, term)
    return lax.exp_p.bind(total)


def _without_power(a, y):
    """y, but 1 where it is 0 and the exponent a - 1 as well: y^(a-1) is 1 there, and its logarithm 0 times infinity."""
    one, zero = constant(a, 1), constant(y, 0)
    return where(_both(lax.eq_p.bind(a, one), lax.eq_p.bind(y, zero)), constant(y, 1), y)


def _log_of_rest(q, y):
    """log(1 - y), but 0 where y is 1 and the exponent q - 1 is 0."""
    one = constant(q, 1)
    at_end = _both(lax.eq_p.bind(q, one), lax.eq_p.bind(y, constant(y, 1)))
    return lax.log1p_p.bind(neg_p.bind(where(at_end, constant(y, 0), y)))


def gamma_density(a, x):
    """x^(a-1) exp(-x) / gamma(a): the derivative of igamma(a, x) with respect to x."""
    one = constant(a, 1)
    usual = _both(lax.gt_p.bind(a, constant(a, LARGE)), lax.lt_p.bind(a, constant(a, HUGE)))
    usual = _both(usual, _both(lax.gt_p.bind(x, constant(x, 0)), lax.lt_p.bind(x, constant(x, HUGE))))
    b, y = where(usual, one, a), where(usual, one, x)
    inner = where(lax.eq_p.bind(y, constant(x, math.inf)), one, _without_power(b, y))
    directly = _sum_of_logs(
        mul_p.bind(sub_p.bind(b, one), _log(inner)), neg_p.bind(y), neg_p.bind(lax.lgamma_p.bind(b))
    )
    b, y = where(usual, a, constant(a, LARGE)), where(usual, x, constant(x, LARGE))
    log_scale, scale = _scale(b)
    exponent = neg_p.bind(add_p.bind(_times_phi(b, sub_p.bind(y, b), _divide(y, b)), log_scale))
    # b / y alone may be infinite, where the exponential is 0.
    return where(usual, _divide(mul_p.bind(_divide(lax.exp_p.bind(exponent), scale), b), y), directly)


def beta_density(a, b, x):
    """x^(a-1) (1-x)^(b-1) / B(a, b): the derivative of betainc(a, b, x) with respect to x."""
    one, zero = constant(x, 1), constant(x, 0)
    usual = _both(lax.gt_p.bind(x, zero), lax.lt_p.bind(x, one))
    for p in (a, b):
        usual = _both(usual, _both(lax.gt_p.bind(p, zero), lax.lt_p.bind(p, constant(p, HUGE))))
    usual = _both(usual, lax.gt_p.bind(lax.max_p.bind(a, b), constant(a, LARGE)))
    p, q, y = where(usual, one, a), where(usual, one, b), where(usual, constant(x, 0.5), x)
    directly = _sum_of_logs(
        mul_p.bind(sub_p.bind(q, one), _log_of_rest(q, y)),
        mul_p.bind(sub_p.bind(p, one), _log(_without_power(p, y))),
        lax.lgamma_p.bind(add_p.bind(p, q)),
        neg_p.bind(add_p.bind(lax.lgamma_p.bind(p), lax.lgamma_p.bind(q))),
    )
    p, q = where(usual, a, constant(a, LARGE)), where(usual, b, constant(b, LARGE))
    y = where(usual, x, constant(x, 0.5))
    n, rest = add_p.bind(p, q), sub_p.bind(one, y)
    excess = sub_p.bind(mul_p.bind(q, y), mul_p.bind(p, rest))  # n y - p
    (log_n, scale_n), (log_p, scale_p), (log_q, scale_q) = _scale(n), _scale(p), _scale(q)
    first = _times_phi(p, excess, _divide(mul_p.bind(n, y), p))
    second = _times_phi(q, neg_p.bind(excess), _divide(mul_p.bind(n, rest), q))
    exponent = sub_p.bind(sub_p.bind(log_n, add_p.bind(log_p, log_q)), add_p.bind(first, second))
    scales = _divide(_divide(scale_n, scale_p), scale_q)
    value = _divide(mul_p.bind(mul_p.bind(lax.exp_p.bind(exponent), scales), p), y)
    return where(usual, mul_p.bind(value, _divide(_divide(q, n), rest)), directly)
