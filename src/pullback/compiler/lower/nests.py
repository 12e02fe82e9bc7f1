"""Groups as loop nests: one loop per axis (neighbouring axes as one where every access allows it), values, then
stores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack

from pullback.compiler.graph.fuse.groups import Group, Row, may_merge
from pullback.compiler.lower.reductions import emit_reductions
from pullback.compiler.lower.values import Region, split
from pullback.loops.ir import Expr


def emit_group(region: Region, group: Group) -> None:
    """The loop nest of one group by itself."""
    _emit(region, group, {}, 0)
    arrive(region, group)


def emit_row(region: Region, row: Row) -> None:
    """The nest of groups that share their outer loops: for each row, one after the other."""
    positions = range(len(row.extents))
    shared: dict[int, Expr] = {}
    with ExitStack() as stack:
        for run in _runs(row.extents, positions, lambda p, q: _row_may_merge(row, p, q)):
            extent = math.prod(row.extents[p] for p in run)
            counter = stack.enter_context(region.loop(extent)) if extent != 1 else region.b.index(0)
            shared |= split(region, counter, run, row.extents)
        for group in row.groups:
            _emit(region, group, {group.order[p]: shared[p] for p in positions}, len(row.extents))
            arrive(region, group)


def arrive(region: Region, group: Group) -> None:
    """What the group stored is in memory from here on."""
    for var in group.outputs(region.eqns):
        if var in region.memory:
            region.ready.add(var)


def _emit(region: Region, group: Group, index: dict[int, Expr], done: int) -> None:
    kept, reduced = loops_of(group, done)
    with ExitStack() as stack:
        for run in kept:
            extent = math.prod(group.space[a] for a in run)
            counter = stack.enter_context(region.loop(extent)) if extent != 1 else region.b.index(0)
            index |= split(region, counter, run, group.space)
        if group.reductions:
            emit_reductions(region, group, index, reduced)
        else:
            region.store([index[a] for a in range(len(group.space))], group.stores, group.row is not None)


def without_elements(region: Region, unit: Group | Row) -> bool:
    """Whether the unit only makes arrays of size 0. Its nest would run no iteration, but what it hoists, an index
    that is loaded for instance, would run once and read an element that is not there.
    """
    groups = unit.groups if isinstance(unit, Row) else [unit]
    if any(group.call is not None for group in groups):
        return False
    outputs = [var for group in groups for var in group.outputs(region.eqns)]
    if any(var.aval.size for var in outputs):
        return False
    for group in groups:
        arrive(region, group)
    return True


Runs = tuple[tuple[int, ...], ...]


def loops_of(group: Group, done: int = 0) -> tuple[Runs, Runs]:
    """The axes that each loop walks: those that are kept, without the first `done` of them, and the reduced ones."""
    reduced = (group.reduced or ()) if group.reductions else ()
    kept = [a for a in group.order[done:] if a not in reduced]
    merge = lambda p, q: may_merge(group, p, q)
    return tuple(map(tuple, _runs(group.space, kept, merge))), tuple(map(tuple, _runs(group.space, reduced, merge)))


def _runs(extents: Sequence[int], axes: Sequence[int], mergeable) -> list[list[int]]:
    """The axes in lists of neighbours that one loop can walk; axes of size 1 go anywhere."""
    runs: list[list[int]] = []
    last: int | None = None  # the last axis of size other than 1
    for a in axes:
        if extents[a] == 1:
            if runs:
                runs[-1].append(a)
            else:
                runs.append([a])
            continue
        apart = last is not None and not (
            last < a and all(extents[x] == 1 for x in range(last + 1, a)) and mergeable(last, a)
        )
        if runs and not apart:
            runs[-1].append(a)
        else:
            runs.append([a])
        last = a
    return runs


def _row_may_merge(row: Row, p: int, q: int) -> bool:
    for group in row.groups:
        left, right = group.order[p], group.order[q]
        if (
            not left < right
            or any(group.space[a] != 1 for a in range(left + 1, right))
            or not may_merge(group, left, right)
        ):
            return False
    return True
