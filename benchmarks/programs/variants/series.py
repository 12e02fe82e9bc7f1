"""Few series that are long: their correlation, moments of many point clouds."""

from __future__ import annotations

from typing import Any

from ._family import family, normal


def _correlations() -> list[Any]:
    """Of two series."""

    def by_function(jax, x, y):
        return jax.numpy.corrcoef(x, y)[0, 1]

    def written_down(jax, x, y):
        np = jax.numpy
        dx, dy = x - x.mean(), y - y.mean()
        return (dx * dy).sum() / np.sqrt((dx**2).sum() * (dy**2).sum())

    def standardized(jax, x, y):
        return ((x - x.mean()) / x.std() * (y - y.mean()) / y.std()).mean()

    def norms(jax, x, y):
        dx, dy = x - x.mean(), y - y.mean()
        return dx @ dy / (jax.numpy.linalg.norm(dx) * jax.numpy.linalg.norm(dy))

    return [by_function, written_down, standardized, norms]


def _clouds() -> list[Any]:
    """3 x 3 moments of each of many clouds of points."""

    def einsum(jax, x, y):
        return jax.numpy.einsum("bki,bkj->bij", x, y)

    def mapped(jax, x, y):
        return jax.vmap(lambda a, b: a.T @ b)(x, y)

    def summed(jax, x, y):
        return (x[:, :, :, None] * y[:, :, None]).sum(1)

    return [einsum, mapped, summed]


PROGRAMS = [
    *family("correlation of two series of 100,000", normal((100_000,), (100_000,)), *_correlations()),
    *family("moments of 200 clouds of 1000", normal((200, 1000, 3), (200, 1000, 3)), *_clouds()),
]
