"""Thin modules that other libraries import: names that exist, and primitives defined through them."""

import functools
import importlib
import threading

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import random
from pullback.core import ShapedArray
from pullback.extend.core import Primitive, primitives
from pullback.interpreters import ad, batching, mlir

MODULES = [
    "ad_checkpoint", "api_util", "custom_derivatives", "dtypes", "errors", "experimental.checkify",
    "experimental.layout", "extend.core",
    "extend.core.primitives", "extend.linear_util", "extend.random", "extend.source_info_util", "flatten_util",
    "interpreters.ad", "interpreters.batching", "interpreters.mlir", "interpreters.partial_eval", "interpreters.xla",
    "ref", "experimental.hijax", "experimental.sparse", "sharding", "stages", "test_util", "typing", "version",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_there(name):
    module = importlib.import_module(f"pullback.{name}")
    for public in getattr(module, "__all__", ()):
        assert hasattr(module, public), f"{name}.{public}"


def define(name):
    """x -> x^3 as a primitive, by the names that third-party libraries use."""
    cube_p = Primitive(name, register=False)
    cube_p.def_impl(lambda x: np.asarray(x) ** 3)
    cube_p.def_abstract_eval(lambda aval: ShapedArray(aval.shape, aval.dtype))
    ad.defjvp(cube_p, lambda x_dot, x: 3 * x * x * x_dot)
    batching.defvectorized(cube_p)
    mlir.register_lowering(cube_p, mlir.lower_fun(lambda x: x * x * x, multiple_results=False))
    return cube_p.bind


def test_a_primitive_of_ones_own():
    cube = define("cube_of_test")
    x = jnp.arange(4.0)
    np.testing.assert_allclose(cube(x), [0, 1, 8, 27])
    np.testing.assert_allclose(jax.jit(cube)(x), [0, 1, 8, 27])
    np.testing.assert_allclose(jax.vmap(cube)(x), [0, 1, 8, 27])
    assert float(jax.grad(cube)(2.0)) == 12 and float(jax.jit(jax.grad(jax.grad(cube)))(2.0)) == 12
    assert "cube_of_test" in str(jax.make_jaxpr(cube)(1.0))


def _of_test(name, impl, out):
    p = Primitive(name, register=False)
    p.def_impl(impl)
    p.def_abstract_eval(out)
    return p


def test_rules_of_bilinear_primitives_of_reductions_and_of_results():
    times_p = _of_test("times_of_test", jnp.multiply, lambda x, y: ShapedArray(x.shape, x.dtype))
    ad.defbilinear(times_p, lambda bar, x, y: times_p.bind(bar, y), lambda bar, x, y: times_p.bind(x, bar))
    assert jax.grad(times_p.bind, (0, 1))(2.0, 3.0) == (3, 2)
    assert jax.linear_transpose(lambda y: times_p.bind(2.0, y), 1.0)(5.0) == (10,)
    exp_p = _of_test("exp_of_test", jnp.exp, lambda x: ShapedArray(x.shape, x.dtype))
    ad.defjvp2(exp_p, lambda x_dot, out, x: x_dot * out)
    assert jax.grad(jax.grad(exp_p.bind))(1.0) == jnp.exp(1.0)
    sum_p = _of_test(
        "sum_of_test",
        lambda x, axes: jnp.sum(x, axes),
        lambda x, axes: ShapedArray(tuple(n for d, n in enumerate(x.shape) if d not in axes), x.dtype),
    )
    batching.defreducer(sum_p)
    x = np.arange(24.0).reshape(2, 3, 4)
    for dim, axes in ((0, (1,)), (1, (0,)), (2, (0, 1))):
        wanted = np.moveaxis(x, dim, 0).sum(tuple(a + 1 for a in axes))
        np.testing.assert_array_equal(jax.vmap(lambda x, axes=axes: sum_p.bind(x, axes=axes), dim)(x), wanted)


def test_rule_tables_are_views_of_the_records():
    add_p = primitives.add_p
    assert add_p in ad.primitive_jvps and ad.primitive_jvps[add_p] is add_p.jvp
    assert add_p in batching.primitive_batchers and len(batching.primitive_batchers) > 50
    mine = Primitive("nothing_of_test", register=False)
    with pytest.raises(KeyError):
        _ = ad.primitive_transposes[mine]
    ad.primitive_transposes[mine] = rule = lambda x_bar, x: [x_bar]
    assert mine.transpose is rule
    with pytest.raises(AttributeError, match="no primitive 'no_such_p'"):
        _ = primitives.no_such_p


def test_lowering_rules_in_mlir_are_refused_when_they_are_used():
    other = Primitive("mlir_of_test", register=False)
    other.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(other, lambda ctx, x: [mlir.dtype_to_ir_type(x.dtype)])
    with pytest.raises(NotImplementedError, match="builds MLIR"):
        jax.jit(other.bind)(1.0)


def test_own_random_generator():
    from pullback.extend.random import define_prng_impl, threefry_2x32, threefry_prng_impl

    assert random.key_impl(random.key(0, impl=threefry_prng_impl)) == "threefry2x32"
    words = threefry_2x32(np.array([0, 0], np.uint32), jnp.zeros(2, np.uint32))
    np.testing.assert_array_equal(words, np.array([0x6B200159, 0x99BA4EFE], np.uint32))
    zeros = define_prng_impl(
        key_shape=(1,), seed=lambda seed: seed.astype(np.uint32)[None],
        split=lambda key, shape: jnp.zeros((*shape, 1), np.uint32),
        random_bits=lambda key, width, shape: jnp.zeros(shape, f"uint{width}"), fold_in=lambda key, data: key,
        name="nought", tag="nought",
    )  # fmt: skip
    key = random.key(3, impl=zeros)
    assert str(key.dtype) == "key<nought>" and float(random.uniform(key)) == 0 and random.key_data(key).tolist() == [3]
    made = jax.jit(lambda seed: random.key(seed, impl=zeros))(np.int8(-1))
    assert random.key_data(made).tolist() == [2**32 - 1]
    assert random.split(key, 4).shape == (4,)


def test_ravel_pytree():
    from pullback.flatten_util import ravel_pytree

    tree = {"a": jnp.arange(3.0), "b": (jnp.ones((2, 2)), 5.0), "c": []}
    flat, unravel = ravel_pytree(tree)
    assert flat.shape == (8,)
    back = unravel(flat * 2)
    np.testing.assert_allclose(back["b"][0], 2 * np.ones((2, 2)))
    mixed, unravel = ravel_pytree([jnp.arange(2), jnp.ones(2)])
    assert mixed.dtype == np.float32 and unravel(mixed)[0].dtype == np.int32
    with pytest.raises(ValueError, match=r"shape \(5,\); the tree takes \(4,\)"):
        unravel(jnp.ones(5))
    with pytest.raises(TypeError, match="dtype int32; that of the tree is float32"):
        unravel(jnp.ones(4, int))
    empty, unravel = ravel_pytree(())
    assert empty.shape == (0,) and unravel(empty) == ()
    gradient = jax.grad(lambda t: ravel_pytree(t)[0].sum())(tree)
    np.testing.assert_allclose(gradient["a"], 1)


def test_check_grads_takes_steps_that_seldom_meet_a_jump():
    from pullback.test_util import check_grads

    check_grads(lambda x: jnp.where(x > 1.001, 5.0, 0.0) + x * x, (jnp.ones(3),), order=1)
    with pytest.raises(AssertionError):
        check_grads(lambda x: jnp.where(x > 1.001, 5.0, 0.0) + x * x, (jnp.ones(3),), order=1, eps=1e-2)


def test_check_grads():
    from pullback.test_util import check_grads

    check_grads(lambda x, y: jnp.sin(x) * y, (1.3, jnp.arange(3.0)), order=2)
    wrong = jax.custom_jvp(jnp.sin)
    wrong.defjvp(lambda primals, tangents: (jnp.sin(primals[0]), 2 * tangents[0]))
    with pytest.raises(AssertionError, match="JVP tangent"):
        check_grads(wrong, (1.3,), order=1, modes=("fwd",))
    check_grads(jnp.sin, (0.5,), order=2, modes="rev")
    with pytest.raises(ValueError, match="unknown mode"):
        check_grads(jnp.sin, (1.0,), order=1, modes=("forward",))


class Place:
    """Stands for a device."""

    def __init__(self, number):
        self.id = number
        self.platform = "cpu"


def test_shardings():
    from pullback.sharding import DuplicateSpecError, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    places = np.array([[Place(0), Place(1)], [Place(2), Place(3)]])
    mesh = Mesh(places, ("x", "y"))
    assert dict(mesh.shape) == {"x": 2, "y": 2} and mesh.size == 4 and mesh == Mesh(places, ("x", "y"))
    sharding = NamedSharding(mesh, PartitionSpec("x", None))
    assert sharding.shard_shape((4, 6)) == (2, 6) and not sharding.is_fully_replicated
    assert sharding.devices_indices_map((4, 6))[places[1, 0]] == (slice(2, 4), slice(None))
    both = NamedSharding(mesh, PartitionSpec(("y", "x")))
    assert both.devices_indices_map((8,))[places[0, 1]] == (slice(4, 6),)
    assert SingleDeviceSharding(places[0, 0]).is_fully_replicated
    with pytest.raises(ValueError, match="not found in mesh"):
        NamedSharding(mesh, PartitionSpec("z"))
    with pytest.raises(DuplicateSpecError, match="duplicate entries"):
        NamedSharding(mesh, PartitionSpec("x", "x"))
    with pytest.raises(ValueError, match="cuts axis 0 into 2 parts"):
        sharding.devices_indices_map((3, 3))
    with pytest.raises(ValueError, match="each needs a name"):
        Mesh(places, ("x",))


def test_checkify():
    from pullback.experimental import checkify

    def f(x):
        checkify.check(x > 0, "x must be positive, got {x}", x=jnp.asarray(x))
        return jnp.sqrt(x)

    error, out = jax.jit(checkify.checkify(f))(-4.0)
    assert error.get() == "x must be positive, got -4.0 (`check` failed)" and np.isnan(out)
    with pytest.raises(checkify.JaxRuntimeError, match="x must be positive"):
        error.throw()
    error, out = jax.jit(checkify.checkify(f))(4.0)
    error.throw()
    assert error.get() is None and float(out) == 2

    def loop(x):
        return jax.lax.scan(lambda c, y: (c + f(y), c), x, jnp.array([1.0, 4.0, -1.0, -2.0]))

    assert "got -1.0" in jax.jit(checkify.checkify(loop))(0.0)[0].get()
    assert "got -4.0" in checkify.checkify(jax.vmap(f))(jnp.array([1.0, -3.0, -4.0]))[0].get()
    nan, _ = checkify.checkify(jnp.log, errors=checkify.float_checks)(-1.0)
    assert nan.get() == "nan generated by primitive: log."
    with pytest.raises(ValueError, match="was not functionalized"):
        jax.jit(f)(1.0)
    with pytest.raises(checkify.JaxRuntimeError):
        f(-1.0)


def test_pmap_on_simulated_devices():
    n = jax.device_count()
    x = jnp.arange(2.0 * n).reshape(n, 2)
    total = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(x)
    np.testing.assert_allclose(total, np.broadcast_to(np.asarray(x).sum(0), (n, 2)))
    np.testing.assert_allclose(jax.pmap(lambda x, k: x * k, static_broadcasted_argnums=1)(x, 3), 3 * np.asarray(x))
    np.testing.assert_allclose(jax.pmap(lambda x, y: x + y, in_axes=(0, None))(x, 1.0), np.asarray(x) + 1)
    with pytest.raises(ValueError, match=f"requires {n + 1} logical devices, but only {n}"):
        jax.pmap(lambda x: x)(jnp.ones(n + 1))
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.pmap(lambda x, y: x)(x, jnp.ones(n + 1))


def test_key_arrays_cross_threads():
    key, seen = random.key(0), []
    worker = threading.Thread(target=lambda: seen.append(random.uniform(key)))
    worker.start()
    worker.join()
    assert float(seen[0]) == float(random.uniform(key))


def test_of_a_rule_that_builds_mlir_the_implementation_runs():
    mine = Primitive("host_cube_of_test", register=False)
    with pytest.raises(NotImplementedError):
        mine.impl  # noqa: B018
    mine.def_impl(lambda x: np.asarray(x) ** 3)
    assert mine.impl(2.0) == 8 and not mine.call_primitive
    assert jax.lax.add_p.impl(jnp.ones(2), jnp.ones(2)).tolist() == [2, 2]
    mine.def_abstract_eval(lambda aval: ShapedArray(aval.shape, aval.dtype))
    batching.defvectorized(mine)
    mlir.register_lowering(mine, lambda ctx, x: None)
    x = jnp.arange(4.0)
    np.testing.assert_allclose(mine.bind(x), x**3)
    np.testing.assert_allclose(jax.jit(lambda x: mine.bind(x) + 1)(x), x**3 + 1)
    np.testing.assert_allclose(jax.jit(jax.vmap(mine.bind))(x), x**3)
    nothing = Primitive("nothing_to_run_of_test", register=False)
    nothing.def_abstract_eval(lambda aval: aval)
    mlir.register_lowering(nothing, lambda ctx, x: None)
    with pytest.raises(NotImplementedError, match=r"nothing_to_run_of_test.*def_impl"):
        jax.jit(nothing.bind)(x)


def test_lowering_rules_are_functions_of_context_and_operands():
    def prim(name, rule, types=lambda aval, **_: aval, impl=None):
        new = Primitive(f"{name}_of_lowering_test", register=False)
        new.def_abstract_eval(types)
        if impl:
            new.def_impl(impl)
        mlir.register_lowering(new, rule)
        return new

    x, seen = jnp.arange(3.0), []

    def times(ctx, x, *, by):
        assert ctx.avals_in == ctx.avals_out == [jax.typeof(x)] and "cpu" in ctx.module_context.platforms
        return mlir.lower_fun(lambda x: x * by, multiple_results=False)(ctx, x)

    def called(ctx, x):
        out, _token, kept = mlir.emit_python_callback(
            ctx, lambda x: (seen.append(1) or np.asarray(x) + 1,), None, [x], ctx.avals_in, ctx.avals_out,
            has_side_effect=len(ctx.avals_in) > 1,
        )  # fmt: skip
        ctx.module_context.add_keepalive(kept)
        return out

    def kept_twice(ctx, x):
        assert ctx.replace(avals_in=[]).avals_out == ctx.avals_out
        return x, x

    for bound, wanted in (
        (functools.partial(prim("times", times).bind, by=3), 3 * x),
        (prim("called", called).bind, x + 1),
        (prim("passed", lambda ctx, x: [x]).bind, x),
        (prim("constant", lambda ctx, x: (np.ones(3, np.float32),), impl=lambda x: 2 * x).bind, np.ones(3)),
    ):
        assert jax.jit(bound)(x).tolist() == wanted.tolist()
    assert seen == [1]
    two = Primitive("two_of_lowering_test", register=False)
    two.multiple_results = True
    two.def_abstract_eval(lambda aval: [aval, aval])
    mlir.register_lowering(two, kept_twice)
    assert jax.jit(two.bind)(x)[1].tolist() == x.tolist()
    # The implementation is what runs outside of a program, whichever was given first.
    for first in (True, False):
        p = Primitive("impl_of_lowering_test", register=False)
        p.def_abstract_eval(lambda aval: aval)
        if first:
            p.def_impl(lambda x: x + 10)
        mlir.register_lowering(p, mlir.lower_fun(lambda x: x - 10, multiple_results=False))
        if not first:
            assert p.bind(x)[0] == -10
            p.def_impl(lambda x: x + 10)
        assert p.bind(x)[0] == 10 and jax.jit(p.bind)(x)[0] == -10


def test_batch_rules_that_know_the_axis():
    mine = Primitive("axis_of_test", register=False)
    mine.def_abstract_eval(lambda aval: aval)
    mine.def_impl(lambda x: x)
    seen = []

    def rule(axis_size, axis_name, trace_type, args, dims):
        seen.append((axis_size, axis_name, dims))
        return args[0], dims[0]

    batching.axis_primitive_batchers[mine] = rule
    assert mine in batching.axis_primitive_batchers and mine not in batching.primitive_batchers
    np.testing.assert_array_equal(jax.vmap(mine.bind, axis_name="i")(jnp.arange(3)), [0, 1, 2])
    assert seen == [(3, "i", (0,))]


def test_what_libraries_ask_of_a_trace():
    from pullback.extend import core, source_info_util

    aval = ShapedArray((2, 3), np.float32)
    assert core.mapped_aval(3, 1, aval) == ShapedArray((2,), np.float32) and core.mapped_aval(3, None, aval) is aval
    assert core.unmapped_aval(4, -1, aval) == ShapedArray((2, 3, 4), np.float32)
    with pytest.raises(ValueError, match="size 3, expected 5"):
        core.mapped_aval(5, 1, aval)
    assert core.valid_jaxtype(1.0) and not core.valid_jaxtype("text")
    assert core.primal_dtype_to_tangent_dtype(np.int32) == jax.dtypes.float0
    states = []

    def f(x):
        states.append((core.get_opaque_trace_state(), core.unsafe_am_i_under_a_jit_DO_NOT_USE()))
        with core.take_current_trace() as taken:
            assert float(jnp.sin(jnp.zeros(()))) == 0  # evaluated
            with core.set_current_trace(taken):
                return x + 1

    assert float(jax.jit(f)(1.0)) == 2 and float(f(1.0)) == 2
    (staged, under_jit), (plain, outside) = states
    assert staged != plain and plain == core.get_opaque_trace_state() and under_jit and not outside
    with pytest.raises(jax.errors.ConcretizationTypeError, match="why not"):
        jax.jit(lambda x: core.concrete_or_error(int, x, "why not"))(1)
    assert core.concrete_or_error(int, jnp.array(2)) == 2
    assert source_info_util.current().line > 0
    with source_info_util.extend_name_stack("inside"):
        assert str(source_info_util.current_name_stack()) == "inside"


def test_functions_of_trees_made_flat():
    from pullback import api_util
    from pullback.extend import linear_util as lu
    from pullback.tree_util import tree_flatten

    leaves, tree = tree_flatten((({"a": 1.0, "b": 2.0},), {"c": 3.0}))
    flat, out_tree = api_util.flatten_fun(lu.wrap_init(lambda x, c: {"sum": x["a"] + x["b"] + c}), tree)
    with pytest.raises(lu.StoreException):
        out_tree()
    assert flat.call_wrapped(*leaves) == [6.0] and out_tree().unflatten([0]) == {"sum": 0}
    leaves, tree = tree_flatten((1.0, (2.0, 3.0)))
    flat, out_tree = api_util.flatten_fun_nokwargs(lu.wrap_init(lambda x, y: (x, y)), tree)
    assert flat.call_wrapped(*leaves) == leaves and out_tree() == tree

    divide = lu.wrap_init(lambda x, y: x / y)
    by_four, given = api_util.argnums_partial(divide, (0,), (8, 4))
    assert given == (8,) and by_four.call_wrapped(12) == 3
    with pytest.raises(ValueError, match="argument 1 is static and must be hashable"):
        api_util.argnums_partial(divide, 0, (1, []))
    assert api_util.flatten_axes("test", tree, (0, None)) == [0, None, None]
    assert api_util.flatten_axes("test", tree, (0, None), kws=True) == [0, None, None]
    with pytest.raises(ValueError, match="test specification: expected a tree prefix"):
        api_util.flatten_axes("test", tree, (0, 1, 2))
    about = api_util.debug_info("jit", divide.f, (8, {"w": 4}), {"k": 1, "s": 2}, static_argnames=("s",))
    assert about.traced_for == "jit" and about.arg_names == ("x", "y['w']", "k")
    structure = tree_flatten(((1, (2, 3)), {"k": 4}))[1]
    assert api_util.donation_vector((1,), ("k",), structure) == (False, True, True, True)
    assert api_util.rebase_donate_argnums((2, 4), (0, 3)) == (1, 2)
    with pytest.raises(ValueError, match="cannot intersect"):
        api_util.rebase_donate_argnums((1,), (1,))
    with pytest.raises(ValueError):
        api_util.safe_map(max, [1], [1, 2])


def test_a_sharding_over_another_mesh_than_that_in_force():
    from pullback.jax_names.src.sharding_impls import canonicalize_sharding

    explicit = (jax.sharding.AxisType.Explicit,)
    here, there = (jax.make_mesh((1,), (name,), axis_types=explicit) for name in "xy")
    sharding = jax.NamedSharding(there, jax.P("y"))
    assert canonicalize_sharding(sharding, "f") == sharding
    with jax.set_mesh(there):
        assert canonicalize_sharding(sharding, "f") == sharding
    with jax.set_mesh(here):
        assert canonicalize_sharding(sharding, "f", check_mesh_consistency=False) == sharding
        with pytest.raises(ValueError, match=r"f: .* is over another mesh than the one in force"):
            canonicalize_sharding(sharding, "f")


def test_stacked_transformations():
    from pullback.extend import linear_util as lu

    @lu.transformation
    def scaled(by, x):
        out = yield (x * by,), {}
        yield out + 1

    @lu.transformation_with_aux2
    def counted(fun, store, x):
        store.store("seen")
        return fun(x)

    inner, aux = counted(lu.wrap_init(lambda x: x * 10))
    assert scaled(inner, 2).call_wrapped(3) == 61 and aux() == "seen"
    assert lu.merge_linear_aux(counted(inner)[1], aux) == (False, "seen")
    assert lu.transformation2(lambda fun, n, x: fun(x) ** n, inner, 2).call_wrapped(1) == 100


def test_what_is_known_is_computed_when_tracing_in_part():
    from pullback.extend import linear_util as lu
    from pullback.interpreters import partial_eval as pe

    seen = []

    def f(x, y):
        seen.append(float(jnp.sin(x)))  # x is known
        return jnp.sin(x), jnp.cos(x) * y

    known, unknown = pe.PartialVal.known(jnp.float32(0)), pe.PartialVal.unknown(ShapedArray((), np.float32))
    jaxpr, outs, consts = pe.trace_to_jaxpr_nounits(lu.wrap_init(f), [known, unknown])
    assert seen == [0.0] and [p.is_known() for p in outs] == [True, False] and outs[1].get_aval().shape == ()
    assert float(outs[0].get_known()) == 0 and len(jaxpr.eqns) == 1 and len(jaxpr.invars) == 1
    assert jax.core.eval_jaxpr(jaxpr, consts, 3.0)[0] == 3
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x), y * 2))(1.0, 2.0)
    clean, used = pe.dce_jaxpr(closed.jaxpr, [True, False])
    assert used == [True, False] and [e.primitive.name for e in clean.eqns] == ["sin"] and len(clean.invars) == 1
    assert len(pe.dce_jaxpr(closed.jaxpr, [True, False], instantiate=True)[0].invars) == 2
