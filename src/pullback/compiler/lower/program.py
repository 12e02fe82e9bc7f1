"""A whole flat jaxpr as one function of the loop IR.

lowered = lower_program(closed_jaxpr, "step")
lowered.function        inputs are the jaxpr's arguments, outputs its results, in order
lowered.host_calls      Python callables, by the index of their HostCall statements
lowered.report          per loop nest: what it computes, bytes moved
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import field
from types import MappingProxyType
from typing import Any

import numpy as np

from pullback.compiler.graph.fuse.access import Interner, ir_dtype
from pullback.compiler.graph.fuse.fuse import fuse
from pullback.compiler.graph.fuse.groups import Group, Row
from pullback.compiler.lower.host_function import HostFunction, Reference
from pullback.compiler.lower.moves import copy, swap_in
from pullback.compiler.lower.nests import emit_row, without_elements
from pullback.compiler.lower.placing import place
from pullback.compiler.lower.repeats import Repeats
from pullback.compiler.lower.rule_context import RuleContext
from pullback.compiler.lower.storage import Storage, begin_at, contiguous
from pullback.compiler.lower.values import Region
from pullback.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pullback.core.lowering import HostCall as HostCallKind
from pullback.core.lowering import Nest, operations_of
from pullback.core.primitive import NoRule, registry
from pullback.loops.ir import ITEMSIZE, Buffer, Builder, Function
from pullback.util.record import frozen_record, mutable_record

RECURSION = 20_000  # frames; a chain of operations in a nest is followed by recursion


@frozen_record
class NestFact:
    """One loop nest or call, for reports."""

    name: str
    bytes_read: int
    bytes_written: int
    operations: int  # values computed, over all iterations
    repeats: int  # how often it runs, as far as is known


@mutable_record
class Lowered:
    """A lowered program."""

    function: Function
    host_calls: list[HostFunction]
    report: list[NestFact]
    constants: list[np.ndarray] = field(default_factory=list)
    copied: frozenset[int] = frozenset()  # results that are computed elsewhere, and copied at the end

    @property
    def bytes_moved(self) -> int:
        """Bytes that all nests read and write."""
        return sum((fact.bytes_read + fact.bytes_written) * fact.repeats for fact in self.report)

    def report_text(self) -> str:
        """The report as a table."""
        lines = [f"{'reads':>12} {'writes':>12} {'values':>12} {'times':>6}  nest"]
        for fact in self.report:
            lines.append(
                f"{fact.bytes_read:12d} {fact.bytes_written:12d} {fact.operations:12d} {fact.repeats:6d}  {fact.name}"
            )
        return "\n".join(lines)


def lower_program(
    closed: ClosedJaxpr,
    name: str = "program",
    forwarded: Set[int] = frozenset(),
    aliases: Mapping[int, int] = MappingProxyType({}),
    lowering: Lowering | None = None,
) -> Lowered:
    """Lower a jaxpr whose primitives all have a lowering kind other than Inline; results numbered in `forwarded` are
    not written. `aliases` says which result begins with the values of which argument, in whose place it is computed.
    `lowering` is one that takes notes (`sources.py`).

    Raises NotImplementedError, naming the primitive, for one that can neither be lowered nor run by its reference.
    """
    lowering = lowering or Lowering()
    b = lowering.b
    inputs = [
        contiguous(b.input(f"x{k}", ir_dtype(v.aval.dtype), v.aval.size), v.aval.shape)
        for k, v in enumerate(closed.jaxpr.invars)
    ]
    outputs = [
        contiguous(b.output(f"y{k}", ir_dtype(v.aval.dtype), v.aval.size), v.aval.shape)
        for k, v in enumerate(closed.jaxpr.outvars)
    ]
    for k, source in aliases.items():
        inputs[source] = outputs[k]
    with deep_recursion():
        if forwarded:
            kept = [k for k in range(len(outputs)) if k not in forwarded]
            closed = closed.replace(jaxpr=closed.jaxpr.replace(outvars=[closed.jaxpr.outvars[k] for k in kept]))
            written = [outputs[k] for k in kept]
        else:
            written = outputs
        copied = lowering.subprogram(closed, inputs, written)
    is_copied = begin_at(copied)
    moved = frozenset(k for k, out in enumerate(outputs) if is_copied(out))
    return Lowered(b.function(name), lowering.host_calls, lowering.report, copied=moved)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow deep recursion in Python for a while."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class Lowering:
    """The state of lowering one program."""

    def __init__(self) -> None:
        self.b = Builder()
        self.intern = Interner()
        self.host_calls: list[HostFunction] = []
        self.report: list[NestFact] = []
        self.repeats = 1
        self.known = Repeats()
        self._scalars: dict[Any, Buffer] = {}
        self._constants: dict[int, tuple[Any, Buffer]] = {}

    def subprogram(self, closed: ClosedJaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> list[Storage]:
        """Lower a jaxpr at the builder's current place, from storage to storage; gives the outputs that had to be
        computed elsewhere.
        """
        b, jaxpr = self.b, _with_copies(closed.jaxpr, inputs, outputs)
        fusion = fuse(jaxpr, b, self.intern, _changing(jaxpr, inputs, outputs))
        arguments = dict(zip(jaxpr.invars, inputs))
        region = Region(b, self.intern, jaxpr.eqns, fusion, b._blocks[-1])
        for var, value in zip(jaxpr.constvars, closed.consts):
            array = np.asarray(value)
            arguments[var] = contiguous(self.constant(array, "c"), array.shape)
            if array.size == 1:
                key = (var, (self.intern(b.index(0)),) * array.ndim)
                region.levels[0].memo[key] = b.const(ir_dtype(array.dtype), array.reshape(()).item())
        placement = place(jaxpr, fusion, b, arguments, outputs)
        region.memory = placement.memory
        region.ready.update(arguments)
        self._pin_scalars(region, jaxpr.invars, jaxpr)
        wanted = {atom for atom in jaxpr.outvars if not isinstance(atom, Literal)}
        for unit in fusion.units:
            start = len(self.report)
            if without_elements(region, unit):
                continue
            if isinstance(unit, Row):
                emit_row(region, unit)
                self._note(region, unit.groups)
            elif unit.call is None:
                self.known.emit(region, unit)
                self._note(region, [unit])
            else:
                self._call(region, unit, unit.call in placement.in_place, wanted)
                if len(self.report) == start:
                    self._note(region, [unit])
        self._finish(region, placement.copies)
        return [storage for _, storage in placement.copies]

    def copied(self, closed: ClosedJaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> list[Storage]:
        """The outputs that `subprogram` would compute elsewhere and copy; nothing is written for that."""
        jaxpr, b = _with_copies(closed.jaxpr, inputs, outputs), Builder()
        fusion = fuse(jaxpr, b, Interner(), _changing(jaxpr, inputs, outputs))
        arguments = dict(zip(jaxpr.invars, inputs))
        for var, value in zip(jaxpr.constvars, closed.consts):
            arguments[var] = contiguous(self.constant(np.asarray(value), "c"), np.shape(value))
        return [storage for atom, storage in place(jaxpr, fusion, b, arguments, outputs).copies]

    def _pin_scalars(self, region: Region, arguments: Sequence[Var], jaxpr) -> None:
        """Load arguments of one element at once, so that their memory may be written whenever that suits."""
        for var in arguments:
            if var.aval.size == 1 and (var in region.fusion.users or any(v is var for v in jaxpr.outvars)):
                region.value(var, (0,) * var.aval.ndim)

    def _finish(self, region: Region, copies: Sequence[tuple[Any, Storage]]) -> None:
        pairs = []
        scalars = []
        for atom, dst in copies:
            if atom.aval.size == 0:
                continue  # nothing is stored of it
            if atom.aval.size == 1 and (
                isinstance(atom, Literal) or atom in region.fusion.producer or atom in region.memory
            ):
                scalars.append((dst, region.here(region.value(atom, (0,) * atom.aval.ndim))))
            elif not isinstance(atom, Literal):
                pairs.append((dst, self.storage(region, atom, False)))
        swap_in(self.b, pairs)
        for dst, value in scalars:
            self.b.store(dst.buffer, self.b.index(dst.offset), value)

    def storage(self, region: Region, atom: Any, strided: bool) -> Storage:
        """Where an operand of a call lies; views of memory are followed."""
        if isinstance(atom, Literal):
            array = np.asarray(atom.val).astype(atom.aval.dtype)
            return contiguous(self.constant(array, "literal"), array.shape)
        found = region.memory.get(atom)
        if found is None:
            number = region.fusion.aliases.get(atom)
            if number is None:
                raise AssertionError(f"lower: {atom} has no memory")
            eqn = region.eqns[number]
            found = region.memory[atom] = view(self.storage(region, eqn.invars[0], True), eqn)
        if not strided and not found.contiguous:
            temporary = contiguous(self.b.temporary("packed", found.dtype, found.size), found.shape)
            copy(self.b, temporary, found)
            return temporary
        return found

    def _call(self, region: Region, group: Group, in_place: bool, wanted: Set[Var]) -> None:
        eqn = region.eqns[group.call]  # type: ignore[index]
        kind = eqn.primitive.lower
        results = [region.memory[v] for v in eqn.outvars]
        strided = getattr(kind, "strided", False)
        operands = [self.storage(region, atom, strided) for atom in eqn.invars]
        if isinstance(kind, Nest):
            if kind.in_place is not None and not in_place:
                copy(self.b, results[0], operands[kind.in_place])
            unread = {k for k, v in enumerate(eqn.outvars) if v not in region.fusion.users and v not in wanted}
            kind.emit(RuleContext(self, eqn, operands, results, unread))
        elif isinstance(kind, (HostCallKind, NoRule)):
            if not eqn.primitive.has_rule("reference"):
                reason = kind.reason if isinstance(kind, NoRule) else "it has no reference"
                raise NotImplementedError(
                    f"Compilation rule of primitive '{eqn.primitive.name}' is not there: {reason}"
                )
            self.by_reference(eqn, operands, results)
        else:
            raise TypeError(
                f"lower: primitive '{eqn.primitive.name}' has lowering kind {kind!r}, which must be inlined first"
            )
        region.ready.update(eqn.outvars)

    def by_reference(self, eqn: JaxprEqn, operands: Sequence[Storage], results: Sequence[Storage]) -> None:
        """A call of a primitive's reference, in Python, over whole buffers; parts of buffers are copied."""
        from pullback.loops.ir import NP_DTYPE

        def whole(storage: Storage, read: bool) -> Buffer:
            if storage.contiguous and storage.size == storage.buffer.size:
                return storage.buffer
            held = contiguous(self.b.temporary("host", storage.dtype, storage.size), storage.shape)
            if read:
                copy(self.b, held, storage)
            return held.buffer

        ins = [whole(s, True) for s in operands]
        outs = [whole(s, False) for s in results]
        describe = lambda storages: tuple((s.shape, NP_DTYPE[s.dtype]) for s in storages)
        self.b.host_call(len(self.host_calls), [*ins, *outs])
        reference = Reference(eqn.primitive, eqn.params)
        self.host_calls.append(HostFunction(reference, eqn.primitive.name, describe(operands), describe(results)))
        for storage, buffer in zip(results, outs):
            if buffer is not storage.buffer:
                copy(self.b, storage, contiguous(buffer, storage.shape))

    def constant(self, array: np.ndarray, name: str) -> Buffer:
        """The buffer of a constant; one per array object."""
        found = self._constants.get(id(array))
        if found is None:
            found = self._constants[id(array)] = (array, self.b.constant(name, array))
        return found[1]

    def scalar_constant(self, value: np.ndarray) -> Buffer:
        """The buffer of a few constant elements; one per value."""
        key = (value.dtype, value.tobytes())
        found = self._scalars.get(key)
        if found is None:
            found = self._scalars[key] = self.b.constant("k", value)
        return found

    def _note(self, region: Region, groups: Sequence[Group]) -> None:
        read: set[Var] = set()
        written: set[Var] = set()
        operations = 0
        names = []
        for group in groups:
            read |= {v for v in group.reads if v in region.memory}
            written |= {v for v in group.outputs(region.eqns) if v in region.memory}
            operations += group.size * group.evaluated
            if group.call is not None:
                eqn = region.eqns[group.call]
                operations += eqn.outvars[0].aval.size * operations_of(eqn) if eqn.outvars else 0
                names.append(region.eqns[group.call].primitive.name)
            else:
                names += [region.eqns[n].primitive.name for n in group.reductions]
                names += [region.eqns[region.fusion.producer[v]].primitive.name for v in group.stores]
        inside = {v for g in groups for v in g.outputs(region.eqns)} if len(groups) > 1 else set()
        self.report.append(
            NestFact(
                "+".join(names[:8]) + ("..." if len(names) > 8 else ""),
                _bytes(read - inside),
                _bytes(written - (inside & set(region.fusion.row_local))),
                operations,
                self.repeats,
            )
        )


