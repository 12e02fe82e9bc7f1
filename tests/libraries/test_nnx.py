"""flax.nnx from PyPI, unmodified: modules with state, optimizers, its transformations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Linear(1, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.drop = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.relu(self.drop(self.norm(self.first(x)))))


def test_a_network_learns():
    x = jnp.linspace(-1, 1, 32)[:, None]
    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(2e-2), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x, y):
        value, gradient = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
        optimizer.update(model, gradient)
        return value

    values = [float(step(model, optimizer, x, x**2)) for _ in range(80)]
    assert values[-1] < 0.3 * values[0] and float(abs(model.norm.mean[...]).sum()) > 0
    model.eval()
    np.testing.assert_allclose(model(x), model(x))


def test_split_merge_and_state():
    model = Net(nnx.Rngs(0))
    graph, params, rest = nnx.split(model, nnx.Param, ...)
    again = nnx.merge(graph, jax.tree.map(lambda p: 0 * p, params), rest)
    again.eval()
    assert not again(jnp.ones((2, 1))).any() and model.first.kernel.shape == (1, 16)
    assert set(nnx.state(model, nnx.BatchStat)) == {"norm"}


def test_transformations():
    @nnx.vmap(in_axes=0, out_axes=0)
    def make(key):
        return nnx.Linear(3, 3, rngs=nnx.Rngs(key))

    layers = make(jax.random.split(jax.random.key(0), 4))
    assert layers.kernel.shape == (4, 3, 3)

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def through(x, layer):
        return layer(x)

    x, want = jnp.ones((2, 3)), np.ones((2, 3), "f")
    for kernel in layers.kernel[...]:
        want = want @ np.asarray(kernel)
    np.testing.assert_allclose(through(x, layers), want, rtol=1e-5)

    class Counter(nnx.Module):
        def __init__(self):
            self.count = nnx.Variable(jnp.array(0))

    counter = Counter()

    @nnx.jit
    def more(counter):
        counter.count[...] += 1

    more(counter)
    more(counter)
    assert int(counter.count[...]) == 2


def test_layers():
    rngs = nnx.Rngs(0)
    attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=rngs)
    assert attention(jnp.ones((1, 4, 8))).shape == (1, 4, 8)
    assert nnx.Conv(3, 4, (3, 3), rngs=rngs)(jnp.ones((1, 5, 5, 3))).shape == (1, 5, 5, 4)
    assert nnx.RNN(nnx.LSTMCell(3, 5, rngs=rngs))(jnp.ones((2, 6, 3))).shape == (2, 6, 5)
    assert nnx.Embed(10, 4, rngs=rngs)(jnp.arange(3)).shape == (3, 4)
    assert nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.gelu, nnx.LayerNorm(4, rngs=rngs))(jnp.ones(3)).shape == (4,)


def test_variables_that_jitted_functions_change():
    """Of both kinds that nnx has beside plain ones: objects of a type above arrays, and references."""
    for kind in ({"hijax": True}, {"ref": True}):
        count = nnx.Variable(jnp.array(1), note="kept", **kind)

        @jax.jit
        def add(count, by):
            count[...] += by
            return count[...] * 2

        assert [int(add(count, k)) for k in (1, 2)] == [4, 8] and int(count[...]) == 4, kind
        assert count.get_metadata()["note"] == "kept"
    held = nnx.Variable({"a": jnp.array(0)}, hijax=True)
    jax.jit(lambda v: v.set_value({**v.get_value(), "b": v["a"] + 5}))(held)
    assert int(held["b"]) == 5


def test_parameters_laid_out_over_a_mesh():
    mesh = jax.make_mesh((1, 1), ("rows", "columns"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    init = nnx.with_partitioning(nnx.initializers.lecun_normal(), sharding=("rows", "columns"))
    with jax.set_mesh(mesh):
        layer = nnx.Linear(4, 2, kernel_init=init, use_bias=False, rngs=nnx.Rngs(0))
        assert layer.kernel[...].sharding.spec == jax.sharding.PartitionSpec("rows", "columns")
        assert layer(jnp.ones((3, 4))).shape == (3, 2)
