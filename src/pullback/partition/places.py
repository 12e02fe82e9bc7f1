"""What is taken of few places along a dimension that is cut, or written there: `x[0]`, `x[i]`, `table[tokens]`.

Each device does it for the places that it has, and nothing is gathered but what is taken:

    slice within one part, one line at a place that is computed    the part's owner gives it to all
    gather of single lines                                         of each device its own ones, 0 else, and their sum
    update of one line, scatter of single lines                    by each device of its own ones; others do nothing
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.lax.movement.gather import GatherScatterMode, default_fill
from pullback.partition.factors import Axes, Cut, Sizes, extent, local_shape
from pullback.util import dtypes

_SCATTERS = ("scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max")


NAMES = ("slice", "dynamic_slice", "dynamic_update_slice", "gather", *_SCATTERS)


def along(eqn: Any, cut: Cut, mesh: Sizes) -> int | None:
    """The dimension along which an equation is done so, of those that are cut in its first operand; None: it is not."""
    name, p, shape = eqn.primitive.name, eqn.params, eqn.invars[0].aval.shape
    if dtypes.is_extended(eqn.invars[0].aval.dtype):
        return None
    is_cut = [d for d, axes in enumerate(cut) if extent(axes, mesh) > 1]
    if name == "slice":
        found = [d for d in is_cut if (p["start_indices"][d], p["limit_indices"][d]) != (0, shape[d])]
    elif name == "dynamic_slice":
        found = [d for d in is_cut if p["slice_sizes"][d] != shape[d]]
    elif name == "dynamic_update_slice":
        found = [d for d in is_cut if eqn.invars[1].aval.shape[d] != shape[d]]
    else:
        numbers = p["dimension_numbers"]
        to = numbers.start_index_map if name == "gather" else numbers.scatter_dims_to_operand_dims
        gone = numbers.collapsed_slice_dims if name == "gather" else numbers.inserted_window_dims
        found = [d for d in is_cut if d in to]
        if any(d not in gone for d in found) or numbers.operand_batching_dims:
            return None
        if any(m != shape[e] for e, m in _windows(eqn).items() if e in is_cut):
            return None
        if name != "gather" and len(to) > 1 and GatherScatterMode.from_any(p["mode"]) is GatherScatterMode.CLIP:
            return None
        if name == "gather" and not dtypes.issubdtype(eqn.invars[0].aval.dtype, np.number):
            return None
    if len(found) != 1:
        return None
    (d,) = found
    size = shape[d] // extent(cut[d], mesh)
    if name == "slice":
        start, limit = p["start_indices"][d], p["limit_indices"][d]
        return d if start < limit and start // size == (limit - 1) // size else None
    if name == "dynamic_slice":
        return d if p["slice_sizes"][d] == 1 else None
    if name == "dynamic_update_slice":
        return d if eqn.invars[1].aval.shape[d] == 1 else None
    return d


def _windows(eqn: Any) -> dict[int, int]:
    """Of a gather or scatter: dimension of the operand -> size of windows there, of those that windows have."""
    numbers, ndim = eqn.params["dimension_numbers"], eqn.invars[0].aval.ndim
    if eqn.primitive.name == "gather":
        return {e: eqn.params["slice_sizes"][e] for e in range(ndim) if e not in numbers.collapsed_slice_dims}
    updates = eqn.invars[2].aval.shape
    kept = [e for e in range(ndim) if e not in numbers.inserted_window_dims]
    return {e: updates[at] for e, at in zip(kept, numbers.update_window_dims, strict=True)}


def cut_of_updates(eqn: Any, cut: Cut) -> Cut:
    """How a scatter's updates are cut where its operand is: along windows alone."""
    numbers = eqn.params["dimension_numbers"]
    found: list[Axes] = [()] * eqn.invars[2].aval.ndim
    for e, at in zip(_windows(eqn), numbers.update_window_dims, strict=True):
        found[at] = cut[e]
    return tuple(found)


def cut_of_gathered(eqn: Any, cut: Cut, indices: Cut) -> Cut:
    """How the result of a gather is cut, whose operand and indices are."""
    numbers, out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    found: list[Axes] = [()] * out.ndim
    for e, at in zip(_windows(eqn), numbers.offset_dims, strict=True):
        found[at] = cut[e]
    rest = [k for k in range(out.ndim) if k not in numbers.offset_dims]
    for k, axes in zip(rest, indices):
        found[k] = axes
    return tuple(found)


