"""Gathers at known places are slices: what lies in a few runs, one after the other, needs no places in memory.

    x[(arange(n) + 1) % n]         =>    concatenate(x[1:], x[:1])
    take(x, arange(n)[::-1], 0)    =>    rev(x)
    x[arange(2 * n) // 2]          =>    repeat(x, 2)
    x[clip(arange(n) - 1, 0)]      =>    concatenate(x[:1], x[:-1])
    x[i[:, None] + 1, j]           =>    x[1:, :m], with i, j = arange(n - 1), arange(m)
    x[abs(i[:, None] - i)]         =>    rows of x[abs(arange(1 - n, n))], each a part of it; so with i + j, on any axis
    x[:, 8 * i[:, None] + j]       =>    parts of x at every eighth place; so the other way round
    x[:, i, j]                     =>    x.reshape(k, n * m)[:, i * m + j], at places that are not known

Slices fuse with what is around them, and are read in lanes.

Measured: a five-point stencil of 1000 x 1500 by indices takes 0.21 of the time it took (1290 us, now 269, loaded).
48 pieces of 256 of 16 series of 4096, at every 64th place, took 40 us, now 7.
Between the elements of 8 images of 100 x 120, at the same computed places, by map_coordinates: 204 us, now 143.
9,970 windows of 11 numbers times a vector took 65 us, now 4, as windows of 16 and more did.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule, size_of
from pullback.compiler.graph.structure.facts import MAX_INTEGERS, counts_from, index_parts, known_integers
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode

RUNS = 4  # slices that a gather becomes at most
ARRAYS = 2  # of which the same places are wanted that are counted once
LEAST_ELEMENTS = 16  # elements of a gather: shorter ones are as quick


def _gather(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A gather at places along one axis or several, each known to lie in a few runs, as slices."""
    operand, indices = eqn.invars
    n, shape, out = eqn.params["dimension_numbers"], operand.aval.shape, eqn.outvars[0].aval.shape
    clip = GatherScatterMode.from_any(eqn.params["mode"]) is GatherScatterMode.CLIP
    # A window that fits in one place alone is there, whatever the index.
    fixed = [d for d in n.start_index_map if clip and eqn.params["slice_sizes"][d] == shape[d]]
    indexed = [d for d in n.start_index_map if d not in fixed]
    sizes = tuple(1 if a in (*indexed, *n.operand_batching_dims) else size for a, size in enumerate(shape))
    if not set(n.collapsed_slice_dims) <= {*indexed, *fixed} or tuple(eqn.params["slice_sizes"]) != sizes:
        return None
    if eqn.outvars[0].aval.size < LEAST_ELEMENTS:
        return None
    # Which axis of the result lies along each axis of the operand.
    batch = [a for a in range(len(out)) if a not in n.offset_dims]
    lies = {d: batch[k] for d, k in zip(n.operand_batching_dims, n.start_indices_batching_dims)}
    window = [d for d in range(len(shape)) if d not in n.collapsed_slice_dims and d not in n.operand_batching_dims]
    lies |= {d: a for d, a in zip(window, n.offset_dims) if d not in indexed}
    runs: dict[int, list[tuple[int, int, int]]] = {}
    times: dict[int, int] = {}
    for d, part in zip(n.start_index_map, index_parts(r, indices)):
        if d in fixed:
            continue
        found = known_places(r, part)
        if found is None:
            return None
        axis, places = found
        most = shape[d] - 1
        if clip:
            places = np.clip(places, 0, most)
        if places.min() < 0 or places.max() > most:
            return None
        times[d] = _times(places)
        those = runs_of(places[:: times[d]])
        if those is None or (axis is not None and batch[axis] in lies.values()):
            return None
        runs[d] = those
        if axis is not None:
            lies[d] = batch[axis]
    if any(out[a] != 1 for a in batch if a not in lies.values()):
        return None
    for d, those in runs.items():
        parts = [_run(r, operand, d, *run) for run in those]
        operand = parts[0] if len(parts) == 1 else r.emit("concatenate", *parts, dimension=d)
        if times[d] > 1:
            operand = _repeated(r, operand, d, times[d])
    rest = [d for d in range(len(shape)) if d not in lies]
    order = (*sorted(lies, key=lies.__getitem__), *rest)
    if order != tuple(range(len(shape))):
        operand = r.emit("transpose", operand, permutation=order)
    return operand if operand.aval.shape == out else r.reshape(operand, out)


