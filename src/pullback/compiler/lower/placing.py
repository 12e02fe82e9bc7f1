"""Which memory each value gets: results where the caller wants them, the rest in temporaries that are taken over in
place.

A value may take over the memory of another of the same type that dies where it is made: an elementwise result that of
an operand read at the same index, a scatter that of the array it changes. A result whose memory is also an argument's
(the carry of a loop) is written in place if the argument is not read any more, or only at the same index in the same
nest; otherwise it is computed elsewhere and copied at the end. What is set as a window of an array is computed there
under the same conditions (`window_places.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.compiler.graph.fuse.groups import Fusion, Group, Row, operand_pairs
from pullback.compiler.graph.fuse.rows import LOCAL_BYTES
from pullback.compiler.lower.storage import Storage, contiguous, row_major
from pullback.compiler.lower.window_places import (
    Position,
    Window,
    keep_apart,
    known_windows,
    may_be_written,
    reads_alone,
)
from pullback.core.jaxpr import Jaxpr, Literal, Var
from pullback.loops.ir import ITEMSIZE, Buffer, Builder
from pullback.util.record import mutable_record

_END = (1 << 60, 0)


@mutable_record
class _Memory:
    """Memory that one value takes over from the other."""

    fixed: Storage | None
    begin: Position
    first: Group  # which writes it at `begin`
    current: Var
    members: list[Var] = field(default_factory=list)


@mutable_record
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
        self.destined: dict[Var, Storage] = {}  # where values best lie that become results in place
        self.reads: dict[Var, list[tuple[Position, Group]]] = {}
        self.made: dict[Var, tuple[Position, Group]] = {}
        self.inputs_in: dict[Buffer, list[tuple[Var, Storage]]] = {}
        for var, storage in inputs.items():
            self.inputs_in.setdefault(storage.buffer, []).append((var, storage))
        self.placed_in: dict[Buffer, list[_Memory]] = {}
        self.windows: dict[Var, Window] = {}  # values that are computed where an array will have them
        self._find_fixed(outputs)
        self._find_reads()
        self._find_destined()
        self.may_be_windows = known_windows(self.eqns, [g for _, g in self._groups()])

    def run(self) -> Placement:
        for position, group in self._groups():
            self._group(position, group)
        return Placement(self._allocate(), self.copies, self.in_place)

    def _groups(self) -> Iterator[tuple[Position, Group]]:
        for n, unit in enumerate(self.fusion.units):
            for m, group in enumerate(unit.groups if isinstance(unit, Row) else (unit,)):
                yield (n, m), group

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
        for position, group in self._groups():
            for var in group.reads:
                self.reads.setdefault(var, []).append((position, group))
            for var in group.outputs(self.eqns):
                self.made[var] = position, group

    def _find_destined(self) -> None:
        """For results in the memory of an argument, the values that they are made of in place, back to the argument."""
        for var, storage in list(self.fixed.items()):
            if not any(storage.same_memory(other) for _, other in self.inputs_in.get(storage.buffer, ())):
                continue
            current: Var | None = var
            while current is not None and current in self.made:
                position, group = self.made[current]
                current = self._made_of(current, position, group)
                if current is None or current in self.fixed or current in self.destined:
                    break
                if current in self.fusion.stored and current not in self.fusion.row_local:
                    self.destined[current] = storage

    def _made_of(self, var: Var, position: Position, group: Group) -> Var | None:
        """A value that ends where `var` is made, and whose memory that may have."""
        if group.call is not None:
            operand = self._operand_of(group.call, var)
            candidates = [] if operand is None else [operand]
        else:
            candidates = [v for v in group.reads if var in group.stores and self._fits_group(v, group)]
        for found in candidates:
            same = found.aval.shape == var.aval.shape and found.aval.dtype == var.aval.dtype
            if same and self._last_read(found) == position:
                return found
        return None

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
            window = self.may_be_windows.get(var)
            if window is not None and self._may_be_in_place(var, window, position, group):
                self.windows[var] = window
                continue
            fixed = self.fixed.get(var)
            wanted = fixed or self.destined.get(var)
            if wanted is not None and not self._may_write(var, wanted, position, group):
                wanted = None
            old = self._take_over(var, wanted, position, group, taken)
            if wanted is not None and self._is_occupied(wanted, old, position, group):
                wanted = None
                old = self._take_over(var, None, position, group, taken)
            if fixed is not None and wanted is None:
                self.copies.append((var, fixed))
            if old is not None:
                memory = self.memories[old]
                taken.add(old)
            else:
                memory = _Memory(None, position, group, var)
            if memory.fixed is None and wanted is not None:
                memory.fixed = wanted
                self.placed_in.setdefault(wanted.buffer, []).append(memory)
            memory.current = var
            memory.members.append(var)
            self.memories[var] = memory
        if group.call is not None:
            self._call_in_place(group)

    def _may_be_in_place(self, var: Var, window: Window, position: Position, group: Group) -> bool:
        """Whether a window may be written into the memory of its array here, before the array is one with it."""
        array = window.array
        last = self._last_read(array)
        if var in self.fixed or var in self.fusion.row_local or group.row is not None or last == _END:
            return False
        if [reader for _, reader in self.reads.get(var, ())] != [window.call]:
            return False
        if any(atom is var for atom, _ in self.copies):
            return False
        if group.call is not None and not may_be_written(self.eqns[group.call], var, window):
            return False
        made = self.made.get(array)
        if made is not None:
            memory = self.memories.get(array)
            if memory is None or memory.current is not array or array in self.fixed or array in self.fusion.row_local:
                return False
        elif array not in self.inputs:  # it is made after what is set in it, as what is gathered from all devices
            return False
        else:
            here = self.inputs[array]
            out = self.fixed.get(window.result) or self.destined.get(window.result)
            if out is None or not out.same_memory(here) or self._is_occupied(here, None, position, group):
                return False
            others = (v for v, storage in self.inputs_in[here.buffer] if storage.same_memory(here) and v is not array)
            if any(self._last_read(v) >= position for v in others):
                return False
        for at, reader in self.reads[array]:
            if reader is group:
                if not reads_alone(group, array, window):
                    return False
            elif at > position and reader is not window.call:
                return False
        return self.reads[array][-1][1] is window.call and array.aval.size > 1

    def _may_write(self, out: Var, fixed: Storage, position: Position, group: Group) -> bool:
        """Whether the memory of a result may be written at `position`: no argument that lies there is read later."""
        for var, storage in self.inputs_in.get(fixed.buffer, ()):
            if not storage.same_memory(fixed):
                continue
            last = self._last_read(var)
            if last < position:
                if self._rows_apart(var, position, group):
                    return False
                continue
            if last > position or self._rows_apart(var, position, group):
                return False
            if group.call is not None:
                if self._operand_of(group.call, out) is not var:
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

    def _operand_of(self, call: int, result: Var) -> Var | None:
        """The operand of a call whose memory the result may have: no other operand lies there."""
        eqn = self.eqns[call]
        for k, n in operand_pairs(eqn):
            if eqn.outvars[n] is result and not isinstance(eqn.invars[k], Literal):
                operand = eqn.invars[k]
                roots = [self._root(a) for a in eqn.invars]
                return operand if roots.count(self._root(operand)) == 1 else None
        return None

    def _root(self, atom: Any) -> Any:
        """The value whose memory an operand of a call is a view of."""
        while not isinstance(atom, Literal) and atom in self.fusion.aliases:
            atom = self.eqns[self.fusion.aliases[atom]].invars[0]
        return atom

    def _only_here(self, var: Var, group: Group, storage: Storage) -> bool:
        """Whether the group reads the value only at its own index."""
        return list(group.reads[var]) == [group.axes] and var.aval.shape == group.space and storage.shape == group.space

    def _take_over(
        self, var: Var, fixed: Storage | None, position: Position, group: Group, taken: set[Var]
    ) -> Var | None:
        """A temporary that dies here and whose memory the new value can have."""
        if group.call is not None:
            operand = self._operand_of(group.call, var)
            if operand is None:
                return None
            candidates = [operand]
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
            if self._last_read(old) != position or self._rows_apart(old, position, group):
                continue
            if fixed is not None and memory.fixed is not None and not memory.fixed.same_memory(fixed):
                continue
            if fixed is not None and memory.fixed is None and not self._free_since(fixed, memory):
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
            for var, storage in self.inputs_in.get(fixed.buffer, ())
            if storage.same_memory(fixed)
        ) and not self._is_occupied(fixed, None, memory.begin, memory.first)

    def _is_occupied(self, fixed: Storage, old: Var | None, position: Position, group: Group) -> bool:
        """Whether another value than `old` lies in this memory and is still read."""
        for memory in self.placed_in.get(fixed.buffer, ()):
            assert memory.fixed is not None
            if not memory.fixed.same_memory(fixed) or (old is not None and memory is self.memories[old]):
                continue
            if self._last_read(memory.current) >= position or self._rows_apart(memory.current, position, group):
                return True
        return False

    def _call_in_place(self, group: Group) -> None:
        eqn = self.eqns[group.call]  # type: ignore[index]
        k = getattr(eqn.primitive.lower, "in_place", None)
        if k is None or isinstance(eqn.invars[k], Literal):
            return
        operand, memory = eqn.invars[k], self.memories.get(eqn.outvars[0])
        if memory is None:  # it is a window of an array, where its operand does not lie
            return
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
        for var, window in self.windows.items():
            result[var] = result[window.array].slice(window.starts, var.aval.shape)
            keep_apart(self.made[var][1], result[var])
        return result

    def _temporary(self, memory: _Memory) -> Storage:
        var = memory.members[0]
        aval = var.aval
        dtype = ir_dtype(aval.dtype)
        rows = [self.fusion.row_local.get(v) for v in memory.members]
        row = rows[0]
        if row is not None and all(r is row for r in rows):
            depth = len(row.extents)
            size = math.prod(aval.shape[depth:])
            # Rows along trailing axes are walked by lanes side by side, which scratch space of each would hinder.
            leading = all(self._shared_axes(row, v) == tuple(range(depth)) for v in memory.members)
            if leading and size * ITEMSIZE[dtype] <= LOCAL_BYTES:
                buffer = self.b.local("row", dtype, size)
                return Storage(buffer, 0, aval.shape, (0,) * depth + row_major(aval.shape[depth:]))
        return contiguous(self.b.temporary("t", dtype, aval.size), aval.shape)

    def _shared_axes(self, row: Row, var: Var) -> tuple[int, ...]:
        """The axes of a value along which the loops of its row run; its other axes lie within one row."""
        group = next(g for g in row.groups if var in g.outputs(self.eqns))
        shared = group.order[: len(row.extents)]
        return shared if var in group.stores else tuple(group.kept.index(a) for a in shared)
