"""Spherical harmonics."""

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
