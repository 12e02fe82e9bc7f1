"""Meshes: arrays of devices whose axes have names."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np


class AxisType(enum.Enum):
    """Who decides how arrays lie along a mesh axis: the compiler, the types of the arrays, or the user's own code."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _axis_types(names: tuple[Any, ...], types: Any) -> tuple[AxisType, ...]:
    if types is None:
        return (AxisType.Auto,) * len(names)
    types = (types,) if isinstance(types, AxisType) else tuple(types)
    if len(types) != len(names):
        raise ValueError(f"Number of axis names should match the number of axis_types. Got {names} and {types}")
    return types


class _Axes:
    """What Mesh and AbstractMesh share: named, sized axes."""

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    axis_sizes: tuple[int, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """Name -> size."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return int(np.prod(self.axis_sizes, dtype=int))

    @property
    def empty(self) -> bool:
        return self.size == 0 or not self.axis_names

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)
        return f"{type(self).__name__}({sizes}, axis_types={self.axis_types})"


class AbstractMesh(_Axes):
    """A mesh without devices: sizes and names of axes."""

    def __init__(self, axis_sizes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None) -> None:
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        self.axis_sizes = tuple(axis_sizes)
        if len(self.axis_names) != len(self.axis_sizes):
            raise ValueError(f"AbstractMesh: {len(self.axis_sizes)} sizes but {len(self.axis_names)} names of axes")
        self.axis_types = _axis_types(self.axis_names, axis_types)

    def _key(self) -> Any:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Mesh(_Axes):
    """An array of devices with a name for each dimension.

    Raises ValueError if the number of names is not that of the dimensions, or a name repeats.
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        self.devices = np.array(devices, dtype=object)
        self.axis_names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if self.devices.ndim != len(self.axis_names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of its second argument "
                f"(`axis_names`), but got devices.ndim == {self.devices.ndim} and axis_names == {self.axis_names}."
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"Mesh: axis names must differ, got {self.axis_names}")
        self.axis_sizes = tuple(self.devices.shape)
        self.axis_types = _axis_types(self.axis_names, axis_types)

    @property
    def device_ids(self) -> np.ndarray:
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def local_devices(self) -> list[Any]:
        return list(self.devices.flat)

    def _key(self) -> Any:
        return tuple(self.devices.flat), self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
