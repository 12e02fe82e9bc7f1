"""A small program with types, which mypy and pyright read (test_types.py); it runs, too."""

from __future__ import annotations

from typing import assert_type

import pullback as jax
import pullback.numpy as jnp


def loss(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return ((jnp.tanh(x @ w) - y) ** 2).mean()


@jax.jit
def step(w: jax.Array, x: jax.Array, y: jax.Array) -> jax.Array:
    return w - 0.1 * jax.grad(loss)(w, x, y)


@jax.jit(static_argnums=1)
def repeated(x: jax.Array, times: int) -> tuple[jax.Array, int]:
    return jnp.concatenate([x] * times), times


def main() -> float:
    x: jax.Array = jax.random.normal(jax.random.key(0), (20, 3))
    w: jax.Array = jnp.zeros(3)
    y = jnp.sin(x[:, 0])
    for _ in range(10):
        w = step(w, x, y)
    assert_type(step(w, x, y), jax.Array)
    assert_type(repeated(w, 2), tuple[jax.Array, int])
    assert_type(w + 1, jax.Array)
    assert_type(2 * w, jax.Array)
    assert_type(x.T @ x, jax.Array)
    assert_type(w[0], jax.Array)
    assert_type(w.shape, tuple[int, ...])
    assert_type(w.sum(), jax.Array)
    assert_type(w < 1, jax.Array)
    assert_type(float(w[0]), float)
    ones, zero = jnp.ones((3, 2)), jnp.zeros(())
    assert_type(ones, jax.Array)
    assert_type(jnp.sin(ones) + jnp.linalg.inv(x.T @ x)[:, :2], jax.Array)
    assert_type(jnp.where(ones > 0, ones, 0), jax.Array)
    assert_type(jax.nn.relu(ones), jax.Array)
    assert_type(jax.value_and_grad(loss)(w, x, y)[0], jax.Array)
    assert_type(jax.jit(lambda x: jnp.sin(x))(x), jax.Array)
    w = jax.jit(jax.grad(lambda w: loss(w, x, y)))(w)
    assert_type(jax.vmap(loss, in_axes=(None, 0, 0))(w, x, y), jax.Array)
    assert_type(jax.lax.scan(lambda c, row: (c + row.sum(), c), zero, x), tuple[jax.Array, jax.Array])
    assert_type(jax.lax.fori_loop(0, 3, lambda i, c: c * 2, zero), jax.Array)
    assert_type(ones.at[0, 1].set(2.0).at[1:].add(ones[1:]), jax.Array)
    assert_type(jax.lax.dot(ones.T, jax.lax.exp(ones)), jax.Array)
    assert_type(jax.lax.stop_gradient((ones, zero)), tuple[jax.Array, jax.Array])
    assert_type(jax.lax.top_k(w, 2), list[jax.Array])
    assert_type(jax.lax.cond(w[0] > 0, jnp.sin, jnp.cos, zero), jax.Array)
    values, vectors = jnp.linalg.eigh(x.T @ x)
    assert_type(vectors * values, jax.Array)
    assert_type(jax.scipy.stats.norm.logpdf(x) + jax.scipy.special.logsumexp(x), jax.Array)
    return float(loss(w, x, y))


if __name__ == "__main__":
    print(main())
