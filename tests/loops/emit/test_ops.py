"""Every op of the table, on every type it accepts, vector and scalar, against the interpreter."""

import itertools

import numpy as np
import pytest
from cpu_levels import cpus

from pullback.loops.emit.cpu.target import host_target
from pullback.loops.ir import OPS, Builder
from pullback.loops.ir.ops import result_dtype
from pullback.loops.ir.types import BITS, DTYPES, NP_DTYPE, REAL_OF, is_int
from pullback.util.switches import switches

from .kit import both, compiled, same, sample

N = 141  # whole vectors and a rest for every number of lanes

ULP = {"mul": 4, "square": 4}  # of complex numbers, whose sums of products are contracted
EXPANDED = ("sqrt", "abs", "sign", "div")  # for complex numbers: expand_math leaves none of them
CASES = [
    (name, dtype)
    for name, info in OPS.items()
    if not info.math
    and name not in ("convert", "bitcast", "lookup", "nearest", "scale", "dot_pairs", "select", "floordiv", "floormod")
    for dtype in info.accepts
    if not (dtype in REAL_OF and (name.endswith("_total") or name in EXPANDED))
]


def elementwise(role, in_dtypes, out_dtype, value):
    b = Builder()
    xs = [b.input(f"x{k}", dtype, N) for k, dtype in enumerate(in_dtypes)]
    y = b.output("y", out_dtype, N)
    with b.loop(N, role) as i:
        b.store(y, i, value(b, *(b.load(x, i) for x in xs)))
    return b.function("op")


@pytest.mark.parametrize("role", ["vector", "sequential"])
@pytest.mark.parametrize("name, dtype", CASES)
def test_op(name, dtype, role):
    info = OPS[name]
    dtypes = (dtype,) * info.arity
    function = elementwise(role, dtypes, result_dtype(name, dtypes), lambda b, *xs: b.op(name, *xs))
    inputs = [sample(dtype, N, seed=k) for k in range(info.arity)]
    if info.arity == 2 and name.startswith(("eq", "ne", "lt", "le", "gt", "ge", "nextafter")):
        inputs[1][::3] = inputs[0][::3]
    ((got, want),) = both(function, inputs)
    ulp = ULP.get(name, 0) if dtype in REAL_OF else 0
    if name in ("min", "max") and dtype[0] in "fb" and dtype != "bool":
        got, want = got + np.zeros_like(got), want + np.zeros_like(want)  # the sign of a zero is either's
    same(got, want, ulp)


