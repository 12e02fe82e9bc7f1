"""Contractions, convolutions, and linear algebra over batches of matrices."""

from __future__ import annotations

from typing import Any

from pullback.partition.factors import Factors
from pullback.partition.rules import Naming, shape_of


def _dot(eqn: Any) -> Factors:
    """Factors: batch, contracted (parts are summed), and free dimensions of either side."""
    naming, (lhs, rhs) = Naming(), map(shape_of, eqn.invars[:2])
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = eqn.params["dimension_numbers"]
    left: list[Any] = [("l", d) for d in range(len(lhs))]
    right: list[Any] = [("r", d) for d in range(len(rhs))]
    for kind, ls, rs in (("b", lhs_batch, rhs_batch), ("s", lhs_sum, rhs_sum)):
        for a, b in zip(ls, rs, strict=True):
            left[a] = right[b] = (kind, a)
    dims = naming.dims(left, lhs), naming.dims(right, rhs)
    free = [dims[0][d] for d in range(len(lhs)) if d not in (*lhs_sum, *lhs_batch)]
    free += [dims[1][d] for d in range(len(rhs)) if d not in (*rhs_sum, *rhs_batch)]
    out = tuple([dims[0][d] for d in lhs_batch] + free)
    return Factors(tuple(naming.sizes), dims, (out,), {dims[0][d][0]: "sum" for d in lhs_sum})


def _conv(eqn: Any) -> Factors | None:
    """Factors: images, output features, and input features, over which parts are summed."""
    p, (image, kernel) = eqn.params, map(shape_of, eqn.invars[:2])
    numbers, out = p["dimension_numbers"], shape_of(eqn.outvars[0])
    names: list[list[Any]] = [[None] * len(image), [None] * len(kernel), [None] * len(out)]
    if p["batch_group_count"] == 1:
        names[0][numbers.lhs_spec[0]] = names[2][numbers.out_spec[0]] = "n"
    if p["feature_group_count"] == p["batch_group_count"] == 1:
        names[1][numbers.rhs_spec[0]] = names[2][numbers.out_spec[1]] = "o"
        names[0][numbers.lhs_spec[1]] = names[1][numbers.rhs_spec[1]] = "i"
    naming = Naming()
    dims = [naming.dims(n, shape) for n, shape in zip(names, (image, kernel, out), strict=True)]
    combined = {naming.numbers["i"]: "sum"} if "i" in naming.numbers else {}
    return Factors(tuple(naming.sizes), tuple(dims[:2]), (dims[2],), combined)


def over_batches(eqn: Any) -> Factors | None:
    """All dimensions before the last two of the first operand are batches, of every operand and result."""
    shape = shape_of(eqn.invars[0])
    count = len(shape) - 2
    batch = shape[:count]
    if any(shape_of(v)[:count] != batch for v in (*eqn.invars, *eqn.outvars)):
        return None
    naming = Naming()

    def dims(v: Any) -> Any:
        return naming.dims([d if d < count else None for d in range(len(shape_of(v)))], shape_of(v))

    ins, outs = tuple(map(dims, eqn.invars)), tuple(map(dims, eqn.outvars))
    return Factors(tuple(naming.sizes), ins, outs)


RULES = {
    "dot_general": _dot,
    "conv_general_dilated": _conv,
    "triangular_solve": over_batches,
    "cholesky": over_batches,
}
