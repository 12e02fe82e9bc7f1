"""Threads: what becomes a loop of threads, and that results do not depend on how the range is cut."""

import ctypes
import itertools

import numpy as np
import pytest

from pullback.emit import compile_function
from pullback.loop_ir import Builder, Loop
from pullback.loop_ir.check import check
from pullback.loop_ir.interpret import interpret
from pullback.loop_ir.visit import statements
from pullback.lower.arena import plan_arena
from pullback.pipelines import LOOP_PASSES, PROGRAM_PASSES

PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def pool(parts, backwards):
    """A pb_parallel_for that cuts the range into `parts` pieces and runs them in some order."""

    @PARALLEL_FOR
    def parallel_for(body, ctx, count, grain):
        edges = [count * k // parts for k in range(parts + 1)]
        pieces = list(itertools.pairwise(edges))
        for begin, end in reversed(pieces) if backwards else pieces:
            if end > begin:
                BODY(body)(ctx, begin, end)

    return parallel_for


def through_passes(function):
    for step in (*PROGRAM_PASSES, *LOOP_PASSES):
        function = step.run(function)
        check(function, step.name)
    return function


def run(function, inputs, outputs, parts, backwards=False):
    plan, _ = plan_arena(function)
    parallel_for = pool(parts, backwards)
    address = ctypes.cast(parallel_for, ctypes.c_void_p).value
    code = compile_function(function, plan, symbols={"pb_parallel_for": address}, verify=True)
    results = [np.zeros_like(x) for x in outputs]
    assert code(inputs, results) == 0
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
    return b.function("few_columns"), ["threads", "vector", "reduce", "vector", "reduce"]


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


@pytest.mark.parametrize("make", [elementwise, in_place, rows, total, few_columns, running])
@pytest.mark.parametrize("n", [400_000, 400_010])
def test_results_do_not_depend_on_the_number_of_threads(make, n):
    function, wanted = make(n)
    function = through_passes(function)
    assert roles(function) == wanted
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    outputs = [np.zeros(b.size, np.float32) for b in function.buffers if b.space == "output"]
    results = [run(function, [x], outputs, parts, backwards) for parts in (1, 2, 3, 7) for backwards in (False, True)]
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert (a.view(np.uint32) == b.view(np.uint32)).all()
    if make is not elementwise and make is not in_place:
        for got, want in zip(results[0], interpret(make(n)[0], [x])):
            assert np.allclose(got, want, rtol=1e-3, atol=0.3)
    else:
        assert np.allclose(results[0][0], np.exp(x), rtol=1e-6)


def test_small_work_stays_on_one_thread():
    for make in (elementwise, rows, total):
        function = through_passes(make(5000)[0])
        assert "threads" not in roles(function)
