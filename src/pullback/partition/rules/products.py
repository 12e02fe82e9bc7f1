"""Contractions, convolutions, and what is done for each of a batch: linear algebra of matrices, random bits of keys."""

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
    places = tuple(zip(numbers.lhs_spec[2:], numbers.out_spec[2:], strict=True))
    return Factors(tuple(naming.sizes), tuple(dims[:2]), (dims[2],), combined, follows=places)


def over_batches(eqn: Any) -> Factors | None:
    """All dimensions before the last two of the first operand are batches, of every operand and result."""
    return _over_leading(eqn, len(shape_of(eqn.invars[0])) - 2)


def _over_rows(eqn: Any) -> Factors | None:
    """All dimensions before the last one of the first operand, such as the words of a key, are batches."""
    return _over_leading(eqn, len(shape_of(eqn.invars[0])) - 1)


def _over_typed_keys(eqn: Any) -> Factors | None:
    """Each key by itself; what results have more for each is whole."""
    return _over_leading(eqn, len(shape_of(eqn.invars[0])))


def _between_elements_and_words(eqn: Any) -> Factors | None:
    return _over_leading(eqn, min(len(shape_of(eqn.invars[0])), len(shape_of(eqn.outvars[0]))))


def _over_leading(eqn: Any, count: int) -> Factors | None:
    batch = shape_of(eqn.invars[0])[:count]
    if any(shape_of(v)[:count] != batch for v in (*eqn.invars, *eqn.outvars)):
        return None
    naming = Naming()

    def dims(v: Any) -> Any:
        return naming.dims([d if d < count else None for d in range(len(shape_of(v)))], shape_of(v))

    ins, outs = tuple(map(dims, eqn.invars)), tuple(map(dims, eqn.outvars))
    return Factors(tuple(naming.sizes), ins, outs)


def _solve(eqn: Any) -> Factors | None:
    """Batches, and the right-hand sides, each of which is solved by itself."""
    matrices, given = map(shape_of, eqn.invars[:2])
    if matrices[:-2] != given[:-2]:
        return None
    naming, batch = Naming(), range(len(given) - 2)
    sides: list[Any] = [None, "side"] if eqn.params["left_side"] else ["side", None]
    out = naming.dims([*batch, *sides], given)
    return Factors(tuple(naming.sizes), (naming.dims([*batch, None, None], matrices), out), (out,))


def _solve_rows(eqn: Any) -> Factors:
    """Three diagonals, then right-hand sides in columns."""
    diagonal, given = shape_of(eqn.invars[0]), shape_of(eqn.invars[3])
    naming, batch = Naming(), range(len(diagonal) - 1)
    out = naming.dims([*batch, None, "side"], given)
    return Factors(tuple(naming.sizes), (naming.dims([*batch, None], diagonal),) * 3 + (out,), (out,))


RULES = {
    "dot_general": _dot,
    "conv_general_dilated": _conv,
    "triangular_solve": _solve,
    "tridiagonal_solve": _solve_rows,
    "cholesky": over_batches,
    **dict.fromkeys(["positions", "lu_pivots_to_permutation"], _over_rows),
    **dict.fromkeys([f"threefry_{kind}" for kind in ("bits", "split", "fold_in", "gamma")], _over_rows),
    "philox_bits": _over_rows,
    **dict.fromkeys([f"random_{kind}" for kind in ("bits", "split", "fold_in", "seed")], _over_typed_keys),
    **dict.fromkeys(["random_wrap", "random_unwrap", "from_edtype", "to_edtype"], _between_elements_and_words),
}
