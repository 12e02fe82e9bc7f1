"""Simplify: index algebra by intervals, constant conditions, loops of one iteration, Lets that nobody reads.

Needs: valid loop IR. Guarantees: the same stores and calls in the same order with the same values; indices at least as
simple. LLVM would find some of this after the loops are emitted, too late for choosing how to vectorize them.

    parallel i < 6 {                                   parallel i < 6 {
      parallel j < 1 {                           =>      y[i] = x[i]
        let t: i64 = floormod(i + j, 6)                }
        y[floordiv(i*8 + t, 8)*1] = x[t]

Places that are made of indices alone are computed as indices are, whatever type the program gave them: lanes and
strides are read off them. x[arange(n)[:, None] + arange(100)] took 7 times as long as windows of slices.

Places that data give in 32 bits stay there: their bounds are taken in lanes of 32 bits, and each lane's load widens its
own (loops/emit/loads.py). LLVM makes lanes of 64-bit addresses, then takes them apart. Measured: gathers take 0.45 to
0.95 of the time.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import gcd
from operator import is_

from pullback.loops.ir.affine import Interval, interval, summands
from pullback.loops.ir.fold import COMPARES, const, make
from pullback.loops.ir.ir import Const, Expr, Function, If, Let, Load, Loop, Op, Read, Stmt, Store, Var, While
from pullback.loops.ir.types import BITS, is_int
from pullback.loops.ir.visit import Rewriter, blocks, free_vars, reads, statements, with_blocks
from pullback.loops.passes.roots import compared

_SHIFTS = ("shl", "shr_logical", "shr_arithmetic")


def simplify(function: Function, done: Set[Stmt] = frozenset()) -> Function:
    """The function with simpler expressions and without what has no effect; `done` are statements that are simple, as
    long as nothing more is known of the variables that they read."""
    body = _Simplify(done).block(function.body)
    return Function(function.name, function.buffers, drop_dead(body))


class _Simplify(Rewriter):
    def __init__(self, done: Set[Stmt]) -> None:
        super().__init__()
        self.done = done
        self.ranges: dict[Var, Interval] = {}
        self.values: dict[Var, Expr] = {}
        self.given: dict[Var, Expr] = {}  # what integers and bools were given
        self.wide: dict[Var, Expr] = {}  # narrow integers made of indices alone: the same in 64 bits

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        if not self.done:
            return super().block(body)
        result: list[Stmt] = []
        for stmt in body:
            if stmt in self.done and self.values.keys().isdisjoint(free_vars((stmt,))):
                result.append(stmt)
            else:
                result += self.stmt(self.inside(stmt))
        return tuple(result)

    def enter(self, var: Var, extent: Expr) -> None:
        bounds = interval(extent, self.ranges)
        if bounds is not None and bounds[1] >= 1:
            self.ranges[var] = 0, bounds[1] - 1
            if bounds[1] == 1:
                self.values[var] = const("i64", 0)

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read):
            return self.values.get(expr.var, expr)
        if isinstance(expr, Load):
            index = self._joined(expr.index)
            return _of_table(expr if index is expr.index else Load(expr.buffer, index))
        if not isinstance(expr, Op):
            return expr
        if expr.name == "convert" and expr.dtype == "i64" and is_int(expr.args[0].dtype):
            wide = self._wide(expr.args[0])
            return expr if wide is None else wide
        if expr.name in ("floordiv", "floormod") and isinstance(expr.args[1], Const):
            return self._divide(expr)
        if expr.name in ("div", "rem") and isinstance(expr.args[1], Const) and is_int(expr.dtype):
            return self._truncated(expr)
        if expr.name == "select" and is_int(expr.dtype):
            return self._floor_division(expr)
        if expr.name == "mul" and is_int(expr.dtype):
            return _masked(expr)
        if expr.name in _SHIFTS:
            return self._shift(expr)
        if expr.name in COMPARES:
            return self._compare(expr) if is_int(expr.args[0].dtype) else compared(expr) or expr
        if expr.name in ("min", "max") and is_int(expr.dtype):
            x, y = (interval(arg, self.ranges) for arg in expr.args)
            if x is not None and y is not None:
                lower, upper = (expr.args[0], expr.args[1]) if expr.name == "min" else (expr.args[1], expr.args[0])
                if x[1] <= y[0]:
                    return lower
                if y[1] <= x[0]:
                    return upper
            return self._narrowed(expr)
        return expr

    def _shift(self, expr: Op) -> Expr:
        """A shift by less than all bits says so by a mask: those by more are not asked for, in each lane and turn."""
        x, amount = expr.args
        bits, bounds = BITS[expr.dtype], interval(amount, self.ranges)
        if isinstance(amount, Const) or bounds is None or not 0 <= bounds[0] <= bounds[1] < bits:
            return expr
        return Op(expr.name, expr.dtype, (x, make("and", (amount, const(amount.dtype, bits - 1)))), expr.attrs)

    def _narrowed(self, expr: Op) -> Expr:
        """A bound of an index that the data give in 32 bits, taken there: twice as many go into a register."""
        x, bound = expr.args
        if expr.dtype != "i64" or not isinstance(bound, Const) or not -(1 << 31) <= bound.value < 1 << 31:
            return expr
        if not (isinstance(x, Op) and x.name == "convert" and x.args[0].dtype == "i32"):
            return expr
        short = make(expr.name, (x.args[0], const("i32", bound.value)))
        return make("convert", (self.expr(short),), "i64")

    def _wide(self, expr: Expr, memo: dict[Expr, Expr | None] | None = None) -> Expr | None:
        """An integer of fewer bits in 64, if it is made of indices alone and does not wrap; else None."""
        if isinstance(expr, Const):
            return const("i64", expr.value) if is_int(expr.dtype) and abs(expr.value) < 1 << 63 else None
        if isinstance(expr, Read):
            return self.wide.get(expr.var)
        if not isinstance(expr, Op):
            return None
        memo = {} if memo is None else memo
        if expr not in memo:
            memo[expr] = self._wide_op(expr, memo)
        return memo[expr]

    def _wide_op(self, expr: Op, memo: dict[Expr, Expr | None]) -> Expr | None:
        if interval(expr, self.ranges) is None:
            return None
        if expr.name == "convert":
            inner = expr.args[0]
            return inner if inner.dtype == "i64" else self._wide(inner, memo) if is_int(inner.dtype) else None
        if expr.name not in ("add", "sub", "mul", "min", "max", "floordiv", "floormod", "select"):
            return None
        return self._wide_parts(expr, memo)

    def _wide_condition(self, expr: Expr, memo: dict[Expr, Expr | None]) -> Expr | None:
        """A condition on such integers, asked in 64 bits."""
        if isinstance(expr, Const):
            return expr
        if not isinstance(expr, Op) or expr.name not in (*COMPARES, "and", "or", "not"):
            return None
        if expr not in memo:
            memo[expr] = self._wide_parts(expr, memo)
        return memo[expr]

    def _wide_parts(self, expr: Op, memo: dict[Expr, Expr | None]) -> Expr | None:
        """The same of operands in 64 bits; the first that is not made of indices ends it."""
        parts = []
        for arg in expr.args:
            part = self._wide_condition(arg, memo) if arg.dtype == "bool" else self._wide(arg, memo)
            if part is None:
                return None
            parts.append(part)
        return self.expr(make(expr.name, tuple(parts)))

    def _truncated(self, expr: Op) -> Expr:
        """A quotient that is rounded towards 0, or its remainder: of what is not negative those of `floordiv`."""
        x, divisor = expr.args
        assert isinstance(divisor, Const)
        bounds = interval(x, self.ranges)
        if bounds is None or divisor.value <= 0:
            return expr
        if expr.name == "rem" and (short := self._remainder(expr, bounds)) is not expr:
            return short
        if bounds[0] < 0:
            return expr
        return self.expr(make("floordiv" if expr.name == "div" else "floormod", expr.args))

    def _remainder(self, expr: Op, bounds: Interval) -> Expr:
        """x % n with the sign of x, where x is known to be less than two periods from 0 on one side."""
        x, divisor = expr.args
        assert isinstance(divisor, Const)
        n = divisor.value
        if bounds[0] <= -2 * n or bounds[1] >= 2 * n:
            return expr
        if bounds[0] > -n and bounds[1] < n:
            return x
        if bounds[0] > -n:
            return self.expr(make("select", (self.expr(make("lt", (x, divisor))), x, make("sub", (x, divisor)))))
        if bounds[1] < n:
            above = self.expr(make("gt", (x, const(expr.dtype, -n))))
            return self.expr(make("select", (above, x, make("add", (x, divisor)))))
        return expr

    def _floor_division(self, expr: Op) -> Expr:
        """x // n for n > 0, if a choice is the one that makes it of a quotient that is rounded towards 0: that less 1
        where x is negative and n does not divide it; x % n, if it adds n to remainders below 0."""
        condition, below, quotient = (self._meant(arg) for arg in expr.args)
        if not isinstance(quotient, Op) or quotient.name not in ("div", "floordiv", "rem"):
            return expr
        x, n = quotient.args
        if not isinstance(n, Const) or n.value <= 0 or not isinstance(condition, Op) or condition.name != "and":
            return expr
        if quotient.name == "rem":
            negative, left = (self._meant(side) for side in condition.args)
            signs = self._is(negative, "lt", quotient, 0) and self._is(left, "ne", quotient, 0)
            return make("floormod", (x, n)) if signs and self._is(below, "add", quotient, n.value) else expr
        if not self._is(below, "add", quotient, -1):
            return expr
        sides = [self._meant(side) for side in condition.args]
        for sign, rest in (sides, sides[::-1]):
            if not isinstance(sign, Op) or not self._is(sign, "ne", sign.args[0], 1):
                continue
            of, left = self._meant(sign.args[0]), self._meant(rest.args[0]) if isinstance(rest, Op) else rest
            if not isinstance(of, Op) or of.name != "sign" or not self._same(of.args[0], x):
                continue
            if self._is(rest, "ne", left, 0) and any(self._is(left, name, x, n.value) for name in ("rem", "floormod")):
                return self.expr(make("floordiv", (x, n)))
        return expr

    def _meant(self, expr: Expr) -> Expr:
        """What a variable was given."""
        return self.given.get(expr.var, expr) if isinstance(expr, Read) else expr

    def _same(self, x: Expr, y: Expr) -> bool:
        x, y = self._meant(x), self._meant(y)
        return x is y or (isinstance(x, Read) and isinstance(y, Read) and x.var is y.var)

    def _is(self, expr: Expr, name: str, x: Expr, number: int) -> bool:
        """Whether an expression is an op of x and a number."""
        if not isinstance(expr, Op) or expr.name != name:
            return False
        other = expr.args[1]
        return self._same(expr.args[0], x) and isinstance(other, Const) and other.value == number

    def _divide(self, expr: Op) -> Expr:
        """x // n and x % n: parts of x that n divides come out; what is known to lie in one period vanishes."""
        x, divisor = expr.args
        assert isinstance(divisor, Const)
        n = divisor.value
        if n <= 0:
            return expr
        if expr.dtype != "i64":
            wide = self._wide(expr)
            return const(expr.dtype, wide.value) if isinstance(wide, Const) else expr
        bounds = interval(x, self.ranges)
        if bounds is not None and bounds[0] >= 0:
            if bounds[1] < n:
                return const("i64", 0) if expr.name == "floordiv" else x
        found, constant = summands(x)
        whole = [(term, factor // n) for term, factor in found if factor % n == 0]
        if whole or constant >= n or constant < 0:
            inner = sum_of([each for each in found if each[1] % n], constant % n)
            if expr.name == "floormod":
                return self.expr(make("floormod", (inner, divisor)))
            quotient = self.expr(make("floordiv", (inner, divisor)))
            return sum_of([*whole, (quotient, 1)], constant // n)
        parts = self._digits(found, constant, n)
        if parts is not None:
            unit, high, low = parts
            of_high = self.expr(make(expr.name, (high, const("i64", n // unit))))
            if expr.name == "floordiv":
                return of_high
            return self.expr(make("add", (make("mul", (of_high, const("i64", unit))), low)))
        if bounds is not None and bounds[0] >= 0 and ("nonneg", True) not in expr.attrs:
            # Lanes divide numbers of 32 bits by one product, those of 64 by four.
            short = (("short", True),) if bounds[1] < 1 << 31 and n < 1 << 31 else ()
            return Op(expr.name, expr.dtype, expr.args, (*expr.attrs, ("nonneg", True), *short))
        return expr

    def _digits(self, found: Sequence[tuple[Expr, int]], constant: int, n: int) -> tuple[int, Expr, Expr] | None:
        """(unit, high, low) with high * unit + low for a sum that n divides, low in one unit, and n a multiple of it.

        A reshape that merges axes and cuts one of them leaves (r*33 + s)*33 + t, divided by 4*33*33: a quotient of r.
        """
        for unit in sorted({gcd(factor, n) for _, factor in found} - {1}, reverse=True):
            low = sum_of([each for each in found if each[1] % unit], constant % unit)
            bounds = interval(low, self.ranges)
            if bounds is not None and 0 <= bounds[0] <= bounds[1] < unit:
                return unit, sum_of([(x, f // unit) for x, f in found if f % unit == 0], constant // unit), low
        return None

    def _joined(self, index: Expr) -> Expr:
        """A place in which quotients and their remainders are put together again: x // n * n + x % n is x."""
        found, constant = summands(index)
        rests = [each for each in found if isinstance(each[0], Op) and each[0].name == "floormod"]
        parts = list(found)
        for rest, factor in rests:
            x, n = rest.args  # type: ignore[attr-defined]
            for whole, times in parts if isinstance(n, Const) else ():
                if not isinstance(whole, Op) or whole.name != "floordiv" or times != factor * n.value:
                    continue
                if self._same(whole.args[0], x) and isinstance(whole.args[1], Const) and whole.args[1].value == n.value:
                    parts.remove((rest, factor))
                    parts[parts.index((whole, times))] = x, factor
                    break
        return index if len(parts) == len(found) else sum_of(parts, constant)

    def _compare(self, expr: Op) -> Expr:
        x, y = (interval(arg, self.ranges) for arg in expr.args)
        if x is None or y is None:
            return self._compared_short(expr)
        low, high = x[0] - y[1], x[1] - y[0]  # of x - y
        known = {
            "lt": True if high < 0 else False if low >= 0 else None,
            "le": True if high <= 0 else False if low > 0 else None,
            "gt": True if low > 0 else False if high <= 0 else None,
            "ge": True if low >= 0 else False if high < 0 else None,
            "eq": True if low == high == 0 else False if low > 0 or high < 0 else None,
            "ne": False if low == high == 0 else True if low > 0 or high < 0 else None,
        }[expr.name]
        return self._compared_short(expr) if known is None else const("bool", known)

    def _compared_short(self, expr: Op) -> Expr:
        """A comparison of an index that the data give in 32 bits, made there, as bounds of such are taken."""
        if expr.args[0].dtype != "i64" or all(isinstance(arg, Const) for arg in expr.args):
            return expr
        x, y = map(_in_32_bits, expr.args)
        return expr if x is None or y is None else self.expr(make(expr.name, (x, y)))

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        match stmt:
            case Let():
                if isinstance(stmt.value, (Const, Read)):
                    self.values[stmt.var] = stmt.value
                    return []
                if is_int(stmt.var.dtype) or stmt.var.dtype == "bool":
                    self.given[stmt.var] = stmt.value
                if is_int(stmt.var.dtype):
                    bounds = interval(stmt.value, self.ranges)
                    if bounds is not None:
                        self.ranges[stmt.var] = bounds
                    wide = self._wide(stmt.value) if stmt.var.dtype != "i64" else None
                    if wide is not None:
                        self.wide[stmt.var] = wide
            case Store():
                index = self._joined(stmt.index)
                return [stmt if index is stmt.index else Store(stmt.buffer, index, stmt.value)]
            case If():
                if isinstance(stmt.cond, Const):
                    return list(stmt.then if stmt.cond.value else stmt.orelse)
            case While():
                if isinstance(stmt.cond, Const) and not stmt.cond.value:
                    return list(stmt.body_cond)
            case Loop():
                return self._loop(stmt)
        return [stmt]

    def _loop(self, loop: Loop) -> list[Stmt]:
        if not isinstance(loop.extent, Const) or loop.extent.value > 1:
            return [loop]
        result: list[Stmt] = []
        if loop.extent.value <= 0:
            for group in loop.carried:
                result += [Let(var, init) for var, init in zip(group.results, group.inits)]
            return result
        for group in loop.carried:
            result += [Let(var, init) for var, init in zip(group.vars, group.inits)]
        result += loop.body
        for group in loop.carried:
            result += [Let(var, update) for var, update in zip(group.results, group.updates)]
        return result


def _of_table(load: Load) -> Expr:
    """An integer of a constant at a known place as itself."""
    data, index = load.buffer.data, load.index
    if data is None or not isinstance(index, Const) or not 0 <= index.value < data.size or not is_int(load.dtype):
        return load
    return const(load.dtype, data.reshape(-1)[index.value])


def _in_32_bits(expr: Expr) -> Expr | None:
    """A 64-bit integer as the one of 32 bits that it was made of or is; else None."""
    if isinstance(expr, Const):
        return const("i32", expr.value) if -(1 << 31) <= expr.value < 1 << 31 else None
    return expr.args[0] if isinstance(expr, Op) and expr.name == "convert" and expr.args[0].dtype == "i32" else None


def _masked(expr: Op) -> Expr:
    """An integer times a condition: no CPU multiplies lanes of 8 bits, and all choose among them."""
    for x, times in (expr.args, expr.args[::-1]):
        if isinstance(times, Op) and times.name == "convert" and times.args[0].dtype == "bool":
            return make("select", (times.args[0], x, const(expr.dtype, 0)))
    return expr


def make_sum(parts: Sequence[Expr], constant: int = 0) -> Expr:
    """The sum of i64 expressions and a constant."""
    total: Expr = const("i64", 0)
    for part in parts:
        total = make("add", (total, part))
    return make("add", (total, const("i64", constant)))


def sum_of(parts: Sequence[tuple[Expr, int]], constant: int = 0) -> Expr:
    """The sum of i64 expressions, each times a factor, and a constant."""
    return make_sum([make("mul", (part, const("i64", factor))) for part, factor in parts], constant)


def drop_dead(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """`body` without Lets that nobody reads, and loops and branches in which nothing happens."""
    while True:
        read = set[Var]().union(*map(reads, statements(body)))
        fresh = _without(body, read)
        if fresh is body:
            return fresh
        body = fresh


def _without(body: tuple[Stmt, ...], read: set[Var]) -> tuple[Stmt, ...]:
    """The statements without those that do nothing; the same object if all do something."""
    kept: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Let) and stmt.var not in read:
            continue
        if isinstance(stmt, Loop) and not _acts(stmt.body):
            if not any(v in read for group in stmt.carried for v in group.results):
                continue
        inner = with_blocks(stmt, _without, read)
        if isinstance(inner, If) and not inner.then and not inner.orelse:
            continue
        kept.append(stmt if all(map(is_, blocks(inner), blocks(stmt))) else inner)
    return body if len(kept) == len(body) and all(map(is_, kept, body)) else tuple(kept)


def _acts(body: Sequence[Stmt]) -> bool:
    """Whether anything but Lets and loops is inside."""
    return any(not isinstance(stmt, (Let, Loop)) for stmt in statements(body))
