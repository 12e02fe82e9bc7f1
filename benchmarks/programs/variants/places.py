"""One element of each row, pieces side by side, windows and blocks: what goes where, by indices, masks and movement."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ._family import family, normal


def _entropies() -> list[Any]:
    """The gradient of a cross entropy of x (rows, classes), of which `y` are the right ones."""

    def by_gather(jax, x, y):
        def loss(x):
            return -jax.numpy.take_along_axis(jax.nn.log_softmax(x), y[:, None], 1).mean()

        return jax.grad(loss)(x)

    def indexed(jax, x, y):
        return jax.grad(lambda x: -jax.nn.log_softmax(x)[jax.numpy.arange(len(y)), y].mean())(x)

    def mapped(jax, x, y):
        def loss(x):
            return jax.vmap(lambda row, k: jax.nn.logsumexp(row) - row[k])(x, y).mean()

        return jax.grad(loss)(x)

    def one_hot(jax, x, y):
        def loss(x):
            return -(jax.nn.one_hot(y, x.shape[1]) * jax.nn.log_softmax(x)).sum(1).mean()

        return jax.grad(loss)(x)

    return [by_gather, indexed, mapped, one_hot]


def _pools() -> list[Any]:
    """The gradient of maxima over 2 x 2 pixels of x (images, height, width, features)."""

    def gradient(jax, pool, x):
        return jax.grad(lambda x: (pool(x) ** 2).sum())(x)

    def by_windows(jax, x):
        sizes = (1, 2, 2, 1)
        return gradient(jax, lambda x: jax.lax.reduce_window(x, -onp.inf, jax.lax.max, sizes, sizes, "VALID"), x)

    def blocks(jax, x):
        n, h, w, f = x.shape
        return gradient(jax, lambda x: x.reshape(n, h // 2, 2, w // 2, 2, f).max((2, 4)), x)

    def strided(jax, x):
        most = jax.numpy.maximum
        return gradient(
            jax, lambda x: most(most(x[:, ::2, ::2], x[:, 1::2, ::2]), most(x[:, ::2, 1::2], x[:, 1::2, 1::2])), x
        )

    return [by_windows, blocks, strided]


def _features() -> list[Any]:
    """Products of all pairs of columns."""

    def repeated(jax, x):
        return (x[:, :, None] * x[:, None]).reshape(len(x), -1)

    def joined(jax, x):
        return jax.numpy.concatenate([x * x[:, k : k + 1] for k in range(x.shape[1])], 1)

    def mapped(jax, x):
        return jax.vmap(lambda row: jax.numpy.outer(row, row).ravel())(x)

    def kron(jax, x):
        return jax.vmap(lambda row: jax.numpy.kron(row, row))(x)

    return [repeated, joined, mapped, kron]


def _outer_sums() -> list[Any]:
    """The sum of the outer products of rows."""

    def product(jax, x, y):
        return x.T @ y

    def repeated(jax, x, y):
        return (x[:, :, None] * y[:, None]).sum(0)

    def mapped(jax, x, y):
        return jax.vmap(jax.numpy.outer)(x, y).sum(0)

    def einsum(jax, x, y):
        return jax.numpy.einsum("ni,nj->ij", x, y)

    return [product, repeated, mapped, einsum]


def _windows() -> list[Any]:
    """The largest of each 100 neighbours."""

    def indexed(jax, x):
        np = jax.numpy
        return x[np.arange(len(x) - 99)[:, None] + np.arange(100)].max(1)

    def mapped(jax, x):
        starts = jax.numpy.arange(len(x) - 99)
        return jax.vmap(lambda k: jax.lax.dynamic_slice(x, (k,), (100,)))(starts).max(1)

    def by_windows(jax, x):
        return jax.lax.reduce_window(x, -onp.inf, jax.lax.max, (100,), (1,), "VALID")

    return [indexed, mapped, by_windows]


def _krons() -> list[Any]:
    def by_function(jax, x, y):
        return jax.numpy.kron(x, y)

    def einsum(jax, x, y):
        return jax.numpy.einsum("ij,kl->ikjl", x, y).reshape(len(x) * len(y), -1)

    def repeated(jax, x, y):
        return (x[:, None, :, None] * y[None, :, None]).reshape(len(x) * len(y), -1)

    return [by_function, einsum, repeated]


def _columns() -> list[Any]:
    """Sines of multiples of x, side by side."""

    def stacked(jax, x):
        return jax.numpy.stack([jax.numpy.sin(x * k) for k in range(8)], 1)

    def column_by_column(jax, x):
        found = jax.numpy.zeros((len(x), 8), x.dtype)
        for k in range(8):
            found = found.at[:, k].set(jax.numpy.sin(x * k))
        return found

    def outer(jax, x):
        return jax.numpy.sin(jax.numpy.outer(x, jax.numpy.arange(8, dtype=x.dtype)))

    return [stacked, column_by_column, outer]


def _rotations() -> list[Any]:
    """The gradient of what rotations by x about an axis weigh."""

    def gradient(jax, rotation, x, w):
        return jax.grad(lambda x: ((rotation(x) - w) ** 2).sum())(x)

    def one(jax, x):
        c, s = jax.numpy.cos(x), jax.numpy.sin(x)
        return jax.numpy.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])

    def mapped(jax, x, w):
        return gradient(jax, jax.vmap(lambda x: one(jax, x)), x, w)

    def set_one_by_one(jax, x, w):
        def rotation(x):
            c, s = jax.numpy.cos(x), jax.numpy.sin(x)
            found = jax.numpy.zeros((len(x), 3, 3), x.dtype).at[:, 0, 0].set(c).at[:, 0, 1].set(-s)
            return found.at[:, 1, 0].set(s).at[:, 1, 1].set(c).at[:, 2, 2].set(1.0)

        return gradient(jax, rotation, x, w)

    def mapped_sets(jax, x, w):
        def rotation(x):
            c, s = jax.numpy.cos(x), jax.numpy.sin(x)
            return jax.numpy.eye(3).at[0, 0].set(c).at[0, 1].set(-s).at[1, 0].set(s).at[1, 1].set(c)

        return gradient(jax, jax.vmap(rotation), x, w)

    return [mapped, set_one_by_one, mapped_sets]


def _shares(rng):
    return rng.standard_normal((1500, 10)).astype("f4"), rng.integers(0, 10, 1500).astype("i4")


def _around() -> list[Any]:
    """The gradient of a five-point stencil of u, whose ends are neighbours."""

    def gradient(jax, laplacian, u):
        return jax.grad(lambda u: (laplacian(u) ** 2).sum())(u)

    def rolls(jax, u):
        roll = jax.numpy.roll
        return gradient(jax, lambda u: roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4 * u, u)

    def indices(jax, u):
        i = jax.numpy.arange(len(u))
        up, down = (i - 1) % len(u), (i + 1) % len(u)
        return gradient(jax, lambda u: u[up] + u[down] + u[:, up] + u[:, down] - 4 * u, u)

    def padded(jax, u):
        def laplacian(u):
            p = jax.numpy.pad(u, 1, mode="wrap")
            return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] - 4 * u

        return gradient(jax, laplacian, u)

    def convolution(jax, u):
        w = onp.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], "f4")[None, None]

        def laplacian(u):
            p = jax.numpy.pad(u, 1, mode="wrap")[None, None]
            return jax.lax.conv_general_dilated(p, w, (1, 1), "VALID")

        return gradient(jax, laplacian, u)

    return [rolls, indices, padded, convolution]


def _grown() -> list[Any]:
    """Where any element of x (height, width) within 2 is positive."""

    def truth(jax, x):
        return jax.lax.reduce_window(x > 0, False, jax.lax.bitwise_or, (5, 5), (1, 1), "SAME")

    def bytes_(jax, x):
        found = jax.lax.reduce_window((x > 0).astype("u1"), onp.uint8(0), jax.lax.max, (5, 5), (1, 1), "SAME")
        return found > 0

    def shifts(jax, x):
        h, w = x.shape
        p = jax.numpy.pad(x > 0, 2)
        found = p[:h, :w]
        for i in range(5):
            for j in range(5):
                found = found | p[i : i + h, j : j + w]
        return found

    return [truth, bytes_, shifts]


def _fields() -> list[Any]:
    """A step of Maxwell's equations in two dimensions, in its cells or around a torus."""

    def insides(jax, e, h, k):
        h = h.at[:, :-1].add(0.5 * (e[:, :-1] - e[:, 1:]))
        k = k.at[:-1].add(0.5 * (e[1:] - e[:-1]))
        e = e.at[1:-1, 1:-1].add(0.5 * (k[1:-1, 1:-1] - k[:-2, 1:-1] - h[1:-1, 1:-1] + h[1:-1, :-2]))
        return e, h, k

    def padded(jax, e, h, k):
        pad = jax.numpy.pad
        h = h + 0.5 * pad(e[:, :-1] - e[:, 1:], ((0, 0), (0, 1)))
        k = k + 0.5 * pad(e[1:] - e[:-1], ((0, 1), (0, 0)))
        curl = k[1:-1, 1:-1] - k[:-2, 1:-1] - h[1:-1, 1:-1] + h[1:-1, :-2]
        return e + 0.5 * pad(curl, 1), h, k

    return [insides, padded]


