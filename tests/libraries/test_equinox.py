"""equinox from PyPI, unmodified: modules, filtered transformations, checkpointed loops, run-time errors."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

KEY = jax.random.key(0)


def test_a_network_learns():
    model = eqx.nn.MLP(4, 1, 32, 2, key=KEY)
    x = jax.random.normal(KEY, (64, 4))
    y = jnp.sin(x[:, :1])
    optimizer = optax.adam(1e-2)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    def loss(model):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    @eqx.filter_jit
    def step(model, state):
        value, gradient = eqx.filter_value_and_grad(loss)(model)
        updates, state = optimizer.update(gradient, state, model)
        return eqx.apply_updates(model, updates), state, value

    first = float(loss(model))
    for _ in range(100):
        model, state, _ = step(model, state)
    assert float(loss(model)) < first / 20


def test_layers():
    conv = eqx.nn.Sequential(
        [eqx.nn.Conv2d(1, 4, 3, key=KEY), eqx.nn.Lambda(jax.nn.relu), eqx.nn.MaxPool2d(2, 2), eqx.nn.Dropout(0.5)]
    )
    assert conv(jnp.ones((1, 8, 8)), key=KEY).shape == (4, 3, 3)
    norm, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(3, axis_name="batch", mode="batch")
    x = jnp.arange(12.0).reshape(4, 3)
    out, state = jax.vmap(norm, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)
    np.testing.assert_allclose(out, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4)
    assert eqx.nn.GRUCell(3, 5, key=KEY)(jnp.ones(3), jnp.zeros(5)).shape == (5,)
    attention = eqx.nn.MultiheadAttention(2, 8, key=KEY)
    assert attention(jnp.ones((5, 8)), jnp.ones((5, 8)), jnp.ones((5, 8))).shape == (5, 8)
    np.testing.assert_allclose(eqx.nn.LayerNorm(4)(jnp.arange(4.0)).mean(), 0, atol=1e-6)


@pytest.mark.parametrize("kind", ["lax", "checkpointed", "bounded"])
def test_loops(kind):
    steps = {} if kind == "lax" else {"max_steps": 20}

    def power(x):
        return eqx.internal.while_loop(lambda c: c < 10, lambda c: c * 1.5 * x, x, kind=kind, **steps)

    np.testing.assert_allclose(power(1.1), 1.1 * 1.65**5, rtol=1e-5)
    if kind != "lax":
        np.testing.assert_allclose(jax.grad(power)(1.1), 6 * 1.5**5 * 1.1**5, rtol=1e-5)
    iterated = jax.grad(lambda x: eqx.internal.scan(lambda c, _: (jnp.sin(c), None), x, None, length=5, kind=kind)[0])
    unrolled = jax.grad(lambda x: jnp.sin(jnp.sin(jnp.sin(jnp.sin(jnp.sin(x))))))
    if kind != "bounded":
        np.testing.assert_allclose(iterated(1.0), unrolled(1.0), rtol=1e-5)


def test_errors_at_run_time():
    @eqx.filter_jit
    def checked(x):
        return eqx.error_if(x, x < 0, "must not be negative")

    np.testing.assert_array_equal(checked(jnp.ones(3)), np.ones(3))
    with pytest.raises(eqx.EquinoxRuntimeError, match="must not be negative"):
        checked(-jnp.ones(3))


def test_filtered_transformations(tmp_path):
    np.testing.assert_allclose(eqx.filter_vmap(lambda a, b: a * b, in_axes=(0, None))(jnp.arange(3.0), 2.0), [0, 2, 4])
    np.testing.assert_allclose(eqx.filter_jacrev(lambda x: x**2)(jnp.ones(2)), 2 * np.eye(2))
    np.testing.assert_allclose(eqx.filter_jvp(jnp.sin, (0.0,), (2.0,))[1], 2)
    np.testing.assert_allclose(jax.grad(eqx.filter_checkpoint(jnp.sin))(3.0), np.cos(3.0), rtol=1e-6)
    assert eqx.filter_eval_shape(lambda x: x + 1, jnp.ones((1, 2))).shape == (1, 2)
    doubled = jax.jit(lambda x: eqx.filter_pure_callback(lambda x: x * 2, x, result_shape_dtypes=x))
    assert float(doubled(1.0)) == 2
    assert float(eqx.internal.finalise_fn(lambda x: x + 1)(1.0)) == 2
    square = eqx.internal.noinline(lambda x: x**2)
    np.testing.assert_allclose(jax.jit(square)(jnp.arange(3.0)), [0, 1, 4])
    np.testing.assert_allclose(jax.vmap(jax.grad(square))(jnp.arange(3.0)), [0, 2, 4])

    linear = eqx.nn.Linear(2, 3, key=KEY)
    eqx.tree_serialise_leaves(tmp_path / "linear.eqx", linear)
    other = eqx.nn.Linear(2, 3, key=jax.random.key(1))
    assert eqx.tree_equal(eqx.tree_deserialise_leaves(tmp_path / "linear.eqx", other), linear)
    np.testing.assert_array_equal(eqx.tree_at(lambda m: m.bias, linear, jnp.zeros(3)).bias, np.zeros(3))
    assert "weight=f32[3,2]" in eqx.tree_pformat(linear)
