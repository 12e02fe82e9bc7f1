"""Loops, reductions, branches, calls: compiled against interpreted, at sizes around the vector widths."""

import ctypes
import re

import numpy as np
import pytest

from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import compile_function
from pullback.loops.emit.lanes import depth, lane_count
from pullback.loops.emit.load import HostCallback
from pullback.loops.ir import Builder, Combine
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.ir import RARE
from pullback.loops.ir.types import DTYPES
from pullback.loops.passes.outline import outline

from .kit import SIZES, both, compiled, same, sample


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_copy_in_every_order(dtype, n):
    """Contiguous, reversed, strided, gathered, scattered."""
    b = Builder()
    x, index = b.input("x", dtype, n), b.input("index", "i64", n)
    outs = [b.output(f"y{k}", dtype, n) for k in range(3)]
    twice = b.output("twice", dtype, 2 * n)
    scattered = b.output("scattered", dtype, n)
    with b.loop(n, "vector") as i:
        b.store(outs[0], i, b.load(x, i))
        b.store(outs[1], i, b.load(x, n - 1 - i))
        b.store(outs[2], n - 1 - i, b.load(x, b.load(index, i)))
        b.store(twice, i * 2 + 1, b.load(x, i))
        b.store(twice, i * 2, b.load(x, 0) if n else b.const(dtype, 0))
        b.store(scattered, b.load(index, i), b.load(x, i))
    for got, want in both(b.function("f"), [sample(dtype, n), np.random.default_rng(0).permutation(n)]):
        same(got, want)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bool", "bf16", "c64"])
def test_loads_that_only_some_lanes_need(dtype, n):
    """Padding and concatenation: the branch not taken would read outside its buffer."""
    b = Builder()
    x, y = b.input("x", dtype, n), b.input("y", dtype, 5)
    out, guarded = b.output("out", dtype, n + 5), b.output("guarded", dtype, n + 5)
    with b.loop(n + 5, "vector") as i:
        b.store(out, i, b.select(b.lt(i, n), b.load(x, i), b.load(y, i - n)))
        far = b.load(x, i * 3 - 1)
        inner = b.select(b.ge(i, 1), far, b.const(dtype, 0))
        both_sides = b.select(b.lt(i * 3, n), inner, b.select(b.eq(i, n + 100), far, b.const(dtype, 1)))
        b.store(guarded, i, both_sides)
    for got, want in both(b.function("f"), [sample(dtype, n), sample(dtype, 5, 1)]):
        same(got, want)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    "combine, dtype",
    [(c, d) for c in ("add", "mul", "min", "max") for d in ("f32", "f64", "i32", "u8", "i64", "bf16", "f16", "c64")]
    + [(c, d) for c in ("and", "or", "xor", "min", "max") for d in ("bool", "u32")],
)
def test_reduce(combine, dtype, n):
    b = Builder()
    x, y = b.input("x", dtype, n), b.output("y", dtype, 1)
    with b.carried_loop(n, [((b.const(dtype, 1),), combine)], "vector") as r:
        r.update(b.op(combine, r.var, b.load(x, r.i)))
    b.store(y, 0, r.result)
    data = sample(dtype, n, edges=combine in ("min", "max"))
    if dtype in ("f32", "f64", "f16", "bf16", "c64") and combine == "mul":
        data = (1 + data * 1e-3).astype(data.dtype)
    ((got, want),) = both(b.function("f"), [data])
    if dtype[0] in "fc" or dtype == "bf16":
        scale = np.abs(data.astype(np.complex128)).sum() + 1 if combine == "add" else abs(want[0].astype(np.complex128))
        eps = {"bf16": 2**-8, "f16": 2**-11, "f32": 2**-24, "f64": 2**-53, "c64": 2**-24}[dtype]
        error = abs(complex(got[0]) - complex(want[0]))
        assert error <= 4 * max(np.sqrt(n), 4) * eps * scale or got[0] == want[0] or (got != got and want != want)
    else:
        same(got, want)


def test_min_and_max_carry_nan_through_every_lane():
    for position in (0, 5, 31, 32, 98, 99):
        data = np.arange(100, dtype=np.float32)
        data[position] = np.nan
        for combine in ("min", "max"):
            b = Builder()
            x, y = b.input("x", "f32", 100), b.output("y", "f32", 1)
            with b.carried_loop(100, [((b.const("f32", 0),), combine)], "vector") as r:
                r.update(b.op(combine, r.var, b.load(x, r.i)))
            b.store(y, 0, r.result)
            assert np.isnan(compiled(b.function("f"), [data])[0][0])


