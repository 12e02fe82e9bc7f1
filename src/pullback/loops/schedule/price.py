"""What a nest takes on a machine: operations, and lines that come from farther than the first cache.

The footprint of each loop is what its iterations touch, in lines. A loop whose footprint fits a cache has each of its
lines fetched once into that cache; what does not fit is fetched again each time around. Time is that of operations or
of lines, whichever is longer, shared by threads as far as memory lets them, and what waking them costs.

The prices are for nests as they will run: lanes, tiles and threads are read off the roles of loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pullback.loops.ir.affine import stride
from pullback.loops.ir.ir import Buffer, Call, Const, Expr, HostCall, Let, Load, Loop, Op, Run, Stmt, Store, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.vectors import varying_vars
from pullback.loops.ir.visit import nodes, statements

from .cost import LANES, cost
from .machine import Machine


@dataclass
class Price:
    """Estimated times, in ns, and the bytes that come from each level into the next."""

    compute: float = 0.0  # on one core
    moved: dict[str, float] = field(default_factory=dict)  # bytes from "second", "last", "memory"
    fetch: float = 0.0  # on one core
    shared: float = 0.0  # ns that memory takes where all cores read
    tasks: int = 1  # that threads share
    calls: int = 0  # of functions whose work is not seen here
    total: float = 0.0


def price(stmt: Stmt, machine: Machine) -> Price:
    """Of one statement at the top of a function."""
    found = Price(calls=sum(isinstance(s, (Call, HostCall)) for s in statements((stmt,))))
    wide = machine.vector_bytes / (4 * LANES)
    found.compute = machine.op_ns * cost((stmt,)) / wide
    accesses = list(_accesses((stmt,), [], {}))
    sizes = (("second", machine.first, machine.second.line_ns), ("last", machine.second, machine.last.line_ns))
    for source, cache, line_ns in (*sizes, ("memory", machine.last, machine.memory_ns)):
        lines = _missed(accesses, cache.bytes, machine.line)
        found.moved[source] = lines * machine.line
        found.fetch += lines * line_ns
        if source == "memory":
            found.shared = lines * machine.shared_ns
    found.fetch += _missed(accesses, 4096 * machine.pages, 4096) * machine.page_ns
    found.tasks = _tasks((stmt,))
    alone = max(found.compute, found.fetch)
    threads = min(machine.cores, found.tasks)
    if threads > 1:
        found.total = max(alone / threads, found.shared) + machine.wake_ns / 3
    else:
        found.total = alone
    return found


def _tasks(body: Sequence[Stmt]) -> int:
    """The most iterations of a loop of threads."""
    return max((extent_of(s) for s in statements(body) if isinstance(s, Loop) and s.role == "threads"), default=1)


def extent_of(loop: Loop) -> int:
    """The number of iterations, or the most that is seen."""
    extent = loop.extent
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, Op) and extent.name in ("min", "select"):
        known = [x.value for x in extent.args if isinstance(x, Const) and x.dtype == "i64"]
        if known:
            return int(max(known) if extent.name == "select" else min(known))
    return 16


@dataclass
class _Access:
    """One element that a body touches: the loops around it, outermost first, and how far each moves it, in bytes."""

    buffer: Buffer
    item: int
    around: list[Loop]
    steps: list[int | None]

    def lines(self, outermost: int, line: int) -> float:
        """Lines touched by all iterations of the loops from number `outermost` on."""
        near, far = self.item, 1.0
        for loop, step in zip(self.around[outermost:], self.steps[outermost:]):
            n = extent_of(loop)
            if step is None:
                far *= n
            elif step == 0 or n <= 1:
                continue
            elif abs(step) < line:
                near += abs(step) * (n - 1)
            else:
                far *= n
        lines = far * max(1.0, near / line)
        return min(lines, max(1.0, self.buffer.size * self.item / line))


def _accesses(body: Sequence[Stmt], around: list[Loop], definitions: dict[Var, Expr]) -> Iterator[_Access]:
    """All of `body`; those in one loop that differ by a constant, as neighbours do, once."""
    found: dict[tuple, _Access] = {}
    for stmt in body:
        if isinstance(stmt, Let) and stmt.var.dtype == "i64":
            definitions[stmt.var] = stmt.value
        inner = [*around, stmt] if isinstance(stmt, Loop) else around
        places = [(x.buffer, x.index) for x in nodes(stmt) if isinstance(x, Load)]
        for buffer, index in [*places, *([(stmt.buffer, stmt.index)] if isinstance(stmt, Store) else [])]:
            item = ITEMSIZE[buffer.dtype]
            steps = [_step(index, loop, definitions) for loop in inner]
            scaled = [None if step is None else step * item for step in steps]
            found.setdefault((len(inner), buffer, *scaled), _Access(buffer, item, inner, scaled))
        if isinstance(stmt, Loop):
            yield from _accesses(stmt.body, inner, definitions)
        elif not isinstance(stmt, (Let, Store, Call, HostCall, Run)):
            for name in ("then", "orelse", "body_cond", "body"):
                yield from _accesses(getattr(stmt, name, ()), around, definitions)
    yield from found.values()


def _step(index: Expr, loop: Loop, definitions: dict[Var, Expr]) -> int | None:
    return stride(index, loop.var, varying_vars(loop), definitions, {})


def _missed(accesses: Sequence[_Access], size: int, line: int) -> float:
    """Lines that come into a cache of `size` bytes."""
    inside: dict[int, list[tuple[_Access, int]]] = {}
    for access in accesses:
        for depth, loop in enumerate(access.around):
            inside.setdefault(id(loop), []).append((access, depth))
    footprint: dict[int, float] = {}
    for key, found in inside.items():
        each: dict[tuple, float] = {}
        for access, depth in found:
            lines = access.lines(depth, line)
            name = (access.buffer, *access.steps[depth:])
            each[name] = max(each.get(name, 0.0), lines)
        of_buffer: dict[Buffer, float] = {}
        for (buffer, *_), lines in each.items():
            most = max(1.0, buffer.size * ITEMSIZE[buffer.dtype] / line)
            of_buffer[buffer] = min(of_buffer.get(buffer, 0.0) + lines, most)
        footprint[key] = sum(of_buffer.values()) * line
    total = 0.0
    whole: dict[Buffer, float] = {}  # fetched once: the whole nest fits
    for access in accesses:
        depth = next((k for k, loop in enumerate(access.around) if footprint[id(loop)] <= size), len(access.around))
        outside = math.prod(extent_of(loop) for loop in access.around[:depth])
        if depth == 0:
            whole[access.buffer] = max(whole.get(access.buffer, 0.0), access.lines(0, line))
            continue
        if depth == len(access.around):  # not even the innermost fits: a stream
            depth -= 1
            outside = math.prod(extent_of(loop) for loop in access.around[:depth])
        total += access.lines(depth, line) * outside
    return total  # what fits as a whole is there from before, or comes once, which is little


__all__ = ["Price", "extent_of", "price"]
