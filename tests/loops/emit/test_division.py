"""Lanes of integers divided by one number, which is done by its reciprocal."""

import numpy as np
import pytest

import pullback
from pullback.compiler.lower.arena import plan_arena
from pullback.compiler.pipelines import optimize_loops
from pullback.loops.emit.jit import compile_function
from pullback.loops.ir import NP_DTYPE, Builder

N = 4096


def compiled(dtype):
    b = Builder()
    x, y = b.input("x", dtype, N), b.input("y", dtype, 1)
    quotient, rest = b.output("q", dtype, N), b.output("r", dtype, N)
    divisor = b.let(b.load(y, 0))
    with b.loop(N) as i:
        value = b.let(b.load(x, i))
        b.store(quotient, i, b.op("div", value, divisor))
        b.store(rest, i, b.op("rem", value, divisor))
    function = b.function("divide")
    function = optimize_loops(function)
    return compile_function(function, plan_arena(function)[0], verify=True)


def expected(x, y, dtype):
    if y == 0:
        return np.full(N, -1).astype(dtype), x
    wide = x.astype(object)
    quotient = [abs(v) // abs(y) * (1 if (v < 0) == (y < 0) else -1) for v in wide]
    wrapped = [q & ((1 << (8 * x.itemsize)) - 1) for q in quotient]
    unsigned = np.dtype(f"u{x.itemsize}")
    return np.array(wrapped, unsigned).view(dtype), np.array([v - q * y for v, q in zip(wide, quotient)]).astype(dtype)


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "u8", "u16", "u32"])
def test_by_one_number(name):
    dtype = np.dtype(NP_DTYPE[name])
    run, info, rng = compiled(name), np.iinfo(dtype), np.random.default_rng(0)
    special = [0, 1, 2, 3, 7, 10, info.max // 2 + 1, info.max - 1, info.max, info.min, info.min + 1]
    negative = [-1, -2, -7] if info.min else []
    for y in [*special, *negative, *rng.integers(info.min, info.max, 20), *rng.integers(1, 100, 10)]:
        x = rng.integers(info.min, info.max, N, endpoint=True).astype(dtype)
        x[: len(special)] = special
        if y:  # whole quotients, and one below and above
            whole = x[1000:2000].astype(np.int64) // int(y) * int(y)
            x[1000:2000] = np.clip(whole + rng.integers(-1, 2, 1000), info.min, info.max)
        results = [np.zeros(N, dtype), np.zeros(N, dtype)]
        assert run([x, np.array([y], dtype)], results) == 0
        for got, want in zip(results, expected(x, int(y), dtype)):
            assert np.array_equal(got, want), (y, x[got != want][:5], got[got != want][:5], want[got != want][:5])


@pytest.mark.parametrize("name", ["i8", "i16", "i32"])
def test_floors_by_known_numbers_are_one_unsigned_division(name):
    dtype = np.dtype(NP_DTYPE[name])
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, 300).astype(dtype)
    x[:6] = info.min, info.min + 1, info.max, -1, 0, 1
    for divisor in (dtype.type(n) for n in (3, 7, 10, 127, 641, 32767, 2**31 - 1) if n <= info.max):
        both = pullback.jit(lambda x, divisor=divisor: (x // divisor, x % divisor))
        text = both.lower(x).as_text("llvm")
        assert "udiv" in text and "sdiv" not in text and "srem" not in text
        quotient, rest = both(x)
        np.testing.assert_array_equal(quotient, x // divisor)
        np.testing.assert_array_equal(rest, x % divisor)


@pytest.mark.parametrize("first", [0, (1 << 31) - N * 3, (1 << 31) - 3, (1 << 31) + 5, 1 << 40])
@pytest.mark.parametrize("by", [3, 7, 19_402, (1 << 31) - 1, (1 << 31) + 1])
def test_counters_are_divided_as_numbers_of_32_bits_where_they_are(first, by):
    b = Builder()
    quotient, rest = b.output("q", "i64", N), b.output("r", "i64", N)
    with b.loop(N) as i:
        b.store(quotient, i, b.op("floordiv", i * 3 + first, b.const("i64", by)))
        b.store(rest, i, b.op("floormod", i * 3 + first, b.const("i64", by)))
    function = optimize_loops(b.function("divide"))
    found = [np.zeros(N, np.int64), np.zeros(N, np.int64)]
    assert compile_function(function, plan_arena(function)[0], verify=True)([], found) == 0
    values = np.arange(N) * 3 + first
    np.testing.assert_array_equal(found[0], values // by)
    np.testing.assert_array_equal(found[1], values % by)
