"""custom_vmap: the rule runs under vmap and nowhere else; sequential_vmap is a loop."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.custom_batching import custom_vmap, sequential_vmap


def marked():
    """x * y, whose rule adds 100, and the calls of the rule."""
    calls = []

    @custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def rule(axis_size, in_batched, x, y):
        calls.append((axis_size, in_batched, x.shape, jnp.shape(y)))
        return x * y + 100, True

    return f, calls


def test_the_rule_runs_under_vmap_only():
    f, calls = marked()
    x = np.arange(3, dtype=np.float32)
    assert float(f(2.0, y=3.0)) == 6.0
    assert float(jax.jit(f)(2.0, 3.0)) == 6.0
    assert float(jax.grad(f)(2.0, 3.0)) == 3.0
    assert calls == []
    np.testing.assert_array_equal(jax.vmap(f, (0, None))(x, 2.0), 2 * x + 100)
    assert calls.pop() == (3, [True, False], (3,), ())
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(x, x), x * x + 100)
    np.testing.assert_array_equal(jax.vmap(jax.jit(f))(x, x), x * x + 100)
    np.testing.assert_array_equal(
        jax.vmap(lambda x: lax.scan(lambda c, _: (f(c, c), None), x, None, 1)[0])(x), x * x + 100
    )


def test_mapped_axes_come_first_and_nest():
    f, calls = marked()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(jax.vmap(jax.vmap(f))(x, x), x * x + 100)
    assert calls[0][2] == (3,)
    np.testing.assert_array_equal(jax.vmap(f, 1, 1)(x, x), x * x + 100)


def test_derivatives_are_those_of_the_function():
    f, _ = marked()
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(jax.vmap(jax.grad(f))(x, x + 1), x + 1)
    value, tangent = jax.vmap(lambda x: jax.jvp(lambda x: f(x, x), (x,), (1.0,)))(x)
    np.testing.assert_array_equal(value, x * x + 100)
    np.testing.assert_array_equal(tangent, 2 * x)
    np.testing.assert_array_equal(jax.grad(lambda x: jax.vmap(f, (0, None))(x, 2.0).sum())(x), np.full(3, 2))


def test_trees_and_parts_that_are_not_mapped():
    @custom_vmap
    def f(d, k):
        return {"a": d["x"] * k, "b": k}

    @f.def_vmap
    def rule(axis_size, in_batched, d, k):
        assert in_batched == [{"x": True}, False]
        return {"a": d["x"] * k, "b": k}, {"a": True, "b": False}

    out = jax.vmap(f, (0, None))({"x": np.arange(3.0, dtype=np.float32)}, 2.0)
    np.testing.assert_array_equal(out["a"], [0, 2, 4])
    np.testing.assert_array_equal(out["b"], [2, 2, 2])


def test_sequential_vmap():
    seen = []

    @sequential_vmap
    def g(d, k):
        seen.append(d["x"].shape)
        return {"z": d["x"] * k}, k

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    out, k = jax.vmap(g)({"x": x}, np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(out["z"], x * np.arange(3)[:, None])
    np.testing.assert_array_equal(k, [0, 1, 2])
    out, k = jax.vmap(g, (0, None))({"x": x}, 2.0)
    np.testing.assert_array_equal(out["z"], 2 * x)
    assert set(seen) == {(2,)}
    text = str(jax.make_jaxpr(jax.vmap(g))({"x": x}, x[:, 0]))
    assert "scan" in text


def test_errors():
    @custom_vmap
    def f(x):
        return x

    x = np.ones(3, np.float32)
    with pytest.raises(AttributeError, match="No batching rule defined for f: "):
        jax.vmap(f)(x)
    f.def_vmap(lambda size, batched, x: x)
    with pytest.raises(TypeError, match="must give a pair"):
        jax.vmap(f)(x)
    f.def_vmap(lambda size, batched, x: ((x, x), True))
    with pytest.raises(ValueError, match="the results of its rule are"):
        jax.vmap(f)(x)
    f.def_vmap(lambda size, batched, x: (x, (True, True)))
    with pytest.raises(ValueError, match="says which are mapped in another"):
        jax.vmap(f)(x)
    f.def_vmap(lambda size, batched, x: (x.sum(), True))
    with pytest.raises(ValueError, match="expected a leading axis of size 3"):
        jax.vmap(f)(x)

    @custom_vmap
    def named(x, *, k):
        return x * k

    with pytest.raises(TypeError, match="could not be resolved to positions"):
        named(1.0, k=2)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(1.0, k=2)

    def closes_over(y):
        @custom_vmap
        def inner(x):
            return x * y

        inner.def_vmap(lambda size, batched, x: (x, True))
        return inner(y)

    with pytest.raises(ValueError, match="closes over a value that is mapped"):
        jax.vmap(closes_over)(x)


def test_tangents_under_vmap_are_those_of_the_rule():
    @jax.custom_batching.custom_vmap
    def f(x, y):
        return x * y, x

    @f.def_vmap
    def rule(size, batched, x, y):
        return (10 * x * y, x), (batched[0] or batched[1], batched[0])

    ones, t = jnp.ones(3), jnp.arange(3.0)
    push = lambda x, t: jax.jvp(lambda x: f(x, 2.0), (x,), (t,))
    for run in (jax.vmap, lambda g, *a: jax.jit(jax.vmap(g, *a)), lambda g, *a: jax.vmap(jax.jit(g), *a)):
        (value, same), (moved, same_dot) = run(push)(ones, t)
        np.testing.assert_array_equal([value, same, moved, same_dot], [20 * ones, ones, 20 * t, t])
        (value, _), (moved, _) = run(push, (None, 0))(1.0, t)  # the value takes part in what is mapped
        np.testing.assert_array_equal([value, moved], [20 * ones, 20 * t])
        twice = run(lambda x: jax.jvp(lambda x: jax.jvp(lambda x: f(x, x)[0], (x,), (1.0,))[1], (x,), (1.0,)))(t)
        np.testing.assert_array_equal(twice, [20 * t, 20 * ones])
    assert push(1.0, 3.0) == jax.jit(push)(1.0, 3.0) == ((2, 1), (6, 3))
    nested = jax.vmap(jax.vmap(lambda x: jax.jvp(lambda x: f(x, 3.0)[0], (x,), (x,))[1]))(jnp.ones((2, 3)))
    np.testing.assert_array_equal(nested, 30 * jnp.ones((2, 3)))  # the rule runs once, and is mapped itself
    # In reverse the value is the rule's, the derivative the function's, however the call is wrapped.
    for g in (lambda x: f(x, 2.0)[0], jax.jit(lambda x: f(x, 2.0)[0]), jax.checkpoint(lambda x: f(x, 2.0)[0])):
        value, slope = jax.vmap(jax.value_and_grad(g))(ones)
        np.testing.assert_array_equal([value, slope], [20 * ones, 2 * ones])
        assert jax.grad(g)(1.0) == jax.jit(jax.grad(g))(1.0) == 2 and jax.hessian(g)(1.0) == 0


def test_rules_of_a_function_that_has_derivatives_of_its_own():
    @jax.custom_vjp
    @custom_vmap
    def f(x):
        return jnp.sin(x)

    @f.def_vmap
    def rule(axis_size, in_batched, xs):
        return jnp.cos(xs), True

    f.defvjp(lambda x: (f(x), None), lambda _, bar: (3 * bar,))
    np.testing.assert_array_equal(jax.vmap(f)(jnp.zeros(2)), [1, 1])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.grad(f)))(jnp.zeros(2)), [3, 3])
    assert float(f(0.0)) == 0
    with pytest.raises(AttributeError):
        _ = f.no_such
