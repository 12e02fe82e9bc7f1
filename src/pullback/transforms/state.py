"""Mutable arrays in programs: primitives that make, read, write and end a reference.

    r:Ref{f32[3]} = new_ref x      y:f32[] <- r[i]      z:f32[], r[i] <- r[i], y      r[i] += y      x:f32[3] = freeze r

Operands of a read or write are the reference, the new value, and what of the index is an array; the rest of the index
is the parameter `index`. Where the trace in force does not stage, a reference is a `Cell` and these are reads and
writes of its value. Before a program is compiled or transformed they are discharged (transforms/discharge.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import NoRule, Primitive, hooks, trace, typeof, using
from pullback.core.atoms import ReferenceEffect
from pullback.core.avals import AbstractRef
from pullback.core.interpreter import current_interpreter
from pullback.core.references import Cell, owner
from pullback.core.source import user_source
from pullback.core.staging import StagedReference
from pullback.core.tracer import Tracer
from pullback.util.pytree import tree_flatten, tree_unflatten

_LEAF = object()


class Index:
    """What of an index expression is no array: integers, slices, Ellipsis, None, the form of windows."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole array."""
        return self.parts == (Ellipsis,)

    def expression(self, arrays: Sequence[Any]) -> Any:
        """The index expression with these arrays."""
        rest = iter(arrays)
        found: list[Any] = []
        for part in self.parts:
            if part is _LEAF:
                found.append(next(rest))
            elif isinstance(part, tuple) and part[0] == "slice":
                found.append(slice(*part[1:]))
            elif isinstance(part, tuple):
                found.append(tree_unflatten(part[1], [next(rest) for _ in range(part[1].num_leaves)]))
            else:
                found.append(part)
        return found[0] if len(found) == 1 else tuple(found)

    def text(self, names: Sequence[str], ndim: int) -> str:
        """As programs show it, with names for the arrays."""
        rest = iter(names)
        found = []
        for part in self.parts:
            if part is _LEAF:
                found.append(next(rest))
            elif isinstance(part, tuple) and part[0] == "slice":
                start, stop, step = ("" if x is None else str(x) for x in part[1:])
                found.append(f"{start}:{stop}" + (f":{step}" if step else ""))
            elif isinstance(part, tuple):
                window = tree_unflatten(part[1], [next(rest) for _ in range(part[1].num_leaves)])
                found.append(f"{window.start}:{window.start}+{window.size}")
            else:
                found.append("..." if part is Ellipsis else str(part))
        if None not in self.parts and not self.is_whole:
            place = self.parts.index(Ellipsis) if Ellipsis in self.parts else len(found)
            found[place : place + 1] = [":"] * (ndim - len(found) + (place < len(found)))
        return ",".join(found)


def split_index(index: Any, shape: tuple[int, ...], is_staged: bool = False) -> tuple[Index, list[Any]]:
    """(Index, the arrays) of an index expression. ValueError for too many of them, steps backwards, and what lies
    outside of its axis: integers, too, where the reference is not one of a program, which takes the nearest.
    """
    parts: list[Any] = []
    arrays: list[Any] = []
    if type(index) is tuple and not index:
        return _whole, []
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or item is Ellipsis or type(item) is int:
            parts.append(item)
        elif isinstance(item, slice):
            parts.append(("slice", item.start, item.stop, item.step))
        elif np.ndim(item) and not isinstance(item, Tracer) and getattr(item, "dtype", None) == np.dtype(bool):
            where = np.nonzero(np.asarray(item))
            parts += [_LEAF] * len(where)
            arrays += where
        else:
            leaves, tree = tree_flatten(item)
            if not leaves and hasattr(item, "stride"):  # a window of known place and size is a slice
                parts.append(("window", int(item.start), int(item.size), item.stride))
                continue
            plain = (len(leaves) == 1 and leaves[0] is item) or isinstance(item, (list, dict))
            parts.append(_LEAF if plain else ("window", tree))
            arrays += [item] if plain else leaves
    inside = _inside(parts, shape)
    if not is_staged:
        for part in inside:
            if isinstance(part, _Outside) and part.written >= 0:
                raise ValueError(f"Out of bound indexer: idx={part.written}, dim={int(part) + 1}.")
    return Index(tuple(inside)), arrays


