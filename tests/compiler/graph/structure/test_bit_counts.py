"""Sums of bits along an axis are counts of bits."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def counted(dtype, count, first=0):
    return jnp.arange(count, dtype=dtype) + jnp.asarray(first, dtype)


def sums(dtype, bits):
    """Sums of bits of x, and whether they are counts."""
    places = counted(dtype, bits)
    bit = lambda x: (x[:, None] >> places) & 1
    return [
        (lambda x: bit(x).sum(1), True),
        (lambda x: ((x[None] >> places[:, None]) & 1).sum(0), True),
        (lambda x: bit(x).sum(), True),
        (lambda x: (bit(x) != 0).sum(1), True),
        (lambda x: (bit(x) == 1).sum(1), True),
        (lambda x: bit(x).astype("float32").mean(1), True),
        (lambda x: lax.reduce(bit(x), np.array(0, dtype), lax.bitwise_xor, (1,)), True),
        (lambda x: ((x[:, None] >> places[::-1]) & 1).sum(1), True),
        (lambda x: ((x[:, None] >> counted(dtype, 4, 2)) & 1).sum(1), True),
        (lambda x: ((x[:, None] & (jnp.ones((), dtype) << places)) != 0).sum(1), True),
        (lambda x: pb.vmap(lambda v: ((v >> places) & 1).sum())(x), True),
        (lambda x: ((x[:, None] >> counted(dtype, bits + 3)) & 1).sum(1), False),  # bits that are not there
        (lambda x: ((x[:, None] >> jnp.asarray([1, 1, 2], dtype)) & 1).sum(1), False),  # one bit twice
        (lambda x: ((x[:, None] & jnp.asarray([1, 3, 4], dtype)) != 0).sum(1), False),
        (lambda x: ((x[:, None] >> places) & 3).sum(1), False),
        (lambda x: ((x >> jnp.arange(x.shape[0]).astype(dtype) % bits) & 1).sum(), False),  # of each another bit
    ]


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i4", "u4"])
def test_sums_of_bits(dtype):
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, 50, dtype=dtype, endpoint=True)
    for number, (f, counts) in enumerate(sums(np.dtype(dtype).name, info.bits)):
        found = [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(x)).jaxpr.eqns]
        assert ("population_count" in found) == counts, (number, found)
        got = pb.jit(f)(x)
        with pb.disable_jit():
            want = f(jnp.asarray(x))
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=str(number))


def test_sixty_four_bits():
    with pb.enable_x64():
        x = jnp.asarray(RNG.integers(-(2**63), 2**63 - 1, 40))
        got = pb.jit(lambda x: ((x[:, None] >> jnp.arange(64)) & 1).sum(1))(x)
        np.testing.assert_array_equal(got, [bin(int(v) % 2**64).count("1") for v in x])


def words(x):
    """Counts of all bits by those of their bytes, in some spellings."""
    bytes_of = lambda x: lax.bitcast_convert_type(x, jnp.uint8)
    return [
        (lambda x: jnp.unpackbits(bytes_of(x).reshape(-1)).sum(dtype="u4"), True),
        (lambda x: jnp.unpackbits(bytes_of(x), axis=1).sum(1, dtype="i4"), True),
        (lambda x: lax.population_count(bytes_of(x)).astype("i4").sum(-1), True),
        (lambda x: lax.population_count(bytes_of(x)).astype("i4").sum(0), False),  # of each byte by itself
        (lambda x: (lax.population_count(bytes_of(x)) != 0).astype("i4").sum(-1), False),
    ]


@pytest.mark.parametrize("dtype", ["u4", "i2", "f4"])
def test_bits_of_joined_axes_and_of_bytes(dtype):
    x = RNG.integers(0, 255, (20, np.dtype(dtype).itemsize), dtype="u1").view(dtype)[:, 0]
    for number, (f, whole) in enumerate(words(x)):
        found = [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(x)).jaxpr.eqns]
        assert ("population_count" in found) and ("shift_right_logical" not in found), (number, found)
        if np.dtype(dtype).kind in "iu":
            assert ("bitcast_convert_type" not in found) == whole, (number, found)
        got = pb.jit(f)(x)
        with pb.disable_jit():
            np.testing.assert_array_equal(got, f(jnp.asarray(x)), err_msg=str(number))


def test_bits_that_sums_keep_apart_by_axes_of_one_element():
    x = RNG.integers(0, 255, 30, dtype="u1")
    f = lambda x: jnp.unpackbits(x[:, None], axis=1).sum(1)
    assert "population_count" in str(optimize_jaxpr(pb.make_jaxpr(f)(x)))
    np.testing.assert_array_equal(pb.jit(f)(x), np.unpackbits(x[:, None], axis=1).sum(1))
