"""Products of which a few places are wanted, and products with arrays that have numbers at a few places alone.

    dot(x, y)[i, j]                  =>    sum(x[i] * y[:, j].T, 1), a product along the places
    dot(x, y)[i]                     =>    dot(x[i], y), where there are fewer places than rows
    dot(zeros.at[i, j].add(u), y)    =>    zeros.at[i].add(u[:, None] * y[j])
    dot(zeros.at[i].add(u), y)       =>    zeros.at[i].add(dot(u, y))
    dot(zeros.at[:, j].add(u), y)    =>    dot(u, y[j])

The first is how sampled products are written (factors of a sparse matrix, scores of pairs), the others are what their
derivatives have, and how a sparse matrix is multiplied with by its entries. As in `terms.py`, what is zero by structure
stays zero: a NaN or an infinity that only zeros meet is not met.

Measured (Zen 4, one core each): 1,000 of the 10^6 elements of a product of 1000 x 64 by 64 x 1000 took 740 us, now 7.5;
10,000 of them 778, now 32. A matrix of 1000 x 1000 with 1,000 entries times 64 columns took 633, now 15; with 10,000
entries 684, now 148, and with 100,000 it is quicker as it is (823, by entries 2,680).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule, size_of
from pullback.compiler.graph.structure.facts import index_parts
from pullback.compiler.graph.structure.parts import axes_of_result
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode, default_fill
from pullback.lax.movement.scatter import ScatterDimensionNumbers

WANTED = 4  # times as many terms as a product has that are worth gathering what makes the places
ENTRIES = 32  # the same, where each term is added at its place
LEAST_TERMS = 1 << 12  # terms of a product: smaller ones are as quick


# ----------------------------------------------------------------------------------------- places that are wanted


def _places(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A gather of elements or rows of a product that nothing else reads is a product of gathered operands."""
    product, indices = eqn.invars
    dot = r.definition(product, "dot_general")
    if dot is None or r.uses[product] != 1 or not eqn.outvars[0].aval.size:
        return None
    n, shape, out = eqn.params["dimension_numbers"], product.aval.shape, eqn.outvars[0].aval
    mode = GatherScatterMode.from_any(eqn.params["mode"])
    indexed = (*n.start_index_map, *n.operand_batching_dims)
    sizes = tuple(1 if a in indexed else size for a, size in enumerate(shape))
    if set(n.collapsed_slice_dims) != set(n.start_index_map):
        return None
    if tuple(eqn.params["slice_sizes"]) != sizes:
        return None
    contract, batch = dot.params["dimension_numbers"]
    summed = size_of([dot.invars[0].aval.shape[a] for a in contract[0]])
    if product.aval.size * summed < LEAST_TERMS or out.size * WANTED > product.aval.size:
        return None
    outer = indices.aval.shape[:-1]
    parts = dict(zip(n.start_index_map, index_parts(r, indices)))
    for d, axis in zip(n.operand_batching_dims, n.start_indices_batching_dims):
        parts[d] = r.emit("iota", dtype=indices.aval.dtype, shape=outer, dimension=axis, sharding=None)

    lies = axes_of_result(dot)
    operands, axes = [], []  # axes: where each axis that is left lies now
    for side, x in enumerate(dot.invars):
        here = {a: parts[k] for a, k in lies[side].items() if k in parts}
        taken, left = _rows(r, x, here, _near(mode))
        operands.append(taken)
        axes.append(left)
    both = all(len(left) < x.aval.ndim for left, x in zip(axes, dot.invars))
    places = tuple(range(len(outer)))
    pairs = [(axes[0][a], axes[1][b]) for a, b in zip(*batch) if lies[0][a] not in parts]
    batched = [*zip(places, places)] * both + pairs
    numbers = (
        (tuple(axes[0][a] for a in contract[0]), tuple(axes[1][a] for a in contract[1])),
        (tuple(a for a, _ in batched), tuple(b for _, b in batched)),
    )
    found = r.emit("dot_general", *operands, **dot.params | {"dimension_numbers": numbers})
    # What each axis of the new product is: ("place", k), or an axis of the old product.
    named: list[Any] = [("place", k) for k in places] * both
    named += [k for k in range(len(batch[0])) if k not in parts]
    for side in (0, 1):
        gathered = len(axes[side]) < dot.invars[side].aval.ndim
        named += [("place", k) for k in places] * (gathered and not both)
        named += [k for a, k in sorted(lies[side].items()) if k >= len(batch[0]) and k not in parts]
    window = [a for a in range(len(shape)) if a not in indexed]
    wanted: list[Any] = [None] * out.ndim
    for a, d in zip(n.offset_dims, window):
        wanted[a] = d
    waiting = iter(places)
    wanted = [("place", next(waiting)) if each is None else each for each in wanted]
    found = _in_order(r, found, tuple(named.index(each) for each in wanted))
    if mode is not GatherScatterMode.FILL_OR_DROP:
        return found
    value = eqn.params["fill_value"]
    number = default_fill(out.dtype) if value is None else np.asarray(value).astype(out.dtype)
    along = [a for a in range(out.ndim) if a not in n.offset_dims]
    return _chosen(r, {a: parts[a] for a in n.start_index_map}, shape, found, number, along)


