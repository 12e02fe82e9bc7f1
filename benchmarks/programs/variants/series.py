"""Products that are no work for a kernel: few long series, many point clouds, truth values, windows over images."""

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


def _reached() -> list[Any]:
    """Which nodes two steps of a graph reach."""

    def product(jax, a, b):
        return a @ b

    def written_down(jax, a, b):
        return (a[:, :, None] & b[None]).any(1)

    def row_by_row(jax, a, b):
        return jax.vmap(lambda row: (row[:, None] & b).any(0))(a)

    def numbers(jax, a, b):
        return a.astype("float32") @ b.astype("float32") > 0

    return [product, written_down, row_by_row, numbers]


def _blurs() -> list[Any]:
    """25 pixels around each, those of the edge repeated beyond it."""
    weights = [1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16]

    def pixels(jax, x):
        wide = jax.numpy.pad(x, 2, mode="edge")
        around = [(i, j) for i in range(5) for j in range(5)]
        return sum(weights[i] * weights[j] * wide[i : i + 512, j : j + 512] for i, j in around)

    def convolved(jax, x):
        wide, w = jax.numpy.pad(x, 2, mode="edge"), jax.numpy.asarray(weights)
        return jax.lax.conv(wide[None, None], jax.numpy.outer(w, w)[None, None], (1, 1), "VALID")[0, 0]

    return [pixels, convolved]


def _lives() -> list[Any]:
    """A step of the game of life."""
    around = [[1, 1, 1], [1, 0, 1], [1, 1, 1]]

    def rule(jax, x, n):
        return jax.numpy.where((n == 3) | ((x == 1) & (n == 2)), 1.0, 0.0)

    def shifted(jax, x):
        wide = jax.numpy.pad(x, 1)
        return rule(jax, x, sum(wide[i : i + 512, j : j + 512] for i in range(3) for j in range(3) if i != 1 or j != 1))

    def convolved(jax, x):
        w = jax.numpy.asarray(around, "float32")
        return rule(jax, x, jax.lax.conv(x[None, None], w[None, None], (1, 1), "SAME")[0, 0])

    def by_function(jax, x):
        return rule(jax, x, jax.scipy.signal.convolve2d(x, jax.numpy.asarray(around, "float32"), mode="same"))

    return [shifted, convolved, by_function]


def _board(rng):
    return ((rng.random((512, 512)) < 0.3).astype("f4"),)


def _steps() -> list[Any]:
    """A step of the heat equation between edges that stay what they are."""

    def inner(u):
        return u[1:-1, 1:-1] + 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])

    def added(jax, u):
        return u.at[1:-1, 1:-1].add(inner(u) - u[1:-1, 1:-1])

    def inside_set(jax, u):
        return u.at[1:-1, 1:-1].set(inner(u))

    def joined(jax, u):
        np = jax.numpy
        return np.concatenate([u[:1], np.concatenate([u[1:-1, :1], inner(u), u[1:-1, -1:]], 1), u[-1:]])

    return [added, inside_set, joined]


def _graphs(rng):
    return tuple(rng.random((2, 200, 200)) < 0.1)


PROGRAMS = [
    *family("correlation of two series of 100,000", normal((100_000,), (100_000,)), *_correlations()),
    *family("moments of 200 clouds of 1000", normal((200, 1000, 3), (200, 1000, 3)), *_clouds()),
    *family("two steps in a graph of 200", _graphs, *_reached()),
    *family("blur of 5 x 5, 512 x 512", normal((512, 512)), *_blurs()),
    *family("game of life, 512 x 512", _board, *_lives()),
    *family("heat between fixed edges, 400 x 300", normal((400, 300)), *_steps()),
]
