"""Fission (loop distribution): a nest becomes several, each with some of its statements; what they need of each other
lies in rows.

    parallel i < 1000 {                              parallel i < 1000 {
      reduce r < 100 -> s { x[i*100 + r] }             reduce r < 100 -> s { x[i*100 + r] }
      y[i] = log(s)                            =>      t[i] = s
    }                                                }
                                                     parallel i < 1000 { y[i] = log(t[i]) }

One row's logarithm waits for its sum and fills one lane, or lanes have a row each, whose elements lie far apart. Down
columns that no cache holds, each of several loops is quicker by itself.

Measured: softmax of 4096 x 1024 over axis 0 in one nest of strips 4.7 ms, cut 1.7; log-sum-exps of 20,000 rows of 100
0.43 ms, with the logarithms in lanes 0.32. Softmax of 5000 x 33 columns that are rows of what is given 235 us, cut 56.

Needs: math expanded, iterations that never meet (parallel loops). Guarantees: the same values, which pass through
memory from one nest to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod

from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    Buffer,
    Call,
    Expr,
    HostCall,
    Let,
    Load,
    Loop,
    Read,
    Run,
    Space,
    Stmt,
    Store,
    Var,
    While,
)
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import Rewriter, Substitute, bound, loaded, nodes, reads, statements, stored
from pullback.loops.passes.merge import merged
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.space import around, known_extent

MAX_UNITS = 16  # units of a nest
ROOM = NOMINAL.last.bytes // 4  # bytes of scratch space that all iterations may have together


class Fission:
    """A nest of `count` iterations, whose statements may be cut into runs of `units`; `space` is that of rows."""

    def __init__(self, new: Fresh, chain: Sequence[Loop], count: int | None = None, space: Space = "temporary") -> None:
        self.new, self.chain, self.space = new, list(chain), space
        self.body = chain[-1].body
        self.count = prod(known_extent(each) for each in chain) if count is None else count
        self.place: Expr = const("i64", 0)
        for each in chain:
            self.place = make("add", (make("mul", (self.place, each.extent)), Read(each.var)))
        self.rows: dict[Var, Buffer] = {}
        self.wide: dict[Buffer, Buffer] = {}

    @cached_property
    def units(self) -> list[list[Stmt]]:
        """Loops, and what is between them; one unit, or none, if nothing can be cut."""
        if any(isinstance(stmt, (Call, HostCall, Run, While)) for stmt in statements(self.body)):
            return []
        found: list[list[Stmt]] = []
        alone = True
        for stmt in self.body:
            if stmt in self.indices:
                continue
            if alone or isinstance(stmt, Loop):
                found.append([])
            found[-1].append(stmt)
            alone = isinstance(stmt, Loop)
        # Scratch space belongs to an iteration: if all iterations have too much, all that uses it stays together.
        for buffer in sorted(self._scratch(self.body), key=lambda b: b.name):
            if self.count * buffer.size * ITEMSIZE[buffer.dtype] <= ROOM:
                continue
            users = [k for k, unit in enumerate(found) if buffer in self._scratch(unit)]
            first, last = users[0], users[-1]
            found[first : last + 1] = [[stmt for unit in found[first : last + 1] for stmt in unit]]
        return found if len(found) <= MAX_UNITS else []

    @staticmethod
    def _scratch(body: Sequence[Stmt]) -> set[Buffer]:
        return {buffer for buffer in loaded(body) | stored(body) if buffer.space == "local"}

    @cached_property
    def indices(self) -> list[Stmt]:
        """Values of indices alone, which are not worth memory."""
        known = {each.var for each in self.chain}
        found: list[Stmt] = []
        for stmt in self.body:
            if isinstance(stmt, Let) and known.issuperset(reads(stmt)) and stmt.var.dtype == "i64":
                if not any(isinstance(x, Load) for x in nodes(stmt)):
                    found.append(stmt)
                    known.add(stmt.var)
        return found

    def nest(self, first: int, last: int) -> Loop:
        """The nest of units `first` to `last` - 1: it loads what earlier ones made, and stores what later ones need."""
        mine = [stmt for unit in self.units[first:last] for stmt in unit]
        used = _used(mine)
        before = _made([stmt for unit in self.units[:first] for stmt in unit])
        after = _used([stmt for unit in self.units[last:] for stmt in unit])
        indices = _needed(self.indices, used)
        loads = [Let(var, Load(self._row(var), self.place)) for var in before if var in used]
        stores = [Store(self._row(var), self.place, Read(var)) for var in _made(mine) if var in after]
        others = self._scratch([stmt for unit in (*self.units[:first], *self.units[last:]) for stmt in unit])
        shared = {buffer: self._wide(buffer) for buffer in self._scratch(mine) & others}
        whole = around(self.chain, (*indices, *loads, *_Widened(shared, self.place).block(mine), *stores))
        (renamed,) = merged(Substitute({}, self.new.var).block((whole,)), self.new)
        assert isinstance(renamed, Loop)
        return renamed

    def _wide(self, buffer: Buffer) -> Buffer:
        """Scratch space for all iterations."""
        if buffer not in self.wide:
            self.wide[buffer] = self.new.buffer(buffer.name, buffer.dtype, self.count * buffer.size, self.space)
        return self.wide[buffer]

    def _row(self, var: Var) -> Buffer:
        if var not in self.rows:
            self.rows[var] = self.new.buffer("row", var.dtype, self.count, self.space)
        return self.rows[var]


class _Widened(Rewriter):
    """Scratch space of one iteration becomes its part of what all have."""

    def __init__(self, wide: Mapping[Buffer, Buffer], place: Expr) -> None:
        super().__init__()
        self.wide, self.place = wide, place

    def _at(self, buffer: Buffer, index: Expr) -> Expr:
        return make("add", (make("mul", (self.place, const("i64", buffer.size))), index))

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self.wide:
            return Load(self.wide[expr.buffer], self._at(expr.buffer, expr.index))
        return expr

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if isinstance(stmt, Store) and stmt.buffer in self.wide:
            return [Store(self.wide[stmt.buffer], self._at(stmt.buffer, stmt.index), stmt.value)]
        return [stmt]


def _used(body: Sequence[Stmt]) -> set[Var]:
    return {var for stmt in statements(body) for var in reads(stmt)}


def _made(body: Sequence[Stmt]) -> list[Var]:
    """Variables that statements bind for those after them."""
    return [var for stmt in body for var in bound(stmt)]


def _needed(lets: Sequence[Stmt], used: set[Var]) -> list[Stmt]:
    """Of values of indices those that are used, directly or by each other."""
    wanted, found = set(used), []
    for stmt in reversed(lets):
        if wanted.intersection(bound(stmt)):
            wanted.update(reads(stmt))
            found.append(stmt)
    return found[::-1]
