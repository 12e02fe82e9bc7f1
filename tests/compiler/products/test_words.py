"""Products of integers of 8 and 16 bits, two contracted elements at a time: exact, modulo the result's range."""

import numpy as np
import pytest
from cpu_levels import cpus

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.util.switches import switches


def numbers(rng, dtype, shape):
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max + 1, shape).astype(dtype)
    values.reshape(-1)[: values.size // 2] = info.min  # sums past 32 bits of int16
    return values


@pytest.mark.parametrize("types", ["int8 int8 int32", "uint8 int8 int32", "int16 int8 int32", "int16 int16 int16",
                                   "uint8 uint8 uint8", "int16 int16 int64", "uint8 int16 uint32"])  # fmt: skip
@pytest.mark.parametrize("m, k, n", [(40, 33, 37), (7, 300, 100)])
def test_products(types, m, k, n):
    rng = np.random.default_rng(0)
    left, right, result = types.split()
    x, y = numbers(rng, left, (m, k)), numbers(rng, right, (k, n))
    want = (x.astype(np.int64) @ y.astype(np.int64)).astype(result)
    with jax.enable_x64(True):
        got = jax.jit(lambda x, y: lax.dot(x, y, preferred_element_type=result))(x, y)
        np.testing.assert_array_equal(got, want)
        got = jax.jit(lambda x, y: lax.dot_general(x, y, (((0,), (1,)), ((), ())), preferred_element_type=result))(
            np.ascontiguousarray(x.T), np.ascontiguousarray(y.T)
        )
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("cpu", cpus())
def test_batches_on_every_cpu(cpu):
    rng = np.random.default_rng(1)
    x, y = numbers(rng, "int8", (5, 3, 30, 41)), numbers(rng, "int8", (5, 3, 41, 35))
    with switches.set(cpu=cpu):
        jax.clear_caches()
        got = jax.jit(lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.int32))(x, y)
    jax.clear_caches()
    np.testing.assert_array_equal(got, x.astype(np.int32) @ y.astype(np.int32))


def test_the_kernel_is_used():
    x = np.zeros((64, 64), "i1")
    text = jax.jit(lambda x: lax.dot(x, x, preferred_element_type=jnp.int32)).lower(x).as_text("loops")
    assert "words" in text or "tile_dot" in text or "tiles" in text