def cut_of_indices(eqn: Any, out: Cut) -> Cut:
    """How a gather's indices are cut where its result is."""
    numbers = eqn.params["dimension_numbers"]
    return (*[axes for k, axes in enumerate(out) if k not in numbers.offset_dims], ())


def cut_of_lines(eqn: Any, indices: Cut) -> Cut:
    """How a scatter's updates are cut where its indices are."""
    numbers, rest = eqn.params["dimension_numbers"], iter(indices)
    return tuple(() if at in numbers.update_window_dims else next(rest) for at in range(eqn.invars[2].aval.ndim))


def bytes_taken(eqn: Any, cut: Cut, d: int, mesh: Sizes) -> int:
    """The bytes that a device receives where the owner of a slice gives it to all."""
    out = eqn.outvars[0].aval
    rest = (*cut[:d], (), *cut[d + 1 :])
    return math.prod(local_shape(out.shape, rest, mesh)) * out.dtype.itemsize * (extent(cut[d], mesh) - 1)


def _own(axes: Axes, size: int) -> Any:
    """The first place that this device has."""
    return lax.mul(lax.axis_index(axes), np.int32(size))


def of_owner(x: Any, axes: Axes, owner: Any) -> Any:
    """The x of one device along axes, on all."""
    index = lax.index_in_dim if isinstance(owner, int) else lax.dynamic_index_in_dim
    return index(lax.all_gather(x, axes), owner, 0, keepdims=False)


def sliced(eqn: Any, x: Any, cut: Cut, d: int, mesh: Sizes) -> Any:
    """A slice within one part, whole along d."""
    p, axes, size = eqn.params, cut[d], x.shape[d]
    starts, limits = list(p["start_indices"]), list(p["limit_indices"])
    owner = starts[d] // size
    starts[d], limits[d] = starts[d] - owner * size, limits[d] - owner * size
    for e, n in enumerate(x.shape):
        if e != d and extent(cut[e], mesh) > 1:
            limits[e] = n
    return of_owner(lax.slice(x, starts, limits, p["strides"]), axes, owner)


def line(eqn: Any, x: Any, starts: Sequence[Any], cut: Cut, d: int, mesh: Sizes) -> Any:
    """One line at a place that is computed, whole along d."""
    axes, size = cut[d], x.shape[d]
    at = _clamped(starts[d], eqn.invars[0].aval.shape[d])
    local = lax.clamp(np.int32(0), lax.sub(at, _own(axes, size)), np.int32(size - 1))
    found = lax.dynamic_slice(x, _with(starts, d, local), _sizes(eqn, x, cut, d, mesh))
    return of_owner(found, axes, lax.div(at, np.int32(size)))


def updated(eqn: Any, x: Any, update: Any, starts: Sequence[Any], cut: Cut, d: int) -> Any:
    """An array of which one line is written, at a place that is computed."""
    axes, size = cut[d], x.shape[d]
    at = lax.sub(_clamped(starts[d], eqn.invars[0].aval.shape[d]), _own(axes, size))
    local = lax.clamp(np.int32(0), at, np.int32(size - 1))
    is_own = lax.eq(at, local)
    places = _with(starts, d, local)
    old = lax.dynamic_slice(x, places, update.shape)
    return lax.dynamic_update_slice(x, lax.select(lax.broadcast(is_own, update.shape), update, old), places)


def _sizes(eqn: Any, x: Any, cut: Cut, d: int, mesh: Sizes) -> tuple[int, ...]:
    """Those of slices: all that this device has of dimensions that are cut, but for d."""
    sizes = enumerate(zip(x.shape, eqn.params["slice_sizes"], strict=True))
    return tuple(n if extent(cut[e], mesh) > 1 and e != d else m for e, (n, m) in sizes)


def _clamped(at: Any, n: int) -> Any:
    return lax.clamp(np.int32(0), lax.convert_element_type(at, np.int32), np.int32(n - 1))


def _with(starts: Sequence[Any], d: int, at: Any) -> list[Any]:
    """The starts as numbers of one type, with another one along d."""
    return [at if e == d else lax.convert_element_type(s, np.int32) for e, s in enumerate(starts)]


def gathered(eqn: Any, x: Any, indices: Any, cut: Cut, d: int, mesh: Sizes) -> Any:
    """Of the lines that indices name, those that this device has, and 0 for others: terms of a sum."""
    p, shape = eqn.params, eqn.invars[0].aval.shape
    numbers, axes, size = p["dimension_numbers"], cut[d], x.shape[d]
    local, is_own = _of_this_device(indices, numbers.start_index_map.index(d), shape[d], axes, size, p["mode"])
    y = eqn.primitive.bind(x, local, **{**p, "slice_sizes": _sizes(eqn, x, cut, d, mesh)})
    places = [k for k in range(y.ndim) if k not in numbers.offset_dims]
    return lax.select(lax.broadcast_in_dim(is_own, y.shape, places), y, lax.full(y.shape, 0, y.dtype))


