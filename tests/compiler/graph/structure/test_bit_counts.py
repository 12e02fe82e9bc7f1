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
