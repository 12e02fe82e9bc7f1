"""Integrals of elementary functions: exponential, sine and cosine, Fresnel's and Dawson's, and the dilogarithm.

Near zero they are polynomials times what is known of their form there; far away auxiliary functions of 1/x, smooth and
close to one, times exponentials, sines and cosines (Abramowitz and Stegun, chapters 5 and 7).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp
from pullback.numpy._creation import from_list
from pullback.scipy.special import _tables as tables
from pullback.scipy.special._common import real_arguments
from pullback.scipy.special._gamma import digamma
from pullback.scipy.special._piecewise import evaluate, real_function, widened


def _exp_over(x: Any, factor: Any) -> Any:
    """exp(x) factor / x for large x, finite where it is, although exp(x) is not."""
    shift = jnp.where(x > 80, 8, 0).astype(x.dtype)
    return jnp.exp(x - shift) / x * factor * jnp.exp(shift)


def _e1_scaled(x: Any) -> Any:
    """x exp(x) E1(x), x >= 1."""
    return evaluate(tables.E1, 1 / x)


def _e1(x: Any) -> Any:
    """E1(x), x > 0."""
    near = x < 1
    small = jnp.where(near, x, 1)
    # (-log(x) - gamma) + sum of -(-x)^k / (k k!)
    total = jnp.zeros_like(small)
    for k in range(19, 0, -1):
        total = (total + (-1) ** (k + 1) / (k * math.factorial(k))) * small
    large = jnp.where(near, 1, x)
    far = jnp.exp(-large) * (_e1_scaled(large) / large)
    return jnp.where(near, total - np.euler_gamma - jnp.log(small), far)


def _from_positive(x: Any, value: Any, at_zero: float, at_infinity: float, below: Any = np.nan) -> Any:
    """The value with those of the ends."""
    value = jnp.where(x == 0, at_zero, jnp.where(x == np.inf, at_infinity, value))
    return jnp.where(x < 0, below, jnp.where(jnp.isnan(x), np.nan, value)).astype(x.dtype)


@real_function(lambda x, y: -jnp.exp(-x) / x)
def exp1(x: Any) -> Any:
    """E1(x), the integral of exp(-t) / t from x on; nan for x < 0. Raises ValueError if x is complex."""
    return _from_positive(x, _e1(jnp.where((x > 0) & (x < np.inf), x, 1)), np.inf, 0)


# Zeros of Ei and Ci, and what double precision leaves of them.
_EI_ROOT = 0.3725074107813666, 1.3140183414386028e-17
_CI_ROOTS = (0.6165054856207163, -4.209920321433186e-17), (3.3841804225511862, 1.972125462363411e-16)


def _distance(x: Any, root: tuple[float, float]) -> Any:
    """x - root, accurate near the root."""
    high = x.dtype.type(root[0])
    return (x - high) - x.dtype.type(root[0] - float(high) + root[1])


def _logarithmic(x: Any, root: tuple[float, float], table: Any) -> Any:
    """log(x / root) + (x - root) table(x), accurate near the root."""
    distance = _distance(x, root)
    ratio = distance / root[0]
    close = abs(ratio) < 0.5
    logarithm = jnp.where(close, jnp.log1p(jnp.where(close, ratio, 0)), jnp.log(x / root[0]))
    return logarithm + distance * evaluate(table, x)


@real_function(lambda x, y: _exp_over(x, 1))
def expi(x: Any) -> Any:
    """Ei(x), the integral of exp(t) / t up to x. Raises ValueError if x is complex."""
    positive = jnp.where((x > 0) & (x < np.inf), x, 1)
    near = jnp.minimum(positive, 6)
    small = _logarithmic(near, _EI_ROOT, tables.EI_NEAR)
    large = jnp.maximum(positive, 6)
    far = _exp_over(large, evaluate(tables.EI_FAR, 1 / large))
    below = -_e1(jnp.where((x < 0) & (x > -np.inf), -x, 1))
    below = jnp.where(x == -np.inf, -0.0, below)
    return _from_positive(x, jnp.where(positive < 6, small, far), -np.inf, np.inf, below)


@custom_jvp
def _expn(n: Any, x: Any) -> Any:
    whole = (n >= 0) & (n == jnp.floor(n))
    valid = whole & (x >= 0)
    order = jnp.where(whole, n, 1)
    point = jnp.where(valid & (x > 0) & (x < np.inf), x, 1)
    # x < 1: (-x)^(n-1) / (n-1)! (digamma(n) - log x) - sum over m != n-1 of (-x)^m / ((m - n + 1) m!).
    near = jnp.where(point < 1, point, 0.5)
    term, total = jnp.ones_like(near), jnp.zeros_like(near)
    for m in range(20):
        distance = m - order + 1
        total = total - jnp.where(distance == 0, 0, term / jnp.where(distance == 0, 1, distance))
        term = term * (-near) / (m + 1)
    above = jnp.where(order >= 1, order, 1)
    sign = jnp.where(jnp.remainder(above, 2) == 1, 1, -1)
    power = sign * jnp.exp((above - 1) * jnp.log(near) - lax.lgamma(above))
    series = jnp.where(order == 0, jnp.exp(-near) / near, total + power * (digamma(above) - jnp.log(near)))
    # x >= 1: the continued fraction exp(-x) / (x + n - 1 n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - ...))).
    far = jnp.where(point < 1, 1, point)
    terms = 100 if x.dtype.itemsize == 8 else 25
    fraction = far + order + 2 * terms
    for k in range(terms, 0, -1):
        fraction = far + order + 2 * (k - 1) - k * (order + k - 1) / fraction
    value = jnp.where(point < 1, series, jnp.exp(-far) / fraction)
    at_zero = jnp.where(order > 1, 1 / jnp.where(order > 1, order - 1, 1), np.inf)
    value = jnp.where(x == 0, at_zero, jnp.where(x == np.inf, 0, value))
    return jnp.where(valid, value, np.nan).astype(x.dtype)


@_expn.defjvp
def _expn_jvp(primals: Any, tangents: Any) -> Any:
    (n, x), (_, x_dot) = primals, tangents
    below = jnp.where(n == 0, -jnp.exp(-x) * (1 + 1 / x) / x, -_expn(jnp.maximum(n - 1, 0), x))
    return _expn(n, x), below * x_dot


def expn(n: Any, x: Any) -> Any:
    """E_n(x), the integral of exp(-x t) / t^n from 1 on, for n = 0, 1, ...; nan for other n, and x < 0.

    The derivative is that in x. Raises ValueError if an argument is complex.
    """
    n, x = real_arguments("expn", from_list(n), from_list(x))
    return _expn(widened(n), widened(x)).astype(x.dtype)


def _sine_slopes(x: Any, y: Any) -> tuple[Any, Any]:
    safe = jnp.where(x == 0, 1, x)
    return jnp.where(x == 0, 1, jnp.sin(x) / safe), jnp.cos(x) / x


@real_function(_sine_slopes)
def sici(x: Any) -> tuple[Any, Any]:
    """Si(x), the integral of sin(t) / t from 0, and Ci(x), minus that of cos(t) / t from |x| on; Ci(-inf) is nan.

    Raises ValueError if x is complex.
    """
    size = abs(x)
    near = jnp.minimum(size, 4)
    si = near * evaluate(tables.SI, near)
    small = _logarithmic(jnp.clip(near, np.finfo(x.dtype).tiny, 2), _CI_ROOTS[0], tables.CI_NEAR)
    middle = jnp.maximum(near, 2)
    ci = jnp.where(near < 2, small, _distance(middle, _CI_ROOTS[1]) * evaluate(tables.CI_MIDDLE, middle))
    far = jnp.where((size > 4) & (size < np.inf), size, 4)
    t = 1 / (far * far)
    f, g = evaluate(tables.SINE_F, t) / far, evaluate(tables.SINE_G, t) * t
    sine, cosine = jnp.sin(far), jnp.cos(far)
    si = jnp.where(size > 4, math.pi / 2 - f * cosine - g * sine, si)
    ci = jnp.where(size > 4, f * sine - g * cosine, ci)
    si = jnp.where(size == np.inf, math.pi / 2, si)
    ci = jnp.where(size == 0, -np.inf, jnp.where(x == np.inf, 0, jnp.where(x == -np.inf, np.nan, ci)))
    unknown = jnp.isnan(x)
    si = jnp.copysign(jnp.where(unknown, np.nan, si), x)
    return si.astype(x.dtype), jnp.where(unknown, np.nan, ci).astype(x.dtype)


def _even_from(dtype: Any) -> float:
    """From here on all floats are multiples of 4, and 1/2 + 1/(pi x) is 1/2."""
    return 2.0 ** (np.finfo(dtype).nmant + 2)


def _quarter_turns(x: Any) -> Any:
    """x^2 modulo 4, exact but for one rounding: parts of half the digits have exact products."""
    x = jnp.clip(x, -_even_from(x.dtype), _even_from(x.dtype))
    factor = 2.0 ** ((np.finfo(x.dtype).nmant + 2) // 2) + 1
    scaled = factor * x
    high = scaled - (scaled - x)
    low = x - high
    total = jnp.remainder(high * high, 4) + (jnp.remainder(2 * high * low, 4) + jnp.remainder(low * low, 4))
    return jnp.remainder(total, 4)


@real_function(lambda x, y: (lax.sin(math.pi / 2 * _quarter_turns(x)), lax.cos(math.pi / 2 * _quarter_turns(x))))
def fresnel(x: Any) -> tuple[Any, Any]:
    """S(x) and C(x), the integrals of sin(pi t^2 / 2) and cos(pi t^2 / 2) from 0. ValueError if x is complex."""
    size = abs(x)
    near = jnp.minimum(size, 1.75)
    s, c = near**3 * evaluate(tables.FRESNEL_S, near), near * evaluate(tables.FRESNEL_C, near)
    far = jnp.clip(size, 1.75, _even_from(x.dtype))
    square = far * far
    t = 1 / (square * square)
    f = evaluate(tables.FRESNEL_F, t) / (math.pi * far)
    g = evaluate(tables.FRESNEL_G, t) / (math.pi**2 * square * far)
    phase = math.pi / 2 * _quarter_turns(far)
    sine, cosine = jnp.sin(phase), jnp.cos(phase)
    s = jnp.where(size > 1.75, 0.5 - f * cosine - g * sine, s)
    c = jnp.where(size > 1.75, 0.5 + f * sine - g * cosine, c)
    s, c = (jnp.where(size == np.inf, 0.5, part) for part in (s, c))
    unknown = jnp.isnan(x)
    s, c = (jnp.copysign(jnp.where(unknown, np.nan, part), x) for part in (s, c))
    return s.astype(x.dtype), c.astype(x.dtype)


@real_function(lambda x, y: _dawson_slope(x, y))
def dawsn(x: Any) -> Any:
    """Dawson's integral exp(-x^2) times the integral of exp(t^2) from 0 to x. Raises ValueError if x is complex."""
    size = abs(x)
    near = jnp.minimum(size, 8)
    far = jnp.maximum(size, 8)
    inner = near * evaluate(tables.DAWSON_NEAR, near)
    outer = evaluate(tables.DAWSON_FAR, jnp.minimum(1 / (far * far), 1 / 64)) / (2 * far)
    value = jnp.where(jnp.isnan(x), np.nan, jnp.where(size < 8, inner, outer))
    return jnp.copysign(value, x).astype(x.dtype)


