"""What arrays are known to be: the index along an axis, a diagonal mask, integers that the program determines."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.core.jaxpr import JaxprEqn, Literal
from pullback.core.lowering import Elementwise, Pointwise

MOST_AXES = 3  # of whole numbers that count along them
MAX_INTEGERS = 1 << 20  # elements of known integers: each operation on them takes a millisecond
MAX_ELEMENTS = 64  # elements of known arrays of any type
FOLDED = 256  # of constants that are looked at, some of which were broadcast
MAX_EQUATIONS = 100  # equations that they are computed by


def counts_along(r: Rewriter, atom: Any) -> int | None:
    """The axis whose index the elements of an array are; None if it is not known to be one."""
    found = counts_from(r, atom)
    return found[0] if found is not None and not found[1] else None


def counts_from(r: Rewriter, atom: Any) -> tuple[int, int] | None:
    """(an axis, a number) whose index plus which the elements of an array are; None if it is not known to be so."""
    eqn = r.definition(atom)
    if eqn is None:
        return None
    dtype = atom.aval.dtype
    match eqn.primitive.name:
        case "iota":
            return int(eqn.params["dimension"]), 0
        case "broadcast_in_dim":
            dims, inner = eqn.params["broadcast_dimensions"], eqn.invars[0]
            found = counts_from(r, inner)
            # What is repeated along the axis that it counts along does not count.
            if found is None or inner.aval.shape[found[0]] != atom.aval.shape[dims[found[0]]]:
                return None
            return int(dims[found[0]]), found[1]
        case "reshape":
            given, shape = eqn.invars[0].aval.shape, atom.aval.shape
            found = counts_from(r, eqn.invars[0])
            before, after = ([k for k, n in enumerate(each) if n != 1] for each in (given, shape))
            if found is None or found[0] not in before or [given[k] for k in before] != [shape[k] for k in after]:
                return None
            return after[before.index(found[0])], found[1]
        case "max" if any(r.is_scalar(a, 0) for a in eqn.invars):
            found = counts_from(r, next(a for a in eqn.invars if not r.is_scalar(a, 0)))
            return found if found is not None and found[1] >= 0 else None
        case "add" | "sub" if dtype.kind in "iu":
            for one, other in (eqn.invars, reversed(eqn.invars)):
                number = r.scalar(other)
                if number is None or (one is eqn.invars[1] and eqn.primitive.name == "sub"):
                    continue
                found = counts_from(r, one)
                if found is None:
                    continue
                start = found[1] + (int(number) if eqn.primitive.name == "add" else -int(number))
                info = np.iinfo(dtype)
                fits = info.min <= start and start + atom.aval.shape[found[0]] - 1 <= info.max
                return (found[0], start) if fits else None
        case "select_n" if len(eqn.invars) == 3:  # of an index that may count from the end, which this one does not
            below = r.definition(eqn.invars[0], "lt")
            if below is not None and r.is_scalar(below.invars[1], 0) and counts_along(r, below.invars[0]) is not None:
                return counts_from(r, eqn.invars[1])
        case "convert_element_type":
            found = counts_from(r, eqn.invars[0])
            if found is not None and dtype.kind in "iu":
                info = np.iinfo(dtype)
                if info.min <= found[1] and found[1] + atom.aval.shape[found[0]] - 1 <= info.max:
                    return found
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


def identity(r: Rewriter, atom: Any) -> bool:
    """Whether a square matrix is known to be the identity."""
    if atom.aval.ndim != 2 or atom.aval.shape[0] != atom.aval.shape[1]:
        return False
    value = r.constant(atom)
    if value is not None:
        return bool(np.array_equal(value, np.eye(len(value), dtype=value.dtype)))
    eqn = r.definition(atom)
    if eqn is None:
        return False
    name = eqn.primitive.name
    if name == "eq":
        return diagonal(r, atom) == (0, 1)
    if name == "convert_element_type":
        inner = eqn.invars[0]
        return identity(r, inner)
    if name == "transpose":
        return identity(r, eqn.invars[0])
    if name == "select_n" and len(eqn.invars) == 3:
        which, off, on = eqn.invars
        return r.is_scalar(off, 0) and r.is_scalar(on, 1) and diagonal(r, which) == (0, 1)
    return False


def known_integers(r: Rewriter, atom: Any) -> np.ndarray | None:
    """The elements of an array of integers that is computed of indices and constants alone; None for others."""
    if atom.aval.dtype.kind not in "iu" or atom.aval.size > MAX_INTEGERS:
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
            if steps > MAX_EQUATIONS:
                return None
            continue
        given = [np.asarray(x.val, x.aval.dtype) if type(x) is Literal else values[x] for x in eqn.invars]
        with np.errstate(all="ignore"):
            values[waiting.pop()] = np.asarray(eqn.primitive.reference(*given, **eqn.params))
    found = values.get(atom)
    return found if found is not None and found.shape == atom.aval.shape else None


def counted_axes(numbers: np.ndarray) -> tuple[int, list[tuple[int, int]]] | None:
    """(the first one, (extent, step) along each of a few axes) of whole numbers that count along these, the last axis
    first in memory: 5, 5, 5, 7, 7, 7 are (5, [(2, 2), (3, 0)]). None for others.
    """
    axes: list[tuple[int, int]] = []
    rest = numbers.reshape(-1).astype(np.int64)
    while rest.size > 1 and len(axes) < MOST_AXES:
        steps = np.diff(rest)
        other = np.flatnonzero(steps != steps[0])
        n, step = int(other[0]) + 1 if other.size else rest.size, int(steps[0])
        rows = rest.reshape(-1, n) if rest.size % n == 0 else None
        if rows is None or not np.array_equal(rows, rows[:, :1] + step * np.arange(n)):
            return None
        axes.insert(0, (n, step))
        rest = rows[:, 0]
    return (int(rest[0]), axes) if rest.size == 1 and axes else None


def known_values(r: Rewriter, atom: Any) -> np.ndarray | None:
    """The elements of an array that is computed of indices and constants, with size 1 along axes on which they repeat.

    None for others, and for more than a few.
    """
    if type(atom) is Literal:
        return np.asarray(atom.val)
    memo = r.notes.setdefault("known values", {})
    if atom not in memo:
        memo[atom] = _values(r, atom)
    return memo[atom]  # type: ignore[no-any-return]


def _narrowed(values: np.ndarray) -> np.ndarray:
    """An array with size 1 along axes on which its elements repeat."""
    for axis in range(values.ndim):
        first = values.take([0], axis)
        if np.broadcast_to(first, values.shape).tobytes() == values.tobytes():
            values = first
    return values


def _values(r: Rewriter, atom: Any) -> np.ndarray | None:
    shape = atom.aval.shape
    if atom in r.consts:
        if not 0 < atom.aval.size <= FOLDED or not isinstance(atom.aval.dtype, np.dtype):
            return None
        few = _narrowed(np.asarray(r.consts[atom]))
        return few if few.size <= MAX_ELEMENTS else None
    eqn = r.definition(atom)
    if eqn is None or 0 in shape or not isinstance(atom.aval.dtype, np.dtype):
        return None
    primitive, params = eqn.primitive, eqn.params
    if primitive.name == "iota":
        axis = params["dimension"]
        wide = [n if a == axis else 1 for a, n in enumerate(shape)]
        return np.arange(shape[axis]).astype(atom.aval.dtype).reshape(wide) if shape[axis] <= MAX_ELEMENTS else None
    movement = primitive.name in ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "rev", "transpose")
    if not movement and not (isinstance(primitive.lower, Elementwise) and "elementwise" in primitive.traits):
        return None
    if not movement and not primitive.has_rule("reference"):
        return None
    given = []
    for operand in eqn.invars:
        values = known_values(r, operand)
        if values is None:
            return None
        given.append(values)
    match primitive.name:
        case "broadcast_in_dim":
            wide = [1] * len(shape)
            for d, n in zip(params["broadcast_dimensions"], given[0].shape):
                wide[d] = n
            return given[0].reshape(wide)
        case "reshape" | "squeeze" | "expand_dims":
            if atom.aval.size > MAX_ELEMENTS or (params.get("dimensions") is not None and primitive.name == "reshape"):
                return None
            return np.broadcast_to(given[0], eqn.invars[0].aval.shape).reshape(shape)
        case "rev":
            return np.flip(given[0], params["dimensions"])
        case "transpose":
            return given[0].transpose(params["permutation"])
    full = [g.reshape((1,) * len(shape)) if not g.ndim else g for g in given]
    common = np.broadcast_shapes(*(g.shape for g in full))
    if int(np.prod(common, dtype=np.int64)) > MAX_ELEMENTS:
        return None
    with np.errstate(all="ignore"):
        found = np.asarray(primitive.reference(*(np.broadcast_to(g, common) for g in full), **params))
    return found if found.shape == common and found.dtype == atom.aval.dtype else None


def _is_plain(eqn: JaxprEqn) -> bool:
    """Whether an equation computes whole numbers or bools, element by element, and not too many."""
    primitive = eqn.primitive
    return (
        len(eqn.outvars) == 1
        and isinstance(primitive.lower, (Elementwise, Pointwise))
        and primitive.has_rule("reference")
        and all(x.aval.dtype.kind in "iub" and x.aval.size <= MAX_INTEGERS for x in (*eqn.invars, *eqn.outvars))
    )
