"""Stands for jax._src.sharding: the base of shardings, and what they have in common."""

from collections.abc import Sequence
from typing import Any

from pullback.jax_names.src.op_shardings import are_hlo_shardings_equal, is_hlo_sharding_replicated
from pullback.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
)
from pullback.sharding._shardings import IndivisibleError


def common_devices_indices_map(s: Sharding, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
    """Device -> index of its part."""
    return s.devices_indices_map(global_shape)


def common_is_equivalent_to(s1: Sharding, s2: Sharding, ndim: int, check_devices: bool = True) -> bool:
    """Whether both place arrays of `ndim` dimensions alike; unless `check_devices`, on whatever devices."""
    if check_devices:
        return s1.is_equivalent_to(s2, ndim)
    one, other = (s._to_xla_hlo_sharding(ndim) for s in (s1, s2))
    return are_hlo_shardings_equal(one, other) and s1.memory_kind == s2.memory_kind


__all__ = [
    "AbstractMesh", "AxisType", "IndivisibleError", "Mesh", "NamedSharding", "PartitionSpec", "Sharding",
    "SingleDeviceSharding", "are_hlo_shardings_equal", "common_devices_indices_map", "common_is_equivalent_to",
    "get_abstract_mesh", "get_mesh", "is_hlo_sharding_replicated", "set_mesh",
]  # fmt: skip
