"""Stands for jax._src.xla_bridge: which platforms are initialized."""

from typing import Any

from pullback.extend.backend import backends, get_backend
from pullback.runtime.arrays.devices import default_backend, devices, started


def __getattr__(name: str) -> Any:
    if name == "_backends":  # those in use: none before anything has asked for devices
        return backends() if started() else {}
    raise AttributeError(f"pullback stands in for jax, and has no 'jax._src.xla_bridge.{name}'")


__all__ = ["backends", "default_backend", "devices", "get_backend"]
