"""Arrays that lie on the devices of several processes, of which this process has some parts.

The parts that are here lie one after the other in one array, `stacked[k]` being that of local device number k: so the
program of several devices (`_core.DeviceProgram`) reads and writes them without copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from pullback._ext import _core
from pullback.core import ShapedArray, current_interpreter, eval_interpreter, hooks
from pullback.core.avals import placed
from pullback.core.tracer import Tracer
from pullback.runtime.arrays.arrays import asarray
from pullback.runtime.arrays.layouts import rows
from pullback.runtime.arrays.native_hooks import Shard
from pullback.runtime.arrays.placement import place_of
from pullback.runtime.arrays.terms import along, is_unreduced, without_terms
from pullback.sharding import NamedSharding, PartitionSpec, Sharding
from pullback.sharding._layout import Format
from pullback.sharding._mesh import is_local

_NOT_HERE = (
    "this `jax.Array` spans non-addressable devices: other processes have parts of its value. To have all of it, call "
    "`jax.experimental.multihost_utils.process_allgather(x)` in each process;"
    " `x.addressable_shards` are the parts that are here."
)


class GlobalArray(Tracer):
    """An array of which this process has some parts: what it is to users is jax.Array."""

    __slots__ = ("_sharding", "_stacked")

    def __init__(self, aval: ShapedArray, sharding: Sharding, stacked: Any) -> None:
        self.interpreter = eval_interpreter()
        self.source = None
        self.aval = placed(aval.untyped, sharding)
        self._sharding = sharding
        self._stacked = stacked

    @property
    def sharding(self) -> Sharding:
        """Where it lies."""
        return self._sharding

    @property
    def device(self) -> Any:
        """Where it lies, as arrays on several devices say it."""
        return self._sharding

    @property
    def format(self) -> Format:
        """How it lies in memory, and where."""
        return Format(rows(self.ndim), self._sharding)

    _device = device
    committed = True
    _committed = True
    is_fully_addressable = False

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device has all of it, none of which is here: what is here of such an array is whole."""
        return self._sharding.is_fully_replicated

    @property
    def stacked(self) -> Any:
        """The parts that are here. RuntimeError once it is deleted."""
        if self._stacked is None:
            raise RuntimeError(f"Array has been deleted with shape={self.aval.short()}.")
        return self._stacked

    def devices(self) -> set[Any]:
        """The devices that it lies on, of all processes."""
        return set(self._sharding.device_set)

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that are here."""
        return [shard for shard in self.global_shards if shard.data is not None]

    @property
    def global_shards(self) -> list[Shard]:
        """All parts; the data of those elsewhere is None."""
        copies: dict[tuple[Any, ...], int] = {}
        shards, here = [], 0
        at = along(self._sharding) if is_unreduced(self._sharding) else {}  # the first of these have the values
        for device, index in without_terms(self._sharding).devices_indices_map(self.shape).items():
            key = tuple((s.start, s.stop) for s in index)
            number = copies[key] = copies.get(key, -1) + 1
            data = None
            if is_local(device):
                part = np.asarray(self.stacked)[here]
                data = asarray(np.zeros_like(part) if any(at.get(device, ())) else part, device=device)
                here += 1
            shards.append(Shard(device, index, number, data))
        return shards

    def addressable_data(self, index: int) -> Any:
        """The part on local device number `index`."""
        return self.addressable_shards[index].data

    def block_until_ready(self) -> GlobalArray:
        """Itself: calls return when they are done."""
        return self

    def copy_to_host_async(self) -> None:
        """Nothing: its parts are in memory."""

    def delete(self) -> None:
        """Give the memory back."""
        self._stacked = None

    def is_deleted(self) -> bool:
        """Whether it has been deleted."""
        return self._stacked is None

    def to_concrete(self) -> Any:
        """The whole array, for functions the size of whose result depends on values: all processes call them, and
        gather it. None while a function is traced.
        """
        if current_interpreter() is not eval_interpreter() or not isinstance(self._sharding, NamedSharding):
            return None
        return hooks.device_put(self, NamedSharding(self._sharding.mesh, PartitionSpec()))

    def _refuse(self, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise RuntimeError(_NOT_HERE)

    __array__ = __bool__ = __index__ = __int__ = __float__ = __complex__ = _refuse
    tolist = item = tobytes = __dlpack__ = unsafe_buffer_pointer = _refuse

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise RuntimeError(_NOT_HERE)

    def on_device_size_in_bytes(self) -> int:
        """The bytes of the parts that are here."""
        return self.stacked.nbytes

    def __repr__(self) -> str:
        return f"Array(shape={self.shape}, dtype={self.dtype.name})"

    __str__ = __repr__

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.shape[0])])  # type: ignore[index]


def local_devices_of(sharding: Sharding) -> list[Any]:
    """The devices of this process, in the order of the sharding's."""
    return [d for d in sharding._device_assignment if is_local(d)]


def is_whole_here(sharding: Sharding, shape: tuple[int, ...]) -> bool:
    """Whether the parts on this process's devices cover an array of this shape."""
    sharding = without_terms(sharding)
    if sharding.is_fully_addressable or sharding.is_fully_replicated:
        return bool(local_devices_of(sharding))
    every = {_key(i) for i in sharding.devices_indices_map(shape).values()}
    here = {_key(i) for i in sharding.addressable_devices_indices_map(shape).values()}
    return every == here


def _key(index: tuple[slice, ...]) -> tuple[Any, ...]:
    return tuple((s.start, s.stop) for s in index)


def from_parts(aval: ShapedArray, sharding: NamedSharding, part: Callable[[Any, Any], Any]) -> GlobalArray:
    """The array of the parts that part(device, index) gives for the devices of this process, if there are any."""
    here = without_terms(sharding).addressable_devices_indices_map(aval.shape)
    devices = local_devices_of(sharding)
    shape = sharding.shard_shape(aval.shape)
    memory, values = _core.writable(ShapedArray((len(devices), *shape), aval.dtype))
    for k, device in enumerate(devices):
        values[k] = np.asarray(part(device, here[device]))
    return GlobalArray(aval, place_of(sharding), memory)


__all__ = ["GlobalArray", "from_parts", "is_whole_here", "local_devices_of"]
