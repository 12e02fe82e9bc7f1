"""Statistics of data: covariances, distances, kernels, clusters, counts, transport."""

from __future__ import annotations

from typing import Any

from ._family import family, normal


def _covariances() -> list[Any]:
    def by_function(jax, x):
        return jax.numpy.cov(x, rowvar=False)

    def by_product(jax, x):
        d = x - x.mean(0)
        return d.T @ d / (len(x) - 1)

    def einsum(jax, x):
        d = x - x.mean(0, keepdims=True)
        return jax.numpy.einsum("ni,nj->ij", d, d) / (x.shape[0] - 1)

    def by_moments(jax, x):
        np, n = jax.numpy, x.shape[0]
        m = x.mean(0)
        return (x.T @ x - n * np.outer(m, m)) / (n - 1)

    return [by_function, by_product, einsum, by_moments]


def _distances() -> list[Any]:
    """Squared distances between the rows of x and y."""

    def broadcast(jax, x, y):
        return jax.numpy.sum((x[:, None] - y[None]) ** 2, -1)

    def mapped(jax, x, y):
        return jax.vmap(lambda a: jax.vmap(lambda b: jax.numpy.sum((a - b) ** 2))(y))(x)

    def norms(jax, x, y):
        return jax.numpy.linalg.norm(x[:, None] - y[None], axis=-1) ** 2

    def einsum(jax, x, y):
        d = x[:, None] - y
        return jax.numpy.einsum("ijk,ijk->ij", d, d)

    def features_first(jax, x, y):
        return jax.numpy.sum((x.T[:, :, None] - y.T[:, None]) ** 2, 0)

    return [broadcast, mapped, norms, einsum, features_first]


def _kernels() -> list[Any]:
    """A Gaussian kernel matrix times a vector."""

    def broadcast(jax, x, v):
        return jax.numpy.exp(-0.5 * jax.numpy.sum((x[:, None] - x) ** 2, -1)) @ v

    def by_products(jax, x, v):
        np = jax.numpy
        s = np.sum(x * x, 1)
        return np.exp(x @ x.T - 0.5 * (s[:, None] + s)) @ v

    def mapped(jax, x, v):
        np = jax.numpy
        return jax.vmap(lambda a: np.exp(-0.5 * np.sum((a - x) ** 2, 1)) @ v)(x)

    def mapped_sum(jax, x, v):
        np = jax.numpy
        return jax.vmap(lambda a: np.sum(np.exp(-0.5 * np.sum((a - x) ** 2, 1)) * v))(x)

    return [broadcast, by_products, mapped, mapped_sum]


def _clusters() -> list[Any]:
    """A step of k-means: the means of the points next to each centre."""

    def segments(jax, x, c):
        np = jax.numpy
        near = np.argmin(np.sum((x[:, None] - c) ** 2, -1), 1)
        total = jax.ops.segment_sum(x, near, len(c))
        return total / np.maximum(1, np.bincount(near, length=len(c)))[:, None]

    def one_hot(jax, x, c):
        np = jax.numpy
        near = np.argmin(np.sum((x[:, None] - c) ** 2, -1), 1)
        h = jax.nn.one_hot(near, len(c))
        return (h.T @ x) / np.maximum(1, h.sum(0))[:, None]

    def scatter(jax, x, c):
        np = jax.numpy
        near = np.argmin(np.sum(c * c, 1) - 2 * x @ c.T, 1)
        total = np.zeros_like(c).at[near].add(x)
        return total / np.maximum(1, np.zeros(len(c)).at[near].add(1))[:, None]

    def masked(jax, x, c):
        np = jax.numpy
        near = np.argmin(jax.vmap(lambda a: np.sum((a - c) ** 2, 1))(x), 1)
        mask = near[:, None] == np.arange(len(c))
        return np.einsum("nk,nd->kd", mask.astype(x.dtype), x) / np.maximum(1, mask.sum(0))[:, None]

    return [segments, one_hot, scatter, masked]


def _counts() -> list[Any]:
    """How many elements of x lie in each of 64 equal intervals."""

    def by_function(jax, x):
        return jax.numpy.histogram(x, 64, (-3, 3))[0]

    def bincount(jax, x):
        np = jax.numpy
        inside = (x >= -3) & (x <= 3)
        place = np.clip(np.floor((x + 3) * (64 / 6)).astype("int32"), 0, 63)
        return np.bincount(place, inside.astype("int32"), length=64)

    def scatter(jax, x):
        np = jax.numpy
        inside = (x >= -3) & (x <= 3)
        place = np.clip(np.floor((x + 3) * (64 / 6)).astype("int32"), 0, 63)
        return np.zeros(64).at[place].add(inside)

    return [by_function, bincount, scatter]


