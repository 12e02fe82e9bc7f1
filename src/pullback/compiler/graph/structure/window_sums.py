"""A convolution all of whose weights are one number is that number times sums over windows.

    conv(x, full((1, 1, 15, 15), c))      =>      reduce_window_sum(c*x, (1, 1, 15, 15))

Such sums go along one dimension after the other, and need neither products nor copies of what is around the edges.
Means over windows are written so wherever there is a function for convolutions and none for windows.

Measured (Zen 4): means over 7 x 7 of 512 x 500 numbers 247 us, now 72; over 15 x 15 1,190, now 145.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.reductions.windows import one_by_one

TYPES = ("f4", "f8", "i4", "u4")


def window_sums(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A convolution of each channel by itself with equal weights, as sums."""
    x, w = eqn.invars
    p, out = eqn.params, eqn.outvars[0].aval
    lhs, rhs, places = p["dimension_numbers"]
    weight = r.scalar(w)
    alone = w.aval.shape[rhs[1]] == 1 and w.aval.shape[rhs[0]] == p["feature_group_count"] == x.aval.shape[lhs[1]]
    if weight is None or not alone or p["batch_group_count"] != 1 or any(n != 1 for n in p["lhs_dilation"]):
        return None
    if not out.size or x.aval.dtype != out.dtype or np.dtype(out.dtype).str[1:] not in TYPES or not np.isfinite(weight):
        return None
    if any(n < 0 for low_high in p["padding"] for n in low_high):
        return None

    def in_x(rest: Any, sizes: Any) -> tuple[Any, ...]:
        found = [rest] * x.aval.ndim
        for axis, size in zip(lhs[2:], sizes):
            found[axis] = size
        return tuple(found)

    sums = x if weight == 1 else r.emit("mul", x, r.full(x.aval, weight))
    window = {
        "window_dimensions": in_x(1, [w.aval.shape[a] for a in rhs[2:]]),
        "window_strides": in_x(1, p["window_strides"]),
        "padding": in_x((0, 0), [tuple(each) for each in p["padding"]]),
        "base_dilation": in_x(1, p["lhs_dilation"]),
        "window_dilation": in_x(1, p["rhs_dilation"]),
    }
    for each in one_by_one(window):
        sums = r.emit("reduce_window_sum", sums, **each)
    order = [0] * x.aval.ndim
    for axis, place in zip(lhs, places):
        order[place] = axis
    return sums if order == sorted(order) else r.emit("transpose", sums, permutation=tuple(order))
