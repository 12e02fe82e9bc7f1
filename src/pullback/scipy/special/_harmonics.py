"""Spherical harmonics and Legendre functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import Tracer
from pullback.core.explain import check
from pullback.core.kinds import ARRAY, NESTED
from pullback.numpy._arguments import static_int
from pullback.scipy.special._common import real_arguments
from pullback.scipy.special._piecewise import widened
from pullback.util.errors import ArgumentError


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None, n_max: int | None = None) -> Any:
    """Spherical harmonics of degrees n and orders m at polar angles theta and azimuths phi, complex; 0 for |m| > n.

    n_max, a bound of all degrees, must be given where n is traced (TypeError). Raises ValueError if n or m are no
    integers or the angles complex, NotImplementedError for diff_n.
    """
    if diff_n is not None:
        raise NotImplementedError("sph_harm_y: argument 'diff_n'; use grad or jvp")
    check("sph_harm_y", NESTED, n=n, theta=theta, phi=phi)
    check("sph_harm_y", ARRAY, m=m)
    n, m = jnp.asarray(n), jnp.asarray(m)
    if not all(np.issubdtype(x.dtype, np.integer) for x in (n, m)):
        raise ValueError(f"sph_harm_y: n and m must be integers, got {n.dtype} and {m.dtype}")
    if n_max is None:
        if isinstance(n, Tracer):
            raise TypeError("sph_harm_y: argument 'n_max', a bound of n, must be given where n is traced")
        n_max = int(np.asarray(n).max(initial=0))
    if not isinstance(n_max, Tracer) and static_int(n_max, "sph_harm_y: argument 'n_max'") < 0:
        raise ArgumentError(f"sph_harm_y: argument 'n_max' must not be negative, got {n_max}")
    given_theta, given_phi = real_arguments("sph_harm_y", theta, phi)
    n, m, theta, phi = jnp.broadcast_arrays(n, m, widened(given_theta), widened(given_phi))
    order = abs(m)
    value = _legendre(n, order, theta, static_int(n_max, "sph_harm_y: argument 'n_max'"))
    value = jnp.where((m < 0) & (order % 2 == 1), -value, value)
    angle = m.astype(phi.dtype) * phi
    return lax.complex(value * jnp.cos(angle), value * jnp.sin(angle))


def _legendre(n: Any, m: Any, theta: Any, n_max: int) -> Any:
    """sqrt((2n + 1) / (4 pi) (n - m)! / (n + m)!) P_n^m(cos(theta)), m >= 0; zero for m > n.

    Along the diagonal to P_m^m, then up in the degree (W. H. Press and others, Numerical Recipes, 3rd edition, 6.7).
    """
    sine, cosine = jnp.sin(theta), jnp.cos(theta)
    dtype = theta.dtype
    order = m.astype(dtype)

    def step(state: Any, degree: Any) -> Any:
        below, here, value = state
        k = degree.astype(dtype)
        on_diagonal = degree <= m
        gap = jnp.where(on_diagonal, 1, k * k - order * order)
        earlier = jnp.where(on_diagonal, 0, (k - 1) ** 2 - order * order)
        up = jnp.sqrt((4 * k * k - 1) / gap)
        above = up * (cosine * here - jnp.sqrt(earlier / (4 * (k - 1) ** 2 - 1)) * below)
        above = jnp.where(on_diagonal, -jnp.sqrt(1 + 0.5 / k) * sine * here, above)
        below = jnp.where(on_diagonal, 0, here)
        return (below, above, jnp.where(degree == n, above, value)), None

    first = jnp.full_like(theta, math.sqrt(0.25 / math.pi))
    start = jnp.zeros_like(theta), first, jnp.where(n == 0, first, 0)
    value = lax.scan(step, start, jnp.arange(1, n_max + 1, dtype=np.int32))[0][2] if n_max else start[2]
    return jnp.where(m > n, 0, value)


def lpmn(m: int, n: int, z: Any) -> tuple[Any, Any]:
    """Associated Legendre functions P_l^k(z) of all orders k <= m and degrees l <= n, and their derivatives.

    m and n: the same static integer (NotImplementedError). z: vector of float32 or float64, from -1 to 1 (ValueError,
    TypeError). Returns two arrays of shape (m + 1, n + 1, z.size); zeros where the order is above the degree, NaN where
    |z| > 1.
    """
    z = _legendre_arguments("lpmn", m, n, z)
    values = _associated(z, n, False)
    orders = np.arange(n + 1)
    sine = jnp.sqrt(1 - z * z)
    # On the diagonal -k c z (1 - z^2)^(k / 2 - 1) where the function is c (1 - z^2)^(k / 2).
    odd = np.cumprod(-np.maximum(2.0 * orders - 1, 1) * np.where(orders > 0, 1, -1))
    diagonal = [
        lax.full_like(z, 0) if k == 0 else -k * odd[k] * z * (1 / sine if k == 1 else sine ** (k - 2)) for k in orders
    ]
    rows: list[Any] = []
    for degree in orders:
        columns = []
        for k in orders:
            if k >= degree:
                columns.append(diagonal[k] if k == degree else lax.full_like(z, 0))
                continue
            slope = (2 * degree - 1) / (degree - k) * (values[k, degree - 1] + z * rows[degree - 1][k])
            if degree >= 2:
                slope -= (degree + k - 1) / (degree - k) * rows[degree - 2][k]
            columns.append(slope)
        rows.append(columns)
    slopes = jnp.stack([jnp.stack(columns) for columns in rows], 1)
    outside = (abs(z) > 1) & (np.arange(n + 1) > 0)[:, None]
    return values, jnp.where(outside, np.nan, slopes)


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Any:
    """Associated Legendre functions P_l^k(z) of all orders k <= m and degrees l <= n.

    m, n, z, the shape: as for `lpmn`. With `is_normalized` times sqrt((2l + 1) / (4 pi) (l - k)! / (l + k)!), the
    factor that spherical harmonics have.
    """
    return _associated(_legendre_arguments("lpmn_values", m, n, z), n, bool(is_normalized))


def _legendre_arguments(name: str, m: Any, n: Any, z: Any) -> Any:
    check(name, ARRAY, z=z)
    z = jnp.asarray(z)
    if z.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name}: argument 'z' must be of float32 or float64, got {z.dtype}")
    if z.ndim != 1:
        raise ValueError(f"{name}: argument 'z' must be a vector, got shape {z.shape}")
    if m != n:
        raise NotImplementedError(f"{name}: orders and degrees to the same bound only, got m={m} and n={n}")
    if static_int(n, f"{name}: argument 'n'") < 0:
        raise ArgumentError(f"{name}: argument 'n' must not be negative, got {n}")
    return z


def _associated(z: Any, n: int, normalized: bool) -> Any:
    """P_l^k(z), [k, l, z]: from the diagonal k = l up in the degree, for all orders at once."""
    k = np.arange(n + 1, dtype=float)[:, None]
    odd = np.where(k > 0, -np.sqrt((2 * k + 1) / np.maximum(2 * k, 1)) if normalized else -(2 * k - 1), 1)
    powers = jnp.sqrt(1 - z * z) ** np.arange(n + 1)[:, None] if n else jnp.ones_like(z)[None]
    first = math.sqrt(0.25 / math.pi) if normalized else 1.0
    diagonal = (np.cumprod(odd, 0) * first).astype(z.dtype) * powers
    rows: list[Any] = []
    for degree in range(n + 1):
        gap = np.maximum(degree - k, 1)
        if normalized:
            up = np.sqrt((4.0 * degree * degree - 1) / np.maximum(degree * degree - k * k, 1)) if degree else k
            below = (degree - 1) ** 2
            down = up * np.sqrt(np.maximum(below - k * k, 0) / (4 * below - 1)) if degree > 1 else k
        else:
            up, down = (2 * degree - 1) / gap, (degree + k - 1) / gap
        row = up.astype(z.dtype) * z * rows[-1] if rows else diagonal
        if degree >= 2:
            row -= down.astype(z.dtype) * rows[-2]
        rows.append(jnp.where(k == degree, diagonal, jnp.where(k < degree, row, 0)))
    return jnp.stack(rows, 1)
