"""Shardings: which part of an array each device holds."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.sharding._mesh import AbstractMesh, AxisType, Mesh, is_local
from pullback.sharding._specs import PartitionSpec, all_names_of, names_of
from pullback.util.errors import Explained
from pullback.util.notebooks import named_sharding_html, shown_by
from pullback.util.tracebacks import api_boundary

Index = tuple[slice, ...]
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class MemorySpace(enum.Enum):
    """Which memory an array lies in, the device's or the host's. Here both are the machine's, so nothing is moved."""

    Device = "device"
    Host = "pinned_host"
    Any = "any"

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"


class ArrayCopySemantics(enum.IntEnum):
    """What `device_put` may do with its operand's memory: share it, take it, or neither."""

    ALWAYS_COPY = 0
    REUSE_INPUT = 1
    DONATE_INPUT = 2

    def __repr__(self) -> str:
        return f"ArrayCopySemantics.{self.name}"


class DuplicateSpecError(Explained):
    """A spec names a mesh axis twice: `P("x", "x")`; an axis of the mesh can cut one dimension."""


class IndivisibleError(Explained, ValueError):
    """A dimension cannot be cut into as many equal parts as its sharding says."""

    @classmethod
    def of(cls, sharding: Any, shape: Sequence[int], axis: int, counts: Sequence[int]) -> IndivisibleError:
        """The error for an axis of arrays of this shape; counts: into how many parts each axis is cut."""
        return cls(
            f"{sharding} cuts axis {axis} into {counts[axis]} parts, which do not evenly divide it: its size is "
            f"{shape[axis]} (shape {tuple(shape)}, parts {tuple(counts)})"
        )


class UnspecifiedValue:
    """The type of UNSPECIFIED, which programs have where nobody said how a value is to lie."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = UnspecifiedValue()


def _memory_kind(kind: str | None) -> str:
    if kind is not None and kind not in MEMORY_KINDS:
        raise ValueError(
            "Could not find memory addressable by device cpu. Device cpu can address the following memory kinds: "
            f"{', '.join(MEMORY_KINDS)}. Got memory kind: {kind}"
        )
    return kind or "device"


class DeviceList(tuple[Any, ...]):
    """The devices of a sharding, in its order."""

    __slots__ = ()

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all are of this process."""
        return all(map(is_local, self))

    @property
    def addressable_device_list(self) -> DeviceList:
        """Those of this process."""
        return DeviceList(filter(is_local, self))

    @property
    def process_indices(self) -> set[int]:
        """The processes that they belong to."""
        return {device.process_index for device in self}

    @property
    def default_memory_kind(self) -> str:
        """The memory of arrays of which nothing else is said."""
        return MEMORY_KINDS[0]

    @property
    def memory_kinds(self) -> tuple[str, ...]:
        """All that arrays can lie in."""
        return MEMORY_KINDS


class Sharding:
    """Base: a set of devices and, for a shape, the part of an array that each holds."""

    memory_kind: str | None = None
    is_tile = False  # of devices, without a mesh (`_gspmd.py`)

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold a part."""
        raise NotImplementedError(f"{type(self).__name__} has no device_set")

    @property
    def num_devices(self) -> int:
        """How many devices hold a part."""
        return len(self.device_set)

    @property
    def addressable_devices(self) -> set[Any]:
        """The devices of this process that hold a part."""
        return {d for d in self.device_set if is_local(d)}

    @property
    def _device_assignment(self) -> tuple[Any, ...]:
        """The devices in the order of the mesh; libraries look at it."""
        return tuple(self.device_set)

    @property
    def _internal_device_list(self) -> DeviceList:
        return DeviceList(self._device_assignment)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        """As XLA writes it, for arrays of so many dimensions; libraries look at it."""
        from pullback.sharding._hlo_sharding import HloSharding  # not at start-up

        return HloSharding()

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        return tuple(filter(is_local, self._device_assignment))

    @property
    def has_addressable_devices(self) -> bool:
        """Whether a device of this process holds a part."""
        return any(map(is_local, self.device_set))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are of this process."""
        return all(map(is_local, self.device_set))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        raise NotImplementedError(f"{type(self).__name__} has no is_fully_replicated")

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """Device -> index of its part in an array of this shape."""
        raise NotImplementedError(f"{type(self).__name__} has no devices_indices_map")

    @api_boundary
    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """As devices_indices_map, for the devices of this process."""
        return {d: index for d, index in self.devices_indices_map(global_shape).items() if is_local(d)}

    @api_boundary
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of each device's part; IndivisibleError if the parts are not equal."""
        index = next(iter(self.devices_indices_map(global_shape).values()))
        return tuple(len(range(*s.indices(n))) for s, n in zip(index, global_shape, strict=True))

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Whether both place arrays of `ndim` dimensions alike."""
        if self == other:
            return True
        if not isinstance(other, Sharding) or self.memory_kind != other.memory_kind:
            return False
        if isinstance(getattr(self, "mesh", None), AbstractMesh) or isinstance(
            getattr(other, "mesh", None), AbstractMesh
        ):
            return self._cuts(ndim) == other._cuts(ndim)
        if self._device_assignment != other._device_assignment:
            return False
        return self._places(ndim) == other._places(ndim)

    def _places(self, ndim: int) -> Any:
        """Equal for shardings that place arrays of `ndim` dimensions alike."""
        (device,) = self.device_set
        return {device: (0,) * ndim}, (1,) * ndim

    def _cuts(self, ndim: int) -> Any:
        """Equal for shardings over meshes, of which one has no devices, that cut arrays of `ndim` dimensions alike."""
        return None

    def check(self, shape: Sequence[int], what: str) -> None:
        """ValueError unless arrays of this shape can lie so; `what` names the array in the message."""


class SingleDeviceSharding(Sharding):
    """All on one device. Raises TypeError for what is no device, ValueError for an unknown memory_kind."""

    @api_boundary
    def __init__(self, device: Any, memory_kind: str | None = None) -> None:
        if not hasattr(device, "platform"):
            raise TypeError(f"SingleDeviceSharding: argument 'device' must be a device, got {device!r}")
        self._device = device
        self.memory_kind = _memory_kind(memory_kind)

    @property
    def device_set(self) -> set[Any]:
        return {self._device}

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        return {self._device: (slice(None),) * len(global_shape)}

    @api_boundary
    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The sharding with another kind of memory."""
        return SingleDeviceSharding(self._device, kind)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device is other._device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def _check_state(mesh: Any, spec: PartitionSpec) -> None:
    """ValueError for axes of `unreduced` and `reduced` that the mesh has not, or that say nothing of types."""
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    for argument in ("unreduced", "reduced"):
        for axis in getattr(spec, argument):
            if axis not in kinds:
                raise ValueError(
                    f"{spec} says that axis {axis} is {argument}, which is not found in mesh {tuple(mesh.axis_names)}"
                )
            if kinds[axis] is AxisType.Auto:
                raise ValueError(
                    f"{argument} axes can only be Explicit or Manual, but {axis} of {spec} is Auto in mesh {mesh!s}"
                )


