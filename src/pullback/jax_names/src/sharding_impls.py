"""Stands for jax._src.sharding_impls: classes of shardings, and what stands where none is given."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.api.mesh import make_mesh
from pullback.jax_names.src.named_sharding import array_mapping_to_axis_resources, get_array_mapping
from pullback.jax_names.src.op_shardings import (
    are_hlo_shardings_equal,
    get_num_ways_dim_sharded,
    is_hlo_sharding_replicated,
)
from pullback.jax_names.src.superdims import explode_superdims, strides_for_sizes, unflatten_array, unflatten_superdims
from pullback.sharding import (
    AbstractMesh,
    AxisType,
    DuplicateSpecError,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
    make_single_device_sharding,
    set_mesh,
)
from pullback.sharding._gspmd import GSPMDSharding, specs_of
from pullback.sharding._gspmd import named as _named
from pullback.sharding._hlo_sharding import HloSharding
from pullback.sharding._op_sharding import OpSharding
from pullback.sharding._shardings import UNSPECIFIED, IndivisibleError, Sharding, UnspecifiedValue
from pullback.sharding._specs import names_of
from pullback.util.pytree import tree_leaves


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None, api_name: str, check_mesh_consistency: bool = True
) -> NamedSharding | None:
    """The sharding over the mesh in force that a spec stands for (jaxns); None where there is no mesh.

    ValueError for a spec where no mesh is in force, and unless `check_mesh_consistency` is off for a sharding over
    another mesh than that in force.
    """
    mesh = get_abstract_mesh()
    if isinstance(sharding, PartitionSpec):
        if mesh.empty:
            raise ValueError(f"{api_name}: {sharding} needs a mesh; set one with jax.set_mesh")
        return NamedSharding(mesh, sharding)
    if sharding is None or sharding.mesh.empty:
        return None
    if check_mesh_consistency and not mesh.empty and mesh != sharding.mesh.abstract_mesh:
        raise ValueError(f"{api_name}: {sharding} is over another mesh than the one in force, {mesh}")
    return sharding


def cached_named_sharding(mesh: Any, pspec: PartitionSpec, memory_kind: str | None = None) -> NamedSharding:
    """NamedSharding(mesh, pspec, memory_kind)."""
    return NamedSharding(mesh, pspec, memory_kind)


def parse_flatten_op_sharding(hlo_sharding: Any, mesh: Any) -> Sequence[PartitionSpec]:
    """The specs by which a mesh cuts as a tile does, or the tiles of a tuple; IndivisibleError where none does."""
    return specs_of(hlo_sharding, mesh)


def _gspmd_to_named_sharding_via_mesh(out_s: GSPMDSharding, mesh: Any) -> NamedSharding:
    return _named(out_s, mesh)


def device_replica_id_map(sharding: Sharding, global_shape: Sequence[int]) -> dict[Any, int]:
    """Device -> the number of its copy, of those that have the same part; ValueError for an axis of unequal parts."""
    counts: dict[Any, int] = {}
    found = {}
    for device, index in sharding.devices_indices_map(global_shape).items():
        key = tuple((part.start, part.stop) for part in index)
        found[device] = counts[key] = counts.get(key, -1) + 1
    return found


def num_addressable_indices(tensor_sharding: Sharding, dim: int, global_shape: Sequence[int]) -> int:
    """How many different parts along one dimension this process's devices have together, times their extent."""
    parts = tensor_sharding.addressable_devices_indices_map(global_shape).values()
    return sum(stop - start for start, stop in {part[dim].indices(global_shape[dim])[:2] for part in parts})


