"""Reductions of what is the same along an axis that stays: computed once."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr


def reduced(f, *args):
    """The shapes of what the program that is compiled reduces."""
    closed = optimize_jaxpr(pb.make_jaxpr(f)(*args))
    return [e.invars[0].aval.shape for e in closed.jaxpr.eqns if e.primitive.name.startswith("reduce_")]


def values(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("f4")


@pytest.mark.parametrize("special", [False, True])
def test_means_over_masks_of_rows_count_rows(special):
    x, mask = values(30, 5), values(30) > 0
    if special:
        x[3, 2], x[~mask] = np.inf, np.nan
    f = pb.jit(lambda x, mask: jnp.mean(x, 0, where=mask[:, None]))
    np.testing.assert_allclose(f(x, mask), x[mask].mean(0), rtol=1e-5)
    assert sorted(reduced(f, x, mask)) == [(30,), (30, 5)]
    nothing = f(x, np.zeros_like(mask))
    assert np.isnan(nothing).all()


def test_every_reduction_and_what_lies_between():
    v, m = values(7), values(7) > 0
    with np.errstate(all="ignore"):
        expected = {
            "sum": np.exp(v).sum(),
            "prod": np.exp(v).prod(),
            "max": np.exp(v).max(),
            "min": np.exp(v).min(),
        }
    for name, wanted in expected.items():

        def f(v, name=name):
            wide = jnp.exp(jnp.broadcast_to(v[None, :, None], (3, 7, 2)))
            return getattr(jnp, name)(wide, 1)

        np.testing.assert_allclose(pb.jit(f)(v), np.full((3, 2), wanted), rtol=1e-6)
        assert reduced(f, v) == [(7,)]
    for name in ("any", "all"):

        def g(m, name=name):
            return getattr(jnp, name)(~jnp.broadcast_to(m[:, None], (7, 4)), axis=0)

        np.testing.assert_array_equal(pb.jit(g)(m), np.full(4, getattr(np, name)(~m)))
        assert reduced(g, m) == [(7,)]


def test_axes_that_differ_stay():
    x, v = values(6, 5), values(6)
    for f, shapes in (
        (lambda x, v: (x * v[:, None]).sum(0), [(6, 5)]),
        (lambda x, v: jnp.max(jnp.broadcast_to(v[:, None, None], (6, 5, 4)) + x[:, :, None], 0), [(6, 5)]),
        (lambda x, v: jnp.sum(jnp.broadcast_to(v[:, None], (6, 1)), 0), [(6, 1)]),
    ):
        np.testing.assert_allclose(pb.jit(f)(x, v), np.asarray(f(x, v)), rtol=1e-5)
        assert reduced(f, x, v) == shapes


def test_both_axes_repeat():
    v = values(4)
    found = pb.jit(lambda v: lax.reduce_max(lax.neg(lax.broadcast_in_dim(v, (2, 4, 3), (1,))), (0, 1)))(v)
    np.testing.assert_array_equal(found, np.full(3, (-v).max()))


def test_nothing_to_reduce():
    found = pb.jit(lambda v: jnp.exp(jnp.broadcast_to(v, (0, 4))).sum(0))(values(4))
    np.testing.assert_array_equal(found, np.zeros(4))
    assert pb.jit(lambda v: jnp.exp(jnp.broadcast_to(v[:, None], (3, 0))).sum(0))(values(3)).shape == (0,)


def test_derivatives():
    x, mask = values(8, 3), values(8) > 0

    def loss(x):
        return (jnp.mean(x, 0, where=mask[:, None]) ** 2).sum()

    mean = x[mask].mean(0)
    expected = np.where(mask[:, None], 2 * mean / mask.sum(), 0)
    np.testing.assert_allclose(pb.jit(pb.grad(loss))(x), expected, rtol=1e-5, atol=1e-7)


def matrices(*shape):
    """Well-conditioned ones."""
    return values(*shape) / 10 + 3 * np.eye(shape[-1], dtype="f4")


def operands(f, name, *args):
    """The shapes of the first operands of the primitives of a name."""
    closed = optimize_jaxpr(pb.make_jaxpr(f)(*args))
    return [e.invars[0].aval.shape for e in closed.jaxpr.eqns if e.primitive.name == name]


def test_repeated_matrices_are_solved_with_once():
    a, v = matrices(3, 5, 5), values(40, 5)
    expected = np.linalg.solve(a[None], v[:, None, :, None])[..., 0]
    for f in (
        lambda a, v: jnp.linalg.solve(a[None], v[:, None, :, None])[..., 0],
        lambda a, v: pb.vmap(lambda x: pb.vmap(lambda m: jnp.linalg.solve(m, x))(a))(v),
    ):
        assert operands(f, "lu", a, v) == [(3, 5, 5)]
        assert set(operands(f, "triangular_solve", a, v)) == {(3, 5, 5)}
        np.testing.assert_allclose(pb.jit(f)(a, v), expected, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
def test_right_hand_sides_of_a_repeated_triangle(axis, left):
    a, b = matrices(3, 4, 4), values(3, 6, 4, 2)
    b = b if left else b.swapaxes(2, 3)
    if axis == 0:
        b = b.swapaxes(0, 1)
    wide = np.expand_dims(a, axis)
    f = lambda a, b: lax.linalg.triangular_solve(
        jnp.broadcast_to(jnp.expand_dims(a, axis), (*b.shape[:2], 4, 4)), b, left_side=left, lower=True
    )
    lower = np.tril(wide)
    expected = np.linalg.solve(lower, b) if left else b @ np.linalg.inv(lower)
    assert operands(f, "triangular_solve", a, b) == [(3, 4, 4)]
    np.testing.assert_allclose(pb.jit(f)(a, b), expected, rtol=2e-4, atol=2e-5)


def test_decompositions_of_repeated_matrices():
    a = matrices(2, 4, 4)
    a = a + a.swapaxes(1, 2)
    f = lambda a: jnp.linalg.eigh(jnp.broadcast_to(a, (3, 2, 4, 4)))
    assert operands(f, "eigh", a) == [(2, 4, 4)]
    values_, vectors = pb.jit(f)(a)
    assert values_.shape == (3, 2, 4) and vectors.shape == (3, 2, 4, 4)
    np.testing.assert_allclose(values_, np.broadcast_to(np.linalg.eigvalsh(a), (3, 2, 4)), rtol=1e-4)
    inverse = pb.jit(lambda a: jnp.linalg.inv(jnp.broadcast_to(a, (3, 2, 4, 4))))(a)
    np.testing.assert_allclose(inverse, np.broadcast_to(np.linalg.inv(a), (3, 2, 4, 4)), rtol=1e-3, atol=1e-5)


def test_matrices_that_differ_stay():
    a = matrices(2, 3, 4, 4)
    f = lambda a: jnp.linalg.inv(a + jnp.arange(3.0)[:, None, None])
    assert operands(f, "lu", a) == [(2, 3, 4, 4)]
