"""The second derivative of the incomplete gamma function P(a, x) in a, in primitives.

With f the density x^(a-1) exp(-x) / Gamma(a), P is an integral of f over (0, x), and 1 - P over (x, inf). Twice
differentiated in a under the integral, and with the variable t = x exp(y), the smaller of the two is

    P_aa / f = -s x integral over w > 0 of exp(a y - x (exp(y) - 1)) ((log x + y - digamma(a))^2 - trigamma(a))

where y = s w, s = 1 above x = a and -1 below. A sum at doubly exponential nodes w = L exp(u - exp(-u)) (Takahasi
and Mori, 1974) has 11 digits of it from a = 0.001 to 1e6; it is added up in f64, since the square cancels the
trigamma near x = a.
"""

from __future__ import annotations

import math

from pullback.lax.elementwise.arithmetic import add_p, mul_p, neg_p, sub_p, where
from pullback.lax.records.families import *

__all__ = ["gamma_curve"]

STEP, FIRST, COUNT = 0.05, -3.6, 160


def gamma_curve(a, x):
    """The second derivative of igamma(a, x) in a by the density of gamma(a) at x; 0 at x = 0 and infinity."""
    zero = constant(a, 0)
    known = lax.and_p.bind(lax.gt_p.bind(a, zero), lax.and_p.bind(lax.gt_p.bind(x, zero), lax.is_finite_p.bind(x)))
    wide = [
        lax.convert_element_type_p.bind(where(known, v, constant(v, 1)), new_dtype=np.dtype("float64"), weak_type=False)
        for v in (a, x)
    ]
    weak = typeof(a).weak_type and typeof(x).weak_type
    value = lax.convert_element_type_p.bind(_integral(*wide), new_dtype=a.dtype, weak_type=weak)
    at_ends = lax.and_p.bind(lax.gt_p.bind(a, zero), lax.ge_p.bind(x, zero))
    return where(known, value, where(at_ends, zero, constant(a, math.nan)))


def _integral(a, x):
    one = constant(a, 1)
    above = lax.gt_p.bind(x, a)
    sign = where(above, one, constant(a, -1))
    far = lax.abs_p.bind(sub_p.bind(x, a))
    long = lax.log1p_p.bind(lax.div_p.bind(one, add_p.bind(far, lax.sqrt_p.bind(x))))
    short = lax.div_p.bind(one, add_p.bind(far, lax.min_p.bind(a, lax.sqrt_p.bind(a))))
    length = where(above, long, short)
    growth = sub_p.bind(lax.log_p.bind(x), lax.digamma_p.bind(a))
    spread = lax.polygamma_p.bind(one, a)

    shape = (*a.shape, COUNT)

    def along(v):
        return lax.broadcast_in_dim_p.bind(v, shape=shape, broadcast_dimensions=tuple(range(v.ndim)))

    place = lax.iota_p.bind(dtype=a.dtype, shape=shape, dimension=a.ndim, sharding=None)
    place = add_p.bind(mul_p.bind(place, constant(place, STEP)), constant(place, FIRST))
    back = lax.exp_p.bind(neg_p.bind(place))
    node = lax.exp_p.bind(sub_p.bind(place, back))
    weight = mul_p.bind(node, add_p.bind(constant(node, 1), back))
    y = mul_p.bind(along(mul_p.bind(sign, length)), node)
    exponent = sub_p.bind(mul_p.bind(along(a), y), mul_p.bind(along(x), lax.expm1_p.bind(y)))
    from_mean = add_p.bind(along(growth), y)
    factor = sub_p.bind(mul_p.bind(from_mean, from_mean), along(spread))
    terms = mul_p.bind(mul_p.bind(lax.exp_p.bind(exponent), factor), weight)
    total = lax.reduce_sum_p.bind(terms, axes=(a.ndim,))
    scale = mul_p.bind(mul_p.bind(sign, length), mul_p.bind(x, constant(x, -STEP)))
    return mul_p.bind(scale, total)
