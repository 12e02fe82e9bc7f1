"""What a program on disk is beside its machine code, so that it runs without having been lowered.

The facts are plain data (runtime/programs/plain.py); whose files are read at all, loops/emit/folder.py says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.compiler.lower.host_function import HostFunction
from pullback.loops.emit.cache import cache_key
from pullback.loops.ir import ITEMSIZE, Function
from pullback.loops.ir.print import EMBEDDED_BYTES
from pullback.runtime.programs.fingerprint import versions
from pullback.runtime.programs.plain import decode, encode
from pullback.util.record import frozen_record


@frozen_record
class Facts:
    """What is known of a compiled program."""

    kept: tuple[int, ...] | None  # arguments that it takes; None: all
    forwards: tuple[int, ...]  # for each result the argument that it plainly is, or -1
    is_long: bool  # worth letting other Python threads run meanwhile
    host_calls: tuple[HostFunction, ...]
    aliases: tuple[int, ...]  # for each result the donated argument whose place it takes, or -1
    has_long_calls: bool  # of libraries, which cannot be interrupted


def key_of(print_: bytes, keep_unused: bool, x64: bool, donated: tuple[int, ...], target: str) -> str:
    """The name of a program on disk."""
    return cache_key(f"{print_.hex()} {keep_unused} {x64} {donated}", versions(), target)


def pack(facts: Facts, function: Function, consts: Sequence[Any]) -> bytes | None:
    """Facts and large constants as bytes; None if a host call cannot be found again in another process.

    Constants that are those of the traced program are told by their number.
    """
    addresses = {}
    for k, const in enumerate(consts):
        if isinstance(const, (np.ndarray, _core.Array)):
            array = np.asarray(const)
            addresses[array.ctypes.data, array.dtype.str, array.size] = k
    constants: dict[int, Any] = {}
    for position, buffer in enumerate(function.buffers):
        if buffer.data is not None and buffer.size * ITEMSIZE[buffer.dtype] > EMBEDDED_BYTES:
            data = buffer.data
            constants[position] = addresses.get((data.ctypes.data, data.dtype.str, data.size), data)
    try:
        return encode((facts, constants))
    except TypeError:
        return None


def unpack(raw: bytes, consts: Sequence[Any]) -> tuple[Facts, Mapping[int, np.ndarray]] | None:
    """(facts, large constants by the position of their buffers); None if the bytes are not of this kind."""
    try:
        facts, constants = decode(raw)
        return facts, {
            position: np.asarray(consts[value]).reshape(-1) if isinstance(value, int) else value
            for position, value in constants.items()
        }
    except (ValueError, IndexError, TypeError, AttributeError):
        return None


__all__ = ["Facts", "key_of", "pack", "unpack"]
