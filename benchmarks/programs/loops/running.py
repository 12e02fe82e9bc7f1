"""Running values: sums, averages, recurrences, rows filled, distances, sieves."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.program import Program

from ._inputs import f32, normal


def _running_sum(jax: Any):
    def run(xs):
        def step(total, x):
            total = total + x
            return total, total

        return jax.lax.scan(step, jax.numpy.zeros(xs.shape[1:], xs.dtype), xs)[1]

    return run


def _average(jax: Any):
    """Exponential moving average and variance of a long series."""

    def run(xs):
        def step(state, x):
            mean, variance = state
            d = x - mean
            mean = mean + 0.1 * d
            variance = 0.9 * (variance + 0.1 * d * d)
            return (mean, variance), (mean, variance)

        return jax.lax.scan(step, (xs[0], jax.numpy.zeros_like(xs[0])), xs)[1]

    return run


def _recurrence(jax: Any):
    """x[t] = a[t] x[t-1] + b[t] by an associative scan."""

    def combine(left, right):
        return left[0] * right[0], left[1] * right[0] + right[1]

    return lambda a, b: jax.lax.associative_scan(combine, (a, b))[1]


def _recurrence_numpy(a, b):
    out, x = np.empty_like(b), np.zeros_like(b[0])
    for t in range(len(b)):
        x = a[t] * x + b[t]
        out[t] = x
    return out


def _returns(jax: Any):
    """Discounted sums from the end (generalized advantages), reversed."""

    def run(rewards, values):
        def step(advantage, x):
            reward, value, following = x
            advantage = reward + 0.99 * following - value + 0.95 * advantage
            return advantage, advantage

        following = jax.numpy.concatenate([values[1:], jax.numpy.zeros_like(values[:1])])
        start = jax.numpy.zeros(rewards.shape[1:], rewards.dtype)
        return jax.lax.scan(step, start, (rewards, values, following), reverse=True)[1]

    return run


def _fill(jax: Any):
    """A table filled row by row."""

    def run(table, row):
        def step(i, state):
            table, row = state
            row = 0.5 * row + 0.1 * table[i]
            return jax.lax.dynamic_update_slice(table, row[None], (i, 0)), row

        return jax.lax.fori_loop(0, table.shape[0], step, (table, row))[0]

    return run


def _fill_gradient(jax: Any):
    run = _fill(jax)
    return jax.grad(lambda table, row: (run(table, row) ** 2).sum(), argnums=(0, 1))


def _fill_numpy(table, row):
    table = table.copy()
    for i in range(len(table)):
        row = 0.5 * row + 0.1 * table[i]
        table[i] = row
    return table


def _edit_distance(jax: Any):
    """Dynamic programming over two words, row by row, with a scan in a scan."""
    jnp, lax = jax.numpy, jax.lax

    def run(left, right):
        def row(previous, letter):
            def cell(before, k):
                best = jnp.minimum(before + 1, previous[k + 1] + 1)
                best = jnp.minimum(best, previous[k] + (right[k] != letter))
                return best, best

            first = previous[0] + 1
            _, rest = lax.scan(cell, first, jnp.arange(right.shape[0]))
            return jnp.concatenate([first[None], rest]), None

        start = jnp.arange(right.shape[0] + 1)
        return lax.scan(row, start, left)[0][-1]

    return run


def _sieve(jax: Any):
    jnp = jax.numpy

    def run(flags):
        index = jnp.arange(flags.shape[0])

        def step(i, flags):
            return jnp.where(flags[i] & (index > i) & (index % jnp.maximum(i, 1) == 0), False, flags)

        return jax.lax.fori_loop(2, 100, step, flags)

    return run


PROGRAMS = [
    Program("running sum by scan, 1e5", normal(100_000), _running_sum, lambda x: np.cumsum(x, dtype=np.float32)),
    Program("running sum by scan, 1000 x 256", normal(1000, 256), _running_sum, lambda x: np.cumsum(x, 0)),
    Program("moving average by scan, 1e5", normal(100_000), _average),
    Program(
        "linear recurrence by associative_scan, 1e5",
        lambda rng: f32(rng.uniform(0, 1, 100_000), rng.standard_normal(100_000)),
        _recurrence,
    ),
    Program(
        "linear recurrence by associative_scan, 1000 x 64",
        lambda rng: f32(rng.uniform(0, 1, (1000, 64)), rng.standard_normal((1000, 64))),
        _recurrence,
        _recurrence_numpy,
    ),
    Program("advantages, 1000 x 16", lambda rng: f32(*rng.standard_normal((2, 1000, 16))), _returns),
    Program(
        "rows of 64 filled by update slices, 1000",
        lambda rng: f32(rng.standard_normal((1000, 64)), rng.standard_normal(64)),
        _fill,
        _fill_numpy,
    ),
    Program(
        "rows of 64 filled by update slices, 1000, gradient",
        lambda rng: f32(rng.standard_normal((1000, 64)), rng.standard_normal(64)),
        _fill_gradient,
    ),
    Program(
        "edit distance 200 x 200", lambda rng: tuple(rng.integers(0, 4, (2, 200)).astype(np.int32)), _edit_distance
    ),
    Program("sieve to 10,000", lambda rng: (np.ones(10_000, bool),), _sieve),
]
