"""Which CPU and code generator code on disk is for, asked without LLVM: to load it takes 25 ms and 90 MB."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform

from pullback._ext import _core
from pullback.util.tile_permission import tiles_are_ours

# The lines of /proc/cpuinfo that say what a core can do, on x86-64 and on AArch64; others change with time and core.
_LINES = frozenset({
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part",
})  # fmt: skip
_READ = 1 << 13  # bytes: more than the lines of one core


@functools.cache
def identity_of(level: str) -> str:
    """What code for a level of CPUs ('host': this one) depends on, beside the program: equal texts share code."""
    return "\n".join((platform.system(), platform.machine(), level, _cpu(level), _code_generator()))


def _cpu(level: str) -> str:
    """The lines of the first core, or all that LLVM says where the system has no such file.

    The level that the CPU itself states is beside them: below Valgrind it is less than what the file says, and code
    that was stored outside would be of instructions that it does not know.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            core = file.read(_READ).split("\n\n")[0].split("\n")
    except OSError:
        core = []
    lines = [line for line in core if line.split("\t")[0].split(":")[0].strip() in _LINES]
    if any(line.startswith(("flags", "Features")) for line in lines):
        return "\n".join((*lines, f"level {_core.CPU_LEVEL}", f"tiles {tiles_are_ours()}"))
    from .target import target_of

    return repr(target_of(level))


def _code_generator() -> str:
    """Size and time of the files of llvmlite that change with it and with its LLVM."""
    found = importlib.util.find_spec("llvmlite")
    assert found is not None and found.origin is not None
    folder = os.path.dirname(found.origin)
    files = []
    for inner, of_kind in (("", lambda name: name.endswith(".py")), ("binding", lambda name: "llvmlite" in name)):
        with os.scandir(os.path.join(folder, inner)) as entries:
            files += [(entry.name, entry.stat()) for entry in entries if of_kind(entry.name)]
    return " ".join(f"{name}:{stat.st_size}:{stat.st_mtime_ns}" for name, stat in sorted(files))


__all__ = ["identity_of"]
