"""Operands that explicit axes cut differently, axes of which some are explicit, and what `out_sharding` settles: as JAX
0.10.2 has it."""

import re

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding, reshard
from pullback.sharding import PartitionSpec as P
from pullback.util.errors import ShardingTypeError

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
MIXED = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("given", "fun", "want"),
    [
        (P("x"), lambda v: v * 2, P("x", None)),  # types say all of it: in full
        (P(), lambda v: v * 2, P(None, None)),
        (P("y"), lambda v: v * 2, P("y")),  # what types do not say is written in short
        (P("y"), jnp.transpose, P(None, "y")),
        (P("x", "y"), lambda v: v.reshape(4, 4, 1), P("x", "y")),
        (P(("x", "y")), lambda v: v * 2, P(("x", "y"))),
        (P(("x", "y")), lambda v: jnp.cumsum(v, 1), P(("x", "y"))),
        (P(("x", "y")), lambda v: jax.grad(lambda w: jnp.sum(w**2))(v), P(("x", "y"))),
        (P(("x", "y")), lambda v: lax.scan(lambda c, _: (c + 1, None), v, None, length=2)[0], P(("x", "y"))),
    ],
)
def test_specs_of_results_over_axes_of_which_some_are_explicit(given, fun, want, jit):
    x = jax.device_put(np.arange(16, dtype=np.float32).reshape(4, 4), NamedSharding(MIXED, given))
    with jax.set_mesh(MIXED):
        out = (jax.jit(fun) if jit else fun)(x)
    assert out.sharding.spec == want
    np.testing.assert_array_equal(out, fun(jnp.asarray(np.asarray(x))))


def test_reshard_says_nothing_of_axes_that_are_not_explicit():
    x = jax.device_put(np.ones((4, 4), np.float32), NamedSharding(MIXED, P("y")))
    with jax.set_mesh(MIXED):
        out = jax.jit(lambda v: reshard(v, P(None, "x")))(x)
    assert out.sharding.spec == P("y", "x") and str(jax.typeof(out)) == "float32[4,4@x]"


SQUARE = np.arange(16, dtype=np.float32).reshape(4, 4) + 1


@pytest.mark.parametrize(
    ("fun", "want"),
    [
        (lambda x, y: jnp.argsort(x, 1), P("x", None)),
        (lambda x, y: jnp.argpartition(x, 1, 1), P("x", None)),
        (lambda x, y: x // y[0], P("x", "y")),
        (lambda x, y: jnp.divmod(x, y[0])[1], P("x", "y")),
        (lambda x, y: jnp.isclose(x, y[0]), P("x", "y")),
        (lambda x, y: x.astype(int) ** y[0].astype(int), P("x", "y")),
        (lambda x, y: jnp.isfinite(x.astype(int)), P("x", None)),
        (lambda x, y: jnp.isneginf(x.astype(int)), P("x", None)),
        (lambda x, y: lax.tile(x, (1, 2)), P("x", None)),
        (lambda x, y: jax.vmap(jnp.tril)(jnp.stack([x, x], 1)), P("x", None, None)),
        (lambda x, y: jax.vmap(lambda r, q: jnp.hypot(r, 2.0) + q, (0, None))(x, y[0]), P("x", "y")),
        (lambda x, y: jax.grad(lambda x, y: jnp.sum(x**y))(x, jnp.abs(x + y)), P("x", None)),
        (lambda x, y: jax.grad(lambda y: jnp.sum(jnp.prod(y, 0)))(y), P(None, "y")),
        (lambda x, y: jax.grad(lambda y: jnp.sum(jnp.prod(y / 9, 1)))(y), P(None, "y")),
        (lambda x, y: jax.grad(lambda x: jnp.sum(jnp.append(x, x.astype(int), 1)))(x), P("x", None)),
        (lambda x, y: jax.vmap(lambda r: 2.0)(x), P(None)),  # JAX repeats scalars, and does not cut them
        (lambda x, y: jax.vmap(lambda r: jnp.ones(3))(x), P("x", None)),
    ],
)
def test_functions_of_operands_that_are_cut_differently(fun, want):
    x, y = SQUARE / 3, SQUARE[::-1] / 5
    with jax.set_mesh(MESH):
        out = jax.jit(fun)(jax.device_put(x, P("x")), jax.device_put(y, P(None, "y")))
    assert out.sharding.spec == want
    np.testing.assert_allclose(out, fun(jnp.asarray(x), jnp.asarray(y)), rtol=1e-5)  # sums have another order


def test_copies_along_a_cut_dimension_say_which():
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError, match="cannot be sharded on dimension 0"):
        jax.make_jaxpr(lambda x: lax.tile(x, (2, 1)))(jax.device_put(SQUARE, P("x")))


