"""Windows: vectors that fall off towards both ends. M is the static number of points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.numpy._arguments import convert, static_int
from pullback.numpy._float_parts import i0
from pullback.util import dtypes


def _points(name: str, M: Any) -> tuple[int, np.dtype]:
    # int() takes numbers of all kinds, and arrays of one number.
    n = static_int(M, f"M argument of jnp.{name}") if isinstance(M, (int, Tracer)) else int(M)
    if n < 0:
        raise TypeError(f"{name}: argument 'M' is {n}; shape must have every element be nonnegative")
    return n, np.dtype(dtypes.canonicalize_dtype(np.float64))


def _cosines(name: str, M: Any, *weights: float) -> Any:
    """Sum of weights[k] * cos(2 pi k n / (M - 1))."""
    m, dtype = _points(name, M)
    if m <= 1:
        return lax.full((m,), 1, dtype)
    n = lax.iota(dtype, m)
    total = lax.full((m,), weights[0], dtype)
    for k, w in enumerate(weights[1:], start=1):
        angle = lax.mul(n, lax.full((m,), 2 * math.pi * k / (m - 1), dtype))
        total = lax.add(total, lax.mul(lax.full((m,), w, dtype), lax.cos(angle)))
    return total


def blackman(M: int) -> Any:
    """Blackman window: 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1))."""
    return _cosines("blackman", M, 0.42, -0.5, 0.08)


def hamming(M: int) -> Any:
    """Hamming window: 0.54 - 0.46 cos(2 pi n / (M - 1))."""
    return _cosines("hamming", M, 0.54, -0.46)


def hanning(M: int) -> Any:
    """Hann window: 0.5 - 0.5 cos(2 pi n / (M - 1))."""
    return _cosines("hanning", M, 0.5, -0.5)


def bartlett(M: int) -> Any:
    """Bartlett window: a triangle that is 0 at both ends."""
    m, dtype = _points("bartlett", M)
    if m <= 1:
        return lax.full((m,), 1, dtype)
    n = lax.iota(dtype, m)
    half = lax.full((m,), (m - 1) / 2, dtype)
    return lax.sub(lax.full((m,), 1, dtype), lax.div(lax.abs(lax.sub(n, half)), half))


def kaiser(M: int, beta: Any) -> Any:
    """Kaiser window: i0(beta sqrt(1 - (n / a - 1)**2)) / i0(beta) with a = (M - 1) / 2."""
    m, dtype = _points("kaiser", M)
    if dtypes.issubdtype(dtypes.dtype_of(beta), np.complexfloating):
        raise ValueError(f"kaiser: argument 'beta' must be real, got {beta}")
    if m <= 1:
        return lax.full((m,), 1, dtype)
    beta = convert(beta, dtype)
    alpha = lax.full((m,), 0.5 * (m - 1), dtype)
    t = lax.div(lax.sub(lax.iota(dtype, m), alpha), alpha)
    inside = lax.sqrt(lax.max(lax.sub(lax.full((m,), 1, dtype), lax.square(t)), lax.full((m,), 0, dtype)))
    top = i0(lax.mul(lax.broadcast_in_dim(beta, (m,), ()), inside))
    return lax.div(top, lax.broadcast_in_dim(i0(beta), (m,), ()))
