"""Rematerialize: elements that follow from their places alone are computed where a loop reads them, not stored.

Needs: loop IR as it comes from lowering. Guarantees: the same values.

    parallel i < 500 { t[i] = convert:i32(i) }         sequential step < 800 {
    sequential step < 800 {                              parallel j < 500 { y[j] = x[step - j] }
      parallel j < 500 { y[j] = x[step - t[j]] }  =>   }
    }

A loop's body is a program of its own: numbers 0, 1, 2, ... that it is given come from memory, so that nothing is known
of places found by them. As expressions of the index they have bounds and strides: the example is a slice backwards,
not a gather. The same of what a loop scans over, and of constants that grow by equal steps.

So are elements that one loop reads once each, where they are computed in a few operations from arguments at the same
place: places and updates of scatters, whose threads read the arguments then, not what another thread just wrote.

Measured (Zen 4, with loads at places that mostly follow each other, emit/runs.py): edit distance along diagonals, 500
by 300, 478 -> 237 us (JAX 340), a knapsack of 60 items, 2,001 wide, 68 -> 13 (JAX 90). Sums of
squares of 50,000 numbers at 1,000 places 27 -> 14, their counts 26 -> 14.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pullback.loops.ir.affine import summands
from pullback.loops.ir.fold import COMPARES, const, make
from pullback.loops.ir.ir import Buffer, Const, Expr, Function, If, Let, Load, Loop, Op, Read, Stmt, Store, Var, While
from pullback.loops.ir.types import is_int
from pullback.loops.ir.visit import (
    Rewriter,
    Substitute,
    WithoutStores,
    blocks,
    expressions,
    loaded,
    statements,
    stores,
    subexpressions,
)

from .simplify import drop_dead

FEW_STEPS = 16  # elements of what is left as it is: loops of so few steps are written out by other rules
MOST_ONCE = 1 << 18  # elements read once each: of more lanes and threads are quicker (1,000,000 places 267 us, so 299)
MANY = 1 << 40  # turns of a loop that are not known
MOST_OPS = 4  # that take the place of a load, beside conversions
_CHEAP = frozenset({"add", "sub", "mul", "min", "max", "and", "or", "not", "neg", "select", *COMPARES})


def rematerialize(function: Function) -> Function:
    """The function with elements that follow from their places computed where loops that run in turns read them."""
    inside: set[Buffer] = set()
    for stmt in statements(function.body):
        if isinstance(stmt, While) or (isinstance(stmt, Loop) and stmt.role == "sequential"):
            inside |= loaded((stmt,))
    known = {buffer: formula for buffer in inside if (formula := _progression(buffer)) is not None}
    known.update(_stored(function, inside, _read_once(function) & inside))
    known = {buffer: formula for buffer, formula in known.items() if buffer.size > FEW_STEPS}
    if not known:
        return function
    body = _Computed(known).block(function.body)
    unread = {buffer for buffer in known if buffer.space == "temporary"} - loaded(body)
    if unread:
        body = drop_dead(WithoutStores(unread).block(body))
    return Function(function.name, tuple([b for b in function.buffers if b not in unread]), body)


class _Formula:
    """An element as an expression of its place."""

    def __init__(self, place: Var, value: Expr) -> None:
        self._place = place
        self._value = value

    def at(self, index: Expr) -> Expr:
        return Substitute({self._place: index}).rewrite(self._value)


def _progression(buffer: Buffer) -> _Formula | None:
    """The elements of a constant of integers that grow by equal steps."""
    if buffer.data is None or buffer.size < 2 or not is_int(buffer.dtype) or buffer.dtype == "u64":
        return None
    data = np.asarray(buffer.data).reshape(-1)
    first, step = int(data[0]), int(data[1]) - int(data[0])
    if int(data[-1]) - first != step * (buffer.size - 1) or not np.all(np.diff(data.astype(np.int64)) == step):
        return None
    place = Var("place", "i64")
    value = make("add", (make("mul", (Read(place), const("i64", step))), const("i64", first)))
    return _Formula(place, make("convert", (value,), buffer.dtype))


def _read_once(function: Function) -> set[Buffer]:
    """The temporaries each element of which one load reads once, at most."""
    found: dict[Buffer, int] = {}

    def count(exprs: Sequence[Expr], times: int) -> None:
        for expr in subexpressions(exprs):
            if isinstance(expr, Load) and expr.buffer.space == "temporary":
                found[expr.buffer] = found.get(expr.buffer, 0) + times

    def block(body: Sequence[Stmt], times: int) -> None:
        for stmt in body:
            count(expressions(stmt), times)
            if isinstance(stmt, Loop):
                each = stmt.extent.value if isinstance(stmt.extent, Const) else MANY
                count([update for group in stmt.carried for update in group.updates], times * each)
                block(stmt.body, times * each)
            else:
                for inner in blocks(stmt):
                    block(inner, times if isinstance(stmt, If) else times * MANY)

    block(function.body, 1)
    return {buffer for buffer, times in found.items() if times <= buffer.size <= MOST_ONCE}


def _stored(function: Function, inside: set[Buffer], once: set[Buffer]) -> list[tuple[Buffer, _Formula]]:
    """The temporaries that one nest fills with what follows from places alone; or from elements of arguments at the
    same places, where that is read `once`.
    """
    written = Counter([buffer for stmt in statements(function.body) for buffer in stores(stmt)])
    given = {buffer for buffer in function.buffers if buffer.space == "input"}  # which nothing writes
    found: list[tuple[Buffer, _Formula]] = []
    for stmt in function.body:
        extents: dict[Var, int] = {}
        body: Sequence[Stmt] = (stmt,)
        while len(body) == 1 and isinstance(loop := body[0], Loop) and loop.role == "parallel":
            if not isinstance(loop.extent, Const) or loop.carried:
                break
            extents[loop.var] = loop.extent.value
            body = loop.body
        if not extents or not all(isinstance(each, (Let, Store)) for each in body):
            continue
        lets = {each.var: each.value for each in body if isinstance(each, Let)}
        for store in body:
            if not isinstance(store, Store) or store.buffer not in inside:
                continue
            alone = store.buffer in once
            if not alone and not (is_int(store.buffer.dtype) or store.buffer.dtype == "bool"):
                continue  # no place: an identity matrix is read as soon
            if store.buffer.space == "temporary" and written[store.buffer] == 1:
                formula = _formula(store, extents, lets, given if alone else set())
                if formula is not None:
                    found.append((store.buffer, formula))
    return found


def _formula(store: Store, extents: dict[Var, int], lets: dict[Var, Expr], given: set[Buffer]) -> _Formula | None:
    """What a nest stores in each place of a buffer, if it fills it in order and hardly computes, of places and of what
    is `given` there.
    """
    value, place = store.value, Var("place", "i64")
    while any(isinstance(x, Read) and x.var in lets for x in subexpressions((value,))):
        value = Substitute(lets).rewrite(value)
    if given:
        value = _There(given, store.index, Read(place)).rewrite(value)
    ops = 0
    for x in subexpressions((value,)):
        if isinstance(x, Load) and isinstance(x.index, Read) and x.index.var is place:
            continue
        if isinstance(x, Load) or (isinstance(x, Read) and x.var not in extents and x.var is not place):
            return None
        if isinstance(x, Op) and x.name != "convert":
            ops += 1
            if x.name not in _CHEAP:
                return None
    strides = {x.var: factor for x, factor in summands(store.index)[0] if isinstance(x, Read)}
    if ops > MOST_OPS or len(strides) != len(summands(store.index)[0]) or summands(store.index)[1]:
        return None
    places: dict[Var, Expr] = {}
    size = 1
    for var, extent in reversed(extents.items()):
        if extent > 1 and strides.get(var) != size:
            return None
        whole = make("floordiv", (Read(place), const("i64", size)))
        places[var] = make("floormod", (whole, const("i64", extent))) if size * extent < store.buffer.size else whole
        size *= extent
    if size != store.buffer.size:
        return None
    return _Formula(place, Substitute(places).rewrite(value))


class _There(Rewriter):
    """Elements of arguments at the index of a store, as those at its place."""

    def __init__(self, given: set[Buffer], index: Expr, place: Expr) -> None:
        super().__init__()
        self._given, self._index, self._place = given, summands(index), place

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self._given and summands(expr.index) == self._index:
            return Load(expr.buffer, self._place)
        return expr


class _Computed(Rewriter):
    """Puts formulas in the place of loads."""

    def __init__(self, known: dict[Buffer, _Formula]) -> None:
        super().__init__()
        self._known = known

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self._known:
            return self._known[expr.buffer].at(expr.index)
        return expr
