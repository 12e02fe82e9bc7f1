"""Meshes, shardings and specs as objects; what is expected is what JAX 0.10.2 says."""

import pickle

import numpy as np
import pytest
from api.placed import CUT, GRID, MESH, STRUCT, WHOLE, XS, D, X, on

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental.layout import Format, Layout
from pullback.sharding import (
    AbstractMesh,
    AxisType,
    IndivisibleError,
    Mesh,
    NamedSharding,
    SingleDeviceSharding,
)
from pullback.sharding import PartitionSpec as P


def test_meshes_and_shardings_as_data():
    mesh = jax.make_mesh((2,), "batch")
    assert mesh.axis_names == ("batch",) and mesh.axis_types == (AxisType.Explicit,) and mesh.size == 2
    assert list(jax.make_mesh((2,), ("a",), devices=D[2:]).devices) == D[2:]
    assert repr(P("X", ["a", "b"], None, P.UNCONSTRAINED)) == "P('X', ('a', 'b'), None, UNCONSTRAINED)"
    assert P(("X",)) == P("X") != P("X", None) and P("X") != ("X",) and P("X") + ("Y",) == P("X", "Y")
    assert not isinstance(P("X"), tuple) and hash(P("X")) == hash(P("X")) and list(P("X", None)) == ["X", None]
    assert repr(CUT) == "NamedSharding(mesh=Mesh('X': 4, axis_types=(Auto,)), spec=P('X',), memory_kind=device)"
    assert repr(MESH) == "Mesh(axis_sizes=(4,), axis_names=('X',), axis_types=(Auto,))"
    for thing in (MESH, CUT, P("X", None), SingleDeviceSharding(D[1])):
        assert pickle.loads(pickle.dumps(thing)) == thing
    assert CUT.is_equivalent_to(on("X", None), 2) and not WHOLE.is_equivalent_to(SingleDeviceSharding(D[0]), 1)
    assert NamedSharding(Mesh(D[:1], "X"), P("X")).is_equivalent_to(SingleDeviceSharding(D[0]), 1)
    assert on("X", mesh=GRID).replicated_axes == {"Y"} and CUT.shard_shape((8, 3)) == (2, 3)
    assert CUT.with_memory_kind("pinned_host").memory_kind == "pinned_host" and CUT.update(spec=P()) == WHOLE


def test_meshes_without_devices_say_so():
    mesh = jax.sharding.AbstractMesh((4,), ("i",))
    for name in ("devices", "device_ids", "local_devices", "local_mesh", "is_multi_process"):
        with pytest.raises(ValueError, match=f"AbstractMesh does not implement {name}"):
            getattr(mesh, name)
    assert ("a",) + jax.P("b") == jax.P("a", "b") == jax.P("a") + ("b",)


@pytest.mark.filterwarnings("ignore:.with mesh:DeprecationWarning")
def test_what_is_no_place():
    rows = Layout((0,))
    mistakes = [
        (TypeError, "'layout' is a Layout, Layout.AUTO or None, got 'rows'", lambda: Format("rows", CUT)),
        (ValueError, "'sharding' must say on which devices", lambda: Format(rows)),
        (ValueError, "global_shape", lambda: jax.make_array_from_process_local_data(CUT, X, (None,))),
    ]
    for error, text, f in mistakes:
        with pytest.raises(error, match=text):
            f()
    with MESH, pytest.raises(RuntimeError, match="non-empty mesh"):
        jax.jit(lambda x: x, in_shardings=P("X"))(X)
    struct = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=CUT)
    assert struct.format == Format(None, CUT)


def test_shardings_are_alike_over_the_same_devices_in_the_same_order():
    other = Mesh(D[::-1], "X")
    assert on().is_equivalent_to(NamedSharding(Mesh(D, "Y"), P()), 1)
    assert not on().is_equivalent_to(NamedSharding(other, P()), 1)


def test_meshes_do_not_change_and_have_devices_outside_of_programs():
    with pytest.raises(AttributeError, match="cannot assign to field 'axis_names'"):
        MESH.axis_names = ("Y",)
    with jax.set_mesh(MESH) as nothing:
        assert nothing is None and jax.sharding.get_mesh() is MESH
        with pytest.raises(ValueError, match="get_abstract_mesh"):
            jax.jit(lambda: jax.sharding.get_mesh().size)()
    mesh = GRID.abstract_mesh
    assert NamedSharding(mesh, P("X")).is_equivalent_to(NamedSharding(mesh, P("X", None)), 2)
    assert not NamedSharding(mesh, P("X")).is_equivalent_to(NamedSharding(mesh, P("Y")), 2)


