"""Mutable arrays: a reference to an array that is read and written in place.

A reference belongs to the trace it is made in: outside of transformations, or inside the one function that is being
transformed. There reads and writes are ordinary values, so nothing mutable is left in a program. The value is passed
into jitted functions and checkpoints that take or close over the reference, and into bodies of loops and branches that
close over it, and back again (core/references.py). References are no arguments of other transformed functions, and are
not written from inside of vmap and derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core.references import Cell
from pullback.jax_names.src.state.types import AbstractRef


class Ref(Cell):
    """A mutable array, made by `new_ref`: `r[...]` reads, `r[...] = x` and `r[i] += x` write."""

    shape = property(lambda self: self.shown().shape, doc="The shape of the array.")
    dtype = property(lambda self: self.shown().dtype, doc="The dtype of the array.")
    ndim = property(lambda self: self.shown().ndim, doc="The number of dimensions of the array.")
    size = property(lambda self: self.shown().size, doc="The number of elements of the array.")

    def __getitem__(self, index: Any) -> Any:
        value = self.value()
        return value if index is Ellipsis else value[index]

    def __setitem__(self, index: Any, new: Any) -> None:
        swap(self, index, new)

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


def get(ref: Ref, idx: Any = None) -> Any:
    """ref[idx]; None for all of it."""
    return ref[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """ref[idx] = value; None for all of it."""
    swap(ref, idx, value)


def swap(ref: Ref, idx: Any, value: Any) -> Any:
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
    ref.replace(new if where is Ellipsis else held.at[where].set(new))
    return before


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """ref[idx] += x, where what comes several times is added several times."""
    ref.replace(ref.shown().at[... if idx is None else idx].add(x))


__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
