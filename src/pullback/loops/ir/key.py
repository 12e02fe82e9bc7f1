"""A hashable key of a piece of a program: equal for pieces that differ in the names of buffers and variables only."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from .fold import const_key
from .ir import (
    Address,
    Buffer,
    Call,
    Carried,
    Combine,
    Const,
    Expr,
    HostCall,
    If,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Run,
    Stmt,
    Store,
    Var,
    While,
)
from .visit import expressions, subexpressions


def part_key(body: Sequence[Stmt]) -> tuple[Hashable, list[Buffer], list[Var]]:
    """(key, buffers, free variables) of `body`; those of equal pieces correspond in order.

    A buffer is told by its type, size and whether it is local, not by what it holds.
    """
    keys = _Keys()
    keys.block(body)
    return tuple(keys.parts), list(keys.buffers), [v for v in keys.variables if v not in keys.bound]


class _Keys:
    def __init__(self) -> None:
        self.parts: list[Hashable] = []
        self.buffers: dict[Buffer, int] = {}
        self.variables: dict[Var, int] = {}
        self.bound: set[Var] = set()

    def buffer(self, buffer: Buffer) -> int:
        found = self.buffers.get(buffer)
        if found is None:
            found = self.buffers[buffer] = len(self.buffers)
            self.parts.append(("buffer", buffer.dtype, buffer.size, buffer.space == "local"))
        return found

    def var(self, var: Var) -> int:
        found = self.variables.get(var)
        if found is None:
            found = self.variables[var] = len(self.variables)
            self.parts.append(("var", var.dtype))
        return found

    def binds(self, variables: Sequence[Var]) -> None:
        for var in variables:
            self.parts.append(("bind", self.var(var)))
            self.bound.add(var)

    def exprs(self, roots: Sequence[Expr]) -> None:
        numbers: dict[int, int] = {}
        add = self.parts.append
        for expr in subexpressions(roots):
            kind = type(expr)
            node: Any = expr
            if kind is Op:
                add((node.name, node.dtype, node.attrs, *[numbers[id(x)] for x in node.args]))
            elif kind is Read:
                add(("read", self.var(node.var)))
            elif kind is Load:
                add(("load", self.buffer(node.buffer), numbers[id(node.index)]))
            else:
                assert kind is Const
                add(("const", *const_key(node)))
            numbers[id(expr)] = len(numbers)
        add(("roots", *[numbers[id(root)] for root in roots]))

    def block(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            self.stmt(stmt)
        self.parts.append("end")

    def stmt(self, stmt: Stmt) -> None:
        add = self.parts.append
        add(type(stmt).__name__)
        if not isinstance(stmt, (Loop, While)):
            self.exprs(expressions(stmt))
        match stmt:
            case Let():
                self.binds((stmt.var,))
            case Store():
                add(self.buffer(stmt.buffer))
            case Loop():
                self._loop(stmt)
            case While():
                self.block(stmt.body_cond)
                self.exprs((stmt.cond,))
                self.block(stmt.body)
            case If():
                self.block(stmt.then)
                self.block(stmt.orelse)
            case Call():
                add((stmt.symbol, *[self.buffer(a.buffer) if isinstance(a, Address) else "value" for a in stmt.args]))
                self.binds(() if stmt.result is None else (stmt.result,))
            case HostCall():
                add((stmt.index, *map(self.buffer, stmt.buffers)))
            case Run():
                add((id(stmt.kernel), *map(self.buffer, stmt.buffers)))

    def _loop(self, loop: Loop) -> None:
        self.parts.append((loop.role, loop.attrs, len(loop.carried)))
        self.exprs((loop.extent, *[init for group in loop.carried for init in group.inits]))
        self.binds((loop.var, *[var for group in loop.carried for var in group.vars]))
        self.block(loop.body)
        self.exprs([update for group in loop.carried for update in group.updates])
        for group in loop.carried:
            self._combine(group)
            self.binds(group.results)

    def _combine(self, group: Carried) -> None:
        combine = group.combine
        self.parts.append((len(group.vars), "own" if isinstance(combine, Combine) else combine))
        if isinstance(combine, Combine):
            self.binds((*combine.left, *combine.right))
            self.exprs(combine.exprs)
            self.exprs(combine.neutral)


__all__ = ["part_key"]