def _nine() -> list[Any]:
    """The gradient of the nine-point stencil of an array whose ends are neighbours."""

    def gradient(jax, stencil, x, k):
        return jax.grad(lambda x: (stencil(x, k) ** 2).sum())(x)

    def rolls(jax, x, k):
        roll = jax.numpy.roll
        return gradient(
            jax, lambda x, k: sum(k[i, j] * roll(x, (1 - i, 1 - j), (0, 1)) for i in range(3) for j in range(3)), x, k
        )

    def convolution(jax, x, k):
        def stencil(x, k):
            p = jax.numpy.pad(x, 1, mode="wrap")
            return jax.lax.conv_general_dilated(p[None, None], k[None, None], (1, 1), "VALID")[0, 0]

        return gradient(jax, stencil, x, k)

    return [rolls, convolution]


PROGRAMS = [
    *family("gradient of cross entropy, 1500 x 10", _shares, *_entropies()),
    *family("gradient of maxima of 2 x 2, 4 x 64 x 64 x 16", normal((4, 64, 64, 16)), *_pools()),
    *family("products of columns, 5000 x 12", normal((5000, 12)), *_features()),
    *family("sum of outer products, 800 x 40 x 30", normal((800, 40), (800, 30)), *_outer_sums()),
    *family("maxima of 100 neighbours, 10000", normal((10000,)), *_windows()),
    *family("Kronecker product, 30 x 30", normal((30, 30), (30, 30)), *_krons()),
    *family("columns of sines, 100000 x 8", normal((100000,)), *_columns()),
    *family("gradient of a wrapped stencil, 300 x 300", normal((300, 300)), *_around()),
    *family("positive within 2, 300 x 200", normal((300, 200)), *_grown()),
    *family("fields in 400 x 401 cells", normal((400, 401), (400, 401), (400, 401)), *_fields()),
    *family("gradient of nine points, 1024 x 1024", normal((1024, 1024), (3, 3)), *_nine()),
    *family("gradient of rotations, 30000", normal((30000,), (30000, 3, 3)), *_rotations()),
]
