"""What a vector loop leaves is done by shorter vectors: in place, and in reductions."""

import numpy as np
import pytest

from pullback.loops.emit.cpu.target import Target
from pullback.loops.emit.jit import compile_function
from pullback.loops.emit.lanes import shorter
from pullback.loops.emit.module import build_module
from pullback.loops.ir import Builder

from .kit import both, sample

ROWS = 5


def rows(n, in_place, combine="add"):
    """y[i] = reduction of x[i, :], or y[i, :] = exp-free work on y[i, :] that must happen once."""
    b = Builder()
    x = b.input("x", "f32", ROWS * n)
    y = b.output("y", "f32", ROWS * n if in_place else ROWS)
    with b.loop(ROWS, "sequential") as i:
        if in_place:
            with b.loop(n, "vector") as j:
                b.store(y, i * n + j, b.load(y, i * n + j) + b.load(x, i * n + j))
        else:
            with b.carried_loop(n, [((b.const("f32", 0.5),), combine)], "vector") as r:
                r.update(b.op(combine, r.var, b.load(x, i * n + r.i)))
            b.store(y, i, r.result)
    return b.function("rows")


@pytest.mark.parametrize("n", [*range(8, 34), 63, 100, 114, 1001])
def test_values(n):
    x = np.random.default_rng(n).normal(size=(ROWS, n)).astype("f4")
    y = np.ones((ROWS, n), "f4")
    code = compile_function(rows(n, True), {}, verify=True)
    assert code([x.ravel()], [y.reshape(-1)]) == 0
    assert np.array_equal(y, 1 + x)
    for combine, reduce in (("add", np.sum), ("mul", np.prod), ("max", np.max)):
        result = np.zeros(ROWS, "f4")
        assert compile_function(rows(n, False, combine), {}, verify=True)([x.ravel()], [result]) == 0
        want = reduce(np.c_[x.astype("f8"), np.full(ROWS, 0.5)], axis=1)
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("in_place", [True, False])
def test_no_loop_of_single_elements(in_place):
    def count(n):
        return compile_function(rows(n, in_place), {}).llvm.count("\nloop.")

    assert count(16 + 2) == count(16 + 4) == count(16) > 0


@pytest.mark.parametrize("n", [1, 3, 5, 7, 12, 15, 33, 1500])
@pytest.mark.parametrize("dtype", ["u8", "f16", "f64"])
def test_few_turns_in_a_loop_are_straight_code(dtype, n):
    """Rows of which each goes to two places, and ends with a vector that repeats a part of the one before."""
    b = Builder()
    x, y = b.input("x", dtype, ROWS * n), b.output("y", dtype, 2 * ROWS * n)
    with b.loop(ROWS) as i, b.loop(2) as k, b.loop(n, "vector") as j:
        b.store(y, (i * 2 + k) * n + j, b.load(x, i * n + j))
    function = b.function("rows")
    data = sample(dtype, ROWS * n, seed=n, edges=False)
    ((got, want),) = both(function, [data])
    np.testing.assert_array_equal(got, want)
    assert (compile_function(function, {}).llvm.count("\nloop.") == 1) == (n < 1500) or n == 33


