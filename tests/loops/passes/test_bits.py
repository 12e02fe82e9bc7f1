"""Bits that are moved one by one are moved together, and results stay the same."""

import functools

import numpy as np
import pytest

import pullback as jax
from pullback.loops.ir import Builder
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.print import to_text
from pullback.loops.ir.types import BITS, NP_DTYPE
from pullback.loops.passes.bits import bits

INTS = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"]


def numbers(dtype):
    info = np.iinfo(NP_DTYPE[dtype])
    some = np.random.default_rng(0).integers(info.min, info.max, 40, NP_DTYPE[dtype], endpoint=True)
    return np.concatenate([some, np.asarray([0, 1, info.min, info.max], NP_DTYPE[dtype])])


class Number:
    """An integer expression with Python's operators."""

    def __init__(self, b, expr):
        self.b, self.expr = b, expr

    def op(self, name, other):
        value = other.expr if isinstance(other, Number) else self.b.const(self.expr.dtype, other)
        return Number(self.b, self.b.op(name, self.expr, value))

    __rshift__ = functools.partialmethod(op, "shr_logical")
    __lshift__ = functools.partialmethod(op, "shl")
    __and__ = functools.partialmethod(op, "and")
    __or__ = functools.partialmethod(op, "or")
    __xor__ = functools.partialmethod(op, "xor")
    __add__ = functools.partialmethod(op, "add")
    __mul__ = functools.partialmethod(op, "mul")

    def signed_shift(self, k):
        return self.op("shr_arithmetic", k)

    def as_type(self, dtype):
        return Number(self.b, self.b.op("convert", self.expr, dtype=dtype))

    def named(self):
        return Number(self.b, self.b.let(self.expr))


def compiled(dtype, made, result=None):
    """A function that stores `made` of each element, before and after the pass, which change no bit; the text after."""
    x, b = numbers(dtype), Builder()
    source, target = b.input("x", dtype, x.size), b.output("y", result or dtype, x.size)
    with b.loop(x.size) as i:
        b.store(target, i, made(Number(b, b.let(b.load(source, i)))).expr)
    before = b.function("f")
    after = bits(before)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(interpret(after, [x])[0], interpret(before, [x])[0])
    return to_text(after)


def total(parts, name="or"):
    return functools.reduce(lambda x, y: x.op(name, y), parts)


def masks(n, k):
    return sum(1 << i for i in range(n) if not i & k)


@pytest.mark.parametrize("name", ["or", "xor", "add"])
@pytest.mark.parametrize("dtype", INTS)
def test_reversed_one_by_one(dtype, name):
    n = BITS[dtype]
    text = compiled(dtype, lambda x: total([((x >> i) & 1) << (n - 1 - i) for i in range(n)], name))
    assert "bitreverse" in text and "shl" not in text
    text = compiled(dtype, lambda x: total([(x.signed_shift(i) & 1) * (1 << (n - 1 - i)) for i in range(n)], name))
    assert "bitreverse" in text and "mul" not in text


@pytest.mark.parametrize("dtype", INTS)
def test_reversed_by_masks(dtype):
    """Each step is a variable that only the next one reads."""

    def made(x):
        k = 1
        while k < BITS[dtype]:
            mask = masks(BITS[dtype], k)
            x, k = (((x >> k) & mask) | ((x & mask) << k)).named(), 2 * k
        return x

    text = compiled(dtype, made)
    assert "bitreverse" in text and "and" not in text


@pytest.mark.parametrize("dtype", [dtype for dtype in INTS if BITS[dtype] > 16])
def test_bytes_swapped(dtype):
    n = BITS[dtype] // 8
    text = compiled(dtype, lambda x: total([((x >> 8 * i) & 255) << 8 * (n - 1 - i) for i in range(n)]))
    assert "bswap" in text and "shl" not in text


@pytest.mark.parametrize("dtype", INTS)
def test_one_distance(dtype):
    text = compiled(dtype, lambda x: total([((x >> i) & 1) << (i + 2) for i in range(4)]))
    assert text.count("shl") == text.count("and") == 1 and "or(" not in text


@pytest.mark.parametrize("dtype", ["u32", "i64"])
def test_spread_and_gathered(dtype):
    """In a few steps, in which bits do not meet."""
    half = BITS[dtype] // 2
    for made in (
        lambda x: total([((x >> i) & 1) << 2 * i for i in range(half)]),
        lambda x: total([((x >> 2 * i) & 1) << i for i in range(half)]),
    ):
        assert compiled(dtype, made).count("or(") == half.bit_length() - 1


def test_two_values():
    """Interleaved: each moves by itself."""

    def made(x):
        y = (x * 3).named()
        return total([part for i in range(16) for part in (((x >> i) & 1) << 2 * i, ((y >> i) & 1) << (2 * i + 1))])

    assert compiled("u32", made).count("or(") < 12


