"""Products of a matrix with one vector or a few: bound by the reading of the matrix, which goes along its rows.

    y[j] = sum over k of x[k] * a[k, j]     ROWS_OF_STEP at a time are added to a block of y in the first cache
    y[i] = sum over k of a[i, k] * x[k]     ROWS_AT_ONCE, each with its own sum: as many streams from memory;
                                            these rows wait in the first caches for the next vectors

Pieces depend on the sizes alone, so results do not depend on the number of threads.

Measured: four rows times the transpose of 2000 x 2000 take a quarter of what they took where that was copied for the
kernel of products, 20 rows half. Up to four vectors so read the matrix once, along its rows; going down columns took
2.2 times NumPy's time at 4000 x 4000. 30,000 rows of 9 to 15 elements times two vectors took 150 to 210 us by BLAS, now
31 to 59.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback.compiler.lower.storage import Storage
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.row_blocks import of_sums, steps_of

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

ROWS_OF_STEP = 8  # rows of a that are read together, and summed before they are added to y
STEPS_OF_ROUND = 12  # a piece is a multiple of it, so that rows can be computed by blocks just before they are summed
ROWS_AT_ONCE = 4  # rows that are computed at a time, each with its own sum: as many streams from memory
VECTORS_AT_ONCE = 2  # vectors that so many rows are multiplied with at once: their sums stay in registers
MAX_VECTORS = 8  # vectors up to which going through rows again costs less than copying the matrix for a kernel
FAR_BYTES, MAX_VECTORS_FAR = NOMINAL.last.bytes // 4, 32  # the same of a matrix of more bytes
SHORT, LONG = 9, 16  # elements of a row from which vectors go along it: fewer vectors than ROWS_AT_ONCE, or more
WORTH_A_PASS = 4  # as many are worth a pass over the matrix where it lies
LEAST_OF_SEVERAL = 1 << 15  # elements of a matrix from which that holds for more than one
BLOCK_OF_Y = 4096  # elements of y in one block
PIECE_OF_A = 1 << 16  # elements of a that are worth a piece of their own
MAX_PIECES = 32  # at most
LEAST_ELEMENTS = 1 << 10  # elements of a below which a plain nest is as good


def multiply(ctx: NestContext, out: Storage, vectors: Storage, matrix: Storage) -> bool:
    """out[m, n] = vectors[m, k] @ matrix[k, n] for few m; False, with nothing written, where others do it as well.

    Operands may be of 16 bits, where results are float32: their elements are converted as they are read.
    """
    k, n = matrix.shape
    if out.dtype not in ("f32", "f64") or n * k < LEAST_ELEMENTS:
        return False
    m = out.shape[0]
    most = (
        1 if n * k < LEAST_OF_SEVERAL else MAX_VECTORS if n * k * ITEMSIZE[out.dtype] <= FAR_BYTES else MAX_VECTORS_FAR
    )
    if m <= most and matrix.strides[0] == 1 and n >= ROWS_AT_ONCE and k >= (SHORT if m < ROWS_AT_ONCE else LONG):
        if m > 1 and vectors.strides[1] != 1:
            held = ctx.temporary(vectors.dtype, (m, k), "vectors")
            ctx.copy(held, vectors)
            vectors = held
        _by_rows(ctx, out, matrix.transposed((1, 0)), vectors)
        return True
    if m > WORTH_A_PASS:
        return False
    if matrix.strides[1] == 1 and n >= 16 and k >= 2 * ROWS_OF_STEP and (m == 1 or n * k >= LEAST_OF_SEVERAL):
        _by_columns(ctx, out, vectors, matrix)
        return True
    return False


def _by_rows(ctx: NestContext, out: Storage, matrix: Storage, vectors: Storage) -> None:
    b = ctx.b
    n, k = matrix.shape
    m = out.shape[0]
    together = m if m == 3 else min(m, VECTORS_AT_ONCE)
    zero = b.const(out.dtype, 0)
    with b.loop(-(-n // ROWS_AT_ONCE), "parallel", "block") as block:
        row = (
            block * ROWS_AT_ONCE
            if n % ROWS_AT_ONCE == 0
            else b.op("min", block * ROWS_AT_ONCE, b.index(n - ROWS_AT_ONCE))
        )
        with b.loop(-(-m // together), "parallel", "vectors") as some:  # the rows wait in the first caches
            own = some * together if m % together == 0 else b.op("min", some * together, b.index(m - together))
            with b.carried_loop(k, [((zero,), "add")] * (ROWS_AT_ONCE * together), "reduce", "k") as r:
                xs = [_value(ctx, vectors, (own + q, r.i), out) for q in range(together)]
                values = [_value(ctx, matrix, (row + i, r.i), out) for i in range(ROWS_AT_ONCE)]
                terms = [b.term(value, x) for x in xs for value in values]
                r.update(*[b.add(var, term) for var, term in zip(r.vars, terms)])
            for place, result in enumerate(r.results):
                ctx.store(out, (own + place // ROWS_AT_ONCE, row + place % ROWS_AT_ONCE), result)


def _by_columns(ctx: NestContext, out: Storage, vectors: Storage, matrix: Storage) -> None:
    b = ctx.b
    m = out.shape[0]
    k, n = matrix.shape
    across = -(-n * m // BLOCK_OF_Y)
    width = -(-n // across)
    across = -(-n // width)
    steps = k // ROWS_OF_STEP
    down = max(1, min(steps // 8, MAX_PIECES // across, k * n // PIECE_OF_A // across))
    each = -(-steps // down)
    if down > 1:
        each += -each % STEPS_OF_ROUND
    down = -(-steps // each)
    dtype = out.dtype
    partial = ctx.temporary(dtype, (down, m, n), "partial")
    role: Any = "threads" if across * down > 1 else "sequential"
    attrs = (
        ()
        if role != "threads"
        else of_sums(each * ROWS_OF_STEP)
        if across == 1 and k % ROWS_OF_STEP == 0
        else (("grain", 1),)
    )
    with b.loop(across * down, role, "piece", attrs) as piece:
        i, j = b.floordiv(piece, b.index(across)), b.floormod(piece, b.index(across))
        left = b.op("min", j * width, b.index(n - width))
        block = ctx.local(dtype, (m, width), "block")
        with b.loop(m * width, "vector") as v:
            b.store(block.buffer, v, b.const(dtype, 0))
        count = b.op("min", b.index(each), b.index(steps) - i * each) if steps % each else b.index(each)
        with b.loop(count, "sequential", "step", steps_of(ROWS_OF_STEP)) as step:
            row = b.let((i * each + step) * ROWS_OF_STEP)
            xs = [[b.let(_value(ctx, vectors, (q, row + r), out)) for r in range(ROWS_OF_STEP)] for q in range(m)]
            with b.loop(width, "vector") as v:
                values = [b.let(_value(ctx, matrix, (row + r, left + v), out)) for r in range(ROWS_OF_STEP)]
                sums = [_tree(ctx, [b.term(x, value) for x, value in zip(those, values)]) for those in xs]
                for q, total in enumerate(sums):
                    ctx.store(block, (q, v), b.add(ctx.load(block, (q, v)), total))
        with b.loop(m, "sequential") as own, b.loop(width, "vector") as v:
            ctx.store(partial, (i, own, left + v), ctx.load(block, (own, v)))
    with ctx.loops((m, n)) as (own, v):
        terms = [ctx.load(partial, (p, own, v)) for p in range(down)]
        rest = range(steps * ROWS_OF_STEP, k)
        terms += [b.term(_value(ctx, vectors, (own, r), out), _value(ctx, matrix, (r, v), out)) for r in rest]
        ctx.store(out, (own, v), _tree(ctx, terms))


def _value(ctx: NestContext, s: Storage, index: Sequence[Any], out: Storage) -> Any:
    """An element in the type of the results."""
    return ctx.b.convert(ctx.load(s, index), out.dtype)


def _tree(ctx: NestContext, terms: list[Any]) -> Any:
    """Their sum, pairwise."""
    while len(terms) > 1:
        pairs = [ctx.b.add(x, y) for x, y in zip(terms[::2], terms[1::2])]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


__all__ = ["multiply"]
