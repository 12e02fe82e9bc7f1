"""Windows that slide along a dimension that is cut: convolutions, pooling, every second element, the reverse.

Each device needs what its own windows see: its part, and edges of its neighbours' parts.

    y[j] = sum over k of w[k] x[j * stride + k - low]        parts of x with `low` elements before them, and some behind
    dw[k] = sum over j of dy[j] x[j * stride + k - low]      the same, and the sum of all devices'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback.partition.factors import Axes, Cut, Sizes, extent
from pullback.partition.neighbours import identity_of
from pullback.util.record import NamedTuple

_POOLS = {"reduce_window_sum": "add", "reduce_window_max": "max", "reduce_window_min": "min"}
_WINDOW = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")
NAMES = (*_POOLS, "select_and_scatter_add", "rev", "slice", "pad")


class Along(NamedTuple):
    """What one device's windows see along a dimension: elements before and behind its part (negative: fewer), and the
    padding then.
    """

    low: int
    high: int
    padding: tuple[int, int]


def seen(
    sizes: tuple[int, int], count: int, window: int, stride: int, padding: Sequence[int], dilation: int, steps: int
) -> Along | None:
    """What windows see of a dimension of these sizes, before and after, in so many parts; None where they see more than
    the next parts, or parts of both do not go together. `steps` is from one element of a window to the next.
    """
    n, m = sizes
    if n % count or m % count or not n or not m or (m // count) * stride != (n // count) * dilation:
        return None
    part, made, low_pad = n // count, m // count, padding[0]
    low = low_pad // dilation
    high = ((made - 1) * stride + (window - 1) * steps - low_pad) // dilation - (part - 1)
    if max(low, high) > part or part + low + high <= 0:
        return None
    first = low_pad - low * dilation
    there = (part + low + high - 1) * dilation + 1
    return Along(low, high, (first, (made - 1) * stride + (window - 1) * steps + 1 - first - there))


def extended(x: Any, axes: Axes, d: int, along: Along, mesh: Sizes, fill: Any = 0) -> Any:
    """One device's part with edges of its neighbours'; beyond the ends of the array, `fill`."""
    count, n = extent(axes, mesh), x.shape[d]
    low, high, _ = along
    pieces = [x if low >= 0 and high >= 0 else lax.slice_in_dim(x, max(-low, 0), n - max(-high, 0), axis=d)]
    if low > 0:
        edge = lax.slice_in_dim(x, n - low, n, axis=d)
        pieces.insert(0, _of_neighbour(edge, axes, [(k, k + 1) for k in range(count - 1)], 0, fill))
    if high > 0:
        edge = lax.slice_in_dim(x, 0, high, axis=d)
        pieces.append(_of_neighbour(edge, axes, [(k + 1, k) for k in range(count - 1)], count - 1, fill))
    return lax.concatenate(pieces, d) if len(pieces) > 1 else pieces[0]


def _of_neighbour(edge: Any, axes: Axes, pairs: list[tuple[int, int]], last: int, fill: Any) -> Any:
    edge = lax.ppermute(edge, axes, pairs)  # zeros where nobody sends
    if np.ndim(fill) == 0 and not isinstance(fill, np.generic) and fill == 0:
        return edge
    is_end = lax.broadcast(lax.eq(lax.axis_index(axes), np.int32(last)), edge.shape)
    return lax.select(is_end, lax.full(edge.shape, fill, edge.dtype), edge)


def local(eqn: Any, operands: Sequence[Any], mesh: Sizes) -> tuple[Any, Cut] | None:
    """One device's part of the result of an equation, and its cut; None where this is none of these."""
    name, p = eqn.primitive.name, eqn.params
    x = operands[0]
    is_cut = [d for d, axes in enumerate(x.cut) if extent(axes, mesh) > 1]
    if not is_cut:
        return None
    if name in _POOLS:
        return _pooled(eqn, x, is_cut, mesh)
    if name == "rev" and any(d in is_cut for d in p["dimensions"]):
        return _reversed(eqn, x, mesh)
    shape, out = x.aval.shape, eqn.outvars[0].aval.shape
    parts = [extent(axes, mesh) for axes in x.cut]
    if name == "slice" and p["strides"] is not None:
        starts, strides = list(p["start_indices"]), p["strides"]
        limits = list(p["limit_indices"])
        for d in is_cut:
            step, size = strides[d], shape[d] // parts[d]
            if size % step or starts[d] >= step or out[d] * step != shape[d]:
                return None
            limits[d] = size
        return eqn.primitive.bind(x.part, **{**p, "limit_indices": tuple(limits)}), x.cut
    if name == "pad" and any(p["padding_config"][d] != (0, 0, 0) for d in is_cut):
        if any(
            low < 0 or high < 0 or low + high != step for low, high, step in (p["padding_config"][d] for d in is_cut)
        ):
            return None
        return eqn.primitive.bind(x.part, operands[1].part, **p), x.cut
    if name == "select_and_scatter_add":
        keys = operands[1]
        for d in [d for d, axes in enumerate(keys.cut) if extent(axes, mesh) > 1]:
            n, m = keys.aval.shape[d], shape[d]
            apart = p["window_dimensions"][d] <= p["window_strides"][d] and tuple(p["padding"][d]) == (0, 0)
            plain = p["base_dilation"][d] == p["window_dilation"][d] == 1
            if not (apart and plain and m * p["window_strides"][d] == n):
                return None
        return eqn.primitive.bind(x.moved(keys.cut, mesh), keys.part, **p), keys.cut
    return None


