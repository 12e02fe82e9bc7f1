"""Convolutions with few features fuse with what is done with them, and are what the primitive's reference says."""

import itertools
import re

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 1, 13, 17)).astype("f4")
W = RNG.standard_normal((2, 1, 3, 3)).astype("f4")
WAYS = [
    {"padding": "SAME"},
    {"padding": "VALID", "window_strides": (2, 1)},
    {"padding": ((2, 1), (0, 3)), "rhs_dilation": (1, 2)},
    {"padding": ((-1, 2), (1, -2))},
]


def convolved(x, w, window_strides=(1, 1), **params):
    return jax.lax.conv_general_dilated(x, w, window_strides, **params)


def nests(f, *args):
    return len(jax.jit(f).lower(*args).as_text("fused").splitlines()) - 1


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("known", [False, True])
def test_results_are_those_of_the_reference(way, known):
    params, w = WAYS[way], W[:1] if known else W
    f = (lambda x: convolved(x, w, **params)) if known else (lambda x: convolved(x, jnp.abs(w), **params))
    program = jax.jit(f)
    assert "thin_convolution" in program.lower(X).as_text("jaxpr")
    with jax.disable_jit():
        want = f(jnp.asarray(X))
    np.testing.assert_allclose(program(X), want, rtol=1e-5, atol=1e-5)


def test_groups_layouts_and_types():
    for dtype, layout in itertools.product(("f4", "i4"), (("NHWC", "HWIO", "NHWC"), ("CHWN", "OIHW", "NCHW"))):
        x = (RNG.standard_normal((4, 9, 8, 4)) * 5).astype(dtype)
        shape = (3, 3, 1, 8) if layout[1] == "HWIO" else (8, 1, 3, 3)
        w = (RNG.standard_normal(shape) * 5).astype(dtype)
        f = lambda x, w, n=layout: convolved(x, w, padding="SAME", dimension_numbers=n, feature_group_count=4)
        with jax.disable_jit():
            want = f(jnp.asarray(x), jnp.asarray(w))
        assert "thin_convolution" in jax.jit(f).lower(x, w).as_text("jaxpr")
        np.testing.assert_allclose(jax.jit(f)(x, w), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 3])
def test_convolutions_without_axes_to_move_along_are_products(groups):
    x, w = RNG.standard_normal((2, groups)).astype("f4"), RNG.standard_normal((2 * groups, 1)).astype("f4")
    f = lambda x, w: convolved(x, w, (), padding=(), feature_group_count=groups)
    want = np.repeat(x, 2, 1) * w[:, 0]
    np.testing.assert_allclose(jax.jit(f)(x, w), want, rtol=1e-6)
    np.testing.assert_allclose(f(x, w), want, rtol=1e-6)
    x_bar, w_bar = jax.jit(jax.grad(lambda x, w: jnp.sum(f(x, w)), (0, 1)))(x, w)
    np.testing.assert_allclose(x_bar, np.tile(w.reshape(groups, 2).sum(1), (2, 1)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(w_bar[:, 0], np.repeat(x.sum(0), 2), rtol=1e-5, atol=1e-6)


def test_a_step_of_the_game_of_life_is_one_loop_that_multiplies_nothing_by_one():
    around = jnp.asarray([[1, 1, 1], [1, 0, 1], [1, 1, 1]], "f4")
    board = (RNG.random((60, 70)) < 0.4).astype("f4")

    def step(x):
        n = jax.lax.conv(x[None, None], around[None, None], (1, 1), "SAME")[0, 0]
        return jnp.where((n == 3) | ((x == 1) & (n == 2)), 1.0, 0.0)

    assert nests(step, board) == 1
    assert (
        "1.0:f32)" not in jax.jit(lambda x: step(x) * 3).lower(board).as_text("loops").split("mul", 1)[1].split("eq")[0]
    )
    wide = np.pad(board, 1)
    n = sum(wide[i : i + 60, j : j + 70] for i in range(3) for j in range(3) if (i, j) != (1, 1))
    np.testing.assert_array_equal(jax.jit(step)(board), (n == 3) | ((board == 1) & (n == 2)))


def test_nan_under_a_weight_of_zero_stays():
    x = np.ones((1, 1, 5, 5), "f4")
    x[0, 0, 2, 2] = np.nan
    found = jax.jit(lambda x: convolved(x, jnp.zeros((1, 1, 3, 3)).at[0, 0, 0, 0].set(1.0), padding="SAME"))(x)
    assert np.isnan(np.asarray(found)[0, 0, 1:4, 1:4]).all() and not np.isnan(np.asarray(found)[0, 0, 0]).any()


def test_bias_and_activation_share_its_loop_and_gradients_are_right():
    w, bias = W[:1, :, :, :], np.float32(0.3)

    def layer(x, w):
        return jnp.tanh(convolved(x, w, padding="SAME") + bias)

    assert nests(layer, X, w) == 1
    jax.test_util.check_grads(layer, (jnp.asarray(X), jnp.asarray(w)), 1, modes=["rev"], rtol=2e-2, atol=2e-2)
    many = jax.jit(jax.vmap(lambda x: layer(x[None], w)[0]))(X)
    np.testing.assert_allclose(many, layer(jnp.asarray(X), jnp.asarray(w)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", ["wrap", "edge", "reflect", "constant"])
def test_large_arrays_are_not_stored_with_their_edges(mode):
    x = np.random.default_rng(0).standard_normal((120, 130)).astype("f4")
    w = np.array([[0, 1, 0], [1, -4, 1], [0, 1, 0]], "f4")

    def laplacian(x):
        wide = jnp.pad(x, 1, mode=mode)
        return jax.lax.conv_general_dilated(wide[None, None], w[None, None], (1, 1), "VALID")[0, 0]

    program = jax.jit(laplacian)
    stored = re.findall(r"temporary \w+: f32\[(\d+)\]", program.lower(x).as_text("nests"))
    assert all(int(size) < x.size for size in stored)
    wide = np.pad(x, 1, mode=mode).astype("f8")
    want = sum(w[i, j] * wide[i : i + 120, j : j + 130] for i in range(3) for j in range(3))
    np.testing.assert_allclose(program(x), want, rtol=1e-4, atol=1e-4)
