"""With how many lanes and accumulators a vector loop is emitted."""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.ir import Const, If, Let, Load, Loop, Op, Stmt, Store
from ..loop_ir.visit import expressions, statements, subexpressions
from .cpu.target import Target
from .types import register_bytes

LINE = 64  # bytes: what loops inside read beside the lanes is fetched from memory anyway


def operations(body: Sequence[Stmt]) -> int:
    """Ops in `body`, each counted once; index arithmetic included."""
    roots = [expr for stmt in statements(body) for expr in expressions(stmt)]
    return sum(isinstance(expr, Op) for expr in subexpressions(roots))


def lane_count(loop: Loop, target: Target) -> int:
    """Lanes for the vector loop: a register of its narrowest 32- or 64-bit values, more where bodies are small.

    Wider than a register means several registers a value, which LLVM splits: it hides latency and loop overhead. A
    loop with the attr ("lanes", n) says itself how many.
    """
    for key, value in loop.attrs:
        if key == "lanes":
            return int(value)
    sizes = _value_bytes(loop)
    wide = [size for size in sizes if size >= 4]
    size = min(wide) if wide else max(sizes, default=4)
    lanes = target.vector_bytes // size
    inner = any(isinstance(stmt, Loop) for stmt in statements(loop.body))
    work = operations(loop.body)
    if inner and work <= 24:
        lanes *= 4
    elif inner:
        lanes = max(lanes, LINE // size)
    elif not inner and not loop.carried and work <= 12:
        lanes *= 2
    if isinstance(loop.extent, Const):
        while lanes > max(loop.extent.value, 1):
            lanes //= 2
    return lanes


def _value_bytes(loop: Loop) -> set[int]:
    """Widths of what is loaded, stored and carried, leaving out what only serves as an index."""
    found: set[int] = set()
    for stmt in statements((loop,)):
        roots: list = []
        match stmt:
            case Store():
                roots = [stmt.value]
                found.add(register_bytes(stmt.buffer.dtype))
            case Let():
                roots = [stmt.value] if stmt.var.dtype != "i64" else []
            case Loop():
                roots = [update for group in stmt.carried for update in group.updates]
                found.update(register_bytes(update.dtype) for update in roots)
        stack, seen = roots, set()
        while stack:
            expr = stack.pop()
            if id(expr) in seen:
                continue
            seen.add(id(expr))
            if isinstance(expr, Load):
                found.add(register_bytes(expr.buffer.dtype))
            elif isinstance(expr, Op):
                stack += expr.args
    return found


def accumulators(loop: Loop) -> int:
    """Independent partial results of a vector reduce loop, to hide the latency of its combining op."""
    for key, value in loop.attrs:
        if key == "unroll":
            return int(value)
    if any(isinstance(stmt, (Loop, If)) for stmt in statements(loop.body)):
        return 1
    updates = [update for group in loop.carried for update in group.updates]
    work = operations(loop.body) + sum(isinstance(expr, Op) for expr in subexpressions(updates))
    return 4 if work <= 12 else 2 if work <= 30 else 1
