"""A small program with types, which mypy and pyright read (test_types.py); it runs, too."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

import numpy as np

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


class Params(NamedTuple):
    weights: jax.Array
    bias: jax.Array


@jax.custom_jvp
def log1pexp(x: jax.Array, scale: float = 1.0) -> jax.Array:
    return jnp.log1p(jnp.exp(x)) * scale


@log1pexp.defjvp
def log1pexp_jvp(primals: tuple[jax.Array, float], tangents: tuple[jax.Array, float]) -> tuple[jax.Array, jax.Array]:
    (x, scale), (x_dot, _) = primals, tangents
    return log1pexp(x, scale), jax.nn.sigmoid(x) * scale * x_dot


@jax.custom_vjp
def clipped(x: jax.Array, params: Params) -> tuple[jax.Array, Params]:
    return x, params


def clipped_fwd(x: jax.Array, params: Params) -> tuple[tuple[jax.Array, Params], None]:
    return (x, params), None


def clipped_bwd(_: None, bars: tuple[jax.Array, Params]) -> tuple[jax.Array, Params]:
    return jnp.clip(bars[0], -1, 1), bars[1]


clipped.defvjp(clipped_fwd, clipped_bwd)


@jax.checkpoint
def layer(params: Params, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ params.weights + params.bias)


@jax.checkpoint(policy=jax.checkpoint_policies.dots_saveable)
def named_layer(params: Params, x: jax.Array) -> jax.Array:
    return layer(params, x)


def with_aux(x: jax.Array) -> tuple[jax.Array, dict[str, int]]:
    return (x**2).sum(), {"size": x.size}


class Model:
    @jax.custom_jvp
    def __call__(self, x: jax.Array) -> jax.Array:
        return x


def transformed(x: jax.Array, params: Params) -> None:
    """Functions keep their types under transformations."""
    assert_type(log1pexp(x, scale=2.0), jax.Array)
    assert_type(clipped(x, params), tuple[jax.Array, Params])
    assert_type(layer(params, x), jax.Array)
    assert_type(jax.vmap(named_layer, in_axes=(None, 0))(params, x), jax.Array)
    assert_type(jax.jit(clipped)(x, params)[1], Params)
    assert_type(jax.remat(layer)(params, x), jax.Array)
    assert_type(jax.jvp(jnp.sin, (x,), (x,)), tuple[jax.Array, jax.Array])
    out, out_dot, aux = jax.jvp(with_aux, (x,), (x,), has_aux=True)
    assert_type(out + out_dot, jax.Array)
    assert_type(aux, dict[str, int])
    value, pullback = jax.vjp(clipped, x, params)
    assert_type(value, tuple[jax.Array, Params])
    pullback(value)
    value_of, pullback, aux = jax.vjp(with_aux, x, has_aux=True)
    assert_type(value_of, jax.Array)
    assert_type(aux, dict[str, int])
    line, push = jax.linearize(log1pexp, x)
    assert_type(push(x) + line, jax.Array)
    assert_type(jax.value_and_grad(with_aux, has_aux=True)(x)[0], tuple[jax.Array, dict[str, int]])
    assert_type(jax.grad(with_aux, has_aux=True)(x)[1], dict[str, int])
    assert_type(jax.device_put(params), Params)
    assert_type(jax.device_put(np.ones(3)), jax.Array)
    assert_type(jax.device_put(x, jax.devices()[0]), jax.Array)
    assert_type(jax.device_put({"x": x}), dict[str, jax.Array])
    assert_type(jax.block_until_ready(params), Params)
    assert_type(jax.named_call(layer, name="layer")(params, x), jax.Array)
    jacobian: Any = jax.jacfwd(layer)(params, x)
    assert jacobian.weights.ndim == 4


def add_up(total: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
    return total + row.sum(), total


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
    assert_type(jax.lax.scan(add_up, zero, x), tuple[jax.Array, jax.Array])
    assert_type(jax.lax.fori_loop(0, 3, lambda i, c: c * 2, zero), jax.Array)
    assert_type(ones.at[0, 1].set(2.0).at[1:].add(ones[1:]), jax.Array)
    assert_type(jax.lax.dot(ones.T, jax.lax.exp(ones)), jax.Array)
    assert_type(jax.lax.stop_gradient((ones, zero)), tuple[jax.Array, jax.Array])
    assert_type(jax.lax.top_k(w, 2), list[jax.Array])
    assert_type(jax.lax.cond(w[0] > 0, jnp.sin, jnp.cos, zero), jax.Array)
    values, vectors = jnp.linalg.eigh(x.T @ x)
    assert_type(vectors * values, jax.Array)
    assert_type(jax.scipy.stats.norm.logpdf(x) + jax.scipy.special.logsumexp(x), jax.Array)
    assert_type(jnp.histogram(x), tuple[jax.Array, jax.Array])
    assert_type(jax.scipy.linalg.lu_factor(vectors), tuple[jax.Array, jax.Array])
    transformed(ones, Params(ones.T, jnp.zeros(3)))
    return float(loss(w, x, y))


if __name__ == "__main__":
    print(main())
