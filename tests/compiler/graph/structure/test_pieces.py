"""Slices of joined arrays are joined slices: what an array is padded with is read where it comes from."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

X = np.random.default_rng(0).standard_normal((12, 15)).astype("f4")


def optimized(f, *args):
    text = pullback.jit(f).lower(*args).as_text("jaxpr")
    np.testing.assert_allclose(pullback.jit(f)(*args), f(*map(jnp.asarray, args)), rtol=1e-6, atol=1e-6)
    return text


def five(y):
    return y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:] - 4 * y[1:-1, 1:-1]


@pytest.mark.parametrize("mode", ["wrap", "edge", "reflect", "symmetric", "constant"])
@pytest.mark.parametrize("width", [1, 2])
def test_padded_stencils_store_nothing(mode, width):
    def f(x):
        return five(jnp.pad(x, width, mode=mode))

    optimized(f, X)
    gradient = pullback.grad(lambda x: jnp.sin(f(x)).sum())
    np.testing.assert_allclose(pullback.jit(gradient)(X), gradient(jnp.asarray(X)), rtol=1e-4, atol=1e-5)
    if mode == "wrap":
        assert "temporary" not in pullback.jit(f).lower(X).as_text("nests")


def test_padded_arrays_are_stored_for_dear_stencils():
    """Loops of so many operations are not cut where the joined arrays meet."""
    x = np.random.default_rng(0).random((70, 70)).astype("f4")

    def windows(f, y):
        return sum(f(y[i : i + 68, j : j + 68], i + j) for i in range(3) for j in range(3))

    def of_exponentials(x):
        return windows(lambda w, k: jnp.exp(-((w - 0.5) ** 2)) * w, jnp.pad(x[1:-1, 1:-1], 1, mode="wrap"))

    def of_weights(x):
        return windows(lambda w, k: w * (k + 0.5), jnp.pad(x[1:-1, 1:-1], 1, mode="wrap"))

    for f, stored in ((of_exponentials, 1), (of_weights, 0)):
        optimized(f, x)
        assert pullback.jit(f).lower(x).as_text("loops").count("temporary") == stored


def test_rolls_of_rolls_are_one():
    def f(x):
        for k in range(9):
            x = jnp.roll(x, k + 2, 1)
        return x

    text = optimized(f, X)
    assert text.count("concatenate") == 1 and text.count("slice[") == 2
    assert "slice" not in optimized(lambda x: jnp.roll(jnp.roll(x, 3, 0), -3, 0), X)


def test_what_is_cut_and_joined_again_is_whole():
    assert "concatenate" not in optimized(lambda x: 2 * jnp.concatenate(jnp.split(x, 3, 1), 1), X)
    text = optimized(lambda x: jnp.concatenate([x[:2], x[2:5], x[4:6], x[6:]], 0) + 1, X)
    assert text.count("slice[") == 2
    assert "slice" not in optimized(lambda x: jnp.concatenate([x, x + 1, x + 2], 1)[:, 15:30], X)


def test_strides_of_slices_of_slices():
    def f(x):
        return x[1::2, ::-1][1:5:2, 3:][:, ::4] + x[2:, 3:][::3, 1:][1:3, :3]

    optimized(f, X)
    optimized(lambda x: x[5:5][2:], X)
    optimized(lambda x: x[1::4, 3:][3:], X)  # it would start beyond the end
    optimized(lambda x: lax.slice(lax.slice(x, (1, 0), (12, 15), (3, 2)), (1, 1), (3, 8), (2, 3)), X)


def test_what_others_read_too_is_joined_once():
    text = optimized(lambda x: (lambda y: y[1:, :] * y[:-1, :] + y.sum())(jnp.concatenate([x, x[::-1]], 0)), X)
    assert text.count("concatenate") == 1
