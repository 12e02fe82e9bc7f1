"""Quotients of complex numbers, as C99 (Annex G) and compiled code have them; NumPy's are NaN for infinite divisors.
Squares, whose real part is a product: it neither cancels nor overflows where the result does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def quotient(x: Any, y: Any) -> np.ndarray:
    """x / y. What NumPy finds is kept where nothing has overflowed or vanished on the way."""
    found = np.asarray(np.divide(x, y))
    size, limits = np.maximum(np.abs(y.real), np.abs(y.imag)), np.finfo(found.dtype)
    odd = ~(np.isfinite(found) & (size > limits.tiny / limits.eps) & (size < limits.max / 4))
    if np.any(odd):
        x, y = (np.broadcast_to(z, found.shape)[odd] for z in (x, y))
        found[odd] = _with_infinities(x, y)
    return found


def square(x: np.ndarray) -> np.ndarray:
    """x^2, of real and complex numbers."""
    if x.dtype.kind != "c":
        return np.square(x)
    return _complex((x.real - x.imag) * (x.real + x.imag), 2 * (x.real * x.imag))


def power(x: np.ndarray, y: int) -> np.ndarray:
    """x^y of complex numbers, by products."""
    if y == 2:
        return square(x)
    # Of x to a positive power might come infinity less infinity, whose inverse is no 0.
    out, base, n = None, quotient(x.dtype.type(1), x) if y < 0 else x, abs(y)
    while n:
        if n & 1:
            out = base if out is None else out * base
        base, n = base * base, n >> 1
    return np.ones_like(x) if out is None else out


def sign(x: np.ndarray) -> np.ndarray:
    """x / |x|, 0 at 0."""
    scaled, _ = _scaled(x)
    modulus = np.hypot(scaled.real, scaled.imag)
    return np.where(x == 0, x, _complex(scaled.real / modulus, scaled.imag / modulus))


def _complex(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """From both parts; sums with products by 1j lose signs of zeros and make NaN of infinities."""
    out = np.empty(np.shape(real), np.result_type(real, np.complex64))
    out.real, out.imag = real, imag
    return out


def _scaled(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x scaled by a power of two to about 1, the exponent of that power)."""
    exponent = np.frexp(np.maximum(np.abs(x.real), np.abs(x.imag)))[1]
    return _complex(np.ldexp(x.real, -exponent), np.ldexp(x.imag, -exponent)), exponent


def _boxed(x: np.ndarray) -> np.ndarray:
    """Infinite numbers as those of parts 0 and 1 in the same direction, others as they are."""
    odd = np.isinf(x.real) | np.isinf(x.imag)
    one = [np.where(odd, np.copysign(np.isinf(part).astype(part.dtype), part), part) for part in (x.real, x.imag)]
    return _complex(*one)


def _with_infinities(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    top, up = _scaled(x)
    bottom, down = _scaled(y)
    under = bottom.real**2 + bottom.imag**2
    real = np.ldexp((top.real * bottom.real + top.imag * bottom.imag) / under, up - down)
    imag = np.ldexp((top.imag * bottom.real - top.real * bottom.imag) / under, up - down)
    # Infinite / finite is infinite, finite / infinite is 0, other numbers / 0 are infinite.
    infinite = [np.isinf(z.real) | np.isinf(z.imag) for z in (x, y)]
    top, bottom = _boxed(x), _boxed(y)
    factor = np.where(infinite[1], 0, np.inf).astype(real.dtype)
    special = (infinite[0] != infinite[1]) & ~np.isnan(top) & ~np.isnan(bottom)
    real = np.where(special, factor * (top.real * bottom.real + top.imag * bottom.imag), real)
    imag = np.where(special, factor * (top.imag * bottom.real - top.real * bottom.imag), imag)
    far, zero = np.copysign(real.dtype.type(np.inf), y.real), y == 0
    return _complex(np.where(zero, far * x.real, real), np.where(zero, far * x.imag, imag))
