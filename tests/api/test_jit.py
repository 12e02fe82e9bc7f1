"""jit: when it traces, what it shares, and its stages ahead of time."""

from __future__ import annotations

import collections.abc
import functools
import gc
import pickle
import threading

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

X = np.arange(3, dtype=np.float32)


def counted():
    """A function, and the list that gets an element whenever it runs."""
    runs = []

    def f(x, *rest):
        runs.append(1)
        return x * 2

    return f, runs


def test_jit_of_one_function_again_and_again_traces_once():
    f, runs = counted()
    for _ in range(3):
        jax.jit(f)(X)
    assert len(runs) == 1
    jax.jit(f, static_argnums=1)(X, 3)  # another argument, another trace
    assert len(runs) == 2
    for options in ({"donate_argnums": 0}, {"inline": True}, {"keep_unused": True}):  # what is traced is the same
        jax.jit(f, **options)(X + 0)
    assert len(runs) == 2


def test_none_is_no_function_and_no_function_at_all_a_decorator():
    with pytest.raises(TypeError, match="Expected a callable value, got None"):
        jax.jit(None)
    assert jax.jit(static_argnums=0)(lambda n: n)(3) == 3 and jax.jit()(lambda x: x + 1)(1) == 2


def test_wrapped_functions_do_not_share():
    f, _runs = counted()
    jax.jit(f)(X)

    @functools.wraps(f)
    def g(x):
        return f(x) + 1

    np.testing.assert_array_equal(jax.jit(g)(X), X * 2 + 1)
    np.testing.assert_array_equal(jax.jit(f)(X), X * 2)


def test_clear_cache_forgets():
    f, runs = counted()
    jitted = jax.jit(f)
    jitted(X)
    jitted.clear_cache()
    jitted(X)
    assert len(runs) == 2


def test_eval_shape_and_jit_share_traces():
    f, runs = counted()
    assert jax.eval_shape(f, jax.ShapeDtypeStruct(X.shape, X.dtype)).shape == X.shape
    np.testing.assert_array_equal(jax.jit(f)(X), X * 2)
    assert len(runs) == 1
    f, runs = counted()
    jax.jit(f)(X)
    assert jax.eval_shape(f, X).dtype == X.dtype
    assert len(runs) == 1
    jax.eval_shape(f, 1.0)  # another type
    jax.jit(f)(2.0)
    assert len(runs) == 2
    jax.jit(jax.vmap(f))(X)
    jax.clear_caches()
    jax.eval_shape(f, X)
    assert len(runs) == 4


def test_clear_caches_forgets_traces_of_functions_that_are_jitted_no_more():
    f, runs = counted()
    jax.jit(f)(X)
    gc.collect()  # the jitted function is gone
    jax.clear_caches()
    jax.jit(f)(X)
    assert len(runs) == 2


def test_what_eval_shape_closes_over_is_not_shared():
    def outer(x):
        def inner(y):
            return x * y

        assert jax.eval_shape(inner, X).shape == X.shape
        return jax.jit(inner)(X)

    np.testing.assert_array_equal(jax.jit(outer)(3.0), X * 3)
    np.testing.assert_array_equal(jax.vmap(outer)(X), np.outer(X, X))


def test_traces_by_type_and_static_value():
    f, runs = counted()
    jitted = jax.jit(f, static_argnums=1)
    counts = []
    for static in (1, 1, 1.0, True, "a", (1, 2), (1, 2), None):
        jitted(X, static)
        counts.append(len(runs))
    assert counts == [1, 1, 2, 3, 4, 5, 5, 6]


def test_exceptions_leave_nothing_behind():
    def fail(x):
        raise ValueError("mine")

    nested = jax.jit(jax.vmap(jax.grad(lambda x: lax.scan(lambda c, _: (fail(c), None), x, None, length=2)[0])))
    for call in (jax.jit(fail), jax.grad(fail), jax.vmap(fail), jax.checkpoint(fail), nested):
        with pytest.raises(ValueError, match="mine"):
            call(X)
        assert not isinstance(jnp.ones(2) + 1, jax.core.Tracer)


def test_threads_trace_and_call_at_once():
    f = jax.jit(lambda x, y: jnp.sin(x) * y + jax.grad(lambda z: z**2)(1.0) * x)
    errors = []

    def work(number):
        try:
            for k in range(15):
                size = k % 5 + 1
                np.testing.assert_allclose(
                    f(jnp.full(size, float(number)), float(k)),
                    np.full(size, np.sin(number) * k + 2 * number),
                    rtol=1e-4,
                    atol=1e-5,
                )
                gradient = jax.grad(lambda x: jax.jit(lambda y: (y**3).sum())(x))(jnp.full(size, 2.0))
                np.testing.assert_allclose(gradient, 12.0)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_a_thread_started_inside_a_trace_is_outside_of_it():
    found = []

    def f(x):
        thread = threading.Thread(target=lambda: found.append(jnp.ones(2) + 1))
        thread.start()
        thread.join()
        return x * 2

    jax.jit(f)(1.0)
    assert not isinstance(found[0], jax.core.Tracer)


# values