def _changing(jaxpr: Jaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> set[Var]:
    """The arguments in whose place results are computed."""
    is_written = begin_at(outputs)
    return {var for var, storage in zip(jaxpr.invars, inputs) if is_written(storage)}


def _with_copies(jaxpr: Jaxpr, inputs: Sequence[Storage], outputs: Sequence[Storage]) -> Jaxpr:
    """The jaxpr in which arguments that are results elsewhere, and results that are wanted twice, are copied by
    equations: the nests that read or make them write the copies, and arguments' memory is free earlier.
    """
    places = dict(zip(jaxpr.invars, inputs))
    made: set[Var] = set()
    before: list[JaxprEqn] = []
    after: list[JaxprEqn] = []
    outvars: list[Any] = []
    for atom, out in zip(jaxpr.outvars, outputs):
        if not isinstance(atom, Literal) and atom.aval.size > 1:
            there = places.get(atom)
            is_elsewhere = there is not None and not there.same_memory(out)
            if is_elsewhere or (there is None and atom in made):
                copy = JaxprEqn([atom], [Var(atom.aval)], registry["copy"], {})
                (before if is_elsewhere else after).append(copy)
                atom = copy.outvars[0]
            else:
                made.add(atom)
        outvars.append(atom)
    return jaxpr.replace(eqns=[*before, *jaxpr.eqns, *after], outvars=outvars) if before or after else jaxpr


def _bytes(variables: set[Var]) -> int:
    return sum(v.aval.size * ITEMSIZE[ir_dtype(v.aval.dtype)] for v in variables)


def view(storage: Storage, eqn: Any) -> Storage:
    """The memory of a view equation's result, given its operand's."""
    name, params, shape = eqn.primitive.name, eqn.params, eqn.outvars[0].aval.shape
    if name == "transpose":
        return storage.transposed(params["permutation"])
    if name == "slice":
        steps = params["strides"] or (1,) * len(shape)
        part = storage.slice(params["start_indices"], shape)
        return Storage(part.buffer, part.offset, shape, tuple(s * n for s, n in zip(part.strides, steps)))
    if storage.contiguous:
        return storage.reshaped(shape)
    raise AssertionError(f"lower: {name} of strided memory is not a view")


__all__ = ["HostFunction", "Lowered", "Lowering", "NestFact", "lower_program"]
