"""Parallelize: bulk work goes to the thread pool, in pieces that do not depend on how many threads there are.

Needs: vector loops chosen. Guarantees: only nests worth waking threads get a loop of them; what each iteration
computes, and in which order partial results are combined, is fixed by the extents alone, so results are bitwise the
same for any number of threads. Three cases, and scans (_scans.py):

    parallel i < 1000 { vector j ... }   =>   threads i < 1000 { vector j ... }
    vector i < 1000000 { ... }           =>   threads c < 100 { vector i < 10000 { ... } }, also of each of a few rows
    reduce i < 1000000 -> s              =>   threads c < 61 { reduce i < 16384 -> p; partial[c] = p }
                                              reduce c < 61 over partial -> s
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import (
    Buffer,
    Call,
    Carried,
    Const,
    Expr,
    HostCall,
    Let,
    Load,
    Loop,
    Read,
    Stmt,
    Store,
    Var,
)
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.vectors import repeatable
from pullback.loops.ir.visit import Substitute, statements
from pullback.loops.schedule.apply.partials import combining, hands_on, neutrals
from pullback.loops.schedule.apply.scans import split_scan
from pullback.loops.schedule.cost import nanoseconds
from pullback.loops.schedule.machine import CORES, NOMINAL
from pullback.loops.schedule.space import Axis, around, extent_of

LEAST_ELEMENTS = 64  # elements that are worth a partial result
MAX_PARTIALS = 256  # partial results
FEW_ITERATIONS = 64  # iterations with loops inside that fill lanes: of fewer, each may take as long as all
FEW = 2 * CORES  # iterations of a reduction, of which each is cut if there is a longer one inside


def parallelize(new: Fresh, loop: Loop) -> list[Stmt]:
    """A nest with a loop of threads around bulk work; its scratch space is its own."""
    return _Parallelize(new).nest(loop)


class _Parallelize:
    def __init__(self, new: Fresh) -> None:
        self.new = new

    def nest(self, loop: Loop) -> list[Stmt]:
        time = nanoseconds((loop,))
        if time < NOMINAL.threads_ns or any(_fixed(stmt) for stmt in statements((loop,))):
            return [loop]
        chain = _chain(loop)
        free = 1
        for each in chain:
            lanes = 32 if each.role == "vector" else 1
            free *= max(1, extent_of(each) // lanes)
        if free < CORES:
            split = self._split(chain, loop, time) or self._scan(chain, loop)
            if split is not None:
                return split
        if not chain:
            return [loop]
        widest = max(range(len(chain)), key=lambda k: extent_of(chain[k]) if chain[k].role == "parallel" else 0)
        for k, each in enumerate(chain):
            if each.role == "parallel" and extent_of(each) >= CORES:
                widest = k
                break
        outer = chain[widest]
        if len(chain) > 1 and chain[-1].role == "vector" and math.prod(map(extent_of, chain[:-1])) < CORES:
            blocks = self._blocks(chain[-1], time, chain[:-1])
            if blocks is not chain[-1]:
                return [blocks]
        together = _enough(chain)
        if len(together) > 1 and _share_lines(outer):
            return [self._together(chain, together, time)]
        if outer.role == "parallel" and extent_of(outer) >= 2 and (extent_of(outer) >= CORES or len(chain) > 1):
            rest = chain[:widest] + chain[widest + 1 :]
            grain = -(-extent_of(outer) // even_pieces(time, extent_of(outer)))
            threads = Loop(outer.var, outer.extent, "threads", (), (), (("grain", grain),))
            return [around([threads, *rest], chain[-1].body)]
        if chain[-1].role == "vector" and len(chain) == 1:
            return [self._blocks(chain[-1], time)]
        if outer.role == "parallel" and extent_of(outer) >= 2:
            threads = Loop(outer.var, outer.extent, "threads", (), (), (("grain", 1),))
            return [around([threads, *chain[:widest], *chain[widest + 1 :]], chain[-1].body)]
        return [loop]

    def _together(self, chain: Sequence[Loop], outermost: Sequence[Loop], time: float) -> Loop:
        """The `outermost` loops of a chain as one of threads."""
        count = math.prod(map(extent_of, outermost))
        number = self.new.var(Var("task", "i64"))
        left: Expr = Read(number)
        places: list[Stmt] = []
        for each in reversed(outermost[1:]):
            places.append(Let(each.var, make("rem", (left, each.extent))))
            left = make("div", (left, each.extent))
        places.append(Let(outermost[0].var, left))
        inner = chain[len(outermost) :]
        body = (around(list(inner), chain[-1].body),) if inner else chain[-1].body
        grain = -(-count // even_pieces(time, count))
        return Loop(number, const("i64", count), "threads", (*places, *body), (), (("grain", grain),))

    def _blocks(self, loop: Loop, time: float, rows: Sequence[Loop] = ()) -> Loop:
        """Blocks of a vector loop, of each of few `rows` around it; the last block of a row overlaps the one before it
        if iterations may be repeated. The vector loop itself where it is too short."""
        if not all(isinstance(each.extent, Const) for each in (*rows, loop)):
            return loop
        n, count_of_rows = extent_of(loop), math.prod(map(extent_of, rows))
        unit = FEW_ITERATIONS if any(isinstance(stmt, Loop) for stmt in loop.body) else 1024
        pieces = -(-even_pieces(time, n * count_of_rows) // count_of_rows)
        size = -(-n // (pieces * unit)) * unit
        if size * 2 > n:
            return loop
        count = -(-n // size)
        number, inner = self.new.var(Var("chunk", "i64")), self.new.var(loop.var)
        chunk, places = _places(Read(number), count, rows)
        start = make("mul", (chunk, const("i64", size)))
        extent: Expr = const("i64", size)
        if count * size != n:
            if repeatable(loop):
                start = make("min", (start, const("i64", n - size)))
            else:
                extent = make("min", (extent, make("sub", (const("i64", n), start))))
        body = Substitute({**places, loop.var: make("add", (start, Read(inner)))}).block(loop.body)
        vector = Loop(inner, extent, "vector", body, (), loop.attrs)
        return Loop(number, const("i64", count_of_rows * count), "threads", (vector,), (), (("grain", 1),))

    # Scans and reductions.

    def _scan(self, chain: list[Loop], loop: Loop) -> list[Stmt] | None:
        """The only statement of `chain`, a long scan, in chunks; None if it is none."""
        (scan,) = chain[-1].body if chain and len(chain[-1].body) == 1 else (loop,)
        if not isinstance(scan, Loop) or scan.role != "scan" or any(each.role == "vector" for each in chain):
            return None
        split = split_scan(scan, self.new)
        if split is None:
            return None
        return [around(chain, split)] if chain else list(split)

    def _split(self, chain: list[Loop], loop: Loop, time: float) -> list[Stmt] | None:
        """The only reduce loop of `chain` in chunks, and a nest that combines them in order; None if it cannot be."""
        body: Sequence[Stmt] = chain[-1].body if chain else (loop,)
        at = [k for k, stmt in enumerate(body) if isinstance(stmt, Loop)]
        if len(at) != 1 or not all(isinstance(stmt, Let) for stmt in body[: at[0]]):
            return None
        reduce = body[at[0]]
        assert isinstance(reduce, Loop)
        if reduce.role not in ("reduce", "vector") or not reduce.carried or not isinstance(reduce.extent, Const):
            return None
        starts = [neutrals(group) for group in reduce.carried]
        if any(start is None for start in starts):
            return None
        if any(not isinstance(each.extent, Const) for each in chain):
            return None
        outer = math.prod(map(extent_of, chain))
        short, lets, inner = _short_levels(reduce, body[: at[0]])
        n, rows = extent_of(inner), math.prod(map(extent_of, short))
        least = -(-LEAST_ELEMENTS // _elements(inner))  # iterations that are worth a partial result
        count = max(2, min(MAX_PARTIALS // rows, even_pieces(time / 2 / rows, n), n // least))
        if n < 2 * least:
            return None
        size = n // count
        if inner.role == "vector" and any(isinstance(stmt, Loop) for stmt in inner.body):
            sizes = [
                -(-n // (count * unit)) * unit for unit in (FEW_ITERATIONS, FEW_ITERATIONS // 2, FEW_ITERATIONS // 4)
            ]
            size = next((size for size in sizes if 2 * size <= n), n)
            count = -(-n // size)
            if count < 2:
                return None
        carried = [v for group in reduce.carried for v in group.vars]
        partials = [self.new.buffer("partial", v.dtype, rows * count * outer) for v in carried]
        chunk = self.new.var(Var("chunk", "i64"))
        first = self._partial(chain, lets, short, inner, starts, partials, chunk, (count, size))
        again = self.new.var(Var("chunk", "i64"))
        flat = make("add", (make("mul", (Read(again), const("i64", outer))), _flat(chain)))
        loaded = iter([Load(buffer, flat) for buffer in partials])
        groups = tuple(combining(group, [next(loaded) for _ in group.vars]) for group in reduce.carried)
        role = "vector" if not chain or all(each.role != "vector" for each in chain) else "reduce"
        second = Loop(again, const("i64", rows * count), role, (), groups)  # type: ignore[arg-type]
        rest = (*body[: at[0]], second, *body[at[0] + 1 :])
        return [first, *((around(chain, rest),) if chain else rest)]

    def _partial(
        self,
        chain: list[Loop],
        lets: Sequence[Stmt],
        short: Sequence[Loop],
        reduce: Loop,
        starts: list,
        partials: list[Buffer],
        number: Var,
        chunks: tuple[int, int],
    ) -> Loop:
        """threads number { chain { lets; reduce over a chunk; store the results } }, with variables of its own: numbers
        go through the chunks, (how many, their size), of each iteration of the `short` reductions around."""
        n, rows, (count, size) = extent_of(reduce), math.prod(map(extent_of, short)), chunks
        outer = partials[0].size // (rows * count)
        inner = self.new.var(reduce.var)
        chunk, places = _places(Read(number), count, short)
        last = make("eq", (chunk, const("i64", count - 1)))
        extent: Expr = const("i64", size)
        if n != count * size:
            extent = make("select", (last, const("i64", n - (count - 1) * size), extent))
        index = make("add", (make("mul", (chunk, const("i64", size))), Read(inner)))
        places[reduce.var] = index
        groups = tuple(
            Carried(group.vars, tuple(start), group.updates, group.results, group.combine)
            for group, start in zip(reduce.carried, starts)
        )
        body = Substitute(places).block(reduce.body)
        sub = Substitute(places)
        lets = Substitute(places).block(tuple(lets))
        groups = tuple(
            Carried(g.vars, g.inits, tuple(map(sub.rewrite, g.updates)), g.results, g.combine) for g in groups
        )
        flat = make("add", (make("mul", (Read(number), const("i64", outer))), _flat(chain)))
        results = [v for group in reduce.carried for v in group.results]
        stores = [Store(buffer, flat, Read(result)) for buffer, result in zip(partials, results)]
        whole: tuple[Stmt, ...] = (*lets, Loop(inner, extent, reduce.role, body, groups, reduce.attrs), *stores)
        if chain:
            whole = (around(chain, whole),)
        loop = Loop(number, const("i64", rows * count), "threads", whole, (), (("grain", 1),))

        (renamed,) = Substitute({}, self.new.var).block((loop,))
        assert isinstance(renamed, Loop)
        return renamed


def _places(number: Expr, count: int, rows: Sequence[Loop]) -> tuple[Expr, dict[Var, Expr]]:
    """The chunk, of `count` in each iteration of `rows`, and the counters of these, of the numbered piece of all."""
    if not rows:
        return number, {}
    places: dict[Var, Expr] = {}
    row, chunk = (make(name, (number, const("i64", count))) for name in ("div", "rem"))
    for level in reversed(rows):
        places[level.var] = row if level is rows[0] else make("rem", (row, level.extent))
        row = make("div", (row, level.extent))
    return chunk, places


def _short_levels(reduce: Loop, lets: Sequence[Stmt]) -> tuple[list[Loop], tuple[Stmt, ...], Loop]:
    """(the reductions with too few iterations for all threads, each of which is but one reduction inside, what they
    and the statements before them compute, and the reduction inside them all): it is cut in each of their iterations.
    """
    short: list[Loop] = []
    before = list(lets)
    while extent_of(reduce) < FEW and math.prod(map(extent_of, (*short, reduce))) <= MAX_PARTIALS // 2:
        *others, inner = reduce.body or (None,)
        if not isinstance(inner, Loop) or not all(isinstance(stmt, Let) for stmt in others):
            break
        if inner.role not in ("reduce", "vector") or not isinstance(inner.extent, Const):
            break
        if extent_of(inner) < FEW or not hands_on(reduce, inner):
            break
        short.append(reduce)
        before += others
        reduce = inner
    return short, tuple(before), reduce


def _elements(loop: Loop) -> int:
    """How often the innermost of loops that stand alone in one another runs in an iteration of the first."""
    count, body = 1, loop.body
    while loops := [stmt for stmt in body if isinstance(stmt, Loop)]:
        count *= max(max(extent_of(stmt) for stmt in loops), 1)
        body = max(loops, key=extent_of).body
    return count


def even_pieces(time: float, most: int) -> int:
    """The number of pieces, each worth a task, into which work of `time` ns is cut: one that 2, 4 and 8 threads share
    evenly. In 5 pieces an inverse of 10,000 3 x 3 matrices took 1.35 times as long on two threads as in 4.
    """
    count = max(2, round(time / NOMINAL.task_ns))
    even = 8 * round(count / 8) if count > 8 else 1 << (count - 1).bit_length()
    return max(1, min(even, most))


def _enough(chain: Sequence[Loop]) -> list[Loop]:
    """The parallel loops, from the outermost on, that together have an iteration for each core; none if there are not
    so many."""
    found: list[Loop] = []
    for each in chain:
        if each.role != "parallel" or not isinstance(each.extent, Const):
            break
        found.append(each)
        if math.prod(map(extent_of, found)) >= CORES:
            return found
    return []


def _share_lines(loop: Loop) -> bool:
    """Whether neighbouring iterations store to the same lines of the cache, which threads would take from each other.

    Measured: sums of blocks of 4 x 4 of a matrix of 700 x 500, turned, 120 us by threads for each column of tiles, now
    54 by threads for each tile; transposing 4 x 3 x 300 x 500 400 and 335 (Sapphire Rapids, two cores).
    """
    along = Axis(loop)
    steps = [(along.step(s.index), ITEMSIZE[s.buffer.dtype]) for s in statements(loop.body) if isinstance(s, Store)]
    return any(step is not None and abs(step) * size < NOMINAL.line for step, size in steps)


def _fixed(stmt: Stmt) -> bool:
    """Whether a nest with this inside is left alone: calls have their own ideas of threads, and unknown cost."""
    return isinstance(stmt, (Call, HostCall)) or (isinstance(stmt, Loop) and stmt.role == "threads")


def _chain(loop: Loop) -> list[Loop]:
    """The parallel loops and the vector loop that stand alone in one another, from `loop` inwards."""
    chain: list[Loop] = []
    seen: set[Var] = set()
    current: Stmt = loop
    while isinstance(current, Loop) and current.role in ("parallel", "vector") and not current.carried:
        if chain and not isinstance(current.extent, Const):
            break
        chain.append(current)
        seen.add(current.var)
        if current.role == "vector" or len(current.body) != 1:
            break
        (current,) = current.body
    return chain


def _flat(chain: Sequence[Loop]) -> Expr:
    """The number of an iteration of all loops of `chain`, counted row by row."""
    flat: Expr = const("i64", 0)
    for loop in chain:
        flat = make("add", (make("mul", (flat, loop.extent)), Read(loop.var)))
    return flat
