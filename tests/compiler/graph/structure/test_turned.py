"""Columns of turned arrays that are looked up, or added to, are rows of the arrays as they lie."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)
N, E, D = 30, 80, 6
X, W = RNG.normal(size=(N, D)).astype("f4"), RNG.normal(size=(D, D)).astype("f4")
S, T = RNG.integers(-N, N, E).astype("i4"), RNG.integers(-3, N + 3, E).astype("i4")
Y = RNG.normal(size=(N, 4, 5)).astype("f4")


def mapped(f):
    """`f` of each feature, which are last."""
    return pb.vmap(f, -1, -1)


SPELLINGS = {
    "gather": lambda x: mapped(lambda c: c[S])(x),
    "filled": lambda x: mapped(lambda c: jnp.take(c, T, mode="fill", fill_value=7))(x),
    "product": lambda x: mapped(lambda c: c[S])(x @ W),
    "scatter-add": lambda x: mapped(lambda c: jnp.zeros(N).at[T].add(c[S]))(x @ W),
    "scatter-max": lambda x: mapped(lambda c: jnp.full(N, -9.0).at[T].max(c[S]))(x),
    "scatter": lambda x: mapped(lambda c: jnp.zeros(N).at[T[:9]].set(c[:9]))(x),
    "segments": lambda x: mapped(lambda c: pb.ops.segment_sum(c[S] * 2, T, N))(x),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_features_stay_last(name):
    f = SPELLINGS[name]
    eqns = optimize_jaxpr(pb.make_jaxpr(f)(X)).jaxpr.eqns
    assert not any(eqn.primitive.name == "transpose" for eqn in eqns)
    with pb.disable_jit():
        want = f(jnp.asarray(X))
    np.testing.assert_allclose(pb.jit(f)(X), want, rtol=1e-5, atol=1e-5)


def test_windows_of_several_axes():
    orders = [(1, 2, 0), (2, 1, 0)]
    for order in orders:
        f = lambda y, order=order: y.transpose(order)[:, :, S] * 2
        np.testing.assert_array_equal(pb.jit(f)(Y), 2 * Y.transpose(order)[:, :, S])
        g = lambda y, order=order: (
            jnp.ones((*np.array([N, 4, 5])[list(order[:2])], 40)).at[:, :, T[:N]].add(y.transpose(order), mode="drop")
        )
        with pb.disable_jit():
            want = g(jnp.asarray(Y))
        np.testing.assert_allclose(pb.jit(g)(Y), want, rtol=1e-5, atol=1e-5)


def test_gradients():
    f = lambda x, w: (SPELLINGS["segments"](x @ w) ** 2).sum()
    for got, want in zip(pb.jit(pb.grad(f, (0, 1)))(X, W), pb.grad(f, (0, 1))(X, W)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_rows_of_a_loop_are_turned_in_it():
    z = RNG.normal(size=(7, 2, 30)).astype("f4")

    def paths(noise):
        def step(carry, x):
            s, v = carry
            return (s + v * x[0], 0.9 * v + x[1]), s

        return pb.lax.scan(step, (0.0, 0.04), noise)

    f = pb.vmap(paths, 2)
    eqns = optimize_jaxpr(pb.make_jaxpr(f)(z)).jaxpr.eqns
    assert not any(eqn.primitive.name == "transpose" and eqn.invars[0].aval.size == z.size for eqn in eqns)
    got = pb.jit(f)(z)
    s, v, seen = np.zeros(30, "f4"), np.full(30, 0.04, "f4"), []
    for x in z:
        seen.append(s)
        s, v = s + v * x[0], np.float32(0.9) * v + x[1]
    np.testing.assert_allclose(got[0][0], s, rtol=1e-5)
    np.testing.assert_allclose(got[1], np.stack(seen, 1), rtol=1e-5)


def test_rows_that_others_read_turned_are_turned_once():
    z = RNG.normal(size=(7, 2, 30)).astype("f4")

    def f(x):
        turned = x.transpose(0, 2, 1)
        return pb.lax.scan(lambda c, row: (c + row @ W[:2, :2], None), jnp.zeros((30, 2)), turned)[0], turned

    got, turned = pb.jit(f)(z)
    np.testing.assert_allclose(got, sum(row.T @ W[:2, :2] for row in z), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(turned, z.transpose(0, 2, 1))
