"""Loops that go on until a counter reaches a known number are those of a known number of steps."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.pipelines import optimize_jaxpr

X = np.random.default_rng(0).standard_normal(40).astype("f4")


def loop(goes_on, start, after):
    def f(x):
        body = lambda c: (after(c[0]), jnp.sin(c[1]) + x[c[0] % 40])
        return lax.while_loop(lambda c: goes_on(c[0]), body, (start, jnp.float32(0)))

    return f


COUNTED = {
    "below": loop(lambda i: i < 20, 0, lambda i: i + 1),
    "from the other side": loop(lambda i: i < 20, 3, lambda i: 1 + i),
    "up to": loop(lambda i: i <= 20, 2, lambda i: i + 3),
    "down": loop(lambda i: i > 0, 30, lambda i: i - 1),
    "down to": loop(lambda i: i >= 5, 30, lambda i: i - 4),
    "other than": loop(lambda i: i != 12, 0, lambda i: i + 4),
    "unsigned": loop(lambda i: i < 20, np.uint8(250), lambda i: i + np.uint8(1)),
    "never": loop(lambda i: i < 0, 0, lambda i: i + 1),
}
OPEN = {
    "passes": loop(lambda i: (i != 12) & (i < 40), 0, lambda i: i + 5),
    "grows": loop(lambda i: i < 20, 0, lambda i: i * 2 + 1),
    "wraps": loop(lambda i: i >= np.uint8(200), np.uint8(250), lambda i: i + np.uint8(1)),
    "given": lambda x: lax.while_loop(lambda c: c[0] < x[0] * 0 + 5, lambda c: (c[0] + 1, c[1] * 2), (0.0, x))[1],
}


def primitives(f):
    return {eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(X)).jaxpr.eqns}


@pytest.mark.parametrize("name", COUNTED | OPEN)
def test_results_stay(name):
    f = (COUNTED | OPEN)[name]
    with pb.disable_jit():
        want = f(jnp.asarray(X))
    for got, each in zip(pb.tree.leaves(pb.jit(f)(X)), pb.tree.leaves(want)):
        np.testing.assert_allclose(got, each, rtol=1e-6)
    assert ("while" in primitives(f)) == (name in OPEN)


def test_what_does_not_wait_is_a_sum():
    f = lambda x: lax.while_loop(lambda c: c[0] < 40, lambda c: (c[0] + 1, c[1] + x[c[0]] ** 2), (0, jnp.float32(0)))[1]
    assert not primitives(f) & {"while", "scan"}
    np.testing.assert_allclose(pb.jit(f)(X), (X**2).sum(), rtol=1e-5)
