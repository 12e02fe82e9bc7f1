"""Loops keep what their next steps read of what they store: the same values, and no loads of them."""

import numpy as np
import pytest

import pullback as pb
from pullback import lax
from pullback import numpy as jnp
from pullback.loops.ir import Builder
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.passes.carry import carry


def recurrence(lag=1, stride=1, dtype="f32", between=None, rows=1, conditional=False, named=False):
    """y[i*stride + lag*stride] += y[i*stride] * x[i], and `between` stores 7 at i*stride + between."""
    steps = 20
    b = Builder()
    x = b.input("x", dtype, 100)
    y = b.output("y", dtype, 200)
    with b.loop(200) as i:
        b.store(y, i, b.load(x, i // 2))
    with b.loop(rows) as row, b.loop(steps, "sequential") as i:
        place = i * stride + row * 60
        value = b.let(b.load(y, place) * b.load(x, i))
        at = place + lag * stride
        if named:
            at = b.let(at)
        if between is not None:
            b.store(y, place + between, b.const(dtype, 7))
        if conditional:
            with b.if_(i < 10):
                b.store(y, at, b.load(y, at) + value)
        else:
            b.store(y, at, b.load(y, at) + value)
    return b.function("recurrence")


def the_loop(function):
    found = function.body[-1]
    while found.role != "sequential":
        found = found.body[-1]
    return found


def check_same(function, kept):
    changed = carry(function)
    check(changed, "carry")
    x = np.random.default_rng(0).integers(-3, 4, 100).astype("f4" if function.buffers[0].dtype == "f32" else "i4")
    for want, got in zip(interpret(function, [x]), interpret(changed, [x])):
        np.testing.assert_array_equal(want, got)
    assert sum(len(group.vars) for group in the_loop(changed).carried) == kept


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("lag", "stride"), [(1, 1), (2, 1), (3, 1), (1, 3), (2, 2)])
def test_what_a_step_stored_is_kept(lag, stride, rows, named, dtype):
    check_same(recurrence(lag, stride, dtype, rows=rows, named=named), lag)


def test_what_is_not_kept():
    check_same(recurrence(lag=4), 0)  # for too long
    check_same(recurrence(lag=0), 0)
    check_same(recurrence(conditional=True), 0)  # it may not be stored
    check_same(recurrence(lag=2, between=1), 1)  # what took its place
    check_same(recurrence(lag=1, between=0), 0)
    check_same(recurrence(lag=1, between=2), 1)
    check_same(recurrence(lag=1, stride=2, between=1), 1)
    check_same(recurrence(lag=1, stride=2, between=0), 0)


def test_first_steps_read_nothing_that_is_not_there():
    """A load that conditions leave out may lie outside of its array."""
    b = Builder()
    y = b.output("y", "f32", 8)
    with b.loop(8, "sequential") as i:
        b.store(y, i, b.select(i < 1, b.const("f32", 1), b.load(y, i - 1) * 2))
    function = b.function("guarded")
    assert not the_loop(carry(function)).carried


def loops(f, *args):
    return pb.jit(f).lower(*args).as_text("nests")


def test_recurrences_by_fori_loop():
    x = np.random.default_rng(1).standard_normal((40, 2)).astype("f4")

    def means(x):
        return lax.fori_loop(1, 40, lambda i, y: y.at[i].set(0.9 * y[i - 1] + 0.1 * x[i, 0]), x[:, 1])

    def pairs(x):
        def step(i, y):
            a = 0.8 * y[i, 1] + x[i, 0]
            return y.at[i + 1, 0].set(a).at[i + 1, 1].set(0.5 * a + x[i, 1])

        return lax.fori_loop(0, 40, step, jnp.zeros((41, 2)))

    def table(x):
        a, b = x[:, 0] > 0, x[:, 1] > 0

        def cell(i, j, d):
            best = jnp.maximum(d[i, j] + jnp.where(a[i] == b[j], 1.0, -1.0), jnp.maximum(d[i, j + 1], d[i + 1, j]) - 1)
            return d.at[i + 1, j + 1].set(best)

        row = lambda i, d: lax.fori_loop(0, 40, lambda j, d: cell(i, j, d), d)
        return lax.fori_loop(0, 40, row, jnp.zeros((41, 41)))

    for f in (means, pairs, table):
        text = loops(f, x)
        assert " carry (" in text and " if " not in text, text
        y, arrays = None, x.astype("f8")
        if f is means:
            y = arrays[:, 1].copy()
            for i in range(1, 40):
                y[i] = 0.9 * y[i - 1] + 0.1 * arrays[i, 0]
        elif f is pairs:
            y = np.zeros((41, 2))
            for i in range(40):
                y[i + 1, 0] = 0.8 * y[i, 1] + arrays[i, 0]
                y[i + 1, 1] = 0.5 * y[i + 1, 0] + arrays[i, 1]
        else:
            y = np.zeros((41, 41))
            for i in range(40):
                for j in range(40):
                    same = (arrays[i, 0] > 0) == (arrays[j, 1] > 0)
                    y[i + 1, j + 1] = max(y[i, j] + (1 if same else -1), y[i, j + 1] - 1, y[i + 1, j] - 1)
        np.testing.assert_allclose(pb.jit(f)(x), y, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(pb.vmap(f)(np.stack([x, x * 2]))[0], y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_indices_that_are_passed_on(rank):
    """Places of several numbers, some of them read off data, and places that are set twice."""
    x = np.random.default_rng(2).integers(0, 5, (12, 3)).astype("i4")

    def f(x):
        def step(i, y):
            place = (x[i, 0], i % 4, x[i, 1])[:rank]
            y = y.at[place].set(i + 0.5)
            place = (i % 5, x[i, 2], 1)[:rank]
            return y.at[place].add(y[place] * 0.25 + 1)

        return lax.fori_loop(0, 12, step, jnp.zeros((5,) * rank))

    want = np.zeros((5,) * rank, "f4")
    for i, (a, b, c) in enumerate(x):
        want[(a, i % 4, b)[:rank]] = i + 0.5
        place = (i % 5, c, 1)[:rank]
        want[place] += want[place] * np.float32(0.25) + 1
    np.testing.assert_allclose(pb.jit(f)(x), want, rtol=1e-6)