def test_what_is_written_at_a_place_of_a_cut_dimension_names_at():
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError, match=re.escape("Use `.at[...].set/add/mul/...")):
        jax.jit(lambda x: x.at[0].set(1.0))(jax.device_put(SQUARE, P("x")))


SETTLED = {
    "product": lambda x, w: jnp.einsum("ij,jk->ik", x, w, out_sharding=P("x", None)),
    "whole product": lambda x, w: jnp.dot(x, w, out_sharding=P(None, None)),
    "two products": lambda x, w: jnp.einsum(
        "ij,jk->ik",
        jnp.tanh(jnp.einsum("ij,kj->ik", x, x, out_sharding=P("x", None))),
        reshard(w, P()),
        out_sharding=P("x", "y"),
    ),
    "reshaped": lambda x, w: jnp.reshape(x, (16,), out_sharding=P(("x", "y"))),
    "rows": lambda x, w: x.at[jnp.array([0, 3])].get(out_sharding=P("x", None)),
    "resharded": lambda x, w: reshard(x, P(None, "y")) * 2,
}
AROUND = {
    "jit in grad": lambda f: jax.grad(lambda x, w: jnp.sum(jax.jit(f)(x, w) ** 2), argnums=(0, 1)),
    "jit in jit of grad": lambda f: jax.jit(jax.grad(lambda x, w: jnp.sum(jax.jit(f)(x, w) ** 2), argnums=(0, 1))),
    "checkpoint": lambda f: jax.jit(jax.grad(lambda x, w: jnp.sum(jax.checkpoint(f)(x, w) ** 2), argnums=(0, 1))),
    "jvp": lambda f: lambda x, w: jax.jvp(jax.jit(f), (x, w), (x, w)),
    "linearize": lambda f: lambda x, w: jax.linearize(jax.jit(f), x, w)[1](x, w),
    "scan": lambda f: jax.jit(
        jax.grad(lambda x, w: jnp.sum(lax.scan(lambda c, _: (c, f(x * 2, w)), 0.0, None, length=2)[1]))
    ),
    "cond": lambda f: jax.jit(jax.grad(lambda x, w: jnp.sum(lax.cond(True, f, lambda *a: 2 * f(*a), x, w)))),
    "hessian times vector": lambda f: jax.jit(
        lambda x, w: jax.jvp(jax.grad(lambda x: jnp.sum(jnp.sin(f(x, w)))), (x,), (x,))[1]
    ),
    "vmap": lambda f: lambda x, w: jax.vmap(f, (0, None))(jnp.stack([x * 2, x + 1]), w),
    "vmap of jit": lambda f: jax.jit(lambda x, w: jax.vmap(jax.jit(f), (0, None))(jnp.stack([x * 2, x + 1]), w)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", SETTLED)
def test_what_out_sharding_settles_stays_settled_in_transformations(name, around):
    x, w = SQUARE / 17, SQUARE.T / 13
    with jax.set_mesh(MESH):
        args = jax.device_put(x, P("x", "y")), jax.device_put(w, P("y", None))
        found = jax.tree.leaves(AROUND[around](SETTLED[name])(*args))
        if "vmap" in around:
            inner = SETTLED[name](*args).sharding.spec
            assert found[0].sharding.spec == P(None, *inner)
    plain = {
        "product": lambda x, w: x @ w, "whole product": lambda x, w: x @ w, "reshaped": lambda x, w: x.reshape(16),
        "two products": lambda x, w: jnp.tanh(x @ x.T) @ w, "rows": lambda x, w: x[jnp.array([0, 3])],
        "resharded": lambda x, w: x * 2,
    }[name]  # fmt: skip
    want = jax.tree.leaves(AROUND[around](plain)(jnp.asarray(x), jnp.asarray(w)))
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)  # sums have another order


def test_eager_operands_that_were_just_made_have_types():
    with jax.set_mesh(MESH):
        x = jax.device_put(SQUARE, P("x", "y"))
        for k in range(3):
            assert jnp.stack([x * (k + 2), x + 1]).sharding.spec == P(None, "x", "y")


def test_arrays_of_lists_of_arrays_are_cut_as_these_are():
    with jax.set_mesh(MESH):
        x = jax.device_put(np.arange(4.0), P("x"))
        for made in (jnp.array([x, x * 2]), jnp.asarray([x, x * 2]), jax.jit(lambda v: jnp.array([v, v * 2]))(x)):
            assert made.sharding.spec == P(None, "x")
            np.testing.assert_array_equal(made, [np.arange(4.0), 2 * np.arange(4.0)])
        assert jnp.array([[1.0, 2.0]]).sharding.spec == P()
