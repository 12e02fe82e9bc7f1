"""Tile: nests that read along one axis and write along another are walked in blocks that stay in the first cache.

Needs: the vector loop chosen. Guarantees: the same iterations, in another order; only parallel loops are cut. LLVM does
not tile: it would have to prove what the roles of our loops say.

    parallel i < 2000 {                        parallel i0 < 125 { parallel j0 < 32 {
      vector j < 2000 {                  =>      parallel i1 < 16 { vector j1 < 64 {
        y[i*2000 + j] = x[j*2000 + i]              y[(i0*16 + i1)*2000 + ...] = x[...]
"""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.fold import const, make
from ..loop_ir.ir import Const, Expr, Function, If, Load, Loop, Read, Stmt, Store, Var, While
from ..loop_ir.types import ITEMSIZE
from ..loop_ir.vectors import repeatable
from ..loop_ir.visit import Substitute, expressions, statements, subexpressions
from .cost import Vector

LINE = 64  # bytes: a tile spans one cache line along the axis that is read contiguously
ALONG = 64  # iterations of a tile along the vector loop
FAR = 16  # elements from lane to lane beyond which each lane has a cache line of its own
SMALL = 1 << 14  # iterations of both loops below which everything is cached anyway


def tile(function: Function) -> Function:
    """The function with transposing nests cut into tiles."""
    return Function(function.name, function.buffers, _block(function.body))


def _block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Loop():
                stmt = _loop(stmt)
            case If():
                stmt = If(stmt.cond, _block(stmt.then), _block(stmt.orelse))
            case While():
                stmt = While(_block(stmt.body_cond), stmt.cond, _block(stmt.body))
        result.append(stmt)
    return tuple(result)


def _loop(loop: Loop) -> Loop:
    chain = [loop]
    while chain[-1].role == "parallel" and len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    vector = chain[-1]
    leaf = not any(isinstance(stmt, Loop) for stmt in statements(vector.body))
    if vector.role != "vector" or vector.carried or not leaf or len(chain) < 2:
        return Loop(loop.var, loop.extent, loop.role, _block(loop.body), loop.carried, loop.attrs)
    for k, other in enumerate(chain[:-1]):
        size = _crossing(vector, other)
        if size:
            return _tiled(chain[:k] + chain[k + 1 : -1], other, vector, LINE // size)
    return loop


def _crossing(vector: Loop, other: Loop) -> int:
    """Bytes of the elements that are contiguous along `other` but far apart along `vector`; 0 if there are none."""
    if not isinstance(vector.extent, Const) or not isinstance(other.extent, Const):
        return 0
    if vector.extent.value * other.extent.value < SMALL or vector.extent.value < ALONG or other.extent.value < 32:
        return 0
    lanes, across = Vector(vector), Vector(Loop(other.var, other.extent, "parallel", vector.body))
    for stmt in statements(vector.body):
        accesses = [(expr.buffer, expr.index) for expr in subexpressions(expressions(stmt)) if isinstance(expr, Load)]
        if isinstance(stmt, Store):
            accesses.append((stmt.buffer, stmt.index))
        for buffer, index in accesses:
            step = lanes.step(index)
            if step is not None and abs(step) >= FAR and across.step(index) in (1, -1):
                return ITEMSIZE[buffer.dtype]
    return 0


def _tiled(outer: list[Loop], other: Loop, vector: Loop, width: int) -> Loop:
    """`outer`, then blocks of `other` and `vector`, then the iterations of a block."""
    again = repeatable(vector)
    values: dict[Var, Expr] = {}
    blocks: list[Loop] = []
    inner: list[Loop] = []
    for loop, size in ((other, max(width, 4)), (vector, ALONG)):
        assert isinstance(loop.extent, Const)
        n = loop.extent.value
        count = -(-n // size)
        block, within = Var(f"{loop.var.name}_block", "i64"), Var(f"{loop.var.name}_in", "i64")
        start = make("mul", (Read(block), const("i64", size)))
        extent: Expr = const("i64", size)
        if n % size and again:
            start = make("min", (start, const("i64", n - size)))
        elif n % size:
            extent = make("min", (extent, make("sub", (const("i64", n), start))))
        values[loop.var] = make("add", (start, Read(within)))
        blocks.append(Loop(block, const("i64", count), "parallel", ()))
        inner.append(Loop(within, extent, loop.role, (), (), loop.attrs))
    body = Substitute(values).block(vector.body)
    for loop in reversed([*outer, *blocks, *inner]):
        body = (Loop(loop.var, loop.extent, loop.role, body, (), loop.attrs),)
    (result,) = body
    assert isinstance(result, Loop)
    return result
