"""From one cut of an array to another: the collective operations that it takes, and the bytes that they move.

    slice       an axis that cuts nothing yet cuts a dimension: nothing is moved
    all_to_all  an axis that cuts one dimension cuts another one instead
    all_gather  an axis cuts no longer

Only the fastest axis of a dimension is taken away or added, so that parts stay runs of consecutive elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.lax.collectives.moves import all_gather_p, all_to_all_p, reduce_scatter_p
from pullback.lax.collectives.sums import pmax_p, pmin_p, psum_p
from pullback.lax.movement.dynamic import dynamic_slice_p
from pullback.partition.factors import Axes, Cut, Sizes, extent, local_shape
from pullback.util.dtypes import is_extended
from pullback.util.record import NamedTuple


class Step(NamedTuple):
    """One operation: `kind`, the axis, the dimension that it cuts no longer, and the one that it cuts then."""

    kind: str
    axis: Any
    source: int
    target: int


def steps(cut: Cut, wanted: Cut) -> list[Step]:
    """The operations that lead from one cut to the other."""
    now = [list(axes) for axes in cut]
    found: list[Step] = []

    def right(d: int) -> bool:
        return tuple(now[d]) == wanted[d][: len(now[d])]

    def missing(d: int) -> Any:
        return wanted[d][len(now[d])] if right(d) and len(now[d]) < len(wanted[d]) else None

    while any(tuple(axes) != target for axes, target in zip(now, wanted, strict=True)):
        used = {a for axes in now for a in axes}
        step = None
        for d in range(len(now)):
            if (a := missing(d)) is not None and a not in used:
                step = Step("slice", a, -1, d)
                break
        if step is None:
            loose = [d for d in range(len(now)) if not right(d)]
            for d in loose:
                target = next((e for e in range(len(now)) if e != d and missing(e) == now[d][-1]), None)
                if target is not None:
                    step = Step("all_to_all", now[d][-1], d, target)
                    break
            else:
                step = Step("all_gather", now[loose[0]][-1], loose[0], -1)
        if step.source >= 0:
            now[step.source].pop()
        if step.target >= 0:
            now[step.target].append(step.axis)
        found.append(step)
    return found


def bytes_of(aval: Any, cut: Cut, mesh: Sizes) -> int:
    """Bytes of one device's part."""
    itemsize = 8 if is_extended(aval.dtype) else aval.dtype.itemsize
    return math.prod(local_shape(aval.shape, cut, mesh)) * itemsize


def price(aval: Any, cut: Cut, wanted: Cut, mesh: Sizes) -> int:
    """The bytes that a device receives."""
    if cut == wanted:
        return 0
    size, moved = bytes_of(aval, cut, mesh), 0
    for kind, axis, _, _ in steps(cut, wanted):
        n = mesh[axis]
        if kind == "slice":
            size //= n
        elif kind == "all_gather":
            moved += size * (n - 1)
            size *= n
        else:
            moved += size * (n - 1) // n
    return moved


def move(x: Any, cut: Cut, wanted: Cut, mesh: Sizes) -> Any:
    """One device's part of an array, cut otherwise."""
    if cut == wanted:
        return x
    for kind, axis, source, target in steps(cut, wanted):
        n = mesh[axis]
        if kind == "slice":
            x = _sliced(x, axis, target, n)
        elif kind == "all_gather":
            x = all_gather_p.bind(
                x, axis_name=(axis,), all_gather_dimension=source, axis_size=n, tiled=True, axis_index_groups=None
            )
        else:
            x = all_to_all_p.bind(
                x,
                axis_name=(axis,),
                split_axis=target,
                concat_axis=source,
                tiled=True,
                axis_size=n,
                axis_index_groups=None,
            )
    return x


def _sliced(x: Any, axis: Any, dimension: int, n: int) -> Any:
    size = x.shape[dimension] // n
    starts: list[Any] = [np.int32(0)] * x.ndim
    starts[dimension] = lax.mul(lax.axis_index(axis), np.int32(size))
    return dynamic_slice_p.bind(x, *starts, slice_sizes=(*x.shape[:dimension], size, *x.shape[dimension + 1 :]))


_COMBINE = {"sum": psum_p, "max": pmax_p, "min": pmin_p}


def combine(x: Any, kind: str, axes: Axes, cut: Cut, wish: Cut | None, mesh: Sizes) -> tuple[Any, Cut]:
    """What is left to be reduced over axes, reduced, and how it is cut then: where an axis of a sum shall cut a
    dimension of the result, each device gets its part only.
    """
    dealt, rest, cut = _dealt(kind, axes, cut, wish)
    for a, d in dealt:
        x = reduce_scatter_p.bind(
            x, axis_name=(a,), scatter_dimension=d, axis_size=mesh[a], tiled=True, axis_index_groups=None
        )
    if rest:
        (x,) = _COMBINE[kind].bind(x, axes=rest, axis_index_groups=None)
    return x, cut


def _dealt(kind: str, axes: Axes, cut: Cut, wish: Cut | None) -> tuple[list[tuple[Any, int]], Axes, Cut]:
    """(axes with the dimensions that they shall cut, the other axes, the cut then) of what is left to be reduced."""
    dealt, now = [], [list(a) for a in cut]
    for a in axes if kind == "sum" else ():
        d = next((d for d, w in enumerate(wish or ()) if [*now[d], a] == list(w[: len(now[d]) + 1])), None)
        if d is not None:
            now[d].append(a)
            dealt.append((a, d))
    return dealt, tuple(a for a in axes if a not in [b for b, _ in dealt]), tuple(map(tuple, now))


def combine_price(aval: Any, kind: str, axes: Axes, cut: Cut, wish: Cut | None, mesh: Sizes) -> tuple[int, Cut]:
    """(the bytes that a device receives where parts are reduced over axes, the cut of the result)."""
    dealt, rest, after = _dealt(kind, axes, cut, wish)
    size, moved = bytes_of(aval, cut, mesh), 0
    for a, _ in dealt:
        moved += size * (mesh[a] - 1) // mesh[a]
        size //= mesh[a]
    return moved + size * (extent(rest, mesh) - 1), after