def test_concrete_work_while_tracing():
    def f(x):
        with jax.ensure_compile_time_eval():
            count = int(jnp.sum(jnp.arange(3)))
            return x * count

    np.testing.assert_array_equal(jax.jit(f)(X), X * 3)
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(X), [3, 3, 3])
    np.testing.assert_array_equal(jax.vmap(f)(X), X * 3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: jnp.asarray(np.ones(3), jnp.float32),
        lambda: jnp.array([1.0, 2.0]),
        lambda: jnp.float32(2),
        lambda: jax.random.key(0),
        lambda: jax.device_put(np.ones(3)),
        lambda: jax.vmap(lambda x: x + jnp.array(2.0))(jnp.ones(3)),
    ],
    ids=["asarray", "list", "scalar", "key", "device_put", "vmap"],
)
def test_arrays_made_at_once_while_tracing_can_be_kept(make):
    kept = []

    def f(x):
        with jax.ensure_compile_time_eval():
            kept.append(make())
        return jax.jit(lambda y: y + jnp.array(1.0))(x)

    jax.jit(f)(X), jax.jit(jax.vmap(f))(X)
    assert len(kept) == 2 and not any(isinstance(k, jax.core.Tracer) for k in kept)
    jax.block_until_ready(kept)


def test_python_control_flow_without_jit_falls_back_where_values_are_traced():
    with jax.disable_jit():
        assert jax.grad(lambda x: lax.scan(lambda c, y: (c * y, None), x, X + 1)[0])(2.0) == 6
        np.testing.assert_array_equal(jax.vmap(lambda x: lax.cond(x > 0, lambda: 1.0, lambda: 2.0))(X), [2, 1, 1])
        np.testing.assert_array_equal(
            jax.vmap(lambda x: lax.while_loop(lambda c: c < 5, lambda c: c * 2, x + 1))(X), [8, 8, 6]
        )


def test_while_loops_without_jit_carry_arrays_and_counted_ones_python_numbers():
    seen = []
    with jax.disable_jit():
        whole = lax.while_loop(lambda c: seen.append(c[0]) or c[0] < 2, lambda c: (c[0] + 1, 5), (0, np.float32(1)))
        counted = lax.fori_loop(0, jnp.int32(3), lambda i, c: seen.append(i) or c + i, 0)
    assert [type(x) for x in (*whole, *seen[:3])] == [type(jnp.ones(1))] * 5 and [*map(int, whole)] == [2, 5]
    assert type(counted) is int and counted == 3 and [type(i) for i in seen[3:]] == [int] * 3


def test_traced_values_are_nowhere():
    for look in (lambda x: x.devices(), lambda x: x.is_deleted(), lambda x: x.addressable_shards, pickle.dumps):
        with pytest.raises(jax.errors.ConcretizationTypeError):
            jax.jit(look)(X)


def test_leaks_are_found():
    kept = []
    with jax.checking_leaks():
        for transform in (jax.jit, jax.vmap):
            assert transform(lambda x: x * 2)(X).shape == (3,)
            with pytest.raises(Exception, match="Leaked trace"):
                transform(lambda x: (kept.append(x), x)[1])(X)


def test_device_get_and_formats_of_traced_values():
    np.testing.assert_array_equal(jax.jit(lambda x: jax.device_get(x) * 2)(X), X * 2)
    with pytest.raises(TypeError, match="format string"):
        jax.jit(lambda x: f"{x:.2f}")(1.0)
    with pytest.raises(ValueError, match="device_put"):
        jax.device_put(X, "cpu")


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.checkpoint, jax.make_jaxpr])
def test_results_that_are_no_arrays_are_named(transform):
    with pytest.raises(
        TypeError, match=r"\w+: the result of answer at .*test_jit.py:\d+ has .* component \['b'\]; .*'str'"
    ):

        def answer(x):
            return {"a": x, "b": "text"}

        transform(answer)(X)


def test_static_arguments_differ_by_type_and_sign_within_tuples():
    f = jax.jit(lambda x, s: x * s[0][1], static_argnums=1)
    one = jnp.int32(1)
    for _ in range(2):
        assert [f(one, ((0, s),)).dtype for s in (1, 1.0, True)] == [np.int32, np.float32, np.int32]
        assert [float(np.copysign(1.0, f(jnp.float32(1), ((0, s),)))) for s in (0.0, -0.0)] == [1.0, -1.0]


def test_traced_values_are_not_hashable():
    def f(x):
        assert not isinstance(x, collections.abc.Hashable)
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)
        return x * x

    assert float(jax.jit(f)(2.0)) == 4 and float(jax.grad(f)(2.0)) == 4
    np.testing.assert_array_equal(jax.vmap(f)(jnp.arange(3.0)), [0, 1, 4])


def test_a_type_is_no_result():
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        jax.jit(lambda x: jax.eval_shape(lambda y: y, x))(1.0)
    assert jax.eval_shape(lambda x: jax.ShapeDtypeStruct((2,), x.dtype), 1.0).shape == (2,)


def test_custom_rules_hold_no_tracers():
    """The rules of a staged call live with its program; they held its arguments."""

    @jax.custom_jvp
    def f(x, y):
        return jnp.sin(x) * y

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * primals[1]))

    @jax.custom_vjp
    def g(x):
        return x["a"] * 2

    g.defvjp(lambda x: (g(x), x), lambda x, bar: ({"a": bar * x["a"]},))
    h = jax.custom_gradient(lambda x: (x * 2, lambda bar: bar * 3))
    with jax.checking_leaks():
        assert float(jax.jit(jax.grad(lambda x: f(x, 2.0) + g({"a": x}) + h(x)))(3.0)) == 8
        assert float(jax.jit(lambda x: f(x, 1.0) * 0 + g({"a": x}) + h(x))(3.0)) == 12
        assert float(jax.jit(lambda x: jax.nn.relu(x) + jax.scipy.special.log_ndtr(x) * 0)(3.0)) == 3
        assert float(jax.grad(jax.checkpoint(h))(3.0)) == 3
        assert float(jax.grad(lambda x: jax.lax.scan(lambda c, _: (h(c), None), x, None, length=2)[0])(3.0)) == 9
