"""Which arrays hold memory, and who holds them: a profile in pprof's format (github.com/google/pprof, profile.proto).

Arrays are not listed anywhere, which would make each one dearer. They are found when somebody asks: in the variables of
running functions, and in all containers that Python's garbage collector knows. What lies in memory that no such
container reaches, as buffers that are kept for later do, is one sample of its own.
"""

from __future__ import annotations

import gc
import gzip
import sys
import time
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.util.protobuf import Strings, field, packed
from pullback.util.protobuf import number as number_of


def held_arrays() -> Iterator[tuple[Any, str]]:
    """Each array that is found, once, and who holds it."""
    seen: set[int] = set()
    for value, holder in _values():
        for array in _arrays_in(value):
            if id(array) not in seen:
                seen.add(id(array))
                yield array, holder


def _values() -> Iterator[tuple[Any, str]]:
    """Values that may be arrays, or hold some, and who holds them."""
    for frame in list(sys._current_frames().values()):
        at: FrameType | None = frame
        while at is not None:
            code = at.f_code
            for name, value in list(at.f_locals.items()) if code.co_name != "<module>" else ():
                yield value, f"{name} in {code.co_name} ({code.co_filename}:{at.f_lineno})"
            at = at.f_back
    for module in list(sys.modules.values()):  # by name, and whether or not they are frozen (gc.freeze)
        for name, value in list(vars(module).items()) if isinstance(module, ModuleType) else ():
            yield value, f"{module.__name__}.{name}"
    for container in gc.get_objects():
        for value in gc.get_referents(container):
            yield value, f"in a {type(container).__name__}"


def _arrays_in(value: Any) -> Iterator[Any]:
    """The arrays among a value and what it holds, where the collector does not know it: dicts and tuples of arrays."""
    if type(value) is _core.Array:
        yield value
    elif type(value) in (dict, tuple) and not gc.is_tracked(value):
        for inner in gc.get_referents(value):
            yield from _arrays_in(inner)


def profile(in_use: int | None) -> bytes:
    """The profile, compressed; `in_use`: bytes that all arrays of the process take, if they are counted."""
    found: dict[tuple[str, str], list[int]] = {}
    buffers: set[int] = set()
    total = 0
    for array, holder in held_arrays():
        if array.is_deleted() or (address := np.asarray(array).ctypes.data) in buffers:
            continue
        buffers.add(address)
        entry = found.setdefault((holder, array.aval.short()), [0, 0])
        entry[0] += 1
        entry[1] += array.nbytes
        total += array.nbytes
    if in_use is not None and in_use > total:
        found["not held by a container of Python's", "buffers"] = [1, in_use - total]
    return _encoded(found)


def _encoded(found: dict[tuple[str, str], list[int]]) -> bytes:
    strings = Strings()
    places: dict[str, int] = {}
    out = bytearray()
    for kind, unit in (("allocations", "count"), ("space", "bytes")):
        out += field(1, number_of(1, strings[kind]) + number_of(2, strings[unit]))
    for (holder, shape), values in found.items():
        ids = [places.setdefault(name, len(places) + 1) for name in (shape, holder)]
        label = number_of(1, strings["kind"]) + number_of(2, strings["buffer"])
        out += field(2, packed(1, ids) + packed(2, values) + field(3, label))
    for name, number in places.items():
        out += field(4, number_of(1, number) + field(4, number_of(1, number)))
        out += field(5, number_of(1, number) + number_of(2, strings[name]) + number_of(3, strings[name]))
    default = strings["space"]
    for text in strings:
        out += field(6, text.encode())
    out += number_of(9, time.time_ns()) + number_of(14, default)
    return gzip.compress(bytes(out))


__all__ = ["held_arrays", "profile"]
