"""The one backend: compiled code for this machine's CPU."""

from __future__ import annotations

from typing import Any

from pullback.api import clear_caches
from pullback.runtime.arrays.devices import Client, Device, devices
from pullback.util.absent import absent_names
from pullback.util.config import config


def clear_in_memory_compilation_cache() -> None:
    """Forget compiled programs."""
    clear_caches()


def clear_backends(_crash: bool = False) -> None:
    """Forget compiled programs; devices stay."""
    clear_caches()


def backends() -> dict[str, Client]:
    """The platforms that there are, by name."""
    client = get_backend()
    return {client.platform: client}


def get_backend(platform: str | None = None) -> Client:
    """A platform (None: the default one). Raises RuntimeError for one that there is not."""
    return devices(platform)[0].client


def get_default_device() -> Device:
    """The device where new arrays lie."""
    given: Any = config.jax_default_device
    return given if isinstance(given, Device) else devices(given)[0]


__getattr__ = absent_names(__name__)

__all__ = ["backends", "clear_backends", "clear_in_memory_compilation_cache", "get_backend", "get_default_device"]
