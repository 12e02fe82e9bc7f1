"""Stands for jax._src.xla_bridge: which platforms are initialized."""

from pullback.runtime.arrays.devices import default_backend, devices

_backends: dict = {}


def get_backend(platform: str | None = None) -> object:
    """The client of a platform (None: the default one)."""
    return devices(platform)[0].client


__all__ = ["default_backend", "devices", "get_backend"]
