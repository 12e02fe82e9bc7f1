"""Index expressions in programs for readers (`make_jaxpr`): with the equations that JAX 0.10 has for them.

What is compiled is written in fewer steps (`_indexing.py`, `_index_update.py`): indices that are known are numbers
there, and places that lie together are slices. Readers find each index as an operand, made in bounds by equations:

    x[i]                  dynamic_slice at select(i < 0, i + n, i) for every axis
    x[[0, 1]]             gather at such vectors
    x.at[0].set(y)        scatter at a vector of one literal
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback._ext import _core
from pullback.api.named_calls import are_shown
from pullback.core import ShapedArray, Tracer
from pullback.core.interpreter import is_within_transformation
from pullback.core.staging import as_staged
from pullback.core.types import in_use, type_on_mesh
from pullback.numpy._arguments import broadcast_to, convert, make_array
from pullback.numpy._index_keys import Advanced, At, Entry, New, Slice, Span
from pullback.sharding._current import current_mesh
from pullback.util import dtypes

INT32 = np.dtype(np.int32)


def is_for_readers(x: Any, entries: Sequence[Entry]) -> bool:
    """Whether an index expression of x is recorded for readers, and of a kind that is written here."""
    if not are_shown() or not (isinstance(x, Tracer) or is_within_transformation()):
        return False
    if in_use() and (current_mesh() is not None or type_on_mesh(x).is_typed):
        return False  # what is cut is written as it is compiled
    if not all(type(n) is int and n < 2**31 for n in x.shape):
        return False
    return all(_is_plain(e) for e in entries)


def _is_plain(e: Entry) -> bool:
    if isinstance(e, Slice):
        return type(e.start) is int and type(e.size) is int and e.reach is None
    if isinstance(e, Span):
        return e.step == 1
    return not isinstance(e, Advanced) or e.axis is not None


def names_places(x: Any, entries: Sequence[Entry]) -> bool:
    """Whether an expression takes less than all of x."""
    return any(
        not isinstance(e, Slice) or e.step != 1 or e.size != x.shape[e.axis] for e in entries if type(e) is not New
    )


def _number(n: int) -> Any:
    return as_staged(make_array(n, INT32))


def _recorded(index: Any) -> Any:
    """An index as a value of the program: a number as a literal."""
    if isinstance(index, Tracer):
        return index
    if isinstance(index, (int, np.ndarray, np.generic)):
        known = np.asarray(index)
        if known.ndim == 0:
            return as_staged(make_array(known.item(), np.dtype(np.bool_) if known.dtype == np.bool_ else INT32))
        index = _core.from_numpy(known, ShapedArray(known.shape, known.dtype), None, True)
    return as_staged(index)


def _typed(index: Any) -> Any:
    """An index of int32, not weakly."""
    return convert(index, INT32)


def _counted(index: Any, length: int, is_negative: Any = None) -> Any:
    """An index with negative ones counted from the end."""
    zero = as_staged(make_array(0, index.dtype))
    is_negative = lax.lt(index, zero) if is_negative is None else is_negative
    from_end = lax.add(index, as_staged(make_array(length, index.dtype)))
    return lax.select_n(is_negative, index, from_end)


def _component(index: Any, length: int, wrap: bool) -> Any:
    """An index of a gather or scatter, in bounds if it is counted from the end."""
    if type(index) is int:
        return _number(index + length if wrap and index < 0 else index)
    unsigned = dtypes.issubdtype(index.dtype, np.unsignedinteger)
    if isinstance(index, np.ndarray):
        value = _recorded(index.astype(dtypes.canonicalize_dtype(index.dtype)))
        if not wrap or unsigned:
            return value
        return _counted(value, length, _recorded(index < 0))
    value = _recorded(index)
    return value if unsigned or not wrap else _counted(value, length)


def _in_shape(component: Any, shape: tuple[int, ...]) -> Any:
    """An index of several in the shape that all of them have, as int32."""
    if component.shape != shape:
        is_number = component.ndim == 0
        component = broadcast_to(component, shape)
        if is_number:
            component = lax.convert_element_type_p.bind(component, new_dtype=INT32, weak_type=False, sharding=None)
    return _typed(component)


def window(x: Any, entries: Sequence[Entry], wrap: bool) -> Any:
    """The part of x that a dynamic slice of all axes takes: scalars, windows, and slices of step 1 or -1."""
    starts: list[Any] = []
    sizes: list[int] = []
    backwards: list[int] = []
    for e in entries:
        if isinstance(e, New):
            continue
        if isinstance(e, Slice):
            back = e.step < 0
            starts.append(_number(e.start - (e.size - 1) * back))
            sizes.append(e.size)
            backwards.extend([e.axis] * back)
        elif isinstance(e, Span):
            starts.append(_typed(_recorded(e.start)))
            sizes.append(e.size)
        elif isinstance(e, (At, Advanced)):
            starts.append(_typed(_recorded(e.index)))
            sizes.append(1)
    if wrap:
        starts = [_counted(start, n) for start, n in zip(starts, x.shape)]
    x = lax.dynamic_slice(x, starts, tuple(sizes), allow_negative_indices=False)
    return lax.rev(x, tuple(backwards)) if backwards else x


class Places:
    """The index vectors of a gather or scatter, and what its dimension numbers say."""

    def __init__(self, x: Any, entries: Sequence[Entry], layout: Any, wrap: bool):
        rank = len(layout.index_shape)
        strided = [e for e in entries if isinstance(e, Slice) and e.step != 1]
        lengths = [*layout.index_shape, *(e.size for e in strided)]
        order = [number for kind, number in layout.parts if kind == "batch"]
        place = {number: k for k, number in enumerate(order)}
        self.batch_shape = tuple(lengths[number] for number in order)
        self.batch_lengths = lengths
        self.has_arrays = any(isinstance(e, Advanced) for e in entries)
        self.indexed: list[int] = []
        self.dropped: list[int] = []
        self.sizes = list(x.shape)
        self.backwards: list[int] = []  # axes of the result that are taken from their ends
        components: list[tuple[Any, tuple[int, ...]]] = []  # with the batch axes along which each differs
        arrays: list[int] = []  # which of them are brought to one shape, after all are made
        own = rank  # the number of the next strided slice among the batch axes
        for e in entries:
            if isinstance(e, (At, Advanced)):
                assert e.axis is not None  # `_is_plain`
                if self.has_arrays:
                    arrays.append(len(components))
                axes = tuple(place[k] for k in range(rank)) if self.has_arrays else ()
                components.append((_component(e.index, x.shape[e.axis], wrap), axes))
                self._take_single(e.axis)
            elif isinstance(e, Slice) and e.step != 1:
                component = lax.add(_number(e.start), lax.mul(_number(e.step), lax.iota(INT32, e.size)))
                if e.step < 0:
                    component = lax.rev(component, (0,))
                    self.backwards.append(own)
                components.append((component, (place[own],)))
                own += 1
                self._take_single(e.axis)
            elif isinstance(e, Span) or (isinstance(e, Slice) and (e.start != 0 or e.size != x.shape[e.axis])):
                start = _component(e.start, x.shape[e.axis], False) if isinstance(e, Span) else _number(e.start)
                components.append((_typed(start), ()))
                self.sizes[e.axis] = e.size
                self.indexed.append(e.axis)
        for k in arrays:
            components[k] = _in_shape(components[k][0], layout.index_shape), components[k][1]
        self.backwards = [k for k, (kind, n) in enumerate(layout.parts) if kind == "batch" and n in self.backwards]
        self.vectors = self._vectors(components)

    def _take_single(self, axis: int) -> None:
        """Each index takes one element along an axis, which is none of the window's."""
        self.sizes[axis] = 1
        self.dropped.append(axis)
        self.indexed.append(axis)

    def _vectors(self, components: list[tuple[Any, tuple[int, ...]]]) -> Any:
        if not components:
            return _recorded(np.zeros((*self.batch_shape, 0), INT32))
        shape = (*self.batch_shape, 1)
        columns = [lax.broadcast_in_dim(_typed(c), shape, axes) for c, axes in components]
        return columns[0] if len(columns) == 1 else lax.concatenate(columns, len(self.batch_shape))


