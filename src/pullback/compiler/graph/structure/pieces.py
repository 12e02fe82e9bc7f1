"""Slices of joined arrays are joined slices, and slices of slices are slices: what is between needs no memory.

    concatenate(x, y)[k:]       =>    concatenate(x[k:], y), or y[k - n:]
    x[a:][b:]                   =>    x[a + b:]
    concatenate(x[:k], x[k:])   =>    x

An array that is padded by its own rows and columns, and then read at several places, is what it is here for: stencils.

Measured: a five-point stencil on a torus of 1000 x 1500, by wrapping and slices, takes half of the time, as by rolls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule
from pullback.core.jaxpr import JaxprEqn
from pullback.core.lowering import Elementwise
from pullback.loops.passes.split import MAX_OPS

MAX_EQUATIONS = 12  # equations that are looked at to see what is computed of a slice
DEAR_SLICE = 16  # additions
MAX_PIECES = 4  # joined arrays that a slice reaches into: of more it reads what they are joined to


def _joined(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A slice of a concatenation all of whose users take slices of it, or that lies in one of its operands."""
    x = eqn.invars[0]
    joined = r.definition(x, "concatenate")
    if joined is None:
        return None
    axis, strides = joined.params["dimension"], eqn.params["strides"]
    if strides is not None and strides[axis] != 1:
        return None
    low, high = list(eqn.params["start_indices"]), list(eqn.params["limit_indices"])
    found: list[tuple[Any, int, int]] = []
    start = 0
    for operand in joined.invars:
        stop = start + operand.aval.shape[axis]
        if low[axis] < stop and start < high[axis]:
            found.append((operand, max(low[axis] - start, 0), min(high[axis], stop) - start))
        start = stop
    if not found or len(found) > MAX_PIECES or (len(found) > 1 and (not is_only_sliced(r, x) or _is_dear(r, x))):
        return None
    parts = []
    for operand, first, last in found:
        low[axis], high[axis] = first, last
        parts.append(sliced(r, operand, low, high, strides))
    if len(parts) == 1:
        return parts[0] if parts[0] is found[0][0] else instead(r, eqn, parts[0])
    return _join(r, eqn, parts, axis)


