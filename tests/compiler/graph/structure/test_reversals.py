"""Scans over reversed arrays run from the end, and give the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

X = np.random.default_rng(0).standard_normal((30, 4)).astype("f4")


def discounted(c, x):
    c = 0.9 * c + x
    return c, (c, c.sum())


def text(f, *args):
    return jax.jit(f).lower(*args).as_text("jaxpr")


@pytest.mark.parametrize("reverse", [False, True])
def test_reversed_rows_and_results(reverse):
    def f(x):
        c, (rows, sums) = lax.scan(discounted, jnp.zeros(4), jnp.flip(x, 0), reverse=reverse)
        return c, rows[::-1], sums

    assert text(f, X).count("= rev") == 1  # of the sums
    turned = lax.scan(discounted, jnp.zeros(4), X[::-1].copy(), reverse=reverse)
    want = turned[0], turned[1][0][::-1], turned[1][1]
    for got, expected in zip(jax.jit(f)(X), want):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    slope = jax.jit(jax.grad(lambda x: sum(jnp.sum(jnp.sin(y)) for y in f(x))))(X)
    eager = jax.grad(lambda x: sum(jnp.sum(jnp.sin(y)) for y in f(x)))(X)
    np.testing.assert_allclose(slope, eager, rtol=1e-4, atol=1e-5)


def test_other_axes_and_several_arrays():
    def both(x):
        return lax.scan(lambda c, x: (c + x[0] * x[1], c), jnp.zeros(4), (x[::-1, ::-1], 2 * jnp.flip(x, 0)))

    def one(x):
        return lax.scan(lambda c, x: (c + x[0] * x[1], c), jnp.zeros(4), (x[::-1], x))

    def along_columns(x):
        return jax.vmap(lambda y: lax.scan(lambda c, z: (0.5 * c + z, c), 0.0, y[::-1])[1][::-1], 1, 1)(x)

    for f in (both, one, along_columns):
        for got, want in zip(jax.tree.leaves(jax.jit(f)(X)), jax.tree.leaves(f(X))):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert "reverse=True" not in text(one, X)
    summed = jax.grad(lambda x: jnp.sum(lax.scan(lambda c, x: (jnp.sin(c) * x,) * 2, jnp.ones(4), x[::-1])[1]))
    assert "= rev" not in text(summed, X)  # cotangents are all one
    assert "= rev" not in text(along_columns, X)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative_ones_from_the_end(name):
    x = np.random.default_rng(0).normal(size=(30, 40)).astype("f4")
    for axis in (0, 1):
        f = lambda x, axis=axis: jnp.flip(getattr(lax, name)(jnp.flip(x, axis), axis), axis)
        assert "rev[" not in str(optimize_jaxpr(jax.make_jaxpr(f)(x)))
        want = jnp.flip(jax.jit(lambda x, axis=axis: getattr(lax, name)(x, axis))(jnp.flip(x, axis)), axis)
        np.testing.assert_array_equal(jax.jit(f)(x), want)
