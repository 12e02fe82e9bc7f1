"""The error function and the normal distribution function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp
from pullback.numpy._creation import from_list
from pullback.scipy.special._common import inexact
from pullback.scipy.special._piecewise import widened
from pullback.util import dtypes


def erf(x: Any) -> Any:
    """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    return lax.erf(inexact(x))


def erfc(x: Any) -> Any:
    """1 - erf(x)."""
    return lax.erfc(inexact(x))


def erfinv(x: Any) -> Any:
    """The inverse of erf."""
    return lax.erf_inv(inexact(x))


def _tail_quotient(x: Any, terms: int) -> Any:
    """sqrt(pi) exp(x^2) erfc(x), x > 0, by Laplace's continued fraction 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...))))."""
    value = x
    for k in range(terms, 0, -1):
        value = x + (k / 2) / value
    return 1 / value


# From where on, and with how many terms, the continued fraction is exact to the type's precision.
def _fraction_start(dtype: Any) -> tuple[float, int]:
    return (3.0, 60) if dtypes.finfo(dtype).bits == 64 else (2.5, 20)


@custom_jvp
def _erfcx(x: Any) -> Any:
    start, terms = _fraction_start(x.dtype)
    near = jnp.where(x < start, x, 0)
    far = jnp.where(x < start, start, x)
    return jnp.where(
        x < start, jnp.exp(near * near) * lax.erfc(near), _tail_quotient(far, terms) / math.sqrt(math.pi)
    ).astype(x.dtype)


@_erfcx.defjvp
def _erfcx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    y = _erfcx(x)
    return y, x_dot * (2 * x * y - 2 / math.sqrt(math.pi))


def real_erfcx(x: Any) -> Any:
    """exp(x^2) erfc(x) of real x, without underflow for large x."""
    return _erfcx(inexact(x))


_REST_OF_ROOT = -4.833646656726457e-17  # sqrt 1/2, less its nearest double


@custom_jvp
def _ndtr(x: Any) -> Any:
    """erfc(z) / 2, z = -x / sqrt 2, to first order in what the rounding of z loses, which far below 0 counts 2 z^2."""
    root = math.sqrt(0.5)
    high = x.dtype.type(root)
    low = root - float(high) + _REST_OF_ROOT
    z = -x * high
    tail = (z > 0.5) & (z < 30)
    x, near = jnp.where(tail, x, -2), jnp.where(tail, z, 2 * high)
    lost = lax.fma_p.bind(-x, jnp.full_like(x, high), -near) - x * low
    # erfc falls by about z + sqrt(z^2 + 1.9) of itself: within 4e-4 from 3 on, 0.024 at 1 (the bounds with 4 / pi and 2
    # for 1.9 are those of Abramowitz and Stegun, 7.1.13).
    half = 0.5 * lax.erfc(z)
    return half - jnp.where(tail, half * (lost * (near + jnp.sqrt(near * near + 1.9))), 0)


@_ndtr.defjvp
def _ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return _ndtr(x), x_dot * (jnp.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def ndtr(x: Any) -> Any:
    """The normal distribution function: erfc(-x / sqrt 2) / 2."""
    x = inexact(from_list(x))
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return 0.5 * lax.erfc(-x * math.sqrt(0.5))  # which says that it is for real numbers
    return _ndtr(widened(x)).astype(x.dtype)  # no longer weakly typed


@custom_jvp
def _log_ndtr(x: Any) -> Any:
    z = -x * math.sqrt(0.5)
    below = x < -1
    lower = jnp.log(_erfcx(jnp.where(below, z, 1)) / 2) - jnp.where(below, z * z, 0)
    upper = jnp.log1p(-_ndtr(-jnp.where(below, 0, x)))
    return jnp.where(below, lower, upper).astype(x.dtype)


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    y = _log_ndtr(x)
    # The exponents cancel far below 0, where the quotient of density and probability is that of erfcx.
    below = x < -1
    far = math.sqrt(2 / math.pi) / _erfcx(jnp.where(below, -x * math.sqrt(0.5), 1))
    near = jnp.exp(-x * x / 2 - y) / math.sqrt(2 * math.pi)
    return y, x_dot * jnp.where(below, far, near).astype(x.dtype)


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """log ndtr(x), accurate far below 0. `series_order` is accepted and not needed.

    Raises TypeError if x is complex, or series_order not an int.
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    x = inexact(from_list(x))
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise TypeError(f"x.dtype={x.dtype} is not supported, see docstring for supported types.")
    return _log_ndtr(x)


@custom_jvp
def _ndtri(p: Any) -> Any:
    # In the tails the inverse error function of 2 p - 1 has lost p, so solve log Phi(x) = log p by Newton's method
    # from the
    # asymptotic x = -sqrt(-2 log p - log(-4 pi log p)); the derivative of log Phi is phi / Phi.
    middle = lax.erf_inv(2 * p - 1) * math.sqrt(2)
    tail = jnp.minimum(p, 1 - p)
    deep = tail < 0.1
    log_tail = jnp.log(jnp.where(deep & (tail > 0), tail, 0.05))
    first = -2 * log_tail
    x = -jnp.sqrt(first - jnp.log(2 * math.pi * first))
    for _ in range(5):
        value = _log_ndtr(x)
        slope = jnp.exp(-x * x / 2 - value) / math.sqrt(2 * math.pi)
        x = x - (value - log_tail) / slope
    x = jnp.where(tail == 0, -np.inf, x)
    solved = jnp.where(p < 0.5, x, -x)
    out = jnp.where(deep, solved, middle)
    return jnp.where((p < 0) | (p > 1), np.nan, out).astype(p.dtype)


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (p_dot,) = primals, tangents
    x = _ndtri(p)
    return x, p_dot * math.sqrt(2 * math.pi) * jnp.exp(x * x / 2)


def ndtri(p: Any) -> Any:
    """The x with ndtr(x) = p; nan outside [0, 1]. Raises TypeError if p is complex."""
    p = inexact(p)
    if not dtypes.issubdtype(p.dtype, np.floating):
        raise TypeError(f"x.dtype={p.dtype} is not supported, see docstring for supported types.")
    return _ndtri(p)
