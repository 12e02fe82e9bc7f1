"""Windows in index expressions: `jax.ds(start, size)`, whose start may be computed while the program runs.

They are cut out before all else is indexed, and written back after it, so that the rest sees whole axes.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer, typeof
from pullback.util.pytree import register_pytree_node


@dataclasses.dataclass(frozen=True)
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

    The window is moved inside of the array where it is read, and nothing is written where it is not inside. Raises
    ValueError for a negative stride.

    >>> jnp.arange(5)[ds(1, 3)]
    Array([1, 2, 3], dtype=int32)
    """
    if size is None:
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


def without_windows(x: Any, index: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """(part of x that the windows show, index into it, function from a new part to a new x)."""
    items = list(index) if isinstance(index, tuple) else [index]
    windows: dict[int, Slice] = {}
    counts = [0 if item is None or item is Ellipsis else _axes(item) for item in items]
    if any(item is Ellipsis for item in items):
        counts = [len(x.shape) - sum(counts) if item is Ellipsis else n for item, n in zip(items, counts)]
    axis = 0
    for k, (item, count) in enumerate(zip(items, counts, strict=True)):
        if type(item) is Slice:
            if axis >= len(x.shape):
                raise IndexError(f"Too many indices: array is {len(x.shape)}-dimensional, but more were indexed")
            windows[axis] = item
            items[k] = slice(None)
        axis += count
    part = x
    for axis, window in windows.items():
        part = _read(part, window, axis)
    return part, tuple(items), lambda new: _write(x, new, windows)


def _axes(item: Any) -> int:
    boolean = getattr(item, "dtype", None) == np.bool_ or isinstance(item, bool)
    return np.ndim(item) if boolean else 1


def _size(window: Slice) -> int:
    try:
        return operator.index(window.size)
    except TypeError:
        raise TypeError(f"ds: the size of a window must be an integer that is known, got {window.size!r}") from None


def _start(window: Slice, length: int) -> Any:
    """The start as an integer or an integer scalar, counted from the end if negative."""
    start = window.start
    if isinstance(start, (int, np.integer)):
        return int(start) + length if start < 0 else int(start)
    aval = typeof(start)
    if aval.shape != () or aval.dtype.kind not in "iu":
        raise TypeError(f"ds: the start of a window must be an integer scalar, got {aval.str_short()}")
    if not isinstance(start, Tracer):
        return int(start) + (length if int(start) < 0 else 0)
    if aval.dtype.kind == "u":
        return start
    return lax.select(lax.lt(start, lax.full_like(start, 0)), lax.add(start, lax.full_like(start, length)), start)


def _read(x: Any, window: Slice, axis: int) -> Any:
    size, length = _size(window), x.shape[axis]
    start = _start(window, length)
    if window.stride == 1:
        starts: list[Any] = [0] * x.ndim
        starts[axis] = max(start, 0) if isinstance(start, int) else start  # as computed ones that are not there
        sizes = tuple(size if k == axis else n for k, n in enumerate(x.shape))
        return lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    steps = np.arange(size, dtype=np.int32) * np.int32(window.stride)
    places = lax.add(steps, lax.broadcast(lax.convert_element_type(start, np.int32), (size,)))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(k for k in range(x.ndim) if k != axis), collapsed_slice_dims=(axis,), start_index_map=(axis,)
    )
    sizes = tuple(1 if k == axis else n for k, n in enumerate(x.shape))
    return lax.gather(x, lax.reshape(places, (size, 1)), numbers, sizes, mode="clip")


def _write(x: Any, part: Any, windows: dict[int, Slice]) -> Any:
    inside: Any = True
    starts: list[Any] = [0] * x.ndim
    for axis, window in windows.items():
        if window.stride != 1:
            raise NotImplementedError("ds: a window with a stride is only read; write with an array of indices")
        starts[axis] = _start(window, x.shape[axis])
        inside = inside & (starts[axis] >= 0) & (starts[axis] <= x.shape[axis] - _size(window))
    if inside is False or not part.size:
        return x
    starts = [max(start, 0) if isinstance(start, int) else start for start in starts]
    new = lax.dynamic_update_slice(x, part, starts, allow_negative_indices=False)
    return new if inside is True else lax.select(inside, new, x)
