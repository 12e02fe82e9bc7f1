"""The logarithm of the gamma function of complex numbers.

Stirling's series (DLMF 5.11.1) where a part of z is large, to which the logarithm of z (z + 1) ... (z + n - 1)
leads; on the left the reflection with the branch of D. E. G. Hare, "Computing the principal branch of log-Gamma",
J. Algorithms 25 (1997), proposition 3.1; around the zeros at 1 and 2 Taylor's series (DLMF 5.7.3).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax

STEPS = 8
FAR = 24  # an imaginary part whose size alone is enough for Stirling's series
BERNOULLI = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
TERMS = 30  # of Taylor's series, for |z - 1| < 1/4


def _stirling(z: Any) -> Any:
    inverse = 1 / z
    square, tail = inverse * inverse, jnp.zeros_like(z)
    for c in reversed(BERNOULLI):
        tail = tail * square + c
    return (z - 0.5) * jnp.log(z) - z + math.log(2 * math.pi) / 2 + tail * inverse


def _right(z: Any) -> Any:
    """log Gamma(z), Re z >= 1/2."""
    # Far from the real axis the series converges as well, and the product might overflow.
    low = (lax.real(z) < STEPS) & (abs(lax.imag(z)) < FAR)
    start = jnp.where(low, z, STEPS)
    # One logarithm of the product, and by how many turns the sum of the logarithms is above it.
    product, angle = jnp.ones_like(z), jnp.zeros_like(lax.real(z))
    for k in range(STEPS):
        factor = start + k
        product = product * factor
        angle = angle + jnp.arctan2(lax.imag(factor), lax.real(factor))
    logarithm = jnp.log(product)
    turns = jnp.round((angle - lax.imag(logarithm)) / (2 * math.pi))
    logarithm = logarithm + lax.complex(jnp.zeros_like(turns), 2 * math.pi * turns)
    return _stirling(jnp.where(low, start + STEPS, z)) - jnp.where(low, logarithm, 0)


def _zeta(s: int) -> float:
    """The sum over n of n^-s, s > 1, by Euler and Maclaurin's formula (DLMF 25.2.9)."""
    n = 50.0
    falling = s * (s + 1) * (s + 2)
    rest = n / (s - 1) + 0.5 + s / (12 * n) - falling / (720 * n**3) + falling * (s + 3) * (s + 4) / (30240 * n**5)
    return math.fsum([*[k**-s for k in range(1, int(n))], rest * n**-s])


def _around_one(u: Any) -> Any:
    """log Gamma(1 + u), |u| < 1/4."""
    total = jnp.zeros_like(u)
    for k in range(TERMS, 1, -1):
        total = total * u + (-1) ** k * _zeta(k) / k
    return u * (total * u - np.euler_gamma)


def _log_sine(z: Any) -> Any:
    """The principal log sin(pi z), without overflow far from the real axis, where one exponential is by far larger."""
    x, y = lax.real(z), lax.imag(z)
    x = x - 2 * jnp.round(x / 2)
    up = lax.complex(x, jnp.abs(y))  # sin(pi z) = i/2 exp(-i pi z) (1 - exp(2 i pi z)), Im z >= 0
    near = jnp.abs(y) < 1
    # Exact at halves, so that the branch there is that of the other formula.
    sine = jnp.copysign(jnp.sin(math.pi * jnp.minimum(abs(x), 1 - abs(x))), x)
    cosine, low = jnp.sin(math.pi * (0.5 - abs(x))), jnp.where(near, y, 0.5) * math.pi
    inside = jnp.log(lax.complex(sine * jnp.cosh(low), cosine * jnp.sinh(low)))
    far = jnp.where(near, 1j, up)
    outside = -1j * math.pi * far + jnp.log1p(-jnp.exp(2j * math.pi * far)) + complex(-math.log(2), math.pi / 2)
    outside = jnp.where(lax.imag(outside) > math.pi, outside - 2j * math.pi, outside)
    return jnp.where(near, inside, jnp.where(y < 0, jnp.conj(outside), outside))


def complex_log_gamma(z: Any) -> Any:
    """log Gamma(z) of complex z, on the branch that is real for z > 0 and cut along z <= 0; NaN at poles."""
    x, y = lax.real(z), lax.imag(z)
    left = x < 0.5
    inner = jnp.where(left, 1 - z, z)
    one, two = abs(inner - 1) < 0.25, abs(inner - 2) < 0.25
    u = jnp.where(one, inner - 1, jnp.where(two, inner - 2, 0))
    series = _around_one(u) + jnp.where(two, jnp.log1p(u), 0)
    value = jnp.where(one | two, series, _right(jnp.where(one | two, 3, inner)))
    turns = jnp.copysign(2 * math.pi, y) * jnp.floor(0.5 * x + 0.25)
    sine = _log_sine(jnp.where(left, z, 0.5))
    mirrored = math.log(math.pi) + lax.complex(jnp.zeros_like(turns), turns) - sine - value
    pole = (x <= 0) & (y == 0) & (x == jnp.round(x))
    return jnp.where(pole, complex(np.nan, np.nan), jnp.where(left, mirrored, value)).astype(z.dtype)
