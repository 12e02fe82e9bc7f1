"""Operands of elementwise operations that have axes of size 1: in jaxprs as they are, with all transformations."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

SHAPES = [((2, 3), (2, 1)), ((2, 1), (1, 3)), ((3,), (1,)), ((2, 0), (1, 1)), ((2, 3), ())]
FUNCTIONS = [lax.add, lax.mul, lax.div, lax.pow, lax.max, lax.rem, lax.atan2, lax.igamma, lax.lt, lax.complex]


def operands(shapes):
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.uniform(1.2, 3, shape), jnp.float32) for shape in shapes]


def whole(function, shape):
    return lambda *args: function(*[jnp.broadcast_to(x, shape) for x in args])


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_derivatives(function):
    for shapes in SHAPES:
        xs, shape = operands(shapes), np.broadcast_shapes(*shapes)
        expected = whole(function, shape)(*xs)
        for found in (function(*xs), function(*xs), jax.jit(function)(*xs)):
            assert found.shape == shape and found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)
        stacked = [jnp.stack([x, 1.5 * x], x.ndim) for x in xs]
        for axes in ((-1, -1), (-1, None), (None, -1)):
            given = [s if a == -1 else x for s, x, a in zip(stacked, xs, axes)]
            one = function(*[s[..., 1] if a == -1 else x for s, x, a in zip(stacked, xs, axes)])
            np.testing.assert_allclose(jax.vmap(function, axes)(*given)[1], one, rtol=1e-6)
        if expected.dtype != jnp.float32 or function is lax.igamma:
            continue
        given, spread = (lambda *a, f=f: f(*a).sum() for f in (function, whole(function, shape)))
        for derivative in (jax.grad, lambda f, n: jax.jit(jax.grad(f, n)), jax.hessian):
            found, wanted = derivative(given, (0, 1))(*xs), derivative(spread, (0, 1))(*xs)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6), found, wanted)


def test_jaxprs():
    x, column, row = jnp.ones((2, 3)), jnp.ones((2, 1)), jnp.ones(3)
    assert "add a b" in str(jax.make_jaxpr(lax.add)(x, column))
    names = [eqn.primitive.name for eqn in jax.make_jaxpr(lambda x: x - x.mean(1, keepdims=True))(x).eqns]
    assert names == ["reduce_sum", "broadcast_in_dim", "div", "sub"]
    (made, added) = jax.make_jaxpr(jnp.add)(x, row).eqns
    assert made.outvars[0].aval.shape == (1, 3) and added.outvars[0].aval.shape == (2, 3)
    (made, _) = jax.make_jaxpr(jax.vmap(lax.mul))(x, jnp.ones(2)).eqns
    assert made.outvars[0].aval.shape == (2, 1)
    with pytest.raises(TypeError, match="add got incompatible shapes for broadcasting: "):
        lax.add_p.bind(x, jnp.ones((2, 2)))
    with pytest.raises(TypeError, match="select cases must have the same shapes"):
        lax.select(x > 0, x, column)


def test_joins_are_primitives():
    x = jnp.arange(6.0).reshape(2, 3)
    for function, name, params in (
        (lambda x: jnp.tile(x, 2), "tile", {"reps": (1, 2)}),
        (lambda x: jnp.stack([x, x], 1), "stack", {"axis": 1}),
        (lambda x: jnp.split(x, [1], 1), "split", {"axis": 1, "sizes": (1, 2)}),
        (lambda x: jnp.unstack(x, axis=1), "unstack", {"axis": 1}),
    ):
        (eqn,) = jax.make_jaxpr(function)(x).eqns
        assert eqn.primitive.name == name and eqn.params == params
        jax.tree.map(np.testing.assert_array_equal, jax.jit(function)(x), function(np.asarray(x)))
        jax.tree.map(np.testing.assert_array_equal, jax.jvp(function, (x,), (x,))[1], function(x))


def test_names_of_batched_rules():
    @jax.custom_jvp
    def double(x):
        return 2 * x

    @double.defjvp
    def double_jvp(primals, tangents):
        return double(*primals), 2 * tangents[0]

    for mapped in (jax.vmap(double), jax.vmap(jax.jit(double))):
        text = str(jax.make_jaxpr(mapped)(jnp.ones(3)))
        assert "name=double\n" in text and "jvp=double_jvp\n" in text


def test_scalars_meet_a_mapped_condition_of_any_shape():
    """As in JAX under vmap alone: jaxmarl's environments decode actions of shape (1,) so."""
    which = np.array([[True, False], [False, True], [True, True]])
    choose = lambda w: jax.lax.select(w, 1, 2)
    np.testing.assert_array_equal(jax.vmap(choose)(which), np.where(which, 1, 2))
    np.testing.assert_array_equal(jax.jit(jax.vmap(choose, in_axes=1, out_axes=1))(which), np.where(which, 1, 2))
    twice = jax.vmap(lambda x: jax.vmap(choose)(which[None] & (x > 0)))(np.arange(2))
    np.testing.assert_array_equal(twice, np.where(which & (np.arange(2) > 0)[:, None, None, None], 1, 2))
    for refused in (
        lambda: choose(which),
        lambda: jax.vmap(lambda w, c: jax.lax.select(w, c, c))(which, np.ones(3)),
        lambda: jax.vmap(jax.jit(choose))(which),
    ):
        with pytest.raises(TypeError, match="does not choose among cases"):
            refused()
