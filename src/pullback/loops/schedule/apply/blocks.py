"""Blocks of rows: loops along each of some rows, one loop after the other, and what is done once for a row in lanes.

    parallel i < 1000 {                            parallel block < 16 {      (i = 64 * block + j)
      reduce r < 100 -> s { x[i*100 + r] }           parallel j < 64 { reduce r < 100 -> row[j] { x[i*100 + r] } }
      let t = 1 / sqrt(s)                     =>     vector j < 64 { other[j] = 1 / sqrt(row[j]) }
      parallel r < 100 {                             parallel j < 64 {
        y[i*100 + r] = x[i*100 + r] * t                parallel r < 100 { y[i*100 + r] = x[i*100 + r] * other[j] }
      }                                              }
    }                                              }

Of a row by itself each loop waits for the tree over the lanes and the root before it; of several rows the next is on
its way meanwhile. It is what fission does, within the second cache.

Measured (Zen 3, two cores), of the time of the nest as it is written: the gradient of a normalization of 5,000 x 64
0.65, of 2,000 x 40 0.5, that of softmax 0.8. Blocks of 16 KB, which is half the first cache, took up to 1.2 of that of
blocks of 128 KB. Where data come from memory it loses: memory waits while all but the first loop of a block run.

Needs: math expanded, iterations that never meet. Guarantees: the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pullback.loops.ir.fold import make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Buffer, Loop, Read, Stmt, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import Substitute, accessed, bound, free_vars, reads
from pullback.loops.schedule.apply.fission import Fission
from pullback.loops.schedule.apply.pieces import Pieces
from pullback.loops.schedule.cost import vector_of
from pullback.loops.schedule.machine import CORES, NOMINAL
from pullback.loops.schedule.sketch import Form
from pullback.loops.schedule.space import extent_of, known_extent

MOST, FEWEST = 64, 8  # rows of a block
ROOM = 4 * NOMINAL.first.bytes  # bytes that a block takes
# Operations' time until a reduction's result is there, if another was waited for before: the first goes on beside the
# end of the row before. Measured (Zen 3) by 2,000 to 20,000 rows of 40 to 300: 2 to 40 ns a row.
WAIT = 32.0


def blocks(new: Fresh, chain: Sequence[Loop]) -> Form | None:
    """The nest with blocks of rows; None if nothing waits for a row's result, or rows are long."""
    row = chain[-1]
    rows = _rows(row, chain)
    stages = _stages(row.body)
    if rows < FEWEST or not stages:
        return None
    pieces = Pieces(chain, rows)
    j = Var("j", "i64")
    here = {**pieces.position, row.var: make("add", (pieces.first, Read(j)))}
    block = Loop(j, pieces.count, "parallel", Substitute(here).block(row.body))
    fission = Fission(new, [block], pieces.width, "local")
    count = len(fission.units)
    if count < 2:
        return None
    nests = [fission.nest(k, k + 1) for k in range(count)]
    saved = WAIT * (stages - 1) * pieces.outer * pieces.total
    return Form(lambda: [pieces.around(new, nests)], in_turns=saved)


def _rows(row: Loop, chain: Sequence[Loop]) -> int:
    """How many rows there is room for, so that all cores have blocks."""
    moves = vector_of(row)
    loops = [stmt for stmt in row.body if isinstance(stmt, Loop)]
    walked: dict[Buffer, int] = {}
    for loop in loops:
        for buffer, index in accessed((loop,)):
            if buffer.space == "local":  # of each row
                walked[buffer] = buffer.size
            elif moves.step(index) != 0:
                walked[buffer] = max(extent_of(loop), walked.get(buffer, 0))
    size = sum(ITEMSIZE[buffer.dtype] * extent for buffer, extent in walked.items())
    share = prod(known_extent(each) for each in chain) // CORES
    return min(MOST, ROOM // max(size, 1), share) // FEWEST * FEWEST


def _stages(body: Sequence[Stmt]) -> int:
    """How many reductions of a row have results that later loops of it wait for."""
    stages = 0
    fresh: set[Var] = set()  # results that no loop has waited for yet, and what is made of them
    for stmt in body:
        if isinstance(stmt, Loop):
            if not fresh.isdisjoint(free_vars((stmt,))):
                stages += 1
                fresh = set()
            fresh.update(var for group in stmt.carried for var in group.results)
        elif not fresh.isdisjoint(reads(stmt)):
            fresh.update(bound(stmt))
    return stages
