"""Loads of lanes that mostly lie one after the other: x[clip(i - 1, 0, n - 1)], x[(i + shift) % n], x[start + i].

Where an index grows by at most one from lane to lane, lanes lie one after the other exactly if that of the last lane is
so much greater than that of the first: two scalars say whether one load will do. Else it is a gather.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from pullback.loops.ir.affine import Interval, linear_form
from pullback.loops.ir.fold import COMPARES, make
from pullback.loops.ir.ir import Const, Expr, Load, Op, Read, Var
from pullback.loops.ir.types import BITS, int_range, is_int
from pullback.loops.ir.visit import Substitute, fact, subexpressions

from .access import Access, VectorIndex

LEAST_LANES = 4  # lanes from which it pays to ask
_Steps = tuple[float, float]  # by how much an integer grows from lane to lane, at least and at most
_STILL: _Steps = (0, 0)


def direction(ev: Access, load: Load) -> int | None:
    """1 or -1 if the place of a load grows by at most one from lane to lane, or falls so; None if it may leap."""
    vector = ev.vector
    assert vector is not None
    return None if vector.lanes < LEAST_LANES else run_along(load.index, vector, ev.interval)


def run_along(index: Expr, axis: Along, bounds: Callable[[Expr], Interval | None]) -> int | None:
    """1 or -1 if an index that is no line grows by at most one from an iteration to the next, or falls so."""
    if not _bends(index):
        return None
    steps = _Bends(axis, bounds).steps(index)
    if steps is None or steps == _STILL:
        return None
    return 1 if steps[1] == 1 else -1 if steps[0] == -1 else None


def last_lane(vector: VectorIndex, index: Expr) -> Expr:
    """An index of lane 0 as that of the last lane."""
    last = Var("last", "i64")  # a name of its own: what folds to the variable again is not replaced twice
    index = Substitute({vector.var: Read(last)}).rewrite(_written_out(vector, index))
    there = Op("add", "i64", (Read(vector.var), Const("i64", vector.lanes - 1)))
    return Substitute({last: there}).rewrite(index)


def _written_out(vector: VectorIndex, index: Expr) -> Expr:
    while any(isinstance(x, Read) and x.var in vector.definitions for x in subexpressions((index,))):
        index = Substitute(vector.definitions).rewrite(index)
    return index


@fact
def _bends(index: Expr) -> bool:
    """Whether there is something in an index that may make it other than one line, and nothing else but sums."""
    return any(isinstance(x, Op) and x.name in ("min", "max", "select", "floormod") for x in subexpressions((index,)))


class Along(Protocol):
    """What differs between the iterations of a loop."""

    var: Var
    definitions: dict[Var, Expr]

    def depends(self, expr: Expr) -> bool:
        """Whether an expression does."""


class _Bends:
    def __init__(self, axis: Along, bounds: Callable[[Expr], Interval | None]) -> None:
        self._axis = axis
        self._interval = bounds
        self._memo: dict[Expr, _Steps | None] = {}

    def steps(self, expr: Expr) -> _Steps | None:
        """By how much an expression grows from a lane to the next; None if nothing is known."""
        if not self._axis.depends(expr):
            return _STILL
        if expr not in self._memo:
            self._memo[expr] = None if not is_int(expr.dtype) else self._of(expr)
        return self._memo[expr]

    def _of(self, expr: Expr) -> _Steps | None:
        if isinstance(expr, Read):
            if expr.var is self._axis.var:
                return 1, 1
            given = self._axis.definitions.get(expr.var)
            return None if given is None else self.steps(given)
        if not isinstance(expr, Op):
            return None
        args = expr.args
        if expr.name == "select":
            return self._chosen(expr)
        known = [self.steps(arg) for arg in args]
        x = known[0]
        y = known[1] if len(known) > 1 else _STILL
        if x is None or y is None:
            return None
        if expr.name == "convert":
            widened = is_int(args[0].dtype) and BITS[expr.dtype] > BITS[args[0].dtype] and args[0].dtype[0] == "i"
            return x if widened else self._kept(expr, args[0], x)
        if expr.name == "add":
            return self._kept(expr, expr, (x[0] + y[0], x[1] + y[1]))
        if expr.name == "sub":
            return self._kept(expr, expr, (x[0] - y[1], x[1] - y[0]))
        if expr.name == "neg":
            return self._kept(expr, expr, (-x[1], -x[0]))
        if expr.name == "mul" and isinstance(args[1], Const):
            ends = sorted((x[0] * args[1].value, x[1] * args[1].value)) if args[1].value else [0, 0]
            return self._kept(expr, expr, (ends[0], ends[1]))
        if expr.name in ("min", "max"):
            return min(x[0], y[0]), max(x[1], y[1])
        if expr.name == "floormod" and isinstance(args[1], Const) and args[1].value > 0:
            return self._around(x)
        return None

    def _kept(self, expr: Expr, exact: Expr, steps: _Steps) -> _Steps | None:
        """The steps of an integer that may wrap around: by a leap against its direction."""
        if expr.dtype == "i64":
            return steps  # an index
        bounds = self._interval(exact)
        low, high = int_range(expr.dtype)
        if bounds is not None and low <= bounds[0] and bounds[1] <= high:
            return steps
        return self._around(steps)

    def _around(self, steps: _Steps) -> _Steps | None:
        if steps == _STILL:
            return steps
        return (-math.inf, steps[1]) if steps[0] >= 0 else (steps[0], math.inf) if steps[1] <= 0 else None

    def _chosen(self, expr: Op) -> _Steps | None:
        condition, x, y = expr.args
        if self._from_the_end(condition, x, y):
            return -math.inf, 1
        one, other = self.steps(x), self.steps(y)
        if one is None or other is None:
            return None
        found = [one, other]
        if self._axis.depends(condition):
            apart = self._difference(x, y)
            turns = self._turns(condition)
            if apart is None or turns is None:
                return None
            if True in turns:  # from x to y
                found.append((other[0] - apart[1], other[1] - apart[0]))
            if False in turns:
                found.append((one[0] + apart[0], one[1] + apart[1]))
        return min(steps[0] for steps in found), max(steps[1] for steps in found)

    def _from_the_end(self, condition: Expr, x: Expr, y: Expr) -> bool:
        """Whether a place that grows by one is chosen, counted from the end where it is negative: y < 0 ? y + n : y.

        It grows by more than one nowhere: n - 1 is followed by 0, and what wraps around falls by more than n.
        """
        if not (isinstance(condition, Op) and condition.name == "lt" and isinstance(x, Op) and x.name == "add"):
            return False
        place, end = x.args
        below = condition.args[1]
        if condition.args[0] != y or place != y or not (isinstance(below, Const) and below.value == 0):
            return False
        return isinstance(end, Const) and end.value >= 0 and y.dtype[0] == "i" and self._goes_by_one(y)

    def _goes_by_one(self, expr: Expr) -> bool:
        """Whether an integer grows by one from lane to lane, but where it wraps around."""
        if self.steps(expr) == (1, 1):
            return True
        if not (isinstance(expr, Op) and expr.name == "add"):
            return False
        x, y = expr.args
        return any(self.steps(a) == _STILL and self._goes_by_one(b) for a, b in ((x, y), (y, x)))

    def _turns(self, condition: Expr) -> set[bool] | None:
        """The values that a condition may leave from a lane to the next."""
        if isinstance(condition, Op) and condition.name in ("lt", "le", "gt", "ge"):
            x, y = (self.steps(arg) for arg in condition.args)
            if x is None or y is None:
                return None
            below = condition.name in ("lt", "le")
            if x[0] - y[1] >= 0:
                return {below}
            if x[1] - y[0] <= 0:
                return {not below}
            return {True, False}
        return {True, False} if isinstance(condition, Op) and condition.name in COMPARES else None

    def _difference(self, x: Expr, y: Expr) -> _Steps | None:
        """Bounds of x - y."""
        if x.dtype != "i64":
            return None
        form, constant = linear_form(make("sub", (x, y)))
        low = high = constant
        for term, factor in form.values():
            bounds = self._interval(term)
            if bounds is None:
                return None
            low += min(factor * bounds[0], factor * bounds[1])
            high += max(factor * bounds[0], factor * bounds[1])
        return low, high
