"""Folds over windows that lie side by side are reductions over blocks.

    reduce_window_sum(x, (2, 2), strides=(2, 2))      =>    reduce_sum(reshape(x, n/2, 2, m/2, 2), (1, 3))

What makes their elements, and what is made of their results, is computed in the same loops then. What lies in memory
anyway is folded by itself, as before: a gradient of means over 2 x 2 of an argument of 28 x 28 stored rows of 14 means
that it loaded at once, 48 us, now 27.

Measured (Zen 4): maxima over 2 x 2 of `maximum(2 * x + 1, 0)`, 16 x 64 x 64 x 16, 82 us, now 44; sums over 2 x 2 of an
array of 256 x 256 that is rolled 9.8, now 4.4.
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.pieces import sliced
from pullback.core.jaxpr import JaxprEqn
from pullback.core.lowering import Elementwise, Pointwise
from pullback.lax.reductions.windows import lie_side_by_side

FOLDS = ("sum", "max", "min")


def _blocks(r: Rewriter, eqn: JaxprEqn) -> Any:
    (x,), out = eqn.invars, eqn.outvars[0].aval
    if not lie_side_by_side(**eqn.params) or any(map(any, eqn.params["padding"])) or not out.size:
        return None
    made = r.definition(x)
    if made is None or not isinstance(made.primitive.lower, (Elementwise, Pointwise)):
        return None
    sizes = eqn.params["window_dimensions"]
    x = sliced(r, x, [0] * out.ndim, [n * k for n, k in zip(out.shape, sizes)], None)
    shape: list[int] = []
    axes: list[int] = []
    for n, k in zip(out.shape, sizes):
        shape.append(n)
        if k > 1:
            axes.append(len(shape))
            shape.append(k)
    name = eqn.primitive.name.replace("window_", "")
    how = {"out_sharding": None} if name == "reduce_sum" else {}
    return r.emit(name, r.reshape(x, shape), axes=tuple(axes), **how)


POOLING_RULES: dict[str, tuple[Rule, ...]] = {f"reduce_window_{name}": (_blocks,) for name in FOLDS}