class NamedSharding(Sharding):
    """A mesh, and the mesh axes that each dimension is cut along.

    Raises ValueError if the spec names an axis that the mesh has not, or for an unknown memory_kind; DuplicateSpecError
    if it names one twice; TypeError for what is no mesh, or no PartitionSpec. ValueError also for an UNCONSTRAINED
    dimension where no axis of the mesh is Auto: types leave nothing open.
    """

    mesh: Any
    spec: PartitionSpec
    _hash: int

    @api_boundary
    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None = None) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)):
            raise TypeError(f"NamedSharding: argument 'mesh' must be a Mesh or AbstractMesh, got {mesh!r}")
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding: argument 'spec' must be a PartitionSpec, got {spec!r}")
        put = functools.partial(object.__setattr__, self)
        put("mesh", mesh)
        put("spec", spec)
        put("memory_kind", _memory_kind(memory_kind) if memory_kind or isinstance(mesh, Mesh) else None)
        if spec.unreduced or spec.reduced:
            _check_state(mesh, spec)
        used = all_names_of(spec)
        for name in used:
            if name not in mesh.axis_names:
                raise ValueError(f"{spec} cuts by axis {name}, which is not found in mesh {tuple(mesh.axis_names)}")
            if used.count(name) > 1:
                raise DuplicateSpecError(
                    f"NamedSharding: {spec} has duplicate entries for `{name}`; an axis of the mesh cuts one dimension"
                )
        if PartitionSpec.UNCONSTRAINED in spec and mesh.axis_types and AxisType.Auto not in mesh.axis_types:
            raise ValueError(
                f"NamedSharding: {spec} leaves a dimension to the compiler (P.UNCONSTRAINED), but the mesh has no axis "
                f"of type Auto: {mesh.axis_types}"
            )
        put("_hash", hash((mesh, spec, self.memory_kind)))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}: shardings are immutable")

    def _concrete(self, attribute: str) -> Mesh:
        if isinstance(self.mesh, AbstractMesh):
            raise ValueError(f"{attribute} needs a mesh with devices, got {self.mesh}, an AbstractMesh")
        return self.mesh

    @functools.cached_property
    def _devices(self) -> frozenset[Any]:
        return frozenset(self._concrete("device_set").devices.flat)

    @property
    def device_set(self) -> set[Any]:
        return set(self._devices)

    def _to_xla_hlo_sharding(self, num_dimensions: int) -> Any:
        from pullback.sharding._hlo_sharding import of_spec  # not at start-up

        return of_spec(self.mesh, self.spec, num_dimensions)

    @functools.cached_property
    def _device_assignment(self) -> tuple[Any, ...]:  # type: ignore[override]
        return tuple(self._concrete("_device_assignment").devices.flat)

    @property
    def num_devices(self) -> int:
        return self.mesh.size

    @property
    def is_fully_replicated(self) -> bool:
        return all(self._count(part) == 1 for part in self.spec) and not self.spec.unreduced

    @api_boundary
    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError for arrays of fewer dimensions than the spec has entries."""
        if len(self.spec) > len(aval_shape):
            self.check(aval_shape, "check_compatible_aval arguments")

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The mesh axes that no dimension is cut along."""
        return frozenset(self.mesh.axis_names).difference(all_names_of(self.spec))

    def _count(self, part: Any) -> int:
        sizes = self.mesh.shape
        return math.prod(sizes[name] for name in names_of(part))

    def _counts(self, ndim: int) -> list[int]:
        """The number of parts along each dimension."""
        return [*map(self._count, self.spec[:ndim]), *[1] * (ndim - len(self.spec))]

    def check(self, shape: Sequence[int], what: str) -> None:
        if len(self.spec) > len(shape):
            raise ValueError(
                f"{self} is said of one of {what}, but takes arrays of rank at least {len(self.spec)}, and this one "
                f"has shape {tuple(shape)}{'' if shape else ' (the spec of a scalar is P())'}"
            )
        self._check_extents(shape)

    def _check_parts(self, shape: Sequence[int], what: str) -> None:
        """As `check`, but entries past the last dimension may be there that cut nothing."""
        if any(names_of(part) for part in self.spec[len(shape) :]):
            self.check(shape, what)
        self._check_extents(shape)

    def _check_extents(self, shape: Sequence[int]) -> None:
        for axis, (part, extent) in enumerate(zip(self.spec, shape, strict=False)):
            if extent % self._count(part):
                counts = self._counts(len(shape))
                raise IndivisibleError.of(self, shape, axis, counts)

    def _numbers(self, ndim: int) -> list[tuple[Any, tuple[int, ...]]]:
        """(device, number of its part along each dimension)."""
        mesh = self._concrete("devices_indices_map")
        sizes = mesh.shape
        parts = [*map(names_of, self.spec[:ndim]), *[()] * (ndim - len(self.spec))]
        found = []
        for place in np.ndindex(*mesh.devices.shape):
            at = dict(zip(mesh.axis_names, place, strict=True))
            numbers = []
            for names in parts:
                number = 0
                for name in names:
                    number = number * sizes[name] + at[name]
                numbers.append(number)
            found.append((mesh.devices[place], tuple(numbers)))
        return found

    @api_boundary
    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        self._check_parts(global_shape, "devices_indices_map arguments")
        if self.spec.unreduced:
            raise NotImplementedError(
                f"devices_indices_map: by {self.spec} no device has values of the array, but terms of them; use "
                "jax.sharding.reshard first"
            )
        counts = self._counts(len(global_shape))
        steps = [extent // count for extent, count in zip(global_shape, counts, strict=True)]
        return {
            device: tuple(
                slice(None) if count == 1 else slice(number * step, (number + 1) * step)
                for number, count, step in zip(numbers, counts, steps, strict=True)
            )
            for device, numbers in self._numbers(len(global_shape))
        }

    @api_boundary
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        self._check_parts(global_shape, "shard_shape arguments")
        counts = self._counts(len(global_shape))
        return tuple(extent // count for extent, count in zip(global_shape, counts, strict=True))

    def _places(self, ndim: int) -> Any:
        spec = tuple(self.spec)
        while len(spec) > ndim and spec[-1] is None:
            spec = spec[:-1]
        counts = tuple([self._count(p) for p in spec] + [1] * (ndim - len(spec)))
        terms = self.spec.unreduced  # `reduced` is said of cotangents: values lie as without
        numbers = {device: found[: len(counts)] for device, found in self._numbers(ndim)}
        return numbers, (*counts, terms) if terms else counts

    def _cuts(self, ndim: int) -> Any:
        sizes = self.mesh.shape
        parts = [tuple(n for n in names_of(p) if sizes[n] > 1) for p in self.spec]
        parts += [()] * (ndim - len(parts))
        terms = self.spec.unreduced
        return self.mesh.shape_tuple, [*parts, terms] if terms else parts

    @api_boundary
    def update(self, mesh: Any = None, spec: Any = None, memory_kind: str | None = None) -> NamedSharding:
        """The sharding with some fields replaced."""
        return NamedSharding(
            self.mesh if mesh is None else mesh,
            self.spec if spec is None else PartitionSpec(*spec) if isinstance(spec, tuple) else spec,
            self.memory_kind if memory_kind is None else memory_kind,
        )

    @api_boundary
    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The sharding with another kind of memory."""
        return NamedSharding(self.mesh, self.spec, kind)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, NamedSharding)
            and self._hash == other._hash
            and (self.mesh, self.spec, self.memory_kind) == (other.mesh, other.spec, other.memory_kind)
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if self.memory_kind else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"

    _repr_mimebundle_ = shown_by(lambda self: named_sharding_html(self, [names_of(entry) for entry in self.spec]))

    def __reduce__(self) -> Any:
        return NamedSharding, (self.mesh, self.spec, self.memory_kind)


@api_boundary
def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of arrays that are on one device; raises as SingleDeviceSharding."""
    return SingleDeviceSharding(device, memory_kind)
