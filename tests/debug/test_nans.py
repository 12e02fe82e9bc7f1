"""jax_debug_nans and jax_debug_infs inside of compiled loops: the primitive, the line, the steps and the operands."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.util.switches import switches

pytestmark = pytest.mark.skipif(bool(switches.interpret), reason="interpreted programs run again, by equations")

X = np.float32(1)
PROGRAMS = {
    "scan": (
        lambda x: lax.scan(lambda c, i: (jnp.sqrt(3 - i) + 0 * c, c), x, jnp.arange(9.0))[0],
        r"sqrt at .*test_nans.py:\d+.*, step 4 of the loop\n  operand 0: float32\[\] = -1",
    ),
    "backward": (
        lambda x: lax.scan(lambda c, i: (jnp.sqrt(3 - i) + 0 * c, c), x, jnp.arange(9.0), reverse=True)[0],
        r"sqrt at .*, step 0 of the loop\n  operand 0: float32\[\] = -5",
    ),
    "while": (
        lambda x: lax.while_loop(lambda s: s[0] < 9, lambda s: (s[0] + 1, jnp.sqrt(5 - s[0]) + 0 * s[1]), (0.0, x)),
        r"sqrt at .*, step 6 of the loop\n  operand 0: float32\[\] = -1",
    ),
    "nested, vmapped": (
        jax.vmap(
            lambda x: lax.fori_loop(
                0, 4, lambda i, c: lax.fori_loop(0, 3, lambda j, d: jnp.log(7.5 - (3 * i + j) + 0 * d), c), x
            )
        ),
        r"log at .*, step 2, step 2 \(of the loops from the outermost\)\n  operand 0: float32\[3\] = .*at \[0\]: -0.5",
    ),
    "derivative": (
        jax.vmap(jax.grad(lambda x: lax.scan(lambda c, i: (jnp.sqrt(c * i) + c, c), x, jnp.arange(3.0))[0])),
        r"mul at .*, step 2 of the loop\n  operand 0: float32\[3\] = \[inf",
    ),
    "branch in a loop": (
        lambda x: lax.fori_loop(0, 5, lambda i, c: lax.cond(i > 2, lambda c: jnp.log(c - 9), jnp.sin, c), x),
        r"log at .*, step 3 of the loop",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_named(name):
    f, text = PROGRAMS[name]
    x = np.ones(3, np.float32) if "vmap" in name or name == "derivative" else X
    with jax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        jax.jit(f)(x)
    assert re.search(r"invalid value \(nan\) encountered in " + text, str(caught.value)), caught.value


def test_programs_run_once():
    seen = []

    @jax.jit
    def f(x):
        jax.debug.callback(seen.append, x)
        return lax.fori_loop(0, 3, lambda i, c: jnp.log(c), x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="step 2 of the loop"):
        f(X)
    assert len(seen) == 1
    with jax.debug_nans(True):
        assert np.isfinite(f(np.float32(1e30)))


def test_infinities_and_what_is_left_out():
    f = jax.jit(lambda x: lax.fori_loop(0, 9, lambda i, c: jnp.exp(c), x))
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered in exp at .*, step 3 of"):
        f(X)
    with jax.debug_nans(True):
        assert f(X) == np.inf
        assert jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0))(-X) == 0
        z = jax.jit(lambda z: lax.fori_loop(0, 3, lambda i, z: z * z, z))(np.complex64(1j))
        assert z == 1


def test_a_nan_inside_a_function_that_its_result_leaves_out_is_none():
    x = jnp.arange(1.0, 13.0).reshape(3, 4)
    inside = {
        "var": lambda: jnp.var(x, axis=0),
        "median": lambda: jnp.median(x, axis=0),
        "where": lambda: jnp.where(x > 0, x, jnp.nan),
        "logsumexp": lambda: jax.nn.logsumexp(x, axis=0, b=x),
        "expi": lambda: jax.scipy.special.expi(x),
        "vonmises": lambda: jax.scipy.stats.vonmises.pdf(x, x),
        "derivative of max": lambda: jax.grad(lambda x: (jnp.max(x, axis=0) ** 2).sum())(x),
        "derivative of softmax": lambda: jax.grad(lambda x: jax.nn.softmax(x)[0, 0])(x),
    }
    for name, run in inside.items():
        wanted = run()
        with jax.debug_nans(True):
            for _ in range(3):
                np.testing.assert_array_equal(run(), wanted, err_msg=name)


def test_each_call_of_a_function_is_looked_at():
    x = jnp.arange(6.0).reshape(3, 2) - 1
    with jax.debug_nans(True):
        for _ in range(3):
            with pytest.raises(FloatingPointError, match="encountered in log"):
                jnp.log(x)
            with pytest.raises(FloatingPointError, match="encountered in full"):
                jnp.full(3, jnp.nan)
            with pytest.raises(FloatingPointError, match="encountered in logsumexp"):  # which no operation has made
                jax.nn.logsumexp(x[:, :1], axis=1, b=-jnp.ones((3, 1)))
        with jax.transfer_guard("allow"):
            pass
        with pytest.raises(FloatingPointError, match="encountered in log"):  # still, though no guard looks any more
            jnp.log(-x * x - 1)
    assert jnp.isnan(jnp.log(x)).any()


def test_what_programs_move_themselves_is_looked_at():
    with jax.debug_nans(True):
        for move in (lambda: lax.full((2,), jnp.nan), lambda: jnp.zeros(3).at[0].set(jnp.nan)):
            with pytest.raises(FloatingPointError):
                move()


@pytest.mark.parametrize(
    "make",
    [
        lambda v: jnp.array([1.0, v]),
        lambda v: jnp.asarray(v),
        lambda v: jnp.array(np.array([v])),
        lambda v: jnp.float32(v),
        lambda v: jnp.array([v], dtype="float16"),
    ],
)
def test_arrays_of_bad_values_are_errors(make):
    for flag, value in ((jax.debug_nans, jnp.nan), (jax.debug_infs, jnp.inf)):
        make(value)
        with flag(True), pytest.raises(FloatingPointError):
            make(value)
        with flag(True):  # what programs hold is looked at where they give it
            jax.jit(lambda make=make, value=value: jnp.isfinite(make(value)))()
        make(value)


def test_what_comes_back_as_it_was_given_is_not_looked_at():
    x = jnp.array([1.0, jnp.nan])
    with jax.debug_nans(True):
        for _ in range(2):
            assert x.T is x and jnp.transpose(x) is x and x.astype(x.dtype).shape == (2,)
        with pytest.raises(FloatingPointError, match="encountered in reshape"):
            jnp.reshape(x, (2, 1))


def test_what_one_thread_looks_for_others_do_not():
    inside, outside = threading.Event(), threading.Event()
    found = []

    def look():
        with jax.debug_nans(True):
            for wait in (True, False):
                with pytest.raises(FloatingPointError):
                    jax.jit(jnp.log)(-1.0)
                with pytest.raises(FloatingPointError):
                    jnp.array([jnp.nan])
                if wait:
                    inside.set()
                    outside.wait()
        found.append(True)

    thread = threading.Thread(target=look)
    thread.start()
    inside.wait()
    try:
        assert jnp.isnan(jax.jit(jnp.log)(-1.0)) and jnp.isnan(jnp.log(-1.0)) and jnp.isnan(jnp.array([jnp.nan]))[0]
    finally:
        outside.set()
        thread.join()
    assert found == [True]


def test_threads_look_for_what_all_are_told_to():
    found = []

    def look():
        try:
            jnp.log(-1.0)
        except FloatingPointError:
            found.append(True)

    jax.config.update("jax_debug_nans", True)
    try:
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    finally:
        jax.config.update("jax_debug_nans", False)
    assert found == [True]