@pytest.mark.parametrize("n", SIZES)
def test_argmax_with_sum_in_one_loop(n):
    b = Builder()
    x, y, where = b.input("x", "f32", n), b.output("y", "f32", 2), b.output("where", "i64", 1)
    lowest, none = b.const("f32", -np.inf), b.index(2**40)
    left = (b.var("v", "f32"), b.var("i", "i64"))
    right = (b.var("w", "f32"), b.var("j", "i64"))

    def better(v, i, w, j):
        take = b.or_(b.gt(v, w), b.and_(b.eq(v, w), b.lt(i, j)))
        return b.select(take, v, w), b.select(take, i, j)

    combine = Combine(left, right, better(*map(b.read, (*left, *right))), (lowest, none))
    with b.carried_loop(n, [((lowest, none), combine), ((b.const("f32", 0),), "add")], "vector") as r:
        element = b.load(x, r.i)
        r.update(*better(r.vars[0], r.vars[1], element, r.i), r.vars[2] + element)
    b.store(y, 0, r.results[0])
    b.store(y, 1, r.results[2])
    b.store(where, 0, r.results[1])
    data = np.round(sample("f32", n, edges=False), 1)
    (got, want), (at, wanted_at) = both(b.function("f"), [data])
    same(got[:1], want[:1])
    same(at, wanted_at)
    assert np.allclose(got[1], want[1], rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("rows, columns", [(1, 1), (7, 33), (33, 7), (16, 16), (100, 65)])
def test_column_sums_inside_a_vector_loop(rows, columns):
    b = Builder()
    x, y = b.input("x", "f32", rows * columns), b.output("y", "f32", columns)
    with b.loop(columns, "vector") as j:
        with b.carried_loop(rows, [((b.const("f32", 0),), "add")], "reduce") as r:
            r.update(r.var + b.load(x, r.i * columns + j))
        b.store(y, j, r.result * 2.0)
    ((got, want),) = both(b.function("f"), [sample("f32", rows * columns, edges=False)])
    assert np.allclose(got, want, rtol=1e-5, atol=1e-4)  # sums of more than 16 are made of parts


@pytest.mark.parametrize("n", SIZES)
def test_running_sum_in_place(n):
    """A sequential loop that carries a value and reads what it wrote; a vector loop over its lanes."""
    b = Builder()
    x, y, z = b.input("x", "f32", 9 * n), b.output("y", "f32", n), b.output("z", "f32", 9 * n)
    with b.carried_loop(n, [((b.const("f32", 0),), None)], "sequential") as r:
        total = b.let(r.var + b.load(x, r.i))
        b.store(y, r.i, total)
        r.update(total)
    with b.loop(n, "vector") as i, b.loop(9, "sequential") as k:
        before = b.select(b.gt(k, 0), b.load(z, k * n + i - n), 0.0)
        b.store(z, k * n + i, before + b.load(x, k * n + i))
    for got, want in both(b.function("f"), [sample("f32", 9 * n, edges=False)]):
        same(got, want)


@pytest.mark.parametrize("n", SIZES)
def test_updates_in_place_run_once(n):
    """y[i] = y[i] + 1 may not be repeated for some i, as the last vector of a loop otherwise is."""
    b = Builder()
    x, y = b.input("x", "i32", n), b.output("y", "i32", n)
    with b.loop(n, "vector") as i:
        b.store(y, i, b.load(x, i))
    with b.loop(n, "vector") as i:
        b.store(y, i, b.load(y, i) + 1)
    ((got, want),) = both(b.function("f"), [sample("i32", n)])
    same(got, want)


@pytest.mark.parametrize("n", SIZES)
def test_extents_known_only_at_run_time(n):
    b = Builder()
    count, x = b.input("count", "i64", 1), b.input("x", "f32", 1000)
    y, total, z = b.output("y", "f32", 1000), b.output("total", "f32", 1), b.output("z", "f32", 1000)
    with b.loop(b.load(count, 0), "vector") as i:
        b.store(y, i, b.load(x, i) * 2.0)
    with b.carried_loop(b.load(count, 0), [((b.const("f32", 0),), "add")], "vector") as r:
        r.update(r.var + b.load(x, r.i))
    b.store(total, 0, r.result)
    with b.loop(b.load(count, 0), "vector") as i:
        b.store(z, i, b.load(z, i) + b.load(x, i))
    function = b.function("f")
    (y1, y2), (t1, t2), (z1, z2) = both(function, [np.array([n]), sample("f32", 1000, edges=False)])
    same(y1, y2)
    same(z1, z2)
    assert np.allclose(t1, t2, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n", SIZES)
def test_branches_of_lanes(n):
    b = Builder()
    x, flag, y = b.input("x", "f32", n), b.input("flag", "bool", 1), b.output("y", "f32", n)
    with b.loop(n, "vector") as i:
        b.store(y, i, 7.0)
        with b.if_(b.gt(b.load(x, i), 0.0)) as positive:
            v = b.let(b.sqrt(b.load(x, i)))
            with b.if_(b.load(flag, 0)) as inner:
                b.store(y, i, v)
            with inner.otherwise():
                b.store(y, i, -v)
        with positive.otherwise(), b.if_(b.lt(b.load(x, i), -1.0)):
            b.store(y, i, b.load(x, n - 1 - i))
    function = b.function("f")
    for value in (False, True):
        ((got, want),) = both(function, [sample("f32", n), np.array([value])])
        same(got, want)


def test_while_with_state_in_buffers():
    b = Builder()
    x, y = b.input("x", "i64", 1), b.output("y", "i64", 2)
    state = b.temporary("state", "i64", 2)
    b.store(state, 0, b.load(x, 0))
    b.store(state, 1, 0)
    with b.while_() as w:
        w.test(b.ne(b.load(state, 0), 1))
        value = b.let(b.load(state, 0))
        with b.if_(b.eq(value % 2, 0)) as even:
            b.store(state, 0, value // 2)
        with even.otherwise():
            b.store(state, 0, value * 3 + 1)
        b.store(state, 1, b.load(state, 1) + 1)
    b.store(y, 0, b.load(state, 0))
    b.store(y, 1, b.load(state, 1))
    ((got, want),) = both(b.function("collatz"), [np.array([27])])
    same(got, want)
    assert got[1] == 111


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "u8", "i64", "c64"])
@pytest.mark.parametrize("combine", ["add", "mul", "max"])
def test_scans(combine, dtype, n):
    """Running values along rows, forwards and from the end; rows side by side in lanes."""
    if dtype == "c64" and combine == "max":
        return  # not associative in lanes: there is no neutral element
    b = Builder()
    x, outs = b.input("x", dtype, 3 * n), [b.output(f"y{k}", dtype, 3 * n) for k in range(3)]
    start = b.const(dtype, 1)
    with b.loop(3) as row:
        for reverse, out in ((False, outs[0]), (True, outs[1])):
            with b.carried_loop(n, [((start,), combine)], "scan") as scan:
                at = row * n + (b.sub(n - 1, scan.i) if reverse else scan.i)
                value = b.let(b.op(combine, scan.var, b.load(x, at)))
                b.store(out, at, value)
                scan.update(value)
    with b.loop(3, "vector") as column, b.carried_loop(n, [((start,), combine)], "scan") as scan:
        value = b.let(b.op(combine, scan.var, b.load(x, scan.i * 3 + column)))
        b.store(outs[2], scan.i * 3 + column, value)
        scan.update(value)
    values = sample(dtype, 3 * n, edges=False)
    if dtype in ("f32", "f64", "c64"):
        values = (1 + 1e-2 * np.cos(np.arange(3 * n))).astype(values.dtype)
    for got, want in both(b.function("f"), [values]):
        if dtype in ("f32", "f64", "c64"):
            np.testing.assert_allclose(got, want, rtol=1e-5)
        else:
            same(got, want)


def test_loops_that_lanes_cannot_scan():
    """Running values read beside their own combination: one iteration after the other."""
    b = Builder()
    x, y = b.input("x", "f32", 40), b.output("y", "f32", 40)
    with b.carried_loop(40, [((b.const("f32", 0),), "add")], "scan") as scan:
        value = b.let(scan.var + b.load(x, scan.i) * scan.var + 1.0)
        b.store(y, scan.i, value)
        scan.update(value)
    ((got, want),) = both(b.function("f"), [np.full(40, 0.5, np.float32)])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_local_buffers():
    """Each row works in scratch space of its own."""
    b = Builder()
    rows, n = 12, 37
    x, y, scratch = b.input("x", "f32", rows * n), b.output("y", "f32", rows * n), b.local("scratch", "f32", n)
    with b.loop(rows) as i:
        with b.loop(n, "vector") as j:
            b.store(scratch, j, b.load(x, i * n + j) * 2.0)
        with b.loop(n, "vector") as j:
            b.store(y, i * n + j, b.load(scratch, n - 1 - j))
    ((got, want),) = both(b.function("f"), [sample("f32", rows * n)])
    same(got, want)


def test_kernels_are_emitted_once():
    b = Builder()
    x = [b.buffer(f"x{k}", "f32", 100, "input" if k == 0 else "output") for k in range(6)]
    for k in range(5):
        with b.loop(100, "vector") as i:
            b.store(x[k + 1], i, b.load(x[k], i) * 2.0)
    with b.loop(100, "vector") as i:
        b.store(x[5], i, b.load(x[4], i) * 3.0)
    code = compile_function(outline(b.function("f")))
    assert code.llvm.count("define internal void @kernel") == 1 and code.llvm.count("call void @kernel") == 5
    out = [np.zeros(100, np.float32) for _ in range(5)]
    assert code([np.ones(100, np.float32)], out) == 0
    assert [x[50] for x in out] == [2, 4, 8, 16, 48]


def test_calls_of_c_functions():
    calls = []

    def scale(pointer, n, factor):
        calls.append((n, factor))
        array = (ctypes.c_float * n).from_address(pointer)
        for k in range(n):
            array[k] *= factor
        return n + 1

    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_float)
    pointer = kind(scale)
    b = Builder()
    x, y, status = b.input("x", "f32", 8), b.output("y", "f32", 8), b.output("status", "i32", 1)
    with b.loop(8) as i:
        b.store(y, i, b.load(x, i))
    result = b.call("test_scale", b.address(y, 2), b.index(4), b.const("f32", 3.0), result="i32")
    b.store(status, 0, result)
    function = b.function("f")
    data = np.arange(8, dtype=np.float32)
    got, got_status = compiled(function, [data], symbols={"test_scale": ctypes.cast(pointer, ctypes.c_void_p).value})
    assert calls == [(4, 3.0)] and got_status[0] == 5
    data[2:6] *= 3
    same(got, data)

    def by_numpy(target, n, factor):
        array, offset = target
        array[offset : offset + n] *= factor
        return n + 1

    want, want_status = interpret(function, [np.arange(8, dtype=np.float32)], calls={"test_scale": by_numpy})
    same(got, want)
    same(got_status, want_status)
    with pytest.raises(KeyError, match="test_scale"):
        compile_function(function)


