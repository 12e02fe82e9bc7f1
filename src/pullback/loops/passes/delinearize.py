"""Delinearize: an axis whose index is taken apart by division becomes two, so that lanes walk along memory.

Needs: simplified indices. Guarantees: the same iterations in the same order. Reshapes between movements leave such
axes: the blocks of an image, a Kronecker product, features in groups.

    parallel i < 900 {                                 parallel o < 30 {
      y[i] = x[floordiv(i, 30)] * z[floormod(i, 30)]  =>   parallel n < 30 {
                                                             y[o*30 + n] = x[o] * z[n]

Only the innermost parallel axis, which lanes will walk along, where its parts fill them, or little is computed. Parts
of a few elements become straight code, so that lanes find and store what takes turns in memory by shuffles:

    parallel i < 900 { y[i] = x[floordiv(i, 2)] }  =>  parallel o < 450 { y[o*2] = x[o]; y[o*2 + 1] = x[o] }

Measured: a Kronecker product of 30 x 30 by einsum and reshape took 1,390 us, now 50; blocks of 4 x 4 pixels 18, now 8;
`repeat(x, 3)` of 1000 x 1000 550, now 90 (Zen 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pullback.loops.ir.affine import terms
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Const, Expr, Function, Load, Loop, Op, Read, Stmt, Var
from pullback.loops.ir.visit import Rewriter, Substitute, nodes, statements, subexpressions, with_blocks
from pullback.loops.schedule.cost import cost
from pullback.loops.schedule.machine import NOMINAL

from .simplify import simplify
from .unroll import is_little, side_by_side

SHORT = 8  # elements: shorter parts are as quick in lanes that jump
FULL = 0.75  # of the lanes that the parts of an axis fill, if more is computed than
CHEAP = 12  # additions, about: there what is read counts


def delinearize(function: Function) -> Function:
    """The function with such axes as two."""
    pass_ = _Delinearize()
    body = pass_.block(function.body)
    return simplify(Function(function.name, function.buffers, body)) if pass_.changed else function


class _Delinearize:
    def __init__(self) -> None:
        self.changed = False
        self.new = Fresh("d")

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        return tuple([new for stmt in body for new in self.stmt(stmt)])

    def stmt(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if isinstance(stmt, Loop) and stmt.role == "parallel" and not any(_parallel(stmt.body)):
            return self.loop(stmt)
        return (with_blocks(stmt, self.block),)

    def loop(self, loop: Loop) -> tuple[Stmt, ...]:
        part = _part(loop)
        if part is None:
            turns = _turns(loop)
            if turns is None:
                return (loop,)
            self.changed = True
            return self.straight(loop, turns)
        self.changed = True
        outer, inner = self.new.var(loop.var), self.new.var(loop.var)
        assert isinstance(loop.extent, Const)
        body = _Parts(loop.var, outer, inner, part).block(loop.body)
        within = self.loop(Loop(inner, const("i64", part), loop.role, body, (), loop.attrs))
        return (Loop(outer, const("i64", loop.extent.value // part), loop.role, within, (), loop.attrs),)

    def straight(self, loop: Loop, turns: int) -> tuple[Stmt, ...]:
        """The loop with so many iterations in each, which are computed differently, and one for those left over."""
        assert isinstance(loop.extent, Const)
        whole, rest = divmod(loop.extent.value, turns)
        outer = self.new.var(loop.var)
        first = make("mul", (Read(outer), const("i64", turns)))
        body = side_by_side(loop, [make("add", (first, const("i64", k))) for k in range(turns)], self.new)
        result: list[Stmt] = [Loop(outer, const("i64", whole), loop.role, tuple(body), (), loop.attrs)]
        if rest:
            last = self.new.var(loop.var)
            here = {loop.var: make("add", (Read(last), const("i64", whole * turns)))}
            tail = Substitute(here, self.new.var).block(loop.body)
            result.append(Loop(last, const("i64", rest), loop.role, tail, (), loop.attrs))
        return tuple(result)


def _parallel(body: Sequence[Stmt]) -> Iterator[bool]:
    return (isinstance(stmt, Loop) and stmt.role == "parallel" for stmt in statements(body))


def _part(loop: Loop) -> int | None:
    """The extent of the inner axis, if there should be two."""
    if not isinstance(loop.extent, Const) or loop.carried:
        return None
    divisors = {
        expr.args[1].value  # type: ignore[attr-defined]
        for stmt in statements(loop.body)
        for expr in nodes(stmt)
        if isinstance(expr, Op) and expr.name in ("floordiv", "floormod") and _is_part(expr, loop.var)
    }
    if not divisors:
        return None
    part = min(divisors)
    if loop.extent.value % part or any(d % part for d in divisors):
        return None
    lanes = NOMINAL.vector_bytes // 4
    filled = part / (-(-part // lanes) * lanes)
    return part if filled >= FULL or cost(loop.body) <= CHEAP else None


def _turns(loop: Loop) -> int | None:
    """After how many iterations, a few, the loop goes on alike, if they find their elements by division."""
    if not isinstance(loop.extent, Const) or loop.carried:
        return None
    turns = 1
    for stmt in statements(loop.body):
        for node in nodes(stmt):
            if isinstance(node, Load):
                for expr in subexpressions((node.index,)):
                    divisor = _short_divisor(expr, loop.var)
                    if divisor is not None:
                        turns = math.lcm(turns, divisor)
    if turns == 1 or turns >= SHORT or loop.extent.value < turns * NOMINAL.vector_bytes // 4:
        return None
    return turns if is_little(loop, turns) else None


def _short_divisor(expr: Expr, var: Var) -> int | None:
    """The small number by which an index, or one of its neighbours, is divided."""
    if not isinstance(expr, Op) or expr.name not in ("floordiv", "floormod"):
        return None
    divisor = expr.args[1]
    if not isinstance(divisor, Const) or not 1 < divisor.value < SHORT:
        return None
    found, _ = terms(expr.args[0])
    return divisor.value if any(isinstance(term, Read) and term.var is var for term in found) else None


def _is_part(expr: Op, var: Var) -> bool:
    x, divisor = expr.args
    return isinstance(x, Read) and x.var is var and isinstance(divisor, Const) and divisor.value >= SHORT


class _Parts(Rewriter):
    """Puts outer * part + inner for an index, and for its quotients and remainders what these make of them."""

    def __init__(self, var: Var, outer: Var, inner: Var, part: int) -> None:
        super().__init__()
        self.var, self.outer, self.inner, self.part = var, outer, inner, part
        self.index = self._sum(Read(outer))

    def _sum(self, outer: Expr) -> Expr:
        return make("add", (make("mul", (outer, const("i64", self.part))), Read(self.inner)))

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Read):
            return self.index if expr.var is self.var else expr
        if not isinstance(expr, Op) or expr.name not in ("floordiv", "floormod") or expr.args[0] is not self.index:
            return expr
        divisor = expr.args[1]
        if not isinstance(divisor, Const) or divisor.value % self.part:
            return expr
        times = divisor.value // self.part
        outer: Expr = Read(self.outer)
        if expr.name == "floordiv":
            return outer if times == 1 else make("floordiv", (outer, const("i64", times)))
        return Read(self.inner) if times == 1 else self._sum(make("floormod", (outer, const("i64", times))))
