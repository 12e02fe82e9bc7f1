"""What lanes need of indices is made in narrow registers, and without gathers where elements lie together."""

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from pullback.loops.emit.cpu.target import Target, host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.emit.module import build_module
from pullback.loops.ir import NP_DTYPE, Builder
from pullback.loops.ir.ir import SINGLY

from .kit import both


def padded_reversal(dtype: str, n: int):
    """Element i of the result is x[n - 1 - (i - 3)], or zero where there is none."""
    b = Builder()
    x, y = b.input("x", dtype, n), b.output("y", dtype, n + 7)
    with b.loop(n + 7, "vector") as i:
        inside = b.and_(b.ge(i, 3), b.lt(i, n + 3))
        zero = b.const(dtype, 0)
        b.store(y, i, b.op("select", inside, b.load(x, n + 2 - i), zero))
    return b.function("f")


@pytest.mark.parametrize("dtype", ["i8", "i16", "f16", "f32", "i32", "f64", "c64", "c128"])
@pytest.mark.parametrize("n", [1, 7, 16, 17, 100])
def test_masked_loads_backwards(dtype, n):
    data = np.arange(1, n + 1).astype(NP_DTYPE[dtype])
    ((got, want),) = both(padded_reversal(dtype, n), [data])
    np.testing.assert_array_equal(got, want)


def test_masked_loads_backwards_are_no_gathers():
    text = compile_function(padded_reversal("f32", 100)).llvm
    assert "masked.load" in text and "masked.gather" not in text


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("step", [1, 3, -2])
def test_indices_are_compared_in_32_bits(name, step):
    n = 77
    b = Builder()
    y = b.output("y", "f32", n)
    with b.loop(n, "vector") as i:
        b.store(y, i, b.op("select", b.op(name, i * step + 5, 20), b.const("f32", 1.0), b.const("f32", 2.0)))
    function = b.function("f")
    assert "x i64>" not in compile_function(function).llvm
    ((got, want),) = both(function, [])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("far", [(1 << 31) - 30, -(1 << 31) - 20, 1 << 40])
def test_indices_beyond_32_bits_are_compared_whole(far):
    n = 77
    b = Builder()
    y = b.output("y", "f32", n)
    with b.loop(n, "vector") as i:
        b.store(y, i, b.op("select", b.lt(i + far, far + 20), b.const("f32", 1.0), b.const("f32", 2.0)))
    ((got, want),) = both(b.function("f"), [])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["shl", "shr_logical", "shr_arithmetic"])
def test_masked_shifts_need_no_choice(name):
    n = 40
    b = Builder()
    x, s, y = b.input("x", "i32", n), b.input("s", "i32", n), b.output("y", "i32", n)
    with b.loop(n, "vector") as i:
        b.store(y, i, b.op(name, b.load(x, i), b.op("and", b.load(s, i), b.const("i32", 31))))
    function = b.function("f")
    assert "select" not in compile_function(function).llvm
    rng = np.random.default_rng(0)
    ((got, want),) = both(function, [rng.integers(-(1 << 31), 1 << 31, n, dtype="i4") for _ in range(2)])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("attrs", [(), (SINGLY,)])
def test_arrays_beyond_the_first_cache_are_gathered_by_what_is_quicker(attrs):
    n, size = 77, 20_000
    b = Builder()
    x, p, y = b.input("x", "f32", size), b.input("p", "i32", n), b.output("y", "f32", n)
    with b.loop(n, "vector", attrs=attrs) as i:
        b.store(y, i, b.load(x, b.convert(b.load(p, i), "i64")))
    function = b.function("f")
    assert ("gather" in compile_function(function).llvm) == (host_target().vector_bytes == 64 and not attrs)
    rng = np.random.default_rng(0)
    ((got, want),) = both(function, [rng.normal(size=size).astype("f4"), rng.integers(0, size, n).astype("i4")])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["i8", "f16", "f32", "i32", "f64", "c64", "c128", "bool"])
@pytest.mark.parametrize("row", [0, 3])
def test_places_of_32_bits_are_widened_by_addresses(dtype, row):
    """x[row * 20 + p[i] - 5], p[i] of 32 bits: no lanes of 64 bits but on machines that gather by themselves."""
    n = 77
    b = Builder()
    x, p, y = b.input("x", dtype, 100), b.input("p", "i32", n), b.output("y", dtype, n)
    with b.loop(n, "vector") as i:
        place = b.convert(b.load(p, i), "i64")
        b.store(y, i, b.load(x, place + (row * 20 - 5)))
    function = b.function("f")
    text = compile_function(function).llvm
    assert ("x i64>" in text and "gather" in text) == (host_target().vector_bytes == 64)
    rng = np.random.default_rng(0)
    places = rng.integers(5 - row * 20, 105 - row * 20, n).astype(np.int32)
    data = rng.integers(0, 2 if dtype == "bool" else 100, 100).astype(NP_DTYPE[dtype])
    ((got, want),) = both(function, [data, places])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["i8", "f32", "f64", "c64", "bool"])
