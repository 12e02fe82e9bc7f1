"""Moves that reach passes which small arrays and single operations do not: blocks, tiles, threads, repeats."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from fuzz.library import jax, jnp, lax
from fuzz.moves import LARGEST_EXACT, Generator, Value, need, tame


def transposed(g: Generator) -> Value:
    """An expression of arrays that lie in different orders, which takes tiles, and squares in registers."""
    v = g.value("f", least_rank=2)
    axes = (*range(v.ndim - 2), v.ndim - 1, v.ndim - 2)
    x = v.array if v.exact else tame(v)
    other = g.fitting(Value(jnp.transpose(x, axes), v.exact, v.bound), "f", exact=v.exact)
    y = other.array if v.exact else tame(other)
    return Value(jnp.transpose(x, axes) + y, v.exact, v.bound + other.bound)


def joined_rows(g: Generator) -> Value:
    """Rows from different places, and their neighbours: loops that are split where conditions change."""
    v = g.value("f", least_rank=1, most=g.most // 4)
    x = v.array if v.exact else tame(v)
    joined = jnp.concatenate([x, jnp.flip(x, 0), x], 0)
    return Value(joined + 2 * jnp.roll(joined, 1, 0), v.exact, 3 * v.bound)


def long_reduction(g: Generator) -> Value:
    """Sums down columns or along rows, with what is subtracted from the rows again."""
    v = g.value("f", least_rank=2)
    axis = int(g.rng.integers(v.ndim))
    need(v.shape[axis] > 0)
    if v.exact:
        need(v.bound * v.shape[axis] <= LARGEST_EXACT)
        return Value(jnp.sum(v.array, axis), True, v.bound * v.shape[axis])
    x = tame(v)
    op = g.choose([
        lambda: jnp.mean(x * x, axis), lambda: x - jnp.mean(x, axis, keepdims=True), lambda: jnp.max(x, axis),
        lambda: jnp.sum(jnp.exp(x), axis) / v.shape[axis],
    ])  # fmt: skip
    return Value(op(), False, 8.0)


def row_block(g: Generator) -> Value:
    """A product of more than a megabyte whose rows are read again, and contracted with a few others; or columns of the
    same data, gone down twice.
    """
    v = g.value("f")
    need(v.size > 0)
    x = jnp.reshape(jnp.resize(tame(v), (8192 * 40,)), (8192, 40))
    mix = jnp.cos(x[:40] * 3 + jnp.transpose(x[40:80]))
    columns = jnp.reshape(x, (160, 2048))
    rows = jnp.tanh(x @ jnp.concatenate([mix, mix[:, :24]], 1) * 0.1 + x[0, 0])
    op = g.choose([
        lambda: jnp.mean(rows, 0), lambda: rows[:, :3] * 2, lambda: jnp.transpose(rows) @ x[:, :3] / 8192,
        lambda: jnp.max(jnp.abs(columns - jnp.mean(columns, 0)), 0),
    ])  # fmt: skip
    return Value(op(), False, 4.0)


def steps(g: Generator) -> Value:
    """A loop over elements that never meet, or over a few that do, with the number of the step."""
    v = g.value("f", most=g.most // 2)
    x = tame(v)
    few = jnp.stack([jnp.mean(x), jnp.max(x), jnp.min(x)]) if v.size else jnp.zeros(3, x.dtype)
    count = int(g.rng.integers(1, 8))

    def apart(i, y):
        return jnp.sin(y) * 0.5 + jnp.flip(jnp.cos(x), 0) / (i + 2) if x.ndim else jnp.sin(y) / (i + 2)

    def mixed(i, y):
        return jnp.tanh(jnp.roll(y, 1, 0) - 0.5 * y + jnp.sum(y) / (i + 3))

    out = g.choose([lambda: lax.fori_loop(0, count, apart, x), lambda: lax.fori_loop(0, count, mixed, few)])()
    return Value(out, False, 4.0)


def counting(g: Generator) -> Value:
    """Loops and sums over indices that have closed forms."""
    n, k = int(g.rng.integers(1, 200)), int(g.rng.integers(1, 5))
    v = g.value("i", exact=True, most=200)
    need(v.bound + 2.0 * n * n * k <= LARGEST_EXACT)
    op = g.choose([
        lambda: v.array + jnp.sum(jnp.arange(n) * k), lambda: lax.fori_loop(0, n, lambda i, c: c + k, v.array),
        lambda: lax.fori_loop(0, n, lambda i, c: c + i * k, v.array),
    ])  # fmt: skip
    return Value(op(), True, v.bound + 2.0 * n * n * k)


def layers(g: Generator) -> Value:
    """The same step many times over, written out: nests that are kernels, groups that are not lowered again."""
    v = g.value("f", least_rank=1, most=2000)
    x = tame(v)
    for _ in range(int(g.rng.integers(4, 9))):
        x = jnp.flip(jnp.cos(x) * 0.5 + 0.1 * lax.cumsum(x, 0), 0)
        x = x / (1 + jnp.max(jnp.abs(x))) if v.size else x
    return Value(x, False, 4.0)


def tiny_products(g: Generator) -> Value:
    """Products over few elements, which are written out."""
    v = g.value("f", least_rank=1)
    n = v.shape[-1]
    need(0 < n <= 5 and v.size * n <= g.most)
    x = tame(v)
    return Value(jnp.einsum("...i,...j->...j", x, x) + jnp.einsum("...i,...i->...", x, x)[..., None], False, 4.0 * n)


def random_words(g: Generator) -> Value:
    """Random bits of a key, which the program makes of a number; some of them go through a type of four bits."""
    v, seed = g.value("f", most=2000), g.value("i", exact=True)
    need(seed.size > 0)
    words = jax.random.bits(jax.random.key(jnp.abs(seed.array.reshape(-1)[0])), v.shape, jnp.uint32)
    few = (words & np.uint32(7)).astype(ml_dtypes.int4).astype(jnp.int32)
    return Value((words & np.uint32(255)).astype(jnp.int32) + few, True, 263.0)
