"""The kernels of a program, each measured where it runs: what `pullback.report` shows.

found = measure(closed_jaxpr, name, arguments)
found.kernels        nests and calls in the order of execution: time, lines, bytes, form and runner-up
found.memory         bytes in use while each kernel runs

A second program is compiled for it, whose nests are those of the first: before and after each stands a call of the
system's clock, and what was between is added to an array that is one result more. Reading the clock takes some tens of
ns, which are measured and subtracted. Nests inside of loops are measured in every iteration, nests of a subroutine
(`Run`) together. A third program has each nest in the form that was expected to be second best.

Of a program over a mesh, one device's program is measured on all devices at once; times are means over the devices, and
those of exchanges contain the wait for the others.
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
from pullback.compiler.lower.sources import NotedLowering
from pullback.core import ShapedArray
from pullback.core.jaxpr import ClosedJaxpr
from pullback.loops.emit.cpu.target import host_target
from pullback.loops.emit.jit import assembly, compile_function
from pullback.loops.emit.module import build_module
from pullback.loops.ir import ITEMSIZE, Buffer, Function
from pullback.loops.ir.ir import Address, Call, Const, Expr, Let, Load, Stmt, Store
from pullback.loops.ir.visit import free_vars, loads, statements, stores
from pullback.loops.schedule.choose import form_text
from pullback.partition.report import Collective
from pullback.runtime.arrays.arrays import physical, words_of
from pullback.runtime.arrays.placement import Placing
from pullback.runtime.programs.host_call import native_callback
from pullback.runtime.programs.kernel_list import Kernel, Prepared, clocked, kernels_of, prepared
from pullback.runtime.programs.libraries import addresses_for, is_library
from pullback.runtime.programs.making import symbol_of
from pullback.runtime.programs.partitioned import Layout, OneDevice, on_one_device
from pullback.util.clock import Clock
from pullback.util.switches import switches

CLOCK = "clock_gettime"
MONOTONIC = 1
ROUNDS, SECONDS = 30, 1.0  # of a measurement: the most runs, and about the most time


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
    devices: int = 1
    collectives: list[Collective] = field(default_factory=list)


def measure(
    closed: ClosedJaxpr, name: str, inputs: Sequence[Any], layout: Layout | None = None, runner_ups: bool = True
) -> Measured:
    """Compile a program, run it on arrays of its types, and say what its kernels took; `layout`: how it is cut over a
    mesh."""
    stages: dict[str, float] = {}
    clock = Clock(stages)
    cut = None if layout is None else on_one_device(closed, layout, inputs)
    if cut is not None:
        closed, inputs = cut.closed, cut.inputs
        clock("partition")
    else:
        inputs = [_uncommitted(words_of(x)) for x in inputs]
    with pipelines.timing() as passes:
        flat = pipelines.optimize_jaxpr(closed, name)
        clock("graph passes")
        lowering = NotedLowering()
        lowered = lower_program(flat, symbol_of(name), lowering=lowering)
        clock("fusion and lowering")
        ready = prepared(pipelines.order_loops(lowered.function))
        clock("loop passes")
    kernels = kernels_of(ready, lowering.units, lowered)
    marked = _marked(ready, kernels)
    compiled = _Program(ready.function, marked, lowered, flat, name, len(kernels) + 1, cut)
    clock("kernels of products")
    own = compiled.seconds
    stages |= {"LLVM text": own.get("emit", 0.0), "machine code": sum(v for k, v in own.items() if k != "emit")}
    stages["kernels of products"] = max(0.0, stages["kernels of products"] - sum(own.values()))
    found = Measured(
        name, flat, kernels, 0.0, _bytes(flat.in_avals), _bytes(flat.out_avals), compiled.arena_bytes, passes, stages
    )
    found.buffers = ready.scheduled.buffers
    found.before = _values_before(ready, kernels)
    if cut is not None:
        found.devices, found.collectives = cut.size, cut.collectives
    times, counts = _times(compiled, inputs)
    for kernel in kernels:
        kernel.ns, kernel.runs = float(times[kernel.number]), int(counts[kernel.number])
    _live(ready, kernels)
    if runner_ups:
        _measure_runner_ups(found, ready, lowered, flat, inputs, kernels, cut)
    return found


def _uncommitted(x: Any) -> Any:
    """An array's values, wherever it says that it lies."""
    return x if getattr(x, "_device", None) is None else _core.from_numpy(np.asarray(x), x._aval, None, False)


def instructions(kernel: Kernel, buffers: Sequence[Buffer], before: Sequence[Stmt]) -> str:
    """The assembly text of one kernel, compiled by itself, behind the values that it reads.

    What loops around it count and carry is read from memory, as it is there in registers or in memory already.
    """
    body = (*before, *kernel.body)
    outer = {var: Buffer(f"{var.name}_now", var.dtype, 1, "input") for var in free_vars(body)}
    used = {b for s in statements(body) for b in loads(s) | stores(s)}
    used |= {a.buffer for s in statements(kernel.body) if isinstance(s, Call) for a in s.args if isinstance(a, Address)}
    known = [Let(var, Load(buffer, Const("i64", 0))) for var, buffer in outer.items()]
    passed = (*outer.values(), *(b for b in buffers if b in used))
    function = Function(f"kernel{kernel.number}", passed, (*known, *body))
    return assembly(build_module(function, plan_arena(function)[0], host_target()))


# ---- the program with clocks


