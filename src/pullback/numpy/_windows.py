"""Windows in index expressions: `jax.ds(start, size)`, whose start may be computed while the program runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.manual import add_pages
from pullback.manual.pullback.late import PAGES
from pullback.util.pytree import register_pytree_node
from pullback.util.record import frozen_record


@frozen_record
class Slice:
    """Elements start, start + stride, ... of an axis, `size` in all; a pytree of what is an array of start and size."""

    start: Any
    size: Any
    stride: int = 1

    def __post_init__(self) -> None:
        if self.stride < 0:
            raise ValueError(f"ds: argument 'stride' must not be negative, got {self.stride}")

    @property
    def is_dynamic_start(self) -> bool:
        """Whether start is no Python integer."""
        return not isinstance(self.start, (int, np.integer))

    @property
    def is_dynamic_size(self) -> bool:
        """Whether size is no Python integer."""
        return not isinstance(self.size, (int, np.integer))


def _flatten(s: Slice) -> tuple[tuple[Any, Any], tuple[Any, Any, int]]:
    start, size = (s.start, None) if s.is_dynamic_start else (None, s.start)
    more, fixed = (s.size, None) if s.is_dynamic_size else (None, s.size)
    return (start, more), (size, fixed, s.stride)


def _unflatten(static: tuple[Any, Any, int], parts: tuple[Any, Any]) -> Slice:
    start, size = (known if known is not None else part for known, part in zip(static[:2], parts, strict=True))
    return Slice(start, size, static[2])


register_pytree_node(Slice, _flatten, _unflatten)


def ds(start: Any, size: Any = None, stride: int | None = None) -> slice | Slice:
    """An index for `size` elements from `start` on, which may be traced: x[ds(i, 3)]; ds(n) for the first n.

    A window that is not inside of the array is moved there where it is read, and nothing is written to it, unless
    `x.at[...]` is given a mode. A negative start counts from the end only where all other indices are integers, slices
    without steps and windows, and x is read without `mode="fill"`; elsewhere it is out of bounds. Raises ValueError for
    a negative stride.

    >>> jnp.arange(5)[ds(1, 3)]
    Array([1, 2, 3], dtype=int32)
    """
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)

add_pages(globals(), PAGES)
