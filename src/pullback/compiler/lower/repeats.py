"""Groups that are equal but for their arrays are lowered a few times, and run as one kernel from the fourth on.

Unrolled loops of a user's program consist of such groups. `loops/passes/outline.py` finds equal nests, too, but these
have to be made and compared first: 500 steps `relu(x @ w + b) / 2` of 8 x 8 (2,000 operations) took 1.72 s of processor
time to compile, now 0.75.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

from pullback.compiler.graph.fuse.groups import Group
from pullback.compiler.graph.simplify.cse import atom_key, params_key
from pullback.compiler.lower.nests import arrive, emit_group, loops_of
from pullback.compiler.lower.storage import Storage
from pullback.compiler.lower.values import Level, Region
from pullback.core.jaxpr import Literal, Var
from pullback.loops.ir import Buffer, Const, Expr, Kernel, Loop, Read, Run, Stmt
from pullback.loops.ir.key import part_key
from pullback.loops.passes.outline import WORTH_ANY_KERNEL, kernel_of
from pullback.util.record import mutable_record

MOST_VALUES = 1000  # in a group that is compared with others; larger ones are a program by themselves


class Repeats:
    """The groups of a program that have been lowered, by what they compute."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Nest] = {}
        self._kernels = 0
        self._outside = _Outside()

    def emit(self, region: Region, group: Group) -> None:
        """The loop nest of a group by itself, or a run of the kernel that equal ones share."""
        described = _Description(region, group, self._outside)
        key = described.key
        known = None if key is None else self._known.get(key)
        statements = region.levels[-1].statements
        if known is not None and len(known.places) >= WORTH_ANY_KERNEL and self._share(known):
            statements.append(known.run(described.buffers))
            arrive(region, group)
            return
        start = len(statements)
        emit_group(region, group)
        if key is None or len(statements) != start + 1:
            return
        nest = statements[start]
        if not isinstance(nest, Loop) or nest.role == "sequential" or nest.carried:
            return
        if known is None:
            known = self._known[key] = _Nest(described.buffers)
        if len(known.places) < WORTH_ANY_KERNEL:
            known.places.append((statements, nest, described.buffers))

    def _share(self, known: _Nest) -> bool:
        """Makes the kernel of equal nests, and runs it where they are in their places still; False if they have buffers
        that their description does not count."""
        if known.kernel is not None or known.differs:
            return not known.differs
        first = known.places[0][1]
        _, known.used, known.free = part_key((first,))
        given = set(known.first)
        if any(b.space != "constant" and b not in given for b in known.used):
            known.differs = True
            return False
        known.kernel = kernel_of(f"n{self._kernels}", first, known.used, known.free)
        self._kernels += 1
        for statements, nest, buffers in known.places:
            place = next((k for k, stmt in enumerate(statements) if stmt is nest), None)
            if place is not None:  # else it has become part of the condition of a loop
                statements[place] = known.run(buffers)
        return True


@mutable_record
class _Nest:
    """A nest and those equal to it."""

    first: list[Buffer]  # arrays of the first one, as a description counts them
    used: list[Buffer] = field(default_factory=list)  # the same as its kernel takes them
    free: list[Any] = field(default_factory=list)  # variables from outside
    places: list[tuple[list[Stmt], Loop, list[Buffer]]] = field(default_factory=list)
    kernel: Kernel | None = None
    differs: bool = False  # in more than the arrays that a description counts

    def run(self, buffers: Sequence[Buffer]) -> Run:
        assert self.kernel is not None
        there = dict(zip(self.first, buffers))
        return Run(self.kernel, tuple([there.get(b, b) for b in self.used]), tuple(map(Read, self.free)))


class _Outside:
    """The values that are bound outside of nests, by variable."""

    def __init__(self) -> None:
        self._level: Level | None = None
        self._seen = 0
        self._values: dict[Any, list[Expr]] = {}

    def values(self, level: Level) -> dict[Any, list[Expr]]:
        if level is not self._level:
            self._level, self._seen, self._values = level, 0, {}
        if len(level.memo) > self._seen:
            for (var, _), value in islice(level.memo.items(), self._seen, None):
                self._values.setdefault(var, []).append(value)
            self._seen = len(level.memo)
        return self._values


class _Unlike(Exception):
    """A group depends on what a key does not tell."""


class _Description:
    """key: equal for groups whose nests differ in their buffers alone, which `buffers` counts; None if that is not
    known."""

    def __init__(self, region: Region, group: Group, outside: _Outside) -> None:
        self.buffers: list[Buffer] = []
        self.key: Hashable | None = None
        self._region = region
        self._numbers: dict[Buffer, int] = {}
        self._seen: dict[Var, int] = {}
        self._parts: list[Hashable] = [group.space, group.order, group.reduced, loops_of(group)]
        if len(region.levels) > 1:
            return
        self._outside = outside.values(region.levels[0])
        try:
            for number in group.reductions:
                for var in region.eqns[number].outvars:
                    self._root(var)
            for var in group.stores:
                self._root(var)
            key = tuple(self._parts)
            hash(key)
        except (_Unlike, TypeError):
            return
        self.key = key

    def _root(self, var: Var) -> None:
        """A value that the group computes, and where it goes."""
        self._parts.append("root")
        self._atom(var)
        storage = self._region.memory.get(var)
        self._parts.append(None if storage is None else self._storage(storage))

    def _atom(self, atom: Any) -> None:
        region, parts = self._region, self._parts
        if isinstance(atom, Literal):
            parts.append(atom_key(atom))
            return
        if atom in self._seen:
            parts.append(self._seen[atom])
            return
        if len(self._seen) == MOST_VALUES:
            raise _Unlike
        self._seen[atom] = len(self._seen)
        parts.append((atom.aval, region.fusion.users.get(atom, 0) > 1))
        known = self._outside.get(atom)
        if known is not None:
            if len(known) > 1 or atom.aval.size != 1 or not isinstance(known[0], (Read, Const)):
                raise _Unlike
            parts.append(known[0])
        elif atom in region.ready:
            parts.append(self._storage(region.memory[atom]))
        else:
            number = region.fusion.producer.get(atom)
            if number is None:
                raise _Unlike
            eqn = region.eqns[number]
            params = params_key(eqn)
            if params is None:
                raise _Unlike
            parts.append((eqn.primitive, params, len(eqn.invars), eqn.outvars.index(atom)))
            for operand in eqn.invars:
                self._atom(operand)

    def _storage(self, storage: Storage) -> Hashable:
        offset = storage.offset.value if isinstance(storage.offset, Const) else storage.offset
        if not isinstance(offset, int) or storage.buffer.space == "local":
            raise _Unlike
        buffer = storage.buffer
        number = self._numbers.get(buffer)
        if number is None:
            number = self._numbers[buffer] = len(self.buffers)
            self.buffers.append(buffer)
        return number, buffer.dtype, buffer.size, offset, storage.shape, storage.strides
