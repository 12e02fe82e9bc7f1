"""Shardings as XLA has them: tiles of devices as values and as messages, and arrays that lie by them."""

import numpy as np
import pytest

import pullback as jax
from pullback.extend import sharding as of_messages
from pullback.jax_names.src import op_shardings, sharding_impls
from pullback.sharding import AbstractMesh, AxisType, NamedSharding
from pullback.sharding import PartitionSpec as P
from pullback.sharding._gspmd import GSPMDSharding
from pullback.sharding._hlo_sharding import HloSharding
from pullback.sharding._op_sharding import OpSharding, OpShardingType

MESH = jax.make_mesh((2, 2), ("x", "y"))
MANUAL = OpShardingType.MANUAL
COPIES = OpShardingType.REPLICATED
LISTED = HloSharding.subgroup_with_device_ordering(np.arange(8)[::-1].reshape(2, 4), [COPIES])


@pytest.mark.parametrize("spec", [
    P(), P("x"), P("y"), P("x", "y"), P(None, "x"), P(("x", "y")), P(("y", "x")), P("y", "x"), P(None, ("y", "x")),
], ids=str)  # fmt: skip
def test_tiles_of_specs_are_read_back(spec):
    named = NamedSharding(MESH, spec)
    tile = named._to_xla_hlo_sharding(2)
    assert sharding_impls.parse_flatten_op_sharding(tile, MESH) == [spec]
    assert HloSharding.from_string(str(tile)) == tile and HloSharding.from_proto(tile.to_proto()) == tile
    made = GSPMDSharding(jax.devices(), tile)
    assert made.devices_indices_map((8, 8)) == named.devices_indices_map((8, 8))
    assert made.is_equivalent_to(named, 2) and made != named
    indices = op_shardings.op_sharding_to_indices(tile, (8, 8), 4)
    assert dict(zip(jax.devices(), indices, strict=True)) == named.devices_indices_map((8, 8))


@pytest.mark.parametrize("tile, text, data", [
    (HloSharding.replicate(), "{replicated}", b""),
    (HloSharding.manual(), "{manual}", b"\x08\x04"),
    (HloSharding.unknown(), "{unknown}", b"\x08\x05"),
    (HloSharding.unreduced(), "{unreduced}", b"\x08\x06"),
    (HloSharding.iota_tile((2, 4)), "{devices=[2,4]<=[8]}", b"\x08\x03\x1a\x02\x02\x04J\x01\x08R\x01\x00"),
    (HloSharding.iota_tile((2, 2, 2), (2, 4), (1, 0), [MANUAL]),
     "{devices=[2,2,2]<=[2,4]T(1,0) last_tile_dims={manual}}",
     b"\x08\x03\x1a\x03\x02\x02\x02B\x01\x04J\x02\x02\x04R\x02\x01\x00"),
    (LISTED, "{devices=[2,4]4,5,6,7,0,1,2,3 last_tile_dim_replicate}",
     b'\x08\x03\x1a\x02\x02\x04"\x08\x04\x05\x06\x07\x00\x01\x02\x030\x01'),
])  # fmt: skip
def test_texts_and_bytes(tile, text, data):
    assert str(tile) == text and HloSharding.from_string(text) == tile
    assert of_messages.get_serialized_proto_from_hlo_sharding(tile) == data
    assert of_messages.get_hlo_sharding_from_serialized_proto(data) == tile


def test_messages_are_filled_in():
    message = OpSharding()
    message.type = OpSharding.Type.OTHER
    message.tile_assignment_dimensions, message.tile_assignment_devices = [2, 4], list(range(8))
    tile = HloSharding.from_proto(message.clone())
    assert tile == HloSharding.iota_tile((2, 4)) and hash(tile) == hash(HloSharding.iota_tile((2, 4)))
    assert op_shardings.get_num_ways_dim_sharded(tile) == ([2, 4], 1)
    with pytest.raises(ValueError, match="ends within"):
        OpSharding().ParseFromString(b"\x08")


@pytest.mark.parametrize("spec, text", [
    (P("x"), "{devices=[4,1,2]<=[8] last_tile_dims={manual}}"),
    (P(None), "{devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, replicated}}"),
    (P(None, unreduced={"x"}), "{devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dims={manual, unreduced}}"),
])  # fmt: skip
def test_axes_that_cut_nothing(spec, text):
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Manual))
    assert str(NamedSharding(mesh, spec)._to_xla_hlo_sharding(2)) == text


