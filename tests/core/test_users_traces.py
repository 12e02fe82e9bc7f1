"""Interpreters that users write: subclasses of jax.core.Trace and jax.core.Tracer, as haiku's to_dot has them."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.extend import core as jex

X = np.arange(3, dtype=np.float32)


class NamingTracer(jax.core.Tracer):
    def __init__(self, trace, value):
        super().__init__(trace, jax.typeof(value))
        self.value = value


class NamingTrace(jax.core.Trace):
    """Runs primitives under its parent, and keeps their names."""

    def __init__(self, parent):
        super().__init__()
        self.parent_trace, self.names = parent, []

    def below(self, x):
        return x.value if isinstance(x, NamingTracer) and x._trace is self else x

    def process_primitive(self, primitive, tracers, params):
        values = [self.below(t) for t in tracers]
        out = primitive.bind_with_trace(self.parent_trace, values, [jax.typeof(v) for v in values], params)
        self.names.append(primitive.name)
        return jax.tree.map(lambda v: NamingTracer(self, v), out)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, *, symbolic_zeros):
        self.names.append("custom_jvp_call")
        return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, out_trees, symbolic_zeros):
        self.names.append("custom_vjp_call")
        return fun.call_wrapped(*tracers)


def named(fun, *args):
    """(fun(*args), the names of the primitives that it binds)."""
    with jex.take_current_trace() as parent:
        trace = NamingTrace(parent)
        with jex.set_current_trace(trace):
            out = fun(*[NamingTracer(trace, a) for a in args])
    return jax.tree.map(trace.below, out, is_leaf=lambda x: isinstance(x, NamingTracer)), trace.names


def double_sin(x):
    return jax.lax.mul(jax.lax.sin(x), jax.lax.full_like(x, 2.0))


def test_primitives_reach_the_trace():
    out, names = named(double_sin, jnp.asarray(X))
    np.testing.assert_allclose(out, 2 * np.sin(X), rtol=1e-6)
    assert names[0] == "sin" and names[-1] == "mul"
    assert named(lambda x: jax.jit(jax.lax.cos)(x), jnp.asarray(X))[1] == ["jit"]
    assert named(lambda x: jax.lax.cond(x[0] > -1, jax.lax.sin, jax.lax.cos, x), jnp.asarray(X))[1][-1] == "cond"
    out, names = named(lambda x: jax.lax.scan(lambda c, _: (c * 2, c), x, None, length=2), jnp.asarray(X))
    assert names[-1] == "scan" and np.array_equal(out[0], 4 * X) and out[1].shape == (2, 3)


def test_functions_with_rules_of_their_own():
    assert named(jax.nn.relu, jnp.asarray(X))[1][0] == "custom_jvp_call"

    @jax.custom_vjp
    def f(x):
        return jax.lax.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, t: (t * x,))
    out, names = named(f, jnp.asarray(X))
    assert names == ["custom_vjp_call", "sin"] and np.allclose(out, np.sin(X))


def test_inside_other_transformations():
    def f(x):
        return named(double_sin, x)[0]

    np.testing.assert_allclose(jax.jit(f)(X), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(f)(X), 2 * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(jnp.asarray(X)), 2 * np.cos(X), rtol=1e-6)
    assert jax.eval_shape(f, X).shape == (3,)
    assert "sin" in str(jax.make_jaxpr(f)(X))


def test_a_trace_without_a_rule_says_so():
    class Empty(jax.core.Trace):
        pass

    with jex.set_current_trace(Empty()), pytest.raises(NotImplementedError, match="Empty has no process_primitive"):
        jax.lax.sin_p.bind(jnp.asarray(X))


def test_a_jaxpr_as_a_function_has_a_name():
    fun = jex.jaxpr_as_fun(jax.make_jaxpr(jnp.sin)(X))
    fun.__name__ = "sine"
    np.testing.assert_allclose(fun(X)[0], np.sin(X), rtol=1e-6)
