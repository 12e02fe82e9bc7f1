"""Mutable arrays: a reference to an array that is read and written in place.

A reference is made outside of functions or inside of them, passed to jitted functions, loops and branches, or closed
over. Reads and writes happen in the order of the program. In jitted functions they are equations (transforms/state.py).
From inside of derivatives a reference that was made outside takes values that do not depend on what is differentiated;
from inside of vmap, values that are not mapped, unless it is mapped itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core import current_interpreter, hooks, typeof
from pullback.core.avals import AbstractRef, Reference
from pullback.core.references import Cell
from pullback.core.staging import StagedReference
from pullback.transforms.state import (
    Index,
    addupdate_p,
    freeze_p,
    get_p,
    new_ref_p,
    split_index,
    swap_p,
)


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
    sharding = property(lambda self: self.shown().sharding, doc="How the array is spread over devices.")

    def __repr__(self) -> str:
        return "Ref(<freed>)" if self.is_freed else f"Ref({repr(self._value).removeprefix('Array(').removesuffix(')')})"


class Row:
    """One row of a reference, which `scan` gives its body for a reference among what it scans over."""

    def __init__(self, ref: Reference, number: Any) -> None:
        self._ref, self._number = ref, number

    shape = property(lambda self: self._ref.ref_aval.shape[1:], doc="The shape of the row.")
    dtype = property(lambda self: self._ref.ref_aval.dtype, doc="The dtype of the row.")
    ndim = property(lambda self: len(self.shape), doc="The number of dimensions of the row.")


def _where(ref: Any, idx: Any) -> tuple[Reference, Index, list[Any]]:
    """(the reference, the index into it, the arrays of that) of a reference or row of one."""
    if isinstance(ref, Row):
        items = () if idx is Ellipsis else idx if isinstance(idx, tuple) else (idx,)
        return (ref._ref, *split_index((ref._number, *items), ref._ref.ref_aval.shape))
    if not isinstance(ref, Reference):
        raise TypeError(f"argument 'ref' must be a Ref, got {ref!r} of type {type(ref).__name__}")
    return (ref, *split_index(idx, ref.ref_aval.shape))


def _refuse_space(name: str, memory_space: Any) -> None:
    if memory_space is not None:
        raise NotImplementedError(f"{name}: there is one memory space; memory_space must be None, got {memory_space!r}")


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a mutable array that starts as `init_val`. Raises TypeError for what is no array."""
    _refuse_space("new_ref", memory_space)
    if kind is not None:
        raise NotImplementedError(f"new_ref: argument 'kind' must be None, got {kind!r}")
    if isinstance(init_val, Reference):
        raise TypeError("new_ref: argument 'init_val' is a Ref itself; use its value, ref[...]")
    return new_ref_p.bind(jnp.asarray(init_val))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of this shape and dtype, which starts as zeros."""
    _refuse_space("empty_ref", memory_space)
    return new_ref_p.bind(jnp.zeros(ty.shape, ty.dtype))


def free_ref(ref: Ref) -> None:
    """End a reference; using it afterwards is a ValueError."""
    freeze(ref)


def freeze(ref: Ref) -> Any:
    """The array, which ends the reference; using it afterwards is a ValueError.

    ValueError in a traced function for a reference from outside, which goes on after it.
    """
    who = current_interpreter()
    if who.stages_references:
        its = ref.interpreter if isinstance(ref, StagedReference) else None
        if its is not who or ref.jaxpr_var in who.arguments:
            raise ValueError(
                "freeze: this Ref was made outside of the function that is traced, which cannot end it; read it, "
                "ref[...], and freeze it outside"
            )
    value = freeze_p.bind(ref)
    if isinstance(ref, StagedReference):
        ref.is_freed = True
    return value


def get(ref: Ref | Row, idx: Any = None) -> Any:
    """ref[idx]; None for all of it. Raises ValueError for an integer that lies outside of its axis."""
    held, index, arrays = _where(ref, ... if idx is None else idx)
    return get_p.bind(held, *arrays, index=index)


def set(ref: Ref | Row, idx: Any, value: Any) -> None:
    """ref[idx] = value; None for all of it."""
    swap(ref, idx, value)


def swap(ref: Ref | Row, idx: Any, value: Any) -> Any:
    """ref[idx] as it was, after it has become `value`. Raises ValueError if the shapes differ."""
    held, index, arrays = _where(ref, ... if idx is None else idx)
    dtype = held.ref_aval.dtype
    before = get_p.abstract_eval(held.ref_aval, *map(typeof, arrays), index=index)
    new = jnp.asarray(value)
    if new.shape != before.shape and new.size != 1:
        raise ValueError(f"Invalid shape for `swap`: the part of the Ref has shape {before.shape}, not {new.shape}")
    if new.dtype != dtype:
        if not (isinstance(dtype, np.dtype) and np.can_cast(new.dtype, dtype, "same_kind")):
            raise ValueError(f"Invalid dtype for `swap`: the Ref has dtype {dtype}, the value {new.dtype}")
        new = new.astype(dtype)
    if new.shape != before.shape:
        new = jnp.broadcast_to(new, before.shape)
    return swap_p.bind(held, new, *arrays, index=index)


def addupdate(ref: Ref | Row, idx: Any, x: Any) -> None:
    """ref[idx] += x, where what comes several times is added several times."""
    held, index, arrays = _where(ref, ... if idx is None else idx)
    addupdate_p.bind(held, jnp.asarray(x), *arrays, index=index)


def _iterate(self: Any) -> Iterator[Any]:
    return iter([self[k] for k in range(len(self))])


def _length(self: Any) -> int:
    if not self.shape:
        raise TypeError("len() of unsized object")
    return self.shape[0]


_SUBSCRIPTS: dict[str, Any] = {"__getitem__": get, "__setitem__": set, "__len__": _length, "__iter__": _iterate}
for _class in (Ref, Row, StagedReference):
    for _name, _method in _SUBSCRIPTS.items():
        setattr(_class, _name, _method)

hooks.fill(reference=Ref, row=Row)

__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
