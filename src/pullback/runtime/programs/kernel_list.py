"""The kernels of a program, as one compilation makes them: its loop nests and calls in the order of execution.

ready = prepared(function)           the function with all passes, and which statements belong to which nest
kernels_of(ready, units, lowered)    a `Kernel` for each, with its lines, operations, bytes, form and runner-up
clocked(ready, around)               the function with statements around each kernel
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pullback.compiler import pipelines
from pullback.compiler.lower.program import Lowered
from pullback.compiler.lower.sources import Unit, buffers_in, names_in
from pullback.core.source import SourceInfo
from pullback.loops.ir import ITEMSIZE, Buffer, Function, Loop
from pullback.loops.ir.ir import Address, Call, Const, HostCall, If, Run, Stmt, While
from pullback.loops.ir.kernels import map_kernels
from pullback.loops.ir.print import Printer
from pullback.loops.ir.visit import statements, with_blocks
from pullback.loops.schedule.choose import Nest, watching
from pullback.loops.schedule.machine import Machine, host
from pullback.loops.schedule.price import least, price, source_ns, touched
from pullback.runtime.programs.libraries import is_library
from pullback.runtime.programs.schedule_report import form_of, shape_of

MEETINGS = frozenset(("pb_meet", "pb_part"))  # calls that wait for the other devices of an exchange


@dataclass
class Kernel:
    """One loop nest or call of a program. Times are in ns, of all its runs in one call of the program."""

    number: int
    name: str
    kind: str  # "loops", "library", "python" or "subroutine"
    lines: tuple[SourceInfo, ...]
    equations: tuple[Any, ...]
    stored: tuple[Any, ...]  # why its results are in memory: compiler/lower/sources.py
    text: str  # the loops as they run
    body: tuple[Stmt, ...]
    shape: str = ""  # the roles of its loops
    form: str = ""
    runs: int = 0
    ns: float = 0.0
    expected_ns: float | None = None  # on this machine; None where it calls what is not seen
    limit_ns: float = 0.0  # its operations in lanes on all cores, or what it touches fetched once
    least_bytes: float = 0.0  # that it touches
    moved_bytes: float = 0.0  # that are expected to come into the first cache
    threads: int = 1
    runner_up: str = ""
    runner_up_expected_ns: float | None = None
    runner_up_ns: float | None = None
    temporaries: int = 0  # bytes in use while it runs


@dataclass
class Prepared:
    """A function after all passes, whose nests are known."""

    function: Function  # nests in order
    scheduled: Function
    nests: list[Nest]
    of_statement: dict[int, int]  # number of the nest that a statement is part of


def prepared(function: Function) -> Prepared:
    """All passes over an ordered function."""
    *before, stream = pipelines.LOOP_PASSES
    run = lambda f, passes: pipelines.run_passes(passes, f, f.name, lambda *_: None)
    program = run(function, pipelines.PROGRAM_PASSES)
    program = map_kernels(program, lambda kernel: run(kernel, pipelines.LOOP_PASSES))
    with watching() as watch:
        program = run(program, before)
    nests = [nest for nest in watch.nests if nest.function == program.name]
    of_statement = {id(stmt): n for n, nest in enumerate(nests) for stmt in nest.body}

    # Stores past the caches are written into the nests one by one, so that it is still known which is which.
    def streamed(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            number = of_statement.get(id(stmt))
            if number is None:
                result.append(with_blocks(stmt, streamed))
                continue
            (new,) = stream.run(Function(program.name, program.buffers, (stmt,))).body
            of_statement[id(new)] = number
            keep.append(new)
            result.append(new)
        return tuple(result)

    keep: list[Stmt] = []
    final = Function(program.name, program.buffers, streamed(program.body))
    return Prepared(function, final, nests, of_statement)


def kernels_of(ready: Prepared, units: Sequence[Unit], lowered: Lowered) -> list[Kernel]:
    """The kernels in order; `units`: what lowering has noted (NotedLowering)."""
    kernels: list[Kernel] = []
    printer = lambda body: _text(ready.scheduled, body)
    for body, number in _parts(ready, ready.scheduled.body):
        names = names_in(body)
        mine = [unit for unit in units if unit.names & names] or _writers(units, body) or _meeting(units, body)
        calls = [s for s in statements(body) if isinstance(s, (Call, HostCall, Run))]
        hosts = [lowered.host_calls[s.index].name for s in calls if isinstance(s, HostCall)]
        symbols = [s.symbol for s in calls if isinstance(s, Call)]
        kind = "python" if hosts else "library" if any(map(is_library, symbols)) else "loops"
        kind = "subroutine" if any(isinstance(s, Run) for s in calls) else kind
        label = "+".join(_named(mine, symbols)) or "+".join([*hosts, *symbols]) or "copy"
        kernel = Kernel(
            len(kernels), label, kind,
            _lines(mine),
            tuple(dict.fromkeys(eqn for unit in mine for eqn in unit.equations)),
            tuple(s for unit in mine for s in unit.stored), printer(body), tuple(body), shape_of(body),
        )  # fmt: skip
        machine, seen = host(), not any(isinstance(s, (Call, HostCall, Run)) for s in calls)
        prices = [price(stmt, machine) for stmt in body]
        if seen:
            kernel.expected_ns = sum(p.total for p in prices)
            kernel.limit_ns = sum(least(stmt, machine) for stmt in body)
            kernel.moved_bytes = sum(size for p in prices for size in p.moved.values())
        sizes: dict[Buffer, float] = {}
        for stmt in body:
            for buffer, size in touched(stmt, machine).items():
                sizes[buffer] = max(sizes.get(buffer, 0.0), size)
        for stmt in calls:
            for buffer in _reached(stmt):
                if buffer.space != "local":
                    sizes[buffer] = float(buffer.size * ITEMSIZE[buffer.dtype])
        kernel.least_bytes = sum(size for buffer, size in sizes.items() if buffer.space != "local")
        if not seen and (multiplied := products_ns(kernel.equations, machine)):
            lines = kernel.least_bytes / machine.line
            kernel.limit_ns = max(multiplied, lines * source_ns(kernel.least_bytes, machine)) / machine.cores
        kernel.threads = min(machine.cores, max((p.tasks for p in prices), default=1))
        if number is not None:
            choice = ready.nests[number].choice
            kernel.form = form_of(choice)
            if choice.others:
                second = min(choice.others, key=lambda other: other.ns)
                kernel.runner_up, ours = form_of(second), choice.ns
                if kernel.expected_ns is not None and ours:
                    kernel.runner_up_expected_ns = kernel.expected_ns * second.ns / ours
        kernels.append(kernel)
    return kernels


def products_ns(equations: Sequence[Any], machine: Machine) -> float:
    """What the products among operations take one core at least, in ns: a multiplication and an addition at once, in
    vectors."""
    total = 0.0
    for eqn in equations:
        if eqn.primitive.name == "dot_general":
            (contracted, _), _ = eqn.params["dimension_numbers"]
            terms = math.prod(eqn.invars[0].aval.shape[d] for d in contracted)
        elif eqn.primitive.name == "conv_general_dilated":
            weights = eqn.invars[1].aval
            terms = weights.size // weights.shape[eqn.params["dimension_numbers"].rhs_spec[0]]
        else:
            continue
        out = eqn.outvars[0].aval
        real = 4 if out.dtype.kind == "c" else 1  # products of real numbers in one of complex ones
        size = out.dtype.itemsize // (2 if out.dtype.kind == "c" else 1)
        total += out.size * terms * real * size / machine.vector_bytes * machine.op_ns
    return total


def _lines(units: Sequence[Unit]) -> tuple[SourceInfo, ...]:
    """The user's lines, each once, whatever scopes it is in."""
    found: dict[tuple[str, int], SourceInfo] = {}
    for unit in units:
        for line in unit.lines:
            found.setdefault((line.file, line.line), line)
    return tuple(found.values())