@pytest.mark.parametrize("dtype", ["i8", "i32", "i64", "u8", "u32", "u64"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 10, 100])
def test_index_division_by_a_constant(dtype, divisor):
    for name in ("floordiv", "floormod", "div", "rem"):
        function = elementwise("vector", (dtype,), dtype, lambda b, x, name=name: b.op(name, x, divisor))
        ((got, want),) = both(function, [sample(dtype, N)])
        same(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_select(dtype):
    function = elementwise("vector", ("bool", dtype, dtype), dtype, lambda b, c, x, y: b.select(c, x, y))
    ((got, want),) = both(function, [sample("bool", N), sample(dtype, N, 1), sample(dtype, N, 2)])
    same(got, want)


@pytest.mark.parametrize("cpu", cpus())
@pytest.mark.parametrize("index, dtype", [("i32", "f32"), ("i64", "f64"), ("i32", "f64"), ("i64", "f32")])
def test_lookup(index, dtype, cpu):
    """With one instruction for a register of lanes or lane by lane; of an index, the lowest bits count."""
    numbers = np.random.default_rng(0).normal(size=16).astype(NP_DTYPE[dtype]).tolist()
    inputs = [np.concatenate([sample(index, N - 32), np.arange(-16, 16)]).astype(NP_DTYPE[index])]
    for lanes, entries in itertools.product((1, 2, 4, 8, 16, 32), (8, 16)):
        table = tuple(numbers[:entries])
        b = Builder()
        x, y = b.input("x", index, N), b.output("y", dtype, N)
        with b.loop(N, "vector" if lanes > 1 else "sequential", attrs=(("lanes", lanes),)) as i:
            b.store(y, i, b.op("lookup", b.load(x, i), dtype=dtype, attrs=(("table", table),)))
        with switches.set(cpu=cpu):
            ((got, want),) = both(b.function("op"), inputs)
        same(got, want)


@pytest.mark.parametrize("cpu", cpus())
def test_nearest(cpu):
    halves = np.arange(-9.5, 10, 0.5)
    inputs = [np.concatenate([halves, [2.0**31 - 128, -(2.0**31)], sample("f32", N)])[:N].astype(np.float32)]
    inputs[0][~(np.abs(inputs[0]) < 2.0**31)] = 0.25
    for lanes in (1, 4, 8, 32):
        b = Builder()
        x, y = b.input("x", "f32", N), b.output("y", "i32", N)
        with b.loop(N, "vector" if lanes > 1 else "sequential", attrs=(("lanes", lanes),)) as i:
            b.store(y, i, b.op("nearest", b.load(x, i), dtype="i32"))
        with switches.set(cpu=cpu):
            ((got, want),) = both(b.function("op"), inputs)
        same(got, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_scale(dtype):
    """Rounded once where denormal, zero or infinite where too small or large; only code for AVX-512 has it."""
    b = Builder()
    x, y, z = b.input("x", dtype, N), b.input("y", dtype, N), b.output("z", dtype, N)
    with b.loop(N) as i:
        b.store(z, i, b.scale(b.load(x, i), b.load(y, i)))
    far = 180 if dtype == "f32" else 1200
    inputs = [sample(dtype, N, 1), np.random.default_rng(0).integers(-far, far, N).astype(NP_DTYPE[dtype])]
    if host_target().looks_up < 16:
        with pytest.raises(NotImplementedError, match="AVX-512"):
            both(b.function("op"), inputs)
        return
    with np.errstate(all="ignore"):
        ((got, want),) = both(b.function("op"), inputs)
    same(got, want)


@pytest.mark.parametrize("role", ["vector", "sequential"])
def test_dot_pairs(role):
    """Two products, each rounded once with the sum before; only code for AVX512-BF16 has it."""
    function = elementwise(role, ("f32",) * 3, "f32", lambda b, *xs: b.op("dot_pairs", *xs))
    pairs = [sample("f32", N, seed=k) for k in range(3)]
    if not host_target().dots_pairs:
        with pytest.raises(NotImplementedError, match="AVX512-BF16"):
            both(function, pairs)
        return
    with np.errstate(all="ignore"):
        ((got, want),) = both(function, pairs)
    same(got, want)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_convert(source, target):
    function = elementwise("vector", (source,), target, lambda b, x: b.convert(x, target))
    ((got, want),) = both(function, [sample(source, N)])
    same(got, want)


@pytest.mark.parametrize("role", ["vector", "sequential"])
@pytest.mark.parametrize("target", [d for d in DTYPES if is_int(d)])
@pytest.mark.parametrize("source", ["f16", "f32", "f64"])
def test_convert_at_the_limits_of_integers(source, target, role):
    """Around the least and greatest number of every integer type, their neighbours, infinities and NaN."""
    info = np.iinfo(NP_DTYPE[target])
    dtype = NP_DTYPE[source]
    with np.errstate(over="ignore"):
        edges = np.array([0.0, -0.0, info.min, info.max, info.max + 1.0, 0.5, -0.5, 1.0, -1.0, 1e300, -1e300]).astype(
            dtype
        )
        below, above = (np.nextafter(edges, dtype.type(limit)) for limit in (-np.inf, np.inf))
        halves = [edges + dtype.type(step) for step in (-1, -0.5, 0.5, 1)]
    x = np.concatenate([edges, below, above, *halves, np.array([np.inf, -np.inf, np.nan], dtype)])
    x = np.resize(x, N)
    ((got, want),) = both(elementwise(role, (source,), target, lambda b, x: b.convert(x, target)), [x])
    same(got, want)
    exact = [
        0 if np.isnan(v) else info.max if v > info.max else info.min if v < info.min else int(v) for v in map(float, x)
    ]
    np.testing.assert_array_equal(got, np.array(exact, NP_DTYPE[target]))


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_bitcast(source, target):
    if BITS[source] != BITS[target] or source in REAL_OF or target in REAL_OF:
        return
    function = elementwise("vector", (source,), target, lambda b, x: b.bitcast(x, target))
    ((got, want),) = both(function, [sample(source, N, edges=source not in ("f16", "bf16"))])
    same(got, want)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_nans_and_zeros_of_extremes_are_the_same_bits_on_every_cpu(name, dtype):
    kind = NP_DTYPE[dtype]
    bits = np.uint32 if dtype == "f32" else np.uint64
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, np.nan], kind)
    values.view(bits)[-1] += 5  # a NaN with a payload
    x, y = (np.resize(v.ravel(), N) for v in np.meshgrid(values, values))
    x_first = np.isnan(x) | (~np.isnan(y) & ((x < y) if name == "min" else (x > y)))
    function = elementwise("vector", (dtype, dtype), dtype, lambda b, p, q: b.op(name, p, q))
    for cpu in cpus():
        with switches.set(cpu=cpu):
            (got,) = compiled(function, [x, y])
        np.testing.assert_array_equal(got.view(bits), np.where(x_first, x, y).view(bits), cpu)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("lanes", [3, 5, 10, 24, 40])
def test_extremes_and_exponents_in_any_number_of_lanes(lanes, dtype):
    """Of as many lanes as an array is long, registers are filled up."""
    b = Builder()
    x, y, z = b.input("x", dtype, lanes), b.input("y", dtype, lanes), b.output("z", dtype, lanes)
    with b.loop(lanes, "vector", attrs=(("lanes", lanes),)) as i:
        most = b.op("max", b.load(x, i), b.load(y, i))
        b.store(z, i, b.op("scale", most, b.const(dtype, 2.0)) if host_target().looks_up == 16 else most)
    function = b.function("f")
    first, second = sample(dtype, lanes), sample(dtype, lanes, 1)
    (got,) = compiled(function, [first, second])
    with np.errstate(all="ignore"):
        want = np.where(np.isnan(first) | ~(np.isnan(second) | (first <= second)), first, second)
        same(got, want * 4 if host_target().looks_up == 16 else want)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("name", ["min", "max"])
def test_extremes_with_a_zero_are_those_with_an_array_of_zeros(name, dtype, zero):
    kind = NP_DTYPE[dtype]
    x = np.resize(np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan], kind), N)
    zeros = np.full(N, zero, kind)
    arrays = elementwise("vector", (dtype, dtype), dtype, lambda b, p, q: b.op(name, p, q))
    first = elementwise("vector", (dtype,), dtype, lambda b, p: b.op(name, b.const(dtype, zero), p))
    second = elementwise("vector", (dtype,), dtype, lambda b, p: b.op(name, p, b.const(dtype, zero)))
    for cpu in cpus():
        with switches.set(cpu=cpu):
            for number, operands in (first, [zeros, x]), (second, [x, zeros]):
                (got,), (want,) = compiled(number, [x]), compiled(arrays, operands)
                np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8), cpu)
