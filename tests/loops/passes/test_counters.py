"""Loops that count in memory: they count by their steps, and mean the same."""

import numpy as np
import pytest

import pullback as pb
from pullback import lax
from pullback import numpy as jnp
from pullback.loops.ir import NP_DTYPE, Builder
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.visit import loaded, stored
from pullback.loops.passes.counters import counters


def counting(dtype="i32", start=5, by=3, steps=10, later=False, known=True, space="temporary"):
    """y[i] += t at each step, t counting; `later`: y reads t after it was counted on."""
    b = Builder()
    x = b.input("x", dtype, 4)
    y = b.output("y", dtype, 4)
    t = b.output("t", dtype, 1) if space == "output" else b.temporary("t", dtype, 1)
    with b.loop(4) as i:
        b.store(y, i, b.load(x, i))
    b.store(t, 0, b.const(dtype, start) if known else b.load(x, 0))
    with b.loop(steps, "sequential"):
        k = b.let(b.load(t, 0))
        if later:
            b.store(t, 0, b.add(k, b.const(dtype, by)))
            with b.loop(4) as i:
                b.store(y, i, b.add(b.load(y, i), b.add(k, b.load(t, 0))))
        else:
            with b.loop(4) as i:
                b.store(y, i, b.add(b.load(y, i), b.load(t, 0)))
            b.store(t, 0, b.op("sub", k, b.const(dtype, -by)) if dtype[0] == "i" else b.add(k, b.const(dtype, by)))
    return b.function("counting")


@pytest.mark.parametrize("space", ["temporary", "output"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8", "u32", "u64"])
def test_counts_by_steps(dtype, later, known, space):
    """Small types wrap around on the way; an output holds the last count."""
    function = counting(dtype, steps=60, later=later, known=known, space=space)
    changed = counters(function)
    check(changed, "counters")
    x = np.arange(7, 11).astype(NP_DTYPE[dtype])
    for want, got in zip(interpret(function, [x]), interpret(changed, [x])):
        np.testing.assert_array_equal(want, got)
    if space == "temporary" and known:
        assert not any(buffer.name == "t" for buffer in changed.buffers)
    (loop,) = [stmt for stmt in changed.body if getattr(stmt, "role", "") == "sequential"]
    assert not any(buffer.name == "t" for buffer in loaded((loop,)) | stored((loop,)))


def test_a_count_that_is_read_afterwards_is_kept():
    b = Builder()
    t, y = b.temporary("t", "i32", 1), b.output("y", "i32", 1)
    b.store(t, 0, b.const("i32", 2))
    with b.loop(7, "sequential"):
        b.store(t, 0, b.load(t, 0) + 4)
    b.store(y, 0, b.load(t, 0))
    function = counters(b.function("f"))
    check(function, "counters")
    (got,) = interpret(function, [])
    assert got[0] == 30


def test_what_does_not_only_count_is_left():
    """Another store, a place that moves, floats, and what is added changing."""

    def made(write):
        b = Builder()
        x, t = b.input("x", "i32", 8), b.output("t", "i32", 8)
        with b.loop(8) as i:
            b.store(t, i, b.load(x, i))
        with b.loop(5, "sequential") as step:
            write(b, x, t, step)
        return b.function("f")

    def twice(b, x, t, step):
        b.store(t, 0, b.load(t, 0) + 1)
        b.store(t, 0, b.load(t, 0) + 1)

    def moving(b, x, t, step):
        b.store(t, 0, b.load(t, 0) + 1)
        b.store(t, 1, b.load(t, step))

    def changing(b, x, t, step):
        b.store(t, 0, b.load(t, 0) + b.load(x, step))

    def conditional(b, x, t, step):
        with b.if_(b.load(x, step) > 0):
            b.store(t, 0, b.load(t, 0) + 1)

    for write in (twice, moving, changing, conditional):
        function = made(write)
        assert counters(function) is function, write.__name__


def test_loops_within_loops():
    """An inner counter that starts anew with each outer step, and one that goes on."""

    def f(x):
        def outer(i, carry):
            total, on = carry
            inner = lax.fori_loop(0, 4, lambda j, s: s + i * 10 + j, total)
            return inner, lax.fori_loop(0, 3, lambda _, k: k + 2, on)

        return lax.fori_loop(0, 5, outer, (x, jnp.int32(1)))

    x = jnp.arange(3, dtype=jnp.int32)
    total, on = pb.jit(f)(x)
    with pb.disable_jit():
        want, count = f(x)
    np.testing.assert_array_equal(total, want)
    assert on == count == 31


@pytest.mark.parametrize("bounds", [(0, 9), (3, 9), (-4, 6), (5, 5), (2**31 - 3, 2**31 - 1)])
def test_the_index_of_a_loop_finds_its_place(bounds):
    """Rows are read and written at the index, which wraps and clamps as ever."""

    def f(x):
        return lax.fori_loop(*bounds, lambda i, y: y.at[i].add(x[i] * 2 + i.astype(x.dtype)), jnp.zeros_like(x))

    x = jnp.arange(12, dtype=jnp.float32)
    want = np.zeros(12, np.float32)
    for i in range(*bounds):
        if i < 12:
            want[i] += x[i] * 2 + np.float32(i)
        # Reading out of bounds gives the last element, writing there nothing.
    np.testing.assert_array_equal(pb.jit(f)(x), want)


def test_elementwise_steps_that_use_their_index_are_interchanged():
    """No memory is shared by the elements any more."""
    f = pb.jit(lambda x: lax.fori_loop(0, 50, lambda i, y: jnp.sin(y) + i, x))
    x = jnp.linspace(-1, 1, 1000)
    text = f.lower(x).as_text("nests")
    assert "carry (y0" in text and "i32[1]\n" not in text
    with pb.disable_jit():
        want = lax.fori_loop(0, 50, lambda i, y: jnp.sin(y) + i, x)
    np.testing.assert_allclose(f(x), want, rtol=1e-4)


def test_an_index_that_only_its_step_reads_is_not_stored():
    def f(x):
        return lax.fori_loop(1, 9, lambda i, y: y.at[i - 1].set(y[i] + 1), x)

    x = np.arange(10, dtype="f4")
    text = pb.jit(f).lower(x).as_text("nests")
    assert "if " not in text and not [line for line in text.splitlines() if "temporary" in line and "i32" in line], text
    want = x.copy()
    for i in range(1, 9):
        want[i - 1] = want[i] + 1
    np.testing.assert_array_equal(pb.jit(f)(x), want)
