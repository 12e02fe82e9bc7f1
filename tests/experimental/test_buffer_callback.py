"""Callbacks that write their results: values, batching, aliases, effects, errors."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental.buffer_callback import Buffer, ExecutionContext, ExecutionStage, buffer_callback
from pullback.sharding import AxisType, NamedSharding, PartitionSpec

X = jnp.arange(3.0)
ROW, ONE = (jax.ShapeDtypeStruct(shape, np.float32) for shape in ((3,), ()))


def twice(_context, out, x):
    np.asarray(out)[...] = 2 * np.asarray(x)


def test_values():
    f = buffer_callback(twice, ROW)
    assert f(X).tolist() == jax.jit(f)(X).tolist() == f(np.asarray(X)).tolist() == [0, 2, 4]
    assert lax.scan(lambda c, _: (buffer_callback(twice, ONE)(c), None), 1.0, None, length=3)[0] == 8

    def trees(context, out, d, *, k):
        assert type(context) is ExecutionContext and context.stage is ExecutionStage.EXECUTE
        assert type(out["a"]) is Buffer and (k.shape, k.ndim, k.dtype) == ((3,), 1, np.float32)
        assert out["a"].writeable
        np.from_dlpack(d["x"])  # a view, too
        np.asarray(out["a"])[...] = d["x"]
        np.asarray(out["b"][0])[...] = np.asarray(k).sum()

    got = buffer_callback(trees, {"a": ROW, "b": (ONE,)})({"x": X}, k=X + 1)
    assert got["a"].tolist() == [0, 1, 2] and got["b"][0] == 6
    assert buffer_callback(lambda _context, _out, _x: None, ())(X) == ()


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_vmap(method):
    assert jax.vmap(buffer_callback(twice, ONE, vmap_method=method))(X).tolist() == [0, 2, 4]
    assert jax.jit(jax.vmap(buffer_callback(twice, ROW, vmap_method=method)))(jnp.ones((2, 3))).shape == (2, 3)


def test_results_that_hold_arguments_at_first():
    def add(_context, out, x):
        np.asarray(out)[...] += 1

    f = buffer_callback(add, ROW, input_output_aliases={0: 0})
    y, x = jax.jit(lambda x: (f(x), x))(X)
    assert y.tolist() == [1, 2, 3] and x.tolist() == [0, 1, 2]
    for aliases, text in (({3: 0}, "input index 3 outside"), ({0: 3}, "output index 3 outside")):
        with pytest.raises(ValueError, match=text):
            buffer_callback(add, ROW, input_output_aliases=aliases)(X)
    with pytest.raises(ValueError, match="use the memory of input"):
        buffer_callback(add, ONE, input_output_aliases={0: 0})(X)


def test_effects():
    calls = []

    def note(_context, _out, _x):
        calls.append(1)

    jax.block_until_ready(jax.jit(lambda x: (buffer_callback(note, ())(x), x)[1])(X))
    assert calls == []
    jax.block_until_ready(jax.jit(lambda x: (buffer_callback(note, (), has_side_effect=True)(x), x)[1])(X))
    assert calls == [1]


def test_errors():
    def failing(_context, _out, _x):
        raise KeyError("no")

    with pytest.raises(jax.errors.JaxRuntimeError, match="Error when calling buffer callback"):
        buffer_callback(failing, ROW)(X)
    with pytest.raises(jax.errors.JaxRuntimeError, match="must return None"):
        buffer_callback(lambda _context, _out, _x: 5, ROW)(X)
    with pytest.raises(ValueError, match="do not support JVP"):
        jax.grad(buffer_callback(twice, ONE))(1.0)
    for method in (None, "other"):
        with pytest.raises(NotImplementedError, match="vmap is only supported"):
            jax.vmap(buffer_callback(twice, ONE, vmap_method=method))(X)
    with pytest.raises(NotImplementedError, match="no streams"):
        _ = ExecutionContext().stream
    with pytest.raises(TypeError, match="'callback' must be a function"):
        buffer_callback(3, ROW)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_what_lies_on_several_devices(kind):
    """The function is given all of it; what it writes is whole."""
    mesh = jax.make_mesh((2,), ("x",), axis_types=(kind,), devices=jax.devices()[:2])
    with jax.set_mesh(mesh):
        x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, PartitionSpec("x")))
        row = jax.ShapeDtypeStruct((4,), np.float32)
        got = jax.jit(lambda x: buffer_callback(twice, row)(x) + 1)(x)
    assert got.tolist() == [1, 3, 5, 7] and got.sharding.is_fully_replicated
