"""What a nest takes on a machine: operations, and lines that come from farther than the first cache.

The footprint of a loop is what one iteration of it touches, in lines. Of a loop whose footprint fits a cache each line
comes into it once; what does not fit comes again each time around. Lines that follow each other are foreseen; others
(the next row of a matrix, another page) are waited for. Time is that of operations or of lines, whichever is longer, a
part of the other, and the waiting; shared by threads as far as memory lets them, and what waking them costs.

Prices are for nests as they will run, or for sketches of them: lanes, tiles and threads are read off roles of loops.

Measured: over 9 row-wise functions of 27 shapes, over each axis, the cheapest form was the quickest or within a tenth
of it in all but three (Zen 4); `python -m benchmarks regret` asks that of all programs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pullback.loops.ir.ir import Buffer, Call, Expr, HostCall, Let, Loop, Run, Stmt, Store, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import access_nodes, blocks, statements

from .cost import AllLanes, cost
from .machine import Machine
from .sketch import BY
from .space import LANES, Axis, extent_of

Touched = Mapping[Buffer, float]  # bytes of each

PAGE = 4096  # bytes
APART = 0.25  # share of the shorter of computing and fetching that does not go on during the other
# Share of the last cache of which others that share it leave what is in it. Measured (Zen 3): normalization of 20,000 x
# 100, 8 MB and as many of results, in blocks of rows took 0.85 of the time alone, and 1.4 beside another process.
KEPT = 0.25
RAMP = 4.0  # lines in a row until what follows them is fetched ahead


@dataclass
class Price:
    """Estimated times, in ns, and the bytes that come from each level into the next."""

    compute: float = 0.0  # on one core
    moved: dict[str, float] = field(default_factory=dict)  # bytes from "second", "last", "memory"
    fetch: float = 0.0  # on one core, while it computes
    waits: float = 0.0  # for what is not foreseen, on one core
    shared: float = 0.0  # ns that memory takes where all cores read
    tasks: int = 1  # that threads share
    calls: int = 0  # of functions whose work is not seen here
    total: float = 0.0

    def __add__(self, other: Price) -> Price:
        moved = {name: self.moved.get(name, 0.0) + other.moved.get(name, 0.0) for name in (*self.moved, *other.moved)}
        return Price(
            self.compute + other.compute, moved, self.fetch + other.fetch, self.waits + other.waits,
            self.shared + other.shared, max(self.tasks, other.tasks), self.calls + other.calls,
            self.total + other.total,
        )  # fmt: skip


def price(stmt: Stmt, machine: Machine, between: Touched | None = None, in_turns: float | None = None) -> Price:
    """Of one statement at the top of a function; `between`: bytes that others touch since each buffer was touched.

    `in_turns`: the operations that a form saves whose iterations are long, so that memory has nothing to do while all
    but the first loop of one run; what is in the last cache is reckoned as if it came from there if it is much.
    """
    found = Price(calls=sum(isinstance(s, (Call, HostCall)) for s in statements((stmt,))))
    wide = machine.vector_bytes / (4 * LANES)
    found.compute = machine.op_ns * cost((stmt,)) / wide
    if in_turns is not None:
        found.compute = max(found.compute - machine.op_ns * in_turns, 0.0)
    accesses = list(_accesses((stmt,), [], {}, machine.vector_bytes // 4))
    lines_of = _Lines(accesses, machine, machine.line, between or {})
    sizes = (("second", machine.first, machine.second.line_ns), ("last", machine.second, machine.last.line_ns))
    for source, cache, line_ns in (*sizes, ("memory", machine.last, machine.memory_ns)):
        lines, jumps = _missed(lines_of, cache.bytes)
        found.moved[source] = lines * machine.line
        found.fetch += (lines - jumps) * line_ns
        found.waits += jumps * machine.far * line_ns
        if source == "memory":
            found.shared = lines * machine.shared_ns
    found.waits += _missed(_Lines(accesses, machine, PAGE, between or {}), PAGE * machine.pages)[0] * machine.page_ns
    found.tasks = _tasks((stmt,))
    found.waits += _taken(stmt, machine) * machine.last.line_ns
    alone = overlapped(found.compute, found.fetch) + found.waits
    if in_turns is not None and found.moved["last"] > machine.last.bytes * KEPT:
        near = found.moved["second"] / machine.line * machine.second.line_ns
        far = found.moved["last"] / machine.line * machine.memory_ns
        alone = overlapped(found.compute, near) + far + found.waits
    # At the end, threads wait for the last of the tasks: for half of one each.
    threads = min(machine.cores, found.tasks) * found.tasks / (found.tasks + machine.cores / 2)
    if threads > 1 and alone > machine.threads_ns:
        found.total = max(alone / threads, found.shared) + machine.join_ns
    else:
        found.total = alone
    return found


def _taken(stmt: Stmt, machine: Machine) -> float:
    """Stores to lines that neighbouring tasks of a loop of threads store to, too: cores take them from each other.

    Measured (Sapphire Rapids, two cores): softmax of 5000 x 33 down its columns, which lie in rows, 445 us by threads
    for each column, whose results are in the same lines.
    """
    if not isinstance(stmt, Loop) or stmt.role != "threads":
        return 0.0
    grain = dict(stmt.attrs).get("grain", 1)
    around = _Around(stmt)

    def stored(body: Sequence[Stmt], trips: float) -> float:
        total = 0.0
        for each in body:
            if isinstance(each, Store):
                step = around.moved(each.index, {})
                size = grain * abs(step or 0) * ITEMSIZE[each.buffer.dtype]
                total += trips if 0 < size < machine.line else 0.0
            again = trips * (extent_of(each) if isinstance(each, Loop) else 1)
            total += sum(stored(block, again) for block in blocks(each))
        return total

    return stored(stmt.body, extent_of(stmt))


def overlapped(compute: float, fetch: float) -> float:
    """What computing and fetching take that go on at once."""
    return max(compute, fetch) + APART * min(compute, fetch)


def source_ns(size: float, machine: Machine) -> float:
    """What a line takes, in ns, that follows others, from where so many bytes are: the first cache has it at once."""
    if size > machine.last.bytes:
        return machine.memory_ns
    if size > machine.second.bytes:
        return machine.last.line_ns
    return machine.second.line_ns if size > machine.first.bytes else 0.0


def least(stmt: Stmt, machine: Machine) -> float:
    """What a nest takes at least, in ns: its operations in lanes on all cores, what it touches fetched once."""
    wide = machine.vector_bytes / (4 * LANES)
    compute = machine.op_ns * cost((stmt,), AllLanes((stmt,))) / wide
    accesses = _accesses((stmt,), [], {}, LANES)
    lines = _total([(access.buffer, access.lines(machine.line)[0]) for access in accesses], machine.line)
    size = lines * machine.line
    far = machine.last.bytes < size
    alone = max(compute, lines * source_ns(size, machine))
    if alone < machine.threads_ns:
        return alone
    return max(alone / machine.cores, lines * machine.shared_ns if far else 0.0)


def touched(stmt: Stmt, machine: Machine) -> Touched:
    """The bytes of each buffer that a nest touches, in whole lines."""
    found: dict[Buffer, float] = {}
    for access in _accesses((stmt,), [], {}, LANES):
        most = max(1.0, access.buffer.size * ITEMSIZE[access.buffer.dtype] / machine.line)
        lines = min(found.get(access.buffer, 0.0) / machine.line + access.lines(machine.line)[0], most)
        found[access.buffer] = lines * machine.line
    return found


def between(parts: Sequence[Touched], k: int) -> Touched:
    """Of what each of several parts touches, which run in turns, again and again: the bytes that others touch since
    each buffer of part `k` was touched.

    Measured (Zen 4): two arrays of 9 MB into one of 18, each half of which is found in the last cache by itself: 450 us
    in two loops, 310 in one, as memory has to give both.
    """
    found: dict[Buffer, float] = {}
    since: dict[Buffer, float] = {}
    for part in (*reversed(parts[:k]), *reversed(parts[k + 1 :])):
        for buffer, size in part.items():
            since[buffer] = max(size, since.get(buffer, 0.0))
        for buffer in parts[k].keys() & part.keys() - found.keys():
            both = part[buffer] + parts[k][buffer] - buffer.size * ITEMSIZE[buffer.dtype]  # at least, as parts differ
            if both > parts[k][buffer] / 2:
                found[buffer] = sum(since.values()) - since[buffer]
    return {buffer: found.get(buffer, sum(since.values())) for buffer in parts[k]}


def _tasks(body: Sequence[Stmt]) -> int:
    """The most iterations of loops of threads in one another."""
    most = 1
    for stmt in body:
        if isinstance(stmt, Loop):
            most = max(most, _tasks(stmt.body) * (extent_of(stmt) if stmt.role == "threads" else 1))
        else:
            most = max([most, *map(_tasks, blocks(stmt))])
    return most


@dataclass
class _Access:
    """One element that a body touches: the loops around it as (identity, iterations, bytes that each moves it or None),
    outermost first. A vector loop stands there as its turns, and innermost as the lanes of one.
    """

    buffer: Buffer
    item: int
    around: list[tuple[int, int, int | None]]

    def lines(self, line: int) -> list[float]:
        """Lines touched by all iterations of the loops from each number on; last, by one iteration of all."""
        near, far, most = self.item, 1.0, max(1.0, self.buffer.size * self.item / line)
        found = [min(max(1.0, near / line), most)]
        for _, n, step in reversed(self.around):
            if step is None:
                far *= n
            elif step != 0 and n > 1:
                if abs(step) < line:
                    near += abs(step) * (n - 1)
                else:
                    far *= n
            found.append(min(far * max(1.0, near / line), most))
        found.reverse()
        return found

    def jumps(self, machine: Machine) -> float:
        """The share of its lines that are not foreseen: the first ones after a step to another page, one of too many,
        or anywhere.
        """
        run = float(self.item)
        beside: list[tuple[int, int]] = []  # so few at once that each of them is foreseen
        for _, n, step in reversed(self.around):
            if step is None:
                return min(1.0, RAMP * machine.line / run)
            if n == 1 or not step:
                continue
            beside.append((abs(step), n))
            while near := [each for each in beside if each[0] <= 2 * run]:  # the next one follows, or nearly
                run = max(run, float(near[0][0] * near[0][1]))
                beside.remove(near[0])
            if any(step >= PAGE and n > machine.streams for step, n in beside):
                return min(1.0, RAMP * machine.line / run)
        return 0.0

    def again(self, outermost: int) -> int:
        """How often all of those loops run."""
        return math.prod(n for _, n, _ in self.around[:outermost])


class _Around(Axis):
    """A loop around accesses, and what is asked of it for each of them."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self.loop = loop
        self.by = dict(loop.attrs).get(BY, 1) if loop.attrs else 1

    def moved(self, index: Expr, definitions: dict[Var, Expr]) -> int | None:
        self.definitions = definitions
        step = self.step(index)
        if step is None:
            step = self.run(index)
        return None if step is None else step * self.by


