"""Stands for jax._src.sharding_impls: classes of shardings, and what stands where none is given."""

from collections.abc import Sequence
from typing import Any

from pullback.api.mesh import make_mesh
from pullback.jax_names.src.named_sharding import array_mapping_to_axis_resources, get_array_mapping
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
    return len({k for part in parts for k in range(*part[dim].indices(global_shape[dim]))})


def prepare_axis_resources(axis_resources: Any, arg_name: str, allow_unconstrained_dims: bool = False) -> Any:
    """The tree of specs, shardings and None, once its leaves are looked at.

    Raises TypeError for other leaves, DuplicateSpecError for a spec that names an axis twice, and unless
    `allow_unconstrained_dims` ValueError for one that leaves a dimension open.
    """
    for leaf in tree_leaves(axis_resources):
        if not isinstance(leaf, (PartitionSpec, Sharding)):
            raise TypeError(
                f"{arg_name} leaf specifications are expected to be PartitionSpec instances or None, but got {leaf}"
            )
        spec = leaf if isinstance(leaf, PartitionSpec) else getattr(leaf, "spec", PartitionSpec())
        if PartitionSpec.UNCONSTRAINED in spec and not allow_unconstrained_dims:
            raise ValueError(f"Unconstrained dims are not allowed when passed to {arg_name}: {leaf}")
        used = [name for part in spec for name in names_of(part)]
        for name in used:
            if used.count(name) > 1:
                raise DuplicateSpecError(
                    f"A single {arg_name} specification can map every mesh axis to at most one positional dimension, "
                    f"but {leaf} has duplicate entries for `{name}`"
                )
    return axis_resources


__all__ = [
    "UNSPECIFIED", "AbstractMesh", "AxisType", "GSPMDSharding", "IndivisibleError", "Mesh", "NamedSharding",
    "PartitionSpec", "Sharding", "SingleDeviceSharding", "UnspecifiedValue", "_gspmd_to_named_sharding_via_mesh",
    "array_mapping_to_axis_resources", "cached_named_sharding", "canonicalize_sharding", "device_replica_id_map",
    "get_abstract_mesh", "get_array_mapping", "get_mesh", "make_mesh", "make_single_device_sharding",
    "num_addressable_indices", "parse_flatten_op_sharding", "prepare_axis_resources", "set_mesh",
]  # fmt: skip