def test_host_calls_and_their_failure():
    b = Builder()
    x, y = b.input("x", "f32", 4), b.output("y", "f32", 4)
    with b.loop(2, "sequential"):
        b.host_call(3, [x, y])
    with b.loop(4) as i:
        b.store(y, i, b.load(y, i) + 1.0)
    code = compile_function(b.function("f"))
    seen = []

    @HostCallback
    def host(index, buffers):
        seen.append(index)
        source = (ctypes.c_float * 4).from_address(buffers[0])
        target = (ctypes.c_float * 4).from_address(buffers[1])
        for k in range(4):
            target[k] = 10 * source[k]
        return 0 if len(seen) < 3 else 42

    code.set_host_call(ctypes.cast(host, ctypes.c_void_p).value)
    out = np.zeros(4, np.float32)
    assert code([np.arange(4, dtype=np.float32)], [out]) == 0
    assert seen == [3, 3] and out.tolist() == [1, 11, 21, 31]
    assert code([np.arange(4, dtype=np.float32)], [out]) == 42
    assert seen == [3, 3, 3]


def test_constants_small_and_large():
    b = Builder()
    small = b.constant("small", np.arange(5, dtype=np.int32))
    large = b.constant("large", np.arange(5000, dtype=np.float64))
    y, z = b.output("y", "i32", 5), b.output("z", "f64", 5000)
    with b.loop(5, "vector") as i:
        b.store(y, i, b.load(small, i))
    with b.loop(5000, "vector") as i:
        b.store(z, i, b.load(large, i) * 2.0)
    for got, want in both(b.function("f"), []):
        same(got, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [1000, 100_003, 1_000_003])
