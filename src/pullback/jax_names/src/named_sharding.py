"""Stands for jax._src.named_sharding."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from pullback.sharding import AxisType, DuplicateSpecError, NamedSharding, PartitionSpec
from pullback.sharding._shardings import UNSPECIFIED, UnspecifiedValue
from pullback.sharding._specs import names_of


def get_array_mapping(axis_resources: PartitionSpec) -> "OrderedDict[Any, int]":
    """Mesh axis -> the dimension that it cuts."""
    return OrderedDict((name, k) for k, part in enumerate(axis_resources) for name in names_of(part))


def array_mapping_to_axis_resources(array_mapping: Mapping[Any, int]) -> PartitionSpec:
    """The spec of a mapping, see `get_array_mapping`."""
    entries: list[Any] = []
    for k in range(max(array_mapping.values(), default=-1) + 1):
        names = tuple(name for name, at in array_mapping.items() if at == k)
        entries.append(names if len(names) > 1 else names[0] if names else None)
    return PartitionSpec(*entries)


def get_replicated_axes(spec: PartitionSpec, mesh: Any) -> frozenset[Any]:
    """The mesh axes that no dimension is cut along."""
    return NamedSharding(mesh, spec).replicated_axes


def flatten_spec(spec: PartitionSpec) -> list[Any]:
    """The names of all entries in a list, with None for what is not cut."""
    return [name for part in spec for name in (names_of(part) or [None])]


__all__ = [
    "UNSPECIFIED", "AxisType", "DuplicateSpecError", "NamedSharding", "PartitionSpec", "UnspecifiedValue",
    "array_mapping_to_axis_resources", "flatten_spec", "get_array_mapping", "get_replicated_axes",
]  # fmt: skip
