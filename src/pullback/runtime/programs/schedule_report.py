"""What a program's nests are expected to take, as text: for each the form that was chosen, the others, and why.

    nest 3   about 812 us    fission: columns, written, rows_first    threads > sequential > vector
        computes 1.48 ms, fetches 310 us (memory 4.2 MB), 48 tasks on 2 threads
        runner-up written, about 2.9 ms: computes 1.5 ms, fetches 4.3 ms (memory 67 MB)
        strips about 3.1 ms

What a choice is worth in truth is measured by `python -m benchmarks regret`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.compiler import pipelines
from pullback.loops.ir import Function, Loop
from pullback.loops.ir.ir import Stmt
from pullback.loops.schedule.choose import Choice, Nest, watching
from pullback.loops.schedule.machine import NOMINAL, Machine, host
from pullback.loops.schedule.price import Price, price
from pullback.util.clock import time_of

NEARBY = 1e4  # bytes that come from a cache below which they are not worth a word


def choices(function: Function) -> list[Nest]:
    """The nests of an ordered function as they will run, each with what was chosen and how often it runs."""
    return _watched(function)[0]


def expected(function: Function) -> float:
    """What all of an ordered function but its calls is expected to take on this machine, in ns."""
    nests, between = _watched(function)
    return between + sum(nest.trips * _here(nest) for nest in nests)


def _here(nest: Nest) -> float:
    """What a nest is expected to take on this machine; forms are chosen by the prices of NOMINAL."""
    return sum(price(stmt, host()).total for stmt in nest.body)


def _watched(function: Function) -> tuple[list[Nest], float]:
    with watching() as watch:
        pipelines.optimize_loops(function)
    return [nest._replace(trips=nest.trips * watch.runs.get(nest.function, 1)) for nest in watch.nests], watch.between


def schedule_text(function: Function) -> str:
    """The report of an ordered function."""
    found, between = _watched(function)
    here = [_here(nest) for nest in found]
    whole = between + sum(nest.trips * ns for nest, ns in zip(found, here))
    lines = [
        f"{function.name}: {len(found)} nests, about {time_of(whole)} on the {host().cores} cores of this machine; "
        f"prices below, by which forms are chosen, are those of the {NOMINAL.name}"
    ]
    for number, (_, choice, body, _, trips) in enumerate(found, 1):
        often = f"    {trips} times" if trips > 1 else ""
        expected = f"about {time_of(choice.ns)}"
        lines.append(f"nest {number:<3} {expected:<15} {form_of(choice)}    {shape_of(body)}{often}")
        lines.append("    " + _parts(choice.price, NOMINAL))
        others = sorted(choice.others, key=lambda other: other.ns)
        if others:
            runner_up = others[0]
            lines.append(
                f"    runner-up {form_of(runner_up)}, about {time_of(runner_up.ns)}: {_parts(runner_up.price, NOMINAL)}"
            )
        lines += [f"    {form_of(other)} about {time_of(other.ns)}" for other in others[1:]]
    return "\n".join(lines) + "\n"


def form_of(choice: Choice) -> str:
    """The name of a form, and of those of its parts."""
    return choice.form + (": " + ", ".join(map(form_of, choice.parts)) if choice.parts else "")


def shape_of(body: Sequence[Stmt]) -> str:
    """The roles of the loops that stand in each other."""
    roles: list[str] = []
    while loops := [s for s in body if isinstance(s, Loop)]:
        roles.append(" ".join(dict.fromkeys(loop.role for loop in loops)))
        body = [s for loop in loops for s in loop.body]
    return " > ".join(roles)


def _parts(each: Price, machine: Machine) -> str:
    moved = ", ".join(f"{name} {size / 1e6:.3g} MB" for name, size in each.moved.items() if size >= NEARBY)
    parts = [f"computes {time_of(each.compute)}", f"fetches {time_of(each.fetch)}" + (f" ({moved})" if moved else "")]
    if each.waits:
        parts.append(f"waits {time_of(each.waits)} for what is not foreseen")
    if each.tasks > 1:
        parts.append(f"{each.tasks} tasks on {min(machine.cores, each.tasks)} threads")
    if each.calls:
        parts.append(f"{each.calls} calls, whose time is not known here")
    return ", ".join(parts)
