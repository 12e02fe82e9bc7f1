"""Numbers that follow from places are made in the loops that read them."""

import numpy as np

import pullback as pb
from pullback import lax
from pullback import numpy as jnp
from pullback.compiler import pipelines


def loops_of(f, *args):
    closed = pipelines.optimize_jaxpr(pb.make_jaxpr(f)(*args))
    return [eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name in ("scan", "while")]


X = np.linspace(0, 1, 30, dtype=np.float32)


def test_a_scan_makes_its_places():
    def f(x):
        i = jnp.arange(30)
        return lax.scan(lambda c, v: (jnp.where(i - 1 > 3, c * v, c), None), x, x)[0]

    (scan,) = loops_of(f, X)
    assert scan.params["num_consts"] == 0
    want = X.copy()
    for v in X:
        want = np.where(np.arange(30) - 1 > 3, want * v, want)
    np.testing.assert_allclose(pb.jit(f)(X), want, rtol=1e-6)


def test_a_while_loop_makes_its_places_in_both_parts():
    def f(x):
        i = jnp.arange(30)
        return lax.while_loop(lambda c: jnp.sum(jnp.where(i > 5, c, 0)) < 50, lambda c: c + i, x)

    (loop,) = loops_of(f, X)
    assert loop.params["cond_nconsts"] == loop.params["body_nconsts"] == 0
    want = X.copy()
    while want[6:].sum() < 50:
        want = want + np.arange(30)
    np.testing.assert_allclose(pb.jit(f)(X), want, rtol=1e-6)


def test_dear_values_and_data_stay_outside():
    def f(x):
        table = jnp.exp(jnp.arange(30) * 0.1)
        return lax.scan(lambda c, v: (c * table + v, None), x, x)[0]

    (scan,) = loops_of(f, X)
    assert scan.params["num_consts"] == 1


def test_places_kept_in_bounds_are_not_asked_whether_they_are_negative():
    """jnp.clip says so already: index arithmetic is short enough to be repeated."""

    def f(x, k):
        return x[jnp.clip(jnp.arange(30) - k, 0, 29)]

    closed = pipelines.optimize_jaxpr(pb.make_jaxpr(f)(X, 3))
    assert not any(eqn.primitive.name == "select_n" for eqn in closed.jaxpr.eqns)
    g = pb.jit(lambda x, k: x[jnp.minimum(jnp.arange(30) - k, 29)])  # counts from the end
    np.testing.assert_array_equal(g(X, 3), X[np.minimum(np.arange(30) - 3, 29)])