def test_long_sums_are_as_accurate_as_numpy(dtype, n):
    b = Builder()
    x, y = b.input("x", dtype, n), b.output("y", dtype, 1)
    with b.carried_loop(n, [((b.const(dtype, 0),), "add")], "vector") as r:
        r.update(r.var + b.load(x, r.i))
    b.store(y, 0, r.result)
    function = b.function("f")
    ours, numpys = [], []
    for seed in range(8):
        data = np.random.default_rng(seed).random(n).astype(np.float32 if dtype == "f32" else np.float64)
        exact = np.sum(data.astype(np.longdouble))
        ours.append(abs(float(compiled(function, [data])[0][0] - exact)))
        numpys.append(abs(float(np.sum(data) - exact)))
    assert np.mean(ours) <= 1.2 * np.mean(numpys) + 1e-9 * n * (dtype == "f64") * 1e-6


def test_sums_of_infinities():
    for values, wanted in (([np.inf, 1.0], np.inf), ([np.inf, -np.inf], np.nan), ([3e38, 3e38], np.inf)):
        data = np.zeros(5000, np.float32)
        data[[17, 4000]] = values
        b = Builder()
        x, y = b.input("x", "f32", 5000), b.output("y", "f32", 1)
        with b.carried_loop(5000, [((b.const("f32", 0),), "add")], "vector") as r:
            r.update(r.var + b.load(x, r.i))
        b.store(y, 0, r.result)
        got = compiled(b.function("f"), [data])[0][0]
        assert got == wanted or (np.isnan(got) and np.isnan(wanted))


