"""What is made for one use: shifted copies and functions for a product with a vector, orders, halves of spectra."""

from __future__ import annotations

from ._family import family, normal

SHIFTS = 24


def _shifted(jax, x, w):
    return sum(w[k] * jax.numpy.roll(x, k) for k in range(SHIFTS))


def _stacked(jax, x, w):
    return w @ jax.numpy.stack([jax.numpy.roll(x, k) for k in range(SHIFTS)])


def _stacked_as_columns(jax, x, w):
    return jax.numpy.stack([jax.numpy.roll(x, k) for k in range(SHIFTS)], 1) @ w


def _stacked_and_summed(jax, x, w):
    return (jax.numpy.stack([jax.numpy.roll(x, k) for k in range(SHIFTS)]) * w[:, None]).sum(0)


def _times(jax, x, w):
    return w @ (x * x)


def _times_from_the_right(jax, x, w):
    return (x * x).T @ w


def _weighted(jax, x, w):
    return (w[:, None] * x**2).sum(0)


def _einsum(jax, x, w):
    return jax.numpy.einsum("i,ij,ij->j", w, x, x)


def _sorted(jax, x):
    return jax.numpy.sort(x, 1)


def _taken_along(jax, x):
    return jax.numpy.take_along_axis(x, jax.numpy.argsort(x, 1), 1)


def _mapped_index(jax, x):
    return jax.vmap(lambda row: row[jax.numpy.argsort(row)])(x)


def _half(jax, x):
    return abs(jax.numpy.fft.rfft(x)) ** 2


def _first_half(jax, x):
    return abs(jax.numpy.fft.fft(x)[:, : x.shape[1] // 2 + 1]) ** 2


def _first_half_of_powers(jax, x):
    z = jax.numpy.fft.fft(x)
    return (z * z.conj()).real[:, : x.shape[1] // 2 + 1]


def _correlated(jax, x, y):
    fft = jax.numpy.fft
    return fft.irfft(fft.rfft(x) * fft.rfft(y).conj())


def _correlated_whole(jax, x, y):
    fft = jax.numpy.fft
    return fft.ifft(fft.fft(x) * fft.fft(y).conj()).real


def _at_once(jax, x):
    return jax.numpy.quantile(x, jax.numpy.array([0.1, 0.5, 0.9]), axis=1)


def _one_after_the_other(jax, x):
    return jax.numpy.stack([jax.numpy.quantile(x, q, axis=1) for q in (0.1, 0.5, 0.9)])


PROGRAMS = [
    *family(
        "24 shifts of 100,000 times a vector",
        normal((100_000,), (SHIFTS,)),
        _shifted, _stacked, _stacked_as_columns, _stacked_and_summed,
    ),
    *family(
        "weighted squares, 1000 x 1000",
        normal((1000, 1000), (1000,)),
        _times, _times_from_the_right, _weighted, _einsum,
    ),
    *family("sorted rows, 1000 x 100", normal((1000, 100)), _sorted, _taken_along, _mapped_index),
    *family("powers of 100 x 1024", normal((100, 1024)), _half, _first_half, _first_half_of_powers),
    *family("circular correlation, 100 x 1024", normal((100, 1024), (100, 1024)), _correlated, _correlated_whole),
    *family("three quantiles, 1000 x 200", normal((1000, 200)), _at_once, _one_after_the_other),
]  # fmt: skip
