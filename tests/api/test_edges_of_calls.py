"""What JAX does at the edges of calls: options that refuse to trace or to run, events, values that are only types."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax, monitoring, tree_util
from pullback.flatten_util import ravel_pytree


def test_nothing_is_traced_or_run_where_that_is_forbidden():
    known = jax.jit(lambda x: x * 3)
    assert float(known(1.0)) == 3
    with jax.no_tracing(True), pytest.raises(RuntimeError, match=r"jit: 'no_tracing' is on, so .* is not traced"):
        jax.jit(lambda x: x * 5)(1.0)
    for trace in (jax.make_jaxpr, lambda f: lambda x: jax.eval_shape(f, x)):
        with jax.no_tracing(True), pytest.raises(RuntimeError, match=r"'no_tracing' is on"):
            trace(lambda x: x * 5)(1.0)
    x = jnp.ones(2)
    with jax.no_execution(True):
        for run in (lambda: known(1.0), lambda: x + 1, lambda: jnp.sin(x), lambda: jax.jit(lambda x: x * 7)(1.0)):
            with pytest.raises(RuntimeError, match="no_execution"):
                run()
        assert jax.eval_shape(lambda x: x + 1, x).shape == (2,)
    assert float(known(1.0)) == 3 and float((x + 1)[0]) == 2


def test_tracing_and_compiling_are_events():
    seen = []
    listener = lambda event, seconds, **about: seen.append((event.rpartition("/")[2], seconds >= 0, about["fun_name"]))
    monitoring.register_event_duration_secs_listener(listener)
    try:
        f = jax.jit(lambda x: x * 1.2345)
        f(jnp.ones(5)), f(jnp.ones(5))
    finally:
        monitoring.unregister_event_duration_listener(listener)
    stages = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
    assert [event for event in seen if event[2] == "<lambda>"] == [(stage, True, "<lambda>") for stage in stages]


def test_types_and_structures():
    compiled = jax.jit(lambda x: x).lower(jax.ShapeDtypeStruct((2,), np.float32)).compile()
    with pytest.raises(TypeError, match="not a valid JAX type"):
        compiled(jax.ShapeDtypeStruct((2,), np.float32))
    for bad in ("a", (2.5,)):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
            jax.core.ShapedArray(bad, np.float32)
    assert repr(jax.core.ShapedArray((2,), np.int32).to_tangent_aval()) == "ShapedArray(float0[2])"
    for tree, weak in ((3.0, True), ([1, 2], True), ([1, 2.0], False), ([1.0, jnp.ones(1)], False)):
        vector, unravel = ravel_pytree(tree)
        assert vector.weak_type == weak == tree_util.tree_leaves(unravel(vector))[0].weak_type


def test_rules():
    added = jax.custom_batching.custom_vmap(lambda x, y: x + y)
    added.def_vmap(lambda size, batched, x, y: (x * y, True))
    assert isinstance(added(1.0, 2.0), jax.Array)
    zero = jax.custom_derivatives.SymbolicZero.from_primal_value(1.0)
    assert zero.shape == () and zero.dtype == np.float32 and zero.weak_type
    b = jnp.ones(2)
    with pytest.raises(ValueError, match="structure and shapes"):
        lax.custom_linear_solve(lambda x: x, b, lambda mv, b: (b, b))


def test_rules_that_close_over_what_is_differentiated():
    def by_jvp(a):
        f = jax.custom_jvp(lambda x: x * a)
        f.defjvp(lambda primals, tangents: (f(primals[0]), tangents[0] * a))
        return f(2.0)

    def by_vjp(a):
        f = jax.custom_vjp(lambda x: x * a)
        f.defvjp(lambda x: (x * a, None), lambda _, bar: (bar * a,))
        return f(2.0)

    for f in (by_jvp, by_vjp):
        for run in (jax.grad(f), lambda a, f=f: jax.jvp(f, (a,), (a,)), jax.jit(jax.grad(f))):
            with pytest.raises(jax.errors.UnexpectedTracerError):
                run(3.0)
        np.testing.assert_array_equal(jax.vmap(f)(jnp.arange(3.0)), [0, 2, 4])


def test_derivative_of_the_cube_root_at_its_ends():
    for run in (jax.grad(jnp.cbrt), jax.jit(jax.grad(jnp.cbrt))):
        np.testing.assert_allclose([run(x) for x in (0.0, 8.0, -8.0, np.inf)], [np.inf, 1 / 12, 1 / 12, 0], rtol=1e-6)
    assert jax.grad(jax.grad(jnp.cbrt))(0.0) == -np.inf
