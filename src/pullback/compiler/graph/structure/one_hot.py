"""Products with one-hot rows are gathers.

    dot(convert(i[:, None] == iota), x)    =>    rows i of x, zeros where i counts no row

As in `terms.py`, what is zero by structure stays zero: a NaN or an infinity in a row that is not chosen is not met.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode

FEW = 8  # classes up to which a product fuses with what is around it


def _dot(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product along the classes of one-hot rows."""
    (contract, batch), out = eqn.params["dimension_numbers"], eqn.outvars[0].aval
    if batch[0] or len(contract[0]) != 1:
        return None
    for side in (0, 1):
        one, other = eqn.invars[side], eqn.invars[1 - side]
        axis, along = contract[side][0], contract[1 - side][0]
        if one.aval.shape[axis] <= FEW or not one.aval.size or other.aval.dtype != out.dtype:
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
    eqn = r.definition(atom, "eq")
    if eqn is None:
        return None
    for counting, other in (eqn.invars, reversed(eqn.invars)):
        dtype = counting.aval.dtype
        if dtype.kind not in "iu" or counting.aval.shape[axis] - 1 > np.iinfo(dtype).max:
            continue
        if _counts(r, counting, axis) and (found := _without(r, other, axis)) is not None:
            return found
    return None


def _counts(r: Rewriter, atom: Any, axis: int) -> bool:
    """Whether the elements of an array are their index along `axis`."""
    eqn = r.definition(atom)
    if eqn is None:
        return False
    if eqn.primitive.name == "iota":
        return bool(eqn.params["dimension"] == axis)
    if eqn.primitive.name == "broadcast_in_dim":
        dims, inner = eqn.params["broadcast_dimensions"], eqn.invars[0]
        if axis not in dims or inner.aval.shape[dims.index(axis)] != atom.aval.shape[axis]:
            return False
        return _counts(r, inner, dims.index(axis))
    if eqn.primitive.name == "reshape":
        sizes = [n for n in atom.aval.shape if n != 1]
        return sizes == [atom.aval.shape[axis]] and eqn.invars[0].aval.ndim == 1 and _counts(r, eqn.invars[0], 0)
    return False


def _without(r: Rewriter, atom: Any, axis: int) -> Any:
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


ONE_HOT_RULES: dict[str, tuple[Rule, ...]] = {"dot_general": (_dot,)}
