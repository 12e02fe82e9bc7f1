"""rng_bit_generator: JAX's words and states, of each algorithm, shape and type, alone, compiled and mapped."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

STATE = np.array([1, 2, 3, 4], np.uint32)
PHILOX, THREEFRY = lax.RandomAlgorithm.RNG_PHILOX, lax.RandomAlgorithm.RNG_THREE_FRY

# Written down from JAX 0.10.2: (algorithm, shape, dtype) -> (third word of the state after, words).
CASES = [
    (PHILOX, (3,), "uint32", 4, [512747620, 1298009047, 1267190206]),
    (PHILOX, (3,), "uint16", 4, [59492, 3031, 51646]),
    (PHILOX, (3,), "uint8", 4, [100, 215, 190]),
    (PHILOX, (), "uint32", 4, 512747620),
    (PHILOX, (0,), "uint32", 3, []),
    (PHILOX, (2, 1), "uint64", 4, [[5574906407289874532], [3272025663544478142]]),
    (THREEFRY, (5,), "uint32", 6, [1576285164, 2249660814, 740599976, 2425682526, 2436392515]),
    (THREEFRY, (3,), "uint8", 5, [236, 142, 168]),
    (THREEFRY, (), "uint32", 4, 1576285164),
    (THREEFRY, (2, 3), "uint32", 6, [[1576285164, 740599976, 2436392515], [2249660814, 2425682526, 1497962777]]),
    (THREEFRY, (3, 2), "uint32", 6, [[1576285164, 2249660814], [740599976, 2425682526], [2436392515, 1497962777]]),
    (THREEFRY, (3,), "uint64", 6, [9662219624799024108, 10418227120389269672, 6433701140276733507]),
]  # fmt: skip


@pytest.mark.parametrize("algorithm,shape,dtype,counter,words", CASES)
def test_words_and_state(algorithm, shape, dtype, counter, words):
    with jax.enable_x64(True):

        def f(key):
            return lax.rng_bit_generator(key, shape, dtype, algorithm)

        for state, got in (f(STATE), jax.jit(f)(STATE)):
            np.testing.assert_array_equal(state, np.array([1, 2, counter, 4], np.uint32))
            np.testing.assert_array_equal(got, np.array(words, dtype))
            assert got.dtype == dtype and state.dtype == np.uint32
        wide, got = f(np.array([1 + (2 << 32), 3 + (4 << 32)], np.uint64))
        np.testing.assert_array_equal(wide, np.array([1 + (2 << 32), counter + (4 << 32)], np.uint64))
        np.testing.assert_array_equal(got, np.array(words, dtype))


def test_the_counter_carries_into_its_upper_word_alone():
    state, words = lax.rng_bit_generator(np.array([1, 2, 2**32 - 1, 2**32 - 1], np.uint32), (9,))
    np.testing.assert_array_equal(state, [1, 2, 2, 0])
    np.testing.assert_array_equal(words[:2], [875035680, 2457449792])


def test_of_mapped_states_the_first_gives_all_words():
    states = jnp.arange(24, dtype=jnp.uint32).reshape(2, 3, 4)
    after, words = jax.vmap(jax.vmap(lambda k: lax.rng_bit_generator(k, (2,))))(states)
    first, all_words = lax.rng_bit_generator(states[0, 0], (2, 3, 2))
    np.testing.assert_array_equal(words, all_words)
    np.testing.assert_array_equal(after, states.at[0, 0].set(first))
    keys = jax.random.split(jax.random.key(0, impl="rbg"), 3)
    np.testing.assert_array_equal(jax.vmap(lambda k: jax.random.bits(k, (2,)))(keys), jax.random.bits(keys[0], (3, 2)))


def test_errors():
    for wrong in (np.int32, np.float32, bool, "uint4"):
        with pytest.raises(TypeError, match="dtype"):
            lax.rng_bit_generator(STATE, (2,), wrong)
    for key in (STATE[:2], STATE.astype(np.int32), STATE.astype(np.uint64)):
        with pytest.raises(TypeError, match="key"), jax.enable_x64(True):
            lax.rng_bit_generator(key, (2,))
    with pytest.raises(ValueError, match="shape"):
        lax.rng_bit_generator(STATE, (-1,))