def _pooled(eqn: Any, x: Any, is_cut: Sequence[int], mesh: Sizes) -> tuple[Any, Cut] | None:
    p = eqn.params
    padding, found = list(p["padding"]), {}
    for d in is_cut:
        sizes = x.aval.shape[d], eqn.outvars[0].aval.shape[d]
        size, stride, pads, dilation, steps = (p[key][d] for key in _WINDOW)
        along = seen(sizes, extent(x.cut[d], mesh), size, stride, pads, dilation, steps)
        if along is None:
            return None
        padding[d], found[d] = along.padding, along
    y, fill = x.part, identity_of(_POOLS[eqn.primitive.name], x.aval.dtype)
    for d, along in found.items():
        y = extended(y, x.cut[d], d, along, mesh, fill)
    return eqn.primitive.bind(y, **{**p, "padding": tuple(padding)}), x.cut


def _reversed(eqn: Any, x: Any, mesh: Sizes) -> tuple[Any, Cut]:
    (y,) = [eqn.primitive.bind(x.part, **eqn.params)]
    for d in eqn.params["dimensions"]:
        count = extent(x.cut[d], mesh)
        if count > 1:
            y = lax.ppermute(y, x.cut[d], [(k, count - 1 - k) for k in range(count)])
    return y, x.cut


class Convolution(NamedTuple):
    """How a convolution is done by parts: the cuts that its operands get, what its windows see along dimensions of the
    image, and of the result the cut and the axes over which it is a sum.
    """

    image: Cut
    kernel: Cut
    along: dict[int, Along]
    out: Cut
    summed: Axes


def convolution(eqn: Any, image: Cut, kernel: Cut, mesh: Sizes) -> Convolution | None:
    """How it is done; None where positions of the image are not cut, or windows see too much."""
    p = eqn.params
    numbers = p["dimension_numbers"]
    lhs, rhs, out = (v.aval.shape for v in (*eqn.invars[:2], eqn.outvars[0]))
    spatial = [k for k, d in enumerate(numbers.lhs_spec[2:]) if extent(image[d], mesh) > 1]
    if not spatial or p["batch_group_count"] != 1:
        return None
    in_kernel = [k for k in spatial if extent(kernel[numbers.rhs_spec[2 + k]], mesh) > 1]
    if in_kernel and in_kernel != spatial:
        return None
    cuts: list[list[Axes]] = [[()] * len(s) for s in (lhs, rhs, out)]
    found, summed, used = {}, (), set()
    for k in spatial:
        d, e, o = numbers.lhs_spec[2 + k], numbers.rhs_spec[2 + k], numbers.out_spec[2 + k]
        axes = image[d]
        count = extent(axes, mesh)
        stride, dilation, steps = (p[key][k] for key in ("window_strides", "lhs_dilation", "rhs_dilation"))
        if in_kernel:  # the derivative by the kernel: what is summed over is cut
            along = (
                _of_summed(lhs[d], rhs[e], out[o], count, stride, p["padding"][k][0], steps) if dilation == 1 else None
            )
            cuts[1][e], summed = axes, (*summed, *axes)
        else:
            along = seen((lhs[d], out[o]), count, rhs[e], stride, p["padding"][k], dilation, steps)
            cuts[2][o] = axes
        if along is None:
            return None
        found[d] = along
        cuts[0][d] = axes
        used |= set(axes)
    free = tuple(a for a in image[numbers.lhs_spec[0]] if a not in used)
    cuts[0][numbers.lhs_spec[0]] = cuts[2][numbers.out_spec[0]] = free
    used |= set(free)
    features = tuple(a for a in image[numbers.lhs_spec[1]] if a not in used)
    if features and features == kernel[numbers.rhs_spec[1]] and p["feature_group_count"] == 1:
        cuts[0][numbers.lhs_spec[1]] = cuts[1][numbers.rhs_spec[1]] = features
        summed = (*summed, *features)
    return Convolution(tuple(cuts[0]), tuple(cuts[1]), found, tuple(cuts[2]), summed)


def _of_summed(n: int, window: int, m: int, count: int, stride: int, low: int, steps: int) -> Along | None:
    """What a part of the window sees, where it is as large as the image: of n elements, with m places to be at."""
    if n % count or window % count or (window // count) * steps != n // count:
        return None
    part = n // count
    high = (window // count - 1) * steps + (m - 1) * stride - low - (part - 1)
    return None if max(low, high) > part or part + low + high <= 0 else Along(low, high, (0, 0))


def convolved(eqn: Any, image: Any, kernel: Any, how: Convolution, mesh: Sizes) -> Any:
    """One device's part of a convolution, or its term of it."""
    p = eqn.params
    padding = list(p["padding"])
    x = image.moved(how.image, mesh)
    for d, along in how.along.items():
        x = extended(x, how.image[d], d, along, mesh)
        padding[p["dimension_numbers"].lhs_spec.index(d) - 2] = along.padding
    return eqn.primitive.bind(x, kernel.moved(how.kernel, mesh), **{**p, "padding": tuple(padding)})