@pytest.mark.parametrize("attrs", [(), (SINGLY,)])
def test_places_of_several_axes_are_one_sum_of_32_bits(dtype, attrs):
    """x[k, p[i], q[i], 1]: rows of 5 planes, by two places that data give for each lane."""
    n, planes, rows, columns = 77, 5, 40, 50
    b = Builder()
    x = b.input("x", dtype, planes * rows * columns * 3)
    p, q, y = b.input("p", "i32", n), b.input("q", "i32", n), b.output("y", dtype, planes * n)
    inside = lambda place, size: b.convert(
        b.op("min", b.op("max", place, b.const("i32", 0)), b.const("i32", size - 1)), "i64"
    )
    with b.loop(planes, "parallel") as k, b.loop(n, "vector", attrs=attrs) as i:
        place = inside(b.load(p, i), rows) * (3 * columns) + inside(b.load(q, i), columns) * 3
        b.store(y, k * n + i, b.load(x, place + k * (3 * columns * rows) + 1))
    function = b.function("f")
    assert not re.search(r"(mul|shl)[a-z ]* <\d+ x i64>", compile_function(function).llvm)
    rng = np.random.default_rng(0)
    data = rng.integers(0, 2 if dtype == "bool" else 100, planes * rows * columns * 3).astype(NP_DTYPE[dtype])
    ((got, want),) = both(function, [data, *[rng.integers(-9, 60, n).astype("i4") for _ in range(2)]])
    np.testing.assert_array_equal(got, want)


def shifted_rows(dtype: str, rows: int, columns: int):
    """Row i of the result is row i - 1 of x, of which there is none for the first, plus row i + 1."""
    b = Builder()
    x, y = b.input("x", dtype, rows * columns), b.output("y", dtype, rows * columns)
    zero = b.const(dtype, 0)
    with b.loop(rows, "parallel") as i, b.loop(columns, "vector") as j:
        at = i * columns + j
        above = b.op("select", b.ge(i, 1), b.load(x, at - columns), zero)
        below = b.op("select", b.lt(i, rows - 1), b.load(x, at + columns), zero)
        b.store(y, at, b.add(above, below))
    return b.function("f")


@pytest.mark.parametrize("dtype", ["i8", "i16", "f16", "bf16", "f32", "i32", "f64", "c64"])
@pytest.mark.parametrize(("rows", "columns"), [(5, 64), (1, 16), (3, 7), (4, 33)])
def test_lanes_that_all_need_a_load_or_none_have_no_masks(dtype, rows, columns):
    function = shifted_rows(dtype, rows, columns)
    assert rows == 1 or "masked" not in compile_function(function).llvm
    data = np.arange(1, rows * columns + 1).astype(NP_DTYPE[dtype])
    ((got, want),) = both(function, [data])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("columns", "gathered"), [(1_000, False), (1_000_000, True)])
def test_lanes_that_reach_little_of_a_large_array_are_loaded_one_by_one(columns, gathered):
    n, rows = 77, 4_000_000 // columns
    b = Builder()
    x, p, y = b.input("x", "f32", rows * columns), b.input("p", "i32", n), b.output("y", "f32", rows * n)
    with b.loop(rows, "parallel") as k, b.loop(n, "vector", attrs=(SINGLY,)) as i:
        place = b.op("min", b.op("max", b.load(p, i), b.const("i32", 0)), b.const("i32", columns - 1))
        b.store(y, k * n + i, b.load(x, k * columns + b.convert(place, "i64")))
    target = Target(llvm.get_process_triple(), "x86-64", "", 64)
    assert ("gather" in build_module(b.function("f"), {}, target).text) == gathered


@pytest.mark.parametrize("dtype", ["i8", "f16", "f32", "i32", "f64", "c64", "bool"])
@pytest.mark.parametrize("row", [0, 3])
def test_lookups_that_some_lanes_do_not_need_are_loaded_one_by_one(dtype, row):
    """x[k, p[i]] where that is a place of a row, else zero, with places far outside of the array."""
    n, rows, columns = 77, 5, 20_000
    b = Builder()
    x, p, y = b.input("x", dtype, rows * columns), b.input("p", "i32", n), b.output("y", dtype, n)
    with b.loop(n, "vector", attrs=(SINGLY,)) as i:
        place = b.convert(b.load(p, i), "i64")
        inside = b.and_(b.ge(place, 0), b.lt(place, columns))
        b.store(y, i, b.op("select", inside, b.load(x, place + row * columns), b.const(dtype, 0)))
    function = b.function("f")
    assert "gather" not in build_module(function, {}, Target(llvm.get_process_triple(), "x86-64", "", 64)).text
    rng = np.random.default_rng(0)
    data = rng.integers(0, 100, rows * columns).astype(NP_DTYPE[dtype])
    places = rng.integers(-columns // 2, 3 * columns // 2, n).astype("i4")
    places[:6] = -(1 << 31), (1 << 31) - 1, -1, 0, columns - 1, columns
    for some in (places, np.full(n, -1, "i4"), np.abs(places % columns).astype("i4")):
        ((got, want),) = both(function, [data, some])
        np.testing.assert_array_equal(got, want)
