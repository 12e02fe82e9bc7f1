"""Places: a choice by row between elements of one array is a load at a chosen place.

Needs: simplified indices. Guarantees: the same values. A roll along rows wants `x[i - 1]`, or the last row where there
is none before. Loops cut there (`split`) have a body for each stretch, and with rolls along columns for each pair of
stretches, nine of a stencil. What is the same along a row is chosen once for it:

    parallel i < 100 {                                    parallel i < 100 {
      parallel j < 64 {                                     parallel j < 64 {
        y[i*64 + j] = select(lt(i, 1),              =>        y[i*64 + j] =
            x[j + 6336], x[i*64 + j - 64])                        x[select(lt(i, 1), 6400, i*64) + j - 64]

Only along axes on which lanes do not walk, and where loops would not be cut, or along others, too: rows of a part that
follow each other are one long loop (`merge`).

Measured (Zen 4, ms to compile): a reaction of two fields of 256 x 256 by rolls 72, now 20, with diagonals 203 and 30;
ten steps of shallow water 177 and 33; seven points of 48 x 48 x 48 52 and 16. They run as
before, or in 0.8 of the time.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from operator import is_

from pullback.loops.ir.affine import interval, linear_form, summands
from pullback.loops.ir.fold import COMPARES, const, const_key, make
from pullback.loops.ir.ir import Buffer, Const, Expr, Function, Let, Load, Loop, Op, Read, Stmt, Var
from pullback.loops.ir.visit import Rewriter, blocks, loaded, nodes, statements, stored, subexpressions, with_blocks
from pullback.loops.schedule.space import extent_of

from .simplify import simplify

FAR_ELEMENTS = 16  # elements: lanes do not walk along axes on which neighbours lie so far apart


def places(function: Function, last: bool = False) -> Function:
    """The function with such choices as choices of indices. Where loops around are to be cut, what is left is seen in
    their parts, unless this is the `last` time.
    """
    body = _block(function.body, {}, last)
    same = all(map(is_, body, function.body))
    return function if same else simplify(Function(function.name, function.buffers, body))


def _block(body: Sequence[Stmt], given: dict[Var, Load], last: bool) -> tuple[Stmt, ...]:
    """The statements; `given` are variables that are elements of arrays as these are where `body` begins."""
    result: list[Stmt] = []
    given = dict(given)
    of_buffer: dict[Buffer, list[Var]] = {}  # so that a store looks at its own memory's: there may be thousands of both
    for var, load in given.items():
        of_buffer.setdefault(load.buffer, []).append(var)
    for stmt in body:
        if isinstance(stmt, Let):
            if isinstance(stmt.value, Load):
                given[stmt.var] = stmt.value
                of_buffer.setdefault(stmt.value.buffer, []).append(stmt.var)
        else:
            for buffer in stored((stmt,)):
                for var in of_buffer.pop(buffer, ()):
                    given.pop(var, None)
            if isinstance(stmt, Loop) and stmt.role != "sequential":
                stmt = _chosen(stmt, given, last)
            elif inner := blocks(stmt):
                new = iter([_block(each, given, last) for each in inner])
                old = stmt
                stmt = with_blocks(stmt, lambda _: next(new))  # noqa: B023
                stmt = old if all(map(_same, blocks(stmt), inner)) else stmt
        result.append(stmt)
    return tuple(result)


def _alive(given: Mapping[Var, Load], nest: Loop) -> dict[Var, Load]:
    """Those of arrays that are there while a nest runs: memory of temporaries that it does not read holds others."""
    read = loaded((nest,))
    return {var: load for var, load in given.items() if load.buffer.space != "temporary" or load.buffer in read}


def _same(new: Sequence[Stmt], old: Sequence[Stmt]) -> bool:
    return all(map(is_, new, old))


def _chosen(nest: Loop, given: Mapping[Var, Load], last: bool) -> Loop:
    loops = [stmt for stmt in statements((nest,)) if isinstance(stmt, Loop)]
    if len(loops) < 2:
        return nest
    ours = {loop.var for loop in loops if loop.role in ("parallel", "reduce")}
    choices: dict[int, tuple[Op, frozenset[Var]]] = {}
    for stmt in statements((nest,)):
        for expr in nodes(stmt):
            if isinstance(expr, Op) and expr.name == "select" and id(expr) not in choices:
                variables = _variables(expr.args[0], ours)
                if variables:
                    choices[id(expr)] = expr, variables
    if not choices:
        return nest
    given, ranges = _alive(given, nest), ranges_of(loops)
    found: dict[frozenset[Var], bool] = {}  # whether loops would be cut there
    cut: set[Var] = set()
    joined = _Joined(given)
    for choice, variables in choices.values():
        if joined.choice(choice, variables) is None:
            cut |= variables
        else:
            loads = [x for x in subexpressions(choice.args[1:]) if isinstance(x, Load)]
            found[variables] = found.get(variables, False) or not all(is_inside(x, ranges) for x in loads)
    rows = {variables for variables in found if variables.isdisjoint(cut)}
    if not cut and len(frozenset[Var]().union(*rows)) <= 1:
        rows = {variables for variables in rows if not found[variables]}
    if not rows:
        return nest
    if nest.var in cut and not last:
        return nest
    chosen = {key: variables for key, (_, variables) in choices.items() if variables in rows}
    (new,) = _Places(chosen, given).block((nest,))
    assert isinstance(new, Loop)
    return new


def ranges_of(loops: Sequence[Loop]) -> dict[Var, tuple[int, int]]:
    """Of the indices of loops of known extent."""
    return {each.var: (0, extent_of(each) - 1) for each in loops if isinstance(each.extent, Const)}


def is_inside(load: Load, ranges: Mapping[Var, tuple[int, int]]) -> bool:
    """Whether a load is inside its buffer in all iterations, as far as the ranges of indices tell."""
    bounds = interval(load.index, ranges)
    return bounds is not None and bounds[0] >= 0 and bounds[1] < load.buffer.size


def _variables(condition: Expr, ours: set[Var]) -> frozenset[Var]:
    """The loops whose indices a condition compares with a number; none if there is more in it."""
    parts = [condition]
    found: set[Var] = set()
    while parts:
        part = parts.pop()
        if not isinstance(part, Op):
            return frozenset()
        if part.name in ("and", "or", "not") and part.dtype == "bool":
            parts += part.args
            continue
        if part.name not in COMPARES or part.args[0].dtype != "i64":
            return frozenset()
        for term, _ in summands(make("sub", part.args))[0]:
            if not isinstance(term, Read) or term.var not in ours:
                return frozenset()
            found.add(term.var)
    return frozenset(found)


class _Places(Rewriter):
    def __init__(self, chosen: dict[int, frozenset[Var]], given: Mapping[Var, Load]) -> None:
        super().__init__()
        self.chosen = chosen
        self.joined = _Joined(given)

    def rewrite(self, root: Expr) -> Expr:
        memo = self._memo
        for expr in subexpressions((root,)):
            if expr not in memo:
                if isinstance(expr, Op):
                    args = tuple([memo[x] for x in expr.args])
                    node: Expr = expr if args == expr.args else make(expr.name, args, expr.dtype, expr.attrs)
                    if id(expr) in self.chosen and isinstance(node, Op):
                        node = self.joined.choice(node, self.chosen[id(expr)]) or node
                elif isinstance(expr, Load):
                    node = expr if memo[expr.index] is expr.index else Load(expr.buffer, memo[expr.index])
                else:
                    node = expr
                memo[expr] = node
        return memo[root]


class _Joined:
    """Two expressions that differ in the places of loads alone as one, with these chosen."""

    def __init__(self, given: Mapping[Var, Load]) -> None:
        self.given = given
        self.keys: dict[Expr, Hashable] = {}
        self.numbers: dict[Hashable, int] = {}

    def choice(self, choice: Op, variables: frozenset[Var]) -> Expr | None:
        """A choice between two such expressions; None if they are none."""
        condition, x, y = choice.args
        self.memo: dict[tuple[Expr, Expr], Expr | None] = {}
        self.condition, self.variables = condition, variables
        return None if isinstance(x, Const) or isinstance(y, Const) else self.both(x, y)

    def both(self, x: Expr, y: Expr) -> Expr | None:
        if x is y:
            return x
        pair = x, y
        found = self.memo.get(pair, self)
        if found is not self:
            return found  # type: ignore[return-value]
        result: Expr | None = None
        x, y = (self.given.get(side.var, side) if isinstance(side, Read) else side for side in (x, y))
        if isinstance(x, Load) and isinstance(y, Load):
            if x.buffer is y.buffer:
                index = self.place(x.index, y.index)
                result = None if index is None else Load(x.buffer, index)
        elif self.key(x) == self.key(y):
            result = x
        elif isinstance(x, Op) and isinstance(y, Op) and (x.name, x.dtype, x.attrs) == (y.name, y.dtype, y.attrs):
            if len(x.args) == len(y.args) and x.dtype != "i64":
                args = self.all_both(x.args, y.args)
                result = None if args is None else make(x.name, args, x.dtype, x.attrs)
        self.memo[pair] = result
        return result

    def all_both(self, first: Sequence[Expr], second: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """Each of `both`; the first pair that differs ends it, or networks of exchanges are looked at pair by pair."""
        made = []
        for x, y in zip(first, second):
            joined = self.both(x, y)
            if joined is None:
                return None
            made.append(joined)
        return tuple(made)

    def place(self, x: Expr, y: Expr) -> Expr | None:
        """One of two indices, what they share outside of the choice; None unless the rest goes by far rows alone."""
        (of_x, first), (of_y, second) = linear_form(x, self.key), linear_form(y, self.key)
        whole: Expr = const("i64", 0)
        sides: list[Expr] = [const("i64", first - second), const("i64", 0)]
        for key in {**of_x, **of_y}:
            pair = [of.get(key, (None, 0)) for of in (of_x, of_y)]
            term = pair[0][0] or pair[1][0]
            assert term is not None
            if any(var in self.variables for var in _read(term)) and not isinstance(term, Read):
                return None
            if isinstance(term, Read) and term.var in self.variables:
                if any(0 < abs(factor) < FAR_ELEMENTS for _, factor in pair):
                    return None
            elif pair[0][1] != pair[1][1]:
                return None
            if pair[0][1] == pair[1][1]:
                whole = _plus(whole, term, pair[0][1])
            else:
                sides = [_plus(side, term, factor) for side, (_, factor) in zip(sides, pair)]
        return make("add", (make("add", (make("select", (self.condition, *sides)), whole)), const("i64", second)))

    def key(self, root: Expr) -> Hashable:
        """Equal for equal expressions."""
        keys = self.keys
        if root in keys:
            return keys[root]
        for expr in subexpressions((root,)):
            if expr in keys:
                continue
            made: Hashable
            if isinstance(expr, Op):
                made = (expr.name, expr.dtype, expr.attrs, tuple([keys[x] for x in expr.args]))
            elif isinstance(expr, Load):
                made = (expr.buffer, keys[expr.index])
            elif isinstance(expr, Const):
                made = const_key(expr)
            else:
                made = expr.var  # type: ignore[attr-defined]
            keys[expr] = self.numbers.setdefault(made, len(self.numbers))
        return keys[root]


def _plus(x: Expr, term: Expr, factor: int) -> Expr:
    return make("add", (x, make("mul", (term, const("i64", factor))))) if factor else x


def _read(expr: Expr) -> list[Var]:
    return [x.var for x in subexpressions((expr,)) if isinstance(x, Read)]