def _flat(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A concatenation without others among its operands that nobody else reads, and without neighbours in one array."""
    axis = eqn.params["dimension"]
    parts: list[Any] = []
    changed = False
    for operand in eqn.invars:
        inner = r.definition(operand, "concatenate")
        own = inner is not None and inner.params["dimension"] == axis and r.uses[operand] <= 1
        changed |= own
        for part in inner.invars if own and inner is not None else (operand,):
            whole = _continued(r, parts[-1], part, axis) if parts else None
            if whole is None:
                parts.append(part)
            else:
                parts[-1], changed = whole, True
    if not changed:
        return None
    return parts[0] if len(parts) == 1 else _join(r, eqn, parts, axis)


def _continued(r: Rewriter, x: Any, y: Any, axis: int) -> Any:
    """The slice that two neighbouring slices of one array are; None if they are no such."""
    first, second = (r.definition(each, "slice") for each in (x, y))
    if first is None or second is None or first.invars[0] is not second.invars[0]:
        return None
    if first.params["strides"] is not None or second.params["strides"] is not None:
        return None
    low, high = list(first.params["start_indices"]), list(second.params["limit_indices"])
    if first.params["limit_indices"][axis] != second.params["start_indices"][axis]:
        return None
    for a in range(len(low)):
        if a != axis and (low[a], high[a]) != (second.params["start_indices"][a], first.params["limit_indices"][a]):
            return None
    return sliced(r, first.invars[0], low, high, None)


def _join(r: Rewriter, eqn: JaxprEqn, parts: Sequence[Any], axis: int) -> Any:
    """A concatenation in the place of an equation, and so read as the equation is."""
    return instead(r, eqn, r.emit("concatenate", *parts, dimension=axis))


def instead(r: Rewriter, eqn: JaxprEqn, new: Any) -> Any:
    """A new array in the place of an equation's result, and so read as that is."""
    if new not in r.readers and new is not eqn.outvars[0]:
        r.notes.setdefault("in the place of", {})[new] = original(r, eqn.outvars[0])
    return new


def original(r: Rewriter, atom: Any) -> Any:
    """What of this program an array stands in the place of; itself if it is of the program."""
    return r.notes.get("in the place of", {}).get(atom, atom)


def is_only_sliced(r: Rewriter, atom: Any) -> bool:
    """Whether an array of this program is read in slices alone, also by way of what it is joined to."""
    atom = original(r, atom)
    found = r.readers.get(atom)
    return (
        bool(found)
        and atom not in r.closed.jaxpr.outvars
        and all(
            eqn.primitive.name == "slice" or (eqn.primitive.name == "concatenate" and is_only_sliced(r, eqn.outvars[0]))
            for eqn in found or ()
        )
    )


def _is_dear(r: Rewriter, x: Any) -> bool:
    """Whether so much is computed of each of many slices of x that loops over them stay whole where arrays were joined.

    Then each element would ask for each slice where it lies (`loops/passes/split.py`). Measured: an exponential of each
    of 9, 25 and 49 windows of an array of 512 x 512 with reflected edges: 553, 1979 and 4419 us, now 359, 1080 and 3061
    (part of that by other means).
    """
    known = r.notes.setdefault("dear", {})
    if x not in known:
        slices = [eqn.outvars[0] for eqn in r.readers.get(x, ()) if eqn.primitive.name == "slice"]
        total = sum([_cost_after(r, each) for each in slices])
        known[x] = total >= DEAR_SLICE * len(slices) and total * (len(slices) + 1) > MAX_OPS
    return known[x]


def _cost_after(r: Rewriter, slice_: Any) -> float:
    """Additions that the next few equations take which compute with a slice, element by element."""
    total, values = 0.0, [slice_]
    seen: set[int] = set()
    while values and len(seen) < MAX_EQUATIONS:
        for eqn in r.readers.get(values.pop(0), ()):
            if id(eqn) not in seen and isinstance(eqn.primitive.lower, Elementwise):
                seen.add(id(eqn))
                total += eqn.primitive.lower.cost
                values.append(eqn.outvars[0])
    return total


def _of_slice(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A slice of a slice."""
    inner = r.definition(eqn.invars[0], "slice")
    if inner is None:
        return None
    ndim = eqn.invars[0].aval.ndim
    ours, theirs = (each.params["strides"] or (1,) * ndim for each in (eqn, inner))
    begin, steps = inner.params["start_indices"], [s * t for s, t in zip(ours, theirs)]
    shape = eqn.outvars[0].aval.shape
    # What is empty may start where its slice ends, which in steps lies beyond the end of the array.
    low = [b + s * t if n else 0 for b, s, t, n in zip(begin, eqn.params["start_indices"], theirs, shape)]
    high = [b + (n - 1) * step + 1 if n else b for b, n, step in zip(low, shape, steps)]
    x = inner.invars[0]
    new = sliced(r, x, low, high, None if all(s == 1 for s in steps) else steps)
    return new if new is x else instead(r, eqn, new)


def sliced(r: Rewriter, x: Any, low: Sequence[int], high: Sequence[int], strides: Sequence[int] | None) -> Any:
    """A slice of x; x itself if it is all of it."""
    if not any(low) and tuple(high) == x.aval.shape and strides is None:
        return x
    how = None if strides is None else tuple(strides)
    return r.emit("slice", x, start_indices=tuple(low), limit_indices=tuple(high), strides=how)


PIECE_RULES: dict[str, tuple[Rule, ...]] = {"slice": (_of_slice, _joined), "concatenate": (_flat,)}
