"""What arrays are known to be: the index along an axis, a diagonal mask, integers that the program determines."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise, Pointwise

MOST = 1 << 20  # elements of known integers: each operation on them takes a millisecond
STEPS = 100  # equations that they are computed by


def counts_along(r: Rewriter, atom: Any) -> int | None:
    """The axis whose index the elements of an array are; None if it is not known to be one."""
    eqn = r.definition(atom)
    if eqn is None:
        return None
    match eqn.primitive.name:
        case "iota":
            return int(eqn.params["dimension"])
        case "broadcast_in_dim":
            dims, inner = eqn.params["broadcast_dimensions"], eqn.invars[0]
            axis = counts_along(r, inner)
            # What is repeated along the axis that it counts along does not count.
            return None if axis is None or inner.aval.shape[axis] != atom.aval.shape[dims[axis]] else int(dims[axis])
        case "reshape":
            given, shape = eqn.invars[0].aval.shape, atom.aval.shape
            axis = counts_along(r, eqn.invars[0])
            before, after = ([k for k, n in enumerate(each) if n != 1] for each in (given, shape))
            if axis not in before or [given[k] for k in before] != [shape[k] for k in after]:
                return None
            return after[before.index(axis)]
        case "add" | "max" if any(r.is_scalar(a, 0) for a in eqn.invars):
            return counts_along(r, next(a for a in eqn.invars if not r.is_scalar(a, 0)))
        case "select_n" if len(eqn.invars) == 3:  # of an index that may count from the end, which this one does not
            below = r.definition(eqn.invars[0], "lt")
            if below is not None and r.is_scalar(below.invars[1], 0) and counts_along(r, below.invars[0]) is not None:
                return counts_along(r, eqn.invars[1])
        case "convert_element_type":
            axis = counts_along(r, eqn.invars[0])
            dtype = atom.aval.dtype
            if axis is not None and dtype.kind in "iu" and atom.aval.shape[axis] - 1 <= np.iinfo(dtype).max:
                return axis
    return None


def index_parts(r: Rewriter, indices: Any) -> list[Any]:
    """The indices along each dimension that start vectors, which lie along the last axis of `indices`, speak of."""
    *shape, count = indices.aval.shape
    if count == 1:
        return [r.reshape(indices, shape)]
    joined = r.definition(indices, "concatenate", "stack")
    if joined is not None and len(joined.invars) == count and len(shape) in joined.params.values():
        return [r.reshape(part, shape) for part in joined.invars]
    parts = []
    for k in range(count):
        low, high = [0] * len(shape) + [k], [*shape, k + 1]
        part = r.emit("slice", indices, start_indices=tuple(low), limit_indices=tuple(high), strides=None)
        parts.append(r.reshape(part, shape))
    return parts


def diagonal(r: Rewriter, atom: Any) -> tuple[int, int] | None:
    """The two axes along which the indices are equal exactly where an array of bools is true; None if it is no such."""
    eqn = r.definition(atom, "eq")
    if eqn is None or atom.aval.ndim < 2:
        return None
    a, b = (counts_along(r, each) for each in eqn.invars)
    if a is None or b is None or a == b or atom.aval.shape[a] != atom.aval.shape[b]:
        return None
    return min(a, b), max(a, b)


def known_integers(r: Rewriter, atom: Any) -> np.ndarray | None:
    """The elements of an array of integers that is computed of indices and constants alone; None for others."""
    if atom.aval.dtype.kind not in "iu" or atom.aval.size > MOST:
        return None
    values: dict[Any, np.ndarray] = {}
    waiting = [atom]
    steps = 0
    while waiting:
        each = waiting[-1]
        if type(each) is Literal or each in values:
            waiting.pop()
            continue
        if each in r.consts:
            values[waiting.pop()] = np.asarray(r.consts[each])
            continue
        eqn = r.definition(each)
        if eqn is None or not _is_plain(eqn):
            return None
        missing = [x for x in eqn.invars if type(x) is not Literal and x not in values]
        if missing:
            waiting += missing
            steps += len(missing)
            if steps > STEPS:
                return None
            continue
        given = [np.asarray(x.val, x.aval.dtype) if type(x) is Literal else values[x] for x in eqn.invars]
        with np.errstate(all="ignore"):
            values[waiting.pop()] = np.asarray(eqn.primitive.reference(*given, **eqn.params))
    found = values.get(atom)
    return found if found is not None and found.shape == atom.aval.shape else None


def _is_plain(eqn: JaxprEqn) -> bool:
    """Whether an equation computes whole numbers or bools, element by element, and not too many."""
    primitive = eqn.primitive
    return (
        len(eqn.outvars) == 1
        and isinstance(primitive.lower, (Elementwise, Pointwise))
        and primitive.has_rule("reference")
        and all(x.aval.dtype.kind in "iub" and x.aval.size <= MOST for x in (*eqn.invars, *eqn.outvars))
    )
