"""What keeps LLVM's code generation short: rare branches in parts, integers of which it need not know bits."""

from __future__ import annotations

import contextlib
import functools
import re

import numpy as np
import pytest

from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.emit.lanes import lane_count, register_lanes
from pullback.loops.emit.module import build_module
from pullback.loops.ir.build import Builder

from .kit import both, sample

RARE = (("rare", True),)


def _spread(b, x, rounds=12):
    """A long computation in 64 bits on an f32."""
    bits = b.convert(b.bitcast(x, "u32"), "u64")
    for k in range(rounds):
        bits = (bits * (2 * k + 3)) ^ b.shr_logical(bits, 7)
    return bits


def _function(n, load_inside=False):
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", n)
    with b.loop(n, "vector", attrs=(("lanes", 16),) if n >= 16 else ()) as i:
        v = b.load(x, i)
        bits = _spread(b, v)
        if load_inside:
            bits = bits ^ b.convert(b.bitcast(b.load(x, n - 1 - i), "u32"), "u64")
        far = b.convert(b.shr_logical(bits, 40), "f32")
        c = b.gt(v, 100.0)
        first = b.op("select", c, far, v * 2.0, attrs=RARE)
        second = b.op("select", c, b.convert(bits & 255, "f32") + v, v, attrs=RARE)
        b.store(y, i, first + second)
    return b.function("f")


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 64, 133])
def test_rare_branches_in_parts(n, share):
    function = _function(n)
    data = sample("f32", n, edges=False)
    data[np.random.default_rng(1).random(n) < share] = 1000.0
    ((got, want),) = both(function, [data])
    np.testing.assert_array_equal(got, want)


def test_a_part_fills_a_register():
    """Both selects of a vector share one loop over its parts; nothing wider is computed in 64 bits."""
    text = compile_function(_function(64)).llvm
    lanes = host_target().vector_bytes // 8
    loops = [line for line in text.splitlines() if line.startswith("parts.")]
    assert len(loops) == (1 if lanes < 16 else 0)
    assert f"mul <{lanes} x i64>" in text
    assert lanes == 16 or "mul <16 x i64>" not in text


def test_loads_in_rare_branches_take_whole_vectors():
    function = _function(133, load_inside=True)
    data = sample("f32", 133, edges=False)
    data[::3] = 1000.0
    assert "parts." not in compile_function(function).llvm
    ((got, want),) = both(function, [data])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["u8", "u16", "u32", "i32", "u64", "i64"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_rounds_of_xors_and_rotations(dtype, lanes):
    """Bits are what they are, also those of NaNs, wherever LLVM is told to know nothing of them."""
    b, n = Builder(), 67
    x, y = b.input("x", dtype, n), b.output("y", dtype, n)
    bits = int(dtype[1:])
    with b.loop(n, "vector", attrs=(("lanes", lanes),)) as i:
        v = w = b.load(x, i)
        for k in range(8):
            v = v + w
            w = v ^ (b.shl(w, b.const(dtype, k % 5 + 1)) | b.shr_logical(w, b.const(dtype, bits - k % 5 - 1)))
        b.store(y, i, w)
    data = sample(dtype, n)
    data[:4] = np.array([0x7FC00001, 0x7F800001, 0xFFFFFFFF, 0x7FF0000000000001], np.uint64).astype(data.dtype)
    ((got, want),) = both(b.function("f"), [data])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [8, 64])
@pytest.mark.parametrize("results", [1, 2])
def test_what_is_rare_is_a_function(results, n):
    """Six equal computations for huge arguments call one; of two results, which share work, the first two do not."""
    b = Builder()
    x = [b.input(f"x{k}", "f32", n) for k in range(6)]
    y = [b.output(f"y{k}", "f32", n) for k in range(6)]
    for source, result in zip(x, y):
        with b.loop(n, "vector", attrs=(("lanes", 8),)) as i:
            v = b.load(source, i)
            bits, huge = _spread(b, v), b.gt(v, 100.0)
            far = [b.convert(b.shr_logical(bits, 40 + k), "f32") for k in range(results)]
            chosen = [b.op("select", huge, each, v * 2.0, attrs=RARE) for each in far]
            b.store(result, i, functools.reduce(b.add, chosen))
    function = b.function("f")
    text = compile_function(function).llvm
    inside, functions = text.split("@pb_main", 1)[1], text.count("define internal")
    assert functions == results
    calls = sum("call" in line and "@rare." in line for line in inside.splitlines())
    assert calls == (6 if results == 1 else 2 * 4)
    data = [sample("f32", n, edges=False) for _ in x]
    for k, values in enumerate(data):
        values[:: k + 1] = 1000.0 + k
    for got, want in both(function, data):
        np.testing.assert_array_equal(got, want)