def _inside(parts: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    """The parts with slices counted from the start of their axes, and integers within them."""
    count = sum([part is not None and part is not Ellipsis for part in parts])
    if count > len(shape):
        raise ValueError(f"too many indices: {count} for an array of rank {len(shape)}, of shape {shape}")
    skipped = max(0, len(shape) - count)
    found = []
    axis = 0
    for part in parts:
        if part is not None and part is not Ellipsis and axis < len(shape):
            part = _in_axis(part, shape[axis])
        found.append(part)
        axis += 0 if part is None else skipped if part is Ellipsis else 1
    return found


class _Outside(int):
    """An integer that lay outside of its axis, which is the nearest inside of it, and shows what was written."""

    def __new__(cls, written: int, extent: int) -> _Outside:
        found = super().__new__(cls, min(max(written + extent, 0), extent - 1) if written < 0 else extent - 1)
        found.written = written
        return found

    written: int

    def __str__(self) -> str:
        return str(self.written)


def _in_axis(part: Any, extent: int) -> Any:
    if type(part) is int:
        return part if -extent <= part < extent or not extent else _Outside(part, extent)
    if isinstance(part, tuple) and part[0] == "window" and len(part) == 4:
        _, start, size, stride = part
        stop = start + (size - 1) * stride + 1 if size else start
        if start < 0 or stop > extent:
            raise ValueError(f"Out of bound slice: start={start}, size={size}, stride={stride}, dim={extent}.")
        part = "slice", start, stop, stride or None
    if isinstance(part, tuple) and part[0] == "slice" and all([x is None or type(x) is int for x in part[1:]]):
        start, stop, step = slice(*part[1:]).indices(extent)
        if step < 0:
            raise ValueError(f"slice must have a step >= 1 (found: {step}): read the reference, and reverse the array")
        return "slice", start or None, None if stop >= extent else max(start, stop), None if step == 1 else step
    return part


class StatePrimitive(Primitive):
    """Makes, reads or writes a reference: recorded where the trace in force stages, done at once elsewhere."""

    def bind(self, *args: Any, **params: Any) -> Any:
        interpreter = current_interpreter()
        if self is new_ref_p:
            if interpreter.stages_references:
                params = {"kind": None, "memory_space": None}  # as they are printed: there is one memory
                return _record(interpreter, self, args, params, AbstractRef(typeof(args[0])))
            return hooks.reference(args[0])
        ref, *rest = args
        written = rest if self.writes else None
        who = owner(ref, written)
        if not who.stages_references:
            with using(who) if written is not None else using(interpreter):
                return self.reference(ref, *rest, **params)
        if who is not interpreter and any([_is_inside(x, who) for x in rest]):
            # An index of a trace in between: it takes its part of the whole.
            with using(who):
                held = get_p.bind(ref, index=_whole)
            return held[params["index"].expression(rest)]
        with using(who):
            return _record(who, self, args, params, self.abstract_eval(ref.ref_aval, *map(typeof, rest), **params))

    writes = False


def _is_inside(x: Any, who: Any) -> bool:
    """Whether a value belongs to a trace inside of one."""
    if not isinstance(x, Tracer):
        return False
    found = x.interpreter
    while found is not None:
        if found is who:
            return x.interpreter is not who
        found = found.parent
    return False


def _record(who: Any, primitive: Primitive, args: Sequence[Any], params: dict[str, Any], aval: Any) -> Any:
    if primitive.multiple_results:
        return who.emit(primitive, args, params, aval)
    if type(aval) is not AbstractRef:
        return who.emit(primitive, args, params, [aval])[0]
    source = user_source()
    (var,) = who.recorder.record(primitive, [who.atom(a) for a in args], [aval], params, source)
    return StagedReference(who, aval, var, source)


_whole = Index((Ellipsis,))
_reads, _writes, _makes = ReferenceEffect("Read"), ReferenceEffect("Write"), ReferenceEffect("New")


@functools.lru_cache(maxsize=4096)
def _part(aval: Any, index: Index, *arrays: Any) -> Any:
    """The type of the part of an array that an index expression shows."""
    if index.is_whole:
        return aval
    return trace(lambda x, *leaves: [x[index.expression(leaves)]], [aval, *arrays]).out_avals[0]


def _get_abstract(ref: AbstractRef, *arrays: Any, index: Index) -> Any:
    return _part(ref.inner_aval, index, *arrays)


def _get(ref: Cell, *arrays: Any, index: Index) -> Any:
    value = ref.shown()
    return value if index.is_whole else value[index.expression(arrays)]


def _swap_abstract(ref: AbstractRef, value: Any, *arrays: Any, index: Index) -> Any:
    return _part(ref.inner_aval, index, *arrays)


def _swap(ref: Cell, value: Any, *arrays: Any, index: Index) -> Any:
    held = ref.shown()
    if index.is_whole:
        _put(ref, held, value)
        return held
    where = index.expression(arrays)
    before = held[where]
    _put(ref, held, held.at[where].set(value))
    return before


def _put(ref: Cell, held: Any, new: Any) -> None:
    """Set the value, which stays weakly typed if it was."""
    weak = typeof(held).weak_type
    ref.put(hooks.convert(new, held.dtype, weak) if weak != typeof(new).weak_type else new)


def _add_abstract(ref: AbstractRef, value: Any, *arrays: Any, index: Index) -> list[Any]:
    _part(ref.inner_aval, index, *arrays)
    return []


def _add(ref: Cell, value: Any, *arrays: Any, index: Index) -> list[Any]:
    held = ref.shown()
    _put(ref, held, held.at[index.expression(arrays)].add(value))
    return []


def _new_abstract(aval: Any, **_params: Any) -> AbstractRef:
    return AbstractRef(aval)


def _new(x: Any, **_params: Any) -> Cell:
    return Cell(x)


def _freeze_abstract(ref: AbstractRef) -> Any:
    return ref.inner_aval


def _freeze(ref: Cell) -> Any:
    return ref.shown()


_NO_RULE = NoRule("references are discharged before programs are transformed")


def _primitive(name: str, doc: str, abstract_eval: Any, reference: Any, effect: ReferenceEffect) -> StatePrimitive:
    found = StatePrimitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=reference,
        evaluate=reference,
        jvp=_NO_RULE,
        transpose=_NO_RULE,
        batch=_NO_RULE,
        lower=_NO_RULE,
        discharge=reference,
        effects=lambda params: frozenset({effect}),
        multiple_results=name == "addupdate",
    )
    found.writes = effect is _writes
    return found


new_ref_p = _primitive("new_ref", "A reference to an array that starts as this.", _new_abstract, _new, _makes)
get_p = _primitive("get", "The part of a mutable array at an index.", _get_abstract, _get, _reads)
swap_p = _primitive("swap", "What a part of a mutable array was before it became this.", _swap_abstract, _swap, _writes)
addupdate_p = _primitive("addupdate", "This is added to a part of a mutable array.", _add_abstract, _add, _writes)
freeze_p = _primitive("freeze", "The array, which ends the reference.", _freeze_abstract, _freeze, _writes)


def read(ref: Any) -> Any:
    """The whole array."""
    return get_p.bind(ref, index=_whole)


def write(ref: Any, value: Any) -> None:
    """Set the whole array."""
    swap_p.bind(ref, value, index=_whole)


hooks.fill(new_reference=new_ref_p.bind, read_reference=read, write_reference=write)