def _writers(units: Sequence[Unit], body: Sequence[Stmt]) -> list[Unit]:
    """The unit that statements without loops of their own belong to, by the memory that they write."""
    written = buffers_in(body)
    return max(([u] for u in units if u.buffers & written), key=lambda u: len(u[0].buffers & written), default=[])


def _meeting(units: Sequence[Unit], body: Sequence[Stmt]) -> list[Unit]:
    """The unit of the exchange at which a statement waits for the other devices."""
    sites = {
        s.args[0].value for s in body if isinstance(s, Call) and s.symbol in MEETINGS and isinstance(s.args[0], Const)
    }
    return [
        unit
        for unit in units
        if any(e.primitive.name == "exchange" and e.params["site"] in sites for e in unit.equations)
    ]


def _named(units: Sequence[Unit], symbols: Sequence[str]) -> list[str]:
    names = [unit.fact.name for unit in units]
    if len(names) == 1 and MEETINGS.intersection(symbols):
        return [f"{names[0]}: wait"]
    called = [s for s in dict.fromkeys(symbols) if is_library(s)]
    return [f"{names[0]}: {', '.join(called)}"] if len(names) == 1 and called else names


def _reached(stmt: Stmt) -> list[Buffer]:
    if isinstance(stmt, Call):
        return [a.buffer for a in stmt.args if isinstance(a, Address)]
    return list(stmt.buffers) if isinstance(stmt, (HostCall, Run)) else []


