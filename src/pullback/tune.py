"""Measures what the schedule reckons with on this machine; `python -m pullback tune` keeps it on disk.

Lines of the caches and of memory are timed by copies of arrays that fit each of them, on one core, and from memory on
all cores at once; operations by a program of elementary functions, a quotient and a root whose arrays fit the first;
columns taken from a matrix of the second cache by a loop that gathers its lanes, and by one that loads them singly.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pullback.loops.schedule.machine import Machine, host, keep_measured, of_system, using
from pullback.loops.schedule.price import price

LEAST = 0.03  # seconds of each measurement
FROM_MEMORY = 4  # times the last cache


def measure(report: Callable[[str], None] = lambda text: None) -> dict[str, float]:
    """Times of this machine, in ns, by the names that `Machine` has for them; takes one to two seconds."""
    machine = of_system()
    first, second, last = machine.first.bytes, machine.second.bytes, machine.last.bytes
    times: dict[str, float] = {}
    for name, size in (("second_ns", (first + second) // 2), ("last_ns", second * 2)):
        times[name] = _line(min(size, last // 2), machine)
        report(_said(name, times))
    times["memory_ns"] = _line(last * FROM_MEMORY, machine)
    report(_said("memory_ns", times))
    times["shared_ns"] = _line(last * FROM_MEMORY, machine, machine.cores)
    report(_said("shared_ns", times))
    times["op_ns"] = _operation(machine)
    report(_said("op_ns", times))
    times["gathered"] = _gathered(machine)
    report(_said("gathered", times))
    return times


WORDS = {
    "second_ns": "a line of 64 bytes from the second cache",
    "last_ns": "a line from the last cache",
    "memory_ns": "a line from memory, by one core",
    "shared_ns": "a line from memory, by all cores at once",
    "op_ns": "an operation on a vector",
    "gathered": "lanes that an instruction gathers, to lanes that are loaded one by one",
}


def _said(name: str, times: dict[str, float]) -> str:
    return f"{name:9} {times[name]:5.2f} {'ns' if name.endswith('_ns') else 'x '}  {WORDS[name]}"


def _operation(machine: Machine) -> float:
    """ns that the model's unit takes here, in a program of elementary functions."""
    import pullback
    from pullback.compiler import pipelines
    from pullback.runtime.programs.schedule_report import choices

    @pullback.jit
    def mixed(x: pullback.Array, y: pullback.Array) -> pullback.Array:
        return pullback.numpy.exp(x) * pullback.numpy.sin(y) + pullback.numpy.sqrt(x) / y

    arrays = [pullback.numpy.linspace(1, 2, machine.first.bytes // 16, dtype="float32")] * 2
    nests = choices(pipelines.order_loops(mixed.lower(*arrays).compiler_ir("loops")))
    with using(replace(machine, op_ns=1.0)):
        units = sum(price(stmt, host()).compute for nest in nests for stmt in nest.body)
    return _least(lambda: mixed(*arrays)) * 1e9 / units


def _gathered(machine: Machine) -> float:
    """Times as long that numbers take which are gathered, as those that are loaded one by one."""
    from pullback.loops.emit.jit import compile_function
    from pullback.loops.ir import Builder
    from pullback.loops.ir.ir import SINGLY

    columns = 500
    rows = max(1, machine.second.bytes // 8 // columns)
    taken = np.random.default_rng(0).integers(0, columns, columns, "i4")
    inputs, output = [np.ones(rows * columns, "f4"), taken], np.empty(rows * columns, "f4")
    best = []
    for attrs in ((), (SINGLY,)):
        b = Builder()
        x, y = b.input("x", "f32", rows * columns), b.output("y", "f32", rows * columns)
        places = b.input("places", "i32", columns)
        with b.loop(rows) as k, b.loop(columns, "vector", attrs=attrs) as i:
            place = b.op("min", b.op("max", b.load(places, i), b.const("i32", 0)), b.const("i32", columns - 1))
            b.store(y, k * columns + i, b.load(x, k * columns + b.convert(place, "i64")))
        take = compile_function(b.function("take"))
        best.append(_least(lambda take=take: take(inputs, [output])))  # type: ignore[misc]
    return best[0] / best[1]


def _least(call: Callable[[], object]) -> float:
    """Seconds that a call takes at least."""
    call()
    best, until = float("inf"), time.perf_counter() + LEAST
    while time.perf_counter() < until:
        started = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - started)
    return best


def _line(size: int, machine: Machine, threads: int = 1) -> float:
    """ns for each line that a copy of `size` bytes reads or writes, on some threads together."""
    parts = [np.ones(max(size // threads // 16, machine.line), np.float64) for _ in range(2 * threads)]
    best = float("inf")
    for _ in range(3):
        repeats = 1
        while (seconds := _copied(parts, repeats)) < LEAST / 3:
            repeats *= 2
        best = min(best, seconds / repeats)
    return best * 1e9 * machine.line / sum(part.nbytes for part in parts)


def _copied(parts: list[np.ndarray], repeats: int) -> float:
    """Seconds of copying each second part to the one before, all pairs at once."""

    def work(to: np.ndarray, source: np.ndarray) -> None:
        for _ in range(repeats):
            np.copyto(to, source)

    pairs = list(zip(parts[::2], parts[1::2]))
    others = [threading.Thread(target=work, args=pair) for pair in pairs[1:]]
    started = time.perf_counter()
    for thread in others:
        thread.start()
    work(*pairs[0])
    for thread in others:
        thread.join()
    return time.perf_counter() - started


def main() -> int:
    """Measure, say what was found, and keep it; an exit status."""
    from pullback.loops.schedule.machine import described

    print("Measuring this machine (one to two seconds)", file=sys.stderr)
    times = measure(lambda text: print("  " + text, file=sys.stderr))
    try:
        path = keep_measured(times)
    except OSError as error:
        print(f"pullback tune: nothing is kept: {error}", file=sys.stderr)
        return 1
    print(described(host()))
    print(f"Kept in {path}, for programs that are compiled from now on; remove the file to undo it.")
    return 0
