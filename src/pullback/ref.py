"""Mutable arrays: a reference to an array that is read and written in place.

A reference belongs to the trace it is made in: outside of transformations, or inside the one function that is being
transformed. There reads and writes are ordinary values, so nothing mutable is left in a program. The value is passed
into transformed functions that take the reference, and into jitted functions, checkpoints, loops and branches that
close over it, and back again (core/references.py). From inside of derivatives a reference that was made outside takes
values that do not depend on what is differentiated; inside of vmap it is only read, unless it is mapped itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core import hooks, typeof
from pullback.core.references import Cell
from pullback.jax_names.src.state.types import AbstractRef


class _Indexed:
    """What is read and written by indexing: `shown()` and `value()` give the array, `replace` sets it."""

    shape = property(lambda self: self.shown().shape, doc="The shape of the array.")
    dtype = property(lambda self: self.shown().dtype, doc="The dtype of the array.")
    ndim = property(lambda self: self.shown().ndim, doc="The number of dimensions of the array.")
    size = property(lambda self: self.shown().size, doc="The number of elements of the array.")

    sharding = property(lambda self: self.shown().sharding, doc="How the array is spread over devices.")

    def __len__(self) -> int:
        return len(self.shown())  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value())  # type: ignore[attr-defined]

    def __getitem__(self, index: Any) -> Any:
        value = self.value()  # type: ignore[attr-defined]
        return value if index is Ellipsis else value[index]

    def __setitem__(self, index: Any, new: Any) -> None:
        swap(self, index, new)  # type: ignore[arg-type]


class Row(_Indexed):
    """One row of a reference, which `scan` gives its body for a reference among what it scans over."""

    def __init__(self, cell: Cell, number: Any) -> None:
        self._cell, self._number = cell, number

    def value(self) -> Any:
        """The row."""
        return self._cell.value()[self._number]

    shown = value

    def replace(self, value: Any) -> None:
        """Set the row."""
        self._cell.replace(self._cell.value().at[self._number].set(value))


class Ref(_Indexed, Cell):
    """A mutable array, made by `new_ref`: `r[...]` reads, `r[...] = x` and `r[i] += x` write."""

    __hash__ = Cell.__hash__

    def row(self, number: Any) -> Row:
        """The part of the reference at one index of the leading axis."""
        return Row(self, number)

    def __repr__(self) -> str:
        return "Ref(<freed>)" if self.is_freed else f"Ref({repr(self._value).removeprefix('Array(').removesuffix(')')})"


def _refuse_space(name: str, memory_space: Any) -> None:
    if memory_space is not None:
        raise NotImplementedError(f"{name}: there is one memory space; memory_space must be None, got {memory_space!r}")


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a mutable array that starts as `init_val`. Raises TypeError for what is no array."""
    _refuse_space("new_ref", memory_space)
    if kind is not None:
        raise NotImplementedError(f"new_ref: argument 'kind' must be None, got {kind!r}")
    if isinstance(init_val, Ref):
        raise TypeError("new_ref: argument 'init_val' is a Ref itself; use its value, ref[...]")
    return Ref(jnp.asarray(init_val))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of this shape and dtype, which starts as zeros."""
    _refuse_space("empty_ref", memory_space)
    return Ref(jnp.zeros(ty.shape, ty.dtype))


def free_ref(ref: Ref) -> None:
    """End a reference; using it afterwards is a ValueError."""
    freeze(ref)


def freeze(ref: Ref) -> Any:
    """The array, which ends the reference; using it afterwards is a ValueError."""
    value = ref.shown()
    ref.replace(None)
    return value


def get(ref: Ref | Row, idx: Any = None) -> Any:
    """ref[idx]; None for all of it."""
    return ref[... if idx is None else idx]


def set(ref: Ref | Row, idx: Any, value: Any) -> None:
    """ref[idx] = value; None for all of it."""
    swap(ref, idx, value)


def swap(ref: Ref | Row, idx: Any, value: Any) -> Any:
    """ref[idx] as it was, after it has become `value`. Raises ValueError if the shapes differ."""
    held = ref.shown()
    where = ... if idx is None else idx
    before = held if where is Ellipsis else held[where]
    new = jnp.asarray(value, held.dtype) if isinstance(value, (bool, int, float, complex)) else jnp.asarray(value)
    if new.shape != before.shape and new.size != 1:
        raise ValueError(f"Invalid shape for `swap`: the part of the Ref has shape {before.shape}, not {new.shape}")
    if not np.can_cast(new.dtype, held.dtype, "same_kind"):
        raise ValueError(f"Invalid dtype for `swap`: the Ref has dtype {held.dtype}, the value {new.dtype}")
    new = jnp.broadcast_to(new.astype(held.dtype), before.shape)
    _replace(ref, held, new if where is Ellipsis else held.at[where].set(new))
    return before


def _replace(ref: Ref | Row, held: Any, new: Any) -> None:
    """Set the value, which stays weakly typed if it was."""
    weak = typeof(held).weak_type
    ref.replace(hooks.convert(new, held.dtype, True) if weak and not typeof(new).weak_type else new)


def addupdate(ref: Ref | Row, idx: Any, x: Any) -> None:
    """ref[idx] += x, where what comes several times is added several times."""
    held = ref.shown()
    _replace(ref, held, held.at[... if idx is None else idx].add(x))


__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