def columns(n, rows=9):
    """Columns of y divided by their sums in place, in strips of 64; of the last one the extent is not known."""
    b = Builder()
    x, y = b.input("x", "f32", rows * n), b.output("y", "f32", rows * n)
    with b.loop(rows * n) as i:
        b.store(y, i, b.load(x, i))
    with b.loop(-(-n // 64)) as c:
        start = c * 64
        with b.loop(b.op("min", b.index(64), b.index(n) - start), "vector") as j:
            with b.carried_loop(rows, [((b.const("f32", 0.0),), "add")], "reduce") as r:
                r.update(r.var + b.load(y, r.i * n + start + j))
            with b.loop(rows) as k:
                b.store(y, k * n + start + j, b.load(y, k * n + start + j) / r.result)
    return b.function("columns")


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 31, 52, 63, 64, 65, 116, 127, 128, 500])
def test_strips_in_place(n):
    x = sample("f32", 9 * n, seed=n, edges=False)
    ((got, want),) = both(columns(n), [x])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_widths_of_shorter_vectors():
    """With the fewest turns, and no more copies of a body than its length allows."""
    loop = columns(500).body[1].body[-1]
    assert shorter(loop, 64, 16, 52) == (16, 4)
    assert shorter(loop, 64, 16, 48) == (16,)
    assert shorter(loop, 64, 16, 1) == ()
    assert len(shorter(loop, 64, 16, None)) == 2  # whose extents nobody knows
    (simple,) = rows(100, True).body[0].body
    assert shorter(simple, 32, 16, None) == ()
    # Multiples of 8 leave no single ones, and those of 24 are multiples of 8.
    assert shorter(simple, 32, 16, None, 8) == shorter(simple, 32, 16, None, 24) == (8,)
    assert shorter(loop, 64, 16, None, 8)[-1] == 8
    assert shorter(loop, 64, 16, 52, 4) == (16, 4)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i16"])
@pytest.mark.parametrize("n", [301, 777, 1003])
def test_rows_are_stored_in_whole_lines(n, dtype):
    """Rows that begin anywhere in a line: a vector at the beginning, then those of whole lines, the last at the end."""
    b = Builder()
    x, r, y = b.input("x", dtype, ROWS * n), b.input("r", dtype, n), b.output("y", dtype, ROWS * n)
    with b.loop(ROWS) as k, b.loop(n, "vector") as i:
        b.store(y, k * n + i, b.load(x, k * n + i) + b.load(r, i))
    function = b.function("f")
    for found, wanted in both(function, [sample(dtype, ROWS * n), sample(dtype, n)]):
        np.testing.assert_array_equal(found, wanted)
    assert "smax.i64" in build_module(function, {}, Target("x86_64-unknown-linux-gnu", "skylake-avx512", "", 64)).text


def strips(total, size):
    """Rows in place, in strips of `size` columns, the last of which is shorter."""
    b = Builder()
    y = b.output("y", "f32", total)
    with b.loop(-(-total // size), "sequential") as c:
        count = b.op("min", b.index(size), b.index(total) - c * size)
        with b.loop(count, "vector") as i:
            b.store(y, c * size + i, b.load(y, c * size + i) * 2.0 + 1.0)
    return b.function("strips")


@pytest.mark.parametrize(("total", "size", "single"), [(1000, 64, False), (1000, 192, False), (1001, 64, True)])
def test_strips_of_multiples_leave_no_single_elements(total, size, single):
    function = strips(total, size)
    code = compile_function(function, {}, verify=True)
    assert ("fmul float" in code.llvm) == single
    y = sample("f32", total, edges=False)
    want = y * np.float32(2) + np.float32(1)
    assert code([], [y]) == 0
    np.testing.assert_array_equal(y, want)


def chunks(n, inner=3):
    """A sum of n rows of products, in chunks of 64 rows; of the last one the extent is not known."""
    b = Builder()
    x, y = b.input("x", "f32", n + inner), b.output("y", "f32", -(-n // 64))
    with b.loop(-(-n // 64), "sequential") as c:
        extent = b.op("min", b.index(64), b.index(n) - c * 64)
        with b.carried_loop(extent, [((b.const("f32", 0.5),), "add")], "vector") as r:
            with b.carried_loop(inner, [((r.var,), "add")], "reduce") as k:
                k.update(k.var + b.load(x, c * 64 + r.i) * b.load(x, n + k.i))
            r.update(k.result)
        b.store(y, c, r.result)
    return b.function("chunks")


@pytest.mark.parametrize("n", [1, 2, 15, 16, 63, 64, 65, 64 + 28, 127])
def test_chunks_with_loops_inside_end_in_shorter_vectors(n):
    x = np.random.default_rng(n).normal(size=n + 3).astype("f4")
    y = np.zeros(-(-n // 64), "f4")
    code = compile_function(chunks(n), {}, verify=True)
    assert code([x], [y]) == 0
    want = [0.5 + np.outer(x[c : min(c + 64, n)].astype("f8"), x[n:]).sum() for c in range(0, n, 64)]
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
