"""Generators of words of a key and a counter: philox2x32, philox4x32 and threefry4x32."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.random import _counters

ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("block", "n_key", "n_counter", "fill", "words"),
    [  # known answers of the Random123 library
        (_counters.philox_2x32, 1, 2, 0, (0xFF1DAE59, 0x6CD10DF2)),
        (_counters.philox_2x32, 1, 2, ONES, (0x2C3F628B, 0xAB4FD7AD)),
        (_counters.philox_4x32, 2, 4, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (_counters.philox_4x32, 2, 4, ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (_counters.threefry_4x32, 4, 4, 0, (0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8)),
        (_counters.threefry_4x32, 4, 4, ONES, (0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732)),
    ],
)
def test_blocks(block, n_key, n_counter, fill, words):
    word = jnp.uint32(fill)
    assert tuple(int(w) for w in block([word] * n_key, [word] * n_counter)) == words


# What JAX 0.10 gives for the seed 7: words of the key, three words of bits, two of 64 bits' halves, and parts of it.
OF_SEED_7 = {
    "philox2x32": (
        [2193621824], [1393916649, 765423610, 1943221496], 12474921395270887424, [[2904543977], [3512304938]],
    ),
    "philox4x32": (
        [1801635674, 389949022], [1496596757, 1056680277, 1600364730], 14562585570279071781,
        [[3390616171, 2545328165], [3426512584, 1605298195]],
    ),
    "threefry4x32": (
        [4192117462, 4011273671, 3705849684, 2559306090], [913164468, 1624920463, 412397562], 17109989893676674451,
        [[1943616406, 1729971241, 2662063793, 3154274746], [242730383, 2552065035, 848077674, 1553483864]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("impl", OF_SEED_7)
def test_keys_bits_and_parts_are_those_of_jax(impl):
    words, bits, wide, parts = OF_SEED_7[impl]
    key = jax.random.key(7, impl=impl)
    np.testing.assert_array_equal(jax.random.key_data(key), words)
    np.testing.assert_array_equal(jax.random.PRNGKey(7, impl=impl), words)
    np.testing.assert_array_equal(jax.random.bits(key, (3,)), bits)
    np.testing.assert_array_equal(jax.random.bits(key, (3, 1), "uint8").ravel(), np.array(bits) & 255)
    np.testing.assert_array_equal(jax.random.bits(key, (1, 3), "uint16").ravel(), np.array(bits) & 65535)
    np.testing.assert_array_equal(jax.random.key_data(jax.random.split(key)), parts)
    np.testing.assert_array_equal(jax.random.key_data(jax.random.fold_in(key, 1)), parts[1])
    with jax.enable_x64(True):
        assert int(jax.random.bits(key, (), "uint64")) == wide
    assert jax.random.key_impl(key) == impl
    assert jax.random.bits(key, (0, 2)).shape == (0, 2)


@pytest.mark.parametrize("impl", OF_SEED_7)
def test_maps_and_programs_give_what_calls_give(impl):
    keys = jax.random.split(jax.random.key(1, impl=impl), (2, 3))
    draw = lambda key: jax.random.normal(jax.random.fold_in(key, 5), (4,))
    want = np.stack([[draw(k) for k in row] for row in keys])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(draw)))(keys), want)
    with jax.default_prng_impl(impl):
        np.testing.assert_array_equal(draw(jax.random.key(1)), draw(jax.random.key(1, impl=impl)))
    sample = np.asarray(jax.random.normal(jax.random.key(0, impl=impl), (4000,)))
    assert abs(sample.mean()) < 0.1 and abs(sample.std() - 1) < 0.1  # six standard deviations


def test_numbers_of_elements_have_two_words():
    shape = (3, 1 << 20, 1 << 11)  # more than 2**32 elements, of which a few are looked at
    numbers = jax.jit(lambda: [w[2, -1, -2:] for w in _counters._numbers(shape)])
    high, low = jax.eval_shape(lambda: _counters._numbers(shape))
    assert high.shape == low.shape == shape
    high, low = numbers()
    last = 3 * (1 << 31) - 1
    np.testing.assert_array_equal(high, [(last - 1) >> 32, last >> 32])
    np.testing.assert_array_equal(low, [(last - 1) & ONES, last & ONES])
