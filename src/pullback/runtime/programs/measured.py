"""The kernels of a program, each measured where it runs: what `pullback.report` shows.

found = measure(closed_jaxpr, name, arguments)
found.kernels        nests and calls in the order of execution: time, lines, bytes, form and runner-up
found.memory         bytes in use while each kernel runs

A second program is compiled for it, whose nests are those of the first: before and after each stands a call of the
system's clock, and what was between is added to an array that is one result more. Reading the clock takes some tens of
ns, which are measured and subtracted. Nests inside of loops are measured in every iteration, nests of a subroutine
(`Run`) together. A third program has each nest in the form that was expected to be second best.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.compiler import pipelines
from pullback.compiler.lower.arena import live_ranges, plan_arena
from pullback.compiler.lower.program import Lowered, lower_program
from pullback.compiler.lower.sources import NotedLowering, Unit, buffers_in, names_in
from pullback.core import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr
from pullback.core.source import SourceInfo
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import assembly, compile_function
from pullback.loops.emit.module import build_module
from pullback.loops.emit.symbols import PARALLEL_FOR
from pullback.loops.ir import ITEMSIZE, Buffer, Function, Loop
from pullback.loops.ir.ir import Address, Call, Const, Expr, HostCall, If, Let, Load, Run, Stmt, Store, While
from pullback.loops.ir.kernels import map_kernels
from pullback.loops.ir.print import Printer
from pullback.loops.ir.visit import loads, statements, stores, with_blocks
from pullback.loops.schedule.choose import Nest, form_text, watching
from pullback.loops.schedule.machine import host
from pullback.loops.schedule.price import least, price, touched
from pullback.runtime.arrays.arrays import physical
from pullback.runtime.arrays.placement import Placing
from pullback.runtime.programs.host_call import native_callback
from pullback.runtime.programs.libraries import addresses, called_symbols, is_library
from pullback.runtime.programs.making import symbol_of
from pullback.runtime.programs.schedule_report import _form, _shape
from pullback.util.clock import Clock
from pullback.util.switches import switches

CLOCK = "clock_gettime"
MONOTONIC = 1
ROUNDS, SECONDS = 30, 1.0  # of a measurement: the most runs, and about the most time


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
class Measured:
    """What was measured of a program."""

    name: str
    flat: ClosedJaxpr
    kernels: list[Kernel]
    ns: float  # of one call, without clocks in it
    argument_bytes: int
    result_bytes: int
    arena_bytes: int
    passes: dict[str, float]  # seconds of each pass
    stages: dict[str, float]  # seconds of each stage
    notes: list[str] = field(default_factory=list)
    buffers: tuple[Buffer, ...] = ()
    before: dict[int, list[Stmt]] = field(default_factory=dict)  # values that a kernel reads, computed before it


@dataclass
class _Prepared:
    """A program before its nests are measured."""

    function: Function  # nests in order
    scheduled: Function
    nests: list[Nest]
    of_statement: dict[int, int]  # number of the nest that a statement is part of


def measure(closed: ClosedJaxpr, name: str, inputs: Sequence[Any], runner_ups: bool = True) -> Measured:
    """Compile a program, run it on arrays of its types, and say what its kernels took."""
    stages: dict[str, float] = {}
    clock = Clock(stages)
    with pipelines.timing() as passes:
        flat = pipelines.optimize_jaxpr(closed, name)
        clock("graph passes")
        lowering = NotedLowering()
        lowered = lower_program(flat, symbol_of(name), lowering=lowering)
        clock("fusion and lowering")
        prepared = _prepared(lowered.function)
        clock("loop passes")
    kernels = _kernels(prepared, lowering.units, lowered)
    marked = _marked(prepared, kernels)
    compiled = _Program(prepared.function, marked, lowered, flat, name, len(kernels) + 1)
    clock("kernels of products")
    own = compiled.seconds
    stages |= {"LLVM text": own.get("emit", 0.0), "machine code": sum(v for k, v in own.items() if k != "emit")}
    stages["kernels of products"] = max(0.0, stages["kernels of products"] - sum(own.values()))
    found = Measured(
        name, flat, kernels, 0.0, _bytes(flat.in_avals), _bytes(flat.out_avals), compiled.arena_bytes, passes, stages
    )
    found.buffers = prepared.scheduled.buffers
    found.before = _values_before(prepared, kernels)
    times, counts = _times(compiled, inputs)
    for kernel in kernels:
        kernel.ns, kernel.runs = float(times[kernel.number]), int(counts[kernel.number])
    _live(prepared, kernels)
    if runner_ups:
        _measure_runner_ups(found, prepared, lowered, flat, inputs, kernels)
    return found


def instructions(kernel: Kernel, buffers: Sequence[Buffer], before: Sequence[Stmt]) -> str:
    """The assembly text of one kernel, compiled by itself, behind the values that it reads."""
    used = {b for s in statements((*before, *kernel.body)) for b in loads(s) | stores(s)}
    used |= {a.buffer for s in statements(kernel.body) if isinstance(s, Call) for a in s.args if isinstance(a, Address)}
    function = Function(f"kernel{kernel.number}", tuple(b for b in buffers if b in used), (*before, *kernel.body))
    return assembly(build_module(function, plan_arena(function)[0], host_target()))


def _prepared(function: Function) -> _Prepared:
    function = pipelines.order_loops(function)
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
    return _Prepared(function, final, nests, of_statement)


# ---- what the kernels are


def _kernels(prepared: _Prepared, units: Sequence[Unit], lowered: Lowered) -> list[Kernel]:
    kernels: list[Kernel] = []
    printer = lambda body: _text(prepared.scheduled, body)
    for body, number in _parts(prepared, prepared.scheduled.body):
        names = names_in(body)
        mine = [unit for unit in units if unit.names & names] or _writers(units, body)
        calls = [s for s in statements(body) if isinstance(s, (Call, HostCall, Run))]
        hosts = [lowered.host_calls[s.index].name for s in calls if isinstance(s, HostCall)]
        symbols = [s.symbol for s in calls if isinstance(s, Call)]
        kind = "python" if hosts else "library" if any(map(is_library, symbols)) else "loops"
        kind = "subroutine" if any(isinstance(s, Run) for s in calls) else kind
        label = "+".join(_named(mine, symbols)) or "+".join([*hosts, *symbols]) or "copy"
        kernel = Kernel(
            len(kernels), label, kind,
            tuple(dict.fromkeys(line for unit in mine for line in unit.lines)),
            tuple(dict.fromkeys(eqn for unit in mine for eqn in unit.equations)),
            tuple(s for unit in mine for s in unit.stored), printer(body), tuple(body), _shape(body),
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
        kernel.threads = min(machine.cores, max((p.tasks for p in prices), default=1))
        if number is not None:
            choice = prepared.nests[number].choice
            kernel.form = _form(choice)
            if choice.others:
                second = min(choice.others, key=lambda other: other.ns)
                kernel.runner_up, ours = _form(second), choice.ns
                if kernel.expected_ns is not None and ours:
                    kernel.runner_up_expected_ns = kernel.expected_ns * second.ns / ours
        kernels.append(kernel)
    return kernels


def _writers(units: Sequence[Unit], body: Sequence[Stmt]) -> list[Unit]:
    """The unit that statements without loops of their own belong to, by the memory that they write."""
    written = buffers_in(body)
    return max(([u] for u in units if u.buffers & written), key=lambda u: len(u[0].buffers & written), default=[])


def _named(units: Sequence[Unit], symbols: Sequence[str]) -> list[str]:
    names = [unit.fact.name for unit in units]
    called = [s for s in dict.fromkeys(symbols) if is_library(s)]
    return [f"{names[0]}: {', '.join(called)}"] if len(names) == 1 and called else names


def _reached(stmt: Stmt) -> list[Buffer]:
    if isinstance(stmt, Call):
        return [a.buffer for a in stmt.args if isinstance(a, Address)]
    return list(stmt.buffers) if isinstance(stmt, (HostCall, Run)) else []


def _has_work(stmt: Stmt) -> bool:
    return isinstance(stmt, (Loop, While, If, Call, HostCall, Run))


def _opens(stmt: Stmt, prepared: _Prepared) -> bool:
    """Whether a statement runs others in order, which are kernels of their own."""
    if isinstance(stmt, While):
        return True
    if not (isinstance(stmt, If) or (isinstance(stmt, Loop) and stmt.role == "sequential")):
        return False
    return any(id(s) in prepared.of_statement or isinstance(s, (Call, HostCall, Run)) for s in statements((stmt,)))


def _parts(prepared: _Prepared, body: Sequence[Stmt]):
    """(statements, number of the nest or None) of each kernel, in order."""
    k = 0
    while k < len(body):
        stmt, number = body[k], prepared.of_statement.get(id(body[k]))
        if number is not None:
            last = k
            while last < len(body) and prepared.of_statement.get(id(body[last])) == number:
                last += 1
            yield list(body[k:last]), number
            k = last
            continue
        if _opens(stmt, prepared):
            for block in _blocks(stmt):
                yield from _parts(prepared, block)
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


# ---- the program with clocks


def _marked(prepared: _Prepared, kernels: Sequence[Kernel]) -> Function:
    """The function with clocks around its kernels, whose last results are the times and the numbers of runs."""
    count = len(kernels) + 1
    times, runs = Buffer("measured_ns", "i64", count, "output"), Buffer("measured_runs", "i64", count, "output")
    starts, ends = Buffer("clock_start", "i64", 2, "local"), Buffer("clock_end", "i64", 2, "local")
    at: Callable[[int], Expr] = lambda k: Const("i64", k)
    first = {id(kernel.body[0]): kernel for kernel in kernels}
    numbers = iter(range(len(kernels)))

    def read(buffer: Buffer) -> Stmt:
        return Call(CLOCK, (at(MONOTONIC), Address(buffer, at(0))))

    def block(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        k = 0
        while k < len(body):
            kernel = first.get(id(body[k]))
            if kernel is None:
                stmt = body[k]
                result.append(with_blocks(stmt, block) if _opens(stmt, prepared) else stmt)
                k += 1
                continue
            result += timed(next(numbers), kernel.body)
            k += len(kernel.body)
        return tuple(result)

    def timed(number: int, body: Sequence[Stmt]) -> list[Stmt]:
        n = at(number)
        took = (Load(ends, at(0)) - Load(starts, at(0))) * at(10**9) + Load(ends, at(1)) - Load(starts, at(1))
        after = [Store(times, n, Load(times, n) + took), Store(runs, n, Load(runs, n) + at(1))]
        return [read(starts), *body, read(ends), *after]

    zeros = [Store(buffer, at(k), at(0)) for k in range(count) for buffer in (times, runs)]
    body = (*zeros, *timed(count - 1, ()), *block(prepared.scheduled.body))
    buffers = (*prepared.scheduled.buffers, times, runs, starts, ends)
    return Function(prepared.scheduled.name, buffers, body)


class _Program:
    """The compiled program with clocks."""

    def __init__(
        self, function: Function, marked: Function, lowered: Lowered, flat: ClosedJaxpr, name: str, count: int
    ) -> None:
        plan, self.arena_bytes = plan_arena(function, marked)
        symbols = addresses(called_symbols(marked) | {PARALLEL_FOR})
        symbols[CLOCK] = ctypes.cast(getattr(ctypes.CDLL(None), CLOCK), ctypes.c_void_p).value or 0
        compiled = compile_function(marked, plan, symbols=symbols, arena_bytes=self.arena_bytes)
        if lowered.host_calls:
            compiled.set_host_call(_core.symbol_addresses()["pb_host_call_index"])
        self.seconds = compiled.seconds
        extra = tuple(ShapedArray((count,), np.dtype(np.int64)) for _ in range(2))
        outs = (*map(physical, flat.out_avals), *extra)
        self.executable = _core.Executable(
            compiled.address, tuple(map(physical, flat.in_avals)), outs, self.arena_bytes, compiled,
            host_calls=[native_callback(each) for each in lowered.host_calls], forward=(-1,) * len(outs),
            alias=(-1,) * len(outs), donate=(), release_gil=True, interruptible=False, apart=False,
            libraries=any(map(is_library, compiled.slots)), name=name, placing=Placing(flat.jaxpr, None), places=False,
        )  # fmt: skip

    def __call__(self, inputs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        *_, times, runs = self.executable(list(inputs))
        return np.asarray(times), np.asarray(runs)


def _times(program: _Program, inputs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    """(ns, runs) of each kernel: the median of several calls, less what reading the clock takes."""
    _, runs = program(inputs)
    found: list[np.ndarray] = []
    started = time.perf_counter()
    while len(found) < ROUNDS and (len(found) < 3 or time.perf_counter() - started < SECONDS):
        found.append(program(inputs)[0])
    times = np.median(found, axis=0)
    return np.maximum(times - runs * times[-1], 0.0), runs  # the last kernel is none: two readings of the clock


def _measure_runner_ups(
    found: Measured, prepared: _Prepared, lowered: Lowered, flat: ClosedJaxpr, inputs: Sequence[Any],
    kernels: Sequence[Kernel],
) -> None:  # fmt: skip
    """Each nest in the form that was expected to be second, in one more program."""
    wanted: dict[str, str] = {}
    for nest in prepared.nests:
        if nest.choice.others:
            wanted[nest.key] = min(nest.choice.others, key=lambda other: other.ns).form
    if not wanted or switches.form:
        return
    with switches.set(form=form_text(wanted)):
        other = _prepared(lowered.function)
        if len(other.nests) != len(prepared.nests):
            found.notes.append("runner-ups could not be measured: other forms make other nests")
            return
        theirs = _kernels(other, (), lowered)
        if len(theirs) != len(kernels):
            found.notes.append("runner-ups could not be measured: other forms make other kernels")
            return
        marked = _marked(other, theirs)
        with contextlib.suppress(NotImplementedError):
            times, _ = _times(_Program(other.function, marked, lowered, flat, found.name, len(theirs) + 1), inputs)
            for kernel, ns in zip(kernels, times):
                if kernel.runner_up:
                    kernel.runner_up_ns = float(ns)


def _live(prepared: _Prepared, kernels: Sequence[Kernel]) -> None:
    """Bytes of temporaries in use while each kernel runs."""
    lives = live_ranges(prepared.scheduled.body)
    position = {id(stmt): n for n, stmt in enumerate(statements(prepared.scheduled.body))}
    for kernel in kernels:
        where = position[id(kernel.body[0])]
        kernel.temporaries = sum(
            buffer.size * ITEMSIZE[buffer.dtype]
            for buffer, (first, last) in lives.items()
            if buffer.space == "temporary" and first <= where <= last
        )


def _bytes(avals: Sequence[Any]) -> int:
    return sum(a.size * a.dtype.itemsize for a in map(physical, avals))


def _values_before(prepared: _Prepared, kernels: Sequence[Kernel]) -> dict[int, list[Stmt]]:
    """The named values at the top of the function that stand before each kernel."""
    first = {id(kernel.body[0]): kernel.number for kernel in kernels}
    found: dict[int, list[Stmt]] = {}
    values: list[Stmt] = []
    for stmt in prepared.scheduled.body:
        if isinstance(stmt, Let):
            values.append(stmt)
        elif id(stmt) in first:
            found[first[id(stmt)]] = list(values)
    return found