def test_arrays_lie_by_tiles():
    tile = GSPMDSharding(jax.devices()[:4], HloSharding.iota_tile((2, 2)))
    x = jax.device_put(np.arange(64.0).reshape(8, 8), tile)
    assert x.sharding == tile and x.addressable_shards[1].data.shape == (4, 4)
    assert (jax.jit(lambda x: x + 1, out_shardings=tile)(x)).sharding == tile
    assert str(tile) == "GSPMDSharding({devices=[2,2]<=[4]}, memory_kind=device)"
    with pytest.raises(ValueError, match="do not evenly divide"):
        jax.device_put(np.ones((3, 4)), tile)
    with pytest.raises(ValueError, match="at least 2"):
        tile.check_compatible_aval((8,))


def test_results_lie_as_over_a_mesh():
    x = jax.device_put(np.arange(64.0).reshape(8, 8), GSPMDSharding(jax.devices()[:4], HloSharding.iota_tile((2, 2))))
    for wrap in (jax.jit, lambda function: function):
        for function, tile in (
            (lambda x: 2 * x, "{devices=[2,2]<=[4]}"),
            (lambda x: x.sum(), "{replicated}"),
            (lambda x: x.sum(0), "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"),
            (lambda x: x.T, "{devices=[2,2]<=[2,2]T(1,0)}"),
        ):
            found = wrap(function)(x)
            assert str(found.sharding) == f"GSPMDSharding({tile}, memory_kind=device)"
            np.testing.assert_array_equal(found, function(np.asarray(x)))
    y = jax.device_put(np.ones((8, 8)), NamedSharding(MESH, P("x", "y")))
    assert (x + y).sharding == y.sharding


@pytest.mark.parametrize("given", [
    ((),), ((4, 4), (4,)), ((4, 4), (), (1, 0)), ((4, 4), (2, 2, 2), (0, 1, 2)), ((4, 4), (16,), (0, 1)),
    ((4,), (4,), (0,), [COPIES, MANUAL]), ((0, 4),),
], ids=str)  # fmt: skip
def test_tiles_that_are_none(given):
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT"):
        HloSharding.iota_tile(*given)


@pytest.mark.parametrize("sizes, dims, axes", [
    ((4, 2), [(8, 1)], [(4, 2), (2, 1)]),
    ((4, 2, 3), [(24, 1)], [(4, 6), (2, 3), (3, 1)]),
    ((2, 2, 2), [(4, 2), (2, 1)], [(2, 1), (2, 4), (2, 2)]),
    ((4, 2), [(2, 1), (4, 2)], [(4, 2), (2, 1)]),
    ((4, 2, 3), [(12, 2), (2, 1)], None),
])  # fmt: skip
def test_axes_that_orders_are_made_of(sizes, dims, axes):
    if axes is None:
        with pytest.raises(AssertionError, match="not made of"):
            sharding_impls.explode_superdims(sizes, dims)
        return
    assert sharding_impls.explode_superdims(sizes, dims) == axes


def test_orders_of_numbers_as_axes():
    for order, axes in (
        (range(8), [(8, 1)]), ([0, 2, 4, 6, 1, 3, 5, 7], [(4, 2), (2, 1)]), ([0], []),
        ([0, 1, 4, 5, 2, 3, 6, 7], [(2, 1), (2, 4), (2, 2)]),
    ):  # fmt: skip
        assert sharding_impls.unflatten_superdims(order) == axes
    for order in ([1, 0], [0, 1, 3, 2]):
        with pytest.raises(NotImplementedError):
            sharding_impls.unflatten_superdims(order)
    assert sharding_impls.unflatten_array({"x": 4, "y": 2}, [0, 2, 4, 6, 1, 3, 5, 7]) == ["y", "x"]


def test_keys_lie_as_their_words():
    keys = jax.random.split(jax.random.key(0), 8)
    tile = GSPMDSharding(jax.devices(), HloSharding.iota_tile((4,)))
    words = sharding_impls.physical_sharding(jax.typeof(keys), tile)
    assert words == GSPMDSharding(jax.devices(), HloSharding.iota_tile((4, 1)))
    cut = NamedSharding(MESH, P("x"))
    assert sharding_impls.physical_sharding(jax.typeof(keys), cut).spec == P("x", None)
    sharding_impls.check_replicated_trailing_dims(cut, (8,), keys.dtype)
    with pytest.raises(AssertionError, match="cuts the words"):
        sharding_impls.check_replicated_trailing_dims(NamedSharding(MESH, P("x", "y")), (8,), keys.dtype)
    assert sharding_impls.local_to_global_shape(NamedSharding(MESH, P("x", "y")), (8, 6)) == (8, 6)
    assert sharding_impls.num_addressable_indices(cut, 0, (8, 8)) == 8
    assert sorted(sharding_impls.device_replica_id_map(cut, (8, 8)).values()) == [0, 0, 1, 1]
