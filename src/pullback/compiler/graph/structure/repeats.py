"""Reductions of what is the same along an axis that stays are computed once, and repeated along it; so is what becomes
of matrices. What is solved for with matrices that are the same along an axis has more right-hand sides.

    sin(broadcast(x))                    =>    broadcast(sin(x)); so on grids of x and of y, by what each is computed of
    sum(convert(broadcast(mask)), 0)     =>    broadcast(sum(convert(mask))): how many rows a mean over a mask counts
    max(where(broadcast(m), broadcast(v), -inf), 1), with m and v the same along axis 0, likewise
    lu(broadcast(a))                     =>    broadcast(lu(a))
    triangular_solve(broadcast(a), b)    =>    triangular_solve(a, b's matrices side by side), taken apart

Sums may be rounded otherwise, as those of other shapes are, and so may what is solved for.

Measured: 50 means of groups of 5000 rows of 16 by `mean(x, 0, where=mask)` took 92 us, of which a third were counts.
`solve(a[None], v[:, None, :, None])` of 6 matrices of 50 x 50 and 500 vectors took 13.7 ms, now 0.21.
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter, Rule, size_of
from pullback.core.jaxpr import JaxprEqn
from pullback.core.lowering import Elementwise
from pullback.core.primitive import registry

MAX_DEPTH = 8  # operations behind each other that are looked through
MAX_OPERATIONS = 32  # operations in all
LEAST_REPEATED = 4  # times that elements are repeated from which they are computed apart


def _reduction(r: Rewriter, eqn: JaxprEqn) -> Any:
    x, axes = eqn.invars[0], eqn.params["axes"]
    if not axes or not x.aval.size or r.definition(x) is None:
        return None
    changes = _changes(r, x, MAX_DEPTH, {})
    kept = [a for a in range(x.aval.ndim) if a not in axes]
    same = [a for a in kept if x.aval.shape[a] > 1 and a not in changes]
    if not same:
        return None
    left = [a for a in range(x.aval.ndim) if a not in same]
    small = _without(r, x, same, {})
    found = r.emit(eqn.primitive, small, **eqn.params | {"axes": tuple(left.index(a) for a in axes)})
    return r.broadcast(found, eqn.outvars[0].aval.shape, [kept.index(a) for a in kept if a not in same])


def _matrices(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What becomes of each matrix of a stack, of each different one."""
    x = eqn.invars[0]
    same = _repeated(r, x) if len(eqn.invars) == 1 else []
    if not same:
        return None
    found = r.emit(eqn.primitive, _without(r, x, same, {}), **eqn.params)
    results = found if isinstance(found, list) else [found]
    shapes = [v.aval.shape for v in eqn.outvars]
    return [r.broadcast(y, s, [a for a in range(len(s)) if a not in same]) for y, s in zip(results, shapes)]


