"""The steps of one element, as interchange (interchange.py) makes them: straight code whose state is in registers.

What an access finds is the element's own where its index has the number of the lane as a digit (`Lanes`). Places that
no variable but the lane's moves are carried from step to step; others stay in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from pullback.loops.ir.affine import terms
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Buffer, Carried, Const, Expr, Let, Load, Loop, Op, Read, Role, Stmt, Store, Var
from pullback.loops.ir.types import ITEMSIZE, REAL_OF
from pullback.loops.ir.visit import Substitute, access_nodes, loaded, operands, rebuilt, stored, subexpressions
from pullback.loops.passes.carry import with_carried
from pullback.util.record import mutable_record

from .machine import NOMINAL

LONG_ROW_BYTES = 512  # bytes of what is read or written at each step: longer rows are better walked one after the other
# Bytes in which data say where to read: farther, many elements wait for memory together only in rows.
NEAR = NOMINAL.second.bytes // 4
FEW_LANES = 16  # elements that lanes have to take all at once
# Extents that LLVM keeps in whole registers though they are no powers of two, by the bytes of an element.
WHOLE = {8: (3, 5, 6, 7), 4: (3, 5, 6, 7, *range(9, 16))}

Place = tuple[Buffer, int]  # of an element's: the buffer, and the index less that of the element


@mutable_record
class Lanes:
    """Which loops run over the elements, and where these lie."""

    extent: int
    inner: dict[Loop, int] = field(default_factory=dict)  # iterations (o * extent + lane) * inner + b of a loop
    weight: dict[Buffer, int] = field(default_factory=dict)


class LaneSteps:
    """The straight code of a step of one lane, with the elements that it changes in registers."""

    def __init__(self, new: Fresh, lane: Var, lanes: Lanes, straight: Sequence[Stmt]) -> None:
        self._new = new
        self._lane = lane
        self._lanes = lanes
        self._straight = straight
        self._places: dict[int, tuple[Buffer, int] | None] = {}  # of Loads and Stores, by identity; None: in memory
        self._moving: dict[int, tuple[Buffer, int]] = {}  # of those in memory of which one step reads what it wrote

    def fits(self, steps: tuple[Var | None, ...], extents: Mapping[Var | None, int]) -> bool:
        """Whether all that is written belongs to the lane, and what changes is little; `steps` number the steps."""
        written = stored(self._straight)
        in_memory: set[Buffer] = set()
        found: list[tuple[Load | Store, int, bool]] = []
        walks: dict[Buffer, set[frozenset[tuple[Var, int]]]] = {}  # how accesses of a buffer go along the steps
        wide = 0  # bytes of the longest row that is read or written at each step
        for stmt in self._straight:
            for access in access_nodes(stmt):
                factors, offset = factors_of(access.index)
                moves = factors is None or any(var is not self._lane for var in factors)
                if factors is None and not _is_of(access.index, (self._lane, *steps)):
                    if access.buffer.size * ITEMSIZE[access.buffer.dtype] > NEAR:
                        return False
                elif moves and (factors is None or self._lane in factors):
                    wide = max(wide, self._lanes.extent * ITEMSIZE[access.buffer.dtype])
                if access.buffer not in written:
                    continue
                weight = self._lanes.weight.get(access.buffer, 0)
                period = weight * self._lanes.extent
                if factors is None or not weight or factors.pop(self._lane, 0) != weight:
                    return False
                if any(var not in steps for var in factors):
                    return False
                if any(factor % period for factor in factors.values()):
                    # Not from one row of lanes to the next: then within what each lane has to itself.
                    last = offset + sum(factor * (extents[var] - 1) for var, factor in factors.items())
                    if min(offset, *factors.values()) < 0 or last >= weight:
                        return False
                elif offset % period >= weight:
                    return False
                found.append((access, offset, moves))
                walks.setdefault(access.buffer, set()).add(frozenset(factors.items()))
                if moves:
                    in_memory.add(access.buffer)
        if wide > LONG_ROW_BYTES or not self._whole_vectors({access.buffer.dtype for access, _, _ in found}):
            return False
        again = loaded(self._straight)
        for access, offset, _ in found:
            buffer = access.buffer
            self._places[id(access)] = None if buffer in in_memory else (buffer, offset)
            if buffer in in_memory and buffer in again and len(walks[buffer]) == 1:
                self._moving[id(access)] = buffer, offset
        return any(self._places.values())

    def _whole_vectors(self, dtypes: set[str]) -> bool:
        """Whether lanes for a few elements run at once: those that are left would take as long as all of them."""
        extent = self._lanes.extent
        size = max(ITEMSIZE[dtype] // (2 if dtype in REAL_OF else 1) for dtype in dtypes)
        return extent >= FEW_LANES or not extent & (extent - 1) or extent in WHOLE.get(size, ())

    def loop(self, steps: Loop, kept: set[Buffer], nested: bool) -> list[Stmt] | None:
        """The loop over lanes around the steps; None if too much changes from one to the next."""
        step = _Step(self._new, self._places, self._moving)
        body = step.run(self._straight)
        now, carried = step.now, step.carried
        last = [place for place in now if place[0] in kept or (nested and place in carried)]
        inner = with_carried(Loop(steps.var, steps.extent, "sequential", tuple(body), (), steps.attrs), self._new)
        groups = list(inner.carried)
        held_rows = sum(len(group.vars) for group in groups)
        if not 0 < len({*carried, *last}) + held_rows <= NOMINAL.registers:  # what is carried for each lane stays there
            return None
        extent = self._lanes.extent
        scattered = [stmt for stmt in inner.body if isinstance(stmt, Store)]
        again = extent >= FEW_LANES and extent & (extent - 1) != 0  # vectors have a power of two
        if again and (loaded(inner.body) & stored(inner.body) or (groups and len(scattered) > len(stored(inner.body)))):
            return None  # another store may be to what the first step reads
        copies: list[Stmt] = []
        after: list[Stmt] = []
        for place in dict.fromkeys((*carried, *last)):
            group, index = self._carried(place, step, copies if again else None)
            groups.append(group)
            if place in last and not (place in carried and _is_read(now[place], carried[place])):
                after.append(Store(place[0], index, Read(group.results[0])))
        inner = Loop(steps.var, steps.extent, "sequential", inner.body, tuple(groups), steps.attrs)
        return self._around(inner, copies, after)

    def _carried(self, place: Place, step: _Step, copies: list[Stmt] | None) -> tuple[Carried, Expr]:
        """What carries an element of the state, and where that is in memory.

        With `copies`, it begins with a copy, which they make: the last lanes overlap those before them, and no element
        may read what another has written.
        """
        buffer, offset = place
        weight = make("mul", (Read(self._lane), const("i64", self._lanes.weight[buffer])))
        index = make("add", (weight, const("i64", offset)))
        read = step.carried.get(place)
        init: Expr = Load(buffer, index) if read is not None else const(buffer.dtype, 0)
        if copies is not None and read is not None:
            held = self._new.buffer("held", buffer.dtype, self._lanes.extent)
            copies.append(Store(held, Read(self._lane), init))
            init = Load(held, Read(self._lane))
        result = self._new.var(Var(buffer.name, buffer.dtype))
        var = read or self._new.var(Var(buffer.name, buffer.dtype))
        return Carried((var,), (init,), (step.now[place],), (result,)), index

    def _around(self, inner: Loop, copies: list[Stmt], after: list[Stmt]) -> list[Stmt]:
        """The loop over lanes around that of the steps."""
        extent = self._lanes.extent
        role: Role = "parallel"
        attrs: tuple[tuple[str, Any], ...] = ()
        if extent < FEW_LANES:
            role, attrs = "vector", (("lanes", extent),)
        made: list[Stmt] = [Loop(self._lane, const("i64", extent), role, (inner, *after), (), attrs)]
        if copies:
            own = self._new.var(self._lane)
            block = Substitute({self._lane: Read(own)}).block(copies)
            made.insert(0, Loop(own, const("i64", extent), "parallel", block))
        return made


class _Step:
    """What the places of an element hold while the statements of a step are gone through."""

    def __init__(self, new: Fresh, places: Mapping[int, Place | None], moving: Mapping[int, Place]) -> None:
        self._new, self._places, self._moving = new, places, moving
        self.now: dict[Place, Expr] = {}
        self.carried: dict[Place, Var] = {}  # read before they are written
        self._written: dict[Place, Expr] = {}  # what this step has written to memory

    def run(self, straight: Sequence[Stmt]) -> list[Stmt]:
        """The statements with what is in registers in place of loads and stores."""
        body: list[Stmt] = []
        stores: dict[Place, Stmt] = {}
        for stmt in straight:
            place, there = self._places.get(id(stmt)), self._moving.get(id(stmt))
            if isinstance(stmt, Let):
                body.append(Let(stmt.var, self._current(stmt.value)))
                continue
            assert isinstance(stmt, Store)
            value = self._current(stmt.value)
            if not isinstance(value, (Const, Read)) and (place or there):
                var = self._new.var(Var(stmt.buffer.name, stmt.buffer.dtype))
                body.append(Let(var, value))
                value = Read(var)
            if place is not None:
                self.now[place] = value
                continue
            body.append(Store(stmt.buffer, self._current(stmt.index), value))
            if there is not None:
                self._written[there], stores[there] = value, body[-1]
        # Scratch space in the rows of a result: what the step itself writes over is not written.
        lasting = {id(stmt) for stmt in stores.values()}
        scratch = {buffer for buffer, _ in self._written} - loaded(body)
        return [x for x in body if not isinstance(x, Store) or x.buffer not in scratch or id(x) in lasting]

    def _current(self, root: Expr) -> Expr:
        # Each statement by itself: what a place holds changes from one to the next.
        memo: dict[int, Expr] = {}
        for expr in subexpressions((root,)):
            place, there = self._places.get(id(expr)), self._moving.get(id(expr))
            if there is not None and there in self._written:
                memo[id(expr)] = self._written[there]
            elif place is None:
                memo[id(expr)] = rebuilt(expr, tuple(memo[id(x)] for x in operands(expr)))
            else:
                if place not in self.now:
                    self.carried[place] = self._new.var(Var(place[0].name, place[0].dtype))
                    self.now[place] = Read(self.carried[place])
                memo[id(expr)] = self.now[place]
        return memo[id(root)]


def factors_of(index: Expr) -> tuple[dict[Var, int] | None, int]:
    """An index as a sum of multiples of variables and a constant; None in place of the sum if it is something else."""
    found, offset = terms(index)
    factors: dict[Var, int] = {}
    for term in found:
        factor = 1
        if isinstance(term, Op) and term.name == "mul" and isinstance(weight := term.args[1], Const):
            term, factor = term.args[0], weight.value
        if not isinstance(term, Read):
            return None, offset
        factors[term.var] = factors.get(term.var, 0) + factor
    return factors, offset


def _is_of(index: Expr, variables: tuple[Var | None, ...]) -> bool:
    """Whether nothing but these variables is in an index; what data say may be anywhere."""
    parts = subexpressions((index,))
    return not any(isinstance(x, Load) or (isinstance(x, Read) and x.var not in variables) for x in parts)


def _is_read(expr: Expr, var: Var) -> bool:
    return isinstance(expr, Read) and expr.var is var
