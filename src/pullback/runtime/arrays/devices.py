"""Devices: one CPU, or as many simulated ones as XLA_FLAGS or jax_num_cpu_devices ask for; those of other processes.

Devices of one process share its memory. Where several processes have joined (`join`), all know the devices of all,
numbered process by process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.sharding._mesh import this_process
from pullback.sharding._shardings import MEMORY_KINDS
from pullback.util import config
from pullback.util.errors import JaxRuntimeError
from pullback.util.record import NamedTuple
from pullback.util.tracebacks import api_boundary


class Memory(NamedTuple):
    """A kind of memory that a device addresses."""

    kind: str
    device: Any

    @property
    def platform(self) -> str:
        """The device's."""
        return self.device.platform

    @property
    def process_index(self) -> int:
        """The process that the device belongs to."""
        return self.device.process_index

    def addressable_by_devices(self) -> list[Any]:
        """The devices that can read it: one."""
        return [self.device]


class Device:
    """One device; `platform` is 'cpu', `id` its number."""

    __slots__ = ("__weakref__", "device_kind", "id", "local_hardware_id", "platform", "process_index")

    def __init__(self, number: int, platform: str = "cpu", process: int = 0, place: int | None = None) -> None:
        self.id = number
        self.platform = platform
        self.device_kind = platform
        self.process_index = process
        self.local_hardware_id = number if place is None else place

    @property
    def host_id(self) -> int:
        """The process that the device belongs to."""
        return self.process_index

    @property
    def client(self) -> Client:
        """The platform that the device belongs to."""
        return _client

    def memory_stats(self) -> dict[str, int]:
        """Bytes in use and at the peak, of all simulated devices together."""
        return _core.memory_stats()

    def live_buffers(self) -> list[Any]:
        """Not tracked; raises NotImplementedError."""
        raise NotImplementedError("Device.live_buffers: live arrays are not tracked")

    def addressable_memories(self) -> list[Memory]:
        """Kinds of memory that shardings may name; all are the machine's."""
        return [Memory(kind, self) for kind in MEMORY_KINDS]

    def default_memory(self) -> Memory:
        """The kind of memory in which arrays lie if nothing is said."""
        return Memory(MEMORY_KINDS[0], self)

    @api_boundary
    def memory(self, kind: str) -> Memory:
        """The memory of a kind; JaxRuntimeError for one that is not there."""
        if kind not in MEMORY_KINDS:
            raise JaxRuntimeError(
                f"INVALID_ARGUMENT: Could not find memory addressable by device {self.platform}. Got memory kind: "
                f"{kind}; device {self} can address {', '.join(MEMORY_KINDS)}"
            )
        return Memory(kind, self)

    def __repr__(self) -> str:
        return f"CpuDevice(id={self.id})"

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    def __reduce__(self) -> Any:
        return _by_number, (self.id,)

    def __enter__(self) -> Device:
        context = config.default_device(self)
        _entered.append(context)
        context.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        _entered.pop().__exit__(*error)


_entered: list[Any] = []


class Client:
    """The CPU platform: its devices and its name."""

    platform = "cpu"
    platform_version = "pullback"
    runtime_type = "pullback"

    def devices(self) -> list[Device]:
        """All devices."""
        return devices()

    def local_devices(self) -> list[Device]:
        """The devices of this process."""
        return local_devices()

    def device_count(self) -> int:
        """How many there are."""
        return len(devices())

    def local_device_count(self) -> int:
        """How many this process has."""
        return len(local_devices())

    def process_index(self) -> int:
        """The number of this process."""
        return process_index()


_client = Client()
_devices: list[Device] = []


def _by_number(number: int) -> Device:
    return devices()[number]


def _wanted_count() -> int:
    count = config.value_of("jax_num_cpu_devices")
    if count is not None and count > 0:
        return count
    found = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return max(1, int(found[-1])) if found else 1


def started() -> bool:
    """Whether anything has asked for devices, so that their number is settled."""
    return bool(_devices)