def _shifted(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A gather at places that depend on the sum or on the difference of two indices: parts of one row."""
    operand, indices = eqn.invars
    n, out = eqn.params["dimension_numbers"], eqn.outvars[0].aval.shape
    if indices.aval.ndim != 3 or indices.aval.shape[-1] != 1 or n.operand_batching_dims:
        return None
    *shape, _ = indices.aval.shape
    (axis,) = n.start_index_map
    others = tuple(a for a in range(len(out)) if a not in (axis, axis + 1))
    if (
        min(shape) < 2
        or size_of(shape) < LEAST_ELEMENTS * LEAST_ELEMENTS
        or n.collapsed_slice_dims != n.start_index_map
        or n.offset_dims != others
    ):
        return None
    part = r.reshape(indices, shape)
    start, falls, by, turned = sum_of_counts(r, part), False, 1, False
    places = known_integers(r, part) if start is None else None
    if start is not None:
        row = np.arange(start, start + sum(shape) - 1).astype(indices.aval.dtype)
    elif places is None:
        return None
    elif (places[1:, 1:] == places[:-1, :-1]).all():
        row, falls = np.concatenate([places[:0:-1, 0], places[0]]), True
    elif (places[1:, :-1] == places[:-1, 1:]).all():
        row = np.concatenate([places[0, :-1], places[:, -1]])
    else:
        turned = not (np.diff(places) == 1).all()
        places = places.T if turned else places
        by = int(places[1, 0]) - int(places[0, 0])
        if not by or not (np.diff(places) == 1).all() or not (np.diff(places[:, 0]) == by).all():
            return None
        falls, by = by < 0, abs(by)
        first, last = (places[-1], places[0]) if falls else (places[0], places[-1])
        if first[0] < 0 or last[-1] >= operand.aval.shape[axis]:
            return None
        row = np.arange(first[0], last[-1] + 1, dtype=indices.aval.dtype)
    if turned:
        shape = shape[::-1]
        out = (*out[:axis], *shape, *out[axis + 2 :])
    numbers = n._replace(offset_dims=tuple(a if a < axis else a - 1 for a in others))
    aval = indices.aval.update(shape=(len(row), 1))
    parts = r.emit("gather", operand, r.const(row[:, None], aval), **eqn.params | {"dimension_numbers": numbers})
    counting = r.emit("iota", dtype=np.dtype(np.int32), shape=(shape[0], 1), dimension=0, sharding=None)
    if falls:
        counting = r.emit("sub", r.full(counting.aval, shape[0] - 1), counting)
    if by > 1:
        counting = r.emit("mul", counting, r.full(counting.aval, by))
    found = r.emit(
        "gather",
        parts,
        counting,
        dimension_numbers=GatherDimensionNumbers(tuple(a for a in range(len(out)) if a != axis), (), (axis,)),
        slice_sizes=(*out[:axis], shape[1], *out[axis + 2 :]),
        unique_indices=True,
        indices_are_sorted=not falls,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )
    if not turned:
        return found
    order = (*range(axis), axis + 1, axis, *range(axis + 2, len(out)))
    return r.emit("transpose", found, permutation=order)


def _one_place(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A gather at places along several axes, the same in each of several arrays: at places of one axis, which are
    counted once. What is read for every array is one number then, where it would be one for each axis."""
    operand, indices = eqn.invars
    n, shape, out = eqn.params["dimension_numbers"], operand.aval.shape, eqn.outvars[0].aval
    axes = sorted(n.start_index_map)
    count = len(axes)
    if count < 2 or n.operand_batching_dims:
        return None
    first = axes[0]
    if axes != list(range(first, first + count)):
        return None
    if tuple(n.collapsed_slice_dims) != tuple(axes) or not n.offset_dims or n.offset_dims[0] != 0:
        return None
    *outer, _ = indices.aval.shape
    places, size = size_of(outer), size_of([shape[a] for a in axes])
    if places < LEAST_ELEMENTS * LEAST_ELEMENTS or out.size < ARRAYS * places or not 0 < size <= np.iinfo(np.int32).max:
        return None
    parts = index_parts(r, indices)
    # Of what is the same along some axis less is counted and read than of their sum.
    if any(_repeats(r, part) for part in parts):
        return None
    fill = GatherScatterMode.from_any(eqn.params["mode"]) is GatherScatterMode.FILL_OR_DROP
    at: Any = None
    inside: Any = None
    for axis, part in zip(n.start_index_map, parts):
        last = shape[axis] - 1
        if part.aval.dtype.itemsize < 4:
            part = r.emit("convert_element_type", part, new_dtype=np.dtype(np.int32), weak_type=False, sharding=None)
        low, high = r.full(part.aval, 0), r.full(part.aval, last)
        if fill:
            fits = r.emit("and", r.emit("ge", part, low), r.emit("le", part, high))
            inside = fits if inside is None else r.emit("and", inside, fits)
        part = r.emit("min", r.emit("max", part, low), high)
        if part.aval.dtype != np.int32:
            part = r.emit("convert_element_type", part, new_dtype=np.dtype(np.int32), weak_type=False, sharding=None)
        weight = size_of(shape[axis + 1 : first + count])
        part = part if weight == 1 else r.emit("mul", part, r.full(part.aval, weight))
        at = part if at is None else r.emit("add", at, part)
    if inside is not None:
        at = r.emit("select_n", inside, r.full(at.aval, -1), at)
    flat = (*shape[:first], size, *shape[first + count :])
    numbers = n._replace(collapsed_slice_dims=(first,), start_index_map=(first,))
    sizes = tuple(1 if a == first else m for a, m in enumerate(flat))
    params = eqn.params | {"dimension_numbers": numbers, "slice_sizes": sizes}
    return r.emit("gather", r.reshape(operand, flat), r.reshape(at, (*outer, 1)), **params)


def _repeats(r: Rewriter, part: Any) -> bool:
    """Whether indices are the same, or counted, along some axis."""
    while (eqn := r.definition(part, "reshape")) is not None:
        part = eqn.invars[0]
    return r.scalar(part) is not None or r.definition(part, "broadcast_in_dim", "iota") is not None


def sum_of_counts(r: Rewriter, part: Any) -> int | None:
    """The first element of whole numbers that count along both axes; None if it is not known that they do."""
    eqn = r.definition(part, "add", "select_n", "convert_element_type")
    if eqn is None:
        return None
    if part.aval.dtype.kind not in "iu":
        return None
    info = np.iinfo(part.aval.dtype)
    if eqn.primitive.name == "convert_element_type":
        start = sum_of_counts(r, eqn.invars[0])
        fits = start is not None and info.min <= start and start + sum(part.aval.shape) - 2 <= info.max
        return start if fits else None
    if eqn.primitive.name == "select_n":  # of an index that may count from the end, which this one does not
        below = r.definition(eqn.invars[0], "lt")
        if below is None or not r.is_scalar(below.invars[1], 0) or len(eqn.invars) != 3:
            return None
        start = sum_of_counts(r, below.invars[0])
        return sum_of_counts(r, eqn.invars[1]) if start is not None and start >= 0 else None
    counts = [counts_from(r, x) if x.aval.shape == part.aval.shape else None for x in eqn.invars]
    if counts[0] is None or counts[1] is None or {counts[0][0], counts[1][0]} != {0, 1}:
        return None
    start = counts[0][1] + counts[1][1]
    return start if start + sum(part.aval.shape) - 2 <= info.max else None


def known_places(r: Rewriter, part: Any) -> tuple[int | None, np.ndarray] | None:
    """(the axis along which indices differ, None if they are one, and those along it); None if that is not known."""
    number = r.scalar(part)
    if number is not None:
        return None, np.asarray([number], np.int64)
    axes = _long(part)  # of the indices, that those of more than one element of `part` lie along
    while len(axes) > 1 or part.aval.size > MAX_INTEGERS:
        eqn = r.definition(part, "broadcast_in_dim", "reshape")
        if eqn is None:
            break
        inner = eqn.invars[0]
        if eqn.primitive.name == "broadcast_in_dim":
            lie = dict(zip(_long(part), axes))
            axes = [lie[eqn.params["broadcast_dimensions"][a]] for a in _long(inner)]
        elif [inner.aval.shape[a] for a in _long(inner)] != [part.aval.shape[a] for a in _long(part)]:
            break
        part = inner
    values = known_integers(r, part)
    if values is None or not values.size:
        return None
    values = values.reshape([part.aval.shape[a] for a in _long(part)]).astype(np.int64)
    differ = [a for a in range(values.ndim) if (values != values.take([0], a)).any()] or [0]
    if values.ndim and len(differ) > 1:
        return None
    for a in reversed(range(values.ndim)):
        if a not in differ:
            values = values.take(0, a)
    return axes[differ[0]] if axes else None, values.reshape(-1)


def _long(x: Any) -> list[int]:
    """The axes of more than one element."""
    return [a for a, size in enumerate(x.aval.shape) if size != 1]


def _times(places: np.ndarray) -> int:
    """How often each place stands, one after the other, if all do so equally often; else 1."""
    same = np.diff(places) == 0
    if not same.any() or same.all():
        return 1
    times = int(np.argmin(same)) + 1
    if len(places) % times:
        return 1
    each = places.reshape(-1, times)
    return times if (each == each[:, :1]).all() else 1


def runs_of(places: np.ndarray) -> list[tuple[int, int, int]] | None:
    """(first, step, length) of stretches of equal steps; None if there are more than RUNS."""
    if len(places) <= RUNS and np.diff(places, 2).any():
        return [(int(k), 1, 1) for k in places]
    runs: list[tuple[int, int, int]] = []
    start = 0
    while start < len(places):
        if len(runs) == RUNS:
            return None
        rest = places[start:]
        steps = np.diff(rest)
        step = int(steps[0]) if len(steps) else 1
        other = np.flatnonzero(steps != step)
        length = int(other[0]) + 1 if len(other) else len(rest)
        if length == 1 or (length == 2 and len(rest) > 2):  # one by itself, or the last one of a run and the next
            step, length = 1, 1
        runs.append((int(rest[0]), step, length))
        start += length
    return runs


def _run(r: Rewriter, x: Any, axis: int, first: int, step: int, length: int) -> Any:
    """x[first], x[first + step], ... along an axis."""
    if step == 0:
        one = _run(r, x, axis, first, 1, 1)
        shape = [length if a == axis else n for a, n in enumerate(x.aval.shape)]
        kept = [a for a in range(len(shape)) if a != axis]
        return r.broadcast(r.reshape(one, [shape[a] for a in kept]), shape, kept)
    low, high, strides = [0] * x.aval.ndim, list(x.aval.shape), [1] * x.aval.ndim
    last = first + step * (length - 1)
    low[axis], high[axis], strides[axis] = min(first, last), max(first, last) + 1, abs(step)
    if high[axis] - low[axis] != x.aval.shape[axis] or abs(step) != 1:
        how = None if abs(step) == 1 else tuple(strides)
        x = r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=how)
    return x if step > 0 else r.emit("rev", x, dimensions=(axis,))


def _repeated(r: Rewriter, x: Any, axis: int, times: int) -> Any:
    """Each element along an axis several times."""
    shape = x.aval.shape
    wide = (*shape[: axis + 1], times, *shape[axis + 1 :])
    x = r.broadcast(x, wide, [a for a in range(len(wide)) if a != axis + 1])
    return r.reshape(x, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


GATHER_RULES: dict[str, tuple[Rule, ...]] = {"gather": (_gather, _shifted, _one_place)}
