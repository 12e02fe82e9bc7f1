"""Values near arrays along a dimension that is cut: right, cut as these, and edges alone are exchanged."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P

A = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
A[3, 2], A[9, 5] = np.inf, -0.0
MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
ROW, COLUMN = 4 * 4, 8 * 4  # bytes of the edges of a part [8, 4]


def inner(x):
    return jnp.pad(x, 1)[1:-1, 2:] + jnp.pad(x, 1)[2:, 1:-1] - x


def wrapped(x):
    p = jnp.pad(x, 1, mode="wrap")
    return p[2:, 1:-1] - 2 * p[1:-1, :-2] * p[2:, 2:]


def flux(x):
    p = jnp.pad(x, ((1, 1), (0, 0)), mode="edge")
    f = jnp.tanh(p[1:] - p[:-1])  # one more than x has
    return x + f[1:] - f[:-1]


def reflected(x):
    """What is larger than x is read as a whole, too, and updated."""
    b = jnp.pad(x, ((1, 0), (0, 0)), mode="reflect")
    j = b.at[1:-1].add(b[2:] * 0.5)
    return j[1:] - j[:-1]


CASES = {
    "differences": (lambda x: jnp.abs(x[1:] - x[:-1]).max(), ROW + 4 * 3),
    "in two dimensions": (lambda x: jnp.tanh(x[1:, 1:] - x[:-1, :-1]).sum(), None),
    "reductions along the other dimension": (lambda x: (x[1:] - x[:-1]).max(1), None),
    "products of what is near": (lambda x: jnp.prod(x[2:] * 0.5, 0), None),
    "logical": (lambda x: ((x[1:] > x[:-1]).any(), (x[1:] >= x[:-1]).all(0)), None),
    "whole numbers": (lambda x: jnp.min(jnp.nan_to_num(x)[1:].astype(int) // 2), None),
    "update of the inner part": (lambda x: x.at[1:-1].set(x[2:] + x[:-2]), None),
    "added to the inner part": (lambda x: x.at[1:-1, 1:-1].add(x[2:, 1:-1] * x[1:-1, :-2]), None),
    "edges": (lambda x: x.at[0].set(1).at[-1].set(x[0] * 2).at[:, -1].add(3), None),
    "zeros around": (inner, ROW + COLUMN),
    "wrapped": (wrapped, None),
    "at the edge as the last": (lambda x: jnp.pad(x, ((1, 1), (0, 0)), mode="edge")[2:] - x, None),
    "fluxes": (flux, None),
    "every second of few": (lambda x: jnp.concatenate([x[:3:2] * 1, x[2:]]) - x, None),
    "edges of every second": (lambda x: jnp.concatenate([x[:3:2], x[2:]]) - x, None),
    "reflected": (reflected, None),
    "chosen": (lambda x: jnp.where(x[1:] > 0, x[:-1], 0.5).sum(), None),
    "results of another size": (lambda x: x[1:] - x[:-1], None),
    "used twice": (lambda x: ((d := x[1:] - x[:-1]).sum(), jnp.sort(d, 0)), None),
    "few rows that are cut, put elsewhere": (lambda x: (x.at[1:3].set(x[:2]), x.at[7:9].set(x[6:8])), None),
    "few columns, added elsewhere": (lambda x: x.at[:, 1:5].add(x[:, :4]), None),
    "joined": (lambda x: jnp.concatenate([x[:1], x[1:] - x[:-1]]), None),
    "a loop": (
        lambda x: lax.fori_loop(0, 3, lambda _, u: u.at[1:-1].add(0.1 * (u[2:] - u[:-2])), jnp.nan_to_num(x)),
        None,
    ),
    "far slices": (lambda x: x[8:] * x[:8], None),
    "of nothing": (lambda x: x[16:].sum() + x[:0].sum(), None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("spec", [P("x", "y"), P(("x", "y")), P(None, "y"), P("y")])
def test_values_near_a_cut_array(name, spec):
    f, most = CASES[name]
    x = jax.device_put(A, NamedSharding(MESH, spec))
    made = jax.jit(f).lower(x).compile()
    for got, want in zip(jax.tree.leaves(made(x)), jax.tree.leaves(jax.jit(f)(A)), strict=True):
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)  # parts are summed by themselves
    if most is not None and spec == P("x", "y"):
        assert made.cost_analysis()["collective bytes"] <= most


@pytest.mark.parametrize("f", [inner, wrapped, flux, lambda x: x.at[1:-1].set(x[2:] + x[:-2])])
def test_results_and_derivatives_are_cut_as_the_array(f):
    x = jax.device_put(jnp.nan_to_num(A, posinf=2.0), NamedSharding(MESH, P("x", "y")))
    for g in (f, jax.grad(lambda x: (f(x) ** 2).sum())):
        made = jax.jit(g).lower(x).compile()
        out = made(x)
        assert out.sharding.is_equivalent_to(x.sharding, 2)
        np.testing.assert_allclose(out, jax.jit(g)(np.asarray(x)), 1e-4, 1e-4)
        assert made.cost_analysis()["collective bytes"] <= 9 * (ROW + COLUMN)  # on small parts, as these are


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scans(reverse):
    v = np.random.default_rng(1).normal(size=64).astype(np.float32)
    x = jax.device_put(v, NamedSharding(MESH, P(("x", "y"))))
    f = jax.jit(lambda x: lax.associative_scan(jnp.add, x, reverse=reverse))
    made = f.lower(x).compile()
    assert made(x).sharding.is_equivalent_to(x.sharding, 1)
    np.testing.assert_allclose(made(x), f(v), 1e-5, 1e-5)
    assert made.cost_analysis()["collective bytes"] <= 5 * 64 * 4 / 3  # gathered once: 192


def test_slices_of_keys():
    keys = jax.device_put(jax.random.split(jax.random.key(0), 8), NamedSharding(MESH, P("x")))
    got = jax.jit(lambda k: jax.random.key_data(k[1:]))(keys)
    np.testing.assert_array_equal(got, jax.random.key_data(keys)[1:])
