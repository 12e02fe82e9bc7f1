"""What colocated functions are sent as: nothing is sent within one process."""

from __future__ import annotations


class DeviceList(tuple):
    """Devices, in order."""

    __slots__ = ()


__all__ = ["DeviceList"]
