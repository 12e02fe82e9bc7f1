"""Softmax, log-sum-exp, normalization, moments: along each axis, by function, by hand, and behind moved axes."""

from __future__ import annotations

from typing import Any

from ._family import family, normal


def _softmaxes(axis: int) -> list[Any]:
    def by_function(jax, x):
        return jax.nn.softmax(x, axis)

    def by_hand(jax, x):
        np = jax.numpy
        e = np.exp(x - np.max(x, axis, keepdims=True))
        return e / np.sum(e, axis, keepdims=True)

    def by_log(jax, x):
        return jax.numpy.exp(x - jax.scipy.special.logsumexp(x, axis, keepdims=True))

    def by_reciprocal(jax, x):
        np = jax.numpy
        e = np.exp(x - jax.lax.stop_gradient(x.max(axis, keepdims=True)))
        return e * (1 / e.sum(axis, keepdims=True))

    def moved(jax, x):
        np = jax.numpy
        return np.moveaxis(jax.nn.softmax(np.moveaxis(x, axis, -1), -1), -1, axis)

    def mapped(jax, x):
        if x.ndim == 2:
            return jax.vmap(jax.nn.softmax, 1 - axis, 1 - axis)(x)
        return jax.vmap(lambda y: jax.nn.softmax(y, axis - 1))(x)

    return [by_function, by_hand, by_log, by_reciprocal, moved, mapped]


def _log_sum_exps(axis: int) -> list[Any]:
    def by_function(jax, x):
        return jax.scipy.special.logsumexp(x, axis)

    def by_hand(jax, x):
        np = jax.numpy
        m = np.max(x, axis, keepdims=True)
        return np.squeeze(m, axis) + np.log(np.sum(np.exp(x - m), axis))

    def mapped(jax, x):
        return jax.vmap(jax.scipy.special.logsumexp, 1 - axis)(x)

    def from_softmax(jax, x):
        np = jax.numpy
        return np.max(x - jax.nn.log_softmax(x, axis), axis)

    return [by_function, by_hand, mapped, from_softmax]


def _normalizations(axis: int) -> list[Any]:
    def by_moments(jax, x):
        np = jax.numpy
        return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-5)

    def by_squares(jax, x):
        np = jax.numpy
        m = np.mean(x, axis, keepdims=True)
        return (x - m) * jax.lax.rsqrt(np.mean(x * x, axis, keepdims=True) - m * m + 1e-5)

    def by_function(jax, x):
        return jax.nn.standardize(x, axis, epsilon=1e-5)

    def by_hand(jax, x):
        np = jax.numpy
        n = x.shape[axis]
        d = x - np.sum(x, axis, keepdims=True) / n
        return d / np.sqrt(np.sum(np.square(d), axis, keepdims=True) / n + 1e-5)

    def transposed(jax, x):
        np = jax.numpy
        y = np.moveaxis(x, axis, 0)
        return np.moveaxis((y - y.mean(0)) / np.sqrt(y.var(0) + 1e-5), 0, axis)

    return [by_moments, by_squares, by_function, by_hand, transposed]


def _moments(axis: int) -> list[Any]:
    def by_functions(jax, x):
        return jax.numpy.mean(x, axis), jax.numpy.var(x, axis)

    def by_sums(jax, x):
        np = jax.numpy
        n = x.shape[axis]
        m = np.sum(x, axis) / n
        return m, np.sum((x - np.expand_dims(m, axis)) ** 2, axis) / n

    def by_products(jax, x):
        np = jax.numpy
        n, letters = x.shape[axis], "ij" if x.ndim == 2 else "bij"
        left = letters.replace(letters[axis], "")
        d = x - x.mean(axis, keepdims=True)
        return np.einsum(f"{letters}->{left}", x) / n, np.einsum(f"{letters},{letters}->{left}", d, d) / n

    def centered(jax, x):
        np = jax.numpy
        d = x - x.mean(axis, keepdims=True)
        return x.mean(axis), np.mean(jax.lax.square(d), axis)

    return [by_functions, by_sums, by_products, centered]


def _squares(axis: int) -> list[Any]:
    def summed(jax, x):
        return jax.numpy.sum(x * x, axis)

    def powers(jax, x):
        return jax.numpy.sum(x**2, axis)

    def einsum(jax, x):
        return jax.numpy.einsum("ij,ij->" + "ji"[axis], x, x)

    def mapped_dot(jax, x):
        return jax.vmap(jax.numpy.dot, 1 - axis)(x, x)

    def diagonal(jax, x):
        norm = jax.numpy.linalg.norm(x, axis=axis)
        return norm * norm

    return [summed, powers, einsum, mapped_dot, diagonal]


def _passes(axis: int) -> list[Any]:
    """A statistic of columns and new elements of the same data."""

    def together(jax, x):
        return jax.numpy.sum(x * x, axis), x * 2 + 1

    def apart(jax, x):
        y = jax.lax.optimization_barrier(x)
        return jax.numpy.sum(jax.numpy.square(x), axis), 2 * y + 1

    def einsum(jax, x):
        return jax.numpy.einsum("ij,ij->" + "ji"[axis], x, x), 1 + (x + x)

    return [together, apart, einsum]


SHAPES = {0: ((4096, 1024), (2000, 2500), (513, 3001), (11_600, 114)), 1: ((2000, 2500), (20_000, 100))}

PROGRAMS = [
    program
    for axis, shapes in SHAPES.items()
    for shape in shapes
    for name, make in (
        ("softmax", _softmaxes),
        ("log-sum-exp", _log_sum_exps),
        ("normalize", _normalizations),
        ("moments", _moments),
        ("sum of squares", _squares),
        ("statistic and map", _passes),
    )
    for program in family(f"{name} {shape[0]} x {shape[1]}, axis {axis}", normal(shape), *make(axis))
] + [
    program
    for name, make in (("softmax", _softmaxes), ("normalize", _normalizations), ("moments", _moments))
    for program in family(f"{name} 32 x 128 x 200, axis 1", normal((32, 128, 200)), *make(1))
]
