"""Tails: what is done once for each row after its loops, a logarithm or a root, is done for all rows in lanes.

Needs: math expanded; comes before `vectorize`, which then chooses for both. Guarantees: the same values, which pass
through memory from one nest to the next.

    parallel i < 1000 {                              parallel i < 1000 {
      reduce r < 100 -> s { x[i*100 + r] }             reduce r < 100 -> s { x[i*100 + r] }
      y[i] = log(s)                            =>      t[i] = s
    }                                                }
                                                     parallel i < 1000 { y[i] = log(t[i]) }

One row's logarithm waits for its sum and fills one lane, or lanes have a row each, whose elements lie far apart.
"""

from __future__ import annotations

from math import prod

from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Expr, Function, Let, Load, Loop, Read, Stmt, Store, Var
from pullback.loops.ir.vectors import vectorizable
from pullback.loops.ir.visit import Substitute, accessed, bound, loaded, nodes, reads, statements, stored, with_nests

from .columns import chain_of
from .cost import Vector, cost, known_extent

WORTH = 10.0  # scalar ops of a tail: fewer cost less than a store and a load
FEWEST = 64  # rows
MOST = 4  # values of a row that pass through memory


def tails(function: Function) -> Function:
    """The function with expensive tails of rows in nests of their own."""
    new = Fresh("e", function)

    def nest(loop: Loop) -> list[Stmt]:
        chain = chain_of(loop) if loop.role == "parallel" else None
        return [loop] if chain is None else _apart(new, chain) or [loop]

    body = with_nests(function.body, nest)
    return Function(function.name, (*function.buffers, *new.buffers), body) if new.buffers else function


def _apart(new: Fresh, chain: list[Loop]) -> list[Stmt] | None:
    """The nest and that of its tail; None if there is none, or little is gained."""
    body = chain[-1].body
    count = prod(known_extent(each) for each in chain)
    at = max((k for k, stmt in enumerate(body) if isinstance(stmt, Loop)), default=-1)
    before, tail = body[: at + 1], body[at + 1 :]
    if at < 0 or count < FEWEST or not all(isinstance(stmt, (Let, Store)) for stmt in tail):
        return None
    if cost(tail) < WORTH or not _along_rows(chain[-1], before):
        return None
    if any(buffer.space == "local" for buffer in loaded(tail) | stored(tail)) or not stored(tail):
        return None
    if stored(before) & (loaded(tail) | stored(tail)) or loaded(before) & stored(tail):
        return None
    indices = {each.var for each in chain}
    again: list[Stmt] = []  # indices, which are not worth memory
    for stmt in before:
        if isinstance(stmt, Let) and indices.issuperset(reads(stmt)) and not _loads(stmt):
            again.append(stmt)
            indices.add(stmt.var)
    made = {var for stmt in before for var in bound(stmt)} - indices
    needed = [var for var in dict.fromkeys(v for stmt in tail for v in reads(stmt)) if var in made]
    if not 1 <= len(needed) <= MOST:
        return None
    place: Expr = const("i64", 0)
    for each in chain:
        place = make("add", (make("mul", (place, each.extent)), Read(each.var)))
    kept = {var: new.buffer("row", var.dtype, count) for var in needed}
    first = (*before, *(Store(buffer, place, Read(var)) for var, buffer in kept.items()))
    values = {var: Var(var.name, var.dtype) for var in needed}
    loads = tuple(Let(values[var], Load(buffer, place)) for var, buffer in kept.items())
    moved = Substitute({var: Read(values[var]) for var in needed}).block((*again, *tail))
    last = chain[-1]
    across = Loop(last.var, last.extent, "parallel", (*loads, *moved))
    if not vectorizable(across) or any(Vector(across).step(s.index) != 1 for s in tail if isinstance(s, Store)):
        del new.buffers[-len(kept) :]
        return None
    (renamed,) = Substitute({}, new.var).block((_around(chain[:-1], across),))
    return [_around(chain[:-1], Loop(last.var, last.extent, last.role, first, (), last.attrs)), renamed]


def _along_rows(column: Loop, before: tuple[Stmt, ...]) -> bool:
    """Whether the loops in `before` go along rows, whose elements are neighbours, and not down neighbouring columns."""
    across = Vector(column)
    found = False
    for loop in [stmt for stmt in statements(before) if isinstance(stmt, Loop)]:
        down = Vector(Loop(loop.var, loop.extent, "parallel", loop.body))
        for _, index in accessed((*loop.body, Loop(loop.var, loop.extent, "reduce", (), loop.carried))):
            if across.step(index) in (1, -1):
                return False
            found = found or down.step(index) in (1, -1)
    return found


def _loads(stmt: Stmt) -> bool:
    return any(isinstance(expr, Load) for expr in nodes(stmt))


def _around(chain: list[Loop], inner: Loop) -> Loop:
    """The loops of `chain` around `inner`."""
    for each in reversed(chain):
        inner = Loop(each.var, each.extent, each.role, (inner,), (), each.attrs)
    return inner
