"""What a program's nests are expected to take, as text: the time, what bounds it, and what each choice is worth.

    nest 3   about 812 us   48 tasks on 2 threads   computing 1480 us, fetching 310 us (memory 4.2 MB)
        without strips     about 2.9 ms

The passes that choose are left out one at a time; what a choice of the model is worth in truth is measured by
`python -m benchmarks regret`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pullback.compiler import pipelines
from pullback.loops.ir import Function, Loop
from pullback.loops.ir.ir import Stmt
from pullback.loops.schedule.machine import Machine, host
from pullback.loops.schedule.price import Price, price
from pullback.util.switches import switches

CHOOSING = ("strips", "columns", "vectorize", "tile", "parallelize", "split", "unroll", "interchange")
WORTH = 1.02  # times the time, from which another choice is told apart


def prices(function: Function, machine: Machine) -> list[tuple[Stmt, Price]]:
    """The loops of an ordered function as they will run, each with its price."""
    body = pipelines.optimize_loops(function).body
    return [(stmt, price(stmt, machine)) for stmt in body if isinstance(stmt, Loop)]


def predicted(function: Function, machine: Machine) -> float:
    """Expected time of all loops together, in ns."""
    return sum(found.total for _, found in prices(function, machine))


def schedule_text(function: Function) -> str:
    """The report of an ordered function on this machine."""
    machine = host()
    found = prices(function, machine)
    whole = sum(each.total for _, each in found)
    lines = [f"{function.name}: {len(found)} nests, about {_time(whole)} on {machine.cores} cores"]
    for number, (stmt, each) in enumerate(found, 1):
        lines.append(f"nest {number:<3} {'about ' + _time(each.total):<15} {_shape(stmt)}")
        lines.append("    " + ", ".join(_parts(each, machine)))
    lines += [f"without {name:<12} about {_time(total)}" for name, total in _others(function, machine, whole)]
    return "\n".join(lines) + "\n"


def _others(function: Function, machine: Machine, whole: float) -> Iterator[tuple[str, float]]:
    """Passes without which the whole is expected to take another time, and that."""
    for name in CHOOSING:
        with switches.set(skip=switches.skip | {name}):
            other = predicted(function, machine)
        if not 1 / WORTH < (other + 1) / (whole + 1) < WORTH:
            yield name, other


def _shape(stmt: Stmt) -> str:
    """The roles of the loops that stand in each other."""
    roles: list[str] = []
    body: Sequence[Stmt] = (stmt,)
    while loops := [s for s in body if isinstance(s, Loop)]:
        roles.append(" ".join(dict.fromkeys(loop.role for loop in loops)))
        body = [s for loop in loops for s in loop.body]
    return " > ".join(roles)


def _parts(each: Price, machine: Machine) -> list[str]:
    moved = ", ".join(f"{name} {size / 1e6:.3g} MB" for name, size in each.moved.items() if size >= 1e4)
    parts = [f"computes {_time(each.compute)}", f"fetches {_time(each.fetch)}" + (f" ({moved})" if moved else "")]
    if each.tasks > 1:
        parts.append(f"{each.tasks} tasks on {min(machine.cores, each.tasks)} threads")
    if each.calls:
        parts.append(f"{each.calls} calls, whose time is not known here")
    return parts


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
