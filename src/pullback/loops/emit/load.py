"""Machine code into the process, and what it is there. Programs from the disk start by this alone, without LLVM."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback._ext import _core
from pullback.util.clock import Clock
from pullback.util.record import mutable_record

from .cache import Entry
from .symbols import ENTRY, HOST_SLOT, INTERRUPT, PARALLEL_FOR, SLOTS, STEP

if TYPE_CHECKING:
    from .module import ModuleText

HostCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))

# What stands in where there is no runtime to ask.
_never = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
_never_counted = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(lambda *args: 0)
_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_serial_for = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    lambda body, ctx, count, grain: _Body(body)(ctx, 0, count) if count > 0 else None
)
_stand_ins = {PARALLEL_FOR: _serial_for, INTERRUPT: _never, STEP: _never_counted}
_symbols: dict[str, int] = {}


def add_symbols(symbols: Mapping[str, int]) -> None:
    """Makes C functions known by name to programs compiled or loaded from now on.

    `pb_parallel_for(body, ctx, count, grain)` runs body(ctx, begin, end) over parts of [0, count), none of which is
    empty; without it loops of threads run on the calling thread.
    """
    _symbols.update(symbols)


@mutable_record
class CompiledFunction:
    """Machine code of `int f(void** inputs, void** outputs, void* arena)` at `address`.

    It lives as long as this object. `set_host_call(address)` gives the program the C function
    `int host(int64 index, void** buffers)` that its host calls go through; a non-zero result ends the program.
    """

    address: int
    arena_bytes: int
    slots: tuple[str, ...]
    seconds: dict[str, float]  # by stage; empty stages were not needed
    cached: bool
    _table: Any
    _keep: list[Any] = field(default_factory=list)
    code_bytes: int = 0  # of the object file
    module: Callable[[], ModuleText] | None = None

    @property
    def llvm(self) -> str:
        """The LLVM text, emitted again if the code came from the cache."""
        assert self.module is not None
        return self.module().text

    @property
    def keeps_constants(self) -> bool:
        """Whether arrays of the traced function's are part of it."""
        return any(name.startswith("constant:") for name in self.slots)

    def set_host_call(self, address: int) -> None:
        """Sets the callback of the program's host calls; ignored if it has none."""
        if HOST_SLOT in self.slots:
            self._table[self.slots.index(HOST_SLOT)] = address

    def __call__(self, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> int:
        """Runs on NumPy arrays, with an arena of its own: for tests and tools. Returns the program's status."""
        arena = np.zeros(self.arena_bytes + 64, np.uint8)
        base = (arena.ctypes.data + 63) & ~63
        pointers = [(ctypes.c_void_p * max(len(side), 1))(*(x.ctypes.data for x in side)) for side in (inputs, outputs)]
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self.address)
        return function(ctypes.addressof(pointers[0]), ctypes.addressof(pointers[1]), base)


def load_object(code: bytes, slots: tuple[str, ...]) -> tuple[int, Any, Any]:
    """Links an object file into the process: (address of its entry, its slot table or None, what keeps it alive)."""
    names = (ENTRY, SLOTS) if slots else (ENTRY,)
    if _core.load_object is not None:
        addresses, owner = _core.load_object(code, names)
    else:
        from .machines import link_by_llvm

        addresses, owner = link_by_llvm(code, names)
    table = (ctypes.c_void_p * len(slots)).from_address(addresses[1]) if slots else None
    return addresses[0], table, owner


def link(
    entry: Entry,
    constants: Mapping[int, np.ndarray],
    symbols: Mapping[str, int] | None,
    module: Callable[[], ModuleText] | None,
    seconds: dict[str, float],
    cached: bool = True,
) -> CompiledFunction:
    """Loads code into the process; `constants` are the values of large constants by the position of their buffers,
    `module` gives the LLVM text when somebody asks for it.
    """
    clock = Clock(seconds)
    address, table, tracker = load_object(entry.code, entry.slots)
    keep = [tracker]
    for k, name in enumerate(entry.slots):
        if name.startswith("constant:"):
            data = np.ascontiguousarray(constants[int(name.split(":")[1])])
            keep.append(data)
            table[k] = data.ctypes.data
        elif name in _stand_ins:
            own = ctypes.cast(_stand_ins[name], ctypes.c_void_p).value
            table[k] = (symbols or {}).get(name) or _symbols.get(name) or own
        elif name != HOST_SLOT:
            table[k] = _address_of(name, symbols)
    clock("load")
    size = len(entry.code)
    return CompiledFunction(address, entry.arena_bytes, entry.slots, seconds, cached, table, keep, size, module)


def _address_of(name: str, symbols: Mapping[str, int] | None) -> int:
    address = (symbols or {}).get(name) or _symbols.get(name) or _of_process(name)
    if not address:
        raise KeyError(f"compile: the program calls the C function {name!r}, which nobody has added to the symbols")
    return int(address)


def _of_process(name: str) -> int | None:
    """The address of a symbol of the process, as the system's linker finds it."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    except AttributeError:
        return None


__all__ = ["CompiledFunction", "HostCallback", "add_symbols", "link", "load_object"]
