"""Products with one-hot rows are gathers, products with what has one-hot columns are sums of segments.

    dot(convert(i[:, None] == iota), x)      =>    rows i of x, zeros where i counts no row
    dot(convert(i[:, None] == iota).T, x)    =>    zeros, with each row of x added to the row that i says
    sum(convert(i[:, None] == iota), 0)      =>    how often i says each row
    sum(where(i[:, None] == iota, x, 0), 0)  =>    zeros, with each element of x added where i says
    eye(n)[i]                                =>    convert(i[:, None] == iota)

As in `terms.py`, what is zero by structure stays zero: a NaN or an infinity in a row that is not chosen is not met.

Measured: products with one-hot rows, 4096 rows of 1000, have 160 times JAX's speed, before 0.6. `one_hot(i, 1000).T @
c`, 4096 rows of 16, took 3.3 ms of processor time, now 0.04, and sums of one-hot rows, which are counts, 225 us, now 7.
More than 128 rows are added in a wider type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.compiler.graph.structure.facts import counts_along, identity
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode
from pullback.lax.movement.scatter import ScatterDimensionNumbers
from pullback.lax.movement.scatter_sums import CROWD_OF_MANY

FEW_CLASSES = 8  # classes up to which a product fuses with what is around it
COUNTED = 32  # classes up to which they are counted as quickly by a mask for each
SUMMED = 16  # places up to which sums by a mask for each are quicker than one element after the other
FEW_ROWS, FEW_ELEMENTS, ROW = 16, 64, 8  # classes up to which a mask for each is as quick, for rows of ROW, for others
MANY_PER_PLACE = 64  # elements for each place from which on that is so
ONE_BY_ONE = 128  # elements that may be added one after the other; more of them are added in a wider type
WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64", "complex64": "complex128"}


def _dot(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product along the classes of one-hot rows."""
    (contract, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    if batch[0] or len(contract[0]) != 1:
        return None
    for side in (0, 1):
        one, other = eqn.invars[side], eqn.invars[1 - side]
        axis, along = contract[side][0], contract[1 - side][0]
        if one.aval.shape[axis] <= FEW_CLASSES or not one.aval.size or other.aval.dtype != out.dtype:
            continue
        chosen = _chosen(r, one, axis)
        if chosen is None:
            continue
        rest = other.aval.ndim - 1
        start = 0 if side else chosen.aval.ndim
        sizes = tuple(1 if a == along else n for a, n in enumerate(other.aval.shape))
        return r.emit(
            "gather",
            other,
            r.reshape(chosen, (*chosen.aval.shape, 1)),
            dimension_numbers=GatherDimensionNumbers(tuple(range(start, start + rest)), (along,), (along,)),
            slice_sizes=sizes,
            unique_indices=False,
            indices_are_sorted=False,
            mode=GatherScatterMode.FILL_OR_DROP,
            fill_value=0,
        )
    return None


def _chosen(r: Rewriter, atom: Any, axis: int) -> Any:
    """Indices such that an array is 1 where its index along `axis` is that, and 0 elsewhere; None if it is not so."""
    eqn = r.definition(atom)
    if eqn is None:
        return None
    name = eqn.primitive.name
    if name == "transpose":
        permutation = eqn.params["permutation"]
        inner = _chosen(r, eqn.invars[0], permutation[axis])
        if inner is None:
            return None
        left = [a for k, a in enumerate(permutation) if k != axis]
        order = tuple(a - (a > permutation[axis]) for a in left)
        return r.emit("transpose", inner, permutation=order) if order != tuple(range(len(order))) else inner
    if name == "convert_element_type":
        return _equal(r, eqn.invars[0], axis) if eqn.invars[0].aval.dtype == np.bool_ else None
    if name == "select_n" and len(eqn.invars) == 3 and r.is_scalar(eqn.invars[1], 0) and r.is_scalar(eqn.invars[2], 1):
        return _equal(r, eqn.invars[0], axis)
    return None


def _equal(r: Rewriter, atom: Any, axis: int) -> Any:
    """What is compared with the index along `axis`, without that axis; None if `atom` is no such comparison."""
    eqn = r.definition(atom, "eq", "reshape")
    if eqn is None:
        return None
    if eqn.primitive.name == "reshape":
        given, shape = eqn.invars[0].aval.shape, atom.aval.shape
        long, longer = ([a for a, n in enumerate(each) if n != 1] for each in (shape, given))
        if axis not in long or [shape[a] for a in long] != [given[a] for a in longer]:
            return None
        inner = _equal(r, eqn.invars[0], longer[long.index(axis)])
        return None if inner is None else r.reshape(inner, (*shape[:axis], *shape[axis + 1 :]))
    for counting, other in (eqn.invars, reversed(eqn.invars)):
        dtype = counting.aval.dtype
        if not counting.aval.ndim or dtype.kind not in "iu" or counting.aval.shape[axis] - 1 > np.iinfo(dtype).max:
            continue  # a scalar is compared with all elements
        if counts_along(r, counting) == axis and (found := without_axis(r, other, axis)) is not None:
            return found
    return None


def without_axis(r: Rewriter, atom: Any, axis: int) -> Any:
    """An array that is the same all along `axis`, without it; None if that is not known."""
    shape = (*atom.aval.shape[:axis], *atom.aval.shape[axis + 1 :])
    eqn = r.definition(atom, "broadcast_in_dim")
    if eqn is None:
        return None
    dims, inner = eqn.params["broadcast_dimensions"], eqn.invars[0]
    if axis in dims:
        at = dims.index(axis)
        if inner.aval.shape[at] != 1:
            return None
        inner = r.reshape(inner, (*inner.aval.shape[:at], *inner.aval.shape[at + 1 :]))
        dims = (*dims[:at], *dims[at + 1 :])
    return r.broadcast(inner, shape, [d - (d > axis) for d in dims])


def _segments(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product over all axes of one-hot rows but that of the classes."""
    (contract, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    if batch[0]:
        return None
    for side in (0, 1):
        one, other = eqn.invars[side], eqn.invars[1 - side]
        if other.aval.dtype != out.dtype or not other.aval.size:
            continue
        found = _classes(r, one, contract[side])
        if found is None:
            continue
        axis, chosen = found
        where = dict(zip(*contract)) if side == 0 else dict(zip(*reversed(contract)))
        summed = [where[a] for a in range(one.aval.ndim) if a != axis]
        rest = [a for a in range(other.aval.ndim) if a not in summed]
        order = (*summed, *rest)
        rows = r.emit("transpose", other, permutation=order) if order != tuple(range(len(order))) else other
        total = _added(r, chosen, rows, one.aval.shape[axis])
        if side == 0 or not rest:
            return total
        return r.emit("transpose", total, permutation=(*range(1, len(rest) + 1), 0))
    return None


def _counted(r: Rewriter, eqn: JaxprEqn) -> Any:
    """How often each class is chosen: a sum over all axes of one-hot rows but that of the classes."""
    x, dtype = eqn.invars[0], eqn.invars[0].aval.dtype
    found = _classes(r, x, eqn.params["axes"])
    if found is None or dtype.kind not in "iufcV":
        return None
    if dtype.kind in "iuf" and dtype.itemsize == 4 and x.aval.shape[found[0]] <= COUNTED:
        return None
    axis, chosen = found
    ones = r.full(chosen.aval.update(dtype=np.dtype(np.int32), weak_type=False), 1)
    return _as_aval(r, _added(r, chosen, ones, x.aval.shape[axis]), eqn.outvars[0].aval)


def _grouped(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Sums of the elements of each class, over all axes of the mask that chooses them but that of the classes."""
    x, axes = eqn.invars[0], set(eqn.params["axes"])
    chosen_where = r.definition(x, "select_n")
    if chosen_where is None or len(chosen_where.invars) != 3 or not x.aval.size or x.aval.dtype.kind not in "iufc":
        return None
    mask, zero, y = chosen_where.invars
    wide = r.definition(mask, "broadcast_in_dim")
    inner, dims = (
        (mask, tuple(range(x.aval.ndim))) if wide is None else (wide.invars[0], wide.params["broadcast_dimensions"])
    )
    left = set(dims) - axes
    if not r.is_scalar(zero, 0) or not axes <= set(dims) or len(left) != 1 or mask.aval.shape != x.aval.shape:
        return None
    (axis,) = left
    rest = [a for a in range(x.aval.ndim) if a not in dims]
    each = math.prod(x.aval.shape[a] for a in rest)
    if x.aval.shape[axis] <= (FEW_ROWS if each >= ROW else FEW_ELEMENTS):
        return None
    if inner.aval.shape != tuple(x.aval.shape[a] for a in dims):
        return None
    chosen, rows = _equal(r, inner, dims.index(axis)), without_axis(r, y, axis)
    if chosen is None or rows is None:
        return None
    order = tuple(a - (a > axis) for a in (*(d for d in dims if d != axis), *rest))
    if order != tuple(range(len(order))):
        rows = r.emit("transpose", rows, permutation=order)
    total = _added(r, chosen, rows, x.aval.shape[axis])
    back = tuple([axis, *rest].index(a) for a in sorted([axis, *rest]))
    return total if back == tuple(range(len(back))) else r.emit("transpose", total, permutation=back)


def _masked(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Many numbers added at few places: a sum for each place, in lanes and threads."""
    (operand, indices, updates), n = eqn.invars, eqn.params["dimension_numbers"]
    dtype = operand.aval.dtype
    if operand.aval.ndim != 1 or not operand.aval.size or dtype.kind not in "iuf" or dtype.itemsize < 4:
        return None
    if GatherScatterMode.from_any(eqn.params["mode"]) is GatherScatterMode.CLIP or n.update_window_dims:
        return None
    start = r.scalar(operand)
    if dtype.kind == "f" and (start is None or (start == 0 and np.signbit(start))):
        return None  # of zeros that are added to -0 the sum alone does not say the sign
    count, index = operand.aval.shape[0], indices.aval.dtype
    if count > SUMMED or updates.aval.size < MANY_PER_PLACE * count or updates.aval.dtype != dtype:
        return None
    if indices.aval.shape != (*updates.aval.shape, 1) or index.kind not in "iu":
        return None
    shape = (count, updates.aval.size)
    places = r.broadcast(r.reshape(indices, shape[1:]), shape, (1,))
    counting = r.emit("iota", dtype=index, shape=shape, dimension=0, sharding=None)
    terms = r.broadcast(r.reshape(updates, shape[1:]), shape, (1,))
    chosen = r.emit("select_n", r.emit("eq", places, counting), r.full(terms.aval, 0), terms)
    return r.emit("add", operand, r.emit("reduce_sum", chosen, axes=(1,), out_sharding=None))


def _classes(r: Rewriter, x: Any, summed: Sequence[int]) -> tuple[int, Any] | None:
    """(the axis that is not summed, indices as `_chosen` says along it); None if x is not one-hot so."""
    left = set(range(x.aval.ndim)) - set(summed)
    if len(left) != 1 or not x.aval.size:
        return None
    (axis,) = left
    if x.aval.shape[axis] <= FEW_CLASSES:
        return None
    chosen = _chosen(r, x, axis)
    return None if chosen is None else (axis, chosen)


def _added(r: Rewriter, chosen: Any, rows: Any, count: int) -> Any:
    """zeros[count, ...] with each of `rows` added at its place; those whose place is not there are left out."""
    aval, dims = rows.aval, chosen.aval.ndim
    # Scatters into few places are wide inside (`scatter_sums.py`), without a wide copy of what is added.
    narrow = chosen.aval.size <= ONE_BY_ONE or CROWD_OF_MANY * count <= chosen.aval.size
    wide = aval.dtype if narrow else np.dtype(WIDER.get(aval.dtype.name, aval.dtype))
    shape = (count, *aval.shape[dims:])
    total = r.emit(
        "scatter-add",
        r.full(aval.update(shape=shape, dtype=wide, weak_type=False), 0),
        r.reshape(chosen, (*chosen.aval.shape, 1)),
        _as_aval(r, rows, aval.update(dtype=wide, weak_type=False)),
        dimension_numbers=ScatterDimensionNumbers(tuple(range(dims, aval.ndim)), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=False,
        mode=GatherScatterMode.FILL_OR_DROP,
        update_jaxpr=None,
        update_consts=(),
    )
    return _as_aval(r, total, aval.update(shape=shape))


def _as_aval(r: Rewriter, x: Any, aval: Any) -> Any:
    return r.convert(x, aval.dtype, aval.weak_type)


def _rows_of_identity(r: Rewriter, eqn: JaxprEqn) -> Any:
    """Rows of an identity are computed from their numbers, and are known to be one-hot."""
    (operand, indices), out = eqn.invars, eqn.outvars[0].aval
    n, mode = eqn.params["dimension_numbers"], GatherScatterMode.from_any(eqn.params["mode"])
    if operand.aval.ndim != 2 or not identity(r, operand) or mode is GatherScatterMode.FILL_OR_DROP or not out.size:
        return None
    if n.operand_batching_dims or len(n.start_index_map) != 1 or n.collapsed_slice_dims != n.start_index_map:
        return None
    size = operand.aval.shape[0]
    if max(eqn.params["slice_sizes"]) != size or size > np.iinfo(indices.aval.dtype).max:
        return None
    (axis,) = n.offset_dims
    chosen = r.reshape(indices, indices.aval.shape[:-1])
    if chosen.aval.shape:
        bounds = (r.full(chosen.aval.update(shape=()), k) for k in (0, size - 1))
        chosen = r.emit("clamp", next(bounds), chosen, next(bounds))
    counting = r.emit("iota", dtype=chosen.aval.dtype, shape=out.shape, dimension=axis, sharding=None)
    kept = [a for a in range(out.ndim) if a != axis]
    equal = r.emit("eq", r.broadcast(chosen, out.shape, kept), counting)
    return _as_aval(r, equal, out)


ONE_HOT_RULES: dict[str, tuple[Rule, ...]] = {
    "gather": (_rows_of_identity,),
    "dot_general": (_dot, _segments),
    "reduce_sum": (_counted, _grouped),
    "scatter-add": (_masked,),
}
