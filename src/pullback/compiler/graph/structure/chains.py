"""Chains of matrix products, and sums of products, in the order of evaluation that multiplies least.

    dot(dot(x, y), v)            =>    dot(x, dot(y, v))
    dot(dot(x, y) / n, v)        =>    dot(x, dot(y, v)) / n
    reduce_sum(dot(x, y), 1)     =>    dot(x, reduce_sum(y, 1))

Axes have names here, which the axes of both operands that meet have in common; so batches, and products over several
axes, are as others. What is the same in each step of a loop has left it before: a product that would be computed once
is not taken apart.

Measured: w @ (x.T @ x / n) @ w with 20,000 x 50 numbers took 354 us, now 86 (sum((x @ w)**2) / n takes 39); the sums of
the rows of a product of 600 x 600 took 1,270, now 16.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.core.jaxpr import JaxprEqn, Literal

LESS = 2  # times as many multiplications that another order has to save
WORTH_REORDERING = 1 << 15  # multiplications of which no order matters

Named = tuple[Any, tuple[int, ...]]  # an array, and the names of its axes


def in_other_order(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A product with a product, which nothing else reads."""
    if not _is_plain(eqn):
        return None
    for side in (0, 1):
        inner, factors = _unscaled(r, eqn.invars[side])
        if inner is None or not _is_plain(inner) or inner.outvars[0].aval.dtype != eqn.outvars[0].aval.dtype:
            continue
        fresh = itertools.count()
        x, y, made = _named(inner, fresh)
        v, wanted = _beside(eqn, side, made, fresh)
        size = _sizes(x, y, v)
        summed = set(x[1]) & set(y[1]) - set(made)
        gone = set(v[1]) & set(made) - set(wanted)
        for near, far in ((x, y), (y, x)):
            if not gone or not gone <= set(near[1]) - set(far[1]):
                continue
            first = set(near[1]) | set(v[1])
            second = set(far[1]) | (first - gone)
            now = _count(size, {*x[1], *y[1]}) + _count(size, {*made, *v[1]})
            if now < WORTH_REORDERING or LESS * (_count(size, first) + _count(size, second)) > now:
                continue
            out, names = _product(r, far, _product(r, near, v, gone, eqn), summed, eqn)
            if names != wanted:
                out = r.emit("transpose", out, permutation=tuple(map(names.index, wanted)))
            for name, factor in reversed(factors):
                out = r.emit(name, out, r.broadcast(factor, out.aval.shape, ()) if out.aval.shape else factor)
            return out
    return None


def total_of_product(r: Rewriter, eqn: JaxprEqn) -> Any:
    """A sum of a product, which nothing else reads, is a product of sums; over axes that meet, a longer product."""
    product, axes = eqn.invars[0], eqn.params["axes"]
    dot = r.definition(product, "dot_general")
    if dot is None or r.uses[product] != 1 or not _is_plain(dot):
        return None
    x, y, made = _named(dot, itertools.count())
    gone = {made[a] for a in axes}
    size = _sizes(x, y)
    if _count(size, {*x[1], *y[1]}) < WORTH_REORDERING or _count(size, gone) == 1:
        return None
    contracted = set(x[1]) & set(y[1]) - set(made)
    left, right = (_summed(r, each, gone - set(other[1])) for each, other in ((x, y), (y, x)))
    out, names = _product(r, left, right, contracted | (gone & set(x[1]) & set(y[1])), dot)
    wanted = tuple(name for name in made if name not in gone)
    return out if names == wanted else r.emit("transpose", out, permutation=tuple(map(names.index, wanted)))


def _is_plain(dot: JaxprEqn) -> bool:
    """Whether a product has one type throughout, whose sums need no wider one."""
    out = dot.outvars[0].aval
    if out.dtype.kind not in "fc" or out.dtype.itemsize < 4 or not out.size:
        return False
    return all(not isinstance(x, Literal) and x.aval.dtype == out.dtype and x.aval.size for x in dot.invars)


def _unscaled(r: Rewriter, atom: Any) -> tuple[JaxprEqn | None, list[tuple[str, Any]]]:
    """(the product of which an array is a multiple, by what it is multiplied or divided after that)."""
    factors: list[tuple[str, Any]] = []
    while r.uses[atom] == 1 and (made := r.definition(atom, "mul", "div", "dot_general")) is not None:
        name = made.primitive.name
        if name == "dot_general":
            return made, factors
        for k in (1, 0) if name == "mul" else (1,):
            factor = r.splat(made.invars[k])
            if factor is not None:
                factors.append((name, factor))
                atom = made.invars[1 - k]
                break
        else:
            break
    return None, factors


def _named(dot: JaxprEqn, fresh: Iterator[int]) -> tuple[Named, Named, tuple[int, ...]]:
    """(x, y, the names of the result's axes)."""
    x, y = dot.invars
    (cx, cy), (bx, by) = dot.params["dimension_numbers"]
    names_x = tuple(next(fresh) for _ in range(x.aval.ndim))
    met = dict(zip((*cy, *by), (names_x[a] for a in (*cx, *bx))))
    names_y = tuple(met[a] if a in met else next(fresh) for a in range(y.aval.ndim))
    free_x = [n for a, n in enumerate(names_x) if a not in (*cx, *bx)]
    free_y = [n for a, n in enumerate(names_y) if a not in met]
    return (x, names_x), (y, names_y), (*(names_x[a] for a in bx), *free_x, *free_y)


def _beside(eqn: JaxprEqn, side: int, made: tuple[int, ...], fresh: Iterator[int]) -> tuple[Named, tuple[int, ...]]:
    """(the other operand of a product whose operand on this side has given names, the names of the result)."""
    contract, batch = eqn.params["dimension_numbers"]
    here, there = (*contract[side], *batch[side]), (*contract[1 - side], *batch[1 - side])
    met = dict(zip(there, (made[a] for a in here)))
    v = eqn.invars[1 - side]
    names = tuple(met[a] if a in met else next(fresh) for a in range(v.aval.ndim))
    free = [n for a, n in enumerate(made) if a not in here], [n for a, n in enumerate(names) if a not in met]
    return (v, names), (*(made[a] for a in batch[side]), *free[side], *free[1 - side])


def _sizes(*arrays: Named) -> dict[int, int]:
    return {name: n for atom, names in arrays for name, n in zip(names, atom.aval.shape)}


def _count(size: dict[int, int], names: set[int]) -> int:
    return math.prod(size[name] for name in names)


def _summed(r: Rewriter, x: Named, gone: set[int]) -> Named:
    axes = tuple(a for a, name in enumerate(x[1]) if name in gone)
    if not axes:
        return x
    return r.emit("reduce_sum", x[0], axes=axes, out_sharding=None), tuple(n for n in x[1] if n not in gone)


def _product(r: Rewriter, x: Named, y: Named, gone: set[int], like: JaxprEqn) -> Named:
    """The product over the axes that are gone; others that both have are a batch."""
    batch = [name for name in x[1] if name in y[1] and name not in gone]
    places = lambda names: (tuple(x[1].index(n) for n in names), tuple(y[1].index(n) for n in names))
    numbers = places(sorted(gone)), places(batch)
    free: Sequence[int] = [n for each in (x[1], y[1]) for n in each if n not in gone and n not in batch]
    out = r.emit("dot_general", x[0], y[0], **like.params | {"dimension_numbers": numbers})
    return out, (*batch, *free)


__all__ = ["in_other_order", "total_of_product"]
