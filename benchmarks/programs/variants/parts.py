"""Products of which a part is wanted, sums of groups, running sums, and polynomials with their slopes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ._family import family, normal


def _traces() -> list[Any]:
    """The trace of x y."""

    def trace(jax, x, y):
        return jax.numpy.trace(x @ y)

    def sum_of_diagonal(jax, x, y):
        return jax.numpy.diag(x @ y).sum()

    def sum_of_products(jax, x, y):
        return (x * y.T).sum()

    def einsum(jax, x, y):
        return jax.numpy.einsum("ij,ji->", x, y)

    def vdot(jax, x, y):
        return jax.numpy.vdot(x, y.T)

    return [trace, sum_of_diagonal, sum_of_products, einsum, vdot]


def _running() -> list[Any]:
    """Running sums down columns."""

    def cumsum(jax, x):
        return jax.numpy.cumsum(x, 0)

    def triangle(jax, x):
        return jax.numpy.tril(jax.numpy.ones((len(x), len(x)))) @ x

    def compared(jax, x):
        i = jax.numpy.arange(len(x))
        return (i[:, None] >= i).astype(x.dtype) @ x

    def associative(jax, x):
        return jax.lax.associative_scan(jax.numpy.add, x)

    return [cumsum, triangle, compared, associative]


def _rows() -> list[Any]:
    """Rows of a table."""

    def index(jax, table, i):
        return table[i]

    def take(jax, table, i):
        return jax.numpy.take(table, i, axis=0)

    def one_hot(jax, table, i):
        return jax.nn.one_hot(i, len(table)) @ table

    def rows_of_identity(jax, table, i):
        return jax.numpy.eye(len(table))[i] @ table

    return [index, take, one_hot, rows_of_identity]


def _groups() -> list[Any]:
    """Sums of the rows of each group."""

    def segment_sum(jax, x, i):
        return jax.ops.segment_sum(x, i, 50)

    def scatter(jax, x, i):
        return jax.numpy.zeros((50, x.shape[1])).at[i].add(x)

    def one_hot(jax, x, i):
        return jax.nn.one_hot(i, 50).T @ x

    def masks(jax, x, i):
        return jax.vmap(lambda k: jax.numpy.where((i == k)[:, None], x, 0).sum(0))(jax.numpy.arange(50))

    def counts_by_column(jax, x, i):
        return jax.vmap(lambda c: jax.numpy.bincount(i, c, length=50), 1, 1)(x)

    return [segment_sum, scatter, one_hot, masks, counts_by_column]


def _scatter_matrices() -> list[Any]:
    """The scatter matrix of centred rows."""

    def product(jax, x):
        c = x - x.mean(0)
        return c.T @ c

    def cov(jax, x):
        return jax.numpy.cov(x.T) * (len(x) - 1)

    def outer_products(jax, x):
        return jax.vmap(lambda v: jax.numpy.outer(v, v))(x - x.mean(0)).sum(0)

    def broadcasts(jax, x):
        c = x - x.mean(0)
        return (c[:, :, None] * c[:, None]).sum(0)

    return [product, cov, outer_products, broadcasts]


def _slopes() -> list[Any]:
    """The slopes of a sum of polynomials in their argument and their coefficients."""

    def by(f: Any) -> Any:
        @functools.wraps(f)
        def slopes(jax, x, c):
            return jax.grad(lambda x, c: f(jax, x, c).sum(), (0, 1))(x, c)

        return slopes

    def polyval(jax, x, c):
        return jax.numpy.polyval(c, x)

    def vander(jax, x, c):
        return jax.numpy.vander(x, 6) @ c

    def powers(jax, x, c):
        return (c * x[:, None] ** jax.numpy.arange(5, -1, -1)).sum(1)

    def floats(jax, x, c):
        return x[:, None] ** jax.numpy.arange(5.0, -1.0, -1.0) @ c

    def terms(jax, x, c):
        return sum(c[5 - k] * x**k for k in range(6))

    return [by(f) for f in (polyval, vander, powers, floats, terms)]


def _middle() -> list[Any]:
    """Sums along the middle axis."""

    def total(jax, x):
        return x.sum(1)

    def product_with_ones(jax, x):
        return jax.numpy.ones(x.shape[1]) @ x

    def tensordot_with_ones(jax, x):
        return jax.numpy.tensordot(x, jax.numpy.ones(x.shape[1]), (1, 0))

    def einsum(jax, x):
        return jax.numpy.einsum("ijk->ik", x)

    return [total, product_with_ones, tensordot_with_ones, einsum]


def _numbers(count: int, most: int, *shape: int) -> Any:
    """Inputs: a normal array and numbers below `most`."""
    return lambda rng: (rng.standard_normal(shape).astype("f4"), rng.integers(0, most, count).astype("i4"))


def _points(rng: np.random.Generator) -> tuple:
    return rng.random(20_000).astype("f4"), rng.standard_normal(6).astype("f4")


PROGRAMS = [
    *family("trace of a product, 500 x 400", normal((500, 400), (400, 500)), *_traces()),
    *family("running sums, 1000 x 300", normal((1000, 300)), *_running()),
    *family("rows of a table, 4000 of 1000 x 64", _numbers(4000, 1000, 1000, 64), *_rows()),
    *family("sums of groups, 5000 x 16, 50 groups", _numbers(5000, 50, 5000, 16), *_groups()),
    *family("scatter matrix, 2000 x 60", normal((2000, 60)), *_scatter_matrices()),
    *family("slopes of polynomials of degree 5, 20,000", _points, *_slopes()),
    *family("sums along the middle, 60 x 200 x 60", normal((60, 200, 60)), *_middle()),
]
