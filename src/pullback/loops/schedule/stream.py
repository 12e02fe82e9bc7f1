"""Stream: results of nests that do not fit the caches go past them.

A store reads its line first, unless it is told that the line will not be wanted soon: of `y = x + 1` a third of all
traffic. Where a nest touches more than the last cache holds, what it stores is gone before anybody can read it there.

Needs: the schedule. Guarantees: the same elements in the same places; only loops with Lets and Stores in lanes are
marked, and not for buffers that the nest reads.

Not marked are nests that read much less than they store: a core recognizes these by itself, and streamed fills of 16
to 64 MB took 1.3 to 5 times as long (Zen 4, two cores). Nor are nests that compute for longer or call subroutines,
and short rows, whose ends are stored as usual, and awaited.

Measured there, processes that took turns: x + y of 12 to 256 MB takes 0.65 to 0.75 of the time, Adam 0.70, sin 0.85,
stencils 0.85 to 1.0, rows of 4000 times a row 0.87. Marked all the same, x + 1 of 16 MB, which fits the cache with its
result, took 1.19, rows of 1000 1.3, sin(x) cos(x) 1.0 to 1.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.ir import STREAMED, Buffer, Function, Let, Loop, Stmt, Store
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import loaded, stored, with_blocks, with_nests

from .machine import NOMINAL
from .price import price, touched
from .space import extent_of

READ = 0.5  # of the bytes that a nest stores: as many it must read
BUSY = 1.2  # times as long as its traffic a nest may compute
EDGES_NS = 500.0  # what the ends of a row cost


def stream(function: Function) -> Function:
    """The function with the stores of large nests marked."""
    if sum(b.size * ITEMSIZE[b.dtype] for b in function.buffers) <= NOMINAL.last.bytes:
        return function
    return Function(function.name, function.buffers, with_nests(function.body, _nest))


def _nest(nest: Loop) -> Sequence[Stmt]:
    bytes_ = touched(nest, NOMINAL)
    if sum(bytes_.values()) <= NOMINAL.last.bytes:
        return [nest]
    read, written = loaded((nest,)), stored((nest,))
    if not read | written <= bytes_.keys():  # a subroutine's, such as a product's: how much it touches is not known
        return [nest]
    only = {buffer for buffer in written - read if buffer.space != "local"}
    if not only or sum(bytes_[b] for b in read) < READ * sum(bytes_[b] for b in written):
        return [nest]
    expected = price(nest, NOMINAL)
    if expected.compute / NOMINAL.cores > BUSY * expected.shared:
        return [nest]
    return [_marked(nest, only)]


def _marked(stmt: Stmt, only: set[Buffer]) -> Stmt:
    if isinstance(stmt, Loop) and stmt.role == "vector":
        plain = not stmt.carried and all(isinstance(s, (Let, Store)) for s in stmt.body)
        buffers = {s.buffer for s in stmt.body if isinstance(s, Store)}
        row = extent_of(stmt) * max((ITEMSIZE[b.dtype] for b in buffers), default=0)
        if plain and buffers <= only and row / NOMINAL.line * NOMINAL.shared_ns > EDGES_NS:
            return Loop(stmt.var, stmt.extent, stmt.role, stmt.body, stmt.carried, (*stmt.attrs, STREAMED))
        return stmt
    return with_blocks(stmt, lambda body: tuple(_marked(s, only) for s in body))
