"""Tile: nests that read along one axis and write along another are walked in blocks that stay in the first cache.

Needs: the vector loop chosen. Guarantees: the same iterations, in another order; only parallel loops are cut. LLVM does
not tile: it would have to prove what the roles of our loops say.

    parallel i < 2000 {                        parallel i0 < 125 { parallel j0 < 32 {
      vector j < 2000 {                  =>      parallel i1 < 16 { vector j1 < 64 {
        y[i*2000 + j] = x[j*2000 + i]              y[(i0*16 + i1)*2000 + ...] = x[...]

A loop of a few iterations whose elements lie between those of the lanes (the channels of an image) is written out in
the vector loop, so that each vector is read or written once.

Where the lanes of a block are so many times a power of two apart that their lines compete for a few places of the
cache, each line is first copied to scratch space at once: it would be gone before its next element is wanted. (A
transpose of 2048 x 2048 took 14 times as long as one of 2000 x 2000.)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from pullback.loops.ir.affine import depends
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    SQUARE,
    Buffer,
    Const,
    Expr,
    Let,
    Load,
    Loop,
    Op,
    Read,
    Stmt,
    Store,
    Var,
)
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.vectors import repeatable
from pullback.loops.ir.visit import Rewriter, Substitute, accessed, expressions, statements, subexpressions, with_blocks
from pullback.loops.schedule.cost import Vector, vector_of
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.space import around, extent_of

LINE = NOMINAL.line  # a tile spans one along the axis that is read contiguously
ALONG = 64  # iterations of a tile along the vector loop
FEW_ITERATIONS = 16  # iterations of a loop that is not worth cutting
FAR_ELEMENTS = 16  # elements from lane to lane beyond which each lane has a cache line of its own
CACHE_WAY = NOMINAL.first.way  # bytes so far apart compete for one set of the first cache, in all machines we know
CROWDED = 1024  # of a stride's common divisor with that: all lanes share the places of 32 lines or less
TURNS = 8  # elements that fill the gaps between lanes: beyond that, single ones are as quick
SQUARE_NODES = 64  # expressions in a body beyond which copies of it side by side are too much code
CACHED_ITERATIONS = 1 << 14  # iterations between two visits of a line below which it is still cached


def tile(new: Fresh, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements with transposing nests cut into tiles."""
    return tuple(
        [
            _loop(stmt, new) if isinstance(stmt, Loop) else with_blocks(stmt, lambda block: tile(new, block))
            for stmt in body
        ]
    )


