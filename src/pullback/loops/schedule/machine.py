"""Machines, as the schedule reckons with them: the only place with numbers of a machine.

Two of them count. `NOMINAL` decides whatever changes the order in which floats are added, so that results are the same
on every machine. `host()` is for what does not: read from the system, and refined by `python -m pullback tune`, whose
measurements are kept on disk. The other fixed ones are for tests, which must choose alike everywhere.

Sizes of the fixed ones are of the CPUs named; times are a core's, of a small C program that reads and copies arrays of
8 KB to 512 MB (orders of magnitude for a model, not bounds).
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from typing import Any

from pullback.loops.emit.cpu.target import registers_of
from pullback.loops.emit.folder import default_folder, read, usable, write
from pullback.util.record import frozen_record


@frozen_record
class Cache:
    """One level, as far as a core has it to itself."""

    bytes: int
    ways: int
    line_ns: float  # that a line takes from here, where lines follow each other

    @property
    def way(self) -> int:
        """Bytes between addresses that compete for one set."""
        return self.bytes // self.ways


@frozen_record
class Operations:
    """What ops take that are no additions, in additions: of as many registers, where nothing else is said.

    Measured by chains of 2 and 8 ops on 32,768 elements (Zen 4, AVX2 and AVX-512 code alike), over the 1.8 that an
    addition takes in programs, beside loads: the bare ratios are 10 and 15 for division, 19 and 30 for roots.
    """

    divide: tuple[float, float] = (4.0, 6.0)  # float32, float64
    root: tuple[float, float] = (7.0, 12.0)
    extreme: float = 2.0  # the smaller or larger of two floats, where NaN wins
    rounding: float = 4.0  # to 16 bits
    to_integer: float = 4.0  # of floats, out of range the nearest
    wide_integer: float = 8.0  # products of 64 bits, and conversions between these and floats
    quotient: tuple[float, float] = (2.2, 9.0)  # of integers to 32 bits and of 64, of each lane by itself


@frozen_record
class Machine:
    """What passes need to know. Times are in ns."""

    name: str
    first: Cache
    second: Cache
    last: Cache
    line: int  # bytes
    memory_ns: float  # a line from memory, one core alone
    far: float  # times as long that a line takes which is not foreseen: on another page than those before it
    streams: int  # lines that follow each other in so many places at once are foreseen
    shared_ns: float  # the same where all cores read
    pages: int  # of 4096 bytes whose places are known
    page_ns: float  # finding the place of another one
    op_ns: float  # a scalar operation among others, or a load from the first cache
    vector_bytes: int  # of a register
    registers: int  # of vectors
    cores: int
    wake_ns: float  # until a sleeping thread works
    operations: Operations = Operations()
    gathered: float = 1.0  # times as long that lanes take which an instruction gathers from the second cache on

    @property
    def task_ns(self) -> float:
        """Work that one thread takes at a time: as much as waking it costs."""
        return self.wake_ns

    @property
    def threads_ns(self) -> float:
        """Work that threads share: waking them costs more than they save on less."""
        return 3 * self.wake_ns

    @property
    def join_ns(self) -> float:
        """Until a thread that waits for work has it, as most do: a third of what one takes that sleeps."""
        return self.wake_ns / 3


# EPYC with Zen 3: the machine on which most was measured first.
AVX2_SERVER = Machine(
    "AVX2 server", Cache(1 << 15, 8, 0.4), Cache(1 << 19, 8, 0.9), Cache(1 << 25, 16, 1.6), 64, 5.0, 3.0, 32, 3.2, 2048,
    3.0, 0.3, 32, 16, 2, 10_000.0,
)  # fmt: skip
# Xeon with AMX, two cores of a larger one.
AVX512_SERVER = Machine(
    "AVX-512 server", Cache(3 << 14, 12, 0.35), Cache(1 << 21, 16, 0.6), Cache(1 << 25, 16, 3.3), 64, 6.4, 3.0, 32, 4.0,
    2048, 3.0, 0.3, 64, 32, 2, 11_000.0, gathered=0.6,
)  # fmt: skip
# EPYC with Zen 4, two cores of a larger one.
ZEN4_SERVER = replace(
    AVX512_SERVER, name="AVX-512 server, 32 KB", first=Cache(1 << 15, 8, 0.3), second=Cache(1 << 20, 8, 0.6),
    gathered=1.3,
)  # fmt: skip
LAPTOP = replace(AVX2_SERVER, name="laptop", last=Cache(1 << 23, 16, 1.6), shared_ns=2.0, cores=4)
# Everything is large on it: tests reach what takes large arrays elsewhere.
TINY = replace(
    AVX2_SERVER, name="tiny", first=Cache(1 << 11, 2, 0.4), second=Cache(1 << 13, 4, 0.9), last=Cache(1 << 15, 4, 1.6),
    pages=16, vector_bytes=16, wake_ns=100.0,
)  # fmt: skip

NOMINAL = AVX2_SERVER
CORES = 16  # pieces of work that keep the cores of any machine we know busy; part of results, so no machine's own

_CPU = "/sys/devices/system/cpu/cpu0/cache"
FILE = "machine.json"

_instead: Machine | None = None


def host() -> Machine:
    """This machine, or the one of `using`."""
    return _host() if _instead is None else _instead


@contextmanager
def using(machine: Machine) -> Iterator[None]:
    """Choose as for another machine, for a while."""
    global _instead
    before, _instead = _instead, machine
    try:
        yield
    finally:
        _instead = before


@functools.cache
def _host() -> Machine:
    found = of_system()
    folder = default_folder()
    data = read(os.path.join(folder, FILE), 1 << 14) if usable(folder) else None
    if data is None:
        return found
    try:
        kept = json.loads(data)
        return with_measured(found, kept) if kept.get("of") == facts_of(found) else found
    except (ValueError, TypeError, AttributeError):
        return found


def facts_of(machine: Machine) -> str:
    """What a calibration belongs to: sizes, as the system says them."""
    return f"{machine.first.bytes} {machine.second.bytes} {machine.last.bytes} {machine.cores} {_said('model name')}"


def _said(name: str) -> str:
    """What the system says of the first CPU under a name."""
    try:
        lines = _text("/proc/cpuinfo").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _text(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as file:
        return file.read()


def of_system() -> Machine:
    """The sizes of this machine's caches and its cores as the system says them; how it gathers, as that of the fixed
    ones with as wide registers whose second cache is nearest to its own; all else is the nominal one's.
    """
    flags = _said("flags").split()
    found = replace(NOMINAL, name="host", cores=_cores())
    if flags:
        vector_bytes = 64 if "avx512f" in flags else 32 if "avx2" in flags else 16
        found = replace(found, vector_bytes=vector_bytes, registers=registers_of(vector_bytes))
    levels: dict[int, Cache] = {}
    for folder in sorted(os.listdir(_CPU)) if os.path.isdir(_CPU) else ():
        if not folder.startswith("index"):
            continue
        try:
            said = {name: _text(_CPU, folder, name).strip() for name in ("type", "level", "size")}
            ways = int(_text(_CPU, folder, "ways_of_associativity"))
            size = int(said["size"].rstrip("K")) << 10
        except (OSError, ValueError):
            continue
        if said["type"] in ("Data", "Unified") and size and ways:
            level = int(said["level"])
            before = {1: found.first, 2: found.second, 3: found.last}.get(level)
            if before is not None:
                levels[level] = replace(before, bytes=size, ways=ways)
    found = replace(
        found,
        first=levels.get(1, found.first),
        second=levels.get(2, found.second),
        last=levels.get(3, levels.get(2, found.last)),
    )
    alike = [m for m in (AVX2_SERVER, AVX512_SERVER, ZEN4_SERVER) if m.vector_bytes == found.vector_bytes]
    nearest = min(alike, key=lambda m: abs(m.second.bytes - found.second.bytes), default=found)
    return replace(found, gathered=nearest.gathered)


def _cores() -> int:
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:
        return os.cpu_count() or 1


_TIMES = ("memory_ns", "shared_ns", "page_ns", "op_ns", "wake_ns", "gathered")  # as a file may have them


def with_measured(machine: Machine, kept: Mapping[str, Any]) -> Machine:
    """The machine with measured times in place of nominal ones."""
    times: dict[str, Any] = {name: float(kept[name]) for name in _TIMES if name in kept}
    for level in ("second", "last"):
        if f"{level}_ns" in kept:
            times[level] = replace(getattr(machine, level), line_ns=float(kept[f"{level}_ns"]))
    return replace(machine, **times)


def keep_measured(times: Mapping[str, float]) -> str:
    """Write measured times down for this machine; the file's path. OSError if that cannot be."""
    folder = default_folder()
    if not usable(folder, make=True):
        raise OSError(f"{folder} is not there, or others may write it")
    path = os.path.join(folder, FILE)
    write(path, json.dumps({"of": facts_of(of_system()), **times}, indent=1).encode("ascii"))
    _host.cache_clear()
    return path


def described(machine: Machine) -> str:
    """A machine as lines of text."""
    lines = []
    for field in fields(machine):
        value = getattr(machine, field.name)
        if isinstance(value, Cache):
            value = ", ".join(f"{name} {_rounded(number)}" for name, number in asdict(value).items())
        lines.append(f"{field.name:12} {_rounded(value)}")
    return "\n".join(lines)


def _rounded(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
