"""What is stored and what is computed again, as the nominal machine has it."""

import numpy as np
import pytest
from lowering_checks import check, lax, normal

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.graph.fuse.candidates import Use, is_repeated
from pullback.compiler.graph.fuse.survey import Survey
from pullback.core.avals import ShapedArray

F = np.float32
SMALL, CACHED, LARGE = 1000, 1 << 19, 1 << 25  # float32: in the first cache, in the last, in none


def choice(size, operations, uses, dtype="float32", rows=1, sources=1):
    aval = ShapedArray((size,), np.dtype(dtype))
    return is_repeated(aval, operations, [aval] * sources, uses(size), rows)


def twice(size):
    return [Use(size, 0), Use(size, 4 * size)]


def test_the_dearer_memory_is_the_more_is_repeated():
    most = {n: max(k for k in range(1000) if k == 0 or choice(n, k, twice)) for n in (SMALL, CACHED, LARGE)}
    assert most[SMALL] == 0 and 3 <= most[CACHED] < most[LARGE] < 100


def test_many_uses_long_rows_and_turned_ones_are_stored():
    assert choice(LARGE, 10, twice)
    assert not choice(LARGE, 10, lambda n: [Use(9 * n, 4 * n)])
    assert not choice(LARGE, 10, twice, rows=LARGE // 1000)  # a row waits in the first cache
    two = lambda turned: lambda n: [Use(n, 0), Use(n, 12 * n, turned)]
    assert choice(LARGE, 20, two(False), sources=3) and not choice(LARGE, 20, two(True), sources=3)


def variable_coefficients(u, k):
    q = 0.5 * (k[1:] + k[:-1]) * (u[1:] - u[:-1])
    return u[1:-1] + 0.1 * (q[1:] - q[:-1])


@pytest.mark.parametrize(("n", "stored"), [(1000, 1), (300_000, 0)])
def test_fluxes(n, stored):
    text = pb.jit(variable_coefficients).lower(normal(n), normal(n, seed=1)).as_text("nests")
    assert text.count("temporary") == stored


def test_results_are_the_same():
    x, w = normal(700, 300), normal(300, seed=1)

    def sums(x, w):
        d = x - w
        return (d * d).sum(0), (d * d * d).sum(1), d.T * d.T

    for found, asked in zip(pb.jit(sums)(x, w), sums(x.astype("f8"), w.astype("f8"))):
        np.testing.assert_allclose(found, asked, rtol=1e-4, atol=1e-3)
    u, k = normal(300_000), normal(300_000, seed=1)
    np.testing.assert_array_equal(
        pb.jit(variable_coefficients)(u, k), variable_coefficients(jnp.asarray(u), jnp.asarray(k))
    )


def test_an_array_and_its_transpose_are_read_in_nests_of_their_own():
    """Of a square matrix, too, whose transpose has the same shape."""

    def both(x):
        return (
            lax.mul(lax.transpose(x, (1, 0)), F(2)),
            lax.add(x, F(3)),
            lax.transpose(lax.transpose(x, (1, 0)), (1, 0)),
        )

    assert check(both, normal(100, 100)).nests == 2
    assert check(both, normal(1, 1)).nests == 1


def test_costs_that_double_with_each_step_stay_numbers():
    def chain(x):
        for _ in range(1200):
            x = lax.mul(lax.sub(x, F(0.5)), lax.add(x, F(0.5)))
        return x

    assert check(chain, normal(7)).nests == 1


def test_what_is_made_of_a_smaller_array_is_not_stored_for_its_sake():
    """The gradient of an energy of pairs adds distances weighted by [n, n] up by rows and by columns."""

    def energy(p):
        d = p[:, None] - p[None]
        return jnp.sum(1 / jnp.sqrt((d**2).sum(-1) + F(0.01)))

    def force(p):
        d = p[:, None] - p[None]
        return -2 * (((d**2).sum(-1) + F(0.01)) ** -1.5)[..., None] * d

    p = normal(300, 3)
    text = pb.jit(pb.grad(energy)).lower(normal(1500, 3)).as_text("nests")
    assert [line for line in text.splitlines() if "temporary" in line and "6750000" in line] == []
    np.testing.assert_allclose(pb.jit(pb.grad(energy))(p), force(p).sum(1), rtol=2e-4, atol=2e-2)


def test_of_cheap_values_of_one_dear_value_that_is_stored():
    """The gradient of a wrapped stencil: each of nine cotangents is a multiple of one, rolled."""

    def loss(x, k):
        taps = [k[i, j] * jnp.roll(x, (1 - i, 1 - j), (0, 1)) for i in range(3) for j in range(3)]
        return jnp.sum(jnp.square(sum(taps)))

    x, k = normal(160, 200), normal(3, 3, seed=1)
    gradient = pb.jit(pb.grad(loss))
    assert gradient.lower(x, k).as_text("nests").count("temporary") == 1
    with pb.enable_x64(True):
        want = pb.grad(loss)(x.astype("f8"), k.astype("f8"))
    np.testing.assert_allclose(gradient(x, k), want, rtol=1e-4, atol=1e-3)


def test_choices_among_many_pieces_cost_more():
    """e3nn joins products of 50 slices of joins of five pieces: one loop chose for each of its elements."""

    def cost(n):
        jaxpr = pb.make_jaxpr(lambda *xs: jnp.concatenate(xs))(*[jnp.ones(6 + k) for k in range(n)]).jaxpr
        return Survey(jaxpr, set()).costs[jaxpr.outvars[0]]

    assert cost(2) == cost(3) < cost(5) < cost(12) < cost(40)
