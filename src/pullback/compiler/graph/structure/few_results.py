"""A product with few results is a few sums, which share the loop over what is contracted.

    dot(x[k, 3], y[k, 2])     six sums of x[:, i] * y[:, j], in the same pass over x and y

A kernel of products has tiles of some sixteen by six results, which such a product fills by a tenth, and copies its
operands first. As sums they are fused with what makes the operands, and scheduled like any others.

Measured (AVX2, one thread): covariance of two series of 100,000 325 us, now 33; 3 x 50,000 times its transpose 355 us,
now 38, the transpose of 50,000 x 3 times it 400 us, now 51.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, size_of
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.loops.schedule.machine import NOMINAL

LONG_CONTRACTION = 1 << 9  # contracted elements from which a pass over them costs more than what each sum ends with


def few_results(r: Rewriter, eqn: JaxprEqn) -> Any:
    """The product as sums, if those of one matrix and the factors of one side fit into registers."""
    (x, y), (summed, batch) = eqn.invars, eqn.params["dimension_numbers"]
    out = eqn.outvars[0].aval
    sizes = [x.aval.shape[a] for a in batch[0]]
    if isinstance(x, Literal) or isinstance(y, Literal) or not out.size or out.dtype.kind == "b":
        return None
    count = out.size // size_of(sizes)
    if not 1 < count <= NOMINAL.registers or size_of([x.aval.shape[a] for a in summed[0]]) < LONG_CONTRACTION:
        return None
    sides = [_parts(r, operand, *axes) for operand, axes in zip((x, y), zip(batch, _in_order(*summed)))]
    if count + min(map(len, sides)) > NOMINAL.registers:  # sums are added to where they are, beside a factor of each
        return None
    wide = np.dtype(np.float32) if out.dtype.itemsize < 4 and out.dtype.kind not in "iu" else out.dtype
    sums = []
    for one in sides[0]:
        for other in sides[1]:
            product = r.emit("mul", *(r.convert(part, wide) for part in (one, other)))
            total = r.emit("reduce_sum", product, axes=tuple(range(len(sizes), product.aval.ndim)), out_sharding=None)
            sums.append(r.reshape(total, (*sizes, 1)))
    return r.reshape(r.convert(r.emit("concatenate", *sums, dimension=len(sizes)), out.dtype), out.shape)


def _in_order(of_x: Any, of_y: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Pairs of contracted axes as they lie in x."""
    pairs = sorted(zip(of_x, of_y))
    return tuple(a for a, _ in pairs), tuple(a for _, a in pairs)


def _parts(r: Rewriter, operand: Any, batch: tuple[int, ...], summed: tuple[int, ...]) -> list[Any]:
    """The array at each place of its free axes, its batch axes before the contracted ones."""
    free = [a for a in range(operand.aval.ndim) if a not in summed and a not in batch]
    if (order := (*free, *batch, *summed)) != tuple(range(operand.aval.ndim)):
        operand = r.emit("transpose", operand, permutation=order)
    sizes, rest = operand.aval.shape[: len(free)], operand.aval.shape[len(free) :]
    found = []
    for place in np.ndindex(*sizes):
        start = (*map(int, place), *(0 for _ in rest))
        limit = (*(int(p) + 1 for p in place), *rest)
        part = r.emit("slice", operand, start_indices=start, limit_indices=limit, strides=None)
        found.append(r.reshape(part, rest))
    return found
