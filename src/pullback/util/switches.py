"""The `PULLBACK_*` environment variables: typed, with defaults and documentation, in one table.

    switches.dump                        # the value now
    with switches.set(check=2): ...      # another value for a while, for this process

Read once at import; a bad value raises ValueError naming the variable and what it accepts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback.util.record import frozen_record, record

from .cpu_levels import LEVELS
from .option_checks import parse_bool


def _level(text: str) -> int:
    if text not in ("0", "1", "2"):
        raise ValueError("expected 0, 1 or 2")
    return int(text)


MAX_THREADS = 1024  # as ext/threads/thread_pool.cpp has it


def _threads(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > MAX_THREADS:
        raise ValueError(f"expected a whole number up to {MAX_THREADS}, 0 for one per core")
    return int(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError("expected a whole number")
    return int(text)


def _seconds(text: str) -> float:
    value = float(text) if text.replace(".", "", 1).isdigit() else 0.0
    if not value > 0:
        raise ValueError("expected a positive number of seconds")
    return value


def _comm(text: str) -> str:
    if text not in ("", "trace"):
        raise ValueError("expected trace, or nothing")
    return text


def _limit(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ValueError("expected a number of seconds, 0 for never")
    return found


def _cpu(text: str) -> str:
    if text not in ("host", *LEVELS):
        raise ValueError(f"expected one of host, {', '.join(LEVELS)}")
    return text


STAGES = ("jaxpr", "fused", "loops", "llvm", "asm")


@frozen_record
class Dump:
    """What to write out: `stages` of programs whose name contains `function` (empty: all), into `folder` (None:
    stderr)."""

    stages: frozenset[str] = frozenset()
    function: str = ""
    folder: str | None = None

    def __bool__(self) -> bool:
        return bool(self.stages)


def _dump(text: str) -> Dump:
    rest, _, folder = text.partition(":")
    names, _, function = rest.partition("@")
    stages = frozenset(s.strip() for s in names.split(",") if s.strip())
    if "all" in stages:
        stages = frozenset(STAGES)
    if unknown := stages - set(STAGES):
        raise ValueError(
            f"unknown stage {sorted(unknown)[0]!r}; expected some of {', '.join(STAGES)} or all, "
            "optionally followed by @function and :folder"
        )
    return Dump(stages, function, folder or None)


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


@record
class Switch:
    """One variable: `PULLBACK_<NAME>`."""

    name: str
    default: Any
    parse: Callable[[str], Any]
    doc: str

    @property
    def variable(self) -> str:
        return "PULLBACK_" + self.name.upper()


TABLE = (
    Switch("dump", Dump(), _dump, "Write out stages of compilation: jaxpr,fused,loops,llvm,asm[@function][:folder]."),
    Switch("print_after", "", str, "Print the program after the pass of this name."),
    Switch("check", 0, _level, "0: no internal checks; 1: check each stage; 2: check after each pass."),
    Switch("time_passes", False, parse_bool, "Print the time each pass took."),
    Switch("disable_jit", False, parse_bool, "Run jitted functions as plain Python (the same as JAX_DISABLE_JIT)."),
    Switch("interpret", False, parse_bool, "Run loop nests in the NumPy interpreter and compile nothing."),
    Switch("num_threads", 0, _threads, "Threads of the pool; 0: OMP_NUM_THREADS, else one per core."),
    Switch(
        "cpu",
        "host",
        _cpu,
        "Make code for no more than this level of x86-64 (x86-64-v3: AVX2), which the machine must have; host: all.",
    ),
    Switch("log_compiles", False, parse_bool, "Log each compilation and which argument differed from the cached ones."),
    Switch(
        "skip",
        frozenset(),
        _names,
        "Leave out passes, by name, with commas between (of fusion: producers, siblings, rows): what each buys.",
    ),
    Switch("tune", False, parse_bool, "Measure forms of each program's loop nests once, and keep the answer on disk."),
    Switch("form", "", str, "Take this form of every nest that has it, whatever it costs: what the choice is worth."),
    Switch("partition", True, parse_bool, "Cut programs on arrays that are cut over a mesh into one for each device."),
    Switch("comm", "", _comm, "trace: print who waited for whom, and how long, in communication between processes."),
    Switch("comm_timeout", 60.0, _seconds, "Seconds after which waiting for another process is an error."),
    Switch("cache_dir", "", str, "Folder of compiled programs; empty: pullback in the user's cache folder."),
    Switch("cache_shared", False, parse_bool, "Trust a folder of compiled programs that other users may write."),
    Switch("cache_calls", 4096, _count, "Kinds of arguments whose program one jitted function keeps, at least 1."),
    Switch("slow_compile", 2.0, _limit, "Say on a terminal what took so many seconds to compile; 0: never."),
    Switch("cache_programs", 1024, _count, "Compiled programs kept after their functions are gone."),
)


class Switches:
    """The values of all variables, as attributes."""

    dump: Dump
    print_after: str
    check: int
    time_passes: bool
    disable_jit: bool
    interpret: bool
    num_threads: int
    cpu: str
    log_compiles: bool
    skip: frozenset[str]
    tune: bool
    form: str
    partition: bool
    comm: str
    comm_timeout: float
    cache_dir: str
    cache_shared: bool
    cache_calls: int
    cache_programs: int
    slow_compile: float

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        environment = dict(os.environ) if environment is None else environment
        for switch in TABLE:
            text = environment.get(switch.variable)
            try:
                value = switch.default if text is None else switch.parse(text)
            except ValueError as error:
                raise ValueError(f"environment variable {switch.variable}={text!r}: {error}") from None
            setattr(self, switch.name, value)

    @contextmanager
    def set(self, **values: Any) -> Iterator[None]:
        """Other values while the block runs. Raises TypeError for an unknown name."""
        names = [s.name for s in TABLE]
        for name in values:
            if name not in names:
                raise TypeError(f"switches.set: unknown switch {name!r}; expected one of {', '.join(names)}")
        saved = {name: getattr(self, name) for name in values}
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield
        finally:
            for name, value in saved.items():
                setattr(self, name, value)


switches = Switches()
