"""What all pairs of particles do to each other: forces as they are written down, and as gradients of the energy."""

from __future__ import annotations

from typing import Any

from ._family import family

SOFTENED = 0.01


def _masses(rng):
    return rng.standard_normal((1500, 3)).astype("f4"), rng.uniform(0.5, 1.5, 1500).astype("f4")


def _gravity() -> list[Any]:
    def written_down(jax, p, m):
        d = p[:, None] - p[None]
        r2 = (d**2).sum(-1) + SOFTENED
        return ((m[:, None] * m[None] * r2**-1.5)[..., None] * d).sum(1)

    def einsum(jax, p, m):
        d = p[:, None] - p[None]
        r2 = (d * d).sum(-1) + SOFTENED
        return jax.numpy.einsum("ij,ijk->ik", m[:, None] * m[None] * r2**-1.5, d)

    def one_by_one(jax, p, m):
        def force(x, mass):
            d = x - p
            return (d * (mass * m * ((d**2).sum(-1) + SOFTENED) ** -1.5)[:, None]).sum(0)

        return jax.vmap(force)(p, m)

    def gradient(jax, p, m):
        def energy(p):
            d = p[:, None] - p[None]
            return -0.5 * (m[:, None] * m[None] / jax.numpy.sqrt((d**2).sum(-1) + SOFTENED)).sum()

        return jax.grad(energy)(p)

    def gradient_of_pairs(jax, p, m):
        def pair(x, y, a, b):
            return a * b * jax.lax.rsqrt(jax.numpy.sum((x - y) ** 2) + SOFTENED)

        def energy(p):
            each = jax.vmap(jax.vmap(pair, (None, 0, None, 0)), (0, None, 0, None))
            return -0.5 * each(p, p, m, m).sum()

        return jax.grad(energy)(p)

    return [written_down, einsum, one_by_one, gradient, gradient_of_pairs]


PROGRAMS = [*family("gravity of 1500", _masses, *_gravity())]
