"""Meshes: arrays of devices whose axes have names."""

from __future__ import annotations

import enum
import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.util.locks import Lock
from pullback.util.notebooks import mesh_html, shown_by
from pullback.util.record import NamedTuple, frozen_record
from pullback.util.tracebacks import api_boundary
from pullback.util.warning import warn_user

# The number of this process among those of the program; distributed.initialize sets it.
this_process = [0]


def is_local(device: Any) -> bool:
    """Whether a device belongs to this process."""
    return getattr(device, "process_index", 0) == this_process[0]


class AxisType(enum.Enum):
    """Who decides how arrays lie along a mesh axis: the compiler, the types of the arrays, or the user's own code."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


def _axis_names(cls: str, names: Any) -> tuple[Any, ...]:
    if not np.iterable(names):
        raise TypeError(f"{cls}: axis names must be a string or a sequence of them, got {names!r}")
    names = (names,) if isinstance(names, str) else tuple(names)
    if any(name is None for name in names):
        raise ValueError(f"{cls}: an axis needs a name, got None in {names}")
    if len(set(names)) != len(names):
        raise ValueError(f"{cls}: axis names must differ, got {names}")
    return names


def _axis_types(cls: str, names: tuple[Any, ...], types: Any) -> tuple[AxisType, ...]:
    if types is None:
        return (AxisType.Auto,) * len(names)
    types = tuple(types) if isinstance(types, (tuple, list)) else (types,)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(
            f"{cls}: argument 'axis_types' has an AxisType for each axis, got {types} of types "
            f"{tuple(map(type, types))}"
        )
    if len(types) != len(names):
        raise ValueError(
            f"{cls}: {len(types)} axis_types, {types}, for the {len(names)} axes {names}; there is one for each axis"
        )
    return types


class _Axes:
    """What Mesh and AbstractMesh share: named, sized axes."""

    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]
    axis_sizes: tuple[int, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """Name -> size."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """(name, size) of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return int(np.prod(self.axis_sizes, dtype=int)) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether there is no axis, or no device."""
        return self.size == 0 or not self.axis_names

    def _of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))
    are_all_axes_auto = property(lambda self: 0 < len(self.auto_axes) == len(self.axis_names))
    are_all_axes_explicit = property(lambda self: 0 < len(self.explicit_axes) == len(self.axis_names))
    are_all_axes_manual = property(lambda self: 0 < len(self.manual_axes) == len(self.axis_names))
    # Programs that look into JAX ask for these names.
    _any_axis_auto = property(lambda self: bool(self.auto_axes))
    _any_axis_explicit = property(lambda self: bool(self.explicit_axes))
    _any_axis_manual = property(lambda self: bool(self.manual_axes))
    _any_axis_auto_or_manual = property(lambda self: len(self.explicit_axes) < len(self.axis_names))
    _name_to_type = property(lambda self: dict(zip(self.axis_names, self.axis_types, strict=True)))

    def __str__(self) -> str:
        if not self.axis_names and isinstance(self, Mesh):
            return "Mesh()"
        sizes = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple) or "()"
        device = getattr(self, "abstract_device", None)
        return f"{type(self).__name__}({sizes}, axis_types={self.axis_types}{f', {device}' if device else ''})"

    __repr__ = __str__


def _not_abstract(name: str) -> property:
    def get(self: AbstractMesh) -> Any:
        raise ValueError(f"AbstractMesh does not implement {name}")

    return property(get, doc="Raises ValueError: there are no devices.")


@frozen_record
class AbstractDevice:
    """What kind of devices a mesh has."""

    device_kind: str
    num_cores: int | None
    platform: str

    def __str__(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"

    def __repr__(self) -> str:
        return f"AbstractDevice({self})"


class ManualAxisType(NamedTuple):
    """The axes of shard_map along which values vary, have terms that are to be summed, or cotangents that do."""

    varying: frozenset = frozenset()
    unreduced: frozenset = frozenset()
    reduced: frozenset = frozenset()


class AbstractMesh(_Axes):
    """A mesh without devices: sizes and names of axes. That of a Mesh says what kind of devices it has, which does not
    count when meshes are compared.

    Raises ValueError if there are not as many names, or axis_types, as sizes, or if a name repeats; TypeError for sizes
    that are no integers.
    """

    @api_boundary
    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[Any],
        axis_types: Any = None,
        abstract_device: AbstractDevice | None = None,
    ) -> None:
        self.abstract_device = abstract_device
        self.axis_names = _axis_names("AbstractMesh", axis_names)
        self.axis_sizes = tuple(axis_sizes)
        if not all(hasattr(n, "__index__") for n in self.axis_sizes):
            raise TypeError(f"AbstractMesh: axis_sizes must be integers, got {self.axis_sizes}")
        if len(self.axis_names) != len(self.axis_sizes):
            raise ValueError(f"AbstractMesh: {len(self.axis_sizes)} sizes but {len(self.axis_names)} names of axes")
        self.axis_types = _axis_types("AbstractMesh", self.axis_names, axis_types)

    devices = _not_abstract("devices")
    device_ids = _not_abstract("device_ids")
    local_devices = _not_abstract("local_devices")
    local_mesh = _not_abstract("local_mesh")
    is_multi_process = _not_abstract("is_multi_process")

    def __enter__(self) -> AbstractMesh:
        raise ValueError("AbstractMesh does not implement __enter__; use jax.sharding.use_abstract_mesh(mesh)")

    def __exit__(self, *exc: Any) -> None:
        raise ValueError("AbstractMesh does not implement __exit__; use jax.sharding.use_abstract_mesh(mesh)")

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    @api_boundary
    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None) -> AbstractMesh:
        """The mesh with some fields replaced."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            self.abstract_device,
        )

    @api_boundary
    def update_axis_types(self, name_to_type: Any) -> AbstractMesh:
        """The mesh with other types of the axes that are named."""
        types = [name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)]
        return self.update(axis_types=tuple(types))

    def _key(self) -> Any:
        return self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


