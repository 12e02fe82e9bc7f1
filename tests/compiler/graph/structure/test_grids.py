"""What is computed of arrays that repeat the same elements is computed of each different one."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

X, Y = (np.random.default_rng(k).standard_normal(n).astype("f4") for k, n in enumerate((30, 50)))


def sizes(f, name):
    """The sizes of the results of a primitive in what is compiled."""
    jaxpr = optimize_jaxpr(pb.make_jaxpr(f)(X, Y)).jaxpr
    return [eqn.outvars[0].aval.size for eqn in jaxpr.eqns if eqn.primitive.name == name]


def mesh(x, y):
    return jnp.meshgrid(x, y, indexing="ij")


def turned(x, y):
    return [z.T for z in jnp.meshgrid(x, y)]


def tiled(x, y):
    return jnp.repeat(x[:, None], y.size, 1), jnp.tile(y, (x.size, 1))


def written(x, y):
    return jnp.broadcast_to(x[:, None], (30, 50)), jnp.broadcast_to(y, (30, 50))


@pytest.mark.parametrize("grid", [mesh, turned, tiled, written])
def test_functions_of_one_coordinate_are_computed_once_for_each(grid):
    def f(x, y):
        u, v = grid(x, y)
        return jnp.sin(2 * u + 1) * jnp.cos(v) + jnp.exp(u * v)

    assert (sizes(f, "sin"), sizes(f, "cos"), sizes(f, "exp")) == ([30], [50], [1500])
    want = np.sin(2 * X[:, None] + 1) * np.cos(Y) + np.exp(X[:, None] * Y)
    np.testing.assert_allclose(pb.jit(f)(X, Y), want, rtol=1e-5, atol=1e-5)
    for k in range(2):
        got = pb.jit(pb.grad(lambda x, y: f(x, y).sum(), k))(X, Y)
        plain = pb.grad(lambda x, y: (jnp.sin(2 * x + 1)[:, None] * jnp.cos(y) + jnp.exp(x[:, None] * y)).sum(), k)
        np.testing.assert_allclose(got, plain(X, Y), rtol=1e-3, atol=1e-3)


def test_bits_are_those_of_the_grid():
    f = lambda x, y: jnp.tanh(mesh(x, y)[0]) / jnp.sqrt(1 + mesh(x, y)[1] ** 2)
    with pb.disable_jit():
        want = f(X, Y)
    np.testing.assert_array_equal(pb.jit(f)(X, Y), want)


def test_what_two_arrays_repeat_in_other_ways_stays():
    assert sizes(lambda x, y: jnp.sin(x[:, None] + y), "sin") == [1500]
    assert sizes(lambda x, y: jnp.sin(jnp.broadcast_to(x, (2, 30))), "sin") == [60]  # twice is not worth a pass


def test_rows_that_are_only_read_are_multiplied_where_they_are_read():
    def both(x, y):
        return jnp.cumsum(jnp.broadcast_to(y, (30, 50)) * jnp.broadcast_to(y[::-1], (30, 50)), 0)

    assert sizes(both, "mul") == [1500]
    assert sizes(lambda x, y: both(x, jnp.sin(y)), "mul") == [50]
    np.testing.assert_allclose(pb.jit(both)(X, Y), np.cumsum(np.tile(Y * Y[::-1], (30, 1)), 0), rtol=1e-5)
