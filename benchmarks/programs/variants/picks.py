"""Ends of sorted rows, patches, phases, windows times a vector, tables by distance, payoffs of paths."""

from __future__ import annotations

from typing import Any

from ._family import family, normal


def _last_places() -> list[Any]:
    """Where the largest of each row is."""

    def argmax(jax, x):
        return jax.numpy.argmax(x, 1)

    def last_of_argsort(jax, x):
        return jax.numpy.argsort(x, 1)[:, -1]

    def first_of_negative(jax, x):
        return jax.numpy.argsort(-x, 1)[:, 0]

    def top(jax, x):
        return jax.lax.top_k(x, 1)[1][:, 0]

    return [argmax, last_of_argsort, first_of_negative, top]


def _patches() -> list[Any]:
    """8 x 8 pixels together."""

    def transposed(jax, x):
        return x.reshape(4, 32, 8, 32, 8, 3).transpose(0, 1, 3, 2, 4, 5)

    def stacked(jax, x):
        np = jax.numpy
        return np.stack([np.stack(np.split(rows, 32, 2), 1) for rows in np.split(x, 32, 1)], 1)

    def einsum(jax, x):
        return jax.numpy.einsum("bhpwqc->bhwpqc", x.reshape(4, 32, 8, 32, 8, 3))

    return [transposed, stacked, einsum]


def _filters() -> list[Any]:
    """32 neighbours times a vector."""

    def correlate(jax, x, h):
        return jax.numpy.correlate(x, h, mode="valid")

    def indexed(jax, x, h):
        np = jax.numpy
        return x[np.arange(len(x) - 31)[:, None] + np.arange(32)] @ h

    def mapped(jax, x, h):
        starts = jax.numpy.arange(len(x) - 31)
        return jax.vmap(lambda k: jax.lax.dynamic_slice(x, (k,), (32,)) @ h)(starts)

    return [correlate, indexed, mapped]


def _phases() -> list[Any]:
    def exponential(jax, a):
        return jax.numpy.exp(1j * a)

    def turned(jax, a):
        return jax.numpy.exp(a * 1j)

    def parts(jax, a):
        return jax.numpy.cos(a) + 1j * jax.numpy.sin(a)

    return [exponential, turned, parts]


def _distances() -> list[Any]:
    """A symmetric Toeplitz matrix."""

    def indexed(jax, c):
        i = jax.numpy.arange(len(c))
        return c[abs(i[:, None] - i)]

    def by_function(jax, c):
        return jax.scipy.linalg.toeplitz(c)

    return [indexed, by_function]


def _payoffs() -> list[Any]:
    """The mean of what is above 1 at the end of exponential paths."""

    def summed(jax, z):
        np = jax.numpy
        return np.maximum(np.exp(z.sum(1)) - 1, 0).mean()

    def last_of_paths(jax, z):
        np = jax.numpy
        return np.maximum(np.exp(np.cumsum(z, 1))[:, -1] - 1, 0).mean()

    return [summed, last_of_paths]


PROGRAMS = [
    *family("place of the largest, 2000 x 500", normal((2000, 500)), *_last_places()),
    *family("patches of 8 x 8, 4 x 256 x 256 x 3", normal((4, 256, 256, 3)), *_patches()),
    *family("32 neighbours times a vector, 50,000", normal((50_000,), (32,)), *_filters()),
    *family("phases of 300,000", normal((300_000,)), *_phases()),
    *family("Toeplitz matrix of 1000", normal((1000,)), *_distances()),
    *family("payoff of 5000 paths of 100", normal((5000, 100)), *_payoffs()),
]
