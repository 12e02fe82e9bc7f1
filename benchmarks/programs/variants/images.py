"""Images made larger and smaller, with channels first and last, and the gradients of that."""

from __future__ import annotations

from ._family import family, normal


def _larger(method, factor):
    def last(jax, x):
        n, h, w, c = x.shape
        return jax.image.resize(x, (n, int(factor * h), int(factor * w), c), method)

    def first(jax, x):
        n, h, w, c = x.shape
        x = x.reshape(n, c, h, w)
        return jax.image.resize(x, (n, c, int(factor * h), int(factor * w)), method)

    return [last, first]


def _slopes(method):
    def one(spelling):
        def f(jax, x):
            return jax.grad(lambda x: (spelling(jax, x) ** 2).sum())(x)

        f.__name__ = spelling.__name__
        return f

    return list(map(one, _larger(method, 2)))


def _repeated():
    def last(jax, x, w):
        np = jax.numpy
        return jax.grad(lambda x: (np.repeat(np.repeat(x, 2, 1), 2, 2) * w).sum())(x)

    def first(jax, x, w):
        np = jax.numpy
        (n, h, k, c), w = x.shape, w.reshape(w.shape[0], w.shape[3], *w.shape[1:3])
        return jax.grad(lambda x: (np.repeat(np.repeat(x, 2, 2), 2, 3) * w).sum())(x.reshape(n, c, h, k))

    return [last, first]


IMAGES = normal((8, 64, 65, 16))

PROGRAMS = [
    *family("cubic interpolation to twice the size, 8 x 64 x 65 x 16", IMAGES, *_larger("cubic", 2)),
    *family("linear interpolation to 0.78 of the size, 8 x 64 x 65 x 16", IMAGES, *_larger("linear", 0.78125)),
    *family("gradient of linear interpolation, 8 x 64 x 65 x 16", IMAGES, *_slopes("linear")),
    *family("gradient of repeated rows and columns", normal((8, 64, 65, 16), (8, 128, 130, 16)), *_repeated()),
]
