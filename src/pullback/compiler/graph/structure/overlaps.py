"""Windows that are added where they overlap are sums of a few shifted arrays: gradients of sliding windows, and frames
that are put together again.

    zeros.at[i[:, None] + arange(w)].add(u)             =>    pad(u[:, 0], (0, w - 1)) + pad(u[:, 1], (1, w - 2)) + ...
    zeros.at[s * i[:, None] + arange(w)].add(u)         =>    w / s such arrays, of s elements of each window

as many as windows meet one element. Updates that lie in memory are added one by one where the elements that are wanted
of each are few, and would be read from places apart; those that are computed from their place are computed where they
are added.

Measured (Zen 4): the gradient of products of 10,000 windows of 8 with a vector took 170 us, now 7; of maxima over
windows of 30 230, now 70.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.facts import index_parts, known_integers
from pullback.compiler.graph.structure.gathers import LEAST_ELEMENTS, known_places, sum_of_counts
from pullback.compiler.graph.structure.structure import written_out
from pullback.core.jaxpr import JaxprEqn
from pullback.core.lowering import Elementwise

MOST_TERMS = 32  # windows that meet one element


def _overlapped(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A scatter that adds windows at evenly spaced places along one axis."""
    operand, indices, updates = eqn.invars
    n, shape = eqn.params["dimension_numbers"], operand.aval.shape
    if len(n.scatter_dims_to_operand_dims) != 1 or n.operand_batching_dims:
        return None
    if updates.aval.size < LEAST_ELEMENTS * LEAST_ELEMENTS or not isinstance(operand.aval.dtype, np.dtype):
        return None
    (d,) = n.scatter_dims_to_operand_dims
    batch = [a for a in range(updates.aval.ndim) if a not in n.update_window_dims]
    windows = list(n.update_window_dims)
    (part,) = index_parts(r, indices)
    if n.inserted_window_dims == (d,) and len(batch) == 2:
        found = _steps(r, part)
        if found is None:
            return None
        start, step, turned = found
        rows, columns = reversed(batch) if turned else batch
    elif not n.inserted_window_dims and len(batch) == 1:
        columns, rows = windows.pop(d), batch[0]
        known = known_places(r, part)
        if known is None or known[0] is None or len(known[1]) < 2 or np.diff(known[1], 2).any():
            return None
        start, step = int(known[1][0]), int(known[1][1] - known[1][0])
    else:
        return None
    count, width = updates.aval.shape[rows], updates.aval.shape[columns]
    if [updates.aval.shape[a] for a in windows] != [size for a, size in enumerate(shape) if a != d]:
        return None
    if step == 1 and width > count:
        rows, columns, count, width = columns, rows, width, count
    if not 0 < step <= width or -(-width // step) > MOST_TERMS or (step < LEAST_ELEMENTS and _is_stored(r, updates)):
        return None
    if start < 0 or start + step * (count - 1) + width > shape[d]:
        return None
    product = r.definition(updates, "dot_general")
    if product is not None and not _is_stored(r, updates):  # of which parts are wanted
        updates = written_out(r, product)
    order = (*windows[:d], rows, columns, *windows[d:])
    if order != tuple(range(len(order))):
        updates = r.emit("transpose", updates, permutation=order)
    zero, total = r.full(operand.aval.update(shape=()), 0), None
    for first in range(0, width, step):
        low, high = [0] * len(order), list(updates.aval.shape)
        low[d + 1], high[d + 1] = first, min(first + step, width)
        term = r.emit("slice", updates, start_indices=tuple(low), limit_indices=tuple(high), strides=None)
        if high[d + 1] - first < step:
            edges = [(0, 0, 0)] * len(order)
            edges[d + 1] = (0, first + step - width, 0)
            term = r.emit("pad", term, zero, padding_config=tuple(edges))
        term = r.reshape(term, (*shape[:d], count * step, *shape[d + 1 :]))
        edges = [(0, 0, 0)] * len(shape)
        edges[d] = (start + first, shape[d] - start - first - count * step, 0)
        term = r.emit("pad", term, zero, padding_config=tuple(edges))
        total = term if total is None else r.emit("add", total, term)
    return total if r.is_scalar(operand, 0) else r.emit("add", operand, total)


def _steps(r: Rewriter, part: Any) -> tuple[int, int, bool] | None:
    """(start, step, whether indices are turned) of start + step * i + j; None if indices are not known to be so."""
    if part.aval.ndim != 2 or min(part.aval.shape) < 2:
        return None
    start = sum_of_counts(r, part)
    if start is not None:
        return start, 1, False
    places = known_integers(r, part)
    if places is None:
        return None
    places = places.astype(np.int64)
    for turned in (False, True):
        table = places.T if turned else places
        start, step = int(table[0, 0]), int(table[1, 0] - table[0, 0])
        rows, columns = np.arange(len(table)), np.arange(table.shape[1])
        if np.array_equal(table, start + step * rows[:, None] + columns):
            return start, step, turned
    return None


def _is_stored(r: Rewriter, atom: Any) -> bool:
    """Whether elements of an array are read from memory, for all that is known here."""
    eqn = r.definition(atom)
    if eqn is None:
        return True
    name = eqn.primitive.name
    if name == "dot_general":
        return bool(eqn.params["dimension_numbers"][0][0])
    return not (name == "broadcast_in_dim" or (isinstance(eqn.primitive.lower, Elementwise)))


OVERLAP_RULES: dict[str, tuple[Rule, ...]] = {"scatter-add": (_overlapped,)}