def _dawson_slope(x: Any, y: Any) -> Any:
    """1 - 2 x y; far out, where this cancels, its series -1/(2 x^2) - 3/(4 x^4) - ... (terms (2k-1)!! / (2 x^2)^k)."""
    far = abs(x) > 8
    t = 1 / (2 * jnp.where(far, x * x, 64))
    total = jnp.zeros_like(t)
    for k in range(24, 0, -1):
        total = (total + 1) * (2 * k - 1) * t
    return jnp.where(far, -total, 1 - 2 * x * y)


@real_function(lambda x, y: _dilogarithm_slope(x))
def _spence(x: Any) -> Any:
    positive = jnp.where((x > 0) & (x < np.inf), x, 1)
    large = positive > 1.5
    point = jnp.where(large, 1 / positive, positive)  # spence(x) = -spence(1/x) - log(x)^2 / 2
    small = (point < 0.5) & (point > 0)  # 1 / positive may be 0
    inner = jnp.where(small, 1 - point, point)  # spence(x) = pi^2/6 - log(x) log(1-x) - spence(1 - x)
    y = jnp.where(point > 0, 1 - inner, 0)
    value = y * evaluate(tables.DILOGARITHM, y)
    product = jnp.log(jnp.where(small, point, 1)) * jnp.log1p(-jnp.where(small, point, 0))
    value = jnp.where(point < 0.5, math.pi**2 / 6 - product - value, value)
    value = jnp.where(large, -value - jnp.log(positive) ** 2 / 2, value)
    return _from_positive(x, value, math.pi**2 / 6, -np.inf)


def spence(x: Any) -> Any:
    """The integral of log(t) / (1 - t) from 1 to x, which is the dilogarithm Li2(1 - x); nan for x < 0.

    Raises ValueError if x is complex.
    """
    return _spence(from_list(x))


def _dilogarithm_slope(x: Any) -> Any:
    y = x - 1
    near = abs(y) < 0.5
    small = jnp.where(near & (y != 0), y, 0.25)
    return jnp.where(y == 0, -1, jnp.where(near, -jnp.log1p(small) / small, jnp.log(x) / -jnp.where(near, 1, y)))