@pytest.mark.parametrize("dtype", INTS)
def test_counted(dtype):
    n = BITS[dtype]
    text = compiled(dtype, lambda x: total([(x >> i) & 1 for i in range(n)], "add"))
    assert "popcount" in text and "add" not in text
    text = compiled(dtype, lambda x: total([((x >> i) & 1).as_type("i32") for i in range(n)], "add"), "i32")
    assert "popcount" in text and "add" not in text


def test_of_other_widths():
    text = compiled("u8", lambda x: total([((x.as_type("u32") >> i) & 1) << (31 - i) for i in range(8)]), "u32")
    assert "bitreverse" in text
    text = compiled("i8", lambda x: total([((x.as_type("i32") >> i) & 1) << (31 - i) for i in range(32)]), "i32")
    assert "bitreverse" in text  # of 32 bits: those above are copies of the sign
    text = compiled("u32", lambda x: total([(((x >> i) & 1) << (7 - i)).as_type("u8") for i in range(8)]), "u8")
    assert "bitreverse" in text


def test_what_is_known_of_sums_and_masks():
    """Bits that overlap are the result's own; those above in a sum, too; masks take them away."""
    assert "bitreverse" not in compiled("u32", lambda x: total([((x >> i) & 3) << (30 - i) for i in range(31)], "xor"))
    compiled("u32", lambda x: total([((x >> i) & 3) << (30 - i) for i in range(31)], "add"))
    compiled("u8", lambda x: total([(x >> i) & 3 for i in range(8)], "add"))
    compiled("i32", lambda x: ((x | (x << 8)) & 0xFF00FF) | ((x >> 3) & 0x3300) | 0x40000000)
    text = compiled("u32", lambda x: total([(((x + (x << 16)) >> i) & 1) << (15 - i) for i in range(16)]))
    assert "add" not in text and "bitreverse" in text
    text = compiled("u32", lambda x: total([((x >> i) & 1) << (31 - i) for i in range(32)]) + ((x >> 3) & 1))
    assert "bitreverse" in text


def test_compiled_code():
    """The ops as machine code, in lanes and alone."""
    for dtype in ("uint8", "uint16", "int32", "uint64"):
        with jax.enable_x64(True):
            n = np.dtype(dtype).itemsize * 8
            x = np.random.default_rng(1).integers(0, 2**62, 77).astype(dtype)
            f = jax.jit(lambda x, n=n: total_of((((x >> i) & 1) << (n - 1 - i)) for i in range(n)))
            text = np.asarray([f"{int(v) & (2**n - 1):0{n}b}" for v in x])
            want = np.asarray([int(t[::-1], 2) for t in text], np.uint64).astype(dtype)
            np.testing.assert_array_equal(f(x), want)
            np.testing.assert_array_equal(f(x[:1]), want[:1])
            if n > 8:
                swap = jax.jit(lambda x, n=n: total_of((((x >> i) & 255) << (n - 8 - i)) for i in range(0, n, 8)))
                np.testing.assert_array_equal(swap(x), x.byteswap())


def total_of(parts):
    return functools.reduce(lambda x, y: x | y, parts)


def test_sums_of_sums_are_looked_at_once():
    """As in rounds of a hash, in which each sum is in the next two: flattened they would be 2^60 terms."""

    def made(x):
        y = x
        for k in range(60):
            y = y + (y * (2 * k + 3)) + ((x >> (k % 8)) & 1)
        return y

    compiled("u32", made)


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "int32"])
def test_bits_along_an_axis(dtype):
    """They are moved as in straight code, which is written for them; digits are divided by known numbers."""
    jnp = jax.numpy
    width = np.dtype(dtype).itemsize * 8
    words = np.random.default_rng(0).integers(0, np.iinfo(dtype).max, 200).astype(dtype)
    places, half = np.arange(width).astype(dtype), np.arange(width // 2).astype(dtype)
    word = jnp.asarray(1, dtype).dtype
    reverse = lambda n: (((n[:, None] >> places) & 1) << (width - 1 - places)).sum(1, dtype=word)
    spread = lambda n: (((n[:, None] >> half) & 1) << (2 * half)).sum(1, dtype=word)
    ones = lambda b: (b.astype(dtype) << places).sum(1, dtype=word)  # of data: no straight code
    tens = np.array([1, 10, 100], dtype)
    digits = lambda n: ((n[:, None] // tens) % 10).max(1)
    for f in (reverse, spread, digits):
        text = jax.jit(f).lower(words).as_text("nests")
        assert "carry" not in text
        with jax.disable_jit():
            want = f(jnp.asarray(words))
        np.testing.assert_array_equal(jax.jit(f)(words), want)
    set_bits = (words[:, None] >> places) & 1
    assert "carry" in jax.jit(ones).lower(set_bits).as_text("nests") or width == 8
    np.testing.assert_array_equal(jax.jit(ones)(set_bits), words)
