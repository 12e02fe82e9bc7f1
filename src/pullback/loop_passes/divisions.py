"""Divisions: marks those of vector loops by one number that are better done by its reciprocal (emit/division.py).

Needs: vector loops chosen; comes last. Guarantees: only attrs of ops change. A division keeps the divider busy for five
to ten cycles, the eight instructions that take its place keep two units busy for four. So it pays where a body is short
and waits for the divider: an update by Adam of 10,000 elements took 6.4 us, now 4.5. It does not in a long body, whose
other instructions take as long (an iteration of PLN, 150 instructions: 76 cycles a vector instead of 62), nor where
each row has a divisor of its own (rows of 64 divided by their deviations took 1.5 times as long, of 1000 1.1 times).

    let c = ...                                        let c = ...
    vector i < 10000 { y[i] = div(x[i], c) }    =>     vector i < 10000 { y[i] = div{inverse=True}(x[i], c) }
"""

from __future__ import annotations

from ..loop_ir.affine import depends
from ..loop_ir.ir import INVERSE, Const, Expr, Function, Loop, Op, Stmt, Var
from ..loop_ir.vectors import varying_vars
from ..loop_ir.visit import Rewriter, bound, expressions, nodes, statements, subexpressions

LONG = 64  # ops of a body in which the divider is not what everything waits for
FEW = 512  # elements for which finding the reciprocal takes as long as it saves


def divisions(function: Function) -> Function:
    """The function with divisions by one number marked where a reciprocal is quicker."""
    if not any(
        isinstance(expr, Op) and expr.name == "div" and expr.dtype in ("f32", "f64")
        for stmt in statements(function.body)
        for expr in nodes(stmt)
    ):
        return function
    return Function(function.name, function.buffers, _Mark().block(function.body))


class _Mark(Rewriter):
    """Marks divisions in the vector loops of a function."""

    def __init__(self) -> None:
        super().__init__()
        self._inside: set[Var] = set()  # what is bound inside of the nest around

    def inside(self, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Loop) or (stmt.role == "sequential" and not self._inside):
            return super().inside(stmt)
        outer = self._inside
        if stmt.role == "vector":
            return _MarkLoop(stmt, outer).block((stmt,))[0] if _waits(stmt, bool(outer)) else stmt
        self._inside = outer or {v for each in statements((stmt,)) for v in bound(each)}
        result = super().inside(stmt)
        self._inside = outer
        return result


class _MarkLoop(Rewriter):
    """Marks divisions in one vector loop by what is the same in all of the nest."""

    def __init__(self, loop: Loop, inside: set[Var]) -> None:
        super().__init__()
        self._varying = varying_vars(loop)
        self._inside = self._varying | inside
        self._known: tuple[dict[int, bool], dict[int, bool]] = {}, {}

    def expr(self, expr: Expr) -> Expr:
        if not isinstance(expr, Op) or expr.name != "div" or expr.dtype not in ("f32", "f64"):
            return expr
        x, y = expr.args
        if not depends(x, self._varying, self._known[0]) or depends(y, self._inside, self._known[1]):
            return expr
        return Op("div", expr.dtype, expr.args, (*expr.attrs, INVERSE))


def _waits(loop: Loop, nested: bool) -> bool:
    """Whether a vector loop is short enough to wait for the divider, and goes through enough elements."""
    if isinstance(loop.extent, Const) and loop.extent.value < FEW and not nested:
        return False
    inside = list(statements((loop,)))
    ops = subexpressions([expr for stmt in inside for expr in expressions(stmt)])
    return sum(isinstance(expr, Op) for expr in ops) <= LONG and sum(isinstance(s, Loop) for s in inside) == 1
