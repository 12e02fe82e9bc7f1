"""Sums of known powers are polynomials by Horner's rule, and moments by running products."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)
X = RNG.uniform(-1.2, 1.2, 50).astype("f4")
Y = RNG.uniform(0.1, 1.2, (6, 7)).astype("f4")
C = RNG.standard_normal(6).astype("f4")
W = RNG.standard_normal((6, 3)).astype("f4")
E = np.arange(5, -1, -1)
EXACT = X[:, None].astype("f8") ** E


def names(f, *args):
    """The primitives of the optimized program of `f`."""
    return [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns]


POLYNOMIALS = {
    "vander": (lambda X, Y, C, W: jnp.vander(X, 6) @ C, EXACT @ C),
    "increasing": (lambda X, Y, C, W: jnp.vander(X, 6, increasing=True) @ C, EXACT[:, ::-1] @ C),
    "sum": (lambda X, Y, C, W: (C * X[:, None] ** jnp.arange(5, -1, -1)).sum(-1), EXACT @ C),
    "floats": (lambda X, Y, C, W: X[:, None] ** jnp.arange(5.0, -1, -1) @ C, EXACT @ C),
    "constants": (lambda X, Y, C, W: C @ X ** np.asarray(E, "f4")[:, None], EXACT @ C),
    "einsum": (lambda X, Y, C, W: jnp.einsum("nk,k->n", -jnp.vander(X, 6), C), -EXACT @ C),
    "matrix": (lambda X, Y, C, W: jnp.vander(X, 6) @ W, EXACT @ W),
    "from the left": (lambda X, Y, C, W: W.T @ jnp.vander(X, 6).T, (EXACT @ W).T),
    "gaps and twice": (
        lambda X, Y, C, W: (C * X[:, None] ** jnp.array([9.0, 2, 2, 7, 4, 1])).sum(1),
        (C * X[:, None].astype("f8") ** [9, 2, 2, 7, 4, 1]).sum(1),
    ),
    "known factors": (
        lambda X, Y, C, W: (X[:, None] * (X[:, None] ** jnp.arange(6.0)) * (jnp.arange(6) - 2.0)).sum(1),
        X * (EXACT[:, ::-1] * (np.arange(6) - 2.0)).sum(1),
    ),
    "middle axis": (
        lambda X, Y, C, W: (Y[:, None] ** jnp.arange(3.0)[:, None] * C[:3, None]).sum(1),
        (Y[:, None].astype("f8") ** np.arange(3.0)[:, None] * C[:3, None]).sum(1),
    ),
    "a factor for each column": (
        lambda X, Y, C, W: (Y[:, None] ** jnp.arange(6.0)[:, None] * C[:, None] * Y.sum(0)).sum(1),
        (Y[:, None].astype("f8") ** np.arange(6.0)[:, None] * C[:, None]).sum(1) * Y.sum(0),
    ),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    f, want = POLYNOMIALS[name]
    found = names(f, X, Y, C, W)
    assert "pow" not in found and "dot_general" not in found, found
    np.testing.assert_allclose(pb.jit(f)(X, Y, C, W), want, rtol=1e-5, atol=2e-6)


def test_slopes_and_moments():
    def loss(x, c):
        return ((jnp.vander(x, 6) @ c) ** 2).sum()

    slopes = pb.grad(loss, (0, 1))
    assert "pow" not in names(slopes, X, C) and "select_n" not in names(slopes, X, C)
    value = 2 * (EXACT @ C)
    inner = (EXACT[:, 1:] * (E[:-1] * C[:-1])).sum(1)
    for got, want in zip(pb.jit(slopes)(X, C), (value * inner, value @ EXACT)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    moments = lambda x, y: ((x[:, None] ** jnp.arange(4)).sum(0), (y[..., None] ** jnp.arange(4.0) * 2).sum((0, 1)))
    assert "pow" not in names(moments, X, Y)
    for got, want in zip(pb.jit(moments)(X, Y), (EXACT[:, :-5:-1].sum(0), [2 * (Y**k).sum() for k in range(4)])):
        np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("x", [0.0, -0.0, np.inf, np.nan, 1e30])
def test_what_is_not_finite(x):
    f = lambda x: ((x[:, None] ** jnp.arange(3.0)).sum(1), (x[:, None] ** jnp.arange(3.0) * jnp.arange(3.0)).sum(1))
    x = np.full(3, x, "f4")
    for got, want in zip(pb.jit(f)(x), f(x)):
        np.testing.assert_array_equal(got, want)


def test_other_powers_stay():
    for f in (
        lambda x: (x[:, None] ** jnp.arange(-2.0, 3)).sum(1),  # a negative exponent
        lambda x: (x[:, None] ** (jnp.arange(4) / 2)).sum(1),  # roots
        lambda x: (x[:, None] ** x[:4]).sum(1),
        lambda x: (x[:, None] ** jnp.arange(40.0)).sum(1),
    ):
        assert "pow" in names(f, np.abs(X))
        np.testing.assert_allclose(pb.jit(f)(np.abs(X)), f(np.abs(X)), rtol=1e-5)
    f = lambda x, g: (x[:, None] ** jnp.arange(6.0) * g).sum(1)  # a factor of its own for each term
    g = RNG.standard_normal((50, 6)).astype("f4")
    np.testing.assert_allclose(pb.jit(f)(X, g), (EXACT[:, ::-1] * g).sum(1), rtol=1e-5, atol=1e-6)


def test_powers_of_known_whole_numbers_are_known():
    n = np.random.default_rng(0).integers(0, 2**31, 200).astype("u4")
    digits = lambda n: ((n[:, None] // (10 ** jnp.arange(9, dtype="uint32"))) % 10).sum(1)
    assert "scan" not in names(digits, n)
    assert "scan" in names(lambda n: n ** jnp.arange(9, dtype="uint32"), n[:9])
    np.testing.assert_array_equal(pb.jit(digits)(n), [sum(map(int, str(v)[-9:])) for v in n])
    np.testing.assert_array_equal(pb.jit(lambda: jnp.arange(6) ** jnp.arange(6))(), np.arange(6) ** np.arange(6))


@pytest.mark.parametrize("reverse", [False, True])
def test_each_step_of_a_known_loop_gives_its_own_results(reverse):
    def step(c, _):
        return c + 1, (c * 2, c > 2, jnp.zeros(2, "i4") + c)

    last, steps = pb.jit(lambda: pb.lax.scan(step, 0, None, length=5, reverse=reverse))()
    c = np.arange(5)[::-1] if reverse else np.arange(5)
    assert last == 5
    for got, want in zip(steps, (c * 2, c > 2, np.stack([c, c], 1))):
        np.testing.assert_array_equal(got, want)
    assert pb.jit(lambda: pb.lax.scan(step, 0, None, length=0))()[1][0].shape == (0,)
