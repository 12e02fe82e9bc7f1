"""Threads: what becomes a loop of threads, and that results do not depend on how the range is cut."""

import ctypes
import functools
import itertools
import re

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import LOOP_PASSES, PROGRAM_PASSES
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import Builder, Loop
from pullback.loops.ir.check import check
from pullback.loops.ir.visit import statements

PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


_cut = [1, False]  # how the next loops are cut: into how many pieces, and whether the last runs first


@PARALLEL_FOR
def _parallel_for(body, ctx, count, grain):
    """A pb_parallel_for that cuts the range into pieces and runs them in some order."""
    parts, backwards = _cut
    pieces = list(itertools.pairwise(count * k // parts for k in range(parts + 1)))
    for begin, end in reversed(pieces) if backwards else pieces:
        if end > begin:
            BODY(body)(ctx, begin, end)


def through_passes(function):
    for step in (*PROGRAM_PASSES, *LOOP_PASSES):
        function = step.run(function)
        check(function, step.name)
    return function


@functools.lru_cache(maxsize=1)
def _compiled(function):
    address = ctypes.cast(_parallel_for, ctypes.c_void_p).value
    return compile_function(function, plan_arena(function)[0], symbols={"pb_parallel_for": address}, verify=True)


def run(function, inputs, outputs, parts, backwards=False):
    _cut[:] = parts, backwards
    results = [np.zeros_like(x) for x in outputs]
    assert _compiled(function)(inputs, results) == 0
    return results


def roles(function):
    return [stmt.role for stmt in statements(function.body) if isinstance(stmt, Loop)]


def elementwise(n):
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", n)
    with b.loop(n) as i:
        b.store(y, i, b.exp(b.load(x, i)))
    return b.function("elementwise"), ["threads", "vector"]


def in_place(n):
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", n)
    with b.loop(n) as i:
        b.store(y, i, b.load(y, i) + b.exp(b.load(x, i)))
    return b.function("in_place"), ["threads", "vector"]


def rows(n):
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", 1000)
    with b.loop(1000) as i:
        with b.reduce(n // 1000, b.const("f32", 0), "add") as r:
            r.update(r.var + b.load(x, i * (n // 1000) + r.i))
        b.store(y, i, r.result)
    return b.function("rows"), ["threads", "vector"]


def total(n):
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", 2)
    with b.carried_loop(n, [((b.const("f32", 1),), "add"), ((b.const("f32", -np.inf),), "max")], "reduce") as r:
        element = b.load(x, r.i)
        r.update(r.vars[0] + element, b.max(r.vars[1], element))
    b.store(y, 0, r.results[0])
    b.store(y, 1, r.results[1])
    return b.function("total"), ["threads", "vector", "vector"]


def few_columns(n):
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", 10)
    with b.loop(10) as j:
        with b.reduce(n // 10, b.const("f32", 0), "add") as r:
            r.update(r.var + b.load(x, r.i * 10 + j))
        b.store(y, j, r.result * 2.0)
    return b.function("few_columns"), None  # another pass makes these


def running(n):
    """Two running values, one of which the other's element depends on by a Let of its own."""
    b = Builder()
    x, y, z = b.input("x", "f32", n), b.output("y", "f32", n), b.output("z", "f32", n + 1)
    groups = [((b.const("f32", 1),), "add"), ((b.const("f32", -np.inf),), "max")]
    with b.carried_loop(n, groups, "scan") as r:
        element = b.let(b.load(x, r.i) * 2.0)
        total = b.let(r.vars[0] + element)
        largest = b.let(b.max(r.vars[1], b.sub(1.0, element)))
        b.store(y, r.i, total)
        b.store(z, r.i, largest * 2.0)
        r.update(total, largest)
    b.store(z, n, r.results[1])
    return b.function("running"), ["sequential", "threads", "vector", "sequential", "threads", "scan"]


def _largest(x):
    """Twice the largest so far, at each place, and the largest of all."""
    found = np.maximum.accumulate(x)
    return np.append(2 * found, found[-1])


# What they mean, in NumPy: the interpreter takes 400,000 turns of a loop in Python.
MEANING = {
    elementwise: lambda x: [np.exp(x)],
    in_place: lambda x: [np.exp(x)],
    rows: lambda x: [x[:400_000].reshape(1000, 400).sum(1)],
    total: lambda x: [np.array([1 + x.sum(), x.max()])],
    few_columns: lambda x: [2 * x.reshape(-1, 10).sum(0)],
    running: lambda x: [1 + np.cumsum(2 * x), _largest(1 - 2 * x)],
}


@pytest.mark.parametrize("make", [elementwise, in_place, rows, total, few_columns, running])
@pytest.mark.parametrize("n", [400_000, 400_010])
def test_results_do_not_depend_on_the_number_of_threads(make, n):
    function, wanted = make(n)
    function = through_passes(function)
    assert roles(function) == wanted if wanted else roles(function)[0] == "threads"
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    outputs = [np.zeros(b.size, np.float32) for b in function.buffers if b.space == "output"]
    results = [run(function, [x], outputs, parts, backwards) for parts in (1, 2, 3, 7) for backwards in (False, True)]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert (a.view(np.uint32) == b.view(np.uint32)).all()
    for got, want in zip(results[0], MEANING[make](x.astype(np.float64)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-2 if make in (total, running) else 1e-4)


def test_small_work_stays_on_one_thread():
    for make in (elementwise, rows, total):
        function = through_passes(make(5000)[0])
        assert "threads" not in roles(function)


@pytest.mark.parametrize("shape", [(5, 21_579, 12), (40, 9000), (3, 2, 40_001)])
def test_sums_over_few_long_rows_are_cut_within_the_rows(shape):
    """A sum over axes that are no one loop, as rows have factors of their own, goes to threads, too."""
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    y = np.random.default_rng(1).standard_normal((*shape[:-1], 1)).astype("f4")
    program = pullback.jit(lambda x, y: ((x * y).sum(), jnp.max(x / (1 + abs(y)))))
    assert "threads" in program.lower(x, y).as_text("nests")
    before = pullback.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 3):
            pullback.set_num_threads(threads)
            found.append([np.asarray(value).item() for value in program(x, y)])
    finally:
        pullback.set_num_threads(before)
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(found[0][0], (x.astype("f8") * y).sum(), rtol=1e-4, atol=1e-2)
    assert found[0][1] == np.max(x / (1 + abs(y)))


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_few_long_rows_are_cut_into_blocks(rows):
    """Three rows on two threads would leave one idle for a third of the time."""
    x = np.random.default_rng(0).standard_normal((rows, 134_427)).astype("f4")
    y = np.random.default_rng(1).standard_normal((rows, 1)).astype("f4")
    program = pullback.jit(lambda x, y: jnp.maximum(x, y) * y)
    assert f"threads{{grain=1}} chunk < {rows} " not in program.lower(x, y).as_text("nests")
    assert "threads{grain=1} chunk" in program.lower(x, y).as_text("nests")
    np.testing.assert_array_equal(program(x, y), np.maximum(x, y) * y)


@pytest.mark.parametrize(("n", "m", "last"), [(110, 20_000, True), (1500, 300, False)])
def test_reductions_with_loops_inside_are_cut_into_whole_vectors(n, m, last):
    """Chunks of 62 rows, one after the other, took 15 times as long as lanes for all of them."""
    x = np.random.default_rng(0).standard_normal((n, 5)).astype("f4")
    y = np.random.default_rng(1).standard_normal((m, 3)).astype("f4")
    distances = lambda x, y: abs(x[:, 0] - y[:, :1] if last else 1.5 * x[:, :1] - y[:, 0]).sum()
    program = pullback.jit(distances)
    (size,) = re.findall(r"vector r\w* < select\(eq\(\w+, \d+\), \d+, (\d+)\)", program.lower(x, y).as_text("nests"))
    assert int(size) % 64 == 0
    np.testing.assert_allclose(program(x, y), distances(x.astype("f8"), y.astype("f8")), rtol=1e-5)


def test_threads_store_lines_of_their_own():
    """Sums of blocks of a matrix that is turned: each tile has columns that lie side by side in the result."""
    x = np.random.default_rng(0).standard_normal((700, 500)).astype("f4")
    blocks = lambda x: x.T.reshape(125, 4, 175, 4).sum((1, 3))
    program = pullback.jit(blocks)
    assert "} task_s" in program.lower(x).as_text("nests")
    np.testing.assert_allclose(program(x), blocks(x.astype("f8")), rtol=1e-5, atol=1e-4)