def _transports() -> list[Any]:
    """Ten rounds of Sinkhorn's algorithm on a cost matrix."""

    def in_logs(jax, c):
        np, lse = jax.numpy, jax.scipy.special.logsumexp
        k = -10 * np.abs(c)

        def step(_, fg):
            f = -lse(k + fg[1][None], 1)
            return f, -lse(k + f[:, None], 0)

        return jax.lax.fori_loop(0, 10, step, (np.zeros(len(c)), np.zeros(c.shape[1])))

    def by_hand(jax, c):
        np = jax.numpy
        k = -10 * np.abs(c)

        def lse(x, axis):
            m = x.max(axis, keepdims=True)
            return np.squeeze(m, axis) + np.log(np.exp(x - m).sum(axis))

        def step(fg, _):
            f = -lse(k + fg[1], 1)
            return (f, -lse(k + f[:, None], 0)), None

        return jax.lax.scan(step, (np.zeros(len(c)), np.zeros(c.shape[1])), None, length=10)[0]

    def transposed(jax, c):
        np, lse = jax.numpy, jax.scipy.special.logsumexp
        k = -10 * np.abs(c)

        def step(_, fg):
            f = -lse(k.T + fg[1][:, None], 0)
            return f, -lse(k.T + f, 1)

        return jax.lax.fori_loop(0, 10, step, (np.zeros(len(c)), np.zeros(c.shape[1])))

    return [in_logs, by_hand, transposed]


def _best() -> list[Any]:
    """The largest element of each row, and where it is."""

    def by_functions(jax, x):
        return x.max(1), x.argmax(1)

    def gathered(jax, x):
        place = x.argmax(1)
        return jax.numpy.take_along_axis(x, place[:, None], 1)[:, 0], place

    def pairs(jax, x):
        np = jax.numpy

        def better(a, b):
            first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
            return np.where(first, a[0], b[0]), np.where(first, a[1], b[1])

        places = jax.lax.broadcasted_iota(np.int32, x.shape, 1)
        return jax.lax.reduce((x, places), (-np.inf, np.int32(2**31 - 1)), better, (1,))

    def top(jax, x):
        values, places = jax.lax.top_k(x, 1)
        return values[:, 0], places[:, 0]

    return [by_functions, gathered, pairs, top]


def _stacks() -> list[Any]:
    """The mean of 16 parts of an array."""

    def stacked(jax, x):
        return jax.numpy.stack([x[20 * k : 20 * k + 20] for k in range(16)]).mean(0)

    def reshaped(jax, x):
        return x.reshape(16, 20, -1).mean(0)

    def summed(jax, x):
        return sum(x[20 * k : 20 * k + 20] for k in range(16)) / 16

    def concatenated(jax, x):
        np = jax.numpy
        return np.mean(np.concatenate([x[None, 20 * k : 20 * k + 20] for k in range(16)]), 0)

    return [stacked, reshaped, summed, concatenated]


def _ranks() -> list[Any]:
    """The rank of each element, without ties."""

    def by_function(jax, x):
        return jax.scipy.stats.rankdata(x, "ordinal")

    def average(jax, x):
        return jax.scipy.stats.rankdata(x)

    def sorted_twice(jax, x):
        return jax.numpy.argsort(jax.numpy.argsort(x)) + 1.0

    def scattered(jax, x):
        np = jax.numpy
        return np.zeros(x.size).at[np.argsort(x)].set(np.arange(1.0, x.size + 1))

    return [by_function, average, sorted_twice, scattered]


def _polynomials() -> list[Any]:
    """A polynomial of degree 7."""

    def polyval(jax, c, x):
        return jax.numpy.polyval(c, x)

    def vander(jax, c, x):
        return jax.numpy.vander(x, 8) @ c

    def powers(jax, c, x):
        return (x[:, None] ** jax.numpy.arange(8)) @ c[::-1]

    def summed(jax, c, x):
        return sum(c[7 - k] * x**k for k in range(8))

    def whole_floats(jax, c, x):
        return sum(c[7 - k] * x ** float(k) for k in range(8))

    return [polyval, vander, powers, summed, whole_floats]


PROGRAMS = [
    *family("covariance, 4000 x 100", normal((4000, 100)), *_covariances()),
    *family("squared distances, 300 x 400 x 20", normal((300, 20), (400, 20)), *_distances()),
    *family("Gaussian kernel times a vector, 1000 x 10", normal((1000, 10), (1000,)), *_kernels()),
    *family("k-means step, 20,000 x 16 into 50", normal((20_000, 16), (50, 16)), *_clusters()),
    *family("histogram of 100,000", normal((100_000,)), *_counts()),
    *family("Sinkhorn, 300 x 500", normal((300, 500)), *_transports()),
    *family("best of each row, 2000 x 500", normal((2000, 500)), *_best()),
    *family("ranks of 30,000", normal((30_000,)), *_ranks()),
    *family("polynomial of degree 7, 100,000", normal((8,), (100_000,)), *_polynomials()),
    *family("mean of 16 parts", normal((320, 3000)), *_stacks()),
]
