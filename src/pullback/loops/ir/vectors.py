"""What a vector loop is allowed to hold, and which of its variables differ between iterations."""

from __future__ import annotations

from collections.abc import Sequence

from .affine import depends, stride, terms
from .fold import const_key
from .ir import Buffer, Combine, Const, Expr, If, Let, Loop, Op, Read, Stmt, Store, Var
from .ops import neutral
from .visit import accessed, bound, fact, loaded, nodes, reads, statements, stored


def varying_vars(loop: Loop) -> set[Var]:
    """Variables that may differ between the iterations of `loop`: its index, and what is computed from it."""
    return set(_varying(loop))


@fact
def _varying(loop: Loop) -> frozenset[Var]:
    varying = {loop.var, *(v for group in loop.carried for v in group.vars)}
    for stmt in statements(loop.body):
        if isinstance(stmt, Let):
            if not varying.isdisjoint(reads(stmt)):
                varying.add(stmt.var)
        elif isinstance(stmt, Loop):
            varying.update(v for group in stmt.carried for v in (*group.vars, *group.results))
    return frozenset(varying)


@fact
def vectorizable(loop: Loop) -> bool:
    """Whether all of the body has a meaning lane by lane: no calls, no While, loops of the same extent in all lanes."""
    for group in loop.carried:
        if group.combine is None or (isinstance(group.combine, Combine) and not group.combine.neutral):
            return False
        if isinstance(group.combine, str) and neutral(group.combine, group.vars[0].dtype) is None:
            return False
    # Scratch space that is only read here, or only written, belongs to an iteration of a loop further out. Who writes
    # a vector loop knows that all of it does.
    scratch = {b for b in loaded(loop.body) & stored(loop.body) if b.space == "local"}
    if loop.role != "vector" and scratch and not _apart(loop, scratch):
        return False
    return _block_ok(loop.body, varying_vars(loop), False, {})


@fact
def scannable(loop: Loop) -> bool:
    """Whether lanes can hold successive iterations of a scan: its running values are all that passes between them."""
    if not all(isinstance(stmt, (Let, Store)) for stmt in loop.body) or loaded(loop.body) & stored(loop.body):
        return False
    read = [x.var for s in (*loop.body, loop) for x in nodes(s) if isinstance(x, Read)]
    lets = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, Let)}
    for group in loop.carried:
        if not isinstance(group.combine, str) or neutral(group.combine, group.vars[0].dtype) is None:
            return False
        update = group.updates[0]
        value = lets.get(update.var) if isinstance(update, Read) else None
        if not isinstance(value, Op) or value.name != group.combine or read.count(group.vars[0]) != 1:
            return False
        if not any(isinstance(arg, Read) and arg.var is group.vars[0] for arg in value.args):
            return False
    return True


def _apart(loop: Loop, scratch: set[Buffer]) -> bool:
    """Whether each iteration has elements of its own in each of the buffers: all accesses at one moving index.

    A loop whose iterations each have the buffer to themselves walks it by loops inside, and is told apart by that.
    """
    inside = {var for stmt in statements(loop.body) for var in bound(stmt)}
    varying = varying_vars(loop)
    moving: dict[Expr, bool] = {}
    fixed: dict[Expr, bool] = {}
    keys: dict[object, tuple] = {}
    for buffer, index in accessed(loop.body):
        if buffer not in scratch:
            continue
        if depends(index, inside, fixed) or not stride(index, loop.var, varying, {}, moving):
            return False
        found, offset = terms(index)
        if keys.setdefault(buffer, (key := (frozenset(map(_key, found)), offset))) != key:
            return False
    return True


def _key(expr: Expr) -> tuple:
    """Equal for expressions of equal structure."""
    if isinstance(expr, Const):
        return const_key(expr)
    if isinstance(expr, Read):
        return ("read", id(expr.var))
    if isinstance(expr, Op):
        return (expr.name, expr.dtype, expr.attrs, *map(_key, expr.args))
    return ("load", id(expr))


def _block_ok(body: Sequence[Stmt], varying: set[Var], inside_mask: bool, memo: dict[Expr, bool]) -> bool:
    for stmt in body:
        match stmt:
            case Let() | Store():
                continue
            case If():
                masked = inside_mask or depends(stmt.cond, varying, memo)
                if not all(_block_ok(block, varying, masked, memo) for block in (stmt.then, stmt.orelse)):
                    return False
            case Loop():
                if inside_mask or stmt.role == "threads" or depends(stmt.extent, varying, memo):
                    return False
                if not _block_ok(stmt.body, varying, False, memo):
                    return False
            case _:
                return False
    return True


def repeatable(loop: Loop) -> bool:
    """Whether an iteration may run twice: it reads nothing that the loop writes."""
    return not (loaded(loop.body) & stored(loop.body))
