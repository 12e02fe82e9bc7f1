"""Work on few elements at a time: medians of neighbours, masks, means of rows of a table, steps until each is done."""

from __future__ import annotations

from typing import Any

from ._family import family, normal


def _medians() -> list[Any]:
    """The median of each element and the four that follow."""

    def stacked(jax, x):
        np = jax.numpy
        return np.median(np.stack([x[k : x.size - 4 + k] for k in range(5)]), 0)

    def indexed(jax, x):
        np = jax.numpy
        return np.median(x[np.arange(x.size - 4)[:, None] + np.arange(5)], 1)

    def sorted_(jax, x):
        np = jax.numpy
        return np.sort(np.stack([x[k : x.size - 4 + k] for k in range(5)], 1), 1)[:, 2]

    def mapped(jax, x):
        np = jax.numpy
        return jax.vmap(lambda i: np.median(jax.lax.dynamic_slice(x, (i,), (5,))))(np.arange(x.size - 4))

    return [stacked, indexed, sorted_, mapped]


def _causal() -> list[Any]:
    """Softmax of scores that look back only."""

    def where(jax, s):
        np = jax.numpy
        return jax.nn.softmax(np.where(np.tril(np.ones(s.shape[1:], bool)), s, -np.inf))

    def added(jax, s):
        np = jax.numpy
        return jax.nn.softmax(s + np.triu(np.full(s.shape[1:], -1e30), 1))

    def by_function(jax, s):
        np = jax.numpy
        return jax.nn.softmax(s, where=np.tril(np.ones(s.shape[1:], bool)))

    def by_hand(jax, s):
        np = jax.numpy
        e = np.tril(np.exp(s - s.max(-1, keepdims=True)))
        return e / e.sum(-1, keepdims=True)

    return [where, added, by_function, by_hand]


def _halves() -> list[Any]:
    """An image of half the size."""

    def by_resize(jax, x):
        h, w, c = x.shape
        return jax.image.resize(x, (h // 2, w // 2, c), "linear", antialias=False)

    def reshaped(jax, x):
        h, w, c = x.shape
        return x.reshape(h // 2, 2, w // 2, 2, c).mean((1, 3))

    def strided(jax, x):
        return (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2]) / 4

    def by_windows(jax, x):
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 2, 1), (2, 2, 1), "VALID") / 4

    return [by_resize, reshaped, strided, by_windows]


def _lookups() -> list[Any]:
    """Means of 100 rows of a table."""

    def indexed(jax, k, e):
        return e[k].mean(1)

    def taken(jax, k, e):
        return jax.numpy.take(e, k, axis=0).mean(1)

    def mapped(jax, k, e):
        return jax.vmap(lambda r: e[r].mean(0))(k)

    def scanned(jax, k, e):
        start = jax.numpy.zeros((len(k), e.shape[1]))
        return jax.lax.scan(lambda s, c: (s + e[c], None), start, k.T)[0] / k.shape[1]

    return [indexed, taken, mapped, scanned]


def _roots() -> list[Any]:
    """Cubic roots by Newton's steps, as many as each needs."""

    def goes_on(s, a):
        return abs(s * s * s - a) > 1e-3 * a

    def step(s, a):
        return s - (s * s * s - a) / (3 * s * s)

    def mapped(jax, a):
        return jax.vmap(lambda a: jax.lax.while_loop(lambda s: goes_on(s, a), lambda s: step(s, a), a))(a)

    def one_by_one(jax, a):
        return jax.lax.map(lambda a: jax.lax.while_loop(lambda s: goes_on(s, a), lambda s: step(s, a), a), a)

    def together(jax, a):
        np = jax.numpy
        return jax.lax.while_loop(lambda s: goes_on(s, a).any(), lambda s: np.where(goes_on(s, a), step(s, a), s), a)

    def fixed(jax, a):
        np = jax.numpy
        return jax.lax.fori_loop(0, 12, lambda _, s: np.where(goes_on(s, a), step(s, a), s), a)

    return [mapped, one_by_one, together, fixed]


def _table(rng):
    return rng.integers(0, 5000, (64, 100)).astype("i4"), rng.standard_normal((5000, 64)).astype("f4")


def _positive(rng):
    return (rng.uniform(0.5, 50, 20_000).astype("f4"),)


PROGRAMS = [
    *family("median of 5 neighbours, 20,000", normal((20_000,)), *_medians()),
    *family("softmax that looks back, 16 x 256 x 256", normal((16, 256, 256)), *_causal()),
    *family("half of an image, 512 x 640 x 3", normal((512, 640, 3)), *_halves()),
    *family("means of 100 rows of a table, 64 of 5000 x 64", _table, *_lookups()),
    *family("cubic roots of 20,000, as many steps as needed", _positive, *_roots()),
]
