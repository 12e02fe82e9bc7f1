"""The error function and the normal distribution function."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp
from pullback.numpy._creation import from_list
from pullback.scipy.special import _tables as tables
from pullback.scipy.special._common import inexact
from pullback.scipy.special._piecewise import evaluate, widened
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


_CENTRE = 15 / 4  # of (x - _CENTRE) / (x + _CENTRE), where erfcx has its tables


def _erfcx_right(size: Any) -> Any:
    """erfcx of numbers that are not below 0."""
    finite = jnp.minimum(size, 1e18)
    t = (finite - _CENTRE) / (finite + _CENTRE)
    return evaluate(tables.ERFCX_F32 if size.dtype.itemsize == 4 else tables.ERFCX, t) / (1 + 2 * size)


@custom_jvp
def _erfcx(x: Any) -> Any:
    value = _erfcx_right(jnp.abs(x))
    # Left of 0 it is 2 exp(x^2), and what x^2 loses by rounding counts.
    left = jnp.clip(x, -30, 0)
    square = left * left
    power = 2 * jnp.exp(square)
    lost = jnp.where(jnp.isinf(power), 0, power * lax.fma_p.bind(left, left, -square))
    return jnp.where(x < 0, power + lost - value, value)


@_erfcx.defjvp
def _erfcx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    y = _erfcx(x)
    return y, x_dot * (2 * x * y - 2 / math.sqrt(math.pi))


def real_erfcx(x: Any) -> Any:
    """exp(x^2) erfc(x) of real x, without underflow for large x."""
    x = inexact(x)
    return _erfcx(widened(x)).astype(x.dtype)


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
    share = jnp.where(tail, lost * (near + jnp.sqrt(near * near + 1.9)), 0)
    return lax.fma_p.bind(-half, share, half)  # the product alone may be too small to be kept


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


def _half_square(x: Any) -> tuple[Any, Any]:
    """x^2 / 2 and what it loses by rounding."""
    half = x * (x * 0.5)
    return half, jnp.where(jnp.isinf(half), 0, lax.fma_p.bind(x, x * 0.5, -half))


@custom_jvp
def _log_ndtr(x: Any) -> Any:
    """One logarithm: of erfcx / 2, less x^2 / 2, left of 0; of one less the other tail right of it.

    Both sides want erfcx of the size of x alone, so neither branch is evaluated beside the other.
    """
    left = x < 0
    half, lost = _half_square(x)
    ratio = _erfcx_right(jnp.abs(x) * math.sqrt(0.5)) * 0.5
    density = jnp.exp(-half)
    tail = ratio * lax.fma_p.bind(-density, lost, density)
    rest = 1 - tail
    value = jnp.log(jnp.where(left, ratio, rest))
    return jnp.where(left, (value - lost) - half, value + ((1 - rest) - tail) / rest)


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    y = _log_ndtr(x)
    # Left of 0 the exponents cancel, and the quotient of density and probability is that of erfcx.
    half, _ = _half_square(x)
    far = math.sqrt(2 / math.pi) / _erfcx_right(jnp.abs(x) * math.sqrt(0.5))
    near = jnp.exp(-half - y) / math.sqrt(2 * math.pi)
    return y, x_dot * jnp.where(x < 0, far, near)


def log_ndtr(x: Any, series_order: int = 3) -> Any:
    """log ndtr(x), accurate far below 0. `series_order` is accepted and not needed.

    Raises TypeError if x is complex, or series_order not an int.
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: argument 'series_order' is {series_order!r}; expected an int of Python")
    if series_order < 0:
        raise ValueError(f"log_ndtr: argument 'series_order' is {series_order}; expected at least 0")
    x = inexact(from_list(x))
    if not dtypes.issubdtype(x.dtype, np.floating):
        raise TypeError(f"log_ndtr: argument 'x' is of dtype {x.dtype}; accepted are real numbers")
    return _log_ndtr(widened(x)).astype(x.dtype)


@custom_jvp
def _ndtri(p: Any) -> Any:
    # In the tails the inverse error function of 2 p - 1 has lost p.
    middle = lax.erf_inv(2 * p - 1) * math.sqrt(2)
    tail = jnp.minimum(p, 1 - p)
    deep = tail < 0.1
    size = -2 * jnp.log(jnp.where(deep & (tail > 0), tail, 0.05))
    table = tables.QUANTILE_F32 if p.dtype.itemsize == 4 else tables.QUANTILE
    x = jnp.where(tail == 0, np.inf, jnp.sqrt(size) * evaluate(table, jnp.log(size)))
    out = jnp.where(deep, jnp.where(p < 0.5, -x, x), middle)
    return jnp.where((p < 0) | (p > 1), np.nan, out)


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (p_dot,) = primals, tangents
    x = _ndtri(p)
    return x, p_dot * math.sqrt(2 * math.pi) * jnp.exp(x * x / 2)


def ndtri(p: Any) -> Any:
    """The x with ndtr(x) = p; nan outside [0, 1]. Raises TypeError if p is complex."""
    p = inexact(p)
    if not dtypes.issubdtype(p.dtype, np.floating):
        raise TypeError(f"ndtri: argument 'p' is of dtype {p.dtype}; accepted are real numbers")
    return _ndtri(widened(p)).astype(p.dtype)
