"""Few elements of what was sorted: they are selected, which takes time in proportion to the number of elements.

    b = sort x; c = b[500:502]         =>      c = order_statistics[places=(500, 501)] x
    b = partition[kth=500] x; c = b[500:501]

Only where nothing else reads the sorted array.

Up to four elements are selected so. Measured: `partition(x, k)[k]` of 1e6 took 6.9 ms on one core, now 1.9, as the
median does.
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.ordering.row_calls import KINDS

FEW = 4  # elements along the sorted axis
LONG = 1 << 12  # elements along it, up to which selecting is sorting


def _selected(r: Rewriter, eqn: JaxprEqn) -> Any:
    sorted_ = eqn.invars[0]
    made = r.definition(sorted_, "sort", "partition")
    if made is None or len(made.invars) > 1 or eqn.params["strides"] is not None or r.uses[sorted_] != 1:
        return None
    x = made.invars[0]
    if ir_dtype(x.aval.dtype) not in KINDS:
        return None
    low, high = list(eqn.params["start_indices"]), list(eqn.params["limit_indices"])
    if made.primitive.name == "sort":
        axis = made.params["dimension"]
        if not 0 < high[axis] - low[axis] <= FEW or x.aval.shape[axis] <= LONG:
            return None
    else:
        axis = made.params["axis"]
        if (low[axis], high[axis]) != (made.params["kth"], made.params["kth"] + 1):
            return None
    found = r.emit("order_statistics", x, places=tuple(range(low[axis], high[axis])), axis=axis)
    low[axis], high[axis] = 0, high[axis] - low[axis]
    if found.aval.shape == eqn.outvars[0].aval.shape:
        return found
    return r.emit("slice", found, start_indices=tuple(low), limit_indices=tuple(high), strides=None)


ORDER_RULES: dict[str, tuple[Rule, ...]] = {"slice": (_selected,)}
