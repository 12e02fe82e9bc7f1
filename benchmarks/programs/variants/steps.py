"""Stencils and loops: the same steps by rolls, slices and convolutions, by scan, fori_loop and matrices."""

from __future__ import annotations

from typing import Any

import numpy as onp

from ._family import family, normal


def _stencils() -> list[Any]:
    """The five-point stencil on a torus."""

    def rolls(jax, x):
        roll = jax.numpy.roll
        return roll(x, 1, 0) + roll(x, -1, 0) + roll(x, 1, 1) + roll(x, -1, 1) - 4 * x

    def slices(jax, x):
        y = jax.numpy.pad(x, 1, mode="wrap")
        return y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] - 4 * x

    def convolution(jax, x):
        np = jax.numpy
        kernel = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], x.dtype)
        y = np.pad(x, 1, mode="wrap")
        return jax.lax.conv(y[None, None], kernel[None, None], (1, 1), "VALID")[0, 0]

    def gathers(jax, x):
        np = jax.numpy
        i, j = np.arange(x.shape[0]), np.arange(x.shape[1])
        rows = x[(i + 1) % len(i)] + x[(i - 1) % len(i)]
        return rows + x[:, (j + 1) % len(j)] + x[:, (j - 1) % len(j)] - 4 * x

    return [rolls, slices, convolution, gathers]


