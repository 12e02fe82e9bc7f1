"""Drafts compute the bits of better code, and give way to it."""

import threading
import time

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.drafts import MOST_LINES, suits
from pullback.loops.emit.improve import BETTER, LEFT
from pullback.util.switches import switches

X = np.linspace(-1, 1, 63, dtype=np.float32).reshape(7, 9)

PROGRAMS = {
    "elementwise": lambda x: jnp.tanh(x) * x - 1,
    "sums": lambda x: (x.sum(0), x.max(1), (x * x).sum()),
    "product": lambda x: x @ x.T,
    "contraction": lambda x: jnp.einsum("ij,ij->i", x, 3 * x),
    "triangular solve": lambda x: jnp.linalg.solve(x[:4, :4] + 2 * jnp.eye(4), x[:4]),
    "gradient of a scan": jax.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c @ x.T) @ x + r, c), x[0], x)[0].sum()),
    "branches": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    "complex": lambda x: jnp.fft.fft(x + 1j * x * x),
    "halves": lambda x: jnp.exp(x.astype("float16")) @ x.T.astype("float16"),
    "integers": lambda x: ((100 * x).astype("int32") // 7, jnp.sort(x, axis=1)),
    "threads": lambda x: jnp.tile(x, (200, 50)).sum(1),
    "large constant": lambda x: jnp.asarray(np.arange(9000.0, dtype="f4")).reshape(-1, 9)[:7] * x,
}


@pytest.fixture
def folder(tmp_path):
    with switches.set(cache_dir=str(tmp_path), drafts=True):
        jax.clear_caches()
        yield tmp_path
    jax.clear_caches()


def compiled(fun, *args):
    """(compiled function, its code)."""
    done = jax.jit(lambda *a: fun(*a)).lower(*args).compile()
    return done, done._program.native.compiled


def bits(tree) -> list[bytes]:
    return [np.asarray(x).tobytes() for x in jax.tree.leaves(tree)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_draft_has_the_bits_of_better_code(name, folder):
    done, code = compiled(PROGRAMS[name], X)
    assert not code.draft[BETTER]
    before = done(X)
    code.draft.improve()
    assert code.draft[BETTER] and bits(before) == bits(done(X))
    code.draft.improve()  # nothing is left to do


@pytest.mark.parametrize("where", ["main thread", "another thread"])
def test_what_has_run_for_long_enough_is_improved(where, folder):
    done, code = compiled(PROGRAMS["elementwise"], X)
    before = done(X)
    assert not code.draft[BETTER]
    code.draft[LEFT] = 0

    def run():
        for _ in range(20):  # the time of one of 16 calls is taken
            done(X)
        until = time.monotonic() + 60
        while not code.draft[BETTER] and time.monotonic() < until:
            time.sleep(0.001)

    if where == "main thread":
        run()
    else:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()  # the main thread does nothing meanwhile
    assert code.draft[BETTER] and bits(before) == bits(done(X))


def test_a_draft_on_disk_is_improved_there(folder):
    fun = PROGRAMS["contraction"]
    before = compiled(fun, X)[0](X)
    jax.clear_caches()
    done, code = compiled(fun, X)
    assert "emit" not in done._program.seconds and not code.draft[BETTER]
    assert bits(before) == bits(done(X))
    code.draft.improve()
    assert bits(before) == bits(done(X))
    jax.clear_caches()
    done, code = compiled(fun, X)
    assert "emit" not in done._program.seconds and code.draft is None
    assert bits(before) == bits(done(X))


NOT_DRAFTED = {
    "only calls": lambda x: jnp.sort(x),
    "nobody knows when it ends": lambda x: lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y * y + 1, x),
    "long": lambda x: lax.fori_loop(0, 10**6, lambda k, y: jnp.sin(y), x),
}


@pytest.mark.parametrize("name", NOT_DRAFTED)
def test_what_may_run_for_long_or_would_not_gain_is_no_draft(name, folder):
    assert compiled(NOT_DRAFTED[name], X)[1].draft is None


def test_drafts_can_be_switched_off(folder):
    with switches.set(drafts=False):
        assert compiled(PROGRAMS["sums"], X)[1].draft is None


def test_functions_that_would_need_too_much_of_a_stack_are_no_drafts():
    target = host_target()
    text = "define void @f() {{\n{}ret void\n}}\n"
    assert suits(text.format("\n" * 100), target, 0.0)
    assert not suits(text.format("\n" * MOST_LINES), target, 0.0)
    assert suits("".join(text.format("\n" * (MOST_LINES // 2)) for _ in range(3)), target, 0.0)
