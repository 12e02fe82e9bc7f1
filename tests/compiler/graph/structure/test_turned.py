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
