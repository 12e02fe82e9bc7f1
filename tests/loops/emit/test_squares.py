"""Squares: lanes far apart in memory are read and written as whole vectors, and transposed in registers."""

import dataclasses

import pytest

from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import Builder

from .kit import both, same, sample

DTYPES = ["bool", "u8", "i16", "f16", "bf16", "i32", "f32", "i64", "f64", "c64", "c128"]


def optimized(function):
    """The function after the loop passes."""
    return optimize_loops(function)


def transpose(dtype, rows, columns, flipped=False):
    b = Builder()
    x, y = b.input("x", dtype, rows * columns), b.output("y", dtype, rows * columns)
    with b.loop(columns) as i, b.loop(rows) as j:
        row = rows - 1 - j if flipped else j
        column = columns - 1 - i if flipped else i
        b.store(y, i * rows + j, b.load(x, row * columns + column))
    return optimized(b.function("f"))


@pytest.mark.sample(26)
@pytest.mark.parametrize("shape", [(16, 16), (17, 16), (16, 31), (33, 65), (100, 100), (150, 129), (64, 1024)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_transposes_of_every_type(dtype, shape):
    (pair,) = both(transpose(dtype, *shape), [sample(dtype, shape[0] * shape[1])])
    same(*pair)


@pytest.mark.parametrize("kinds", [2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("dtype", ["u8", "i16", "bf16", "f32", "f64", "c64"])
def test_few_rows_or_columns(dtype, kinds):
    """Channels of an image, first or last: whole vectors are read and written."""
    for shape in ((kinds, 33), (50, kinds)):
        (pair,) = both(transpose(dtype, *shape), [sample(dtype, shape[0] * shape[1])])
        same(*pair)


@pytest.mark.parametrize("width", [16, 32, 64])
@pytest.mark.parametrize("dtype", ["u8", "f32", "c64"])
def test_transposes_of_every_width(dtype, width):
    target = dataclasses.replace(host_target(), vector_bytes=width)
    (pair,) = both(transpose(dtype, 45, 70), [sample(dtype, 45 * 70)], target=target)
    same(*pair)


@pytest.mark.parametrize("dtype", ["f32", "c64", "u8"])
def test_reversed_transposes(dtype):
    (pair,) = both(transpose(dtype, 40, 51, flipped=True), [sample(dtype, 40 * 51)])
    same(*pair)


@pytest.mark.parametrize("dtype", ["f32", "f64", "i16"])
def test_transposed_operands_and_results(dtype):
    """x.T + x, stored as it is and transposed: a square that is read and one that is written."""
    b, n = Builder(), 77
    x, y, z = b.input("x", dtype, n * n), b.output("y", dtype, n * n), b.output("z", dtype, n * n)
    with b.loop(n) as i, b.loop(n) as j:
        total = b.let(b.load(x, j * n + i) + b.load(x, i * n + j))
        b.store(y, i * n + j, total)
        b.store(z, j * n + n - 1 - i, total * b.load(x, i * n + j))
    for pair in both(optimized(b.function("f")), [sample(dtype, n * n, edges=False)]):
        same(*pair)


def test_mixed_widths():
    b, n = Builder(), 50
    x, w = b.input("x", "f32", n * n), b.input("w", "i8", n * n)
    y, z = b.output("y", "f64", n * n), b.output("z", "bool", n * n)
    with b.loop(n) as i, b.loop(n) as j:
        v = b.let(b.convert(b.load(x, j * n + i), "f64") + b.convert(b.load(w, j * n + i), "f64"))
        b.store(y, i * n + j, v)
        b.store(z, i * n + j, b.lt(v, b.const("f64", 0)))
    for pair in both(optimized(b.function("f")), [sample("f32", n * n), sample("i8", n * n)]):
        same(*pair)


def test_what_is_chosen_by_a_diagonal():
    """The lower triangle and its reflection: both loads are inside the buffer in every lane."""
    b, n = Builder(), 64
    x, y = b.input("x", "f32", n * n), b.output("y", "f32", n * n)
    with b.loop(n) as i, b.loop(n) as j:
        b.store(y, i * n + j, b.select(b.le(j, i), b.load(x, i * n + j), b.load(x, j * n + i)))
    (pair,) = both(optimized(b.function("f")), [sample("f32", n * n)])
    same(*pair)


def test_in_place():
    """A buffer that is read and written at the same places: nothing may be done twice."""
    b, n = Builder(), 36
    x, y, z = b.input("x", "f32", n * n), b.temporary("y", "f32", n * n), b.output("z", "f32", n * n)
    with b.loop(n * n) as k:
        b.store(y, k, b.load(x, k))
    with b.loop(n) as i, b.loop(n) as j:
        b.store(y, i * n + j, b.load(y, i * n + j) + b.load(x, j * n + i))
    with b.loop(n * n) as k:
        b.store(z, k, b.load(y, k))
    (pair,) = both(optimized(b.function("f")), [sample("f32", n * n, edges=False)])
    same(*pair)


@pytest.mark.parametrize("dtype", ["u8", "f32", "f64", "c64"])
def test_no_single_elements_are_moved(dtype):
    for shape in ((128, 160), *(((3, 64), (64, 3)) if dtype != "c64" else ())):
        code = compile_function(transpose(dtype, *shape)).llvm
        assert "insertelement" not in code and "gather" not in code and "extractelement" not in code


def test_index_by_way_of_a_let():
    """The step along the square is that of the whole index, also where parts of it are bound before."""
    b, n = Builder(), 32
    x, y = b.input("x", "f32", 5 * n * n), b.output("y", "f32", n * n)
    with b.loop(n, name="j", role="vector") as j, b.loop(n, name="i") as i:
        twice = b.let(i * 2)
        b.store(y, i * n + j, b.load(x, j * n + i + twice))
    function = b.function("f")
    (outer,) = function.body
    (inner,) = outer.body
    square = dataclasses.replace(inner, attrs=(("square", True),))
    function = dataclasses.replace(function, body=(dataclasses.replace(outer, body=(square,)),))
    (pair,) = both(function, [sample("f32", 5 * n * n)])
    same(*pair)


def test_a_square_that_is_only_read_is_a_loop_over_its_parts():
    """Panels of a matrix: sixteen rows are read four elements at a time, by one piece of code."""
    b = Builder()
    x, y = b.input("x", "f32", 64 * 64), b.output("y", "f32", 64 * 64)
    with b.loop(64) as i, b.loop(4) as panel, b.loop(16) as j:
        b.store(y, panel * 1024 + i * 16 + j, b.load(x, (panel * 16 + j) * 64 + i))
    function = optimized(b.function("f"))
    compiled = compile_function(function, target=dataclasses.replace(host_target(), vector_bytes=64))
    assert compiled.llvm.count("load <4 x float>") == 16
    (pair,) = both(function, [sample("f32", 64 * 64)])
    same(*pair)


@pytest.mark.parametrize("kinds", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["u8", "f32", "f64"])
def test_results_that_take_turns_are_stored_together(dtype, kinds):
    """Transposed arrays whose rows alternate in the result: whole vectors are written, by one piece of code."""
    n, b = 32, Builder()
    xs = [b.input(f"x{k}", dtype, n * n) for k in range(kinds)]
    y = b.output("y", dtype, kinds * n * n)
    with b.loop(n, name="row") as row, b.loop(n, name="column", role="vector") as column:
        values = [b.let(b.load(x, column * n + row)) for x in xs]
        for k, value in enumerate(values):
            b.store(y, row * n * kinds + column * kinds + k, value)
    function = b.function("f")
    (outer,) = function.body
    (inner,) = outer.body
    square = dataclasses.replace(outer, attrs=(("square", True),), body=inner.body)
    function = dataclasses.replace(function, body=(dataclasses.replace(inner, body=(square,)),))
    code = compile_function(function, target=dataclasses.replace(host_target(), vector_bytes=64)).llvm
    assert "insertelement" not in code and "extractelement" not in code
    (pair,) = both(function, [sample(dtype, n * n)] * kinds)
    same(*pair)
