"""Mutable arrays: a reference to an array that is read and written in place.

A reference is made outside of functions or inside of them, passed to jitted functions, loops and branches, or closed
over. Reads and writes happen in the order of the program. In jitted functions they are equations (transforms/state.py).
From inside of derivatives a reference that was made outside takes values that do not depend on what is differentiated;
from inside of vmap, values that are not mapped, unless it is mapped itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pullback.numpy as jnp
from pullback.api.shapes import ShapeDtypeStruct, eval_shape
from pullback.core import current_interpreter, hooks, typeof
from pullback.core.avals import AbstractRef, Reference
from pullback.core.explain import explain_all as _explain_all
from pullback.core.references import Cell
from pullback.core.staging import StagedReference
from pullback.lax.records.operands import as_array
from pullback.manual import add_pages as _add_pages
from pullback.manual.ref import PAGES as _PAGES
from pullback.transforms.state import (
    Index,
    addupdate_p,
    freeze_p,
    get_p,
    new_ref_p,
    split_index,
    swap_p,
)
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.tracebacks import api_boundary


class _Class(type):
    """References in programs are instances of `Ref`, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, StagedReference) or super().__instancecheck__(instance)


class Ref(Cell, metaclass=_Class):
    """A mutable array, made by `new_ref`: `r[...]` reads, `r[...] = x` and `r[i] += x` write."""

    __hash__ = Cell.__hash__

    shape = property(lambda self: self.ref_aval.shape, doc="The shape of the array.")
    dtype = property(lambda self: self.ref_aval.dtype, doc="The dtype of the array.")
    ndim = property(lambda self: self.ref_aval.ndim, doc="The number of dimensions of the array.")
    size = property(lambda self: self.ref_aval.size, doc="The number of elements of the array.")
    aval = property(lambda self: self.ref_aval, doc="The type of the reference.")
    sharding = property(lambda self: self.shown().sharding, doc="How the array is spread over devices.")
    format = property(lambda self: self.shown().format, doc="Sharding and layout of the array.")
    committed = property(lambda self: self.shown().committed, doc="Whether the array stays where it lies.")

    def unsafe_buffer_pointer(self) -> int:
        """Where the array is in memory; until the next write."""
        return self.shown().unsafe_buffer_pointer()

    def __copy__(self) -> Ref:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Ref:
        return new_ref(self.shown())

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        return new_ref, (self.shown(),)

    def __repr__(self) -> str:
        if self.is_freed:
            return "Ref(<freed>)"
        text = repr(self._value).removeprefix("Array(").removesuffix(")")
        # As in JAX: what is read keeps the weak type that the reference was made with, its text does not.
        return f"Ref({text.removesuffix(', weak_type=True') if self._was_written else text})"


class Row:
    """One row of a reference, which `scan` gives its body for a reference among what it scans over."""

    def __init__(self, ref: Reference, number: Any) -> None:
        self._ref, self._number = ref, number

    shape = property(lambda self: self._ref.ref_aval.shape[1:], doc="The shape of the row.")
    dtype = property(lambda self: self._ref.ref_aval.dtype, doc="The dtype of the row.")
    ndim = property(lambda self: len(self.shape), doc="The number of dimensions of the row.")


class TransformedRef:
    """A part of a reference, ref.at[index]: a view, which is read and written as a reference itself."""

    def __init__(self, ref: Any, index: Any) -> None:
        # Checked now, as JAX does; read as an array's part is, in whatever trace reads it.
        split_index(index, ref.shape)
        self._of, self._index = ref, index
        self._aval = eval_shape(lambda x: x[index], ShapeDtypeStruct(ref.shape, ref.dtype))

    shape = property(lambda self: self._aval.shape, doc="The shape of the part.")
    dtype = property(lambda self: self._aval.dtype, doc="The dtype of the part.")
    ndim = property(lambda self: len(self.shape), doc="The number of dimensions of the part.")
    size = property(lambda self: self._aval.size, doc="The number of elements of the part.")

    def __repr__(self) -> str:
        return f"TransformedRef({self.dtype}[{','.join(map(str, self.shape))}])"


class _At:
    """ref.at, which makes views of parts: ref.at[index]."""

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> TransformedRef:
        return TransformedRef(self._ref, index)


def _where(ref: Any, idx: Any) -> tuple[Reference, Index, list[Any]]:
    """(the reference, the index into it, the arrays of that) of a reference or row of one."""
    if isinstance(ref, Row):
        items = () if idx is Ellipsis else idx if isinstance(idx, tuple) else (idx,)
        return (ref._ref, *split_index((ref._number, *items), ref._ref.ref_aval.shape, _is_staged(ref._ref)))
    if not isinstance(ref, Reference):
        raise TypeError(f"argument 'ref' must be a Ref, got {ref!r} of type {type(ref).__name__}")
    return (ref, *split_index(idx, ref.ref_aval.shape, _is_staged(ref)))


def _is_staged(ref: Reference) -> bool:
    return isinstance(ref, StagedReference) or current_interpreter().stages_references


def _refuse_space(name: str, memory_space: Any) -> None:
    if memory_space is not None:
        raise NotImplementedError(f"{name}: there is one memory space; memory_space must be None, got {memory_space!r}")


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a mutable array that starts as `init_val`."""
    _refuse_space("new_ref", memory_space)
    if kind is not None:
        raise NotImplementedError(f"new_ref: argument 'kind' must be None, got {kind!r}")
    if isinstance(init_val, Reference):
        raise TypeError("new_ref: argument 'init_val' is a Ref itself; use its value, ref[...]")
    return new_ref_p.bind(as_array(init_val, "new_ref"))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of this shape and dtype, which starts as zeros."""
    _refuse_space("empty_ref", memory_space)
    return new_ref_p.bind(jnp.zeros(ty.shape, ty.dtype))