def filled(eqn: Any, y: Any, indices: Any, d: int) -> Any:
    """The sum of what devices gathered, with the value that is said where indices name no line."""
    p, n = eqn.params, eqn.invars[0].aval.shape[d]
    numbers = p["dimension_numbers"]
    if GatherScatterMode.from_any(p["mode"]) is not GatherScatterMode.FILL_OR_DROP:
        return y
    at = lax.index_in_dim(indices, numbers.start_index_map.index(d), indices.ndim - 1, keepdims=False)
    is_there = lax.bitwise_and(lax.ge(at, lax.full_like(at, 0)), lax.lt(at, lax.full_like(at, n)))
    places = [k for k in range(y.ndim) if k not in numbers.offset_dims]
    value = default_fill(y.dtype) if p["fill_value"] is None else p["fill_value"]
    return lax.select(lax.broadcast_in_dim(is_there, y.shape, places), y, lax.full(y.shape, value, y.dtype))


def scattered(eqn: Any, x: Any, indices: Any, updates: Any, cut: Cut, d: int) -> Any:
    """An array of which single lines are written, by each device those that it has."""
    p, shape = eqn.params, eqn.invars[0].aval.shape
    numbers, axes, size = p["dimension_numbers"], cut[d], x.shape[d]
    k = numbers.scatter_dims_to_operand_dims.index(d)
    local, is_own = _of_this_device(indices, k, shape[d], axes, size, p["mode"], writes=True)
    column = lax.broadcasted_iota(np.int32, local.shape, local.ndim - 1)
    owned = lax.broadcast_in_dim(is_own, local.shape, range(local.ndim - 1))
    other = lax.bitwise_and(lax.eq(column, np.int32(k)), lax.bitwise_not(owned))
    local = lax.select(other, lax.full(local.shape, size, local.dtype), local)  # past the end: not written
    return eqn.primitive.bind(
        x, local, updates, **{**p, "mode": GatherScatterMode.FILL_OR_DROP, "indices_are_sorted": False}
    )


def _of_this_device(
    indices: Any, k: int, n: int, axes: Axes, size: int, mode: Any, writes: bool = False
) -> tuple[Any, Any]:
    """(indices, of which component k counts from this device's first place on, whether that is one of its places)."""
    indices = lax.convert_element_type(indices, np.int32)
    at = lax.index_in_dim(indices, k, indices.ndim - 1, keepdims=False)
    mode = GatherScatterMode.from_any(mode)
    if mode is GatherScatterMode.CLIP or (mode is GatherScatterMode.PROMISE_IN_BOUNDS and not writes):
        at = lax.clamp(np.int32(0), at, np.int32(n - 1))
    at = lax.sub(at, _own(axes, size))
    local = lax.clamp(np.int32(0), at, np.int32(size - 1))
    column = lax.broadcasted_iota(np.int32, indices.shape, indices.ndim - 1)
    spread = lax.broadcast_in_dim(local, indices.shape, range(indices.ndim - 1))
    return lax.select(lax.eq(column, np.int32(k)), spread, indices), lax.eq(at, local)


_SUMS = {"scatter-add": "sum", "scatter-sub": "sum", "scatter-min": "min", "scatter-max": "max"}


def terms(eqn: Any) -> str | None:
    """How results of a scatter of parts of the updates are one, if they can be: "sum", "min" or "max"."""
    kind = _SUMS.get(eqn.primitive.name)
    if kind is None or not dtypes.issubdtype(eqn.invars[0].aval.dtype, np.number):
        return None
    if kind != "sum" and dtypes.issubdtype(eqn.invars[0].aval.dtype, np.complexfloating):
        return None
    return None if eqn.params["dimension_numbers"].operand_batching_dims else kind


def scattered_terms(eqn: Any, x: Any, indices: Any, updates: Any, axes: Axes) -> Any:
    """A scatter of the updates that this device has; to zeros, but on the first one along the axes."""
    if _SUMS[eqn.primitive.name] == "sum":
        first = lax.broadcast(lax.eq(lax.axis_index(axes), np.int32(0)), x.shape)
        x = lax.select(first, x, lax.full(x.shape, 0, x.dtype))
    return eqn.primitive.bind(x, indices, updates, **{**eqn.params, "indices_are_sorted": False})