def _accesses(
    body: Sequence[Stmt], around: list[_Around], definitions: dict[Var, Expr], lanes: int
) -> Iterator[_Access]:
    """All of `body`; those in one loop that differ by a constant, as neighbours do, once."""
    found: dict[tuple, _Access] = {}
    for stmt in body:
        kind = type(stmt)
        if isinstance(stmt, Let) and stmt.var.dtype == "i64":
            definitions[stmt.var] = stmt.value
        inner = [*around, _Around(stmt)] if isinstance(stmt, Loop) else around
        for access in access_nodes(stmt):
            buffer, index = access.buffer, access.index
            item = ITEMSIZE[buffer.dtype]
            steps = [each.moved(index, definitions) for each in inner]
            scaled = [None if step is None else step * item for step in steps]
            key = (len(inner), buffer, *scaled)
            if key not in found:
                found[key] = _Access(buffer, item, _walk([each.loop for each in inner], scaled, lanes))
        if isinstance(stmt, Loop):
            yield from _accesses(stmt.body, inner, definitions, lanes)
        elif kind is not Let and kind is not Store and not isinstance(stmt, (Call, HostCall, Run)):
            for name in ("then", "orelse", "body_cond", "body"):
                yield from _accesses(getattr(stmt, name, ()), around, definitions, lanes)
    yield from found.values()