def _loop(loop: Loop, new: Fresh) -> Loop:
    chain = [loop]
    while chain[-1].role == "parallel" and len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    vector = chain[-1]
    leaf = not any(isinstance(stmt, Loop) for stmt in statements(vector.body))
    if vector.role != "vector" or vector.carried or not leaf or len(chain) < 2:
        return Loop(loop.var, loop.extent, loop.role, tile(new, loop.body), loop.carried, loop.attrs)
    for k, other in enumerate(chain[:-1]):
        if _takes_turns(vector, other):
            body = _side_by_side(vector.body, other)
            return _loop(around([*chain[:k], *chain[k + 1 :]], body), new)
        size = _crossing(vector, other)
        crowded = _crowded(vector, other) if size else []
        outer = chain[:k] + chain[k + 1 : -1]
        if size and (crowded or prod(map(extent_of, chain[k:])) >= CACHED_ITERATIONS):
            return _tiled(outer, other, vector, LINE // size, crowded, new)
        if size and _straight(vector):
            return around([*outer, *_ordered(other, vector)], vector.body)
    return loop


def _takes_turns(vector: Loop, other: Loop) -> bool:
    """Whether `other` has a few iterations, whose elements lie between those of the lanes and fill the gaps."""
    n = extent_of(other)
    if not isinstance(other.extent, Const) or not 2 <= n <= TURNS or not _straight(vector):
        return False
    lanes, across = vector_of(vector), Vector(Loop(other.var, other.extent, "parallel", vector.body))
    return any(lanes.step(index) == n and across.step(index) == 1 for _, index in accessed(vector.body))


def _side_by_side(body: Sequence[Stmt], loop: Loop) -> tuple[Stmt, ...]:
    """The iterations of a parallel loop around `body` as straight code, each statement of all of them in turn."""
    copies = []
    for k in range(extent_of(loop)):
        rename = Substitute({loop.var: const("i64", k)}, lambda var: Var(var.name, var.dtype))
        copies.append(rename.block(body))
    return tuple(stmt for same in zip(*copies) for stmt in same)


def _straight(vector: Loop) -> bool:
    """Whether the body may be written out several times side by side."""
    exprs = [expr for stmt in vector.body for expr in expressions(stmt)]
    return all(isinstance(stmt, (Let, Store)) for stmt in vector.body) and len(subexpressions(exprs)) <= SQUARE_NODES


def _ordered(other: Loop, vector: Loop) -> list[Loop]:
    """The two loops of a transpose, outer first: squares of both where the body is straight and short."""
    if not _straight(vector):
        return [other, vector]
    return [vector, Loop(other.var, other.extent, "parallel", (), (), (*other.attrs, SQUARE))]


def _crossing(vector: Loop, other: Loop) -> int:
    """Bytes of the elements that are contiguous along `other` but far apart along `vector`; 0 if there are none."""
    if not isinstance(vector.extent, Const) or not isinstance(other.extent, Const):
        return 0
    if vector.extent.value < FEW_ITERATIONS or other.extent.value < FEW_ITERATIONS:
        return 0
    lanes = vector_of(vector)
    far = [
        (buffer, index)
        for buffer, index in accessed(vector.body)
        if (step := lanes.step(index)) is not None and abs(step) >= FAR_ELEMENTS
    ]
    across = Vector(Loop(other.var, other.extent, "parallel", vector.body)) if far else None
    for buffer, index in far:
        if across is not None and across.step(index) in (1, -1):
            return ITEMSIZE[buffer.dtype]
    return 0


def _crowded(vector: Loop, other: Loop) -> list[Load]:
    """Loads that are contiguous along `other`, and whose lines along `vector` compete for places in the cache."""
    lanes, across = vector_of(vector), Vector(Loop(other.var, other.extent, "parallel", vector.body))
    written = {stmt.buffer for stmt in statements(vector.body) if isinstance(stmt, Store)}
    inside: set[Var] = {stmt.var for stmt in statements(vector.body) if isinstance(stmt, Let)}
    found = []
    for load in _certain_loads(vector.body):
        step = lanes.step(load.index)
        if step is None or across.step(load.index) != 1 or load.buffer in written or load.buffer.space == "local":
            continue
        if gcd(step * ITEMSIZE[load.buffer.dtype], CACHE_WAY) >= CROWDED and not depends(load.index, inside, {}):
            found.append(load)
    return found


def _certain_loads(body: Sequence[Stmt]) -> list[Load]:
    """The loads that every iteration of a leaf body performs."""
    found: list[Load] = []
    seen: set[int] = set()  # each node once: the rounds of a random generator share theirs, so that paths are millions
    stack = [expr for stmt in body for expr in expressions(stmt)]
    while stack:
        expr = stack.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, Load):
            found.append(expr)
            stack.append(expr.index)
        elif isinstance(expr, Op):
            stack += expr.args[:1] if expr.name == "select" else expr.args
    return found


class _Replace(Rewriter):
    """Expressions, by identity, replaced by others."""

    def __init__(self, values: dict[Expr, Expr]) -> None:
        super().__init__()
        self._memo.update(values)


def _tiled(outer: list[Loop], other: Loop, vector: Loop, width: int, crowded: list[Load], new: Fresh) -> Loop:
    """`outer`, then blocks of `other` and `vector`, then the iterations of a block; `crowded` loads are copied."""
    again = repeatable(vector)
    width = max(width, 4)
    values: dict[Var, Expr] = {}
    blocks: list[Loop] = []
    inner: list[Loop] = []
    for loop, most in ((other, width), (vector, ALONG)):
        assert isinstance(loop.extent, Const)
        n = loop.extent.value
        size = min(most, n)
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
    copies: list[Stmt] = []
    local: dict[Expr, Expr] = {}
    for load in crowded:
        lines = new.buffer(f"{load.buffer.name}_lines", load.buffer.dtype, ALONG * width, "local")
        place = make("add", (make("mul", (Read(inner[1].var), const("i64", width))), Read(inner[0].var)))
        local[load] = Load(lines, place)
        copies.append(_copied(load, lines, place, values, inner))
    body = Substitute(values).block(_Replace(local).block(vector.body))
    innermost = Loop(inner[1].var, inner[1].extent, inner[1].role, body, (), inner[1].attrs)
    return around([*outer, *blocks], (*copies, around(_ordered(inner[0], innermost), body)))


def _copied(load: Load, lines: Buffer, place: Expr, values: dict[Var, Expr], inner: list[Loop]) -> Loop:
    """lines[place] = load for the iterations `inner` of a block, whole lines at a time."""
    names = [Var(f"{loop.var.name}_copied", "i64") for loop in inner]
    rename = Substitute({loop.var: Read(name) for loop, name in zip(inner, names)})
    store = Store(lines, rename.rewrite(place), rename.rewrite(Substitute(values).rewrite(load)))
    line = Loop(names[0], inner[0].extent, "vector", (store,))
    return Loop(names[1], inner[1].extent, "parallel", (line,))
