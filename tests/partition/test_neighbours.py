"""Rotations and running sums along a dimension that is cut: values of whole arrays, and few bytes moved."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

A = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)


def on_mesh(x, spec):
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.device_put(x, NamedSharding(mesh, spec))


def received(f, *args):
    return jax.jit(f).lower(*args).compile().cost_analysis()["collective bytes"]


@pytest.mark.parametrize("spec", [P("x", "y"), P(("x", "y")), P(None, "y"), P(("y", "x"))])
def test_rotations(spec):
    x = on_mesh(A, spec)
    for axis, n in ((0, 16), (1, 8)):
        for shift in (0, 1, 3, n // 2, n - 1, -1):
            out = jax.jit(lambda x, shift=shift, axis=axis: jnp.roll(x, shift, axis))(x)
            assert out.sharding == x.sharding
            np.testing.assert_array_equal(out, np.roll(A, shift, axis))
    whole = np.roll(A, (3, -2), (0, 1))
    np.testing.assert_array_equal(jax.jit(lambda x: jnp.roll(x, (3, -2), (0, 1)))(x), whole)


def heat(x):
    def step(u, _):
        near = sum(jnp.roll(u, s, a) for s in (1, -1) for a in (0, 1))
        u = lax.cond(near[0, 0] > 0, lambda u: u + 0.1 * (near - 4 * u), lambda u: jnp.roll(u, 1, 0), u)
        return u, u[0]

    return lax.scan(step, x, None, length=3)


def test_a_stencil_in_a_loop_moves_its_edges():
    x = on_mesh(A, P("x", "y"))
    for got, want in zip(jax.jit(heat)(x), jax.jit(heat)(A), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-6)
    found = jax.jit(jax.grad(lambda x: (heat(x)[0] ** 2).sum()))(x)
    np.testing.assert_allclose(found, jax.grad(lambda x: (heat(x)[0] ** 2).sum())(A), 1e-4, 1e-4)
    edges = 2 * (4 + 8) * 4  # a row of 4 and a column of 8 numbers, each to both sides
    assert received(lambda x: sum(jnp.roll(x, s, a) for s in (1, -1) for a in (0, 1)), x) == edges


RUNNING = {name: getattr(lax, name) for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")}
KINDS = [(name, dtype) for name in RUNNING for dtype in (np.float32, np.int32, np.complex64)]


@pytest.mark.parametrize(("name", "dtype"), KINDS[:-2])  # cumlogsumexp is one of real numbers here
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(name, dtype, reverse):
    given = (A * 2).astype(dtype)
    if dtype == np.float32:
        given[5, 3] = np.nan if name == "cummax" else given[5, 3]
    for spec in (P("x", "y"), P(("x", "y")), P(None, ("y", "x"))):
        x = on_mesh(given, spec)
        for axis in (0, 1):
            out = jax.jit(lambda x, axis=axis: RUNNING[name](x, axis, reverse))(x)
            assert out.sharding.is_equivalent_to(x.sharding, 2)
            # parts are summed by themselves: rounding in another order
            np.testing.assert_allclose(out, RUNNING[name](given, axis, reverse), 1e-4, 1e-4)


def test_running_sums_move_one_element_of_each_line():
    x = on_mesh(A, P("x"))
    assert received(lambda x: jnp.cumsum(x, 0), x) == 8 * 4
    np.testing.assert_allclose(
        jax.jit(jax.grad(lambda x: (jnp.cumsum(x, 0) ** 2).sum()))(x),
        jax.grad(lambda x: (jnp.cumsum(x, 0) ** 2).sum())(A),
        1e-4,
        1e-4,
    )
