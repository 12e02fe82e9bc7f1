"""Expand math: functions such as exp become expressions of basic ops, by the kernels in loop_passes/math.

Needs: nothing. Guarantees: no math op is left (ops.OPS says which are), or NotImplementedError names it. Statements
that a kernel writes stand in front of the statement that uses it.

    y[i] = exp(x[i])      =>      y[i] = select(lt(x[i], -104.0:f32), 0.0:f32, mul(..., fma(...)))
"""

from __future__ import annotations

from ..loop_ir.build import Builder
from ..loop_ir.fold import is_math
from ..loop_ir.ir import Expr, Function, Loop, Op, Stmt, While
from ..loop_ir.types import REAL_OF
from ..loop_ir.visit import Rewriter, expressions, statements, subexpressions
from .math import expand

# Ops that the emitter knows for real numbers, but the math kernels may know better or for complex ones.
_ALSO = frozenset({"sqrt", "sign", "abs", "div", "rem"})


def expand_math(function: Function) -> Function:
    """The function without math ops; NotImplementedError for one that no kernel is known for."""
    if not any(
        isinstance(expr, Op) and (is_math(expr.name) or expr.name in _ALSO)
        for stmt in statements(function.body)
        for expr in subexpressions(expressions(stmt))
    ):
        return function
    rewriter = _Expand()
    body = rewriter.block(function.body)
    return Function(function.name, function.buffers, body)


class _Expand(Rewriter):
    def __init__(self) -> None:
        super().__init__()
        self.b = Builder()

    def expr(self, expr: Expr) -> Expr:
        if not isinstance(expr, Op):
            return expr
        needed = is_math(expr.name)
        if not needed and not (expr.name in _ALSO and expr.args[0].dtype in REAL_OF):
            return expr
        found = expand(expr, self.b)
        if found is None:
            if needed:
                raise NotImplementedError(f"{expr.name}: there is no kernel for {expr.args[0].dtype}")
            return expr
        if any(isinstance(x, Op) and is_math(x.name) for x in subexpressions((found,))):
            return self.rewrite(found)
        return found

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:  # type: ignore[override]
        result: list[Stmt] = []
        for stmt in body:
            with self.b.block() as ahead:
                inside = self.inside(stmt)
            if ahead and isinstance(stmt, (Loop, While)):
                raise NotImplementedError("a math kernel that writes statements, in the head of a loop")
            result += [*ahead, inside]
        return tuple(result)
