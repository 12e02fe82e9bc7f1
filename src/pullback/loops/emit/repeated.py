"""Computations for parts of vectors as functions, which the loops over parts call: a module has each once.

Most of a long program with sines was one computation, again and again: 30 loops of sines went from 298 KB of code to
188. A function pays for a single use, too, as LLVM allocates the registers of the loop around it without it: ten steps
of sine and reversal with their gradient went from 45 to 37 ms of compilation, one sine with other functions from 16.5
to 15.9. Several results that share what they are computed from would be computed each by itself, so these are written
out twice first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.loops.ir.fold import const_key
from pullback.loops.ir.ir import Const, Expr, Lambda, Op, Read, Var

from .values import Value

WRITTEN_OUT = 2  # times that one computation of several results stands where it is needed


class Repeated:
    """The computations for parts in a module, by their form: how often each was needed, and the function it became."""

    def __init__(self) -> None:
        self._uses: dict[Any, int] = {}
        self._functions: dict[Any, Lambda] = {}

    def function(self, root: Expr, operands: dict[Expr, Value], alone: bool) -> tuple[Lambda, list[Expr]] | None:
        """(the function that computes `root`, its arguments among `operands`), if it is needed often, or is the one
        result of its computation."""
        found = _form(root, operands)
        if found is None:
            return None
        key, order, arguments = found
        self._uses[key] = self._uses.get(key, 0) + 1
        if self._uses[key] <= WRITTEN_OUT and not alone:
            return None
        if key not in self._functions:
            self._functions[key] = _lambda(order, arguments, operands)
        return self._functions[key], arguments


def _form(root: Expr, operands: dict[Expr, Value]) -> tuple[Any, list[Expr], list[Expr]] | None:
    """(what is equal for expressions that compute the same of their operands, what it consists of, operands before
    users, and the operands); None if there is more than ops, constants and operands.
    """
    numbers: dict[Expr, int] = {}
    order: list[Expr] = []
    parts: list[Any] = []
    arguments: list[Expr] = []
    stack = [root]
    while stack:
        expr = stack[-1]
        if expr not in numbers:
            if expr in operands:
                arguments.append(expr)
                parts.append(operands[expr].dtype)
            elif isinstance(expr, Const):
                parts.append(const_key(expr))
            elif isinstance(expr, Op):
                waiting = [x for x in expr.args if x not in numbers]
                if waiting:
                    stack += waiting
                    continue
                parts.append((expr.name, expr.dtype, expr.attrs, *[numbers[x] for x in expr.args]))
            else:
                return None
            numbers[expr] = len(numbers)
            order.append(expr)
        stack.pop()
    return tuple(parts), order, arguments


def _lambda(order: Sequence[Expr], arguments: Sequence[Expr], operands: dict[Expr, Value]) -> Lambda:
    params = {key: Var(f"x{k}", operands[key].dtype) for k, key in enumerate(arguments)}
    made: dict[Expr, Expr] = {}
    for expr in order:
        if expr in params:
            made[expr] = Read(params[expr])
        elif isinstance(expr, Op):
            made[expr] = Op(expr.name, expr.dtype, tuple([made[x] for x in expr.args]), expr.attrs)
        else:
            made[expr] = expr
    return Lambda("rare", tuple(params.values()), made[order[-1]])
