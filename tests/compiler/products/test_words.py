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


def convolved(x, w, strides, dilation, groups):
    """The convolution of x[n, c, h, w] and w[f, c, i, j] that keeps its size but for strides, in int64."""
    x, w = x.astype(np.int64), w.astype(np.int64)
    reach = [(k - 1) * dilation for k in w.shape[2:]]
    x = np.pad(x, ((0, 0), (0, 0), *((r // 2, r - r // 2) for r in reach)))
    height, width = (n - r for n, r in zip(x.shape[2:], reach))
    out = 0
    for i, j in np.ndindex(*w.shape[2:]):
        part = x[:, :, i * dilation :, j * dilation :][:, :, :height:strides, :width:strides]
        sides = zip(np.split(part, groups, 1), np.split(w[:, :, i, j], groups, 0))
        out = out + np.concatenate([np.einsum("nchw,fc->nfhw", *both) for both in sides], 1)
    return out


@pytest.mark.parametrize("types", ["int8 int32", "uint8 int32", "int16 int32", "int16 uint32"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("channels", "features", "strides", "dilation", "groups"),
                         [(5, 9, 1, 1, 1), (6, 40, 2, 1, 1), (8, 16, 1, 2, 2), (2, 17, 1, 1, 1)])  # fmt: skip
def test_convolutions(types, last, channels, features, strides, dilation, groups):
    given, result = types.split()
    rng = np.random.default_rng(2)
    x, w = numbers(rng, given, (2, channels, 14, 11)), numbers(rng, given, (features, channels // groups, 3, 3))
    want = convolved(x, w, strides, dilation, groups).astype(result)
    orders = ("NHWC", "HWIO", "NHWC") if last else ("NCHW", "OIHW", "NCHW")
    if last:
        x, w, want = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0), want.transpose(0, 2, 3, 1)
    padding = [(dilation, dilation)] * 2

    def conv(x, w):
        return lax.conv_general_dilated(
            x, w, (strides, strides), padding, rhs_dilation=(dilation, dilation), dimension_numbers=orders,
            feature_group_count=groups, preferred_element_type=result,
        )  # fmt: skip

    np.testing.assert_array_equal(jax.jit(conv)(x, w), want)


@pytest.mark.parametrize("cpu", cpus())
def test_convolutions_on_every_cpu(cpu):
    rng = np.random.default_rng(3)
    x, w = numbers(rng, "int8", (2, 7, 12, 13)), numbers(rng, "int8", (20, 7, 3, 3))
    conv = jax.jit(lambda x, w: lax.conv(x, w, (1, 1), [(1, 1), (1, 1)], preferred_element_type="int32"))
    with switches.set(cpu=cpu):
        jax.clear_caches()
        got = conv(x, w)
        assert "words" in conv.lower(x, w).as_text("loops")
    jax.clear_caches()
    np.testing.assert_array_equal(got, convolved(x, w, 1, 1, 1).astype(np.int32))