def test_devices_count_in_their_order():
    """Programs of arrays on the same devices in another order are refused, wherever the other order comes from."""
    turned = Mesh(D[::-1], "X")
    other, there = NamedSharding(turned, P("X")), jax.device_put(X, NamedSharding(turned, P("X")))
    calls = [
        lambda: XS + there,
        lambda: jax.jit(jnp.add)(XS, there),
        lambda: jax.jit(jnp.sin, out_shardings=other)(XS),
        lambda: jax.jit(jnp.sin, in_shardings=CUT, out_shardings=other)(X),
        lambda: jax.jit(lambda x: lax.with_sharding_constraint(x, other))(XS),
        lambda: lax.with_sharding_constraint(XS, other),
        lambda: jax.shard_map(jnp.sin, mesh=turned, in_specs=P("X"), out_specs=P("X"))(XS),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"with device ids \[0, 1, 2, 3\] .* with device ids \[3, 2, 1, 0\]"):
            call()
    assert [s.device.id for s in jax.device_put(XS, other).addressable_shards] == [3, 2, 1, 0]
    assert jax.device_put(XS, CUT) is XS and jax.typeof(X).memory_space is jax.memory.Space.Device


def test_shardings_are_immutable():
    for name in ("spec", "mesh", "other"):
        with pytest.raises(AttributeError):
            setattr(NamedSharding(MESH, P("X")), name, P())
    with pytest.raises(ValueError, match="must be an AbstractMesh"):
        jax.sharding.use_abstract_mesh(MESH)
    with pytest.raises(ValueError, match="does not support kwargs"):
        jax.jit(lambda x, n: x * n, static_argnames="n", in_shardings=(CUT,))(X, n=3)


@pytest.mark.parametrize("spec, ndim, text", [
    (P(), 3, "{replicated}"),
    (P("a"), 1, "{devices=[2,4]<=[8] last_tile_dim_replicate}"),
    (P("c"), 2, "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"),
    (P("a", None, "c"), 3, "{devices=[2,1,2,2]<=[2,2,2]T(0,2,1) last_tile_dim_replicate}"),
    (P(("c", "a"), "b"), 2, "{devices=[4,2]<=[4,2]T(1,0)}"),
    (P("c", "b"), 2, "{devices=[2,2,2]<=[2,2,2]T(2,1,0) last_tile_dim_replicate}"),
    (P("one"), 1, "{replicated}"),
    (P("one", "c"), 2, "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"),
    (P(("a", "b", "c")), 1, "{devices=[8]<=[8]}"),
])  # fmt: skip
def test_as_xla_writes_it(spec, ndim, text):
    mesh = AbstractMesh((2, 2, 1, 2), ("a", "b", "one", "c"))
    found = NamedSharding(mesh, spec)._to_xla_hlo_sharding(ndim)
    assert str(found) == text and found == NamedSharding(mesh, spec)._to_xla_hlo_sharding(ndim)
    devices = found.tile_assignment_devices()
    assert sorted(devices) == list(range(found.num_devices())) and found.is_tiled() != found.is_replicated()
    if devices and not found.replicate_on_last_tile_dim():
        axes = [n for part in spec for n in (part if isinstance(part, tuple) else (part,))]
        order = [("a", "b", "c").index(n) for n in axes]
        assert devices == np.arange(8).reshape(2, 2, 2).transpose(order).ravel().tolist()


def test_a_spec_of_a_type_means_the_mesh_where_it_is_asked_for():
    struct = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=P("X"))
    assert struct == jax.ShapeDtypeStruct((8,), jnp.float32, sharding=P("X"))
    with jax.set_mesh(MESH):
        assert struct.sharding == CUT and jax.jit(lambda x: x).lower(struct).compile().input_shardings[0][0] == CUT
    with pytest.raises(TypeError, match="meant over the context mesh, but none"):
        jax.jit(lambda x: x).lower(struct)
    odd = jax.ShapeDtypeStruct((7,), jnp.float32, sharding=CUT)
    with pytest.raises(IndivisibleError):
        jax.jit(lambda x: x).lower(odd).compile()


def test_what_is_no_default_device():
    for wrong in (3, CUT, "here"):
        with pytest.raises(ValueError, match="jax_default_device: expected a Device"), jax.default_device(wrong):
            pass


def test_names_and_parts():
    assert str(MESH.abstract_mesh.abstract_device) == "device_kind=cpu, num_cores=None, platform=cpu"
    assert Mesh(np.empty((), object), ()).size == 0
    with pytest.raises(AttributeError):
        XS.addressable_shards[0].data = 3
    copies = [jax.device_put(np.float32(k), d) for k, d in enumerate(D)]
    assert float(jax.make_array_from_single_device_arrays((), WHOLE, copies)) == 0
    with pytest.raises(TypeError, match="is not a valid JAX type"):
        jax.device_put(STRUCT, D[0])
    with pytest.raises(TypeError, match="'axis_names' must be a set"):
        jax.shard_map(lambda x: x, mesh=MESH, in_specs=P("X"), out_specs=P("X"), axis_names="X")