def physical_sharding(aval: Any, sharding: Any) -> Any:
    """How the words of keys lie, whose array lies so: each device has the words of its keys."""
    words = len(aval.dtype.base_shape)
    if isinstance(sharding, GSPMDSharding):
        tile = sharding._hlo_sharding
        counts, _ = tile.ways()
        if not counts:
            return sharding
        last = [*tile.subgroup_types()] or ([OpSharding.Type.REPLICATED] if tile.replicate_on_last_tile_dim() else [])
        shape = tile.tile_assignment_dimensions()
        numbers = np.reshape(tile.tile_assignment_devices(), [*counts, *[1] * words, *shape[len(counts) :]])
        same = numbers.ravel().tolist() == list(range(numbers.size))
        made = HloSharding.iota_tile(numbers.shape, (), (), last) if same else None
        made = made or HloSharding.subgroup_with_device_ordering(numbers, last)
        return GSPMDSharding(sharding._devices, made, sharding.memory_kind)
    if not isinstance(sharding, NamedSharding):
        return sharding
    spec = (*sharding.spec, *[None] * (len(aval.shape) - len(sharding.spec) + words))
    return sharding.update(spec=PartitionSpec(*spec))


make_key_array_phys_sharding = physical_sharding


def check_replicated_trailing_dims(sharding: Any, logical_shape: Sequence[int], dtype: Any) -> None:
    """AssertionError where the words of a key are on different devices."""
    ndim = len(logical_shape)
    parts = sharding.shard_shape([*[_WIDE] * (ndim + len(dtype.base_shape))])[ndim:]
    if any(n != _WIDE for n in parts):
        raise AssertionError(f"{sharding} cuts the words of single elements of {dtype}")


_WIDE = 1 << 20  # of a dimension that any mesh cuts evenly


def local_to_global_shape(sharding: Sharding, local_shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of an array of which the devices of this process have `local_shape` together."""
    wide = [_WIDE] * len(local_shape)
    return tuple(n * _WIDE // num_addressable_indices(sharding, axis, wide) for axis, n in enumerate(local_shape))


def prepare_axis_resources(axis_resources: Any, arg_name: str, allow_unconstrained_dims: bool = False) -> Any:
    """The tree of specs, shardings and None, once its leaves are looked at.

    Raises TypeError for other leaves, DuplicateSpecError for a spec that names an axis twice, and unless
    `allow_unconstrained_dims` ValueError for one that leaves a dimension open.
    """
    for leaf in tree_leaves(axis_resources):
        if not isinstance(leaf, (PartitionSpec, Sharding)):
            raise TypeError(
                f"argument '{arg_name}' is a tree of PartitionSpec, of shardings or of None, got {leaf!r} in it"
            )
        spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", PartitionSpec())
        if PartitionSpec.UNCONSTRAINED in spec and not allow_unconstrained_dims:
            raise ValueError(f"argument '{arg_name}' must say how each dimension lies, but {leaf} leaves some open")
        used = [name for part in spec for name in names_of(part)]
        for name in used:
            if used.count(name) > 1:
                raise DuplicateSpecError(
                    f"argument '{arg_name}': {leaf} has duplicate entries for `{name}`; an axis of "
                    "the mesh cuts one dimension"
                )
    return axis_resources


replicated_hlo_sharding = HloSharding.replicate()

__all__ = [
    "UNSPECIFIED", "AbstractMesh", "AxisType", "GSPMDSharding", "IndivisibleError", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnspecifiedValue", "_gspmd_to_named_sharding_via_mesh",
    "are_hlo_shardings_equal", "array_mapping_to_axis_resources", "cached_named_sharding", "canonicalize_sharding",
    "check_replicated_trailing_dims", "device_replica_id_map", "explode_superdims", "get_abstract_mesh",
    "get_array_mapping", "get_mesh", "get_num_ways_dim_sharded", "is_hlo_sharding_replicated", "local_to_global_shape",
    "make_key_array_phys_sharding", "make_mesh", "make_single_device_sharding", "num_addressable_indices",
    "parse_flatten_op_sharding", "physical_sharding", "prepare_axis_resources", "replicated_hlo_sharding", "set_mesh",
    "strides_for_sizes", "unflatten_array", "unflatten_superdims",
]  # fmt: skip