def _lstms() -> list[Any]:
    """50 steps of an LSTM; w is (inputs and state, four gates)."""

    def gates(jax, c, z):
        i, f, g, o = jax.numpy.split(z, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
        return c, jax.nn.sigmoid(o) * jax.numpy.tanh(c)

    def concatenated(jax, x, w):
        np = jax.numpy

        def step(state, xt):
            c, h = gates(jax, state[0], np.concatenate([xt, state[1]], -1) @ w)
            return (c, h), h

        zero = np.zeros((x.shape[1], w.shape[1] // 4))
        return jax.lax.scan(step, (zero, zero), x)[1]

    def two_products(jax, x, w):
        np = jax.numpy
        n = x.shape[-1]

        def step(state, xt):
            c, h = gates(jax, state[0], xt @ w[:n] + state[1] @ w[n:])
            return (c, h), h

        zero = np.zeros((x.shape[1], w.shape[1] // 4))
        return jax.lax.scan(step, (zero, zero), x)[1]

    def inputs_first(jax, x, w):
        np = jax.numpy
        n = x.shape[-1]

        def step(state, zt):
            c, h = gates(jax, state[0], zt + state[1] @ w[n:])
            return (c, h), h

        zero = np.zeros((x.shape[1], w.shape[1] // 4))
        return jax.lax.scan(step, (zero, zero), x @ w[:n])[1]

    def written(jax, x, w):
        np = jax.numpy
        zero = np.zeros((x.shape[1], w.shape[1] // 4))

        def step(k, state):
            c, h, hs = state
            c, h = gates(jax, c, np.concatenate([x[k], h], -1) @ w)
            return c, h, hs.at[k].set(h)

        return jax.lax.fori_loop(0, len(x), step, (zero, zero, np.zeros((len(x), *zero.shape))))[2]

    return [concatenated, two_products, inputs_first, written]


def _chains() -> list[Any]:
    """The forward algorithm of a hidden Markov model, 200 steps of 64 states, in logarithms."""

    def by_function(jax, t, e):
        def step(a, x):
            return jax.scipy.special.logsumexp(a[:, None] + t, 0) + x, None

        return jax.lax.scan(step, e[0], e[1:])[0]

    def transposed(jax, t, e):
        def step(a, x):
            return jax.scipy.special.logsumexp(t.T + a, 1) + x, None

        return jax.lax.scan(step, e[0], e[1:])[0]

    def scaled(jax, t, e):
        np = jax.numpy
        k = np.exp(t)

        def step(a, x):
            m = a.max()
            return np.log(np.exp(a - m) @ k) + m + x, None

        return jax.lax.scan(step, e[0], e[1:])[0]

    def by_hand(jax, t, e):
        np = jax.numpy

        def step(n, a):
            z = a[:, None] + t
            m = z.max(0)
            return m + np.log(np.exp(z - m).sum(0)) + e[n]

        return jax.lax.fori_loop(1, len(e), step, e[0])

    return [by_function, transposed, scaled, by_hand]


def _filters() -> list[Any]:
    """A Kalman filter with 6 states and 3 measurements, 100 steps."""

    def matrices(jax, a, c, y):
        np = jax.numpy

        def step(state, yt):
            m, p = a @ state[0], a @ state[1] @ a.T + 0.1 * np.eye(6)
            s = c @ p @ c.T + np.eye(3)
            k = np.linalg.solve(s, c @ p).T
            m = m + k @ (yt - c @ m)
            return (m, p - k @ c @ p), m

        return jax.lax.scan(step, (np.zeros(6), np.eye(6)), y)[1]

    def inverse(jax, a, c, y):
        np = jax.numpy

        def step(state, yt):
            m, p = np.dot(a, state[0]), np.einsum("ij,jk,lk->il", a, state[1], a) + 0.1 * np.eye(6)
            k = p @ c.T @ np.linalg.inv(c @ p @ c.T + np.eye(3))
            m = m + k @ (yt - c @ m)
            return (m, (np.eye(6) - k @ c) @ p), m

        return jax.lax.scan(step, (np.zeros(6), np.eye(6)), y)[1]

    def cholesky(jax, a, c, y):
        np, linalg = jax.numpy, jax.scipy.linalg

        def step(state, yt):
            m, p = a @ state[0], a @ state[1] @ a.T + 0.1 * np.eye(6)
            k = linalg.cho_solve(linalg.cho_factor(c @ p @ c.T + np.eye(3)), c @ p).T
            m = m + k @ (yt - c @ m)
            return (m, p - k @ (c @ p)), m

        return jax.lax.scan(step, (np.zeros(6), np.eye(6)), y)[1]

    return [matrices, inverse, cholesky]


def _kalman(rng):
    a = onp.linalg.qr(rng.standard_normal((6, 6)))[0].astype("f4")
    return a, rng.standard_normal((3, 6)).astype("f4"), rng.standard_normal((100, 3)).astype("f4")


def _markov(rng):
    t = rng.standard_normal((64, 64)).astype("f4")
    return t - onp.log(onp.exp(t).sum(1, keepdims=True)), rng.standard_normal((200, 64)).astype("f4")


def _escapes() -> list[Any]:
    """How many of 100 steps points of the plane stay near."""

    def counted(jax, c, near):
        def step(_, state):
            z, count = state
            inside = near(z)
            return jax.numpy.where(inside, z * z + c, z), count + inside

        start = jax.numpy.zeros_like(c), jax.numpy.zeros(c.shape, int)
        return jax.lax.fori_loop(0, 100, step, start)[1]

    def by_sizes(jax, c):
        return counted(jax, c, lambda z: abs(z) < 2)

    def by_squares(jax, c):
        return counted(jax, c, lambda z: z.real**2 + z.imag**2 < 4)

    def by_real_parts(jax, c):
        return counted(jax, c, lambda z: (z * z.conj()).real < 4)

    def mapped(jax, c):
        def one(c):
            start = jax.numpy.zeros_like(c), 0
            return jax.lax.while_loop(
                lambda s: (abs(s[0]) < 2) & (s[1] < 100), lambda s: (s[0] * s[0] + c, s[1] + 1), start
            )[1]

        return jax.vmap(jax.vmap(one))(c)

    return [by_sizes, by_squares, by_real_parts, mapped]


def _automata() -> list[Any]:
    """200 steps of rule 110."""

    def stepped(jax, step, cells):
        roll = jax.numpy.roll

        def next_cells(cells, _):
            return step(roll(cells, 1), cells, roll(cells, -1)), None

        return jax.lax.scan(next_cells, cells, None, length=200)[0]

    def by_table(jax, cells):
        rule = jax.numpy.array([0, 1, 1, 1, 0, 1, 1, 0], cells.dtype)
        return stepped(jax, lambda left, own, right: rule[4 * left + 2 * own + right], cells)

    def by_logic(jax, cells):
        return stepped(jax, lambda left, own, right: (own | right) & ~(left & own & right), cells)

    def chosen(jax, cells):
        def step(left, own, right):
            k = 4 * left + 2 * own + right
            return jax.numpy.where((k == 0) | (k == 4) | (k == 7), 0, 1)

        return stepped(jax, step, cells)

    return [by_table, by_logic, chosen]


def _cells(rng):
    return (rng.integers(0, 2, 1000).astype("i4"),)


def _plane(_rng):
    return ((onp.linspace(-2, 1, 200)[None] + 1j * onp.linspace(-1.2, 1.2, 150)[:, None]).astype("c8"),)


PROGRAMS = [
    *family("five-point stencil, 1000 x 1500", normal((1000, 1500)), *_stencils()),
    *family("LSTM, 50 steps of 32 x 64", normal((50, 32, 64), (128, 256)), *_lstms()),
    *family("hidden Markov model, 200 x 64", _markov, *_chains()),
    *family("rule 110, 1000 cells", _cells, *_automata()),
    *family("Mandelbrot set of 150 x 200", _plane, *_escapes()),
    *family("Kalman filter, 100 x 6", _kalman, *_filters()),
]
