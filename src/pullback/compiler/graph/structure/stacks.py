"""Equal parts of one array, put together in their order, are the array with its axes moved.

    stack([x[:, 0], x[:, 1], x[:, 2]])              =>    transpose(x)
    concatenate(split(x, 8, axis=1), axis=0)        =>    reshape(transpose(reshape(x)))
    stack([f(x[k::4]) for k in range(4)], 1)        =>    what f does to each part, done to all: reshapes, transposes

Parts are blocks side by side, or every n-th element from each start on; what they go through on the way may be anything
that moves elements, the same for all.

Parts that overlap, or leave gaps, are read at places that are counted; so are those of which there are too many to
choose among (`joins.py`), while few stay slices, which say more.

    stack([x[5 * k : 5 * k + 9] for k in range(40)])    =>    x[5 * arange(40)[:, None] + arange(9)]

Measured: patches of 8 x 8 of 8 x 256 x 256 x 3 by `split` and `stack` took 1.6 ms in 107 nests, by a reshape and a
transpose 0.1. 31 pieces of 256 of 16 series of 4096 took 28 us and 57 ms to compile, now 5 and 12.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode

LEAST_PARTS = 3  # parts


def _joined(r: Rewriter, eqn: JaxprEqn) -> Any:
    return _together(r, eqn, _parts)


def windows(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A concatenation, or a stack, of slices of one array that start at equal distances, as a gather; or None."""
    return _together(r, eqn, _windows)


def _together(r: Rewriter, eqn: JaxprEqn, of_slices: Callable[[Rewriter, list[JaxprEqn]], Any]) -> Any:
    """What `of_slices` makes of the slices that are put together, with all that they go through on the way."""
    ((_, axis),) = eqn.params.items()
    parts, count = list(eqn.invars), len(eqn.invars)
    if count < LEAST_PARTS or not eqn.outvars[0].aval.size:
        return None
    moves: list[tuple[str, Any]] = []
    while True:
        made = _made_alike(r, parts)
        if made is None:
            return None
        if made[0].primitive.name == "slice":
            break
        name = made[0].primitive.name
        moves.append((name, made[0].params["permutation"] if name == "transpose" else made[0].outvars[0].aval.shape))
        parts = [each.invars[0] for each in made]
    all_parts = of_slices(r, made)
    if all_parts is None:
        return None
    for name, how in reversed(moves):
        if name == "transpose":
            all_parts = r.emit("transpose", all_parts, permutation=(0, *(a + 1 for a in how)))
        else:
            all_parts = r.reshape(all_parts, (count, *how))
    order = (*range(1, axis + 1), 0, *range(axis + 1, all_parts.aval.ndim))
    if order != tuple(range(len(order))):
        all_parts = r.emit("transpose", all_parts, permutation=order)
    return r.reshape(all_parts, eqn.outvars[0].aval.shape)


def _made_alike(r: Rewriter, parts: Sequence[Any]) -> list[JaxprEqn] | None:
    """The equations of parts, if all are slices of one array, or all move arrays of one shape in one way."""
    made: list[JaxprEqn] = []
    for part in parts:
        eqn = r.definition(part, "slice", "reshape", "transpose")
        if eqn is None:
            return None
        first = made[0] if made else eqn
        if eqn.primitive is not first.primitive or part.aval.shape != parts[0].aval.shape:
            return None
        given = eqn.invars[0]
        if eqn.primitive.name == "slice":
            is_alike = given is first.invars[0]
        else:  # a reshape may read in another order, which is not looked at
            is_alike = given.aval.shape == first.invars[0].aval.shape and eqn.params == first.params
            is_alike &= eqn.params.get("dimensions") is None
        if not is_alike:
            return None
        made.append(eqn)
    return made


def _parts(r: Rewriter, slices: list[JaxprEqn]) -> Any:
    """Slices of one array along a new leading axis; None if they are no equal parts of it in their order."""
    found = _regular(slices)
    if found is None:
        return None
    axis, by = found
    x, shape, count = slices[0].invars[0], slices[0].outvars[0].aval.shape, len(slices)
    steps = slices[0].params["strides"] or (1,) * len(shape)
    step, size, low = steps[axis], shape[axis], list(slices[0].params["start_indices"])
    # Blocks of one array that touch, or elements that take turns.
    if not (step == 1 and by == size) and not (by == 1 and step == count):
        return None
    high = [s + (n - 1) * t + 1 for s, n, t in zip(low, shape, steps)]
    high[axis] = low[axis] + count * size
    strides = tuple(1 if a == axis else t for a, t in enumerate(steps))
    x = _cut(r, x, low, high, strides)
    parted = (count, size) if step == 1 else (size, count)
    x = r.reshape(x, (*shape[:axis], *parted, *shape[axis + 1 :]))
    first = axis if step == 1 else axis + 1
    order = (first, *(a for a in range(x.aval.ndim) if a != first))
    return x if first == 0 else r.emit("transpose", x, permutation=order)


def _cut(r: Rewriter, x: Any, low: Sequence[int], high: Sequence[int], strides: Sequence[int]) -> Any:
    """A slice of an array, or the array where that is all of it."""
    if not any(low) and tuple(high) == x.aval.shape and max(strides) == 1:
        return x
    how = None if max(strides) == 1 else tuple(strides)
    return r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=how)


def _regular(slices: list[JaxprEqn]) -> tuple[int, int] | None:
    """The axis along which slices of one shape start at equal distances, and that distance; None if they do not."""
    ndim = len(slices[0].outvars[0].aval.shape)
    starts = [list(eqn.params["start_indices"]) for eqn in slices]
    steps = slices[0].params["strides"] or (1,) * ndim
    if any((eqn.params["strides"] or (1,) * ndim) != steps for eqn in slices):
        return None
    moved = [a for a in range(ndim) if starts[1][a] != starts[0][a]]
    if len(moved) != 1:
        return None
    (axis,) = moved
    by = starts[1][axis] - starts[0][axis]
    for k, start in enumerate(starts):
        if start != [*starts[0][:axis], starts[0][axis] + k * by, *starts[0][axis + 1 :]]:
            return None
    return axis, by


def _windows(r: Rewriter, slices: list[JaxprEqn]) -> Any:
    """Slices of one array along a new leading axis, each of neighbours; None if they are not."""
    found = _regular(slices)
    if found is None:
        return None
    axis, by = found
    x, shape, count = slices[0].invars[0], slices[0].outvars[0].aval.shape, len(slices)
    steps = slices[0].params["strides"] or (1,) * len(shape)
    if steps[axis] != 1:
        return None
    low = [0 if a == axis else first for a, first in enumerate(slices[0].params["start_indices"])]
    high = [first + (n - 1) * t + 1 for first, n, t in zip(low, shape, steps)]
    high[axis] = x.aval.shape[axis]
    x = _cut(r, x, low, high, steps)
    places = r.emit("iota", dtype=np.dtype(np.int32), shape=(count, 1), dimension=0, sharding=None)
    places = r.emit("mul", places, r.full(places.aval, by))
    places = r.emit("add", places, r.full(places.aval, slices[0].params["start_indices"][axis]))
    return r.emit(
        "gather",
        x,
        places,
        dimension_numbers=GatherDimensionNumbers(tuple(range(1, len(shape) + 1)), (), (axis,)),
        slice_sizes=shape,
        unique_indices=abs(by) >= shape[axis],
        indices_are_sorted=by > 0,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


STACK_RULES: dict[str, tuple[Rule, ...]] = {"concatenate": (_joined,)}
