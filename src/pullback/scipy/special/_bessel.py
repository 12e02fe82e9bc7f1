"""Bessel functions: modified ones of orders 0 and 1, and of the first kind."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp
from pullback.core.explain import check
from pullback.core.kinds import NUMBER
from pullback.numpy._arguments import static_int
from pullback.numpy._creation import from_list
from pullback.numpy._float_parts import bessel_i0, bessel_i1
from pullback.scipy.special._common import inexact, real_arguments
from pullback.scipy.special._piecewise import widened
from pullback.util.errors import ArgumentError
from pullback.util.promoting import promoting_freely


def i0e(x: Any) -> Any:
    """exp(-|x|) I_0(x)."""
    return lax.bessel_i0e(inexact(x))


def i0(x: Any) -> Any:
    """I_0(x)."""
    return bessel_i0(inexact(x))


def i1e(x: Any) -> Any:
    """exp(-|x|) I_1(x)."""
    return lax.bessel_i1e(inexact(x))


def i1(x: Any) -> Any:
    """I_1(x)."""
    return bessel_i1(inexact(x))


def _hankel(z: Any) -> tuple[Any, Any]:
    """J_0 and J_1 for z >= 25 (Abramowitz and Stegun 9.2.5, 9.2.9, 9.2.10)."""
    sine, cosine = jnp.sin(z), jnp.cos(z)
    values = []
    for order in (0, 1):
        even, odd = jnp.zeros_like(z), jnp.zeros_like(z)
        # P - i Q = sum of a_k (-i)^k / z^k, a_k = a_(k-1) (4 n^2 - (2k - 1)^2) / (8 k).
        coefficients = [1.0]
        for k in range(1, 25):
            coefficients.append(coefficients[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
        t = 1 / z
        for k in range(24, -1, -2):
            even = even * -(t * t) + coefficients[k]
        for k in range(23, 0, -2):
            odd = odd * -(t * t) + coefficients[k]
        odd = odd * t
        # z - (n / 2 + 1 / 4) pi without the subtraction
        a, b = (cosine + sine, sine - cosine) if order == 0 else (sine - cosine, -(sine + cosine))
        values.append((even * a - odd * b) / jnp.sqrt(math.pi * z))
    return values[0], values[1]


def _series(z: Any, orders: int) -> Any:
    """J_0 to J_orders for z <= 1: (z / 2)^n / n! times a series in z^2 (9.1.10)."""
    square, factor, values = -z * z / 4, jnp.ones_like(z), []
    for n in range(orders + 1):
        total = jnp.ones_like(z)
        for k in range(9, 0, -1):
            total = 1 + total * square / (k * (n + k))
        values.append(factor * total)
        factor = factor * (z / 2) / (n + 1)
    return jnp.stack(values)


def _backward(z: Any, orders: int, limit: int) -> Any:
    """J_0 to J_orders for 1 <= z <= limit: J. C. P. Miller's recurrence from above, scaled to J_0 + 2 J_2 + ... = 1."""
    start = limit + math.ceil(12 * limit ** (1 / 3))
    large = 2.0**40

    def step(state: Any, n: Any) -> Any:
        above, here, total, scalings = state
        total = total + jnp.where(n % 2 == 0, jnp.where(n == 0, 1, 2), 0).astype(z.dtype) * here
        out = here, scalings
        below = 2 * n.astype(z.dtype) / z * here - above
        much = abs(below) > large
        scale = jnp.where(much, 1 / large, 1).astype(z.dtype)
        return (here * scale, below * scale, total * scale, scalings + much.astype(scalings.dtype)), out

    first = jnp.zeros_like(z), jnp.full_like(z, 1e-20), jnp.zeros_like(z), jnp.zeros(z.shape, np.int32)
    numbers = jnp.arange(start, -1, -1, dtype=np.int32)
    state, _ = lax.scan(lambda s, n: (step(s, n)[0], None), first, numbers[: start - orders])
    (_, _, total, last), (values, scalings) = lax.scan(step, state, numbers[start - orders :])
    # What was stored before the last n rescalings is too large by 2^(40 n).
    missing = (last - scalings).astype(z.dtype)
    return (values * jnp.exp2(-40 * missing) / total)[::-1]


def _first_kind(z: Any, orders: int) -> Any:
    limit = max(25, orders)
    size = abs(z)
    small, large = size < 1, size > limit
    distant = jnp.where(large & (size < np.inf), size, limit)
    near = _series(jnp.where(small, size, 0), orders)
    middle = _backward(jnp.where(small | large | jnp.isnan(size), 1, size), orders, limit)
    far = list(_hankel(distant))
    for n in range(1, orders):
        far.append(2 * n / distant * far[n] - far[n - 1])
    values = jnp.where(small, near, jnp.where(large, jnp.stack(far[: orders + 1]), middle))
    values = jnp.where(size == np.inf, 0, jnp.where(jnp.isnan(size), np.nan, values))
    odd = (np.arange(orders + 1) % 2 == 1).reshape(-1, *[1] * z.ndim)
    return jnp.where(odd & (z < 0), -values, values)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _bessel_jn(z: Any, orders: int) -> Any:
    return _first_kind(z, orders)


@_bessel_jn.defjvp
def _bessel_jn_jvp(orders: int, primals: Any, tangents: Any) -> Any:
    (z,), (z_dot,) = primals, tangents
    values = _bessel_jn(z, orders + 1)
    below = jnp.concatenate([-values[1:2], values[:-2]])
    return values[:-1], (below - values[1:]) / 2 * z_dot


@promoting_freely
def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Any:
    """J_0(z) to J_v(z) of real z, stacked along a new first axis.

    The number of steps follows from v; `n_iter` is what JAX has in its place. Raises ValueError if z is complex or v is
    negative.
    """
    z, orders = real_arguments("bessel_jn", from_list(z)), static_int(v, "bessel_jn: argument 'v'")
    check("bessel_jn", NUMBER, n_iter=n_iter)
    if n_iter < 0 or n_iter != n_iter:
        raise ArgumentError(f"bessel_jn: argument 'n_iter' must not be negative, got {n_iter}")
    if orders < 0:
        raise ValueError(f"bessel_jn: the order v must not be negative, got {v}")
    return _bessel_jn(widened(z), orders).astype(z.dtype)