def gathered(
    x: Any,
    entries: Sequence[Entry],
    layout: Any,
    how: Any,
    fill_value: Any,
    is_sorted: bool,
    is_unique: bool,
    wrap: bool,
) -> Any:
    """x at the entries, by a gather; without the new axes."""
    places = Places(x, entries, layout, wrap)
    parts = [p for p in layout.parts if p[0] != "new"]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(k for k, (kind, _) in enumerate(parts) if kind == "window"),
        collapsed_slice_dims=tuple(sorted(places.dropped)),
        start_index_map=tuple(places.indexed),
    )
    x = lax.gather(
        x,
        places.vectors,
        numbers,
        tuple(places.sizes),
        unique_indices=is_unique or not places.has_arrays,
        indices_are_sorted=is_sorted or not places.has_arrays,
        mode=how,
        fill_value=fill_value,
    )
    new = [k for k, p in enumerate(layout.parts) if p[0] == "new"]
    backwards = tuple(k - sum(n < k for n in new) for k in places.backwards)
    return lax.rev(x, backwards) if backwards else x


def scatter_arguments(
    x: Any, entries: Sequence[Entry], layout: Any, y: Any, is_sorted: bool, is_unique: bool, wrap: bool, fitted: Any
) -> tuple[Any, Any, Any, dict[str, bool]]:
    """(index vectors, updates, dimension numbers, flags) of the scatter that writes y; `fitted` broadcasts it."""
    places = Places(x, entries, layout, wrap)
    sizes = {e.axis: e.size for e in entries if isinstance(e, (Slice, Span))}
    lengths = layout.lengths(places.batch_lengths, sizes)
    if y is None:
        updates = lax.full(tuple(lengths), 0, x.dtype)
    else:
        updates = fitted(y if isinstance(y, Tracer) else as_staged(y), lengths)
    if places.backwards:
        updates = lax.rev(updates, tuple(places.backwards))
    updates, numbers = layout.written(updates, places.dropped, places.indexed)
    plain = not places.has_arrays
    return (
        places.vectors, updates, numbers,
        {"indices_are_sorted": is_sorted or plain, "unique_indices": is_unique or plain, "inside": False},
    )  # fmt: skip
