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
