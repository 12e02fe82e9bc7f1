"""Optimizers against their formulas in NumPy (float64), schedules, and the state as a pytree."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.example_libraries import optimizers

PARAMS = {"a": np.arange(1.0, 4.0), "b": (np.full((2, 3), 2.0), np.float64(3.0))}
STEPS = 4


def over_root(g, squares):
    return np.where(squares > 0, g / np.sqrt(np.where(squares > 0, squares, 1)), 0)


def sgd(x, gradients, rate):
    for g in gradients:
        x = x - rate * g
    return x


def momentum(x, gradients, rate, mass=0.9, nesterov=False):
    v = 0 * x
    for g in gradients:
        v = mass * v + g
        x = x - rate * (mass * v + g if nesterov else v)
    return x


def nesterov(x, gradients, rate):
    return momentum(x, gradients, rate, nesterov=True)


def adagrad(x, gradients, rate):
    squares, mean = 0 * x, 0 * x
    for g in gradients:
        squares = squares + g * g
        mean = 0.9 * mean + 0.1 * over_root(g, squares)
        x = x - rate * mean
    return x


def rmsprop(x, gradients, rate):
    squares = 0 * x
    for g in gradients:
        squares = 0.9 * squares + 0.1 * g * g
        x = x - rate * g / np.sqrt(squares + 1e-8)
    return x


def rmsprop_momentum(x, gradients, rate):
    squares, v = 0 * x, 0 * x
    for g in gradients:
        squares = 0.9 * squares + 0.1 * g * g
        v = 0.9 * v + rate * g / np.sqrt(squares + 1e-8)
        x = x - v
    return x


def adam(x, gradients, rate):
    mean, squares = 0 * x, 0 * x
    for t, g in enumerate(gradients, 1):
        mean, squares = 0.9 * mean + 0.1 * g, 0.999 * squares + 0.001 * g * g
        x = x - rate * mean / (1 - 0.9**t) / (np.sqrt(squares / (1 - 0.999**t)) + 1e-8)
    return x


def adamax(x, gradients, rate):
    mean, largest = 0 * x, 0 * x
    for t, g in enumerate(gradients, 1):
        mean, largest = 0.9 * mean + 0.1 * g, np.maximum(0.999 * largest, np.abs(g))
        x = x - rate / (1 - 0.9**t) * mean / (largest + 1e-8)
    return x


def sm3(x, gradients, rate):
    sums, mean = [np.zeros(n) for n in x.shape], 0 * x
    if x.ndim == 0:
        return adagrad(x, gradients, rate)
    for g in gradients:
        squares = g * g
        for place in np.ndindex(*x.shape):
            squares[place] += min(s[i] for s, i in zip(sums, place))
        for axis in range(x.ndim):
            for i in range(x.shape[axis]):
                sums[axis][i] = np.take(squares, i, axis).max()
        mean = 0.9 * mean + 0.1 * over_root(g, squares)
        x = x - rate * mean
    return x


REFERENCES = (sgd, momentum, nesterov, adagrad, rmsprop, rmsprop_momentum, adam, adamax, sm3)


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda f: f.__name__)
def test_formulas(reference):
    rng = np.random.default_rng(0)
    arguments = (0.1, 0.9) if reference.__name__ in ("momentum", "nesterov") else (0.1,)
    init, update, get_params = getattr(optimizers, reference.__name__)(*arguments)
    gradients = [
        jax.tree.map(lambda x: np.asarray(rng.normal(size=np.shape(x)) * (rng.random(np.shape(x)) > 0.2)), PARAMS)
        for _ in range(STEPS)
    ]
    with jax.enable_x64(True):
        state = init(jax.tree.map(jnp.asarray, PARAMS))
        compiled = jax.jit(update)
        for step, gradient in enumerate(gradients):
            state = compiled(step, gradient, state)
        got = get_params(state)
        assert jax.tree.structure(got) == jax.tree.structure(PARAMS)
        of_leaf = zip(*[jax.tree.leaves(g) for g in gradients])
        for x, result, leaf_gradients in zip(jax.tree.leaves(PARAMS), jax.tree.leaves(got), of_leaf):
            np.testing.assert_allclose(result, reference(x, leaf_gradients, 0.1), rtol=1e-10)


def test_adam_as_in_jax():
    init, update, get_params = optimizers.adam(0.1)
    state = init(jnp.arange(1.0, 4.0))
    for step in range(3):
        state = update(step, jnp.arange(1.0, 4.0) * 0.5 - 1, state)
    np.testing.assert_allclose(get_params(state), [1.2999969, 2.0, 2.700003], rtol=2e-6)


def test_schedules():
    def at(schedule):
        return [float(schedule(i)) for i in (0, 3, 6, 15)]

    assert at(optimizers.constant(0.1)) == [0.1] * 4
    np.testing.assert_allclose(
        at(optimizers.exponential_decay(0.1, 10, 0.5)), [0.1, 0.0812252396, 0.0659753955, 0.0353553391]
    )
    np.testing.assert_allclose(
        at(optimizers.inverse_time_decay(0.1, 10, 0.5)), [0.1, 0.0869565217, 0.0769230769, 0.0571428571]
    )
    np.testing.assert_allclose(
        at(optimizers.inverse_time_decay(0.1, 10, 0.5, True)), [0.1, 0.1, 0.1, 0.0666666667], rtol=1e-6
    )
    np.testing.assert_allclose(
        at(optimizers.polynomial_decay(0.1, 10, 0.01, 2.0)), [0.1, 0.0541, 0.0244, 0.01], rtol=1e-6
    )
    assert at(optimizers.piecewise_constant([3, 6], [1.0, 2.0, 3.0])) == [1, 1, 2, 3]
    assert optimizers.make_schedule(0.5)(7) == 0.5 and optimizers.make_schedule(jnp.float32(2))(3) == 2
    with pytest.raises(ValueError, match="2 boundaries separate 3 values"):
        optimizers.piecewise_constant([3, 6], [1.0, 2.0])
    with pytest.raises(ValueError, match="one-dimensional"):
        optimizers.piecewise_constant(3, [1.0, 2.0])
    with pytest.raises(TypeError, match="make_schedule"):
        optimizers.make_schedule("fast")


def test_the_state_is_a_pytree():
    init, update, get_params = optimizers.momentum(optimizers.exponential_decay(0.1, 2, 0.5), 0.9)
    params = jax.tree.map(jnp.float32, PARAMS)

    def step(state, i):
        return update(i, get_params(state), state), get_params(state)["a"]

    state, history = jax.lax.scan(step, init(params), jnp.arange(5))
    assert isinstance(state, optimizers.OptimizerState) and history.shape == (5, 3)
    marked = optimizers.unpack_optimizer_state(state)
    assert isinstance(marked["a"], optimizers.JoinPoint) and len(jax.tree.leaves(marked)) == 3
    again = optimizers.pack_optimizer_state(marked)
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(again), jax.tree.leaves(state)))
    with pytest.raises(TypeError, match="the parameters that init_fun got"):
        update(0, {"a": 1.0}, state)
    with pytest.raises(TypeError, match="JoinPoint"):
        optimizers.pack_optimizer_state({"a": 1.0})


def test_norms():
    tree = {"a": jnp.arange(1.0, 4.0), "b": (jnp.ones((2, 2)), jnp.float32(3))}
    assert float(optimizers.l2_norm(tree)) == pytest.approx(27**0.5)
    clipped = optimizers.clip_grads(tree, 1.0)
    np.testing.assert_allclose(clipped["a"], np.arange(1.0, 4.0) / 27**0.5, rtol=1e-6)
    assert optimizers.clip_grads(tree, 100.0)["a"].tolist() == [1, 2, 3]
