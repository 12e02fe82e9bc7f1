"""Sliding windows as slices put side by side, in operations that have derivatives."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pullback.lax.records.families import *


def stacked_windows(
    x: Any,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    counts: Sequence[Any],
    together: bool = False,
) -> Any:
    """(..., *window, *counts): the elements of all windows over the last axes of x, which is padded already.

    One axis after another: each of a window's places is a slice of what the axes before it have given. `together`
    writes a slice for each place of the whole window instead: more of them, but no array between.
    """
    n = len(window)
    for axes in [range(n)] if together else [(k,) for k in range(n)]:
        slices = []
        for place in itertools.product(*(range(window[k]) for k in axes)):
            start, limit, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
            for k, at in zip(axes, place):
                axis = x.ndim - n + k
                start[axis], step[axis] = at * dilations[k], strides[k]
                limit[axis] = start[axis] + (counts[k] - 1) * strides[k] + 1
            slices.append(lax.expand_dims(lax.slice(x, start, limit, step), (x.ndim - n,)))
        x = lax.concatenate(slices, x.ndim - n)
    return x
