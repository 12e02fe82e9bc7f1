"""What the extension asks of Python: conversions of unusual arguments, unpickling, shardings, the number of threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core.avals import ShapedArray, typeof
from pullback.core.tracer import Tracer
from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.devices import Device
from pullback.runtime.arrays.layouts import format_of, layout_of, with_layout
from pullback.runtime.arrays.placed_results import placement_with_terms
from pullback.runtime.arrays.placement import place_of
from pullback.runtime.arrays.terms import along, is_unreduced, terms_of, without_terms
from pullback.sharding import Sharding, SingleDeviceSharding
from pullback.sharding._mesh import is_local
from pullback.util.errors import JaxRuntimeError
from pullback.util.notebooks import array_html, shown_by
from pullback.util.record import frozen_record
from pullback.util.tracebacks import api_boundary

_core.Array._repr_mimebundle_ = shown_by(array_html)  # type: ignore[attr-defined]


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


def pickled(x: Any, protocol: Any) -> Any:
    """How an array is pickled: a long one in parts, as Python runs between them, and so hears Ctrl-C.

    From protocol 5 on NumPy hands over the memory itself, which is written at once or not copied at all.
    """
    if protocol >= 5 or x.nbytes <= PART:
        return x.__reduce__()
    return reconstruct_parts, (_Parts(np.asarray(x)), x.shape, x.dtype, x.weak_type)


PART = 1 << 24  # bytes


class _Parts:
    """The elements of an array in order; read back as a list of vectors."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __reduce__(self) -> Any:
        return list, (), None, map(_Part, self.pieces())

    def pieces(self) -> Iterator[np.ndarray]:
        """The parts."""
        flat, step = self.array.reshape(-1), PART // self.array.itemsize
        for start in range(0, flat.size, step):
            yield flat[start : start + step]


class _Part:
    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __reduce__(self) -> Any:
        return _part, (self.values,)


def _part(values: np.ndarray) -> np.ndarray:
    """A function of Python's, so that Ctrl-C is heard."""
    return values


def reconstruct_parts(parts: list[np.ndarray], shape: tuple[int, ...], dtype: np.dtype, weak_type: bool) -> Any:
    """The array whose parts were pickled."""
    array, values = _core.writable(ShapedArray(shape, dtype, weak_type))
    flat, start = values.reshape(-1), 0
    for part in parts:
        flat[start : start + part.size] = part
        start += part.size
    return array


def sharding_of(x: Any) -> Any:
    """Where an array lies: on one device, or as the function of several devices says that made it."""
    place = getattr(x, "_base_array", x)._device  # keys lie where their words do
    return place if isinstance(place, Sharding) else SingleDeviceSharding(x.device)


@frozen_record
class Shard:
    """The part of an array that lies on one device."""

    device: Any
    index: tuple[slice, ...]
    replica_id: int
    data: Any

    __eq__, __hash__ = object.__eq__, object.__hash__  # slices and arrays have no hash

    def __repr__(self) -> str:
        return f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id}, data={self.data})"


def _check_there(self: Any) -> None:
    """RuntimeError for an array that has been deleted."""
    if self.is_deleted():
        self.block_until_ready()  # which says so


@api_boundary
def devices_of(self: Any) -> set[Any]:
    """The devices that the array lies on. RuntimeError for an array that has been deleted."""
    _check_there(self)
    return set(self.sharding.device_set)


def shards_of(self: Any) -> list[Shard]:
    """The parts of the array, one a device; the data of those on other processes is None. RuntimeError for an array
    that has been deleted.
    """
    _check_there(self)
    sharding = self.sharding
    terms = None
    if is_unreduced(sharding):
        terms = np.asarray(terms_of(self)), along(sharding)
        sharding = without_terms(sharding)
    places = sharding.devices_indices_map(self.shape)
    if len(places) == 1:
        return [Shard(next(iter(places)), (slice(None),) * self.ndim, 0, self)]
    copies: dict[tuple[Any, ...], int] = {}  # of a part: how many devices have had it
    shards = []
    for device, index in places.items():
        key = tuple((s.start, s.stop) for s in index)
        number = copies[key] = copies.get(key, -1) + 1
        here = is_local(device)
        of = self if terms is None else terms[0][terms[1][device]]
        part = _part_at(of, index, device, sharding.memory_kind) if here else None
        shards.append(Shard(device, index, number, part if part is None else with_layout(part, layout_of(self))))
    return shards


