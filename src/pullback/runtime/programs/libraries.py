"""Addresses of BLAS and LAPACK routines (util/lapack.py), of C functions of the runtime and of our own kernels.

BLAS and LAPACK run on the calling thread alone; what they are still asked for is cut into fixed blocks over our own
threads. Why: OpenBLAS's threads wait by spinning. Measured: with both pools at work on two loaded cores an iteration of
the PLN fit took 280 ms, now about 15.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

from pullback._ext import _core
from pullback.loops.emit.symbols import HOST_SLOT, INTERRUPT, PARALLEL_FOR, SPAN, STEP
from pullback.loops.ir import Call, Function, HostCall, Loop
from pullback.loops.ir.visit import kernels, statements
from pullback.runtime.programs.kernels import kernel_address
from pullback.util import blas_threads, lapack


def called_symbols(function: Function) -> set[str]:
    """The C functions that a program calls, in kernels that it runs too; those of the emitter's own making included."""
    found = set()
    for stmt in chain.from_iterable(map(statements, (function.body, *(k.body for k in kernels(function.body))))):
        if isinstance(stmt, Call):
            found.add(stmt.symbol)
        elif isinstance(stmt, Loop) and stmt.role == "threads":
            found.add("pb_parallel_for")
        elif isinstance(stmt, HostCall):
            found.add("pb_host_call_index")
    return found


def addresses_for(function: Function) -> dict[str, int]:
    """The addresses of what a compiled program calls, emitted code's own questions to the runtime included."""
    return addresses(called_symbols(function) | {PARALLEL_FOR, INTERRUPT, STEP, SPAN})


def is_library(slot: str) -> bool:
    """Whether a slot of a program is for a function of BLAS or LAPACK."""
    return ":" not in slot and not slot.startswith("pb_") and slot != HOST_SLOT


def addresses(names: set[str]) -> dict[str, int]:
    """The addresses of those names that the runtime or a library has."""
    runtime = _core.symbol_addresses()
    result = {}
    if "pb_blas_begin" in names:
        blas_threads.control()
    for name in sorted(names):  # kernels are compiled in one order
        address = runtime.get(name) or kernel_address(name)
        if not address and is_library(name):
            address = lapack.library().address(name)
        if address:
            result[name] = address
    return result


class PythonCalls(Mapping[str, Callable[..., Any]]):
    """C functions as Python functions of i64 numbers and (array, offset) pairs: what the loop IR interpreter calls."""

    def __init__(self, names: set[str]) -> None:
        self._functions: dict[str, Callable[..., Any]] = {
            name: _as_python(address) for name, address in addresses(names).items()
        }

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)


def _as_python(address: int) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        values: list[ctypes.c_void_p | ctypes.c_int64] = []
        for argument in arguments:
            if isinstance(argument, tuple):
                array, offset = argument
                values.append(ctypes.c_void_p(array.ctypes.data + offset * array.itemsize))
            else:
                values.append(ctypes.c_int64(int(argument)))
        return ctypes.CFUNCTYPE(None, *map(type, values))(address)(*values)

    return call