@pytest.mark.parametrize("role", ["vector", "sequential"])
@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
def test_branches_that_are_seldom_taken(share, role):
    """Two selects on one condition whose first branches have a part in common; a third depends on the first."""
    n = 133
    b = Builder()
    x, y = b.input("x", "f32", n), b.output("y", "f32", n)
    rare = (("rare", True),)
    with b.loop(n, role) as i:
        v = b.load(x, i)
        c = b.gt(v, 100.0)
        common = b.sqrt(v) * v + b.load(x, n - 1 - i)
        first = b.op("select", c, common + 1.0, v * 2.0, attrs=rare)
        second = b.op("select", c, common * 3.0, first - 1.0, attrs=rare)
        third = b.op("select", c, first + second, v, attrs=rare)
        b.store(y, i, first + second * third)
    data = sample("f32", n, edges=False)
    data[np.random.default_rng(1).random(n) < share] = 1000.0
    function = b.function("f")
    assert "rare." in compile_function(function).llvm
    ((got, want),) = both(function, [data])
    assert np.allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("n", [0, 7, 8, 17, 33])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bool", "bf16", "c64", "c128"])
@pytest.mark.parametrize("kinds", [2, 3, 4, 5, 8])
def test_elements_that_take_turns(kinds, dtype, n):
    """Loads and stores `kinds` elements apart that together walk all of a buffer, in a mixed order."""
    b = Builder()
    x, out = b.input("x", dtype, kinds * n), b.output("out", dtype, kinds * n)
    swapped = b.temporary("swapped", dtype, kinds * n)
    with b.loop(n, "vector") as i:
        values = [b.let(b.load(x, i * kinds + k)) for k in range(kinds)]
        for k in reversed(range(kinds)):
            b.store(swapped, i * kinds + k, values[k - 1])
    with b.loop(n, "vector") as i:
        for k in range(kinds):
            b.store(out, i * kinds + k, b.load(swapped, i * kinds + kinds - 1 - k))
    ((got, want),) = both(b.function("f"), [sample(dtype, kinds * n)])
    same(got, want)


def test_elements_that_take_turns_in_place():
    """Stores whose values are read from where the others write are made one after the other."""
    b = Builder()
    x, out = b.input("x", "f32", 64), b.output("out", "f32", 64)
    with b.loop(64, "vector") as i:
        b.store(out, i, b.load(x, i))
    with b.loop(32, "vector") as i:
        b.store(out, i * 2, b.load(out, i * 2 + 1))
        b.store(out, i * 2 + 1, b.load(out, i * 2))
    values = sample("f32", 64, edges=False)
    (got,) = compiled(b.function("f"), [values])
    np.testing.assert_array_equal(got, np.repeat(values[1::2], 2))