def test_a_program_that_only_calls_is_not_optimized():
    """A loop of threads is one function, and the program that calls the pool another, compiled by the quick way."""
    b = Builder()
    x, y = b.input("x", "f32", 64), b.output("y", "f32", 64)
    with b.loop(64, "threads") as i:
        b.store(y, i, b.load(x, i) * 2.0)
    text = compile_function(b.function("f")).llvm
    heads = [line for line in text.splitlines() if line.startswith("define")]
    assert ["optnone" in line for line in heads] == ["@pb_main" in line for line in heads]
    assert len(heads) == 2


@pytest.mark.parametrize(("rows", "known"), [(8, False), (8, True), (1, False)])
def test_short_loops_that_add_up_many_rows_are_counted(rows, known):
    """Straight code of their turns gains nothing, unless they are so small that counting is much of the work, or read
    what stays in registers."""
    columns, count = 256, 5
    b = Builder()
    x, y = b.input("x", "f32", columns * rows * count), b.output("y", "f32", columns)
    weights = b.input("w", "f32", columns)
    with b.loop(columns, "vector") as j:
        b.store(y, j, b.const("f32", 0.0))
    with b.loop(count, "sequential") as q, b.loop(columns, "vector", attrs=(("lanes", 32),)) as j:
        terms = [b.load(x, (q * rows + k) * columns + j) for k in range(rows)]
        if known:
            terms = [term * b.load(weights, j) for term in terms]
        b.store(y, j, functools.reduce(b.add, terms, b.load(y, j)))
    function = b.function("f")
    loops = len(re.findall(r"^loop", build_module(function, {}, host_target()).text, re.M))
    assert loops == (3 if rows == 8 and not known else 2)
    data = [sample("f32", columns * rows * count, edges=False), sample("f32", columns, 1, edges=False)]
    for got, want in both(function, data):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("rounds", [1, 40])
def test_what_takes_little_beside_other_loops_is_counted(rounds):
    """Straight code of its turns gains nothing; of rounds that are few it does."""
    columns, count = 160, 3
    b = Builder()
    x, y = b.input("x", "f32", columns * rounds * count), b.output("y", "f32", columns * count)
    with b.loop(count, "sequential") as q:
        with b.loop(rounds, "sequential") as k, b.loop(columns, "vector", attrs=(("lanes", 32),)) as j:
            at = (q * rounds + k) * columns + j
            b.store(y, q * columns + j, b.load(x, at) * 2.0 + b.load(x, at) * b.load(x, at))
        with b.loop(columns, "vector", attrs=(("lanes", 32),)) as j:
            value = b.load(y, q * columns + j)
            for step in range(8):
                value = b.abs(value - float(step))
            b.store(y, q * columns + j, value)
    function = b.function("f")
    loops = len(re.findall(r"^loop", build_module(function, {}, host_target()).text, re.M))
    assert loops == (1 if rounds == 1 else 3)
    for got, want in both(function, [sample("f32", columns * rounds * count, edges=False)]):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("store", "carried"), [(False, False), (True, False), (False, True)])
def test_loops_of_threads_that_only_call_are_not_optimized(store, carried):
    """Where each call works is a few integers; what computes or carries elements itself is worth optimizations."""
    b = Builder()
    x, y = b.input("x", "f32", 640), b.output("y", "f32", 640)
    with b.loop(8, "threads") as i:
        offset = b.let(i * 80, "offset")
        with b.loop(8, "sequential") as k:
            at = b.let(offset + k * 10, "at")
            b.call("memcpy", b.address(y, at), b.address(x, at), b.index(40))
            if store:
                b.store(y, at, b.load(x, at) + 1.0)
        if carried:
            with b.carried_loop(3, [((b.const("f32", 0.0),), None)]) as total:
                b.call("memcpy", b.address(y, offset), b.address(x, offset), b.index(4))
                total.update(b.add(total.vars[0], b.load(x, total.i)))
    text = build_module(b.function("f"), {}, host_target()).text
    (head,) = [line for line in text.splitlines() if line.startswith("define") and "@body" in line]
    assert ("optnone" in head) == (not store and not carried)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "u32", "i64", "bool"])
def test_a_few_numbers_are_computed_by_code_that_nothing_optimizes(dtype):
    """Where all functions are such, LLVM has not even its optimizations; a loop is worth them."""

    def function(extent):
        b = Builder()
        x, y = b.input("x", dtype, 2), b.output("y", dtype, 2)
        with contextlib.ExitStack() as stack:
            i = stack.enter_context(b.loop(extent)) if extent else b.index(1)
            first, second = b.load(x, 0), b.load(x, i)
            value = b.op("or", first, second) if dtype == "bool" else first + second * first
            b.store(y, i, b.select(b.op("eq", first, second), first, value))
        return b.function("f")

    for extent in (0, 2):
        f = function(extent)
        assert build_module(f, {}, host_target()).quick == (not extent)
        ((got, want),) = both(f, [sample(dtype, 2, edges=False)])
        np.testing.assert_array_equal(got, want)


