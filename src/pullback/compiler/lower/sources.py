"""Which equations each loop nest comes from, and why its results are stored: lowering that takes notes, for reports.

lowering = NotedLowering()
lower_program(closed, name, lowering=lowering)
lowering.units       in the order of execution

Passes rename the variables of loops and keep the beginnings of their names, which lowering gives once each: so a nest
of the finished program is found again by the names in it (`base`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pullback.compiler.graph.fuse.groups import Group
from pullback.compiler.lower.program import Lowering, NestFact
from pullback.compiler.lower.values import Region
from pullback.core.jaxpr import JaxprEqn, Literal, Var
from pullback.core.source import SourceInfo
from pullback.loops.ir import Buffer, Let, Loop
from pullback.loops.ir.ir import Address, Call, Stmt
from pullback.loops.ir.visit import statements, stores
from pullback.util.record import frozen_record

_ADDED = re.compile(r"(_[a-z]+\d+)+$")  # what passes add to a name (loops/ir/fresh.py)


@frozen_record
class Stored:
    """A value that a nest writes to memory: its type, who reads it, and why it is not computed where it is read."""

    value: str
    reader: str
    why: str


@frozen_record
class Unit:
    """What lowering made of a group of equations."""

    fact: NestFact
    equations: tuple[JaxprEqn, ...]
    names: frozenset[str]  # of the variables of its loops and of its values
    stored: tuple[Stored, ...]
    buffers: frozenset[Buffer]  # that its statements write

    @property
    def lines(self) -> tuple[SourceInfo, ...]:
        """The user's lines, each once."""
        return tuple(dict.fromkeys(e.source for e in self.equations if e.source is not None))


def base(name: str) -> str:
    """What lowering called a variable that passes renamed."""
    return _ADDED.sub("", name)


def names_in(body: Sequence[Stmt]) -> set[str]:
    """What lowering called the loops and values of statements."""
    found = set()
    for stmt in statements(body):
        if isinstance(stmt, (Loop, Let)):
            found.add(base(stmt.var.name))
        if isinstance(stmt, Loop):
            found |= {base(var.name) for group in stmt.carried for var in (*group.vars, *group.results)}
    return found


def buffers_in(body: Sequence[Stmt]) -> set[Buffer]:
    """The buffers that statements write, or hand to functions."""
    found: set[Buffer] = set()
    for stmt in statements(body):
        found |= {b for b in stores(stmt) if b.space != "local"}
        if isinstance(stmt, Call):
            found |= {
                a.buffer for a in stmt.args if isinstance(a, Address) and a.buffer.space in ("temporary", "output")
            }
    return found


class NotedLowering(Lowering):
    """Lowering that remembers what it makes each nest of."""

    def __init__(self) -> None:
        super().__init__()
        self.units: list[Unit] = []
        self._seen: dict[int, tuple[list[Stmt], int]] = {}  # statements of each list that belong to units so far

    def _note(self, region: Region, groups: Sequence[Group]) -> None:
        super()._note(region, groups)
        block = self.b._blocks[-1]
        _, first = self._seen.get(id(block), (block, 0))
        self._seen[id(block)] = (block, len(block))  # the list is kept, so that no other has its id
        equations = _equations(region, groups)
        stored = tuple(s for group in groups for s in _stored(region, group))
        mine = block[first:]
        self.units.append(
            Unit(self.report[-1], equations, frozenset(names_in(mine)), stored, frozenset(buffers_in(mine)))
        )


def _equations(region: Region, groups: Sequence[Group]) -> tuple[JaxprEqn, ...]:
    """The equations that are computed in the groups, those inlined into others included, in order."""
    producer, numbers = region.fusion.producer, set()
    for group in groups:
        roots = [group.call] if group.call is not None else [*group.reductions, *(producer[v] for v in group.stores)]
        stack = [n for n in roots if n is not None]
        while stack:
            number = stack.pop()
            if number in numbers:
                continue
            numbers.add(number)
            stack += [
                producer[atom]
                for atom in region.eqns[number].invars
                if not isinstance(atom, Literal) and atom in producer and atom not in region.fusion.stored
                and atom not in region.memory
            ]  # fmt: skip
    return tuple(region.eqns[n] for n in sorted(numbers))


def _stored(region: Region, group: Group) -> list[Stored]:
    """Why the results of a group are in memory."""
    found = []
    for var in group.outputs(region.eqns):
        readers = [other for other in _groups(region) if other is not group and var in other.reads]
        is_result = var in region.memory and not readers
        if is_result or var not in region.memory:
            continue
        value = var.aval.short()
        for reader in readers[:3]:
            why = _why(region, group, reader, var, len(readers))
            found.append(Stored(value, _named(region, reader), why))
    return found


def _groups(region: Region) -> list[Group]:
    return [g for unit in region.fusion.units for g in (unit.groups if not isinstance(unit, Group) else [unit])]


def _named(region: Region, group: Group) -> str:
    if group.call is not None:
        return region.eqns[group.call].primitive.name
    last = [*group.reductions, *(region.fusion.producer[v] for v in group.stores)]
    return region.eqns[max(last)].primitive.name if last else "?"


def _why(region: Region, group: Group, reader: Group, var: Any, count: int) -> str:
    assert isinstance(var, Var)
    here, there = region.eqns[region.fusion.producer[var]].primitive.name, _named(region, reader)
    if group.row is not None and group.row is reader.row:
        return f"the rows of {here} are shared with {there}: only one row at a time is in memory"
    if group.call is not None and reader.call is not None:
        return f"{here} and {there} each run loops of their own, from memory to memory"
    if group.call is not None:
        return f"{here} runs loops of its own, which write their result to memory"
    if reader.call is not None:
        return f"{there} runs loops of its own, which read their operands from memory"
    if region.fusion.producer[var] in group.reductions:
        return f"{there} needs {here}, which is complete only after the last element was read"
    if group.space != reader.space:
        return f"the loops differ: {_shape(group.space)} here, {_shape(reader.space)} in {there}"
    if count > 1:
        return f"{count} kernels read it: it is computed once instead of {count} times"
    return f"computing it again where {there} reads it would take longer than reading it from memory"


def _shape(space: Sequence[int]) -> str:
    return " x ".join(map(str, space)) or "one element"
