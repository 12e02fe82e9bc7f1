"""What a vector loop is allowed to hold, and which of its variables differ between iterations."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .affine import depends
from .ir import Combine, If, Let, Loop, Stmt, Store, Var
from .ops import neutral
from .visit import loaded, statements, stored


def varying_vars(loop: Loop) -> set[Var]:
    """Variables that may differ between the iterations of `loop`: its index, and what is computed from it."""
    return set(_varying(loop))


@functools.lru_cache(maxsize=256)
def _varying(loop: Loop) -> frozenset[Var]:
    varying = {loop.var, *(v for group in loop.carried for v in group.vars)}
    memo: dict[int, bool] = {}  # stays valid while `varying` grows: nothing reads a variable before it is bound
    for stmt in statements(loop.body):
        if isinstance(stmt, Let):
            if depends(stmt.value, varying, memo):
                varying.add(stmt.var)
        elif isinstance(stmt, Loop):
            varying.update(v for group in stmt.carried for v in (*group.vars, *group.results))
    return frozenset(varying)


@functools.lru_cache(maxsize=256)
def vectorizable(loop: Loop) -> bool:
    """Whether all of the body has a meaning lane by lane: no calls, no While, loops of the same extent in all lanes."""
    for group in loop.carried:
        if group.combine is None or (isinstance(group.combine, Combine) and not group.combine.neutral):
            return False
        if isinstance(group.combine, str) and neutral(group.combine, group.vars[0].dtype) is None:
            return False
    # Scratch space that is only read here, or only written, belongs to an iteration of a loop further out. Who writes
    # a vector loop knows that all of it does.
    if loop.role != "vector" and any(b.space == "local" for b in loaded(loop.body) & stored(loop.body)):
        return False
    return _block_ok(loop.body, varying_vars(loop), False, {})


def _block_ok(body: Sequence[Stmt], varying: set[Var], inside_mask: bool, memo: dict[int, bool]) -> bool:
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
