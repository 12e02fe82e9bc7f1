"""Python functions that compiled programs call: addresses in, results written in place."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence

import numpy as np

from pullback.lower import HostFunction


def native_callback(host: HostFunction) -> tuple[Callable[[tuple[int, ...]], None], int]:
    """(function of a tuple of addresses, how many), as `_core.Executable` wants it."""
    described = [*host.operands, *host.results]
    count = len(host.operands)

    def run(addresses: Sequence[int]) -> None:
        arrays = [array_at(address, shape, dtype) for address, (shape, dtype) in zip(addresses, described)]
        for array in arrays[:count]:
            array.flags.writeable = False
        host.run(arrays)

    return run, len(described)


def array_at(address: int, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The flat memory at an address as an array; valid only during the call."""
    count = math.prod(shape)
    if count == 0:
        return np.empty(0, dtype)
    raw = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(raw), dtype, count)
