"""Shardings that say which tile of an array each of a list of devices has, without a mesh.

JAX made them before meshes; libraries and checks of shardings still do. Arrays lie by them, and programs on such arrays
run whole: what is cut over a mesh is partitioned, see `partition/`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.sharding._hlo_sharding import HloSharding
from pullback.sharding._mesh import Mesh
from pullback.sharding._op_sharding import OpSharding, OpShardingType
from pullback.sharding._shardings import Index, IndivisibleError, NamedSharding, Sharding, _memory_kind
from pullback.sharding._specs import PartitionSpec
from pullback.util.tracebacks import api_boundary


def tile_indices(hlo_sharding: HloSharding, shape: Sequence[int], num_devices: int) -> tuple[Index, ...]:
    """The part of an array that each device has, by the devices' numbers.

    Raises ValueError where the tile has another number of devices, or other dimensions; IndivisibleError where a
    dimension is not so many equal parts.
    """
    if hlo_sharding.is_maximal() or not hlo_sharding.is_tiled():
        return ((slice(None),) * len(shape),) * num_devices
    parts, copies = hlo_sharding.ways()
    numbers = hlo_sharding.tile_assignment_devices()
    if len(numbers) != num_devices or len(parts) != len(shape):
        raise ValueError(
            f"{hlo_sharding} is no sharding of {num_devices} devices and of arrays of shape {tuple(shape)}"
        )
    for axis, (extent, count) in enumerate(zip(shape, parts, strict=True)):
        if extent % count:
            raise IndivisibleError.of(hlo_sharding, shape, axis, parts)
    slices = [
        [slice(k * (n // count), (k + 1) * (n // count)) if count > 1 else slice(None) for k in range(count)]
        for n, count in zip(shape, parts, strict=True)
    ]
    found: list[Index] = [()] * num_devices
    for number, (index, _) in zip(numbers, itertools.product(itertools.product(*slices), range(copies)), strict=True):
        found[number] = index
    return tuple(found)


class GSPMDSharding(Sharding):
    """A list of devices, and the tile of them that an array is cut by.

    Args:
        devices: the devices, in the order that the tile's numbers count.
        op_sharding: an HloSharding, or a message of one.
        memory_kind: "device", "pinned_host", "unpinned_host" or None.

    Raises:
        TypeError: for an `op_sharding` that is neither.
        ValueError: for an unknown `memory_kind`.
    """

    is_tile = True

    @api_boundary
    def __init__(self, devices: Any, op_sharding: Any, memory_kind: str | None = None) -> None:
        if isinstance(op_sharding, OpSharding):
            op_sharding = HloSharding.from_proto(op_sharding)
        if not isinstance(op_sharding, HloSharding):
            raise TypeError(f"GSPMDSharding: argument 'op_sharding' must be an HloSharding, got {op_sharding!r}")
        self._devices = tuple(devices)
        self._hlo_sharding = op_sharding
        self.memory_kind = _memory_kind(memory_kind)

    @classmethod
    def get_replicated(cls, device_assignment: Any, *, memory_kind: str | None = None) -> GSPMDSharding:
        """That by which each of the devices has all."""
        return cls(device_assignment, HloSharding.replicate(), memory_kind)

    @property
    def device_set(self) -> set[Any]:
        return set(self._devices)

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        return self._devices

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> HloSharding:
        return self._hlo_sharding

    @property
    def is_fully_replicated(self) -> bool:
        return is_replicated(self._hlo_sharding)

    def check(self, shape: Sequence[int], what: str) -> None:
        self._check_rank(shape, f"one of {what}: ")
        self.devices_indices_map(shape)

    def _check_rank(self, shape: Sequence[int], before: str = "") -> None:
        rank = len(self._hlo_sharding.ways()[0])
        if len(shape) < rank:
            raise ValueError(
                f"{before}{self} takes arrays of rank at least {rank}, and this one has shape {tuple(shape)}"
            )

    @api_boundary
    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError for arrays of fewer dimensions than the tile has."""
        self._check_rank(aval_shape)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        indices = tile_indices(self._hlo_sharding, global_shape, len(self._devices))
        return dict(zip(self._devices, indices, strict=True))

    def _places(self, ndim: int) -> Any:
        parts, _ = self._hlo_sharding.ways()
        parts = [*parts, *[1] * (ndim - len(parts))]
        places = {}
        for device, index in self.devices_indices_map(parts).items():
            places[device] = tuple(part.start or 0 for part in index)
        return places, tuple(parts)

    @api_boundary
    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The sharding with another kind of memory."""
        return GSPMDSharding(self._devices, self._hlo_sharding, kind)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GSPMDSharding)
            and are_equal(self._hlo_sharding, other._hlo_sharding)
            and (self._devices, self.memory_kind) == (other._devices, other.memory_kind)
        )

    def __hash__(self) -> int:
        return hash((self._devices, self.memory_kind, self.is_fully_replicated or self._hlo_sharding))

    def __repr__(self) -> str:
        return f"GSPMDSharding({self._hlo_sharding}, memory_kind={self.memory_kind})"


def is_replicated(hlo_sharding: HloSharding) -> bool:
    """Whether each device has all, as is said, or as no dimension has more than one part."""
    if hlo_sharding.is_replicated() or hlo_sharding.num_devices() == 1:
        return True
    copies = all(kind is OpShardingType.REPLICATED for kind in hlo_sharding.subgroup_types())
    return hlo_sharding.is_tiled() and copies and all(count == 1 for count in hlo_sharding.ways()[0])


def are_equal(one: HloSharding, other: HloSharding) -> bool:
    """Whether both cut arrays alike."""
    return one == other or (is_replicated(one) and is_replicated(other))


def specs_of(hlo_sharding: Any, mesh: Any) -> list[PartitionSpec]:
    """The spec by which a mesh cuts arrays as a tile does, in a list; of a tuple's parts, one each.

    Raises IndivisibleError, or ValueError, where no axes of the mesh have the tile's sizes in its order.
    """
    if isinstance(hlo_sharding, OpSharding):
        hlo_sharding = HloSharding.from_proto(hlo_sharding)
    if parts := hlo_sharding.tuple_elements():
        return [spec for one in parts for spec in specs_of(one, mesh)]
    if is_replicated(hlo_sharding):
        return [PartitionSpec()]
    counts, copies = hlo_sharding.ways()
    place = np.argsort(hlo_sharding.tile_assignment_devices()) // copies  # of each device's part
    entries: list[list[tuple[int, Any]]] = [[] for _ in counts]
    stride = 1
    for name in reversed(mesh.axis_names):  # the devices of numbers 0 and `stride` are neighbours along it
        if mesh.shape[name] > 1 and stride < len(place):
            steps = np.unravel_index(place[stride], counts)
            for found, step in zip(entries, steps, strict=True):
                if step:
                    found.append((int(step), name))
        stride *= mesh.shape[name]
    names = [tuple(name for _, name in sorted(found, key=lambda pair: -pair[0])) for found in entries]
    for count, axes in zip(counts, names, strict=True):
        if math.prod(mesh.shape[name] for name in axes) != count:
            raise IndivisibleError(
                f"tiles of {counts} are not made by whole axes of the mesh {mesh.shape}: {axes} do not make {count}"
            )
    spec: list[Any] = [axes if len(axes) > 1 else axes[0] if axes else None for axes in names]
    while spec and spec[-1] is None:
        spec.pop()
    return [PartitionSpec(*spec)]


def named(sharding: GSPMDSharding, mesh: Mesh) -> NamedSharding:
    """The same over a mesh; raises as `specs_of`."""
    return NamedSharding(mesh, specs_of(sharding._hlo_sharding, mesh)[0], sharding.memory_kind)


def over_own_mesh(sharding: GSPMDSharding) -> NamedSharding:
    """The same over a mesh that is the tile, with copies along one more axis."""
    tile = sharding._hlo_sharding
    counts, copies = tile.ways()
    devices = np.array(sharding._devices, object)
    if not counts:
        return NamedSharding(Mesh(devices, (0,)), PartitionSpec(), sharding.memory_kind)
    mesh = Mesh(devices[tile.tile_assignment_devices()].reshape(*counts, copies), tuple(range(len(counts) + 1)))
    return NamedSharding(mesh, PartitionSpec(*range(len(counts))), sharding.memory_kind)


def of_named(sharding: NamedSharding, ndim: int, devices: Sequence[Any]) -> GSPMDSharding:
    """The same as a tile of devices, which are given in the order that its numbers count."""
    tile = sharding._to_xla_hlo_sharding(ndim)
    own = sharding._device_assignment
    if own != tuple(devices) and tile.is_tiled():
        places = [devices.index(own[k]) for k in tile.tile_assignment_devices()]
        numbers = np.reshape(places, tile.tile_assignment_dimensions())
        last = [OpShardingType.REPLICATED] if tile.replicate_on_last_tile_dim() else []
        tile = HloSharding.subgroup_with_device_ordering(numbers, last)
    return GSPMDSharding(devices, tile, sharding.memory_kind)


__all__ = [
    "GSPMDSharding", "are_equal", "is_replicated", "named", "of_named", "over_own_mesh", "specs_of", "tile_indices",
]  # fmt: skip