def free_ref(ref: Ref) -> None:
    """End a reference; using it afterwards is a ValueError. TypeError for what is no reference."""
    _last_value("free_ref", ref)
    if isinstance(ref, StagedReference):
        ref.is_freed = True
    else:
        ref.put(None)


def freeze(ref: Ref) -> Any:
    """The array of a reference that is to be used no more, which is not refused all the same. TypeError for what is no
    reference.
    """
    return _last_value("freeze", ref)


def _last_value(name: str, ref: Any) -> Any:
    """The array of a reference that is to be used no more."""
    if not isinstance(ref, Reference):
        raise TypeError(f"{name}: argument 'ref' must be a Ref, got {ref!r} of type {type(ref).__name__}")
    who = current_interpreter()
    if who.stages_references:
        staged = ref if isinstance(ref, StagedReference) else None
        if staged is None or staged.interpreter is not who or staged.jaxpr_var in who.arguments:
            raise ValueError(
                f"{name}: this Ref was made outside of the function that is traced, which cannot end it; read it, "
                "ref[...], and freeze it outside"
            )
    return freeze_p.bind(ref)


def get(ref: Ref | Row | TransformedRef, idx: Any = None) -> Any:
    """ref[idx]; None for all of it."""
    if isinstance(ref, TransformedRef):
        return _value_at(get(ref._of, ref._index), idx)
    held, index, arrays = _where(ref, ... if idx is None else idx)
    return get_p.bind(held, *arrays, index=index)


def _value_at(value: Any, idx: Any) -> Any:
    if idx is None or idx is Ellipsis:
        return value
    index, arrays = split_index(idx, value.shape)
    return value[index.expression(arrays)]


def set(ref: Ref | Row | TransformedRef, idx: Any, value: Any) -> None:
    """ref[idx] = value; None for all of it."""
    if isinstance(ref, TransformedRef) and (idx is None or idx is Ellipsis or (type(idx) is tuple and not idx)):
        set(ref._of, ref._index, value)  # nothing is read of what is written as a whole
    else:
        swap(ref, idx, value)


def swap(ref: Ref | Row | TransformedRef, idx: Any, value: Any) -> Any:
    """ref[idx] as it was, after it has become `value`."""
    if isinstance(ref, TransformedRef):
        whole = get(ref._of, ref._index)
        before = _value_at(whole, idx)
        new = _fitting("swap", value, before.shape, ref.dtype)
        swap(ref._of, ref._index, new if before is whole else whole.at[idx].set(new))
        return before
    held, index, arrays = _where(ref, ... if idx is None else idx)
    before = get_p.abstract_eval(held.ref_aval, *map(typeof, arrays), index=index)
    return swap_p.bind(held, _fitting("swap", value, before.shape, held.ref_aval.dtype), *arrays, index=index)


def _fitting(name: str, value: Any, shape: tuple[int, ...], dtype: Any, is_converted: bool = True) -> Any:
    """The value as an array that fits a part of a reference; ValueError if it does not, TypeError if it is none. Weakly
    typed ones of the same kind do, where they are converted.
    """
    new = as_array(value, name)
    if new.shape != shape:
        raise ValueError(f"Invalid shape for `{name}`: the part of the Ref has shape {shape}, not {new.shape}")
    if new.dtype == dtype:
        return new
    if is_converted and new.aval.weak_type and dtypes.kind_of(new.dtype) == dtypes.kind_of(dtype):
        return new.astype(dtype)
    raise ValueError(f"Invalid dtype for `{name}`: the Ref has dtype {dtype}, the value {new.dtype}")


def addupdate(ref: Ref | Row | TransformedRef, idx: Any, x: Any) -> None:
    """ref[idx] += x, where what comes several times is added several times."""
    if isinstance(ref, TransformedRef):
        whole = get(ref._of, ref._index)
        set(ref._of, ref._index, whole.at[... if idx is None else idx].add(x))
        return
    held, index, arrays = _where(ref, ... if idx is None else idx)
    part = get_p.abstract_eval(held.ref_aval, *map(typeof, arrays), index=index)
    addupdate_p.bind(held, _fitting("addupdate", x, part.shape, held.ref_aval.dtype, False), *arrays, index=index)


def _add_to(self: Any, x: Any, idx: Any = ()) -> None:
    """self[idx] += x, where what comes several times is added several times."""
    addupdate(self, idx, x)


def _read(self: Any, idx: Any = ()) -> Any:
    """self[idx]."""
    return get(self, idx)


def _write(self: Any, value: Any, idx: Any = ()) -> None:
    """self[idx] = value."""
    set(self, idx, value)


def _exchange(self: Any, value: Any, idx: Any = ()) -> Any:
    """self[idx] as it was, after it has become `value`."""
    return swap(self, idx, value)


def _iterate(self: Any) -> Iterator[Any]:
    return iter([self[k] for k in range(len(self))])


def _length(self: Any) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object")
    return self.shape[0]


_METHODS: dict[str, Any] = {
    "__getitem__": get,
    "__setitem__": set,
    "__len__": _length,
    "__iter__": _iterate,
    "addupdate": _add_to,
    "get": _read,
    "set": _write,
    "swap": _exchange,
    "at": property(_At, doc="Views of parts: ref.at[index]."),
}
for _class in (Ref, Row, TransformedRef, StagedReference):
    for _name, _method in _METHODS.items():
        setattr(_class, _name, api_boundary(_method) if callable(_method) else _method)

hooks.fill(reference=Ref, row=Row)

__all__ = [
    "AbstractRef",
    "Ref",
    "TransformedRef",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]

_explain_all(globals())
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