def test_addresses_of_arguments_are_read_where_they_are_used():
    """Not all at the start, from where LLVM would keep hundreds of them on the stack."""
    b = Builder()
    x = [b.input(f"x{k}", "f32", 64) for k in range(40)]
    y = b.output("y", "f32", 64 * len(x))
    for k, source in enumerate(x):
        with b.loop(64, "parallel") as i:
            b.store(y, k * 64 + i, b.load(source, i))
    function = b.function("f")
    text = compile_function(function).llvm
    start = text[text.index("@pb_main") : text.index("loop.")]
    assert start.count("load ptr") <= 2
    assert text.count("load ptr") == len(x) + 1
    data = [sample("f32", 64, edges=False) for _ in x]
    ((got, want),) = both(function, data)
    np.testing.assert_array_equal(got, want)


def test_equal_loops_of_threads_are_one_function():
    """With their tables, which are equal, too; what differs is in the context that they are given."""
    b = Builder()
    x, y = b.input("x", "f32", 64), [b.output(f"y{k}", "f32", 64) for k in range(3)]
    tables = [b.constant(f"t{k}", np.arange(8, dtype="f4") * (1 + k // 2)) for k in range(3)]
    for table, result in zip(tables, y):
        with b.loop(64, "threads") as i:
            b.store(result, i, b.load(x, i) * b.load(table, i % 8))
    function = b.function("f")
    text = compile_function(function).llvm
    assert text.count("define internal") == 1
    assert text.count("internal constant") == 2
    for got, want in both(function, [sample("f32", 64, edges=False)]):
        np.testing.assert_array_equal(got, want)


def test_of_elements_that_take_turns_those_read_are_taken_apart():
    """A loop along rows of 10 reads one of the ten kinds at a time: two halves of five vectors, blended and ordered."""
    b = Builder()
    x, y = b.input("x", "f32", 1000), b.output("y", "f32", 100)
    with b.loop(100, "vector", attrs=(("lanes", 64),)) as i:
        with b.reduce(10, b.const("f32", 0), "add") as r:
            r.update(r.var + b.load(x, i * 10 + r.i))
        b.store(y, i, r.result)
    text = compile_function(b.function("f")).llvm
    assert 0 < text.count("shufflevector") <= 12


def test_indices_of_loops_that_are_written_out_are_numbers():
    b = Builder()
    x, y = b.input("x", "f32", 2400), b.output("y", "f32", 768)
    with b.loop(3, "parallel") as p, b.loop(8, "parallel") as k, b.loop(32, "vector") as j:
        b.store(y, p * 256 + k * 32 + j, b.load(x, p * 800 + k * 100 + j) * 2.0)
    text = compile_function(b.function("f")).llvm
    assert not re.search(r"= (add|sub|mul) i64 -?\d+, -?\d+", text)


@pytest.mark.parametrize("factor, written", [(1.0, 8), (None, 1)])
def test_copies_of_whole_registers_are_counted(factor, written):
    """As they are where the columns of a product are packed; other short loops are written turn by turn."""
    b = Builder()
    x, y = b.input("x", "f32", 2400), b.output("y", "f32", 768)
    with b.loop(3, "parallel") as p, b.loop(8, "parallel") as k, b.loop(32, "vector", attrs=(("lanes", 32),)) as j:
        value = b.load(x, p * 800 + k * 100 + j)
        b.store(y, p * 256 + k * 32 + j, value if factor is None else value + factor)
    assert compile_function(b.function("f")).llvm.count("load <32 x float>") == written


@pytest.mark.parametrize("apart, registers", [(1, 4), (9, 2)])
@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_what_is_read_lane_by_lane_has_fewer_lanes(dtype, apart, registers):
    b = Builder()
    x, y = b.input("x", dtype, 2304), b.output("y", dtype, 256)
    with b.loop(256, "vector") as i:
        with b.reduce(9, b.const(dtype, 0), "add") as r:
            r.update(r.var + b.load(x, i * apart + r.i * (10 - apart)))
        b.store(y, i, r.result)
    (loop,) = b.function("f").body
    assert lane_count(loop, host_target()) == registers * register_lanes(loop, host_target())


@pytest.mark.parametrize(
    ("start", "step", "size"), [(0, 3, 384), (2, 3, 384), (0, 3, 382), (381, -3, 384), (0, 5, 636)]
)
def test_elements_that_take_turns_are_chosen_register_by_register(start, step, size):
    """LLVM took ten shuffles of 64 lanes 10 ms, and twelve shuffles of 16 for each 16 of them 6."""
    n = 128
    b = Builder()
    x, y = b.input("x", "f32", size), b.output("y", "f32", n)
    with b.loop(n, "vector", attrs=(("lanes", 64),)) as i:
        b.store(y, i, b.load(x, start + i * step) + 1.0)
    function = b.function("f")
    ((got, want),) = both(function, [sample("f32", size)])
    np.testing.assert_array_equal(got, want)
    if host_target().vector_bytes >= 32:  # a register holds an element of each kind
        wide = compile_function(function).llvm.count("shufflevector <64 x float>")
        assert wide == (1 if step < 0 else 0)  # what turns all around


@pytest.mark.parametrize("terms", [1, 4])
def test_what_is_the_same_in_all_steps_does_not_count_as_work_of_each(terms):
    """Places that do not change, and elements that lie apart but are read once: steps wait as well."""
    b = Builder()
    n = 1024
    x, y = b.input("x", "f32", 16 * n), b.output("y", "f32", n)
    with b.loop(4) as part, b.loop(n // 4, "vector") as i:
        place = b.op("min", part * (n // 4), b.index(n - n // 4)) + i
        with b.carried_loop(16, [((b.load(y, place),), None)], "sequential") as step:
            value = b.const("f32", 0.5)
            for k in range(terms):
                value = value + step.var * b.load(x, place * 5 + k * n)
            for _ in range(4):
                value = b.op("sqrt", value + 1.0)
            step.update(value)
        b.store(y, place, step.result)
    (loop,) = b.function("f").body[0].body
    assert lane_count(loop, host_target()) == 4 * register_lanes(loop, host_target())


@pytest.mark.parametrize("count", [8, 80])
def test_addresses_of_many_arrays_are_found_in_front_of_what_uses_them(count):
    """Between two nests they would wait on the stack; those of a few have registers."""
    b = Builder()
    xs = [b.input(f"x{k}", "f32", 16) for k in range(count)]
    ys = [b.output(f"y{k}", "f32", 16) for k in range(count)]
    between = [b.temporary(f"t{k}", "f32", 16) for k in range(count)]
    for x, t in zip(xs, between):
        with b.loop(16, "vector") as i:
            b.store(t, i, b.load(x, i) + 1.0)
    for x, t, y in zip(xs, between, ys):
        with b.loop(16, "vector") as i:
            b.store(y, i, b.load(x, i) * b.load(t, i))
    function = b.function("f")
    data = [sample("f32", 16, seed) for seed in range(count)]
    for got, want in both(function, data):
        np.testing.assert_array_equal(got, want)
    text = build_module(function, {t: 64 * k for k, t in enumerate(between)}, host_target()).text
    found = len(re.findall(r"getelementptr i8, ptr %arena", text))
    assert found == (count if count < 64 else 2 * count)


@pytest.mark.parametrize("rows", [9, 100])
def test_what_runs_a_few_times_in_a_call_is_counted(rows):
    """The columns of a product of 9 rows are counted; of 100 rows they are straight code, which gains more there."""
    columns, terms = 7, 8
    b = Builder()
    x, y = b.input("x", "f32", rows * terms), b.input("y", "f32", terms * columns)
    z = b.output("z", "f32", rows * columns)
    with b.loop(rows, "vector", attrs=(("lanes", 8),)) as i:
        left = [b.let(b.load(x, i * terms + k), "t") for k in range(terms)]
        with b.loop(columns, "parallel") as j:
            total = left[0] * b.load(y, j)
            for k in range(1, terms):
                total = total + left[k] * b.load(y, j + k * columns)
            b.store(z, i * columns + j, total)
    function = b.function("f")
    data = [sample("f32", size, edges=False) for size in (rows * terms, terms * columns)]
    for got, want in both(function, data):
        np.testing.assert_array_equal(got, want)
    text = build_module(function, {}, host_target()).text
    assert len(re.findall(r"^loop", text, re.M)) == (2 if rows == 9 else 1)


@pytest.mark.parametrize("rows", [200, 256, 1000])
def test_chains_of_a_sum_are_counted(rows):
    """A sum down a few columns is made of chains in blocks, which are loops themselves: no turn is short."""
    b = Builder()
    x, y = b.input("x", "f32", rows * 16), b.output("y", "f32", 16)
    with b.loop(16, "vector", attrs=(("lanes", 16),)) as i:
        with b.carried_loop(rows, [((b.const("f32", 0.0),), "add")], "reduce") as r:
            r.update(r.var + b.load(x, r.i * 16 + i))
        b.store(y, i, r.result)
    text = build_module(b.function("f"), {}, host_target()).text
    assert len(re.findall(r"^loop", text, re.M)) == 3
