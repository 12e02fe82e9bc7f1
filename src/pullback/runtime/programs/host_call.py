"""Python functions that compiled programs call: addresses in, results written in place."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.lower.host_function import HostFunction


def native_callback(host: HostFunction) -> tuple[Callable[[tuple[int, ...]], None], int]:
    """(function of a tuple of addresses, how many), as `_core.Executable` wants it."""
    foreign = host.native()
    if foreign is not None:
        return foreign, len(host.operands) + len(host.results)
    makers = [array_maker(shape, dtype) for shape, dtype in (*host.operands, *host.results)]
    count = len(host.operands)

    def run(addresses: Sequence[int]) -> None:
        arrays = [make(address) for make, address in zip(makers, addresses)]
        for array in arrays[:count]:
            array.flags.writeable = False
        host.run(arrays)

    return run, len(makers)


def array_maker(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[int], np.ndarray]:
    """A function from an address to the array of this shape there, which is valid as long as the memory is."""
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return lambda address: np.empty(shape, dtype)
    at: Callable[[int], Any] = (ctypes.c_char * size).from_address  # the ctypes type is made once: it costs 1 us
    return lambda address: np.ndarray(shape, dtype, at(address))
