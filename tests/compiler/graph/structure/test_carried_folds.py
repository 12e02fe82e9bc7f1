"""Folds over the steps of a loop are carried by it."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 7, 5)).astype("f4")


def steps(x):
    """Sums so far, and twice these, of each step."""
    return pb.lax.scan(lambda c, row: (c + row, (c + row, 2 * c)), jnp.zeros(x.shape[1:], x.dtype), x)[1]


FOLDS = {
    "max": lambda x, np: x.max(0),
    "min over all": lambda x, np: x.min(),
    "count": lambda x, np: (x > 1).sum(0),
    "count over two axes": lambda x, np: (np.abs(x) > 1).sum((0, 2)),
    "any": lambda x, np: (x > 3).any(0),
    "all": lambda x, np: (x < 3).all((0, 1)),
}


def loop_of(f, *args):
    """The only loop of a program after all passes."""
    (eqn,) = [eqn for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns if eqn.primitive.name == "scan"]
    return eqn


OF_NONE = [(name, 0) for name in FOLDS if not name.startswith(("max", "min"))]  # these need elements


@pytest.mark.parametrize("name, length", [*((name, n) for name in FOLDS for n in (1, 9)), *OF_NONE])
def test_no_step_is_stored(name, length):
    x = X[:length]

    def f(x):
        return FOLDS[name](steps(x)[0], jnp)

    if length > 1:
        loop = loop_of(f, x)
        assert len(loop.outvars) == loop.params["num_carry"]
    np.testing.assert_array_equal(pb.jit(f)(x), FOLDS[name](np.cumsum(x, 0, dtype="f4"), np))


def test_whole_numbers_are_summed_and_numbers_that_are_not_a_number_stay():
    x = RNG.integers(-99, 99, X.shape).astype("i1")
    got = pb.jit(lambda x: steps(x)[0].sum(0))(x)
    np.testing.assert_array_equal(got, np.cumsum(x, 0, dtype="i1").sum(0, dtype=np.asarray(got).dtype))
    y = X.copy()
    y[3, 2, 1] = np.nan
    np.testing.assert_array_equal(pb.jit(lambda x: steps(x)[0].max(0))(y), np.cumsum(y, 0, dtype="f4").max(0))


def test_what_is_read_otherwise_or_depends_on_the_order_of_sums_is_stored():
    for f in (lambda x: (steps(x)[0].max(0), steps(x)[0]), lambda x: steps(x)[0].sum(0)):
        loop = loop_of(f, X)
        assert len(loop.outvars) > loop.params["num_carry"]


def test_two_folds_beside_what_is_kept():
    def f(x):
        sums, twice = steps(x)
        return sums.max(0), twice

    most, twice = pb.jit(f)(X)
    sums = np.cumsum(X, 0, dtype="f4")
    np.testing.assert_array_equal(most, sums.max(0))
    np.testing.assert_array_equal(twice[1:], 2 * sums[:-1])


def test_loops_in_loops():
    def outer(c, x):
        inner = pb.lax.scan(lambda c, row: (c + row, c), jnp.zeros(5), x)[1]
        return c + 1, inner.max(0) + c

    got = pb.jit(lambda x: pb.lax.scan(outer, 0.0, x)[1].max(0))(X)
    sums = np.cumsum(X, 1, dtype="f4")
    before = np.concatenate([np.zeros((9, 1, 5), "f4"), sums[:, :-1]], 1)
    np.testing.assert_allclose(got, (before.max(1) + np.arange(9, dtype="f4")[:, None]).max(0), rtol=1e-6)