def _hashed(b, x, rounds):
    for k in range(rounds):
        x = b.xor(b.add(x, b.shl(x, b.const("u32", 5))), b.const("u32", k))
    return x


@pytest.mark.parametrize("chains, rounds, wider", [(1, 30, True), (6, 30, False), (3, 10, True), (1, 5, False)])
def test_long_bodies_have_two_registers_a_value(chains, rounds, wider):
    """A body that fills a core's window leaves it waiting, unless it has many chains of ops side by side."""
    b = Builder()
    x = b.input("x", "u32", 64)
    outs = [b.output(f"y{k}", "u32", 64) for k in range(chains)]
    with b.loop(64, "vector") as i:
        for k, out in enumerate(outs):
            b.store(out, i, _hashed(b, b.load(x, i) + k, rounds))
    function = b.function("f")
    (loop,) = function.body
    assert depth(loop.body) >= 3 * rounds - 1
    target = host_target()
    assert lane_count(loop, target) == target.vector_bytes // 4 * (2 if wider else 1)
    for got, want in both(function, [sample("u32", 64)]):
        same(got, want)


@pytest.mark.parametrize(
    "times, turns, registers", [(1, 8, 1), (4, 2, 1), (2, 4, 1), (1, 9, 2), (2, 5, 2), (100, 2, 2)]
)
def test_what_is_over_at_once_has_one_register_a_value(times, turns, registers):
    """Two are longer code, which pays where it runs often."""
    lanes = host_target().vector_bytes // 4
    b = Builder()
    y = b.output("y", "u32", turns * lanes)
    with b.loop(times, "parallel") as k, b.loop(turns * lanes, "vector") as i:
        b.store(y, i, _hashed(b, b.convert(i + k, "u32"), 20))
    text = compile_function(b.function("f")).llvm
    assert set(re.findall(r"store <(\d+) x i32>", text)) == {str(registers * lanes)}


