"""How often a function computes what is dear: for cost analyses."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.fold import is_math
from pullback.loops.ir.ir import Const, Expr, Function, Loop, Op, Run, Stmt
from pullback.loops.ir.visit import blocks, expressions, subexpressions

_CHEAP = frozenset({"integer_pow", "square", "reciprocal"})  # products and a division


def transcendentals(function: Function) -> int:
    """Values of exp, log, sin, sqrt, ... that a run computes; loops of unknown length count as one iteration.

    `function` as it comes from lowering: later these functions are basic operations like others.
    """
    return _count(function.body)


def _count(body: Sequence[Stmt]) -> int:
    total = 0
    for stmt in body:
        if isinstance(stmt, Loop):
            times = stmt.extent.value if isinstance(stmt.extent, Const) else 1
            updates = [expr for group in stmt.carried for expr in group.updates]
            total += times * (_values(updates) + _count(stmt.body))
        elif isinstance(stmt, Run):
            total += _values(expressions(stmt)) + _count(stmt.kernel.body)
        else:
            total += _values(expressions(stmt)) + sum(map(_count, blocks(stmt)))
    return total


def _values(roots: Sequence[Expr]) -> int:
    return sum(
        isinstance(expr, Op) and (expr.name == "sqrt" or (is_math(expr.name) and expr.name not in _CHEAP))
        for expr in subexpressions(roots)
    )
