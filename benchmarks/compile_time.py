"""Times compilation: JAX's, ours with nothing cached, and ours with machine code found on disk, program by program.

    python -m benchmarks.compile_time --peers VENV              # a virtual environment that has JAX installed
    python -m benchmarks.compile_time --only scan --memory      # peak memory of compiling and of running, too

From a Python function to something that runs: trace, lower, compile, in milliseconds; each figure is the least of some
rounds, with all in-process caches cleared before each. The columns after the ratios say where our cold time goes. With
--memory each program is compiled and run in a process of its own: MiB that the process grew by at its peak.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import compile_programs
from benchmarks.program import Program
from benchmarks.programs import groups

STAGES = ("trace", "fingerprint", "graph", "lower", "lookup", "passes", "emit", "parse", "codegen", "load")
SLOW = 5.0  # seconds; a program that took longer is timed once


def programs(only: str, own: bool, sample: int | None = None) -> Iterator[tuple[str, Program]]:
    """(group, program) of this folder whose group or name contains `only`; of each group at most `sample`."""
    chosen_from = {"compile": compile_programs.PROGRAMS, "alone": compile_programs.ALONE}
    if not own:
        chosen_from |= groups()
    for group, members in chosen_from.items():
        chosen = [program for program in members if program.jit and (only in group or only in program.name)]
        count = min(len(chosen), sample or len(chosen))
        for k in range(count):
            yield group, chosen[k * len(chosen) // count]


def compiled(jax: Any, program: Program, args: tuple) -> tuple[float, Any]:
    """(seconds from function to compiled, the compiled function)."""
    function = program.jax(jax)
    fresh = lambda *args: function(*args)  # caches of traces lie with the function
    gc.collect()
    start = time.perf_counter()
    done = jax.jit(fresh, static_argnums=program.static).lower(*args).compile()
    return time.perf_counter() - start, done


class Ours:
    """pullback, with a cache folder of its own."""

    def __init__(self) -> None:
        import pullback
        from pullback.runtime.programs import program
        from pullback.util.switches import switches

        self.jax, self._program, self._switches = pullback, program, switches
        self._folder = tempfile.mkdtemp(prefix="compile-time-")
        switches.cache_dir = self._folder

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def forget(self, disk: bool) -> None:
        """Nothing is compiled; with `disk`, nothing is stored either."""
        self.jax.clear_caches()
        if disk:
            shutil.rmtree(self._folder, ignore_errors=True)

    def time(self, program: Program, args: tuple, disk: bool) -> tuple[float, dict[str, float], Any]:
        """(seconds, seconds by stage, compiled function)."""
        self.forget(disk)
        seconds, done = compiled(self.jax, program, args)
        stages = done._program.seconds
        return seconds, {"trace": seconds - sum(stages.values()), **stages}, done


class Theirs:
    """JAX."""

    def __init__(self, peers: str) -> None:
        found = sorted(Path(peers).glob("lib/python3*/site-packages"))
        if not found:
            raise SystemExit(f"--peers: {peers} is not a virtual environment")
        sys.path.append(str(found[0]))
        self.jax = importlib.import_module("jax")

    def time(self, program: Program, args: tuple) -> tuple[float, Any]:
        self.jax.clear_caches()
        return compiled(self.jax, program, args)


def rounds(count: int, call: Callable[[], Any]) -> list[Any]:
    """The results of some calls (tuples that start with seconds), fewer if they are slow; quickest first."""
    results = [call()]
    while len(results) < count and results[-1][0] < SLOW:
        results.append(call())
    return sorted(results, key=lambda result: result[0])


def arguments(jax: Any, program: Program) -> tuple:
    values = program.inputs(np.random.default_rng(0))
    return tuple(
        value if k in program.static else jax.tree.map(jax.numpy.asarray, value) for k, value in enumerate(values)
    )


# Memory.


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def _grown(call: Callable[[], Any]) -> tuple[int, Any]:
    """Bytes that the process grew by at most while `call` ran, and its result."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status("VmRSS")
    result = call()
    return _status("VmHWM") - before, result


def _memory(side: str, peers: str, group: str, name: str, queue: Any) -> None:
    jax = (Ours() if side == "ours" else Theirs(peers)).jax
    program = next(p for g, p in programs(name, False) if g == group and p.name == name)
    jax.config.update("jax_enable_x64", program.x64)
    args = arguments(jax, program)
    compiled(jax, Program("", lambda rng: (), lambda jax: lambda x: x @ x), (jax.numpy.ones((32, 32)),))
    to_compile, (_, done) = _grown(lambda: compiled(jax, program, args))
    dynamic = [a for k, a in enumerate(args) if k not in program.static]
    to_run, _ = _grown(lambda: jax.block_until_ready(done(*dynamic)))
    analysis = done.memory_analysis()
    queue.put((to_compile, to_run, analysis.temp_size_in_bytes))