# The meshes that are in use: (class, what they are equal by) -> mesh.
_meshes: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_making = Lock()


class Mesh(_Axes):
    """An array of devices with a name for each dimension; as a context manager, the mesh that specs given to
    `with_sharding_constraint` inside speak of.

    Raises ValueError if the number of names is not that of the dimensions, or a name or device repeats; TypeError for
    what are no devices. Equal meshes are one object, as in JAX: programs may compare them by `is`.
    """

    devices: np.ndarray
    _hash: int
    _entered: threading.local

    @api_boundary
    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        self = super().__new__(cls)
        self.devices = np.array(devices, dtype=object)
        self.axis_names = _axis_names("Mesh", axis_names)
        if self.devices.ndim != len(self.axis_names):
            raise ValueError(
                f"Mesh: the array of devices has {self.devices.ndim} dimensions, of shape {self.devices.shape}, and "
                f"each needs a name; argument 'axis_names' has {len(self.axis_names)}: {self.axis_names}"
            )
        for device in self.devices.flat if self.axis_names else ():
            if not hasattr(device, "platform"):
                raise TypeError(f"Mesh: argument 'devices' must be an array of devices, got {device!r} in it")
        if len(set(self.devices.flat)) < self.devices.size:
            raise ValueError(f"Mesh: a device comes twice in {list(self.devices.flat)}")
        self.devices.flags.writeable = False
        self.axis_sizes = tuple(self.devices.shape)
        self.axis_types = _axis_types("Mesh", self.axis_names, axis_types)
        self._hash = hash(self._key())
        self._entered = threading.local()  # one mesh may be entered by several threads at once
        with _making:
            return _meshes.setdefault((cls, self._key()), self)

    def __setattr__(self, name: str, value: Any) -> None:
        if "_entered" in self.__dict__ and name != "is_multi_process":
            raise AttributeError(f"cannot assign to field {name!r}: meshes are immutable")
        super().__setattr__(name, value)

    @property
    def device_ids(self) -> np.ndarray:
        """The numbers of the devices, in the shape of the mesh."""
        return np.vectorize(lambda d: d.id, otypes=[int])(self.devices)

    @property
    def _flat_devices_tuple(self) -> tuple[Any, ...]:
        return tuple(self.devices.flat)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        first = next(iter(self.devices.flat), None)
        kind = None if first is None else AbstractDevice(first.device_kind, None, first.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, kind)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of this process."""
        return [d for d in self.devices.flat if is_local(d)]

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh in this process. ValueError if it is no block of the mesh."""
        if not self.is_multi_process:
            return self
        here = np.vectorize(is_local, otypes=[bool])(self.devices)
        places = [np.unique(found) for found in np.nonzero(here)]
        block = self.devices[np.ix_(*places)]
        if not np.vectorize(is_local, otypes=[bool])(block).all():
            raise ValueError("The local devices do not form a block of the mesh")
        return Mesh(block, self.axis_names, self.axis_types)

    @functools.cached_property
    def is_multi_process(self) -> bool:
        """Whether it has devices of several processes."""
        return len({getattr(d, "process_index", 0) for d in self.devices.flat}) > 1

    @api_boundary
    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """The mesh with some fields replaced."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        from pullback.util import config

        warn_user(
            "`with mesh:` context manager: pjit alone heeds it, and it is deprecated; `with jax.set_mesh(mesh):` says "
            "to all functions which mesh is meant",
            DeprecationWarning,
        )
        entered = config.entered_mesh(self)
        entered.__enter__()
        self._entered.stack = [*getattr(self._entered, "stack", ()), entered]
        return self

    def __exit__(self, *exc: Any) -> None:
        self._entered.stack.pop().__exit__(*exc)

    def __repr__(self) -> str:
        types = f", axis_types={self.axis_types}" if self.axis_names else ""
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}{types})"

    _repr_mimebundle_ = shown_by(mesh_html)

    def __deepcopy__(self, memo: Any) -> Mesh:
        return self  # devices are not copied

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def _key(self) -> Any:
        return tuple(self.devices.flat), self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self._hash == other._hash and self._key() == other._key())

    def __hash__(self) -> int:
        return self._hash
