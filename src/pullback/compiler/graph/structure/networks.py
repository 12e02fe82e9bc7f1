"""Short rows are sorted by a sorting network (odd-even transposition): elementwise work, which fuses and runs a row in
each lane.

    b = sort [x y z]                   =>      x, y = exchange x y; y, z = exchange y z; x, y = exchange x y; [x y z]
    b = order_statistics x             =>      the elements at its places, by the exchanges that they need
    k, v = sort keys values            =>      what follows the keys is exchanged with them
    v, i = top_k x                     =>      the same of x, the largest first, and where they are

An exchange puts the second of two elements first where it is less, or where only the first is no number. So equal
elements keep their order, zeros their signs, and NaN comes last: results are those of sorting by a call, bit for bit.

Rows of n elements take n (n - 1) / 2 exchanges, those that no result needs left out. Measured (Sapphire Rapids):
medians of 5 neighbours of 20,000 took 650 us by calls that sort a row each, now 11; of the 3 x 3 pixels around each of
256 x 256 2100, now 90; sorts of 20,000 rows of 5 200, now 12; the two largest of 2,000 rows of 8 72, now 4; sorts of
100,000 rows of 9 along the last axis (Zen 4) 2,610, now 232.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compiler.graph.fuse.access import ir_dtype
from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.ordering import largest_by_keys
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.ordering.row_calls import KINDS
from pullback.util import dtypes

MAX_ROW = 16  # elements of a row: 120 exchanges, in a fifth of the time of calls
MAX_FOLLOWED_ROW = 12  # the same where something follows the keys
MAX_FOLLOWED_FLOATS = 9  # and these are floats: vectors do not hold what is exchanged of more
MAX_WHOLE_ROW = 5  # elements side by side that are all wanted: more are sorted as columns
LEAST_ROWS = 32  # rows, of which lanes take one each
# Rows of more than 9 elements, and those sorted as columns: their code takes 40 to 220 ms to compile, a call 3 to 10,
# and saves 25 to 35 ns for each row. So many pay for it in some 50 runs.
MIN_ROWS_OF_MANY = 1 << 16
SQUARE = 9  # elements of a row that are few, as many as a square of 3 x 3 has: 36 exchanges
OPERANDS = 3  # the keys, and what follows them


def _sorted(r: Rewriter, eqn: JaxprEqn) -> Any:
    axis, keys = eqn.params["dimension"], eqn.invars[0].aval
    if eqn.params["num_keys"] > 1 or not _is_short(eqn, axis):
        return None
    n = keys.shape[axis]
    if len(eqn.invars) > 1 and n > (MAX_FOLLOWED_FLOATS if dtypes.kind_of(keys.dtype) == "f" else MAX_FOLLOWED_ROW):
        return None
    if n > MAX_WHOLE_ROW and axis == keys.ndim - 1 and not all(_is_cut(r, v) for v in eqn.outvars):
        return _sorted_columns(r, eqn) if keys.size >= MIN_ROWS_OF_MANY * n else None
    made = _exchanged(r, eqn.invars, axis, _swapped)
    return [r.emit("concatenate", *parts, dimension=axis) for parts in made]


def _sorted_columns(r: Rewriter, eqn: JaxprEqn) -> list[Any]:
    """Rows along the last axis that are all wanted, sorted as columns, which are written as whole vectors."""
    last = eqn.invars[0].aval.ndim - 1
    front, back = (last, *range(last)), (*range(1, last + 1), 0)
    columns = [r.emit("transpose", x, permutation=front) for x in eqn.invars]
    made = [r.emit("concatenate", *parts, dimension=0) for parts in _exchanged(r, columns, 0, _swapped)]
    return [r.emit("transpose", x, permutation=back) for x in made]


def _selected(r: Rewriter, eqn: JaxprEqn) -> Any:
    axis, places = eqn.params["axis"], eqn.params["places"]
    if not _is_short(eqn, axis):
        return None
    (parts,) = _exchanged(r, eqn.invars, axis, _swapped)
    return parts[places[0]] if len(places) == 1 else r.emit("concatenate", *(parts[k] for k in places), dimension=axis)


def _largest(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, k, axis = eqn.invars[0], eqn.params["k"], eqn.params.get("axis", -1)
    axis %= x.aval.ndim
    if not _is_short(eqn, axis) or not k:
        return None
    if dtypes.kind_of(x.aval.dtype) == "f":
        return largest_by_keys(r, eqn)
    places = r.emit("iota", dtype=np.dtype(np.int32), shape=x.aval.shape, dimension=axis, sharding=None)
    made = _exchanged(r, [x, places], axis, lambda r, x, y: r.emit("lt", x, y))
    return [r.emit("concatenate", *parts[:k], dimension=axis) for parts in made]


def _is_cut(r: Rewriter, x: Any) -> bool:
    """Whether nothing is read but slices."""
    readers = r.readers.get(x, ())
    return len(readers) == r.uses[x] and all(eqn.primitive.name == "slice" for eqn in readers)


def _is_short(eqn: JaxprEqn, axis: int) -> bool:
    """Whether there are many short rows, of elements that can be compared and chosen."""
    shape, size = eqn.invars[0].aval.shape, eqn.invars[0].aval.size
    n = shape[axis]
    if len(eqn.invars) > OPERANDS or not 1 < n <= MAX_ROW:
        return False
    if size < (LEAST_ROWS if n <= SQUARE else MIN_ROWS_OF_MANY) * n:
        return False
    return ir_dtype(eqn.invars[0].aval.dtype) in KINDS


def _exchanged(r: Rewriter, operands: Any, axis: int, swapped: Callable) -> list[list[Any]]:
    """The sorted elements of each operand, in the order of the first; `swapped` says of two whether they are not."""
    shape = operands[0].aval.shape
    rows: list[list[Any]] = [[_part(r, x, axis, k) for x in operands] for k in range(shape[axis])]
    # Each round compares every second pair of neighbours: after as many rounds as there are elements, all are in order.
    for start in range(len(rows)):
        for k in range(start % 2, len(rows) - 1, 2):
            rows[k], rows[k + 1] = _pair(r, rows[k], rows[k + 1], swapped)
    return [list(parts) for parts in zip(*rows)]


def _part(r: Rewriter, x: Any, axis: int, k: int) -> Any:
    low, high = [0] * x.aval.ndim, list(x.aval.shape)
    low[axis], high[axis] = k, k + 1
    return r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=None)


def _pair(r: Rewriter, first: list[Any], second: list[Any], swapped: Callable) -> tuple[list[Any], list[Any]]:
    """Two elements, each with what follows it, in order."""
    x, y = first[0], second[0]
    if len(first) == 1 and dtypes.kind_of(x.aval.dtype) in "iu":
        return [r.emit("min", x, y)], [r.emit("max", x, y)]
    swap = swapped(r, x, y)
    pairs = list(zip(first, second))
    return [r.emit("select_n", swap, a, b) for a, b in pairs], [r.emit("select_n", swap, b, a) for a, b in pairs]


def _swapped(r: Rewriter, x: Any, y: Any) -> Any:
    """Whether the second element is less, or only the first is no number."""
    if dtypes.kind_of(x.aval.dtype) != "f":
        return r.emit("lt", y, x)
    return r.emit("and", r.emit("not", r.emit("le", x, y)), r.emit("eq", y, y))


NETWORK_RULES: dict[str, tuple[Rule, ...]] = {
    "sort": (_sorted,),
    "order_statistics": (_selected,),
    "top_k": (_largest,),
}
