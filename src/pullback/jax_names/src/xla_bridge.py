"""Stands for jax._src.xla_bridge: which platforms are initialized."""

from typing import Any

from pullback.extend.backend import backends, get_backend
from pullback.runtime.arrays.devices import (
    default_backend,
    device_count,
    devices,
    host_id,
    local_devices,
    process_count,
    process_index,
    started,
)


def backends_are_initialized() -> bool:
    """Whether anything has asked for devices: flax's guide to meshes sets their number only before."""
    return started()


def __getattr__(name: str) -> Any:
    if name == "_backends":  # those in use: none before anything has asked for devices
        return backends() if started() else {}
    raise AttributeError(f"pullback stands in for jax, and has no 'jax._src.xla_bridge.{name}'")


__all__ = [
    "backends", "backends_are_initialized", "default_backend", "device_count", "devices", "get_backend", "host_id",
    "local_devices", "process_count", "process_index",
]  # fmt: skip
