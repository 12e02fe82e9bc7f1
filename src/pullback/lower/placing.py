"""Which memory each value gets: results where the caller wants them, the rest in temporaries that are taken over in
place.

A value may take over the memory of another of the same type that dies where it is made: an elementwise result that of
an operand read at the same index, a scatter that of the array it changes. A result whose memory is also an argument's
(the carry of a loop) is written in place if the argument is not read any more, or only at the same index in the same
nest; otherwise it is computed elsewhere and copied at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pullback.core.jaxpr import Jaxpr, Literal, Var
from pullback.graph_passes.access import ir_dtype
from pullback.graph_passes.groups import Fusion, Group, Row
from pullback.loop_ir import ITEMSIZE, Builder
from pullback.lower.storage import Storage, contiguous, row_major

LOCAL_BYTES = 32 * 1024  # rows up to this size are kept in scratch space

Position = tuple[int, int]  # unit, group within the unit
_END = (1 << 60, 0)


@dataclass(slots=True)
class _Memory:
    """Memory that one value takes over from the other."""

    fixed: Storage | None
    begin: Position
    first: Group  # which writes it at `begin`
    current: Var
    members: list[Var] = field(default_factory=list)


@dataclass(slots=True)
class Placement:
    """Where everything lies."""

    memory: dict[Var, Storage]
    copies: list[tuple[Any, Storage]]  # (atom, where it must be at the end), all read before any is written
    in_place: set[int]  # numbers of call equations whose result already has its operand's memory


def place(
    jaxpr: Jaxpr, fusion: Fusion, b: Builder, inputs: dict[Var, Storage], outputs: Sequence[Storage]
) -> Placement:
    """Storage for every stored value of a fused jaxpr; `inputs` are those of its arguments and constants."""
    return _Placer(jaxpr, fusion, b, inputs, outputs).run()


class _Placer:
    def __init__(self, jaxpr, fusion, b, inputs, outputs) -> None:
        self.jaxpr, self.eqns, self.fusion, self.b = jaxpr, jaxpr.eqns, fusion, b
        self.inputs: dict[Var, Storage] = inputs
        self.memories: dict[Var, _Memory] = {}
        self.copies: list[tuple[Any, Storage]] = []
        self.in_place: set[int] = set()
        self.fixed: dict[Var, Storage] = {}
        self.reads: dict[Var, list[tuple[Position, Group]]] = {}
        self._find_fixed(outputs)
        self._find_reads()

    def run(self) -> Placement:
        for n, unit in enumerate(self.fusion.units):
            for m, group in enumerate(unit.groups if isinstance(unit, Row) else (unit,)):
                self._group((n, m), group)
        return Placement(self._allocate(), self.copies, self.in_place)

    def _find_fixed(self, outputs: Sequence[Storage]) -> None:
        forwarded = {out: source for source, out in self.fusion.forwarded.items()}
        for atom, storage in zip(self.jaxpr.outvars, outputs):
            source = atom
            while not isinstance(source, Literal) and source in forwarded:
                source = forwarded[source]
            if isinstance(source, Literal) or source in self.fixed or source not in self.fusion.stored:
                there = None if isinstance(source, Literal) else self.inputs.get(source)
                if there is None or not storage.same_memory(there):
                    self.copies.append((atom, storage))
                continue
            shape = source.aval.shape
            self.fixed[source] = storage if storage.shape == shape else storage.reshaped(shape)

    def _find_reads(self) -> None:
        for n, unit in enumerate(self.fusion.units):
            for m, group in enumerate(unit.groups if isinstance(unit, Row) else (unit,)):
                for var in group.reads:
                    self.reads.setdefault(var, []).append(((n, m), group))

    def _last_read(self, var: Var) -> Position:
        if var.aval.size == 1 and var in self.inputs:  # pinned in a register, but for calls
            return max(
                (position for position, group in self.reads.get(var, ()) if group.call is not None), default=(-1, 0)
            )
        if any(atom is var for atom, _ in self.copies):
            return _END
        return max((position for position, _ in self.reads.get(var, ())), default=(-1, 0))

    def _group(self, position: Position, group: Group) -> None:
        taken: set[Var] = set()
        for var in group.outputs(self.eqns):
            if var not in self.fusion.stored:
                continue
            fixed = self.fixed.get(var)
            if fixed is not None and not self._may_write(fixed, position, group):
                self.copies.append((var, fixed))
                fixed = None
            old = self._take_over(var, fixed, position, group, taken)
            if old is not None:
                memory = self.memories[old]
                taken.add(old)
                memory.fixed = memory.fixed or fixed
            else:
                memory = _Memory(fixed, position, group, var)
            memory.current = var
            memory.members.append(var)
            self.memories[var] = memory
        if group.call is not None:
            self._call_in_place(position, group)

    def _may_write(self, fixed: Storage, position: Position, group: Group) -> bool:
        """Whether the memory of a result may be written at `position`: no argument that lies there is read later."""
        for var, storage in self.inputs.items():
            if storage.buffer is not fixed.buffer or not storage.same_memory(fixed):
                continue
            last = self._last_read(var)
            if last < position:
                if self._rows_apart(var, position, group):
                    return False
                continue
            if last > position or self._rows_apart(var, position, group):
                return False
            if group.call is not None:
                kind = self.eqns[group.call].primitive.lower
                k = getattr(kind, "in_place", None)
                eqn = self.eqns[group.call]
                if k is None or [a for a in eqn.invars if a is var] != [eqn.invars[k]]:
                    return False
            elif not self._only_here(var, group, fixed):
                return False
        return True

    def _rows_apart(self, var: Var, position: Position, group: Group) -> bool:
        """Whether groups before `group` in its row read more of `var` than the row of its shape that `group` writes.

        The next iteration of the shared loops would find overwritten what they read.
        """
        row = group.row
        if row is None:
            return False
        depth = len(row.extents)
        kept = group.kept if group.reductions else tuple(range(len(group.space)))
        shape = tuple(group.space[a] for a in kept)
        for (unit, number), reader in self.reads.get(var, ()):
            if unit != position[0] or number >= position[1]:
                continue
            if var.aval.shape != shape or any(group.order[p] not in kept for p in range(depth)):
                return True
            for index in reader.reads[var]:
                for p in range(depth):
                    if row.extents[p] != 1 and index[kept.index(group.order[p])] is not reader.axes[reader.order[p]]:
                        return True
        return False

    def _only_here(self, var: Var, group: Group, storage: Storage) -> bool:
        """Whether the group reads the value only at its own index."""
        return list(group.reads[var]) == [group.axes] and var.aval.shape == group.space and storage.shape == group.space

    def _take_over(
        self, var: Var, fixed: Storage | None, position: Position, group: Group, taken: set[Var]
    ) -> Var | None:
        """A temporary that dies here and whose memory the new value can have."""
        if group.call is not None:
            eqn = self.eqns[group.call]
            k = getattr(eqn.primitive.lower, "in_place", None)
            if k is None or eqn.outvars[0] is not var or sum(a is eqn.invars[k] for a in eqn.invars) != 1:
                return None
            candidates = [eqn.invars[k]]
        elif var in group.stores:
            candidates = [v for v in group.reads if v in self.memories and self._fits_group(v, group)]
        else:
            return None
        for old in candidates:
            if isinstance(old, Literal) or old in taken or old not in self.memories or old in self.fixed:
                continue
            memory = self.memories[old]
            if memory.current is not old or old.aval.dtype != var.aval.dtype or old.aval.shape != var.aval.shape:
                continue
            if self._last_read(old) != position or (fixed is not None and memory.fixed is not None):
                continue
            if self._rows_apart(old, position, group):
                continue
            if fixed is not None and not self._free_since(fixed, memory):
                continue
            if (old in self.fusion.row_local) and fixed is None and var not in self.fusion.row_local:
                continue
            return old
        return None

    def _fits_group(self, var: Var, group: Group) -> bool:
        return list(group.reads[var]) == [group.axes] and var.aval.shape == group.space

    def _free_since(self, fixed: Storage, memory: _Memory) -> bool:
        return all(
            self._last_read(var) < memory.begin and not self._rows_apart(var, memory.begin, memory.first)
            for var, storage in self.inputs.items()
            if storage.buffer is fixed.buffer and storage.same_memory(fixed)
        )

    def _call_in_place(self, position: Position, group: Group) -> None:
        eqn = self.eqns[group.call]  # type: ignore[index]
        k = getattr(eqn.primitive.lower, "in_place", None)
        if k is None or isinstance(eqn.invars[k], Literal):
            return
        operand, memory = eqn.invars[k], self.memories[eqn.outvars[0]]
        if operand in memory.members or (
            operand in self.inputs and memory.fixed is not None and memory.fixed.same_memory(self.inputs[operand])
        ):
            self.in_place.add(group.call)  # type: ignore[arg-type]

    def _allocate(self) -> dict[Var, Storage]:
        result = dict(self.inputs)
        made: dict[int, Storage] = {}
        for var, memory in self.memories.items():
            storage = made.get(id(memory))
            if storage is None:
                storage = made[id(memory)] = memory.fixed or self._temporary(memory)
            shape = var.aval.shape
            result[var] = storage if storage.shape == shape else storage.reshaped(shape)
        return result

    def _temporary(self, memory: _Memory) -> Storage:
        var = memory.members[0]
        aval = var.aval
        dtype = ir_dtype(aval.dtype)
        rows = [self.fusion.row_local.get(v) for v in memory.members]
        row = rows[0]
        if row is not None and all(r is row for r in rows):
            shared = {self._shared_axes(row, v) for v in memory.members}
            inside = [n for a, n in enumerate(aval.shape) if a not in min(shared)]
            size = math.prod(inside)
            if len(shared) == 1 and size * ITEMSIZE[dtype] <= LOCAL_BYTES:
                steps = iter(row_major(tuple(inside)))
                strides = tuple(0 if a in min(shared) else next(steps) for a in range(len(aval.shape)))
                return Storage(self.b.local("row", dtype, size), 0, aval.shape, strides)
        return contiguous(self.b.temporary("t", dtype, aval.size), aval.shape)

    def _shared_axes(self, row: Row, var: Var) -> tuple[int, ...]:
        """The axes of a value along which the loops of its row run; its other axes lie within one row."""
        depth = len(row.extents)
        group = next(g for g in row.groups if var in g.outputs(self.eqns))
        return group.order[:depth] if var in group.stores else tuple(range(depth))
