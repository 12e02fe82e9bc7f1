"""What users say of shardings: in whose words results answer, what programs show, and what is refused."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.sharding import AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P
from pullback.sharding._shardings import UNSPECIFIED

MESH = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def over(*parts, mesh=MESH):
    return NamedSharding(mesh, P(*parts))


@pytest.mark.parametrize("spec", [(), (None,), (None, None), ("x",), ("x", None), (None, "x"), ((),)], ids=str)
@pytest.mark.parametrize("given", [(None,), ("x", None), None], ids=str)
def test_results_lie_as_out_shardings_say_word_by_word(spec, given):
    x = X if given is None else jax.device_put(X, over(*given))
    for function in (lambda x: 2 * x, lambda x: x, lambda x: jnp.ones((8, 8))):
        assert jax.jit(function, out_shardings=over(*spec))(x).sharding == over(*spec)


def test_programs_show_which_argument_said_what():
    def eqn(function, *args, **said):
        return jax.make_jaxpr(jax.jit(function, **said))(*args).eqns[0].params

    open_, cut, other = UNSPECIFIED, over("x"), over("y")
    found = eqn(lambda x: x, X, in_shardings=cut)
    assert (found["in_shardings"], found["out_shardings"]) == ((cut,), (open_,))
    found = eqn(lambda x, y: (x, y), X, X, in_shardings=(cut, None), out_shardings=(other, cut))
    assert (found["in_shardings"], found["out_shardings"]) == ((cut, open_), (other, cut))


def test_arrays_over_other_kinds_of_axes_are_moved_first():
    explicit = jax.make_mesh((2, 2), ("row", "column"))  # no other test asks for auto_axes of it
    rows = jax.make_mesh((4,), ("z",), axis_types=(AxisType.Auto,))
    ours, typed = jax.device_put(X, over("x")), jax.device_put(X, over("row", mesh=explicit))
    other = jax.device_put(X, over("z", mesh=rows))
    for wrap in (jax.jit, lambda function: function):
        with jax.set_mesh(explicit):
            for x in (ours, other):
                assert wrap(lambda x: x)(x).sharding == x.sharding
                for function in (lambda x: 2 * x, jnp.sin, lambda x: x @ x, lambda x: x.sum(0)):
                    with pytest.raises(ValueError, match=r"context mesh .*should match the"):
                        wrap(function)(x)
            assert str(jax.typeof(2 * jax.device_put(ours, P("row")))) == "float32[8@row,8]"
        with pytest.raises(ValueError, match="Mesh for all inputs should be"):
            wrap(jnp.add)(ours, typed)
        with jax.set_mesh(MESH):  # no types: values may lie over any mesh of the devices
            assert wrap(lambda x: 2 * x)(other).sharding == over("z", mesh=rows)


def test_derivatives_of_what_auto_axes_has_inside():
    with jax.set_mesh(jax.make_mesh((2, 2), ("x", "y"))):
        x = jax.device_put(X, P("x"))
        squares = jax.sharding.auto_axes(lambda x: (x**2).sum(), out_sharding=P())
        for gradient in (jax.grad(squares), jax.jit(jax.grad(squares))):
            found = gradient(x)
            assert str(jax.typeof(found)) == "float32[8@x,8]"
            np.testing.assert_array_equal(found, 2 * X)


@pytest.mark.parametrize("wrap", [jax.jit, lambda function: function], ids=["jit", "eager"])
def test_auto_axes_under_vmap(wrap):
    with jax.set_mesh(jax.make_mesh((2, 2), ("x", "y"))):
        x = jax.device_put(X, P("x"))
        for function, text in (
            (lambda row: jnp.sin(row), "float32[8@x,8]"),
            (lambda row: row.sum(), "float32[8@x]"),
            (lambda row: row[jnp.array([0, 1])], "float32[8@x,2]"),
            (lambda row: lax.scan(lambda c, a: (c + a, c * a), row[0], row)[1], "float32[8@x,8]"),
            (lambda row: lax.while_loop(lambda c: c.sum() < 900, lambda c: 2 * c + 1, row), "float32[8@x,8]"),
            (lambda row: lax.cond(row[0] > 3, lambda c: 2 * c, lambda c: c - 1, row), "float32[8@x,8]"),
        ):
            inside = jax.sharding.auto_axes(function, out_sharding=P())
            found = wrap(jax.vmap(inside))(x)
            assert str(jax.typeof(found)) == text
            np.testing.assert_array_equal(found, jax.vmap(function)(X))


def test_types_are_made_with_shardings():
    explicit = over("x", mesh=jax.make_mesh((2, 2), ("x", "y")).abstract_mesh)
    made = jax.core.ShapedArray((8, 8), np.dtype("float32"), sharding=explicit)
    assert str(made) == "float32[8@x,8]" and made.sharding.spec == P("x", None)
    assert jax.core.ShapedArray((8, 8), np.dtype("float32")).update(sharding=explicit) is made
    assert str(jax.core.ShapedArray((8,), np.dtype("int8"), memory_space=jax.memory.Space.Host)) == "int8<host>[8]"
    with pytest.raises(TypeError, match="must be a Sharding"):
        jax.core.ShapedArray((8, 8), np.dtype("float32"), sharding=3)
    with pytest.raises(ValueError, match="evenly divide"):
        jax.core.ShapedArray((7, 8), np.dtype("float32"), sharding=explicit)


def test_topologies_of_what_is_attached():
    from pullback.experimental import topologies

    found = topologies.get_attached_topology()
    assert list(found.devices) == jax.devices()
    assert topologies.make_mesh(found, (2, 2), ("x", "y")).shape == {"x": 2, "y": 2}
    with pytest.raises(ValueError, match=r"a mesh of shape \(3,\) has 3 devices, got"):
        topologies.make_mesh(found, (3,), ("x",))
    with pytest.raises(RuntimeError, match="TPU support"):
        topologies.get_topology_desc("v4:2x2x1")
    with pytest.raises(NotImplementedError, match="not implemented for cpu"):
        topologies.get_topology_desc(platform="cpu")


def test_meshes_without_devices_are_no_contexts():
    with pytest.raises(ValueError, match="use_abstract_mesh"), MESH.abstract_mesh:
        pass


def test_meshes_without_devices():
    abstract = over("x", mesh=MESH.abstract_mesh)
    double = jax.jit(lambda x: 2 * x, in_shardings=abstract)
    exported = jax.export.export(double, platforms=["cpu"])(X)
    assert exported.nr_devices == 4 and exported.in_shardings_hlo == (None,)
    assert exported.in_shardings_jax(MESH) == (over("x"),)
    x = jax.device_put(X, over("x"))
    np.testing.assert_array_equal(exported.call(x), 2 * X)
    assert double(x).sharding == over("x")
    with pytest.raises(ValueError, match="only AbstractMesh exists"):
        double(X)
    with jax.set_mesh(MESH):
        assert double(X).sharding.spec == P("x")


@pytest.mark.parametrize("specs, error, text", [
    ({"out_specs": P("y")}, ValueError, "axis marked as manual"),
    ({"out_specs": {"a": P("x"), "b": P("z")}}, ValueError, "axis marked as manual"),
    ({"out_specs": 3}, TypeError, "of type int"),
    ({"out_specs": P("x", "x")}, jax.sharding.DuplicateSpecError, "twice"),
    ({"in_specs": P(P.UNCONSTRAINED)}, ValueError, "UNCONSTRAINED"),
])  # fmt: skip
def test_specs_are_looked_at_before_the_function_runs(specs, error, text):
    def fails(x):
        raise AssertionError("it ran")

    given = {"in_specs": P("x"), "out_specs": P("x"), "mesh": MESH, "axis_names": {"x"}}
    with pytest.raises(error, match=text):
        jax.shard_map(fails, **given | specs)(X)


def test_what_has_another_shape_lies_as_an_array_that_is_whole():
    device = jax.devices()[-1]
    for like in (jnp.zeros_like, jnp.empty_like, lambda x, **kw: jnp.full_like(x, 2, **kw)):
        assert like(jax.device_put(X, over()), shape=(3,)).sharding == over()
        assert like(jax.device_put(X, device), shape=(3,)).devices() == {device}
        assert not like(jax.device_put(X, over("x")), shape=(3,)).committed
    assert lax.full_like(jax.device_put(X, over()), 2, shape=(3,)).sharding == over()


def test_axes_that_vmap_adds_are_not_left_open_in_results():
    put = jax.vmap(lambda row: jax.device_put(row, over("x")))
    said = jax.vmap(jax.jit(lambda row: 2 * row, out_shardings=over("x")))
    for function in (put, said, jax.jit(said)):
        assert function(X).sharding == over(None, "x")


def test_cotangents_go_back_to_where_values_were():
    x = jax.device_put(X, over("y"))
    assert jax.grad(lambda x: (jax.device_put(x, over("x")) ** 2).sum())(x).sharding == over("y")


def test_axes_of_other_types_stay_cut_where_types_say_nothing_of_them():
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    x = jax.device_put(X, over("x", "y", mesh=mesh))
    with jax.set_mesh(mesh):
        auto = jax.sharding.auto_axes(lambda x: jnp.sin(x), axes=("x",), out_sharding=P("x", None))
        for function in (auto, lambda x: jax.sharding.reshard(x, P("x", None))):
            assert function(x).sharding == jax.jit(function)(x).sharding == x.sharding


@pytest.mark.parametrize(("axes", "spec"), [("x", P(None, None)), (("x", "y"), P(None, None)), ("y", P("y", None))])
def test_results_of_auto_axes_lie_as_told_beside_axes_of_other_types(axes, spec):
    mesh = jax.make_mesh((2, 2, 1), ("x", "y", "z"), axis_types=(AxisType.Explicit, AxisType.Explicit, AxisType.Auto))
    with jax.set_mesh(mesh):
        x = jax.device_put(np.ones((4, 4), np.float32), P("x", "y"))
        double = jax.sharding.auto_axes(lambda x: x * 2, axes=axes, out_sharding=spec)
        for found in (double(x), jax.jit(double)(x)):
            assert tuple(found.sharding.spec) == tuple(jax.typeof(found).sharding.spec) == tuple(spec)
            np.testing.assert_array_equal(found, np.full((4, 4), 2))


@pytest.mark.parametrize(("lies", "found"), [(P(None, None), P(None, "y")), (P("x", None), P("x", "y"))])
def test_reshard_under_a_map_leaves_the_mapped_axis_as_it_is(lies, found):
    """Whatever spmd_axis_name says: along explicit axes types decide."""
    with jax.set_mesh(jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)):
        x = jax.device_put(np.ones((4, 4), np.float32), lies)
        along = jax.vmap(lambda row: jax.sharding.reshard(row, P("y")), spmd_axis_name="x")
        for out in (along(x), jax.jit(along)(x)):
            assert out.sharding.spec == jax.typeof(out).sharding.spec == found


EXPLICIT = jax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)


@pytest.mark.parametrize("after", [lambda x: x, lambda x: x * 2, jnp.sin], ids=["as it is", "twice", "sine"])
def test_programs_put_values_on_a_mesh_whose_axes_are_of_other_types(after):
    typed, untyped = over("y", mesh=EXPLICIT), over("y")
    out = jax.jit(lambda x: after(jax.device_put(x, over("x"))))(jax.device_put(X, typed))
    assert out.sharding == over("x")
    out = jax.jit(lambda x: after(jax.device_put(x, over("x", mesh=EXPLICIT))))(jax.device_put(X, untyped))
    assert out.sharding == over("x", None, mesh=EXPLICIT)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_results_of_typed_arguments_lie_over_other_meshes_as_out_shardings_say(kind):
    flat = over("i", mesh=jax.make_mesh((4,), ("i",), axis_types=(kind,)))
    typed = over("x", mesh=EXPLICIT)
    assert jax.jit(lambda x: x * 2, out_shardings=flat)(jax.device_put(X, typed)).sharding == flat
    out = jax.jit(lambda x: x * 2, in_shardings=typed, out_shardings=flat)(X)
    assert out.sharding == flat and (np.asarray(out) == 2 * X).all()


def test_arguments_on_which_results_do_not_depend_do_not_place_them():
    x = jax.device_put(X, over("x"))
    dead = lambda x: (jnp.sin(x), jnp.zeros(8))[1]
    for function in (lambda x: jnp.zeros(8), dead, jax.grad(lambda x: (x * 3).sum())):
        out = jax.jit(function)(x)
        assert not out.committed and out.sharding.num_devices == 1
    assert jax.jit(jax.grad(lambda x: (x * x).sum()))(x).sharding == over("x")


def test_values_from_a_mesh_of_fewer_axes_are_put_on_one_of_more():
    flat = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
    x = jax.device_put(X, NamedSharding(flat, P("i")))
    out = jax.vmap(lambda row: jax.device_put(row, over("y")))(x)
    assert out.sharding.mesh == MESH and (np.asarray(out) == X).all()


def test_what_is_said_of_cotangents_does_not_move_values():
    said = NamedSharding(EXPLICIT, P("x", reduced={"y"}))
    assert said != over("x", mesh=EXPLICIT) and said.is_equivalent_to(over("x", mesh=EXPLICIT), 2)
    assert not NamedSharding(EXPLICIT, P("x", unreduced={"y"})).is_equivalent_to(over("x", mesh=EXPLICIT), 2)
