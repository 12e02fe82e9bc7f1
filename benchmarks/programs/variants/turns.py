"""Elements that take turns in memory: colours, coordinates, pairs, every second one, windows of a few."""

from __future__ import annotations

import numpy as np

from ._family import family, normal


def _stacked(jax, a, b):
    return jax.numpy.stack([a + b, a - b], 1).reshape(-1)


def _written(jax, a, b):
    return jax.numpy.zeros(2 * a.size, a.dtype).at[::2].set(a + b).at[1::2].set(a - b)


def _repeated(jax, a, b):
    jnp = jax.numpy
    return jnp.repeat(a, 2) + jnp.tile(jnp.array([1.0, -1.0]), a.size) * jnp.repeat(b, 2)


def _chosen(jax, a, b):
    jnp = jax.numpy
    i = jnp.arange(2 * a.size)
    return jnp.where(i % 2 == 0, (a + b)[i // 2], (a - b)[i // 2])


def _by_repeat(jax, x):
    return jax.numpy.repeat(jax.numpy.repeat(x, 2, 0), 2, 1)


def _by_index(jax, x):
    i = jax.numpy.arange(2 * x.shape[0]) // 2
    return x[i][:, i]


def _by_broadcast(jax, x):
    n, m = x.shape
    return jax.numpy.broadcast_to(x[:, None, :, None], (n, 2, m, 2)).reshape(2 * n, 2 * m)


def _by_kron(jax, x):
    return jax.numpy.kron(x, jax.numpy.ones((2, 2), x.dtype))


def _by_resize(jax, x):
    return jax.image.resize(x, (2 * x.shape[0], 2 * x.shape[1]), "nearest")


def _colours_by_broadcast(jax, image, factor, mask):
    return jax.numpy.where(mask[..., None], image * factor, 0.0)


def _colours_mapped(jax, image, factor, mask):
    return jax.vmap(lambda c, f: jax.numpy.where(mask, c * f, 0.0), (2, 0), 2)(image, factor)


def _colours_stacked(jax, image, factor, mask):
    jnp = jax.numpy
    return jnp.stack([jnp.where(mask, image[..., k] * factor[k], 0.0) for k in range(3)], -1)


def _matrix_by_product(jax, image, matrix):
    return image @ matrix.T


def _matrix_by_einsum(jax, image, matrix):
    return jax.numpy.einsum("hwc,dc->hwd", image, matrix)


def _matrix_written(jax, image, matrix):
    return jax.numpy.stack([sum(matrix[d, c] * image[..., c] for c in range(3)) for d in range(3)], -1)


def _directions_by_sum(jax, x, y):
    d = x[:, None] - y[None]
    return d / jax.numpy.sqrt((d * d).sum(-1, keepdims=True) + 1e-3)


def _directions_mapped(jax, x, y):
    def one(a, b):
        d = a - b
        return d / jax.numpy.sqrt(d @ d + 1e-3)

    return jax.vmap(lambda a: jax.vmap(lambda b: one(a, b))(y))(x)


def _directions_by_norm(jax, x, y):
    d = x[:, None] - y[None]
    return d / jax.numpy.sqrt(jax.numpy.linalg.norm(d, axis=-1, keepdims=True) ** 2 + 1e-3)


def _mean_by_windows(jax, x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4


def _mean_by_slices(jax, x):
    return (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2]) / 4


def _mean_by_reshape(jax, x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).mean((3, 5))


def _gradient(pool):
    def spelled(jax, x):
        return jax.grad(lambda x: (pool(jax, x) ** 2).sum())(x)

    spelled.__name__ = pool.__name__.replace("_mean", "_")
    return spelled


def _halves(jax, x, angle):
    jnp = jax.numpy
    c, s = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]
    return jnp.stack([x[..., ::2] * c - x[..., 1::2] * s, x[..., 1::2] * c + x[..., ::2] * s], -1).reshape(x.shape)


def _turned(jax, x, angle):
    jnp = jax.numpy
    c, s = jnp.repeat(jnp.cos(angle), 2, -1)[:, None], jnp.repeat(jnp.sin(angle), 2, -1)[:, None]
    return x * c + jnp.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape) * s


def _complex(jax, x, angle):
    jnp = jax.numpy
    z = jax.lax.complex(x[..., ::2], x[..., 1::2])
    z = z * jax.lax.complex(jnp.cos(angle), jnp.sin(angle))[:, None]
    return jnp.stack([z.real, z.imag], -1).reshape(x.shape)


def _image(rng: np.random.Generator) -> tuple:
    return (
        rng.standard_normal((300, 400, 3)).astype("f4"),
        rng.standard_normal(3).astype("f4"),
        rng.standard_normal((300, 400)) > 0,
    )


def _softmax_of_rows(jax, x):
    return jax.nn.softmax(x, -1)


def _softmax_mapped(jax, x):
    return jax.vmap(jax.nn.softmax)(x)


def _softmax_by_sum(jax, x):
    e = jax.numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _softmax_by_columns(jax, x):
    columns = [x[:, k] for k in range(x.shape[1])]
    most = columns[0]
    for column in columns[1:]:
        most = jax.numpy.maximum(most, column)
    terms = [jax.numpy.exp(column - most) for column in columns]
    return jax.numpy.stack([term / sum(terms) for term in terms], 1)


def _running_sum(jax, x):
    return jax.numpy.cumsum(x, 1)


def _running_sum_by_product(jax, x):
    return x @ jax.numpy.triu(jax.numpy.ones((x.shape[1],) * 2))


def _running_sum_by_columns(jax, x):
    return jax.numpy.stack([x[:, : k + 1].sum(1) for k in range(x.shape[1])], 1)


PROGRAMS = [
    *family(
        "inverse Haar transform, 500000", normal((500000,), (500000,)), _stacked, _written, _repeated, _chosen
    ),
    *family(
        "each pixel four times, 512 x 512",
        normal((512, 512)),
        _by_repeat, _by_index, _by_broadcast, _by_kron, _by_resize,
    ),
    *family(
        "colours times factors, masked, 300 x 400", _image, _colours_by_broadcast, _colours_mapped, _colours_stacked
    ),
    *family(
        "matrix of colours, 300 x 400",
        normal((300, 400, 3), (3, 3)),
        _matrix_by_product, _matrix_by_einsum, _matrix_written,
    ),
    *family(
        "directions between 400 and 300 points",
        normal((400, 3), (300, 3)),
        _directions_by_sum, _directions_mapped, _directions_by_norm,
    ),
    *family(
        "gradient of means of 2 x 2, 8 x 16 x 64 x 64",
        normal((8, 16, 64, 64)),
        *map(_gradient, (_mean_by_windows, _mean_by_slices, _mean_by_reshape)),
    ),
    *family(
        "pairs rotated by angles, 4 x 256 x 8 x 64", normal((4, 256, 8, 64), (256, 32)), _halves, _turned, _complex
    ),
    *family(
        "softmax of 100,000 x 4",
        normal((100_000, 4)),
        _softmax_of_rows,
        _softmax_mapped,
        _softmax_by_sum,
        _softmax_by_columns,
    ),
    *family(
        "running sums of 100,000 x 3",
        normal((100_000, 3)),
        _running_sum,
        _running_sum_by_product,
        _running_sum_by_columns,
    ),
]  # fmt: skip
