"""Arrays that stand for their slices, joined along explicit axes; operations on what programs have made."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
import pullback.scipy.linalg as linalg
from pullback import lax
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P
from pullback.util.errors import ShardingTypeError

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
X = np.arange(32, dtype=np.float32).reshape(4, 8)
V = np.arange(8, dtype=np.float32)

JOINED = {
    "vstack": (lambda xp, x: xp.vstack(x), "float32[4@x,8@y]"),
    "hstack": (lambda xp, x: xp.hstack(x), "float32[32@(x,y)]"),
    "dstack": (lambda xp, x: xp.dstack(x), "float32[1,8@y,4@x]"),
    "column_stack": (lambda xp, x: xp.column_stack(x), "float32[8@y,4@x]"),
    "concatenate": (lambda xp, x: xp.concatenate(x), "float32[32@(x,y)]"),
    "rows of rows": (lambda xp, x: xp.concatenate(x.reshape(4, 1, 8), 1), "float32[1,32@(x,y)]"),
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("jit", [False, True])
def test_an_array_is_joined_with_itself_as_it_is_cut(name, jit):
    f, want = JOINED[name]
    x = jax.device_put(X, NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        out = (jax.jit(f, static_argnums=0) if jit else f)(jnp, x)
    assert str(jax.typeof(out)) == want
    np.testing.assert_array_equal(out, f(np, X))


@pytest.mark.parametrize("name", ["vstack", "hstack", "dstack", "column_stack"])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4), (1, 2, 3, 2), (2, 0), (1, 4)])
def test_an_array_is_joined_as_numpy_joins_its_slices(name, shape):
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    np.testing.assert_array_equal(getattr(jnp, name)(x), getattr(np, name)(x), strict=True)


def test_blocks_along_a_diagonal_are_cut_as_they_are():
    x = jax.device_put(X, NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        out = linalg.block_diag(x, x)
        with pytest.raises(ShardingTypeError, match="alike"):
            linalg.block_diag(x, jax.device_put(V, P("x")))
    assert str(jax.typeof(out)) == "float32[8@x,16@y]"
    np.testing.assert_array_equal(out[:4, :8], X)


def test_what_is_filled_with_an_array_lies_as_that():
    x = jax.device_put(X, NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        assert str(jax.typeof(jnp.full_like(x, jax.device_put(X, P(None, "x"))))) == "float32[4,8@x]"
        assert str(jax.typeof(jnp.full_like(x, 2.0))) == "float32[4@x,8@y]"


def test_results_of_programs_are_refused_as_other_arrays_are():
    # their types say how they are cut, and so did, once, the program of the next operation: it passed for one that
    # the user had laid out
    made = jax.jit(lambda v: v * 2)(jax.device_put(V, NamedSharding(MESH, P("x"))))
    with jax.set_mesh(MESH):
        for _ in range(2):
            with pytest.raises(ShardingTypeError, match="slicing"):
                made[1:]
            with pytest.raises(ShardingTypeError, match="alike"):
                jnp.concatenate([made, V])
        with pytest.raises(ShardingTypeError, match="cholesky"):
            linalg.cho_factor(jax.jit(lambda v: v * 1)(jax.device_put(np.eye(4, dtype=np.float32), P("x"))))


def test_gradients_of_auto_axes_of_results_of_programs():
    x = jax.device_put(X[:, :4], NamedSharding(MESH, P("x", "y")))
    with jax.set_mesh(MESH):
        square = jax.sharding.auto_axes(lambda v: v @ v.T, out_sharding=P("x"))
        gradient = jax.grad(lambda v: square(v).sum())
        found, wanted = gradient(jax.jit(lambda v: v * 1)(x)), gradient(x)
    assert str(jax.typeof(found)) == str(jax.typeof(wanted)) == "float32[4@x,4@y]"
    np.testing.assert_array_equal(found, wanted)


def test_trees_are_marked_as_used():
    lax.dce_sink({"a": jnp.ones(2), "b": [1.0, np.ones(3)]})
    jaxpr = jax.make_jaxpr(lambda x: lax.dce_sink([x, x]))(1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["dce_sink"] * 2
