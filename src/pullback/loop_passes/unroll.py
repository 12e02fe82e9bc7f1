"""Unroll: reduce and sequential loops of a few iterations become straight code.

Needs: simplified indices. Guarantees: the same operations in the same order. It comes before `vectorize`, which then
sees one body whose every access has a stride, and before `expand_math`, so that a repeated body is still small.

    parallel i < 1000 {                                parallel i < 1000 {
      reduce r < 3 carry (a = 0) {               =>      let a1 = add(0, x[i*3])
        next (add(a, x[i*3 + r]))                        let a2 = add(a1, x[i*3 + 1])
      } -> (s) by add                                    let a3 = add(a2, x[i*3 + 2])
      y[i] = s                                           y[i] = a3
"""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.fold import const
from ..loop_ir.ir import Const, Expr, Function, If, Let, Loop, Op, Read, Stmt, Store, Var, While
from ..loop_ir.visit import Substitute, expressions, subexpressions

MAX_ITERATIONS = 8
MAX_OPS = 96  # after unrolling


def unroll(function: Function) -> Function:
    """The function without tiny reduce and sequential loops."""
    unroller = _Unroll()
    return Function(function.name, function.buffers, unroller.block(function.body))


class _Unroll:
    def __init__(self) -> None:
        self._count = 0

    def fresh(self, var: Var) -> Var:
        self._count += 1
        return Var(f"{var.name}_u{self._count}", var.dtype)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Loop():
                    stmt = Loop(stmt.var, stmt.extent, stmt.role, self.block(stmt.body), stmt.carried, stmt.attrs)
                    if _is_tiny(stmt):
                        result += self.straight(stmt)
                        continue
                case If():
                    stmt = If(stmt.cond, self.block(stmt.then), self.block(stmt.orelse))
                case While():
                    stmt = While(self.block(stmt.body_cond), stmt.cond, self.block(stmt.body))
            result.append(stmt)
        return tuple(result)

    def straight(self, loop: Loop) -> list[Stmt]:
        """The iterations of a loop, one after the other."""
        assert isinstance(loop.extent, Const)
        carried = [var for group in loop.carried for var in group.vars]
        inits = [init for group in loop.carried for init in group.inits]
        updates = [update for group in loop.carried for update in group.updates]
        results = [var for group in loop.carried for var in group.results]
        statements: list[Stmt] = []
        values = [self._pinned(statements, var, init) for var, init in zip(carried, inits)]
        for k in range(loop.extent.value):
            now: dict[Var, Expr] = {loop.var: const("i64", k), **dict(zip(carried, values))}
            copy = Substitute(now, self.fresh)
            statements += copy.block(loop.body)
            following = [copy.rewrite(update) for update in updates]
            values = [self._pinned(statements, var, value) for var, value in zip(carried, following)]
        statements += [Let(var, value) for var, value in zip(results, values)]
        return statements

    def _pinned(self, statements: list[Stmt], var: Var, value: Expr) -> Expr:
        """`value` as of here, under a name of its own."""
        if isinstance(value, (Const, Read)):
            return value
        fresh = self.fresh(var)
        statements.append(Let(fresh, value))
        return Read(fresh)


def _is_tiny(loop: Loop) -> bool:
    if loop.role not in ("reduce", "sequential") or not isinstance(loop.extent, Const):
        return False
    if not 1 <= loop.extent.value <= MAX_ITERATIONS or not all(isinstance(stmt, (Let, Store)) for stmt in loop.body):
        return False
    roots = [expr for stmt in (*loop.body, loop) for expr in expressions(stmt)]
    work = sum(isinstance(expr, Op) for expr in subexpressions(roots))
    return work * loop.extent.value <= MAX_OPS