def memory(side: str, peers: str, group: str, program: Program) -> tuple[int, int, int]:
    """Bytes: (peak of compiling, peak of the first run, temporaries by the library's own account)."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_memory, args=(side, peers, group, program.name, queue))
    process.start()
    result = queue.get(timeout=600)
    process.join()
    return result


# The table.


def mean(values: list[float]) -> float:
    """Geometric mean; NaN of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def main(argv: list[str] | None = None) -> int:
    """Run, print the table, and write the figures where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_time", description=__doc__.split("\n\n")[0])
    parser.add_argument("--peers", default="", help="a virtual environment that has JAX")
    parser.add_argument("--only", default="", help="programs whose name or group contains this")
    parser.add_argument("--own", action="store_true", help="not the programs of benchmarks/programs")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N programs of each group, evenly taken")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)

    ours = Ours()
    theirs = Theirs(options.peers) if options.peers else None
    warm_up = Program("", lambda rng: (), lambda jax: lambda x: jax.numpy.sin(x @ x).sum())
    for side in (ours, theirs):
        if side is not None:
            compiled(side.jax, warm_up, (side.jax.numpy.ones((4, 4)),))
    figures: dict[str, dict[str, Any]] = {}
    head = f"{'':<42}{'JAX':>8}{'cold':>8}{'warm':>8}{'x cold':>8}{'x warm':>8}{'kernels':>8} |"
    print(head + "".join(f"{stage:>8}" for stage in STAGES) + " | KiB")
    try:
        for group, program in programs(options.only, options.own, options.sample):
            row = figures[f"{group}: {program.name}"] = one(ours, theirs, group, program, options)
            print(line(f"{group}: {program.name}", row), flush=True)
    finally:
        ours.close()
    known = [row for row in figures.values() if "jax" in row]
    cold, warm = (mean([row["jax"] / row[kind] for row in known]) for kind in ("cold", "warm"))
    print(f"geometric mean of JAX's time over ours: cold {cold:.2f}, warm from disk {warm:.2f}")
    late = [name for name, row in figures.items() if row["limit"] and row["cold"] > row["limit"]]
    print("over their limit: " + (", ".join(late) or "none"))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))
    return 0


def one(ours: Ours, theirs: Theirs | None, group: str, program: Program, options: Any) -> dict[str, Any]:
    """The figures of one program."""
    row: dict[str, Any] = {"limit": program.limit if group in ("compile", "alone") else None}
    ours.jax.config.update("jax_enable_x64", program.x64)
    try:
        args = arguments(ours.jax, program)
        cold = rounds(options.rounds, lambda: ours.time(program, args, True))
        warm = rounds(options.rounds, lambda: ours.time(program, args, False))
    finally:
        ours.jax.config.update("jax_enable_x64", False)
    row |= {"cold": cold[0][0], "warm": warm[0][0], "stages": cold[0][1], "warm stages": warm[0][1]}
    row["kernels"] = cold[0][2].cost_analysis()["kernels"]
    row["code"] = cold[0][2].memory_analysis().generated_code_size_in_bytes
    if theirs is not None and group != "alone":
        theirs.jax.config.update("jax_enable_x64", program.x64)
        try:
            args = arguments(theirs.jax, program)
            row["jax"] = rounds(options.rounds, lambda: theirs.time(program, args))[0][0]
        finally:
            theirs.jax.config.update("jax_enable_x64", False)
    if options.memory:
        for side in ("ours", "theirs") if "jax" in row else ("ours",):
            row[f"memory {side}"] = memory(side, options.peers, group, program)
    return row


def line(name: str, row: dict[str, Any]) -> str:
    """A row of the table."""
    ms = lambda seconds: f"{seconds * 1e3:8.1f}" if seconds is not None else f"{'-':>8}"
    jax = row.get("jax")
    text = f"{name[:41]:<42}" + ms(jax) + ms(row["cold"]) + ms(row["warm"])
    for kind in ("cold", "warm"):
        text += f"{jax / row[kind]:8.2f}" if jax else f"{'-':>8}"
    text += f"{row['kernels']:8.0f} |" + "".join(ms(row["stages"].get(stage, 0.0)) for stage in STAGES)
    text += f" | {row['code'] / 1024:.0f}"
    for side in ("ours", "theirs"):
        if f"memory {side}" in row:
            compile_, run, temporary = (n / 2**20 for n in row[f"memory {side}"])
            text += f" | {side} MiB: compile {compile_:.1f}, run {run:.1f}, temporaries {temporary:.2f}"
    return text


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    raise SystemExit(main())
