"""Mutable arrays: a reference to an array that is read and written in place.

A reference belongs to the trace it is made in: outside of transformations, or inside the one function that is being
transformed. There reads and writes are ordinary values, so nothing mutable is left in a program. References do not
cross into a function that is traced: not as an argument, and not written from inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback._jax_internals.state.types import AbstractRef
from pullback.core import StagingInterpreter, current_interpreter


class Ref:
    """A mutable array, made by `new_ref`: `r[...]` reads, `r[...] = x` and `r[i] += x` write."""

    __hash__ = object.__hash__

    def __init__(self, value: Any) -> None:
        self._value: Any = value
        self._interpreter = current_interpreter()

    shape = property(lambda self: self._shown().shape, doc="The shape of the array.")
    dtype = property(lambda self: self._shown().dtype, doc="The dtype of the array.")
    ndim = property(lambda self: self._shown().ndim, doc="The number of dimensions of the array.")
    size = property(lambda self: self._shown().size, doc="The number of elements of the array.")

    def _shown(self) -> Any:
        if self._value is None:
            raise ValueError("this Ref was freed by freeze() or free_ref(), and cannot be used any more")
        return self._value

    def _check(self, writing: bool) -> None:
        """NotImplementedError where the trace in force is not the reference's own; reads may come from inside of vmap
        and derivatives, for which the array is a constant.
        """
        inside = current_interpreter()
        while inside is not None and inside is not self._interpreter:
            if writing or isinstance(inside, StagingInterpreter):
                kind = "written" if writing else "read"
                raise NotImplementedError(
                    f"a Ref is {kind} inside of a function that is traced (by jit, scan, cond, grad, vmap, ...), but "
                    "was made outside of it, which is not supported: pass its value into the function, and write "
                    "what the function returns"
                )
            inside = inside.parent
        if inside is None:
            raise ValueError("a Ref is used outside of the function in which it was made, which has ended")

    def __getitem__(self, index: Any) -> Any:
        value = self._shown()
        self._check(writing=False)
        return value if index is Ellipsis else value[index]

    def __setitem__(self, index: Any, new: Any) -> None:
        swap(self, index, new)

    def __repr__(self) -> str:
        return "Ref(<freed>)" if self._value is None else f"Ref({self._value!r})"


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """A reference to a mutable array that starts as `init_val`. Raises TypeError for what is no array."""
    if isinstance(init_val, Ref):
        raise TypeError("new_ref: argument 'init_val' is a Ref itself; use its value, ref[...]")
    return Ref(jnp.asarray(init_val))


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """A reference to an array of this shape and dtype, which starts as zeros."""
    return Ref(jnp.zeros(ty.shape, ty.dtype))


def free_ref(ref: Ref) -> None:
    """End a reference; using it afterwards is a ValueError."""
    freeze(ref)


def freeze(ref: Ref) -> Any:
    """The array, which ends the reference; using it afterwards is a ValueError."""
    value = ref._shown()
    ref._check(writing=True)
    ref._value = None
    return value


def get(ref: Ref, idx: Any = None) -> Any:
    """ref[idx]; None for all of it."""
    return ref[... if idx is None else idx]


def set(ref: Ref, idx: Any, value: Any) -> None:
    """ref[idx] = value; None for all of it."""
    swap(ref, idx, value)


def swap(ref: Ref, idx: Any, value: Any) -> Any:
    """ref[idx] as it was, after it has become `value`. Raises ValueError if the shapes differ."""
    held = ref._shown()
    ref._check(writing=True)
    where = ... if idx is None else idx
    before = held if where is Ellipsis else held[where]
    new = jnp.asarray(value, held.dtype) if isinstance(value, (bool, int, float, complex)) else jnp.asarray(value)
    if new.shape != before.shape and new.size != 1:
        raise ValueError(f"Invalid shape for `swap`: the part of the Ref has shape {before.shape}, not {new.shape}")
    if not np.can_cast(new.dtype, held.dtype, "same_kind"):
        raise ValueError(f"Invalid dtype for `swap`: the Ref has dtype {held.dtype}, the value {new.dtype}")
    new = jnp.broadcast_to(new.astype(held.dtype), before.shape)
    ref._value = new if where is Ellipsis else held.at[where].set(new)
    return before


def addupdate(ref: Ref, idx: Any, x: Any) -> None:
    """ref[idx] += x, where what comes several times is added several times."""
    held = ref._shown()
    ref._check(writing=True)
    ref._value = held.at[... if idx is None else idx].add(x)


__all__ = ["AbstractRef", "Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]
