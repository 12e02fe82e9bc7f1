"""Derivatives over meshes with explicit axes: how tangents and cotangents are cut."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding, reshard
from pullback.sharding import PartitionSpec as P
from pullback.util.errors import ShardingTypeError

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
A = np.arange(64, dtype=np.float32).reshape(8, 8)


GRADIENTS = (
    (lambda x: (x.T * 2).sum(), ("x", "y")),
    (lambda x: x.sum(0).sum(), ("x", "y")),
    (lambda x: jnp.max(x, 1).sum(), ("x", "y")),
    (lambda x: reshard(x, P("y", "x")).sum(), ("x", "y")),
    (lambda x: x[:4].sum(), ("x", "y")),
    (lambda x: x.reshape(2, 4, 2).sum(), ("x", "y")),
    (lambda x: lax.dynamic_slice(x, (0, 0), (4, 2)).sum(), ("x", "y")),
    (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x).sum(), ("x", "y")),
    (lambda x: (x @ jnp.ones((2, 3))).sum(), ("x", None)),
    (lambda x: jnp.dot(x, jnp.ones((2, 4)), out_sharding=P("x", None)).sum(), ("x", "y")),
)


@pytest.mark.parametrize("number", range(len(GRADIENTS)))
def test_cotangents_are_cut_as_their_values(number):
    f, spec = GRADIENTS[number]
    x = jnp.arange(16.0).reshape(8, 2)
    with jax.set_mesh(MESH):
        cut = jax.device_put(x, P(*spec))
        for run in (jax.grad(f), jax.jit(jax.grad(f))):
            got = run(cut)
            assert got.sharding.spec == P(*spec) and jax.typeof(got) == jax.typeof(cut)
            np.testing.assert_array_equal(got, run(x))


def test_both_operands_of_a_product_have_cotangents_cut_as_they_are():
    x, y = jnp.arange(16.0).reshape(8, 2), jnp.ones((2, 8))
    with jax.set_mesh(MESH):
        cut = jax.device_put(x, P("x")), jax.device_put(y, P())
        for run in (jax.grad, lambda f, **options: jax.jit(jax.grad(f, **options))):
            left, right = run(lambda x, y: (x @ y).sum(), argnums=(0, 1))(*cut)
            assert (left.sharding.spec, right.sharding.spec) == (P("x", None), P(None, None))
            assert left.tolist() == [[8, 8]] * 8 and right.tolist() == [[56] * 8, [64] * 8]


def test_jacobians_are_cut_as_their_values():
    with jax.set_mesh(MESH):
        x = jax.device_put(jnp.arange(4.0), P("x"))
        for jacobian, spec in ((jax.jacfwd, P("x", None)), (jax.jacrev, P(None, "x"))):
            assert jacobian(lambda x: x * 2)(x).sharding.spec == spec


def test_rules_of_users_give_cotangents_that_lie_as_their_arguments():
    @jax.custom_vjp
    def sin(x):
        return jnp.sin(x)

    sin.defvjp(lambda x: (sin(x), x), lambda x, bar: (reshard(bar * jnp.cos(x), P()),))
    with jax.set_mesh(MESH), pytest.raises(ValueError, match="cut otherwise"):
        jax.jit(jax.grad(lambda x: sin(x).sum()))(jax.device_put(A, P("x")))


def test_a_backward_rule_of_users_is_typed_as_their_functions():
    kinds = []

    @jax.custom_vjp
    def double(x):
        return x * 2

    def backward(x, bar):
        kinds.append(str(jax.typeof(jnp.zeros_like(x))))
        return (x.T @ x * bar,)

    double.defvjp(lambda x: (double(x), x), backward)
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError, match="ambiguous"):
        jax.jit(jax.grad(lambda x: double(x).sum()))(jax.device_put(A, P("x")))
    assert kinds == ["float32[8@x,8]"]


def test_cotangents_of_results_that_are_asked_for_stay_cut():
    x, v, w = (jax.device_put(A, NamedSharding(MESH, P(*spec))) for spec in (("x", None), (None, "y"), ("y", None)))
    loss = lambda w1, act: (jnp.dot(act(x @ w1), w, out_sharding=P("x", None)) ** 2).sum()
    with jax.set_mesh(MESH):
        for act in (jax.nn.relu, jnp.sin, lambda h: jnp.maximum(h, 0)):
            f = jax.grad(lambda w1, act=act: loss(w1, act))
            for found in (f(v), f(v), jax.jit(f)(v)):  # operations are remembered from the second time on
                assert str(jax.typeof(found)) == "float32[8,8@y]"
        whole = lambda x, v, w: (jnp.dot(jnp.sin(x @ v), w, out_sharding=P("x", None)) ** 2).sum()
        text = jax.jit(jax.grad(whole, (1, 2))).lower(x, v, w).as_text("partitioned")
        assert "all_gather" not in text and "dynamic_slice" not in text
        wanted = jax.grad(lambda w1: ((act(A @ w1) @ A) ** 2).sum())(A)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_tangents_are_cut_as_primals_are():
    x = jax.device_put(A, NamedSharding(MESH, P("x", "y")))
    for tangent in (A, jnp.asarray(A), jax.device_put(A, NamedSharding(MESH, P("y", "x")))):
        y, y_dot = jax.jvp(lambda x: 2 * x, (x,), (tangent,))
        assert y.sharding == y_dot.sharding == x.sharding and y_dot.tolist() == (2 * A).tolist()


def test_zeros_are_cut_as_their_primals():
    x, y = (jax.device_put(A, NamedSharding(MESH, s)) for s in (P("x"), P("x", "y")))

    def scanned(x, y):
        return lax.scan(lambda c, _: ((c[0] * 2, c[1]), None), (x, y), None, length=2)[0][0].sum()

    functions = (lambda x, y: x.sum(), scanned, lambda x, y: jax.checkpoint(lambda x, y: jnp.sin(x))(x, y).sum())
    with jax.set_mesh(MESH):
        for f in functions:
            for run in (lambda f: f, jax.jit):
                bars = run(jax.grad(f, (0, 1)))(x, y)
                assert [str(jax.typeof(b)) for b in bars] == ["float32[8@x,8]", "float32[8@x,8@y]"]
                assert bars[1].sharding == y.sharding and not np.any(bars[1])
        dots = jax.jvp(lambda x: (2 * x, lax.stop_gradient(y)), (x,), (x,))[1]
        curvature = jax.jit(jax.hessian(lambda x: (2 * x).sum()))(x[:, 0])
    assert [str(jax.typeof(d)) for d in dots] == ["float32[8@x,8]", "float32[8@x,8@y]"]
    assert str(jax.typeof(curvature)) == "float32[8@x,8]" and not np.any(curvature)


IN_VMAP = {  # of a row of columns cut along y, where the mapped axis is cut along x -> the result's spec
    "chosen": (lambda v: jnp.where(v > 0, v, 0.0), P("x", None, "y")),
    "numbers": (lambda v: jnp.where(v > 0, 1.0, 0.0), P("x", None, "y")),
    "like": (lambda v: lax.select(v > 0, v, jnp.zeros_like(v)), P("x", None, "y")),
    "by a mask": (lambda v: jnp.where(jnp.arange(8) > 0, v, 0.0), P("x", None, "y")),
    "joined": (lambda v: jnp.concatenate([v, jnp.zeros_like(v)]), P("x", None, "y")),
    "stacked": (lambda v: jnp.stack([v, jnp.ones_like(v)]), P("x", None, None, "y")),
    "elu": (jax.nn.elu, P("x", None, "y")),
    "logsumexp": (lambda v: jax.nn.logsumexp(v, 0), P("x", "y")),
}


@pytest.mark.parametrize("name", IN_VMAP)
def test_what_vmap_repeats_is_cut_as_the_mapped_axis(name):
    f, spec = IN_VMAP[name]
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 8, 8)
    with jax.set_mesh(MESH):
        out = jax.jit(jax.vmap(f))(jax.device_put(x, P("x", None, "y")))
        assert jax.typeof(out).sharding.spec == spec
    np.testing.assert_allclose(out, jax.vmap(f)(x), 1e-6)


REFUSED = {
    "select": lambda x, y: lax.select(x > 0, x, x.T),
    "stack": lambda x, y: lax.stack([x, y]),
    "sort": lambda x, y: lax.sort((x, y)),
    "broadcast_like": lambda x, y: lax.broadcast_like(x, y),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operands_that_must_be_cut_alike(name):
    with jax.set_mesh(MESH):
        x, y = jax.device_put(A, P("x")), jax.device_put(A, P())
        error = ValueError if name == "broadcast_like" else jax.errors.ShardingTypeError
        with pytest.raises(error, match=r"same sharding|must be cut alike|equal sharding|Incompatible types"):
            jax.jit(REFUSED[name])(x, y)
        assert jax.typeof(jax.jit(lax.broadcast_like)(A, x)).sharding.spec == P("x", None)


@pytest.mark.parametrize("names", [("y",), ("x", "y")])
def test_shard_map_in_vmap_along_an_explicit_axis(names):
    def f(r):
        inner = jax.shard_map(lambda v: lax.psum(jnp.sin(v), "y"), in_specs=P("y"), out_specs=P(), axis_names={*names})
        return inner(r)

    with jax.set_mesh(MESH):
        x = jax.device_put(A, P("x", "y"))
        out = jax.jit(jax.vmap(f))(x)
        bar = jax.jit(jax.grad(lambda x: jax.vmap(f)(x).sum()))(x)
        assert jax.typeof(out).sharding.spec == P("x", None) and jax.typeof(bar).sharding.spec == P("x", "y")
    np.testing.assert_allclose(out, np.sin(A).reshape(8, 2, 4).sum(1), 1e-5, 1e-5)
    np.testing.assert_allclose(bar, np.cos(A), 1e-5, 1e-5)


def inner_axes(v):
    return jax.sharding.auto_axes(lambda q: jnp.sin(q) * q, axes="x", out_sharding=P("x", "y"))(v)


def in_a_scan(v):
    return lax.scan(lambda c, _: (inner_axes(c), None), v, None, length=1)[0].sum()


THROUGH_AXES = {
    "grad": lambda v: jax.grad(lambda v: inner_axes(v).sum())(v),
    "of a jit": lambda v: jax.grad(lambda v: jax.jit(inner_axes)(v).sum())(v),
    "of a checkpoint": lambda v: jax.grad(lambda v: jax.checkpoint(inner_axes)(v).sum())(v),
    "of a scan": lambda v: jax.grad(in_a_scan)(v),
}


@pytest.mark.parametrize("name", THROUGH_AXES)
def test_derivatives_of_functions_with_axes_of_other_types(name):
    with jax.set_mesh(MESH):
        found = jax.jit(THROUGH_AXES[name])(jax.device_put(A, P("x", "y")))
    assert found.sharding.spec == P("x", "y")
    np.testing.assert_allclose(found, np.sin(A) + A * np.cos(A), 1e-4, 1e-4)


def test_specs_over_meshes_with_axes_of_both_types_are_written_in_full():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    with jax.set_mesh(mesh):
        x = jax.device_put(A, P("x"))
        assert jax.jit(lambda x: x @ A)(x).sharding.spec == P("x", None)


@pytest.mark.parametrize("kinds", [(AxisType.Auto, AxisType.Auto), (AxisType.Explicit, AxisType.Auto)])
def test_derivatives_of_explicit_axes(kinds):
    mesh = jax.make_mesh((2, 2), ("u", "v"), axis_types=kinds)  # no other test asks for explicit_axes of it
    f = jax.sharding.explicit_axes(lambda v: jnp.sin(v) * v, in_sharding=P("u", "v"))
    x = jax.device_put(A, NamedSharding(mesh, P("u", "v")))
    with jax.set_mesh(mesh):
        for wrap in (jax.jit, lambda function: function):
            bar = wrap(jax.grad(lambda v: f(v).sum()))(x)
            assert jax.typeof(bar) is jax.typeof(x) and bar.sharding.mesh == mesh
            np.testing.assert_allclose(bar, np.sin(A) + A * np.cos(A), 1e-4, 1e-4)
            _, dot = wrap(lambda v: jax.jvp(jax.grad(lambda v: f(v).sum()), (v,), (v,)))(x)
            np.testing.assert_allclose(dot, A * (2 * np.cos(A) - A * np.sin(A)), 1e-4, 1e-3)


def test_zeros_for_parts_without_cotangents_are_cut_as_the_others():
    with jax.set_mesh(MESH):
        x = jax.device_put(A, P("x"))
        found = jax.jit(jax.grad(lambda x: jnp.unstack(x, axis=1)[0].sum()))(x)
    assert str(jax.typeof(found)) == "float32[8@x,8]"
    np.testing.assert_array_equal(found, np.eye(1, 8) + np.zeros((8, 1)))
