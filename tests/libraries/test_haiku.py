"""haiku from PyPI, unmodified: transformed functions, state, recurrent nets, lifted transformations."""

from __future__ import annotations

import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax

KEY = jax.random.PRNGKey(0)


def test_a_network_learns():
    net = hk.transform(lambda x: hk.nets.MLP([32, 32, 1])(x))
    x = jax.random.normal(KEY, (64, 4))
    y = jnp.sin(x[:, :1])
    params = net.init(KEY, x)
    optimizer = optax.adam(1e-2)
    state = optimizer.init(params)

    def loss(params):
        return jnp.mean((net.apply(params, None, x) - y) ** 2)

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    first = float(loss(params))
    for _ in range(60):
        params, state = step(params, state)
    assert float(loss(params)) < first / 20


def outputs(fun, *args):
    """fun(*args) with initial parameters and state."""
    net = hk.transform_with_state(fun)
    params, state = net.init(KEY, *args)
    return net.apply(params, state, KEY, *args)[0]


def test_modules():
    def unrolled(x):
        core = hk.LSTM(5)
        return hk.dynamic_unroll(core, x, core.initial_state(2))[0]

    assert outputs(unrolled, jnp.ones((3, 2, 4))).shape == (3, 2, 5)
    x = jnp.arange(12.0).reshape(4, 3)
    normal = outputs(lambda x: hk.BatchNorm(True, True, 0.9)(x, is_training=True), x)
    np.testing.assert_allclose(normal, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    x = jnp.ones((2, 5, 8))
    assert outputs(lambda x: hk.MultiHeadAttention(2, 4, w_init=hk.initializers.Orthogonal())(x, x, x), x).shape == (
        2,
        5,
        8,
    )
    assert outputs(lambda x: hk.experimental.layer_stack(3)(hk.Linear(4))(x), jnp.ones((2, 4))).shape == (2, 4)
    assert outputs(lambda x: hk.vmap(hk.Linear(2), split_rng=False)(x), jnp.ones((3, 4))).shape == (3, 2)
    resnet = hk.transform_with_state(lambda x: hk.nets.ResNet18(10)(x, is_training=True))
    shapes = jax.eval_shape(lambda: resnet.init(KEY, jnp.ones((1, 32, 32, 3))))
    assert len(shapes[0]) == 41


def test_gradient_through_remat():
    net = hk.transform(lambda x: hk.remat(hk.Linear(4))(x))
    x = jnp.ones((2, 4))
    gradient = jax.grad(lambda params: net.apply(params, None, x).sum())(net.init(KEY, x))
    np.testing.assert_allclose(gradient["linear"]["b"], 2)
