"""The hypergeometric functions 1F1 and 2F1 of real arguments, and all their derivatives, by the parameters, too.

Power series where their terms fall, 1F1 far out by its asymptotic series, 2F1 near 1 by its differential equation:
Taylor series from 1/2 on, each of half the distance to 1, carry the value and the slope. That needs no transformation
that cancels where c - a - b is nearly whole. Negative arguments are moved to positive ones by the transformations of
Kummer and of Pfaff (Abramowitz and Stegun, 13.1.27 and 15.3.4). All is computed in float64.

Derivatives are those of the loops themselves, in forward mode: one function for each order in each argument, made when
it is asked for, so that they can be taken again and in reverse.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp, jvp
from pullback.api.custom import SymbolicZero
from pullback.numpy._arguments import plain_float, promote_dtypes_inexact
from pullback.numpy._creation import from_list
from pullback.scipy.special._gamma import gammaln, gammasgn
from pullback.util.config import enable_x64

TERMS = 2000  # at most, of a power series
SMALL = 1e-20  # of the largest sum: a bound on terms that add nothing, nor do their derivatives
FAR = 60.0  # from where on the asymptotic series may be taken
FAR_TERMS = 30
STEPS, ORDER = 54, 64  # Taylor series, up to 1 - 2^-54; each converges as 2^-n


def _whole(x: Any) -> Any:
    """Whether x is 0, -1, -2, ..."""
    return (x <= 0) & (x == jnp.floor(x))


def _product(factors: list[Any]) -> Any:
    return functools.reduce(lax.mul, factors)


def _series(above: tuple[Any, ...], below: Any, x: Any) -> Any:
    """The sum of (above)_n / (below)_n x^n / n!, until a bound on the terms, which is never 0, is small.

    Where a parameter that is 0 or negative and whole ends the sum, it does not end the derivative by that parameter.
    """

    def going(state: Any) -> Any:
        n, _, _, bound, largest = state
        return (n < TERMS) & jnp.any(bound > SMALL * largest)

    def step(state: Any) -> Any:
        n, term, total, bound, largest = state
        k = n.astype(x.dtype)
        down = jnp.where(below + k == 0, 1, below + k) * (k + 1)
        term = term * _product([a + k for a in above]) * (x / down)
        growth = _product([jnp.maximum(jnp.abs(a + k), 1) for a in above]) * jnp.abs(x / down)
        total = total + term
        bound = lax.stop_gradient(jnp.minimum(bound * growth, 1e300))
        return n + 1, term, total, bound, jnp.maximum(largest, lax.stop_gradient(jnp.abs(total)))

    one = jnp.ones_like(x)
    return lax.while_loop(going, step, (np.int32(0), one, one, one, one))[2]


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    size, above = jnp.abs(x), x > 0
    gamma_of = jnp.where(above, a, b - a)
    far = (size > jnp.maximum(FAR, 2 * (1 + jnp.abs(a)) * (1 + jnp.abs(b - a)))) & ~_whole(gamma_of)
    near = jnp.where(far | (size == np.inf), 0, x)
    moved = (near < 0) & ~_whole(a)
    close = jnp.where(moved, jnp.exp(near), 1) * _series(
        (jnp.where(moved, b - a, a),), b, jnp.where(moved, -near, near)
    )
    large = jnp.where(far & (size < np.inf), size, 2 * FAR)
    first, second = jnp.where(above, b - a, a), jnp.where(above, 1 - a, a - b + 1)
    term = total = jnp.ones_like(x)
    for n in range(FAR_TERMS):
        term = term * ((first + n) * (second + n) / ((n + 1) * large))
        total = total + term
    safe = jnp.where(far, gamma_of, 1)
    power = jnp.where(above, large + (a - b) * jnp.log(large), -a * jnp.log(large))
    distant = gammasgn(b) * gammasgn(safe) * total * jnp.exp(power + gammaln(b) - gammaln(safe))
    end = jnp.where(above, np.inf * gammasgn(b) * gammasgn(safe), jnp.where(a > 0, 0, np.inf))
    value = jnp.where(size == np.inf, jnp.where(a == 0, 1, end), jnp.where(far, distant, close))
    pole = _whole(b) & ~(_whole(a) & (a > b))
    value = jnp.where(pole, jnp.where((a == 0) | (x == 0), 1, jnp.where(a == b, jnp.exp(x), np.inf)), value)
    return jnp.where(jnp.isnan(a) | jnp.isnan(b) | jnp.isnan(x), np.nan, value)


def _towards_one(a: Any, b: Any, c: Any, rest: Any) -> Any:
    """2F1 at 1 - rest, for rest below 1/2, of parameters for which it is bounded."""
    half = jnp.full_like(rest, 0.5)
    value, slope = _series((a, b), c, half), a * b / c * _series((a + 1, b + 1), c + 1, half)

    def going(state: Any) -> Any:
        n, left, _, _ = state
        return (n < STEPS) & jnp.any(left > rest)

    def step(state: Any) -> Any:
        n, left, value, slope = state
        following = jnp.where(left / 2 > rest, left / 2, rest)  # of maxima that are equal each has half of the slope
        h = left - following
        first, second = 2 * left - 1, c - (a + b + 1) * (1 - left)

        def add(k: Any, sums: Any) -> Any:
            k = lax.convert_element_type(k, h.dtype)
            v, w, total, slopes = sums
            u = h * (k + a) * (k + b) * v - (k + 1) * (first * k + second) * w
            v, w = w, u * (h / ((1 - left) * left * (k + 2) * (k + 1)))
            return v, w, total + w, slopes + (k + 2) * w

        start = value, slope * h, value + slope * h, slope * h
        _, _, total, slopes = lax.fori_loop(0, ORDER, add, start)
        moves = h > 0
        slope = jnp.where(moves, slopes / jnp.where(moves, h, 1), slope)
        return n + 1, following, jnp.where(moves, total, value), slope

    return lax.while_loop(going, step, (np.int32(0), half, value, slope))[2]


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    ordered = a <= b
    a, b = jnp.where(ordered, a, b), jnp.where(ordered, b, a)
    ends = _whole(a) | _whole(b)
    inside = x < 1
    # Pfaff: (1 - x)^-a F(a, c - b; c; x / (x - 1)).
    moved = (x < 0) & ~ends
    less = jnp.where(moved, 1 - x, 1)
    b = jnp.where(moved, c - b, b)
    z, rest = jnp.where(moved, x / (x - 1), x), jnp.where(moved, 1 / less, 1 - x)
    z = jnp.where(x == -np.inf, 1, z)
    near = ends | (z <= 0.5)
    # Beyond 1 Euler's transformation, below, leads to a sum that ends, and to a power of a negative number.
    power = c - a - b
    turned = (x > 1) & ~ends & (_whole(c - a) | _whole(c - b)) & (power == jnp.floor(power))
    above = jnp.where(turned, c - a, a), jnp.where(turned, c - b, b)
    close = _series(above, c, jnp.where(near | turned, z, 0))
    sign = jnp.where(jnp.remainder(power, 2) == 1, -1, 1)
    close = jnp.where(turned, sign * jnp.where(turned, x - 1, 1) ** jnp.where(turned, power, 0), 1) * close
    near = near | turned
    # Euler: (1 - z)^(c - a - b) F(c - a, c - b; c; z), where that is bounded at 1 and F is not.
    rest = jnp.where(near | ~inside, 0.5, rest)
    excess = jnp.where(near, 1, c - a - b)
    grows = excess < 0
    up, down = jnp.where(grows, c - a, a), jnp.where(grows, c - b, b)
    distant = jnp.where(grows, rest**excess, 1) * _towards_one(up, down, c, rest)
    value = less**-a * jnp.where(near, close, distant)
    # At 1: Gauss.
    safe = jnp.where((excess > 0) & ~ends, excess, 1)
    sign = gammasgn(c) * gammasgn(c - a) * gammasgn(c - b)
    gauss = sign * jnp.exp(gammaln(c) + gammaln(safe) - gammaln(c - a) - gammaln(c - b))
    at_one = jnp.where(excess > 0, gauss, np.inf)
    value = jnp.where(ends | inside | turned, value, jnp.where(x == 1, at_one, np.inf))
    pole = _whole(c) & ~((_whole(a) & (a >= c)) | (_whole(b) & (b >= c))) & (x != 0)
    value = jnp.where(pole, np.inf, value)
    return jnp.where(jnp.isnan(a) | jnp.isnan(b) | jnp.isnan(c) | jnp.isnan(x), np.nan, value)


def _slope(function: Callable[..., Any], number: int) -> Callable[..., Any]:
    """The derivative of a function of arrays, elementwise, by one of its arguments."""

    def slope(*args: Any) -> Any:
        along = lambda x: function(*args[:number], x, *args[number + 1 :])
        return jvp(along, (args[number],), (jnp.ones_like(args[number]),))[1]

    return slope


@functools.cache
def _derivative(function: Callable[..., Any], orders: tuple[int, ...]) -> Callable[..., Any]:
    """The derivative of these orders by each of the arguments, computed in float64."""

    @custom_jvp
    def derivative(*args: Any) -> Any:
        found = function
        for number, order in enumerate(orders):
            for _ in range(order):
                found = _slope(found, number)
        with enable_x64(True):
            value = found(*(lax.convert_element_type(x, np.float64) for x in args))
            return lax.convert_element_type(value, args[0].dtype)

    def rule(primals: Any, tangents: Any) -> Any:
        total = jnp.zeros_like(primals[0])
        for number, tangent in enumerate(tangents):
            if not isinstance(tangent, SymbolicZero):
                above = tuple(order + (k == number) for k, order in enumerate(orders))
                total = total + _derivative(function, above)(*primals) * tangent
        return derivative(*primals), total

    derivative.defjvp(rule, symbolic_zeros=True)
    return derivative


def _evaluate(name: str, error: type[Exception], function: Callable[..., Any], *args: Any) -> Any:
    arrays = promote_dtypes_inexact(*(plain_float(from_list(x)) for x in args))
    if np.issubdtype(arrays[0].dtype, np.complexfloating):
        raise error(f"{name} does not support complex-valued inputs, got {arrays[0].dtype}")
    arrays = jnp.broadcast_arrays(*(lax.convert_element_type(x, x.dtype) for x in arrays))
    return _derivative(function, (0,) * len(args))(*arrays)


def hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """Kummer's function 1F1(a; b; x) of real arguments, broadcast against each other; inf where b is 0, -1, -2, ...

    Raises ValueError for complex arguments, or shapes that do not go together.

    >>> hyp1f1(1.0, 1.0, 0.0)
    Array(1., dtype=float32)
    """
    return _evaluate("hyp1f1", ValueError, _hyp1f1, a, b, x)


def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """Gauss's function 2F1(a, b; c; x) of real arguments, broadcast against each other.

    It is inf where c is 0, -1, -2, ..., and beyond 1, unless a or b, being 0 or negative and whole, ends the series, or
    c - a or c - b does and c - a - b is whole.
    Raises TypeError for complex arguments, ValueError for shapes that do not go together.

    >>> hyp2f1(1.0, 2.0, 2.0, 0.5)
    Array(2., dtype=float32)
    """
    return _evaluate("hyp2f1", TypeError, _hyp2f1, a, b, c, x)
