"""Calls back into Python: values, order, effects under jit, vmap, grad and loops, errors."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import io_callback

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def sine(x):
    return np.sin(np.asarray(x))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit])
def test_pure_callback(transform):
    f = transform(lambda x: jax.pure_callback(sine, jax.ShapeDtypeStruct(x.shape, x.dtype), x) * 2)
    x = jnp.arange(3.0)
    np.testing.assert_allclose(f(x), 2 * np.sin(np.arange(3.0)), rtol=1e-6)


def test_pure_callback_of_trees():
    def f(x, y):
        return jax.pure_callback(
            lambda a, b: {"sum": np.asarray(a) + np.asarray(b), "n": np.int32(3)},
            {"sum": SCALAR, "n": jax.ShapeDtypeStruct((), np.int32)},
            x,
            b=y,
        )

    out = jax.jit(f)(1.0, 2.0)
    assert float(out["sum"]) == 3.0 and int(out["n"]) == 3


@pytest.mark.parametrize("method, calls", [("sequential", 3), ("expand_dims", 1), ("broadcast_all", 1)])
def test_pure_callback_under_vmap(method, calls):
    shapes = []

    def host(x, y):
        shapes.append((np.shape(x), np.shape(y)))
        return (np.asarray(x) * np.asarray(y)).astype(np.float32)

    f = jax.vmap(lambda x, y: jax.pure_callback(host, SCALAR, x, y, vmap_method=method), in_axes=(0, None))
    np.testing.assert_allclose(f(jnp.arange(3.0), jnp.float32(2)), [0, 2, 4])
    assert len(shapes) == calls
    assert shapes[0] == {"sequential": ((), ()), "expand_dims": ((3,), (1,)), "broadcast_all": ((3,), (3,))}[method]


def test_pure_callback_inside_scan():
    out = jax.jit(lambda xs: lax.scan(lambda c, x: (c + jax.pure_callback(sine, SCALAR, x), c), 0.0, xs))(
        jnp.arange(4.0)
    )
    np.testing.assert_allclose(out[0], np.sin(np.arange(4.0)).sum(), rtol=1e-6)


def test_io_callback_runs_every_time_and_in_order():
    seen = []

    def note(x):
        seen.append(float(x))
        return np.float32(len(seen))

    f = jax.jit(
        lambda x: (io_callback(note, SCALAR, x, ordered=True), io_callback(note, SCALAR, x + 1, ordered=True))[0]
    )
    for start in (1.0, 5.0):
        f(start)
    assert seen == [1.0, 2.0, 5.0, 6.0]


def test_a_result_that_nobody_reads_does_not_stop_an_effect():
    seen = []
    jax.jit(lambda x: (io_callback(lambda v: seen.append(float(v)), None, x), x)[1])(3.0)
    assert seen == [3.0]


def test_debug_print(capsys):
    jax.debug.print("x = {x:.2f}, {}", 7, x=jnp.float32(1.5))
    jax.jit(lambda x: (jax.debug.print("jit {}", x), x)[1])(jnp.arange(3))
    jax.vmap(lambda x: jax.debug.print("row {}", x))(jnp.arange(2))
    jax.grad(lambda x: (jax.debug.print("grad {}", x), x * x)[1])(3.0)
    jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: (jax.debug.print("step {}", i), c)[1], 0))(2)
    assert capsys.readouterr().out.splitlines() == [
        "x = 1.50, 7",
        "jit [0 1 2]",
        "row 0",
        "row 1",
        "grad 3.0",
        "step 0",
        "step 1",
    ]


def test_exceptions_reach_the_caller_and_the_process_goes_on():
    def fail(x):
        raise KeyError("told you")

    f = jax.jit(lambda x: jax.pure_callback(fail, SCALAR, x) + 1)
    for _ in range(3):
        with pytest.raises(jax.errors.JaxRuntimeError, match="callback fail raised KeyError: 'told you'"):
            f(1.0)
    assert float(jax.jit(lambda x: x + 1)(1.0)) == 2.0


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: jax.grad(lambda x: jax.pure_callback(sine, SCALAR, x))(1.0), ValueError, "do not support JVP"),
        (
            lambda: jax.vmap(lambda x: jax.pure_callback(sine, SCALAR, x))(jnp.ones(2)),
            NotImplementedError,
            "vmap_method=None",
        ),
        (lambda: jax.pure_callback(sine, SCALAR, 1.0, vmap_method="often"), ValueError, "vmap_method must be one of"),
        (
            lambda: jax.pure_callback(sine, SCALAR, jnp.ones(2)),
            jax.errors.JaxRuntimeError,
            r"shape \(2,\).* declares shape \(\)",
        ),
        (
            lambda: jax.jit(lambda x: jax.pure_callback(lambda v: (v, v), SCALAR, x))(1.0),
            jax.errors.JaxRuntimeError,
            "2 arrays",
        ),
        (lambda: jax.debug.print(3.0), TypeError, "must be a string"),
        (lambda: jax.debug.print("no place", 1.0), ValueError, "does not use"),
        (lambda: jax.debug.callback(3), TypeError, "callable"),
        (lambda: jax.debug.breakpoint(backend="web"), ValueError, "must be None or 'cli', got 'web'"),
        (lambda: jax.debug.breakpoint(num_frames=0), ValueError, "positive int, got 0"),
        (lambda: jax.vmap(lambda x: io_callback(sine, SCALAR, x, ordered=True))(jnp.ones(2)), ValueError, "ordered"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_what_a_debug_callback_raises_is_an_error_of_the_program():
    def refuse(x):
        raise ValueError("not this one")

    for ordered in (False, True):
        with pytest.raises(ValueError, match="not this one"):
            jax.debug.callback(refuse, 1.0, ordered=ordered)
        f = jax.jit(lambda x, ordered=ordered: jax.debug.callback(refuse, x, ordered=ordered))
        with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: not this one") as caught:
            f(1.0)
            jax.effects_barrier()
        assert isinstance(caught.value.__cause__, ValueError)


def test_keys_reach_callbacks_as_their_words():
    key, seen = jax.random.key(3), []
    words = jax.random.key_data(key)
    spec = jax.ShapeDtypeStruct((2,), np.uint32)
    for run in (lambda f: f, jax.jit):
        np.testing.assert_array_equal(run(lambda k: jax.pure_callback(lambda w: w, spec, k))(key), words)
        np.testing.assert_array_equal(run(lambda k: io_callback(lambda w: w, spec, k))(key), words)
    keys = jax.random.split(key, 3)
    many = jax.vmap(lambda k: jax.pure_callback(lambda w: w, spec, k, vmap_method="broadcast_all"))(keys)
    np.testing.assert_array_equal(many, jax.random.key_data(keys))
    jax.debug.callback(seen.append, key)
    jax.jit(lambda k: jax.debug.callback(seen.append, k))(key)
    assert seen[0].dtype == key.dtype and seen[1].dtype == np.uint32
    np.testing.assert_array_equal(seen[1], words)
    with pytest.raises(TypeError, match="key<fry>"):
        io_callback(lambda: key, key)


def test_what_is_no_array_reaches_debug_callbacks_as_it_is(capsys):
    seen, thing = [], object()
    jax.jit(lambda x: jax.debug.callback(lambda *args: seen.append(args), thing, x, None, "s"))(1.0)
    assert seen[0][0] is thing and float(seen[0][1]) == 1 and seen[0][2:] == (None, "s")
    jax.jit(lambda x: jax.debug.print("{} {}", int, x))(2.0)
    jax.debug.print("{}", jax.random.key(0))
    assert capsys.readouterr().out.splitlines()[:2] == ["<class 'int'> 2.0", str(jax.random.key(0)).splitlines()[0]]


def test_results_of_64_bits_are_refused_unless_they_are_switched_on():
    for dtype in (np.float64, np.int64, np.complex128):
        spec = jax.ShapeDtypeStruct((2,), dtype)
        for call in (jax.pure_callback, io_callback):
            with pytest.raises(ValueError, match="64-bit"):
                call(lambda dtype=dtype: np.ones(2, dtype), spec)
            with jax.enable_x64(True):
                assert call(lambda dtype=dtype: np.ones(2, dtype), spec).dtype == dtype


def test_effects_of_io_are_neither_repeated_nor_run_where_they_are_not_asked_for():
    calls = []
    note = lambda x: io_callback(lambda y: calls.append(float(y)), None, x)
    chosen = lambda x: lax.cond(x > 0, lambda: note(x), lambda: None)
    with pytest.raises(NotImplementedError, match="vmap-of-cond"):
        jax.vmap(chosen)(jnp.arange(2.0))
    loop = lambda x: lax.while_loop(lambda c: c < 2, lambda c: (note(c), c + 1)[1], x)
    with pytest.raises(NotImplementedError, match="batched predicate"):
        jax.vmap(loop)(jnp.arange(2.0))
    f = jax.checkpoint(lambda x: (note(lax.stop_gradient(x)), jnp.sin(x))[1])
    for run in (jax.grad(f), jax.jit(jax.grad(f))):
        with pytest.raises(NotImplementedError, match="checkpoint: effects"):
            run(1.0)
    assert not calls
    f(1.0), loop(0.0), jax.jit(chosen)(2.0)
    jax.effects_barrier()
    assert calls == [1, 0, 1, 2]
    kinds = [jax.debug.DebugEffect, jax.debug.OrderedDebugEffect]
    for ordered in (False, True):
        program = jax.make_jaxpr(lambda x, o=ordered: jax.debug.print("{}", x, ordered=o))(1.0)
        assert [type(effect) for effect in program.effects] == [kinds[ordered]]


def test_callbacks_record_their_sharding():
    for eqn in jax.make_jaxpr(lambda x: (jax.pure_callback(np.sin, x, x), io_callback(np.sin, x, x)))(1.0).eqns:
        assert eqn.params["sharding"] is None


def test_what_is_printed_is_an_equation(capsys):
    def f(x):
        jax.debug.print("{} {n} {s}", x, n=3, s="text")
        jax.debug.print("{:.1f}", x[0], ordered=True)

    with np.printoptions(precision=2):
        closed = jax.make_jaxpr(f)(jnp.full(2, 1.2345))
    first, second = [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "debug_print"]
    assert (first.params["fmt"], first.params["ordered"], second.params["ordered"]) == ("{} {n} {s}", False, True)
    jax.core.jaxpr_as_fun(closed)(jnp.full(2, 1.2345))  # with the options of where it was traced
    assert capsys.readouterr().out == "[1.23 1.23] 3 text\n1.2\n"
    eqn = jax.make_jaxpr(lambda x: jax.debug.callback(print, x, ordered=True))(1.0).eqns[0]
    assert isinstance(eqn.params["effect"], jax.debug.OrderedDebugEffect) and eqn.params["effect"] in eqn.effects
