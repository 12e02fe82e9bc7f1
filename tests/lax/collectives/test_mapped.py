"""shard_map as an equation: what its jaxpr shows, and what transformations make of it."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AbstractMesh, AxisType
from pullback.sharding import PartitionSpec as P

MESH = AbstractMesh((4,), ("i",))
X = np.arange(8, dtype=np.float32) / 3


def mapped(f, in_specs=P("i"), out_specs=P("i"), mesh=MESH, **options):
    return jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def only(closed):
    (eqn,) = closed.eqns
    return eqn


def test_equation():
    eqn = only(jax.make_jaxpr(mapped(lambda x, y: lax.psum(x * y, "i"), (P("i"), P()), P()))(X, X[:2]))
    assert eqn.primitive.name == "shard_map" and eqn.params["in_specs"] == (P("i"), P())
    assert {k: eqn.params[k] for k in ("check_vma", "mesh", "newly_manual_axes", "out_specs")} == {
        "check_vma": True,
        "mesh": MESH,
        "newly_manual_axes": frozenset("i"),
        "out_specs": (P(),),
    }
    inner = eqn.params["jaxpr"]
    assert [e.primitive.name for e in inner.eqns] == ["pvary", "mul", "psum_invariant"]
    assert [str(v.aval) for v in inner.invars] == ["float32[2]{V:i}", "float32[2]"]
    unchecked = only(jax.make_jaxpr(mapped(lambda x: lax.psum(x, "i"), out_specs=P(), check_vma=False))(X))
    assert [e.primitive.name for e in unchecked.params["jaxpr"].eqns] == ["psum"]


def test_transformations_are_of_the_jaxpr():
    sine = mapped(jnp.sin)
    tangent = only(jax.make_jaxpr(lambda x: jax.jvp(sine, (x,), (x,)))(X))
    assert tangent.params["in_specs"] == tangent.params["out_specs"] == (P("i"), P("i"))
    batched = only(jax.make_jaxpr(jax.vmap(sine))(np.stack([X, X])))
    assert batched.params["in_specs"] == (P(None, "i"),) and batched.params["jaxpr"].in_avals[0].shape == (2, 2)
    names = [e.primitive.name for e in jax.make_jaxpr(jax.grad(lambda x: sine(x).sum()))(X).eqns]
    assert names.count("shard_map") == 2
    unused = jax.make_jaxpr(lambda x: mapped(lambda y: (y, jnp.sin(y)), out_specs=(P("i"), P("i")))(x)[0])(X)
    assert only(unused).primitive.name == "shard_map"


@pytest.mark.parametrize("check", [True, False])
def test_residuals_that_are_numbers(check):
    def f(x, w):
        s = jnp.sin(x.sum())  # one number for each device, wanted by the backward pass
        return s * w * x

    run = mapped(f, (P("i"), P()), check_vma=check)
    plain = lambda x, w: jnp.concatenate([f(part, w) for part in jnp.split(x, 4)])
    for wanted in (0, 1):
        expected = jax.grad(lambda *a: (plain(*a) ** 2).sum(), wanted)(X, np.float32(2))
        for grad in (jax.grad, lambda g, n: jax.jit(jax.grad(g, n))):
            found = grad(lambda *a: (run(*a) ** 2).sum(), wanted)(X, np.float32(2))
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("check", [True, False])
def test_second_derivatives(check):
    run = mapped(lambda x: lax.psum((jnp.sin(x) * x).sum(), "i"), out_specs=P(), check_vma=check)
    expected = jax.hessian(lambda x: (jnp.sin(x) * x).sum())(X)
    np.testing.assert_allclose(jax.hessian(run)(X), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jacfwd(jax.grad(run))(X), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("check", [True, False])
def test_cotangents_of_what_is_equal_on_all_devices_and_stacked(check):
    def total(x):  # each device has the sum; the results of all lie one after the other
        return lax.psum(x, "i"), lax.scan(lambda c, v: (c + lax.psum(v, "i"), c), jnp.zeros(()), x)[0][None]

    f = mapped(total, out_specs=(P("i"), P("i")), check_vma=check)

    def weighted(sums, last):
        return (sums * jnp.cos(X)).sum() + (last * jnp.sin(X[:4])).sum()

    def plain(x):
        sums = x.reshape(4, 2).sum(0)
        return weighted(jnp.tile(sums, 4), jnp.tile(sums.sum(), 4))

    for grad in (jax.grad, lambda g: jax.jit(jax.grad(g))):
        np.testing.assert_allclose(grad(lambda x: weighted(*f(x)))(X), jax.grad(plain)(X), rtol=1e-5)


def test_updates_vary_as_their_array():
    def types(x):
        for y in (x.at[...].set(1.0), x.at[0].set(0.0), jnp.zeros(2).at[:].set(x)):
            assert jax.typeof(y).vma == {"i"}
        return x

    jax.make_jaxpr(mapped(types))(X)


VARYING = {
    "a combination of the user's": lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b + 0 * b, (0,)),
    "windows": lambda x: lax.reduce_window(x, np.float32(0), lambda a, b: a + b + 0 * b, (1,), (1,), "SAME"),
    "gradients of sums": lambda x: jax.grad(lambda v: v.sum())(x),
    "random loops": lambda x: jax.random.poisson(jax.random.key(0), x),
    "solvers": lambda x: jax.scipy.sparse.linalg.bicgstab(lambda v: 2 * v, x)[0],
    "linear solves": lambda x: lax.custom_linear_solve(lambda v: 2 * v, x, lambda f, v: v / 2),
}


@pytest.mark.parametrize("name", VARYING)
def test_what_varies_gives_what_varies(name):
    def f(x):
        y = VARYING[name](x)
        assert jax.typeof(y).vma == {"i"}
        return jnp.broadcast_to(y, x.shape)

    found = jax.jit(mapped(f, mesh=jax.make_mesh((1,), ("i",), (AxisType.Auto,))))(X[:2])
    np.testing.assert_allclose(found, jnp.broadcast_to(VARYING[name](X[:2]), (2,)), rtol=1e-5)


def test_carries_of_users_say_how_they_vary():
    with pytest.raises(TypeError, match=r"manual axis types do not match\n.*jax.lax.pcast.* makes val vary"):
        jax.make_jaxpr(mapped(lambda x: lax.fori_loop(0, 2, lambda i, c: c + x, jnp.zeros(2))))(X)


def test_spmd_axis_name():
    grid = AbstractMesh((4, 2), ("x", "y"))
    run = mapped(lambda x: x * 2, P("x"), P("x"), grid)
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    eqn = only(jax.make_jaxpr(jax.vmap(run, spmd_axis_name="y"))(values))
    assert eqn.params["in_specs"] == (P("y", "x"),) and eqn.params["jaxpr"].in_avals[0].shape == (4, 2)
    np.testing.assert_array_equal(jax.vmap(run, spmd_axis_name="y")(values), values * 2)
    with pytest.raises(KeyError, match="'z'"):
        jax.vmap(run, spmd_axis_name="z")(values)


def test_callbacks_run_on_each_device():
    def double(x):
        return jax.pure_callback(lambda a: 2 * np.asarray(a), jax.ShapeDtypeStruct((2,), np.float32), x)

    run = mapped(double, check_vma=False)
    for f in (run, jax.jit(run)):
        np.testing.assert_array_equal(f(X), 2 * X)


def test_groups_need_unchecked_types():
    def f(x):
        return lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]])

    with pytest.raises(NotImplementedError, match="check_vma=False"):
        mapped(f)(X)
    pairs = X.reshape(2, 2, 2).sum(1, keepdims=True)
    np.testing.assert_allclose(mapped(f, check_vma=False)(X), np.repeat(pairs, 2, 1).ravel(), rtol=1e-6)


def test_specs_that_are_none_are_whole():
    assert mapped(lambda x: x, None)(X).shape == (32,)
