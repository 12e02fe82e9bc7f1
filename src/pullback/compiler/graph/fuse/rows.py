"""Rows: groups that share their outer loops, so that a row of data stays in cache from one to the next; and their
order.

Before: for b { m[b] = max x[b,:] }; for b, n { e[b,n] = exp(x[b,n] - m[b]) }
after:  for b { m = max x[b,:]; for n { e[b,n] = exp(x[b,n] - m) } }

Rows may lie along any axis: with max over axis 0, `b` are columns, and lanes take neighbouring ones.

Groups without reductions share loops where one reads rows of another at several places of theirs, which are kept in
scratch space: what is blurred along columns is blurred along rows while it is near. Measured (Zen 4): an image of 64 x
65 by cubic interpolation to twice its size, 128 of them, 6,000 us, now 370, linear interpolation 2,000 and 600 to three
times its size; rows as short as these are written and read again in too few cycles, so that whole images are kept.

What is joined here is what may share loops; whether it is quicker apart (columns that no cache holds) is a question of
prices, which `loops/schedule/choose.py` asks of the lowered nest: it cuts them again.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Set

from pullback.compiler.graph.fuse.access import Index
from pullback.compiler.graph.fuse.groups import Group, Row, Shape, operand_pairs
from pullback.core.jaxpr import JaxprEqn, Var
from pullback.loops.ir import Const
from pullback.loops.schedule.machine import CORES, NOMINAL


def form_rows(groups: list[Group], eqns: list[JaxprEqn], outputs: Set[Var]) -> list[Row | Group]:
    """Joins reductions with the groups that use their results row by row, and those that feed the same rows."""
    definer: dict[Var, Group] = {}
    for group in groups:
        for var in group.outputs(eqns):
            definer[var] = group
    feeds: dict[Group, list[Group]] = {}
    for group in groups:
        feeds[group] = list(dict.fromkeys(definer[v] for v in group.reads if v in definer))
    consumers: dict[Group, list[Group]] = {}
    for group, sources in feeds.items():
        for source in sources:
            consumers.setdefault(source, []).append(group)
    units: list[Row | Group] = []
    # Groups were made from the last to the first: a consumer's row exists when its producers are looked at.
    for group in sorted(groups, key=lambda g: g.height):
        row = _row_to_join(group, consumers.get(group, ()), feeds, eqns, outputs)
        if row is not None:
            row.groups.insert(0, group)
            group.row = row
        elif group.call is None:
            group.row = Row([group], ())
            units.append(group.row)
        else:
            units.append(group)
    result: list[Row | Group] = []
    for unit in units:
        if isinstance(unit, Row) and (
            len(unit.groups) == 1 or not (unit.kept or any(g.reductions for g in unit.groups))
        ):
            for group in unit.groups:
                group.row = group.walk = None
            result += unit.groups
        else:
            result.append(unit)
    return result


MAX_ROW_GROUPS = 16  # groups that one row computes: each looks at all of them
MIN_COLUMNS = 32  # rows along an axis other than the last: neighbours in memory, walked by lanes side by side
WRITTEN = 512  # elements of a row, at least, of which the first have reached the cache when the last is written
LOCAL_BYTES = NOMINAL.second.bytes // 4  # of a row, at most, that is kept in scratch space
TIMES_SMALLER = 8  # than what it is for: such a value is computed row by row, as the reductions it comes from


def _row_to_join(group: Group, consumers, feeds, eqns, outputs: Set[Var]) -> Row | None:
    if group.call is not None or not consumers:
        return None
    for row in dict.fromkeys(c.row for c in consumers if c.row is not None):
        if len(row.groups) >= MAX_ROW_GROUPS or any(g.height > group.height for g in row.groups):
            continue
        plain = not group.reductions and all(not g.reductions for g in row.groups)
        kept = plain and not _is_statistic(group, row, feeds)
        if kept and (set(consumers) != {g for g in row.groups if g in consumers}):
            continue
        extents = _joined_extents(group, row, eqns)
        if kept and extents:
            extents = _kept_near(group, extents, outputs)
        if not extents:
            continue
        # No way out of the row and back: whatever else feeds it must stand as high as `group`.
        inside = {group, *row.groups}
        others = [f for g in inside for f in feeds[g] if f not in inside]
        if all(f.height >= group.height for f in others) and not _wait_for(others, inside, group.height, feeds):
            row.extents = extents
            row.kept |= kept
            return row
    return None


def _wait_for(sources: list[Group], inside: Set[Group], height: int, feeds) -> bool:
    """Whether `sources`, or rows that they are in and those before these, wait for the groups `inside` of a row.

    What stands higher than all of this row is in no row yet. But another as high, of which a group feeds this row, may
    wait for it in a group that stands lower: `exp(x - a) * b[0]` and `exp(y - b) * a[0]`, of maxima a and b of rows.
    """
    seen: set[Group] = set()
    left = [f for f in sources if f.height == height]
    while left:
        source = left.pop()
        if source in seen:
            continue
        groups = source.row.groups if source.row is not None else [source]
        seen.update(groups)
        for feeding in (f for g in groups for f in feeds[g]):
            if feeding in inside:
                return True
            if feeding.height == height:
                left.append(feeding)
    return False


def _kept_near(group: Group, extents: Shape, outputs: Set[Var]) -> Shape:
    """Extents of the loops to share so that rows of what a group stores stay in a near cache until others of the row
    have read them, and are no longer on their way there; () where there is none.
    """
    if not outputs.isdisjoint(group.stores):
        return ()
    item = sum(v.aval.dtype.itemsize for v in group.stores)
    while extents and group.size < WRITTEN * math.prod(extents):
        extents = extents[:-1]
    length = group.size // math.prod(extents)
    return extents if math.prod(extents) >= CORES and length * item <= LOCAL_BYTES else ()


def _is_statistic(group: Group, row: Row, feeds) -> bool:
    """Whether a group turns results of reductions, which may join the row later, into what the row wants."""
    if group.size * TIMES_SMALLER > max(g.size for g in row.groups):
        return False
    return any(f.reductions and math.prod(f.space[a] for a in f.kept) == group.size for f in feeds[group])


def _joined_extents(group: Group, row: Row, eqns) -> Shape:
    """Extents of the loops to share, or (); for rows along another axis than the last, one side walks as the other."""
    plain = _shared_extents(group, row, eqns)
    mover, walk = _other_walk(group, row, eqns)
    if mover is None or walk == mover.order:
        return plain
    before, mover.walk = mover.walk, walk
    extents = _shared_extents(group, row, eqns)
    if len(extents) > len(plain) and extents[-1] >= MIN_COLUMNS:
        return extents
    mover.walk = before
    return plain


def _other_walk(group: Group, row: Row, eqns) -> tuple[Group | None, tuple[int, ...]]:
    """A group whose order of axes is free, and the order in which it walks as those it shares loops with."""
    outer: list[int] = []
    if len(row.groups) == 1 and not row.groups[0].reductions:
        (mover,) = row.groups
        index = next((i for v in group.outputs(eqns) for i in mover.reads.get(v, ())), None)
        made = group.kept if group.reductions else tuple(range(len(group.space)))
        wanted = [index[made.index(a)] for a in group.order if a in made and group.space[a] != 1] if index else []
        found = mover.axes
    elif not group.reductions:
        mover = group
        reader, index = next(
            ((g, i) for v in group.stores for g in row.groups for i in g.reads.get(v, ())), (row.groups[0], None)
        )
        wanted = [reader.axes[a] for a in reader.order[: len(row.extents)] if reader.space[a] != 1] if index else []
        found = index or ()
    else:
        return None, ()
    for component in wanted:
        if component not in found:
            return None, ()
        outer.append(found.index(component))
    return mover, (*outer, *(a for a in mover.order if a not in outer))


def _shared_extents(group: Group, row: Row, eqns) -> Shape:
    """Extents of the outer loops that `group` can share with a row, all values between them being of one row; or ()."""
    outer = len(group.kept) if group.reductions else len(group.space)
    limit = (
        len(row.extents)
        if row.extents
        else len(row.groups[0].kept if row.groups[0].reductions else row.groups[0].space)
    )
    depth = min(outer, limit)
    order = group.order
    extents = tuple(group.space[a] for a in order[:depth])
    for other in row.groups:
        other_extents = tuple(other.space[a] for a in other.order[:depth])
        depth = _common(extents[:depth], other_extents)
    produced = dict.fromkeys(group.stores, False) | {v: True for n in group.reductions for v in eqns[n].outvars}
    for other in row.groups:
        for var, reduced in produced.items():
            for index in other.reads.get(var, ()):
                depth = min(depth, _row_depth(other, index, group, reduced))
    while depth and extents[depth - 1] == 1:
        depth -= 1
    if row.extents and depth < len(row.extents) and math.prod(extents[:depth]) * 4 < math.prod(row.extents):
        return ()
    return extents[:depth] if math.prod(extents[:depth]) > 1 else ()


def _common(left: Shape, right: Shape) -> int:
    depth = 0
    while depth < min(len(left), len(right)) and left[depth] == right[depth]:
        depth += 1
    return depth


def _row_depth(other: Group, index: Index, group: Group, reduced: bool) -> int:
    """How many outer loops agree between the index at which `other` reads `var` and the one where `group` makes it."""
    made = [group.axes[a] for a in group.kept] if reduced else list(group.axes)
    loops = [group.axes[a] for a in group.order]
    theirs = [other.axes[a] for a in other.order]
    depth = 0
    for mine, their in zip(loops, theirs):
        if isinstance(mine, Const) and isinstance(their, Const):
            depth += 1
            continue
        if mine not in made or index[made.index(mine)] is not their:
            break
        depth += 1
    return depth


# The order of execution.


MAX_LOOKED_AT = 20_000  # units, in all searches of one program for readers that can go before a writer


def in_order(units: list[Row | Group], eqns: list[JaxprEqn]) -> list[Row | Group]:
    """Units sorted so that producers come first, and before a call that may overwrite an operand those that read it
    and do not need the call; else in the order of the program.
    """
    unit_of: dict[Group, int] = {}
    for n, unit in enumerate(units):
        for group in unit.groups if isinstance(unit, Row) else (unit,):
            unit_of[group] = n
    definer: dict[Var, int] = {}
    for group, n in unit_of.items():
        for var in group.outputs(eqns):
            definer[var] = n
    waits = [0] * len(units)
    after: list[list[int]] = [[] for _ in units]
    for group, n in unit_of.items():
        for source in {definer[v] for v in group.reads if v in definer} - {n}:
            waits[n] += 1
            after[source].append(n)
    effects = sorted((g.call, n) for g, n in unit_of.items() if g.call is not None and eqns[g.call].effects)
    for (_, first), (_, second) in itertools.pairwise(effects):
        waits[second] += 1
        after[first].append(second)
    for before, writer in _readers_first(unit_of, after, eqns):
        waits[writer] += 1
        after[before].append(writer)
    keys = [max(g.last for g in u.groups) if isinstance(u, Row) else u.last for u in units]
    ready = [(keys[n], n) for n in range(len(units)) if waits[n] == 0]
    heapq.heapify(ready)
    result: list[Row | Group] = []
    while ready:
        _, n = heapq.heappop(ready)
        result.append(units[n])
        for m in after[n]:
            waits[m] -= 1
            if waits[m] == 0:
                heapq.heappush(ready, (keys[m], m))
    if len(result) != len(units):
        raise AssertionError("fuse: the groups depend on each other in a circle")
    return result


def _readers_first(
    unit_of: dict[Group, int], after: list[list[int]], eqns: list[JaxprEqn]
) -> Iterator[tuple[int, int]]:
    """(reader, writer): units that read what the writer, a call, may overwrite, and do not come after it anyway.

    `after` is to have what was yielded before the next pair is asked for: each new edge may make a later one a circle.
    """
    writers: dict[Var, list[int]] = {}
    for group, n in unit_of.items():
        if group.call is not None:
            eqn = eqns[group.call]
            for k, _ in operand_pairs(eqn):
                operand = eqn.invars[k]
                if isinstance(operand, Var):
                    writers.setdefault(operand, []).append(n)
    if not writers:
        return
    budget = MAX_LOOKED_AT
    for group, n in unit_of.items():
        for writer in {w for v in group.reads for w in writers.get(v, ()) if w != n}:
            reached, stack = {writer}, [writer]
            while stack and n not in reached and budget > 0:
                budget -= 1
                for m in after[stack.pop()]:
                    if m not in reached:
                        reached.add(m)
                        stack.append(m)
            if n not in reached and budget > 0:
                yield n, writer