def _marked(ready: Prepared, kernels: Sequence[Kernel]) -> Function:
    """The function with clocks around its kernels, whose last results are the times and the numbers of runs."""
    count = len(kernels) + 1
    times, runs = Buffer("measured_ns", "i64", count, "output"), Buffer("measured_runs", "i64", count, "output")
    starts, ends = Buffer("clock_start", "i64", 2, "local"), Buffer("clock_end", "i64", 2, "local")
    at: Callable[[int], Expr] = lambda k: Const("i64", k)

    def read(buffer: Buffer) -> Stmt:
        return Call(CLOCK, (at(MONOTONIC), Address(buffer, at(0))))

    def around(number: int) -> tuple[list[Stmt], list[Stmt]]:
        n = at(number)
        took = (Load(ends, at(0)) - Load(starts, at(0))) * at(10**9) + Load(ends, at(1)) - Load(starts, at(1))
        after: list[Stmt] = [Store(times, n, Load(times, n) + took), Store(runs, n, Load(runs, n) + at(1))]
        return [read(starts)], [read(ends), *after]

    zeros = [Store(buffer, at(k), at(0)) for k in range(count) for buffer in (times, runs)]
    nothing = [stmt for part in around(count - 1) for stmt in part]
    body = (*zeros, *nothing, *clocked(ready, kernels, around))
    buffers = (*ready.scheduled.buffers, times, runs, starts, ends)
    return Function(ready.scheduled.name, buffers, body)


class _Program:
    """The compiled program with clocks."""

    def __init__(
        self, function: Function, marked: Function, lowered: Lowered, flat: ClosedJaxpr, name: str, count: int,
        cut: OneDevice | None,
    ) -> None:  # fmt: skip
        plan, self.arena_bytes = plan_arena(function, marked)
        symbols = addresses_for(marked)
        symbols[CLOCK] = ctypes.cast(getattr(ctypes.CDLL(None), CLOCK), ctypes.c_void_p).value or 0
        compiled = compile_function(marked, plan, symbols=symbols, arena_bytes=self.arena_bytes)
        if lowered.host_calls:
            compiled.set_host_call(_core.symbol_addresses()["pb_host_call_index"])
        self.seconds = compiled.seconds
        extra = tuple(ShapedArray((count,), np.dtype(np.int64)) for _ in range(2))
        outs = (*map(physical, flat.out_avals), *extra)
        self.run: Any = _core.Executable(
            compiled.address, tuple(map(physical, flat.in_avals)), outs, self.arena_bytes, compiled,
            host_calls=[native_callback(each) for each in lowered.host_calls], forward=(-1,) * len(outs),
            alias=(-1,) * len(outs), donate=(), release_gil=True, interruptible=False, apart=False,
            libraries=any(map(is_library, compiled.slots)), name=name, placing=Placing(flat), places=False,
        )  # fmt: skip
        self.is_cut = cut is not None
        if cut is not None:  # of the results one device's, of the times all
            avals = (*outs[:-2], *(aval.update(shape=(cut.size, *aval.shape)) for aval in extra))
            mapped = (*(False for _ in outs[:-2]), True, True)
            self.run = _core.DeviceProgram(self.run, cut.size, cut.mapped, avals, mapped, [None] * len(outs))

    def __call__(self, inputs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        times, runs = map(np.asarray, self.run(list(inputs))[-2:])
        return (times.mean(0), runs[0]) if self.is_cut else (times, runs)


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
    found: Measured, ready: Prepared, lowered: Lowered, flat: ClosedJaxpr, inputs: Sequence[Any],
    kernels: Sequence[Kernel], cut: OneDevice | None,
) -> None:  # fmt: skip
    """Each nest in the form that was expected to be second, in one more program."""
    wanted: dict[str, str] = {}
    for nest in ready.nests:
        if nest.choice.others:
            wanted[nest.key] = min(nest.choice.others, key=lambda other: other.ns).form
    if not wanted or switches.form:
        return
    with switches.set(form=form_text(wanted)):
        other = prepared(pipelines.order_loops(lowered.function))
        if len(other.nests) != len(ready.nests):
            found.notes.append("runner-ups could not be measured: other forms make other nests")
            return
        theirs = kernels_of(other, (), lowered)
        if len(theirs) != len(kernels):
            found.notes.append("runner-ups could not be measured: other forms make other kernels")
            return
        marked = _marked(other, theirs)
        with contextlib.suppress(NotImplementedError):
            program = _Program(other.function, marked, lowered, flat, found.name, len(theirs) + 1, cut)
            times, _ = _times(program, inputs)
            for kernel, ns in zip(kernels, times):
                if kernel.runner_up:
                    kernel.runner_up_ns = float(ns)


def _live(ready: Prepared, kernels: Sequence[Kernel]) -> None:
    """Bytes of temporaries in use while each kernel runs."""
    lives = live_ranges(ready.scheduled.body)
    position = {id(stmt): n for n, stmt in enumerate(statements(ready.scheduled.body))}
    for kernel in kernels:
        where = position[id(kernel.body[0])]
        kernel.temporaries = sum(
            buffer.size * ITEMSIZE[buffer.dtype]
            for buffer, (first, last) in lives.items()
            if buffer.space == "temporary" and first <= where <= last
        )


def _bytes(avals: Sequence[Any]) -> int:
    return sum(a.size * a.dtype.itemsize for a in map(physical, avals))


def _values_before(ready: Prepared, kernels: Sequence[Kernel]) -> dict[int, list[Stmt]]:
    """The named values at the top of the function that stand before each kernel."""
    first = {id(kernel.body[0]): kernel.number for kernel in kernels}
    found: dict[int, list[Stmt]] = {}
    values: list[Stmt] = []
    for stmt in ready.scheduled.body:
        if isinstance(stmt, Let):
            values.append(stmt)
        elif id(stmt) in first:
            found[first[id(stmt)]] = list(values)
    return found
