"""Reshapes that merge axes and cut one of them: their indices are quotients that end inside an axis."""

import math

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

RNG = np.random.default_rng(0)


def centred(x, cut):
    """Parts of another shape less their means, along its last axis."""
    parts = x.reshape(cut)
    return (parts - parts.sum(-1, keepdims=True)).reshape(x.shape) * x


@pytest.mark.parametrize(
    "shape, cut",
    [
        ((4, 32, 5, 5), (4, 8, -1)),  # groups of whole channels
        ((4, 32, 25), (32, -1)),
        ((30, 60), (-1, 45)),  # three parts of four of a row
        ((30, 60), (-1, 200)),
        ((12, 96), (-1, 36)),
        ((5, 7, 48), (5, 12, 28)),
    ],
)
def test_lanes_walk_along_memory(shape, cut):
    x = RNG.integers(-3, 4, shape).astype(np.float32)
    gradient = jax.grad(lambda x: (centred(x, cut) ** 2).sum())
    for f, want in ((lambda x: centred(x, cut), centred(x, cut)), (gradient, gradient(x))):
        text = jax.jit(f).lower(x).as_text("nests")
        assert "floormod" not in text, text
        np.testing.assert_allclose(jax.jit(f)(x), want, rtol=1e-5)


def test_cuts_of_any_kind():
    for _ in range(25):
        shape = [int(n) for n in RNG.choice([1, 2, 3, 4, 6, 8, 9, 12, 24], 3)]
        size = math.prod(shape)
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        last = int(RNG.choice(divisors))
        middle = int(RNG.choice([n for n in divisors if size // last % n == 0]))
        x = RNG.integers(-3, 4, shape).astype(np.float32)
        cut = (-1, middle, last)
        got = jax.jit(lambda x, cut: jnp.flip(centred(x, cut), 0), static_argnums=1)(x, cut)
        np.testing.assert_array_equal(got, np.flip(centred(x, cut), 0), err_msg=f"{shape} {cut}")
