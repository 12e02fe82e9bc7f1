"""Where the elements of sliding windows lie, and loops over them.

    element k of window o is x'[o * stride + k * window_dilation - low]

`x'` is the operand with base_dilation - 1 gaps between its elements; in gaps and padding there is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.lax.products.conv import _windows
from pullback.lax.products.conv_shapes import dilated, window_count
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.errors import ArgumentError

WORTH_COPYING = 16  # elements of windows for each element of the operand


def window_shape(
    name: str,
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
) -> tuple[int, ...]:
    """The shape of the windows' results; TypeError for arguments that don't fit (of paddings, ValueError too)."""
    for what, values in (
        ("window_dimensions", window_dimensions),
        ("window_strides", window_strides),
        ("padding", padding),
        ("base_dilation", base_dilation),
        ("window_dilation", window_dilation),
    ):
        if len(values) != len(shape):
            error = ArgumentError if what == "padding" else TypeError
            raise error(
                f"{name} {what} must have one entry per dimension of the operand, got {tuple(values)} for operand "
                f"shape {tuple(shape)}"
            )
        if what != "padding" and any(v < 1 for v in values):
            raise TypeError(f"{name} {what} must be positive, got {tuple(values)}")
    return tuple(
        [
            window_count(dilated(n, bd), dilated(k, wd), s, lo, hi)
            for n, k, s, (lo, hi), bd, wd in zip(
                shape, window_dimensions, window_strides, padding, base_dilation, window_dilation
            )
        ]
    )


def view(x, fill, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """(out..., window flattened) of an operand."""
    found = _windows(x, window_dimensions, window_strides, padding, base_dilation, window_dilation, fill)
    return found.reshape(*found.shape[: x.ndim], math.prod(found.shape[x.ndim :]))


def place_of(ctx, params, index, offset, shape):
    """Where window element `offset` of window `index` lies in the operand, and whether it is an element of it."""
    b = ctx.b
    place, inside = [], None
    for i, k, n, s, (low, high), bd, wd, m in zip(
        index,
        offset,
        shape,
        params["window_strides"],
        params["padding"],
        params["base_dilation"],
        params["window_dilation"],
        params["window_dimensions"],
    ):
        at = b.op("add", b.op("mul", i, s), b.op("mul", k, wd)) if m != 1 else b.op("mul", i, s)
        at = b.op("sub", at, low) if low else at
        tests = []
        if bd > 1:
            tests.append(b.op("eq", b.op("floormod", at, bd), 0))
            at = b.op("floordiv", at, bd)
        if low > 0 or bd > 1:
            tests.append(b.op("ge", at, 0))
        if high > 0 or bd > 1:
            tests.append(b.op("lt", at, n))
        place.append(at)
        for test in tests:
            inside = test if inside is None else b.op("and", inside, test)
    return tuple(place), inside


def without_edges(ctx, params, source, neutral):
    """The operand with the neutral element in its gaps and padding, and the parameters of windows of that.

    To write the operand once more is little beside large windows, and all of them are computed alike; small ones have
    loops of their own at the edges (loops/passes/split.py). Measured (Zen 4): maxima over 7 x 7 of 128 x 128 bytes take
    25 us by windows that ask, 11 with loops for the edges, now 5; of float32 38, 48 and 18.
    """
    b, unit = ctx.b, (1,) * source.ndim
    asked = math.prod(params["window_dimensions"]) / math.prod(params["window_strides"])
    at_edges = any(map(any, params["padding"])) or params["base_dilation"] != unit
    if not at_edges or asked < WORTH_COPYING:
        return source, params
    copied = {**params, "window_dimensions": unit, "window_strides": unit, "window_dilation": unit}
    shape = window_shape("pad", source.shape, **copied)
    copy = ctx.temporary(source.dtype, shape)

    def element(index):
        place, inside = place_of(ctx, copied, index, (b.const("i64", 0),) * source.ndim, source.shape)
        x = ctx.load(source, place)
        ctx.store(copy, index, x if inside is None else b.select(inside, x, neutral))

    loops(b, shape, element)
    return copy, {**params, "padding": ((0, 0),) * source.ndim, "base_dilation": unit}


def batched_params(params, d):
    def insert(values, value):
        return (*values[:d], value, *values[d:])

    return {
        **params,
        "window_dimensions": insert(params["window_dimensions"], 1),
        "window_strides": insert(params["window_strides"], 1),
        "padding": insert(params["padding"], (0, 0)),
        "base_dilation": insert(params["base_dilation"], 1),
        "window_dilation": insert(params["window_dilation"], 1),
    }


_PARAMS = ("window_dimensions", "window_strides", "padding", "base_dilation", "window_dilation")


def window_cases(rng):
    def case(shape, window, strides, pads, base, dilation):
        return Case(
            (rng.normal(size=shape).astype(np.float32),), dict(zip(_PARAMS, (window, strides, pads, base, dilation)))
        )

    return [
        case((6,), (3,), (1,), ((0, 0),), (1,), (1,)),
        case((5, 6), (2, 3), (2, 1), ((1, 0), (0, 2)), (1, 1), (1, 1)),
        case((4, 5), (2, 2), (1, 2), ((1, 0), (1, 1)), (2, 1), (1, 2)),
        case((2, 4, 3), (1, 2, 1), (1, 2, 1), ((0, 0),) * 3, (1,) * 3, (1,) * 3),
        case((7, 9), (4, 5), (1, 1), ((2, 1), (-1, 3)), (2, 1), (1, 2)),
    ]