def _rows(r: Rewriter, x: Any, parts: Mapping[int, Any], mode: Any) -> tuple[Any, dict[int, int]]:
    """(elements or rows of x at places along some axes, those of places first; where each other axis of x lies now)."""
    rest = [a for a in range(x.aval.ndim) if a not in parts]
    if not parts:
        return x, {a: a for a in rest}
    along = sorted(parts)
    outer = parts[along[0]].aval.shape
    columns = [r.reshape(parts[a], (*outer, 1)) for a in along]
    indices = columns[0] if len(columns) == 1 else r.emit("concatenate", *columns, dimension=len(outer))
    numbers = GatherDimensionNumbers(tuple(range(len(outer), len(outer) + len(rest))), tuple(along), tuple(along))
    rows = r.emit(
        "gather",
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=tuple(1 if a in parts else size for a, size in enumerate(x.aval.shape)),
        unique_indices=False,
        indices_are_sorted=False,
        mode=mode,
        fill_value=None,
    )
    return rows, {a: len(outer) + k for k, a in enumerate(rest)}


def _near(mode: Any) -> Any:
    """The mode of a gather whose results at no place are not looked at."""
    return GatherScatterMode.CLIP if mode is GatherScatterMode.FILL_OR_DROP else mode


def _chosen(r: Rewriter, parts: Mapping[int, Any], shape: Sequence[int], x: Any, number: Any, axes: Any) -> Any:
    """x where all indices are places of an array, else a number; `axes`: where those of the indices lie in x."""
    inside = None
    for axis, part in parts.items():
        limits = (r.full(part.aval, 0), r.full(part.aval, shape[axis] - 1))
        for test in (r.emit("ge", part, limits[0]), r.emit("le", part, limits[1])):
            inside = test if inside is None else r.emit("and", inside, test)
    return r.emit("select_n", r.broadcast(inside, x.aval.shape, tuple(axes)), r.full(x.aval, number), x)


def _in_order(r: Rewriter, x: Any, order: Sequence[int]) -> Any:
    return x if tuple(order) == tuple(range(len(order))) else r.emit("transpose", x, permutation=tuple(order))


# ------------------------------------------------------------------------------------------- places that have numbers