def _has_work(stmt: Stmt) -> bool:
    return isinstance(stmt, (Loop, While, If, Call, HostCall, Run))


def _opens(stmt: Stmt, ready: Prepared) -> bool:
    """Whether a statement runs others in order, which are kernels of their own."""
    if isinstance(stmt, While):
        return True
    if not (isinstance(stmt, If) or (isinstance(stmt, Loop) and stmt.role == "sequential")):
        return False
    return any(id(s) in ready.of_statement or isinstance(s, (Call, HostCall, Run)) for s in statements((stmt,)))


def _parts(ready: Prepared, body: Sequence[Stmt]):
    """(statements, number of the nest or None) of each kernel, in order."""
    k = 0
    while k < len(body):
        stmt, number = body[k], ready.of_statement.get(id(body[k]))
        if number is not None:
            last = k
            while last < len(body) and ready.of_statement.get(id(body[last])) == number:
                last += 1
            yield list(body[k:last]), number
            k = last
            continue
        if _opens(stmt, ready):
            for block in _blocks(stmt):
                yield from _parts(ready, block)
        elif _has_work(stmt):
            yield [stmt], None
        k += 1


def _blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    if isinstance(stmt, While):
        return stmt.body_cond, stmt.body
    return (stmt.then, stmt.orelse) if isinstance(stmt, If) else (stmt.body,)  # type: ignore[attr-defined]


def _text(function: Function, body: Sequence[Stmt]) -> str:
    printer = Printer(most=16)
    printer.function(Function(function.name, (), tuple(body)))
    inner = printer.lines[1:-1]
    return "\n".join(line.removeprefix("  ") for line in inner)


def clocked(
    ready: Prepared, kernels: Sequence[Kernel], around: Callable[[int], tuple[Sequence[Stmt], Sequence[Stmt]]]
) -> tuple[Stmt, ...]:
    """The function's statements, with those that `around` gives for the number of a kernel before and behind it."""
    first = {id(kernel.body[0]): kernel for kernel in kernels}

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        k = 0
        while k < len(body):
            kernel = first.get(id(body[k]))
            if kernel is None:
                stmt = body[k]
                result.append(with_blocks(stmt, block) if _opens(stmt, ready) else stmt)
                k += 1
                continue
            before, behind = around(kernel.number)
            result += [*before, *kernel.body, *behind]
            k += len(kernel.body)
        return tuple(result)

    return block(ready.scheduled.body)


__all__ = ["Kernel", "Prepared", "clocked", "kernels_of", "prepared"]
