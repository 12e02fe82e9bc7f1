"""flax.linen from PyPI, unmodified: layers, lifted transformations, state, serialization."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import serialization
from flax.training import train_state

KEY = jax.random.key(0)


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        x = nn.Conv(8, (3, 3))(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.avg_pool(x, (2, 2), strides=(2, 2)).reshape((x.shape[0], -1))
        x = nn.Dropout(0.1, deterministic=not train)(nn.Dense(16)(x))
        return nn.Dense(10)(x)


def test_a_network_learns():
    model, x, y = CNN(), jax.random.normal(KEY, (4, 8, 8, 1)), jnp.arange(4)
    variables = model.init(KEY, x, train=False)
    state = train_state.TrainState.create(apply_fn=model.apply, params=variables["params"], tx=optax.adam(1e-2))

    @jax.jit
    def step(state, stats, key):
        def loss(params):
            given = {"params": params, "batch_stats": stats}
            out, updated = model.apply(given, x, rngs={"dropout": key}, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(out, y).mean(), updated

        (value, updated), gradient = jax.value_and_grad(loss, has_aux=True)(state.params)
        return state.apply_gradients(grads=gradient), updated["batch_stats"], value

    stats, values = variables["batch_stats"], []
    for n in range(30):
        state, stats, value = step(state, stats, jax.random.fold_in(KEY, n))
        values.append(float(value))
    assert values[-1] < 0.05 * values[0] and int(state.step) == 30
    assert "Conv_0" in model.tabulate(KEY, x)
    kept = serialization.from_bytes(state.params, serialization.to_bytes(state.params))
    jax.tree.map(np.testing.assert_array_equal, kept, state.params)


@pytest.mark.parametrize(
    ("layer", "x", "shape"),
    [
        (nn.RNN(nn.LSTMCell(7)), jnp.ones((2, 5, 3)), (2, 5, 7)),
        (nn.RNN(nn.GRUCell(7)), jnp.ones((2, 5, 3)), (2, 5, 7)),
        (nn.MultiHeadDotProductAttention(num_heads=2), jnp.ones((2, 5, 8)), (2, 5, 8)),
        (nn.Embed(10, 4), jnp.arange(3), (3, 4)),
        (nn.ConvTranspose(3, (3, 3)), jnp.ones((1, 4, 4, 2)), (1, 4, 4, 3)),
        (nn.WeightNorm(nn.Dense(3)), jnp.ones((2, 4)), (2, 3)),
        (nn.GroupNorm(2), jnp.ones((2, 8)), (2, 8)),
    ],
)
def test_layers(layer, x, shape):
    out, _ = layer.init_with_output(KEY, x)
    assert out.shape == shape and bool(jnp.isfinite(out).all())


def test_lifted_transformations():
    class Scanned(nn.Module):
        @nn.compact
        def __call__(self, x):
            body = lambda module, c, _: (nn.Dense(4)(c), None)
            scanned = nn.scan(body, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
            return scanned(self, x, None)[0]

    x = jnp.ones((2, 4))
    params = Scanned().init(KEY, x)
    dense = params["params"]["Dense_0"]
    assert dense["kernel"].shape == (3, 4, 4)
    want = x
    for kernel in dense["kernel"]:
        want = want @ kernel
    np.testing.assert_allclose(Scanned().apply(params, x), want, rtol=1e-5)

    mapped = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True}, in_axes=0)(3)
    assert mapped.init(KEY, x)["params"]["kernel"].shape == (2, 4, 3)

    class Again(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.remat(nn.Dense)(4)(x)

    gradient = jax.grad(lambda v: Again().apply(v, x).sum())(Again().init(KEY, x))
    np.testing.assert_allclose(gradient["params"]["CheckpointDense_0"]["bias"], 2)
    lazy = nn.Dense(3).lazy_init(KEY, jax.ShapeDtypeStruct((1, 4), jnp.float32))
    assert lazy["params"]["kernel"].shape == (4, 3)
