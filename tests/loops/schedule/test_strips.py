"""Nests that go down columns more than once: walked by strips, and that they mean the same."""

import sys

import numpy as np
import pytest

from pullback.loops.ir import NP_DTYPE, Builder, Loop
from pullback.loops.ir.check import check
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.visit import statements
from pullback.loops.schedule.apply.strips import strips
from pullback.util.switches import switches

from .forms import in_form
from .test_parallelize import run, through_passes


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Arrays of a size that the interpreter can walk go by strips, which are narrow."""
    monkeypatch.setattr(sys.modules[strips.__module__], "ROOM", 1 << 15)
    with switches.set(form="strips"):
        yield


def normalized(rows, width, dtype="f32", stacked=1, scratch=False, in_place=False):
    """Columns less their maximum, divided by the sum of what is left; also twice the maximum of each column."""
    b = Builder()
    size = stacked * rows * width
    x, top = b.input("x", dtype, size), b.output("top", dtype, stacked * width)
    y = b.output("y", dtype, size)
    kept = b.local("kept", dtype, rows) if scratch else None
    with b.loop(stacked) as i, b.loop(width) as j:
        base = b.let(i * (rows * width) + j)
        with b.carried_loop(rows, [((b.const(dtype, -50),), "max")], "reduce") as r:
            r.update(b.max(r.var, b.load(x, base + r.i * width)))
        most = b.let(r.result + b.const(dtype, 0))
        b.store(top, i * width + j, most + most)
        with b.carried_loop(rows, [((b.const(dtype, 1),), "add")], "reduce") as s:
            left = b.let(b.load(x, base + s.i * width) - most)
            if kept is None:
                b.store(y, i * (rows * width) + s.i * width + j, left)
            else:
                b.store(kept, s.i, left)
            s.update(s.var + left)
        with b.loop(rows) as k:
            at = i * (rows * width) + k * width + j
            value = b.load(y, at) if kept is None else b.load(kept, k)
            b.store(y, at, value * b.convert(b.const("i32", 3), dtype) + s.result)
    return b.function("normalized")


@pytest.mark.parametrize("rows, width", [(100, 64), (64, 117), (130, 300), (7, 2048), (33, 1003)])
@pytest.mark.parametrize("dtype, stacked, scratch", [("f32", 1, False), ("f64", 3, True), ("i32", 2, False)])
def test_walked_by_strips(rows, width, dtype, stacked, scratch):
    function = normalized(rows, width, dtype, stacked, scratch)
    walked = in_form(strips, function)
    check(walked)
    (nest,) = walked.body
    inner = [s for s in statements(nest.body) if isinstance(s, Loop)]
    assert not any(s.role == "reduce" for s in inner) and sum(s.role == "vector" for s in inner) >= 4
    assert "kept" not in {buffer.name for buffer in walked.buffers}
    x = np.random.default_rng(0).integers(-40, 40, stacked * rows * width).astype(NP_DTYPE[dtype])
    cube = x.reshape(stacked, rows, width)
    most = cube.max(axis=1, keepdims=True)
    left = cube - most
    want = [np.ravel(2 * most), np.ravel(3 * left + (1 + left.sum(axis=1, keepdims=True, dtype=x.dtype)))]
    final = through_passes(function)
    found = [run(final, [x], want, p, p == 3) for p in (1, 3)]
    if rows * width < 8000:  # the interpreter takes seconds for the others
        found += [interpret(function, [x]), interpret(walked, [x])]
    for got in found:
        for a, b in zip(got, want, strict=True):
            assert np.array_equal(a, b)  # whole numbers, so that no sum rounds


def test_what_does_not_suit_stays():
    few = normalized(100, 20)
    assert in_form(strips, few) is few
    b = Builder()
    x, y = b.input("x", "f32", 200 * 300), b.output("y", "f32", 200)
    with b.loop(200) as i:  # along rows
        with b.carried_loop(300, [((b.const("f32", 0),), "add")], "reduce") as r:
            r.update(r.var + b.load(x, i * 300 + r.i))
        with b.carried_loop(300, [((b.const("f32", 0),), "add")], "reduce") as s:
            s.update(s.var + b.load(x, i * 300 + s.i) * r.result)
        b.store(y, i, s.result)
    along = b.function("along")
    assert in_form(strips, along) is along


def test_long_sums_keep_their_rounding_errors():
    rows, width = 3000, 64
    b = Builder()
    x, y = b.input("x", "f32", rows * width), b.output("y", "f32", width)
    with b.loop(width) as j:
        with b.carried_loop(rows, [((b.const("f32", 0),), "add")], "reduce") as r:
            r.update(r.var + b.load(x, r.i * width + j))
        mean = b.let(r.result * b.const("f32", 1 / rows))
        with b.carried_loop(rows, [((b.const("f32", 0),), "add")], "reduce") as s:
            left = b.let(b.load(x, s.i * width + j) - mean)
            s.update(s.var + left * left)
        b.store(y, j, s.result)
    function = b.function("squares")
    assert in_form(strips, function) is not function
    data = np.random.default_rng(2).random((rows, width)).astype("f4") + 1
    (got,) = run(through_passes(function), [data.ravel()], [np.zeros(width, "f4")], 2)
    exact = ((data - data.astype("f8").mean(0)) ** 2).sum(0)
    assert np.abs(got / exact - 1).max() < 1e-6


def test_scratch_space_of_long_columns_stays_within_a_threads_stack(monkeypatch):
    monkeypatch.setattr(sys.modules[strips.__module__], "SCRATCH_BYTES", 1 << 16)
    long = normalized(200, 64, "f64", scratch=True)  # 64 columns of it would take more
    assert in_form(strips, long) is long
    wide = in_form(strips, normalized(40, 2048, "f64", scratch=True))
    assert max(b.size * 8 for b in wide.buffers if b.space == "local") <= 1 << 16
