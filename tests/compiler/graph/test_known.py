"""What follows from constants alone is computed when a program is compiled, where that takes longer than to read it."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)
W = RNG.normal(size=40).astype("f4")


def kronecker(n):
    square = np.array([[1, 1], [1, -1]], "f4")
    h = jnp.asarray(square)
    while h.shape[0] < n:
        h = jnp.kron(h, square)
    return h


KNOWN = {
    "angles": lambda x: x * jnp.cos(jnp.arange(x.shape[0])[:, None] * W),
    "shared": lambda x: x * jnp.sin(jnp.outer(jnp.arange(50), W)) + jnp.cos(jnp.outer(jnp.arange(50), W)),
    "window": lambda x: x * (0.5 - 0.5 * jnp.cos(2 * np.pi * jnp.arange(40) / 40) ** 3),
    "result": lambda x: (x + 1, jnp.exp(-(jnp.outer(jnp.arange(50), W) ** 2))),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_same_bits(name):
    x = RNG.normal(size=(50, 40)).astype("f4")
    f = KNOWN[name]
    found = {eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(x)).jaxpr.eqns}
    assert not found & {"cos", "sin", "exp"}
    with pb.disable_jit():
        want = f(jnp.asarray(x))
    for got, each in zip(pb.tree.leaves(pb.jit(f)(x)), pb.tree.leaves(want)):
        np.testing.assert_array_equal(got, each)


def test_chains_of_products():
    """A matrix that would be computed anew for each vector is one in memory."""
    f = lambda x: kronecker(64) @ x
    x = RNG.normal(size=64).astype("f4")
    assert "dot_general" in str(optimize_jaxpr(pb.make_jaxpr(f)(x)))
    np.testing.assert_allclose(pb.jit(f)(x), np.asarray(kronecker(64)) @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.where(jnp.arange(50)[:, None] >= jnp.arange(40), x, 0),  # cheap
        lambda x: x + jnp.cos(x) * jnp.arange(40),
        lambda x: x * (jnp.outer(jnp.arange(50), W)).sum(0),  # in the order of the schedule
        lambda x: x[0, 0] * jnp.cos(jnp.arange(2000)[:, None] * jnp.arange(2000.0)),  # large
    ],
)
def test_what_stays(f):
    x = np.zeros((50, 40), "f4")
    closed = optimize_jaxpr(pb.make_jaxpr(f)(x))
    assert all(np.size(c) <= 2000 for c in closed.consts)


PLACES = {
    "quotients": (lambda x: x[jnp.arange(2000) // 40, jnp.arange(2000) % 40], lambda x: x.reshape(-1)),
    "columns": (lambda x: x[jnp.arange(2000) % 50, jnp.arange(2000) // 50], lambda x: x.T.reshape(-1)),
    "unraveled": (lambda x: x[jnp.unravel_index(jnp.arange(2000), (50, 40))], lambda x: x.reshape(-1)),
    "backwards": (
        lambda x: x.reshape(-1)[1999 - jnp.arange(2000) % 400 * 5],
        lambda x: np.tile(x.ravel()[1999::-5], 5),
    ),
    "mapped": (
        lambda x: pb.vmap(lambda k: x[k // 38 + 1, k % 38 + 1])(jnp.arange(48 * 38)),
        lambda x: x[1:-1, 1:-1].reshape(-1),
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_places_that_count_along_axes_are_no_constants(name):
    f, plain = PLACES[name]
    x = RNG.normal(size=(50, 40)).astype("f4")
    closed = optimize_jaxpr(pb.make_jaxpr(f)(x))
    assert not any(np.size(const) > 1 for const in closed.consts)
    np.testing.assert_array_equal(pb.jit(f)(x), plain(x))


def test_other_places_are_constants():
    f = lambda x: x[jnp.arange(2000) ** 2 % 50, jnp.arange(2000) * 7 % 40]
    x = RNG.normal(size=(50, 40)).astype("f4")
    assert any(np.size(const) == 2000 for const in optimize_jaxpr(pb.make_jaxpr(f)(x)).consts)
    np.testing.assert_array_equal(pb.jit(f)(x), x[np.arange(2000) ** 2 % 50, np.arange(2000) * 7 % 40])