@pytest.mark.parametrize("chains, rounds, registers", [(1, 30, 4), (4, 10, 2), (8, 10, 1)])
def test_lanes_whose_steps_wait_are_taken_together(chains, rounds, registers):
    """Unless a step has much to do at a time."""
    lanes = host_target().vector_bytes // 4
    b = Builder()
    x, y = b.input("x", "u32", 4 * lanes), b.output("y", "u32", 4 * lanes)
    with b.loop(4 * lanes, "vector") as i:
        inits = [b.load(x, i) + k for k in range(chains)]
        with b.carried_loop(9, [((init,), None) for init in inits], "sequential") as step:
            step.update(*[_hashed(b, var, rounds) for var in step.vars])
        total = step.results[0]
        for result in step.results[1:]:
            total = b.xor(total, result)
        b.store(y, i, total)
    function = b.function("f")
    least = max(registers * lanes, 64 // 4)
    assert lane_count(function.body[0], host_target()) == least
    for got, want in both(function, [sample("u32", 4 * lanes)]):
        same(got, want)


@pytest.mark.parametrize("turns, registers", [(6, 2), (7, 4), (5, 2), (4, 4), (16, 4), (3, 2)])
def test_lanes_are_no_more_than_the_last_ones_leave_worth(turns, registers):
    """Six registers are three times two, and not twice four, of which two are done again; three are no three ones."""
    lanes = host_target().vector_bytes // 4
    b = Builder()
    x, y = b.input("x", "u32", turns * lanes), b.output("y", "u32", turns * lanes)
    with b.loop(turns * lanes, "vector") as i:
        with b.carried_loop(9, [((b.load(x, i),), None)], "sequential") as step:
            step.update(_hashed(b, step.var, 2))
        b.store(y, i, step.result)
    function = b.function("f")
    assert lane_count(function.body[0], host_target()) == registers * lanes
    for got, want in both(function, [sample("u32", turns * lanes)]):
        same(got, want)


@pytest.mark.parametrize("rare, registers", [(True, 8), (False, 4)])
def test_branches_that_are_seldom_taken_are_no_work_to_do_meanwhile(rare, registers):
    lanes = host_target().vector_bytes // 4
    b = Builder()
    x, y = b.input("x", "f32", 8 * lanes), b.output("y", "f32", 8 * lanes)
    with b.loop(8 * lanes, "vector") as i:
        with b.carried_loop(9, [((b.load(x, i),), None)], "sequential") as step:
            value, other = step.var, step.var
            for k in range(6):
                value = value * 0.5 + 1.0
                other = b.max(other * (0.25 + k), value - k) + other
            attrs = (RARE,) if rare else ()
            step.update(b.op("select", b.gt(step.var, 100.0), other, value, attrs=attrs))
        b.store(y, i, step.result)
    function = b.function("f")
    assert lane_count(function.body[0], host_target()) == registers * lanes


@pytest.mark.parametrize("terms, registers", [(1, 2), (9, 1)])
def test_three_registers_are_one_at_a_time_where_steps_have_enough_to_do(terms, registers):
    """Steps of a sum wait for each other by one addition alone."""
    lanes = host_target().vector_bytes // 4
    b = Builder()
    x, y = b.input("x", "f32", 3 * lanes * (5 + terms)), b.output("y", "f32", 3 * lanes)
    with b.loop(3 * lanes, "vector") as i:
        with b.carried_loop(5, [((b.const("f32", 0.0),), None)], "reduce") as step:
            value = step.var
            for k in range(terms):
                value = value + b.load(x, i + (step.i + k) * (3 * lanes))
            step.update(value)
        b.store(y, i, step.result)
    function = b.function("f")
    assert lane_count(function.body[0], host_target()) == registers * lanes


@pytest.mark.parametrize("dtype, registers", [("u32", 2), ("u16", 4), ("u8", 4)])
def test_long_bodies_have_at_most_four_registers_a_value(dtype, registers):
    """Computed in 32 bits, however short what is stored."""
    b = Builder()
    out = b.output("y", dtype, 300)
    with b.loop(300, "vector") as i:
        b.store(out, i, b.convert(_hashed(b, b.convert(i, "u32"), 20), dtype))
    function = b.function("f")
    target = host_target()
    assert lane_count(function.body[0], target) == target.vector_bytes // 4 * registers
    for got, want in both(function, []):
        same(got, want)


@pytest.mark.parametrize("registers, rest, wider", [(8, 0, True), (8, 2, True), (9, -2, False), (513, -2, True)])
def test_two_registers_a_value_leave_no_more_to_single_elements(registers, rest, wider):
    """A sum over a long body, whose last iterations are not done twice."""
    lanes = host_target().vector_bytes // 4
    extent = registers * lanes + rest % lanes
    b = Builder()
    x, out = b.input("x", "u32", extent), b.output("y", "u32", 1)
    with b.carried_loop(extent, [((b.const("u32", 0),), "add")], "vector") as r:
        r.update(b.add(r.var, _hashed(b, b.load(x, r.i), 20)))
    b.store(out, 0, r.result)
    function = b.function("f")
    assert lane_count(function.body[0], host_target()) == lanes * (2 if wider else 1)
    for got, want in both(function, [sample("u32", extent)]):
        same(got, want)


@pytest.mark.parametrize("lanes", [4, 16, 32])
def test_what_a_rare_branch_shares_with_the_rest(lanes):
    """A constant, or another value, that stands in a rare branch and outside of it is the same in both places."""
    n = 64
    b = Builder()
    x, y = b.input("x", "f64", n), b.output("y", "f64", n)
    rare = (("rare", True),)
    with b.loop(n, "vector", attrs=(("lanes", lanes),)) as i:
        v = b.load(x, i)
        high = b.gt(v, 100.0)
        shared, long = v * 3.0, b.convert(v, "i64")
        for k in range(24):  # enough that the branch is a loop over parts of the vector
            long = b.op("xor", long, b.op("mul", long, b.const("i64", 2 * k + 3)))
        first = b.op("select", high, b.convert(long, "f64"), v, attrs=rare)
        second = b.op("select", high, b.const("f64", 0.0), v * v, attrs=rare)
        third = b.op("select", high, shared, v + 1.0, attrs=rare)
        b.store(y, i, b.max(first, 0.0) + second * shared + third + b.fma(v, v, 0.0))
    data = sample("f64", n, edges=False)
    for some in (False, True):
        data[::5] = 1000.0 if some else 0.5
        for got, want in both(b.function("f"), [data]):
            same(got, want, ulp=8)
