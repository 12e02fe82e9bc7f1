"""Lookups: lanes that read places which data give load them one by one where the machine takes longer to gather them.

Needs: the schedule. Guarantees: the same elements; loops in lanes are marked, and nothing else changes. Emission goes
by the mark where registers are so wide that it would gather, and the array is larger than the first cache.

Measured on a Zen 4, one core: 400 columns of a matrix of 300 x 400, chosen by an array, take 0.60 ns an element by
gathers, 0.46 one by one, of 1000 x 1000 0.54 and 0.41; what each waits for the second cache alone takes as long.
"""

from __future__ import annotations

from pullback.loops.ir.ir import SINGLY, Function, Load, Loop, Op, Stmt
from pullback.loops.ir.visit import access_nodes, fact, statements, subexpressions, with_blocks

from .machine import host


def lookups(function: Function) -> Function:
    """The function with lookups marked that are not to be gathered on this machine."""
    if host().gathered <= 1 or not any(map(_looks_up, statements(function.body))):
        return function
    return Function(function.name, function.buffers, _marked(function.body))


def _marked(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        if isinstance(stmt, Loop) and stmt.role == "vector" and any(map(_looks_up, statements((stmt,)))):
            stmt = Loop(stmt.var, stmt.extent, stmt.role, stmt.body, stmt.carried, (*stmt.attrs, SINGLY))
        else:
            stmt = with_blocks(stmt, _marked)
        result.append(stmt)
    return tuple(result)


@fact
def _looks_up(stmt: Stmt) -> bool:
    """Whether a statement itself reads an element at a place that was converted, as those are that data give."""
    return any(
        isinstance(x, Op) and x.name == "convert"
        for node in access_nodes(stmt)
        if isinstance(node, Load)
        for x in subexpressions((node.index,))
    )
