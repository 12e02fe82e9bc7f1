"""What the extension asks of Python: conversions of unusual arguments, unpickling, shardings, the number of threads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pullback._ext import _core
from pullback.core.avals import ShapedArray, typeof
from pullback.core.tracer import Tracer
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.placement import placement_of
from pullback.sharding import Sharding, SingleDeviceSharding


def leaf(x: Any) -> tuple[Any, Any] | None:
    """(key, Array) of an argument of a jitted function that is an array in disguise, else None.

    Key arrays stand for their words; subclasses of NumPy arrays and of Python numbers for their values. The key tells
    apart what the Array's aval does not: the kind of key. Tracers do not come here.
    """
    words = getattr(x, "_base_array", None)
    if type(words) is _core.Array:
        return x.aval, words
    if isinstance(x, (np.ndarray, int, float, complex)) and not isinstance(getattr(x, "aval", None), ShapedArray):
        try:
            aval = typeof(x)
        except TypeError:
            return None
        return (aval, asarray(x)) if isinstance(aval.dtype, np.dtype) and aval.dtype.itemsize else None
    return None


def reconstruct(values: np.ndarray, weak_type: bool) -> Any:
    """The array that was pickled."""
    return _core.from_numpy(values, ShapedArray(values.shape, values.dtype, weak_type), None, True)


def sharding_of(x: Any) -> Any:
    """Where an array lies: on one device, or as the function of several devices says that made it."""
    device = x.device
    return device if isinstance(device, Sharding) else SingleDeviceSharding(device)


class Shard(NamedTuple):
    """The part of an array that lies on one device."""

    device: Any
    index: tuple[slice, ...]  # type: ignore[assignment]  # JAX's name for the field, which hides tuple.index
    replica_id: int
    data: Any


def devices_of(self: Any) -> set[Any]:
    """The devices that the array lies on."""
    return set(self.sharding.device_set)


def shards_of(self: Any) -> list[Shard]:
    """The parts of the array, one a device."""
    places = self.sharding.devices_indices_map(self.shape)
    if len(places) == 1:
        return [Shard(next(iter(places)), (slice(None),) * self.ndim, 0, self)]
    copies: dict[tuple[Any, ...], int] = {}  # of a part: how many devices have had it
    shards = []
    for device, index in places.items():
        key = tuple((s.start, s.stop) for s in index)
        number = copies[key] = copies.get(key, -1) + 1
        shards.append(Shard(device, index, number, asarray(np.asarray(self)[index], device=device)))
    return shards


_core.set_array_attribute("devices", devices_of)
_core.set_array_attribute("is_fully_replicated", property(lambda self: self.sharding.is_fully_replicated))
_core.set_array_attribute("addressable_shards", property(shards_of))
_core.set_array_attribute("global_shards", property(shards_of))

_core.set_hooks(
    leaf=leaf,
    asarray=asarray,
    reconstruct=reconstruct,
    make_aval=ShapedArray,
    sharding=sharding_of,
    tracer=Tracer,
    device=Device,
    placement=placement_of,
)
