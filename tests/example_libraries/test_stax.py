"""Layers: shapes, initial values (stored: what JAX 0.10.2 gives for the same key), and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.example_libraries import stax

KEY = jax.random.PRNGKey(3)


def apply(layer, x, **kwargs):
    """(initial output shape, params, outputs) of a layer."""
    init_fun, apply_fun = layer
    shape, params = init_fun(KEY, x.shape)
    outputs = apply_fun(params, x, **kwargs)
    assert tuple(shape) == outputs.shape
    return shape, params, np.asarray(outputs)


def test_dense():
    shape, (weights, biases) = stax.Dense(3)[0](KEY, (-1, 4))
    assert shape == (-1, 3) and weights.shape == (4, 3)
    np.testing.assert_allclose(weights[0], [-1.1336596, -0.9213368, -0.2839578], rtol=1e-6)
    np.testing.assert_allclose(biases, [-0.01943222, 0.00104816, -0.0004759], rtol=1e-5)
    x = np.arange(8.0, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(stax.Dense(3)[1]((weights, biases), x), x @ np.asarray(weights) + biases, rtol=1e-6)


def test_convolutions():
    x = jnp.ones((5, 8, 8, 2))
    shape, (weights, biases), _ = apply(stax.Conv(3, (2, 2), (2, 1), "SAME"), x)
    assert shape == (5, 4, 8, 3) and weights.shape == (2, 2, 2, 3) and biases.shape == (1, 1, 1, 3)
    np.testing.assert_allclose(weights.ravel()[:3], [-0.670682, -0.54507023, -0.16799171], rtol=1e-6)
    np.testing.assert_allclose(biases.ravel(), [-1.9432216e-06, 1.0481610e-07, -4.7589566e-08], rtol=1e-5)
    assert apply(stax.ConvTranspose(3, (2, 2), (2, 1)), x)[0] == (5, 16, 9, 3)
    assert apply(stax.Conv1DTranspose(3, (2,), (2,)), x[:, 0])[0] == (5, 16, 3)
    shape, params, _ = apply(stax.GeneralConv(("NCHW", "OIHW", "NCHW"), 3, (2, 2)), jnp.ones((5, 2, 8, 8)))
    assert shape == (5, 3, 7, 7) and [p.shape for p in params] == [(3, 2, 2, 2), (1, 3, 1, 1)]
    assert stax.Conv(3, (2, 2))[0](KEY, (-1, 8, 8, 2))[0] == (-1, 7, 7, 3)
    one = (jnp.ones((2, 2, 1, 1)), jnp.zeros((1, 1, 1, 1)))
    y = stax.Conv(1, (2, 2))[1](one, jnp.arange(9.0).reshape(1, 3, 3, 1))
    assert y.ravel().tolist() == [8, 12, 20, 24]
    with pytest.raises(ValueError, match="filter_shape"):
        stax.Conv(3, (2,))


def test_batch_norm():
    x = jnp.arange(8.0).reshape(2, 1, 2, 2)
    _, (beta, gamma), y = apply(stax.BatchNorm(), x)
    assert beta.tolist() == [0, 0] and gamma.tolist() == [1, 1]
    np.testing.assert_allclose(y[..., 0].ravel(), [-1.3416393, -0.4472131, 0.4472131, 1.3416393], rtol=1e-6)
    assert apply(stax.BatchNorm(center=False, scale=False), x)[1] == ((), ())
    assert apply(stax.BatchNorm(axis=0), x)[1][0].shape == (1, 2, 2)
    shifted = stax.BatchNorm()[1]((jnp.ones(2), 2 * jnp.ones(2)), x)
    np.testing.assert_allclose(shifted, 2 * y + 1, rtol=1e-6)


def test_pools():
    x = jnp.arange(36.0).reshape(2, 3, 3, 2)
    _, _, highest = apply(stax.MaxPool((2, 2)), x)
    assert highest.ravel()[:6].tolist() == [8, 9, 10, 11, 14, 15] and highest.shape == (2, 2, 2, 2)
    assert apply(stax.SumPool((2, 2), (2, 2)), x)[2].ravel().tolist() == [16, 20, 88, 92]
    same = apply(stax.AvgPool((2, 2), padding="SAME"), x)[2]
    assert same.ravel()[:6].tolist() == [4, 5, 6, 7, 7, 8]  # padding does not count
    assert apply(stax.AvgPool((2, 2), spec="NCHW"), x)[2].ravel()[:3].tolist() == [1.5, 3.5, 7.5]


def test_layers_without_weights():
    x = jnp.linspace(-2.0, 2.0, 5)
    reference = {
        "Tanh": np.tanh(x),
        "Relu": np.maximum(x, 0),
        "Exp": np.exp(x),
        "LogSoftmax": np.asarray(x) - np.log(np.exp(x).sum()),
        "Softmax": np.exp(x) / np.exp(x).sum(),
        "Softplus": np.log1p(np.exp(x)),
        "Sigmoid": 1 / (1 + np.exp(-x)),
        "Elu": np.where(x > 0, x, np.expm1(x)),
        "LeakyRelu": np.where(x > 0, x, 0.01 * x),
        "Selu": [-1.5201665, -1.1113307, 0, 1.050701, 2.101402],
        "Gelu": [-0.04540235, -0.15880796, 0, 0.841192, 1.9545977],
        "Identity": x,
    }
    for name, want in reference.items():
        np.testing.assert_allclose(apply(getattr(stax, name), x)[2], want, rtol=2e-6, err_msg=name)
    assert apply(stax.Flatten, jnp.ones((5, 2, 3)))[0] == (5, 6)
    assert apply(stax.elementwise(lambda x, y: x * y, y=3.0), x)[2].tolist() == (3 * x).tolist()
    assert stax.FanOut(3)[0](KEY, (2, 3)) == ([(2, 3)] * 3, ()) and stax.FanOut(2)[1]((), 1) == [1, 1]
    assert stax.FanInSum[0](KEY, [(2, 3), (2, 3)])[0] == (2, 3)
    assert stax.FanInConcat()[0](KEY, [(2, 3), (2, 4)])[0] == (2, 7)
    assert stax.FanInConcat(0)[1]((), [jnp.ones((2, 3)), jnp.ones((1, 3))]).shape == (3, 3)


def test_dropout():
    x = jnp.ones(8)
    assert apply(stax.Dropout(0.5), x, rng=KEY)[2].tolist() == [2, 0, 0, 0, 2, 0, 2, 2]
    assert apply(stax.Dropout(0.25), x, rng=KEY)[2].tolist() == [4, 0, 0, 0, 0, 0, 4, 0]
    assert apply(stax.Dropout(0.25, mode="test"), x, rng=KEY)[2].tolist() == [1] * 8
    with pytest.raises(ValueError, match="needs a key to draw from"):
        apply(stax.Dropout(0.5), x)
    twice = stax.serial(stax.Dropout(0.5), stax.Dropout(0.5))
    assert apply(twice, jnp.ones(10), rng=KEY)[2].tolist() == [4, 0, 4, 0, 0, 0, 0, 4, 0, 0]


def test_layers_of_layers():
    net = stax.serial(stax.Dense(2), stax.Relu, stax.Dense(1))
    shape, params = net[0](KEY, (-1, 3))
    assert shape == (-1, 1) and isinstance(params, list) and params[1] == ()
    np.testing.assert_allclose(params[2][0].ravel(), [-0.14013089, 0.0755271], rtol=1e-6)
    np.testing.assert_allclose(net[1](params, jnp.ones((2, 3))), [[0.02362154]] * 2, rtol=1e-5)

    split = stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(2), stax.Identity), stax.FanInConcat())
    assert apply(split, jnp.ones((4, 3)))[0] == (4, 5)
    shapes, params = stax.parallel(stax.Dense(2), stax.Dropout(0.5))[0](KEY, [(-1, 3), (2,)])
    assert shapes == ((-1, 2), (2,)) and isinstance(params, tuple) and params[1] == ()
    np.testing.assert_allclose(params[0][0][0], [0.5264449, 0.02462277], rtol=1e-6)

    wide = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
    assert apply(wide, jnp.ones((4, 3)))[0] == (4, 6)