def _entries(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product with zeros to which numbers or rows are added at places: of these numbers or rows alone."""
    contract, batch = eqn.params["dimension_numbers"]
    if batch[0]:
        return None
    for side in (0, 1):
        found = _with_entries(r, eqn, side, contract[side], contract[1 - side])
        if found is not None:
            return found
    return None


def _with_entries(r: Rewriter, eqn: JaxprEqn, side: int, mine: Sequence[int], its: Sequence[int]) -> Any:
    atom, y, out = eqn.invars[side], eqn.invars[1 - side], eqn.outvars[0].aval
    order = tuple(range(atom.aval.ndim))  # the axis of the sparse array that each axis of the operand is
    turned = r.definition(atom, "transpose")
    if turned is not None:
        order, atom = tuple(turned.params["permutation"]), turned.invars[0]
    made = r.definition(atom, "scatter-add")
    if made is None or not r.is_scalar(made.invars[0], 0) or not out.size:
        return None
    if not atom.aval.dtype == y.aval.dtype == out.dtype or out.dtype.kind not in "iufc" or out.dtype.itemsize < 4:
        return None
    _, indices, updates = made.invars
    n, shape = made.params["dimension_numbers"], atom.aval.shape
    mode = GatherScatterMode.from_any(made.params["mode"])
    indexed = n.scatter_dims_to_operand_dims
    if n.operand_batching_dims or set(n.inserted_window_dims) != set(indexed):
        return None
    window = [a for a in range(len(shape)) if a not in indexed]
    if [updates.aval.shape[a] for a in n.update_window_dims] != [shape[a] for a in window]:
        return None
    meets = {order[a]: b for a, b in zip(mine, its)}  # axis of the sparse array -> that of y that it is summed with
    summed = [a for a in indexed if a in meets]
    placed = [a for a in indexed if a not in meets]
    terms = atom.aval.size * size_of([s for a, s in enumerate(y.aval.shape) if a not in its])
    fewer = ENTRIES if placed and summed else WANTED
    if terms < LEAST_TERMS or not updates.aval.size or updates.aval.size * fewer > atom.aval.size:
        return None
    outer = indices.aval.shape[:-1]
    parts = dict(zip(indexed, index_parts(r, indices)))
    first = [a for a in range(updates.aval.ndim) if a not in n.update_window_dims]
    u = _in_order(r, updates, (*first, *n.update_window_dims))
    if summed and mode is GatherScatterMode.FILL_OR_DROP:
        u = _chosen(r, {a: parts[a] for a in summed}, shape, u, 0, range(len(outer)))
    rows, axes = _rows(r, y, {meets[a]: parts[a] for a in summed}, _near(mode))
    places = tuple(range(len(outer)))
    pairs = [(len(places) + k, axes[meets[a]]) for k, a in enumerate(window) if a in meets]
    alike = [*zip(places, places)]
    along, gone = (alike, pairs) if placed else ([], alike + pairs)
    along = along if summed else []
    if not summed and not placed:
        return None
    numbers = tuple((tuple(a for a, _ in each), tuple(b for _, b in each)) for each in (gone, along))
    product = r.emit("dot_general", u, rows, **eqn.params | {"dimension_numbers": numbers})
    # The axes of the product: places where these are left, those of the sparse array, those of y.
    own = [a for a in window if a not in meets]
    other = [a for a in range(y.aval.ndim) if a not in its]
    free = [order[a] for a in range(len(order)) if order[a] not in meets]  # as the old product has them
    named: list[Any] = [*placed, *own]
    if placed:
        rest = tuple(range(len(places), product.aval.ndim))
        where = [r.reshape(parts[a], (*outer, 1)) for a in placed]
        sizes = [*(shape[a] for a in placed), *product.aval.shape[len(places) :]]
        front = tuple(range(len(placed)))
        product = r.emit(
            "scatter-add",
            r.full(product.aval.update(shape=tuple(sizes), weak_type=False), 0),
            where[0] if len(where) == 1 else r.emit("concatenate", *where, dimension=len(outer)),
            product,
            dimension_numbers=ScatterDimensionNumbers(rest, front, front),
            indices_are_sorted=False,
            unique_indices=False,
            mode=mode,
            update_jaxpr=None,
            update_consts=(),
        )
    back = [named.index(a) for a in free]
    theirs = [len(named) + k for k in range(len(other))]
    return _in_order(r, product, (*theirs, *back) if side else (*back, *theirs))


PLACE_RULES: dict[str, tuple[Rule, ...]] = {"gather": (_places,), "dot_general": (_entries,)}