def _part_at(x: Any, index: tuple[slice, ...], device: Any, kind: str) -> Any:
    part = np.asarray(np.asarray(x)[index])
    if kind != "device":
        device = place_of(SingleDeviceSharding(device, memory_kind=kind))
    return _core.from_numpy(part, ShapedArray(part.shape, x.dtype), device, True)


def local_shards_of(self: Any) -> list[Shard]:
    """Those of the devices of this process."""
    return [shard for shard in shards_of(self) if shard.data is not None]


@api_boundary
def _formatted(x: Any, spec: str) -> str:
    """The array, or the number that it holds, in a format."""
    try:
        return _format(x, spec)
    except TypeError:
        if not x.ndim or not isinstance(spec, str):
            raise
        raise TypeError(
            f"unsupported format string passed to Array.__format__: {spec!r} needs a number, but this is an array of "
            f"type {x.dtype}{list(x.shape)}; numpy.array2string has a precision"
        ) from None


_format = _core.Array.__format__
_core.set_array_attribute("__format__", _formatted)
_core.set_array_attribute("__reduce_ex__", pickled)
_core.set_array_attribute("_committed", property(lambda self: self.committed))  # the name by which libraries ask
_core.set_array_attribute("_value", property(np.asarray))  # likewise
_core.set_array_attribute("devices", devices_of)
_core.set_array_attribute("is_fully_replicated", property(lambda self: self.sharding.is_fully_replicated))


_to_dlpack, _pointer = _core.Array.__dlpack__, _core.Array.unsafe_buffer_pointer
_dlpack_device = _core.Array.__dlpack_device__


def _devices_over(array: Any) -> int:
    """The number of devices on which an array says that it lies."""
    return array._device.num_devices if isinstance(array._device, Sharding) else 1


@api_boundary
def _dlpack_of(self: Any, **options: Any) -> Any:
    """A DLPack capsule over the array's memory; BufferError for an array over several devices."""
    if (count := _devices_over(self)) > 1:
        raise BufferError(
            f"to_dlpack: the array lies on {count} devices, and a DLPack tensor is the memory of one. Its parts can be "
            "packed, as x.addressable_shards[0].data is one."
        )
    return _to_dlpack(self, **options)


@api_boundary
def _dlpack_device_of(self: Any) -> tuple[int, int]:
    """(kDLCPU, 0); BufferError for an array over several devices."""
    if (count := _devices_over(self)) > 1:
        raise BufferError(f"__dlpack_device__: an array over {count} devices is on no single one, as DLPack wants it")
    return _dlpack_device(self)


@api_boundary
def _pointer_of(self: Any) -> int:
    """The address of the first element; JaxRuntimeError for an array over several devices."""
    if _devices_over(self) > 1:
        raise JaxRuntimeError("INVALID_ARGUMENT: UnsafeBufferPointer() is supported only for unsharded arrays")
    return _pointer(self)


_size = _core.Array.on_device_size_in_bytes


def _size_on_devices(self: Any) -> int:
    """The bytes of memory used on all devices."""
    place = self._device
    if not isinstance(place, Sharding) or place.num_devices == 1:
        return _size(self)
    return place.num_devices * math.prod(place.shard_shape(self.shape)) * self.dtype.itemsize


def _text_of(plain: Callable[[Any], str]) -> Callable[[Any], str]:
    """The text of an array; of one that is still to be summed over devices, its type and where it lies."""

    @api_boundary
    def text(self: Any) -> str:
        place = self._device
        if is_unreduced(place):
            return f"Array(shape={self.shape}, dtype={self.dtype.name}, sharding={place})"
        return plain(self)

    return text


_core.set_array_attribute("_aval", _core.Array.aval)  # without what types say of meshes
_core.set_array_attribute("__repr__", _text_of(_core.Array.__repr__))
_core.set_array_attribute("__str__", _text_of(_core.Array.__str__))
_core.set_array_attribute("on_device_size_in_bytes", _size_on_devices)
_core.set_array_attribute("__dlpack__", _dlpack_of)
_core.set_array_attribute("__dlpack_device__", _dlpack_device_of)
_core.set_array_attribute("unsafe_buffer_pointer", _pointer_of)
_core.set_array_attribute("format", property(format_of))
_core.set_array_attribute("addressable_shards", property(local_shards_of))
_core.set_array_attribute("global_shards", property(shards_of))

_core.set_hooks(
    leaf=leaf,
    asarray=asarray,
    reconstruct=reconstruct,
    make_aval=ShapedArray,
    sharding=sharding_of,
    tracer=Tracer,
    device=Device,
    placement=placement_with_terms,
)

add_pages(globals(), PAGES)
