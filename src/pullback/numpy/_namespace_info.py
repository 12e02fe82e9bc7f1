"""What the array API standard asks of a namespace: its dtypes, devices and abilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.runtime.arrays.devices import Device, devices
from pullback.util import dtypes

_KINDS = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def _check_device(name: str, device: Any) -> None:
    if device is not None and not isinstance(device, Device):
        raise ValueError(f"{name}: argument 'device' must be None or one of devices(), got {device!r}")


class NamespaceInfo:
    """The answers of `__array_namespace_info__`; the dtypes of all devices are the same."""

    def capabilities(self) -> dict[str, Any]:
        """What is allowed, outside of transformations and inside."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: new arrays are not committed to a device."""
        return

    def devices(self) -> list[Any]:
        """None, and all devices."""
        return [None, *devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of new arrays, by kind; ValueError for what is no device."""
        _check_device("default_dtypes", device)
        found = {"real floating": float, "complex floating": complex, "integral": int, "indexing": int}
        return {kind: np.dtype(dtypes.canonicalize_dtype(python)) for kind, python in found.items()}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, np.dtype]:
        """The dtypes of the standard by name, of one or several kinds; 64 bits only with `jax_enable_x64`.

        KeyError for an unknown kind, ValueError for what is no device.
        """
        _check_device("dtypes", device)
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        names = dict.fromkeys(name for k in kinds for name in _KINDS[k])
        return {name: np.dtype(name) for name in names if dtypes.canonicalize_dtype(name) == np.dtype(name)}


def __array_namespace_info__() -> NamespaceInfo:
    """What this namespace has of the array API standard."""
    return NamespaceInfo()


__all__ = ["NamespaceInfo", "__array_namespace_info__"]