@api_boundary
def devices(backend: str | None = None) -> list[Device]:
    """The devices of a platform (None: the default one); RuntimeError for a platform that is not there.

    The number is fixed when they are first asked for.
    """
    if backend is not None and getattr(backend, "platform", backend) != "cpu":
        raise RuntimeError(
            f"Unknown backend: '{backend}'. Arrays and programs are on processors here, which is the backend 'cpu'."
        )
    if not _devices:
        _devices.extend(Device(n) for n in range(_wanted_count()))
    return list(_devices)


def join(process: int, counts: Sequence[int]) -> None:
    """Make this process number `process` of several, of which each has so many devices. RuntimeError for another count.

    Devices that are there already stay what they are to those who hold them, but for their numbers.
    """
    own = devices() if len(_processes) < 2 else local_devices()
    if len(own) != counts[process]:
        raise RuntimeError(f"join: this process has {len(own)} devices, not {counts[process]}")
    _devices.clear()
    for number, count in enumerate(counts):
        for place in range(count):
            device = own[place] if number == process else Device(0)
            device.id, device.process_index, device.local_hardware_id = len(_devices), number, place
            _devices.append(device)
    _processes[:] = range(len(counts))
    this_process[0] = process


_processes = [0]


@api_boundary
def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process (or of `process_index`; ValueError if there is no such process)."""
    process = host_id if process_index is None else process_index
    if process is None:
        process = this_process[0]
    if process not in _processes:
        raise ValueError(f"Unknown process_index {process}")
    return [device for device in devices(backend) if device.process_index == process]


@api_boundary
def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


@api_boundary
def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has."""
    return len(local_devices(backend=backend))


@api_boundary
def process_count(backend: str | None = None) -> int:
    """How many processes take part; RuntimeError for a platform that is not there."""
    return len(process_indices(backend))


@api_boundary
def process_index(backend: str | None = None) -> int:
    """The number of this process; RuntimeError for a platform that is not there."""
    process_indices(backend)
    return this_process[0]


@api_boundary
def host_count(backend: str | None = None) -> int:
    """How many processes take part."""
    return process_count(backend)


@api_boundary
def host_id(backend: str | None = None) -> int:
    """The number of this process."""
    return process_index(backend)


@api_boundary
def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes; RuntimeError for a platform that is not there."""
    return sorted({device.process_index for device in devices(backend)})


host_ids = process_indices


@api_boundary
def live_arrays(platform: str | None = None) -> list[Any]:
    """The arrays of this process that variables and containers hold, as far as Python's garbage collector knows these.

    They are looked for when this is called (runtime/arrays/held.py). RuntimeError for a platform that is not there.
    """
    devices(platform)
    from pullback.runtime.arrays.held import held_arrays

    return [array for array, _ in held_arrays() if not array.is_deleted()]


def default_backend() -> str:
    """The name of the default platform."""
    return "cpu"


def default_device() -> Device:
    """Where new arrays live that are not committed: jax_default_device, or the first device."""
    chosen = config.value_of("jax_default_device")
    return chosen if isinstance(chosen, Device) else _first_device()


def _first_device() -> Device:
    return devices()[0] if len(_processes) == 1 else local_devices()[0]


def _tell_home() -> None:
    """Tell native code where new arrays lie; None is the first device, which is there once somebody asks."""
    name = "jax_default_device"
    process, own = (d if isinstance(d, Device) else None for d in (config.global_of(name), config.value_of(name)))
    _core.set_home(process, config.is_overridden(name), own)


def _refuse_if_started(count: int) -> None:
    if _devices:
        raise RuntimeError(
            f"jax_num_cpu_devices config should be updated before backends are initialized: set it to {count} before "
            f"anything asks for devices, best at once after the import; there are {len(_devices)} of them now."
        )


config.num_cpu_devices.guard = _refuse_if_started
config.add_listener(_tell_home)
_core.set_hooks(first_device=_first_device)