def _walk(loops: Sequence[Loop], steps: Sequence[int | None], lanes: int) -> list[tuple[int, int, int | None]]:
    walk: list[tuple[int, int, int | None]] = []
    at_once: list[tuple[int, int, int | None]] = []
    for loop, step in zip(loops, steps):
        n = extent_of(loop)
        if loop.role != "vector" or n <= 1:
            walk.append((id(loop), n, step))
            continue
        turns = -(-n // lanes)
        walk.append((id(loop), turns, None if step is None else step * min(lanes, n)))
        at_once.append((-id(loop), min(lanes, n), step))
    return walk + at_once


class _Lines:
    """The lines, of one length, that accesses touch: found once for all caches, and only where one asks."""

    def __init__(self, accesses: Sequence[_Access], machine: Machine, line: int, between: Touched) -> None:
        self.accesses, self.machine, self.line, self.between = accesses, machine, line, between
        self.most = line * _total([(access.buffer, math.inf) for access in accesses], line)  # bytes of whole buffers
        self.most += max(between.values(), default=0.0)

    @cached_property
    def lines(self) -> list[list[float]]:
        """Of each access, from each of the loops around it on."""
        return [access.lines(self.line) for access in self.accesses]

    @cached_property
    def jumps(self) -> list[float]:
        """Of each access, the share of its lines that are not foreseen."""
        return [access.jumps(self.machine) for access in self.accesses]

    @cached_property
    def inside(self) -> dict[int, float]:
        """The bytes that one iteration of each loop touches."""
        inside: dict[int, dict[tuple, tuple[Buffer, float]]] = {}
        for access, lines in zip(self.accesses, self.lines):
            for depth, (key, _, _) in enumerate(access.around, 1):
                each = inside.setdefault(key, {})
                name = (access.buffer, *access.around[depth:])
                known = each.get(name)
                each[name] = access.buffer, lines[depth] if known is None else max(lines[depth], known[1])
        return {key: _total(each.values(), self.line) * self.line for key, each in inside.items()}


def _missed(touched: _Lines, size: int) -> tuple[float, float]:
    """Lines that come into a cache of `size` bytes, and how many of them are not foreseen.

    What one iteration of a loop touches, if it fits, is still there in the next one; so of such a loop each line comes
    once.
    """
    if touched.most <= size:  # what fits as a whole is there from before
        return 0.0, 0.0
    inside, line = touched.inside, touched.line
    total = jumps = 0.0
    found: dict[tuple, tuple[Buffer, float]] = {}  # that come once, of whole nests
    far: dict[tuple, tuple[Buffer, float]] = {}  # of these, those that are not foreseen
    for access, lines_from, unseen in zip(touched.accesses, touched.lines, touched.jumps):
        depth = next((k for k, (key, _, _) in enumerate(access.around) if inside[key] <= size), len(access.around))
        lines = lines_from[depth]
        if depth == 0:
            name = (access.buffer, *access.around)
            found[name], far[name] = (access.buffer, lines), (access.buffer, lines * unseen)
        else:
            lines *= access.again(depth)
            total += lines
            jumps += lines * unseen
    once, jumped = _of_buffers(found.values(), line), _of_buffers(far.values(), line)
    own = sum(once.values()) * line
    for buffer, lines in once.items():
        if own + touched.between.get(buffer, 0.0) > size:
            total, jumps = total + lines, jumps + jumped[buffer]
    return total, jumps


def _of_buffers(each: Iterable[tuple[Buffer, float]], line: int) -> dict[Buffer, float]:
    """Lines of several accesses, by buffers, of one no more than it has."""
    found: dict[Buffer, float] = {}
    for buffer, lines in each:
        most = max(1.0, buffer.size * ITEMSIZE[buffer.dtype] / line)
        found[buffer] = min(found.get(buffer, 0.0) + lines, most)
    return found


def _total(each: Iterable[tuple[Buffer, float]], line: int) -> float:
    return sum(_of_buffers(each, line).values())


__all__ = ["Price", "Touched", "between", "least", "overlapped", "price", "source_ns", "touched"]
