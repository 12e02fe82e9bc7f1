"""What users have said is slow in loops, with the thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.program import Program

from ._inputs import normal


def _products_3x3(jax: Any):
    def run(state, rotation):
        return jax.lax.scan(lambda s, _: (s @ rotation, None), state, None, length=2000)[0]

    return run


def _products_3x3_numpy(state, rotation):
    for _ in range(2000):
        state = state @ rotation
    return state


def _normed_3x3(jax: Any):
    def run(state, rotation):
        def step(s, _):
            s = rotation @ s
            return s / jax.numpy.sqrt((s * s).sum()), None

        return jax.lax.scan(step, state, None, length=2000)[0]

    return run


def _normed_3x3_numpy(state, rotation):
    for _ in range(2000):
        state = rotation @ state
        state = state / np.sqrt((state * state).sum())
    return state


def _stacked(jax: Any):
    def run(x):
        def step(c, _):
            c = c * 0.999 + 1.0
            return c, c

        return jax.lax.scan(step, x, None, length=10_000_000)[1]

    return run


def _writes(n: int):
    def make(jax: Any):
        def run(x):
            def step(i, x):
                return x.at[i].set(jax.numpy.sin(x[i]) + x[i])

            return jax.lax.fori_loop(0, n, step, x)

        return run

    return make


def _writes_gradient(n: int):
    def make(jax: Any):
        run = _writes(n)(jax)
        return jax.grad(lambda x: (run(x) ** 2).sum())

    return make


def _row_writes(jax: Any):
    """Every row from the one before: the carry is the whole matrix."""

    def run(x):
        def step(i, x):
            return x.at[i + 1].set(jax.numpy.tanh(x[i]) + x[i + 1])

        return jax.lax.fori_loop(0, x.shape[0] - 1, step, x)

    return run


def _row_writes_gradient(jax: Any):
    run = _row_writes(jax)
    return jax.grad(lambda x: run(x).sum())


def _unrolled(steps: int):
    def make(jax: Any):
        if steps > 20 and jax.__name__ == "jax":
            raise NotImplementedError("takes minutes to compile from about 25 steps on")

        def loss(x):
            for _ in range(steps):
                x = jax.numpy.sin(x) * 1.01 + 0.1 * x[::-1]
            return x.sum()

        return jax.grad(loss)

    return make


PROGRAMS = [
    Program(
        "scan of 2,000 products of 3 x 3",
        lambda rng: (np.eye(3), np.linalg.qr(rng.standard_normal((3, 3)))[0]),
        _products_3x3,
        _products_3x3_numpy,
        x64=True,
        thread=36799,
    ),
    Program(
        "scan of 2,000 normed products of 3 x 3",
        lambda rng: (np.eye(3), np.linalg.qr(rng.standard_normal((3, 3)))[0]),
        _normed_3x3,
        _normed_3x3_numpy,
        x64=True,
    ),
    Program("scan of 1e7 stacked steps", lambda rng: (np.float32(1.0),), _stacked, limit=0.1, bytes=4e7, thread=40101),
    Program("element writes into a carry, 10,000", normal(10_000), _writes(10_000), thread=17640),
    Program("element writes into a carry, 10,000, gradient", normal(10_000), _writes_gradient(10_000), thread=17640),
    Program("row writes into a carry, 500 x 100", normal(500, 100), _row_writes, thread=17845),
    Program("row writes into a carry, 500 x 100, gradient", normal(500, 100), _row_writes_gradient, thread=17845),
    Program("gradient of 20 unrolled steps with reversal", normal(64), _unrolled(20), thread=2777),
    Program("gradient of 50 unrolled steps with reversal", normal(64), _unrolled(50), limit=1e-4, thread=2777),
]
