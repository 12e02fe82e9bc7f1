"""Types of 8 bits and fewer in compiled programs, against ml_dtypes: all bit patterns out, dense tables in."""

import ml_dtypes
import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

FLOATS = [
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
    "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn",
]  # fmt: skip
INTEGERS = ["int4", "uint4", "int2", "uint2"]


def every(dtype):
    """All values of a type."""
    bits = 8 if "8" in dtype else int(dtype[dtype.index("t") + 1]) if "int" in dtype else 4
    return np.arange(2**bits, dtype=np.uint8).view(dtype)


def same_bits(found, expected):
    """Bits agree; of nan only that it is one."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    a, b = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.signbit(a)[a == a], np.signbit(b)[a == a])


def dense(dtype):
    """float32 around all values of the type and their middles, and of all magnitudes."""
    values = every(dtype).astype(np.float64)
    values = np.sort(values[np.isfinite(values)])
    middles = (values[1:] + values[:-1]) / 2
    rng = np.random.default_rng(0)
    x = np.concatenate([values, middles, rng.standard_normal(4000) * np.exp2(rng.uniform(-160, 128, 4000))])
    with np.errstate(all="ignore"):
        x = x.astype(np.float32)
        return np.concatenate(
            [x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf)),
             np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38])]
        )  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
def test_conversions_of_floats(dtype):
    x = every(dtype)
    half = np.arange(65536, dtype=np.uint16).view(np.float16)
    single = dense(dtype)
    whole = np.arange(-1000, 1000, dtype=np.int32) * 77

    @jax.jit
    def convert(x, half, brain, single, whole, double):
        out = [x.astype(t) for t in ("float32", "float16", "bfloat16", "complex64", "int32", "uint8", "bool")]
        given = half, brain, single, whole, lax.complex(single, single).real, single > 0
        return out, [v.astype(dtype) for v in given], double.astype(dtype)

    with jax.enable_x64(True), np.errstate(all="ignore"):
        # Near a middle a float64 must not be rounded twice.
        values = np.unique(x.astype(np.float64)[np.isfinite(x.astype(np.float64))])
        values = values[(values == 0) | (np.abs(values) > 2.0**-100)]
        middles = (values[1:] + values[:-1]) / 2
        double = np.concatenate([middles, middles * (1 + 2.0**-45), middles * (1 - 2.0**-45)])
        brain = half.view(ml_dtypes.bfloat16)
        out, into, rounded = convert(x, half, brain, single, whole, double)
        f = x.astype(np.float32)
        for found, t in zip(out, ("float32", "float16", "bfloat16")):
            same_bits(found, f.astype(t))
        np.testing.assert_array_equal(out[3], f.astype(np.complex64))
        exact = np.where(np.isnan(f), 0, np.clip(f.astype(np.float64), -(2**31), 2**31 - 1))
        np.testing.assert_array_equal(out[4], exact.astype(np.int32))
        np.testing.assert_array_equal(out[5], np.clip(exact, 0, 255).astype(np.uint8))
        np.testing.assert_array_equal(out[6], f != 0)
        for found, given in zip(into, (half, brain, single, whole, single, single > 0)):
            expected = given.astype(np.float32).astype(dtype)
            if dtype == "float4_e2m1fn":  # it has no nan: ours and XLA's is a zero
                same_bits(np.asarray(found).astype(np.float32) + 0, expected.astype(np.float32) + 0)
            else:
                same_bits(found, expected)
        low, high = values[:-1], values[1:]
        even = middles.astype(np.float32).astype(dtype).astype(np.float64)
        up = np.where(middles > 0, high, low)
        down = np.where(middles > 0, low, high)
        np.testing.assert_array_equal(np.asarray(rounded).astype(np.float64), np.concatenate([even, up, down]))


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_rounds_after_each_primitive(dtype):
    v = every(dtype)
    x, y = np.repeat(v, len(v)), np.tile(v, len(v))

    @jax.jit
    def f(x, y):
        return x + y, x - y, x * y, x / y, (x + y) * y, jnp.maximum(x, y), -x, abs(x), jnp.where(x < y, x, y), x == y

    with np.errstate(all="ignore"):
        a, b = x.astype(np.float32), y.astype(np.float32)

        def flushed(value):  # as programs do with denormal results; of these types only float8_e8m0fnu meets them
            return np.where(np.abs(value) < np.finfo(np.float32).smallest_normal, np.copysign(0, value), value)

        def once(value):
            return flushed(value).astype(dtype)

        sum_ = once(a + b)
        if dtype == "float4_e2m1fn":
            defined = np.isfinite(a / b)
        else:
            defined = np.ones(len(x), bool)
        found = f(x, y)
        expected = [
            sum_, once(a - b), once(a * b), once(a / b), once(sum_.astype(np.float32) * b),
            np.maximum(a, b).astype(dtype), (-a).astype(dtype), abs(a).astype(dtype), np.where(a < b, x, y), a == b,
        ]  # fmt: skip
        for one, other in zip(found, expected):
            same_bits(np.asarray(one)[defined], other[defined])


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_next_number(dtype):
    v = every(dtype)
    x, y = np.repeat(v, len(v)), np.tile(v, len(v))
    with np.errstate(all="ignore"):
        same_bits(jax.jit(jnp.nextafter)(x, y), np.nextafter(x, y))


@pytest.mark.parametrize("dtype", ["float8_e5m2", "int4"])
def test_callbacks_see_the_narrow_type(dtype):
    seen = []

    def host(a, b):
        seen.append((np.asarray(a).dtype, np.asarray(b).dtype))
        return np.asarray(a)[::-1]

    x = np.arange(5).astype(dtype)

    @jax.jit
    def f(x):
        jax.debug.callback(lambda v: seen.append(np.asarray(v).dtype), x)
        return jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, dtype), x + x, jnp.float32(1)), x

    reverse, same = f(x)
    jax.effects_barrier()
    same_bits(reverse, (x.astype(np.int32) * 2).astype(dtype)[::-1])
    same_bits(same, x)
    assert (np.dtype(dtype), np.dtype(np.float32)) in seen and np.dtype(dtype) in seen


@pytest.mark.parametrize("dtype", FLOATS)
def test_largest_elements(dtype):
    x = np.float32([1, 2, 0.5, 4, 2]).astype(dtype)
    for top_k in (lax.top_k, jax.jit(lax.top_k, static_argnums=1)):
        values, places = top_k(x, 3)
        same_bits(values, np.float32([4, 2, 2]).astype(dtype))
        np.testing.assert_array_equal(places, [3, 1, 4])


def test_samplers_draw_small_floats():
    key = jax.random.key(3)
    cut = jax.random.truncated_normal(key, -1.0, 1.0, (3,), dtype=jnp.float8_e5m2)
    np.testing.assert_array_equal(np.asarray(cut).astype(np.float32), [-0.5, 0.5, 0.5])  # as JAX
    normal = np.asarray(jax.random.normal(key, (3,), dtype=jnp.float8_e4m3fn))
    np.testing.assert_array_equal(normal.astype(np.float32), [-0.234375, 0.75, 0.75])
    with pytest.raises(TypeError, match="must have 8, 16, 32 or 64 bits"):
        jax.random.uniform(key, (3,), dtype=jnp.float4_e2m1fn)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2fnuz", "int4", "uint2"])
def test_movement_selection_and_loops(dtype):
    rng = np.random.default_rng(1)
    v = every(dtype)
    v = v[v == v]
    x = rng.choice(v, (5, 7))
    at = np.array([3, 0, 4])
    scalar = np.array(1).astype(dtype)

    @jax.jit
    def f(x, at):
        carry, stacked = lax.scan(lambda c, row: (c + row, c), x[0], x)
        return {
            "constant": jnp.asarray(v),
            "take": x[at],
            "transpose": x.T[::-1, 1:4],
            "set": x.at[at, 2].set(scalar),
            "concatenate": jnp.concatenate([x, x[:2]]),
            "pad": jnp.pad(x, 1, constant_values=1),
            "slice": lax.dynamic_slice(x, (at[0], 1), (2, 3)),
            "update": lax.dynamic_update_slice(x, x[:2, :2], (at[0], 1)),
            "where": jnp.where(x > 0, x, scalar),
            "sort": jnp.sort(x, axis=0),
            "argsort": jnp.argsort(x, axis=1, stable=True),
            "argmax": jnp.argmax(x, axis=1),
            "max": jnp.max(x, axis=0),
            "carry": carry,
            "stacked": stacked,
            "cond": lax.cond(at[0] > 2, lambda x: x + x, lambda x: x, x),
            "vmap": jax.vmap(lambda r, k: r[k])(x[:3], at),
            "zeros": jnp.zeros((2,), dtype),
            "full": jnp.full((2,), 1, dtype),
        }

    found = f(x, at)
    w = x.astype(np.float32)
    carries = [x[0]]
    for row in x:
        wide = carries[-1].astype(np.float32) + row.astype(np.float32)
        carries.append((wide.astype(np.int32) if "int" in dtype else wide).astype(dtype))
    updated, placed = x.copy(), x.copy()
    updated[at, 2] = scalar
    placed[3:5, 1:3] = x[:2, :2]
    twice = 2 * w
    expected = {
        "constant": v,
        "take": x[at],
        "transpose": x.T[::-1, 1:4],
        "set": updated,
        "concatenate": np.concatenate([x, x[:2]]),
        "pad": np.pad(w, 1, constant_values=1).astype(dtype),
        "slice": x[3:5, 1:4],
        "update": placed,
        "where": np.where(w > 0, x, scalar),
        "sort": np.sort(w, axis=0).astype(dtype),
        "argsort": np.argsort(w, axis=1, kind="stable").astype(np.int32),
        "argmax": np.argmax(w, axis=1).astype(np.int32),
        "max": np.max(w, axis=0).astype(dtype),
        "carry": carries[-1],
        "stacked": np.stack(carries[:-1]),
        "cond": (twice.astype(np.int32) if "int" in dtype else twice).astype(dtype),
        "vmap": x[:3][np.arange(3), at],
        "zeros": np.zeros(2, dtype),
        "full": np.ones(2, dtype),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        same_bits(found[name], value)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap_around_and_conversions_saturate(dtype):
    v = every(dtype)
    x, y = np.repeat(v, len(v)), np.tile(v, len(v))
    signed = dtype[0] == "i"
    bits = int(dtype[-1])
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    real = np.float32([-300, -9.5, -8.5, -1.5, -0.5, 0.5, 3.5, 7.9, 8.1, 15.5, 300, np.nan, np.inf, -np.inf])
    whole = np.arange(-300, 300, dtype=np.int32)

    @jax.jit
    def f(x, y, real, whole):
        return {
            "real": real.astype(dtype),
            "whole": whole.astype(dtype),
            "out": x.astype("int32"),
            "float": x.astype("float32"),
            "add": x + y,
            "sub": x - y,
            "mul": x * y,
            "xor": x ^ y,
            "not": ~x,
            "less": x < y,
            "left": lax.shift_left(x, y),
            "logical": lax.shift_right_logical(x, y),
            "arithmetic": lax.shift_right_arithmetic(x, y),
            "div": lax.div(x, y),
            "clz": lax.clz(x),
            "count": lax.population_count(x),
            "cumsum": jnp.cumsum(x),
            "outside": x.at[np.array([10**6])].get(mode="fill"),
            "least": lax.reduce(x[:0], np.array(low).astype(dtype), lax.max, (0,)),
        }

    found = {name: np.asarray(value) for name, value in f(x, y, real, whole).items()}
    a, b = x.astype(np.int32), y.astype(np.int32)
    amount, mask = b & (2**bits - 1), 2**bits - 1
    top = np.where(a & 2 ** (bits - 1), (a & mask) - 2**bits, a & mask)
    expected = {
        "real": np.where(np.isnan(real), 0, np.trunc(np.clip(real, low, high))).astype(np.int32),
        "whole": whole,
        "add": a + b,
        "sub": a - b,
        "mul": a * b,
        "xor": a ^ b,
        "not": ~a,
        "left": np.where(amount < bits, a << amount, 0),
        "logical": np.where(amount < bits, (a & mask) >> amount, 0),
        "arithmetic": top >> np.minimum(amount, bits - 1),
        "div": np.where(b == 0, -1, np.trunc(a / np.where(b == 0, 1, b)).astype(np.int32)),
        "clz": bits - np.ceil(np.log2((a & mask) + 1)).astype(np.int32),
        "count": np.bitwise_count((a & mask).astype(np.uint8)).astype(np.int32),
        "cumsum": np.cumsum(a),
        "outside": [low if signed else high],
        "least": np.array(low),
    }
    np.testing.assert_array_equal(found["out"], a)
    np.testing.assert_array_equal(found["float"], a.astype(np.float32))
    np.testing.assert_array_equal(found["less"], a < b)
    for name, value in expected.items():
        assert found[name].dtype == dtype, name
        np.testing.assert_array_equal(found[name].astype(np.int32) & mask, np.asarray(value) & mask, err_msg=name)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_products_reductions_and_derivatives(dtype):
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, (4, 6)).astype(dtype)
    y = rng.uniform(-2, 2, (6, 3)).astype(dtype)
    a, b = x.astype(np.float32), y.astype(np.float32)
    numbers = (((1,), (0,)), ((), ()))

    @jax.jit
    def f(x, y, wide):
        def through(w):
            return (w.astype(dtype).astype(jnp.float32) ** 2).sum()

        def product(x, y):
            return lax.dot_general(x, y, numbers, preferred_element_type=jnp.float32).sum()

        return {
            "wide": lax.dot_general(x, y, numbers, preferred_element_type=jnp.float32),
            "bfloat16": lax.dot_general(x, y, numbers, preferred_element_type=jnp.bfloat16),
            "narrow": x @ y,
            "sum": x.sum(1),
            "through": jax.grad(through)(wide),
            "product": jax.grad(product, (0, 1))(x, y),
            "square": jax.grad(lambda x: (x * x).astype(jnp.float32).sum())(x),
            "vmap": jax.vmap(lambda r: (r.astype(jnp.float32) * 3).astype(dtype))(x),
            "most": jnp.max(x, axis=1),
            "empty": lax.reduce(x[:0], np.array(ml_dtypes.finfo(dtype).min), lax.max, (0,)),
            "fill": x.at[np.array([0, 9])].get(mode="fill"),
            "bits": lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.uint8), dtype),
        }

    found = f(x, y, a)
    same_bits(found["wide"], a @ b)
    same_bits(found["bfloat16"], (a @ b).astype(ml_dtypes.bfloat16))
    same_bits(found["narrow"], (a @ b).astype(np.float16).astype(dtype))
    same_bits(found["sum"], a.sum(1).astype(np.float16).astype(dtype))
    same_bits(found["through"], (2 * a).astype(dtype).astype(np.float32))
    ones = np.ones((4, 3), np.float32)
    for one, other in zip(found["product"], (ones @ b.T, a.T @ ones)):
        same_bits(one, other.astype(dtype))
    same_bits(found["square"], (2 * a).astype(dtype))
    same_bits(found["vmap"], (3 * a).astype(dtype))
    same_bits(found["most"], a.max(1).astype(dtype))
    same_bits(found["empty"], np.full(6, ml_dtypes.finfo(dtype).min))
    filled = np.asarray(found["fill"]).astype(np.float32)
    np.testing.assert_array_equal(filled[0], a[0])
    assert np.isnan(filled[1]).all()
    same_bits(found["bits"], x)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_eager_work_knows_the_width(dtype):
    """Bits regrouped, shifted and counted, values converted and ordered: eager, compiled, and as of wider types."""
    x = every(dtype)
    width = 4 if dtype == "float4_e2m1fn" else 8 if dtype in FLOATS else int(dtype[-1])
    count = 16 // width  # elements of 16 bits
    packed = x[: len(x) // count * count].reshape(-1, count)
    words = (packed.view(np.uint8).astype(np.uint16) << np.arange(0, 16, width, np.uint16)).sum(-1, dtype=np.uint16)
    one = np.ones_like(x)

    def bits(x, packed):
        word = lax.bitcast_convert_type(packed, jnp.uint16)
        pair = lax.bitcast_convert_type(word, jnp.uint8)
        yield from (word, pair, lax.bitcast_convert_type(word, dtype), packed.view("uint16"), word.view(dtype))
        yield jax.vmap(lambda word: lax.bitcast_convert_type(word, dtype), out_axes=1)(word)

    def numbers(x, wide):
        yield from [x.astype(other) for other in ("int4", "uint2", "float8_e5m2", "float8_e8m0fnu")]
        yield from (jnp.sort(x), jnp.argsort(jnp.tile(x, 700)), lax.sort((x[::-1], wide))[1])
        if dtype in INTEGERS:
            yield from (x << one, lax.shift_right_arithmetic(x, one), lax.shift_right_logical(x, one), lax.clz(x))
        else:
            yield from (lax.reduce_precision(x, 3, 1), jnp.signbit(x))

    wide = x.astype(np.float32)
    for function, args in ((bits, (x, packed)), (numbers, (x, wide))):
        found = list(function(*map(jnp.asarray, args)))
        for eager, compiled in zip(found, jax.jit(lambda *a, f=function: list(f(*a)))(*args)):
            same_bits(compiled, eager)
        if function is bits:
            np.testing.assert_array_equal(found[0], words)
            same_bits(found[2], packed)
            same_bits(found[5], packed.T)
            assert found[1].shape == (len(words), 2) and found[3].shape == (len(words), 1)
        else:
            np.testing.assert_array_equal(found[4].astype(np.float32), np.sort(wide))
            np.testing.assert_array_equal(found[5], np.argsort(np.tile(wide, 700), kind="stable"))
    if dtype in INTEGERS:
        info, step = jnp.iinfo(dtype), 8 - width
        signed = (x.view(np.int8) << step).view(np.int8) >> step
        np.testing.assert_array_equal(
            np.asarray(found[8]).view(np.uint8), (signed >> 1).view(np.uint8) & (2**width - 1)
        )
        assert info.bits == width and int(np.asarray(found[10])[0]) in (width, width - 2**width)
    with pytest.raises(ValueError, match=f"only {width} bits each"):
        lax.bitcast_convert_type(jnp.zeros(17, dtype), jnp.uint16)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_and_remainders_by_zero_are_those_of_wider_integers(dtype):
    values = every(dtype).astype(np.int8)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    bits, signed = int(dtype[-1]), dtype[0] == "i"
    truncated = np.where(y == 0, -1, np.trunc(x / np.where(y == 0, 1, y)).astype(int))
    remainder = np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))
    wrapped = truncated % 2**bits
    quotient = wrapped - 2**bits * (wrapped >= 2 ** (bits - 1)) if signed else wrapped
    for way in (lambda f: f, jax.jit):
        operands = x.astype(dtype), y.astype(dtype)
        np.testing.assert_array_equal(np.asarray(way(lax.div)(*operands)).astype(int), quotient)
        np.testing.assert_array_equal(np.asarray(way(lax.rem)(*operands)).astype(int), remainder)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int32])
def test_select_n_takes_numbers_of_cases_in_any_integer_type(dtype):
    which, cases = np.array([0, 2, 1], dtype), [np.full(3, float(i), np.float32) for i in range(3)]
    np.testing.assert_array_equal(jax.lax.select_n(which, *cases), [0, 2, 1])
    np.testing.assert_array_equal(jax.jit(jax.lax.select_n)(which, *cases), [0, 2, 1])


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn", "int4"])
def test_loops_over_narrow_values_become_batches(dtype):
    x = np.arange(4.0).reshape(2, 2).astype(dtype)
    same_bits(lax.map(lambda v: v + v, x, batch_size=2), x + x)
    same_bits(lax.scan(lambda c, v: (c, jax.vmap(lambda a: a + a)(v)), 0, x)[1], x + x)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_loops_of_neighbours_become_batches(dtype):
    x = np.arange(4.0).reshape(2, 2).astype(dtype)
    same_bits(lax.map(lambda v: jnp.nextafter(v, v + v), x), np.nextafter(x, x + x))