def _solve(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What is solved for with each different matrix, at once."""
    a, b = eqn.invars
    same = _repeated(r, a)
    if not same:
        return None
    kept = [k for k in range(a.aval.ndim - 2) if k not in same]
    rows, columns = a.aval.ndim - 2, a.aval.ndim - 1
    left = eqn.params["left_side"]
    order = [*kept, rows, columns, *same] if left else [*kept, *same, rows, columns]
    apart = [b.aval.shape[k] for k in order]
    lead, n = len(kept), b.aval.shape[rows if left else columns]
    count = size_of(apart[lead:]) // max(n, 1)
    flat = r.reshape(
        r.emit("transpose", b, permutation=tuple(order)), [*apart[:lead], *((n, count) if left else (count, n))]
    )
    found = r.emit(eqn.primitive, _without(r, a, same, {}), flat, **eqn.params)
    return r.emit("transpose", r.reshape(found, apart), permutation=tuple(order.index(k) for k in range(len(order))))


def _elementwise(r: Rewriter, eqn: JaxprEqn) -> Any:
    """What is computed of arrays that repeat the same elements in the same way, of each different one. Not of several
    that are only read: a loop that reads their product saves little, and is one more.
    """
    out, small = eqn.outvars[0].aval, list[Any]()
    ways = set[tuple[Any, ...]]()
    for atom in eqn.invars:
        number = r.splat(atom)
        wide = None if number is not None else r.definition(atom, "broadcast_in_dim")
        if number is None and wide is None:
            return None
        small.append(number if wide is None else wide.invars[0])
        if wide is not None:
            ways.add((wide.invars[0].aval.shape, tuple(wide.params["broadcast_dimensions"])))
    if len(ways) != 1 or not _is_elementwise(eqn):
        return None
    ((shape, dims),) = ways
    arrays = {x for x in small if x.aval.shape == shape}
    if len(arrays) > 1 and not any([(made := r.definition(x)) and _is_elementwise(made) for x in arrays]):
        return None
    if LEAST_REPEATED * size_of(shape) > out.size:
        return None
    return r.broadcast(r.emit(eqn.primitive, *small, **eqn.params), out.shape, dims)


def _repeated(r: Rewriter, x: Any) -> list[int]:
    """The axes of a stack of matrices along which it is the same."""
    if not x.aval.size or r.definition(x) is None:
        return []
    changes = _changes(r, x, MAX_DEPTH, {})
    return [a for a in range(x.aval.ndim - 2) if x.aval.shape[a] > 1 and a not in changes]


def _changes(r: Rewriter, x: Any, deep: int, seen: dict[Any, set[int]]) -> set[int]:
    """The axes along which the elements of an array may differ."""
    if not x.aval.shape:
        return set()
    if x in seen:
        return seen[x]
    eqn = r.definition(x) if deep and len(seen) < MAX_OPERATIONS else None
    found = set(range(x.aval.ndim))
    if eqn is not None and eqn.primitive.name == "broadcast_in_dim":
        inner = eqn.invars[0]
        found = {d for a, d in enumerate(eqn.params["broadcast_dimensions"]) if inner.aval.shape[a] == x.aval.shape[d]}
    elif eqn is not None and eqn.primitive.name == "transpose":
        inner_changes = _changes(r, eqn.invars[0], deep - 1, seen)
        found = {k for k, axis in enumerate(eqn.params["permutation"]) if axis in inner_changes}
    elif eqn is not None and _is_elementwise(eqn):
        found = set().union(*(_changes(r, operand, deep - 1, seen) for operand in eqn.invars))
    seen[x] = found
    return found


def _is_elementwise(eqn: JaxprEqn) -> bool:
    return (
        isinstance(eqn.primitive.lower, Elementwise)
        and "elementwise" in eqn.primitive.traits
        and len(eqn.outvars) == 1
        and not eqn.effects
    )


def _without(r: Rewriter, x: Any, same: list[int], made: dict[Any, Any]) -> Any:
    """An array without axes along which it is the same."""
    if not x.aval.shape:
        return x
    if (x, *same) not in made:
        eqn = r.definition(x)
        assert eqn is not None
        if eqn.primitive.name == "broadcast_in_dim":
            found = _narrow(r, eqn, same)
        elif eqn.primitive.name == "transpose":
            order = eqn.params["permutation"]
            gone = sorted(order[k] for k in same)
            inner = _without(r, eqn.invars[0], gone, made)
            left = [axis for axis in range(len(order)) if axis not in gone]
            kept = [left.index(axis) for axis in order if axis not in gone]
            found = r.emit("transpose", inner, permutation=tuple(kept)) if len(kept) > 1 else inner
        else:
            found = r.emit(eqn.primitive, *(_without(r, operand, same, made) for operand in eqn.invars), **eqn.params)
        made[x, *same] = found
    return made[x, *same]


def _narrow(r: Rewriter, wide: JaxprEqn, same: list[int]) -> Any:
    """What a broadcast gives, without axes along which it repeats."""
    inner, dims, shape = wide.invars[0], wide.params["broadcast_dimensions"], wide.outvars[0].aval.shape
    own = [a for a, d in enumerate(dims) if d not in same]  # the others are of size 1
    left = [d for d in range(len(shape)) if d not in same]
    if len(own) < len(dims):
        inner = r.reshape(inner, [inner.aval.shape[a] for a in own])
    if not left:
        return inner
    return r.broadcast(inner, [shape[d] for d in left], [left.index(dims[a]) for a in own])


def repeat_rules() -> dict[str, tuple[Rule, ...]]:
    """The rules, by primitive."""
    rules: dict[str, tuple[Rule, ...]] = {
        f"reduce_{name}": (_reduction,) for name in ("sum", "prod", "max", "min", "and", "or")
    }
    rules |= {name: (_matrices,) for name, primitive in registry.items() if "matrices" in primitive.traits}
    elementwise = [name for name, each in registry.items() if "elementwise" in each.traits]
    rules |= {name: (*rules.get(name, ()), _elementwise) for name in elementwise}
    return rules | {"triangular_solve": (_solve,)}
