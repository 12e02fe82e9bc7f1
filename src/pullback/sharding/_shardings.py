"""Shardings: which part of an array each device holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.sharding._mesh import AbstractMesh, Mesh


class PartitionSpec(tuple):
    """For each dimension of an array the mesh axis, or axes, it is cut along; None where it is not."""

    UNCONSTRAINED = "<unconstrained>"

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        return super().__new__(cls, [tuple(p) if isinstance(p, list) else p for p in partitions])

    def __repr__(self) -> str:
        return f"PartitionSpec{tuple.__repr__(self)}"

    def __reduce__(self) -> Any:
        return PartitionSpec, tuple(self)

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*tuple(self), *tuple(other))


Index = tuple[slice, ...]


class Sharding:
    """Base: a set of devices and, for a shape, the part of an array that each holds."""

    memory_kind: str | None = None

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold a part."""
        raise NotImplementedError(f"{type(self).__name__} has no device_set")

    @property
    def num_devices(self) -> int:
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        return self.device_set

    @property
    def is_fully_addressable(self) -> bool:
        return True

    @property
    def is_fully_replicated(self) -> bool:
        raise NotImplementedError(f"{type(self).__name__} has no is_fully_replicated")

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """Device -> index of its part in an array of this shape."""
        raise NotImplementedError(f"{type(self).__name__} has no devices_indices_map")

    addressable_devices_indices_map = devices_indices_map

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each device's part."""
        index = next(iter(self.devices_indices_map(global_shape).values()))
        return tuple(len(range(*s.indices(n))) for s, n in zip(index, global_shape, strict=True))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both place arrays of `ndim` dimensions alike."""
        return self == other


class SingleDeviceSharding(Sharding):
    """All on one device."""

    def __init__(self, device: Any, *, memory_kind: str | None = None) -> None:
        self._device = device
        self.memory_kind = memory_kind

    @property
    def device_set(self) -> set[Any]:
        return {self._device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        return {self._device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device is other._device

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind or 'device'})"


class NamedSharding(Sharding):
    """A mesh, and the mesh axes that each dimension is cut along.

    Raises ValueError if the spec names an axis that the mesh has not, or one twice.
    """

    def __init__(self, mesh: Mesh | AbstractMesh, spec: Any, *, memory_kind: str | None = None) -> None:
        if not isinstance(spec, PartitionSpec):
            spec = PartitionSpec(*spec)
        self.mesh, self.spec, self.memory_kind = mesh, spec, memory_kind
        used: list[Any] = []
        for part in spec:
            used.extend(() if part is None or part == PartitionSpec.UNCONSTRAINED else _names(part))
        for name in used:
            if name not in mesh.axis_names:
                raise ValueError(f"Resource axis: {name} of {spec} is not found in mesh: {tuple(mesh.axis_names)}.")
            if used.count(name) > 1:
                raise ValueError(f"NamedSharding: {spec} uses mesh axis {name} more than once")

    @property
    def device_set(self) -> set[Any]:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("A NamedSharding over an AbstractMesh has no devices")
        return set(self.mesh.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        return all(math.prod(self.mesh.shape[n] for n in _names(p)) == 1 for p in self.spec if p is not None)

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError("A NamedSharding over an AbstractMesh has no devices")
        parts = [*self.spec, *[None] * (len(global_shape) - len(self.spec))]
        out = {}
        for place in np.ndindex(*self.mesh.devices.shape):
            at = dict(zip(self.mesh.axis_names, place, strict=True))
            index = []
            for part, extent in zip(parts, global_shape, strict=True):
                count, number = 1, 0
                for name in () if part is None else _names(part):
                    number = number * self.mesh.shape[name] + at[name]
                    count *= self.mesh.shape[name]
                if extent % count:
                    raise ValueError(f"{self}: a dimension of size {extent} cannot be cut into {count} equal parts")
                step = extent // count
                index.append(slice(None) if count == 1 else slice(number * step, (number + 1) * step))
            out[self.mesh.devices[place]] = tuple(index)
        return out

    addressable_devices_indices_map = devices_indices_map

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n!r}: {s}" for n, s in self.mesh.shape_tuple)
        return f"NamedSharding(mesh={type(self.mesh).__name__}({sizes}), spec={self.spec})"


def _names(part: Any) -> tuple[Any, ...]:
    return tuple(part) if isinstance(part, tuple) else (part,)


class PmapSharding(Sharding):
    """The leading axis cut into one element for each device."""

    def __init__(self, devices: Any) -> None:
        self.devices = np.asarray(devices, dtype=object)

    @property
    def device_set(self) -> set[Any]:
        return set(self.devices.flat)

    @property
    def is_fully_replicated(self) -> bool:
        return False

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        rest = (slice(None),) * (len(global_shape) - 1)
        return {d: (slice(i, i + 1), *rest) for i, d in enumerate(self.devices.flat)}

    addressable_devices_indices_map = devices_indices_map
