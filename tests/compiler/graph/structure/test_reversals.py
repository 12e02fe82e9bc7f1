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

    assert "= rev" not in text(f, X)
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


def check_from_ends(f, *args, reversals=0):
    """No reversals are left but so many, and the values are those of the operations one by one."""
    assert text(f, *args).count("= rev") == reversals
    for got, want in zip(jax.tree.leaves(jax.jit(f)(*args)), jax.tree.leaves(f(*args))):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 29])
def test_some_arrays_from_the_other_end(length, reverse):
    x, y = X[:length], (X + 1)[:length]

    def step(c, rows):
        c = 0.5 * c + rows[0] * rows[1] - rows[1][::-1]
        return c, (c, c + rows[0], rows[1] * 2, 3 * c)

    def scan(x, y):
        return lax.scan(step, jnp.zeros(4), (x, y), reverse=reverse)

    def one_of_each(x, y):
        c, (a, b, d, e) = scan(x[::-1], y)
        return c, a[::-1], b, d[::-1], e

    def unused(x, y):
        c, (_, b, d, _) = scan(x, y[::-1])
        return c, b[::-1], d

    def read_both_ways(x, y):
        _, (a, b, d, e) = scan(x, y)
        return a, a[::-1] + 1, b[::-1], jnp.sin(d[::-1]), e[::-1, ::-1]

    def one_for_another(x, y):
        _, (a, b, _, _) = scan(x, y[::-1])
        return scan(a[::-1], b)

    def along_other_axes_too(x, y):
        _, (a, _, d, e) = scan(x[::-1, ::-1], y[::-1])
        return a[::-1, ::-1], d[::-1][:, ::-1], e[::-1, ::-1][::-1]

    def in_a_loop(x, y):
        def body(_, both):
            c, (a, b, _, _) = scan(both[0][::-1], both[1])
            return a[::-1], b / (1 + jnp.abs(c))

        return lax.fori_loop(0, 3, body, (x, y))

    check_from_ends(one_of_each, x, y, reversals=1)  # in each step
    check_from_ends(unused, x, y, reversals=1)
    check_from_ends(read_both_ways, x, y, reversals=3 if length > 1 else 2)
    check_from_ends(one_for_another, x, y, reversals=2)
    check_from_ends(in_a_loop, x, y, reversals=1)
    check_from_ends(along_other_axes_too, x, y, reversals=5)


def test_steps_in_turns_from_the_other_end():
    x = np.random.default_rng(1).standard_normal((9, 300, 300)).astype("f4")

    def heat(u, source):
        u = u + 0.1 * (jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) - 2 * u) + source
        return u, u[0]

    def f(x):
        u, edges = lax.scan(heat, jnp.zeros(x.shape[1:]), x[::-1])
        v, other = lax.scan(heat, u, x)
        return v, edges, other[::-1]

    check_from_ends(f, x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"])
def test_cumulative_ones_from_the_end(name):
    x = np.random.default_rng(0).normal(size=(30, 40)).astype("f4")
    for axis in (0, 1):
        f = lambda x, axis=axis: jnp.flip(getattr(lax, name)(jnp.flip(x, axis), axis), axis)
        assert "rev[" not in str(optimize_jaxpr(jax.make_jaxpr(f)(x)))
        want = jnp.flip(jax.jit(lambda x, axis=axis: getattr(lax, name)(x, axis))(jnp.flip(x, axis)), axis)
        np.testing.assert_array_equal(jax.jit(f)(x), want)
