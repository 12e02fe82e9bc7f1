"""Products of a matrix with its own transpose, where neither side needs a copy: the lower triangle by a kernel.

Columns, up to 255 of them, are multiplied with each other where they lie, below the diagonal only, as many rows at a
time as stay in the first cache.

Measured: `x.T @ x` of 11,600 x 114 takes 2.2 ms of one core, by `syrk` 3.3 (on two cores 2.3 and 5.4 ms of processor
time). With 128 rows at a time it took 3.0, with the last, mostly empty panel above the diagonal 2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.lower.storage import Storage, contiguous
from pullback.compiler.products.kernels import GRAM_SIZES, block_shape, gram_kernel_name
from pullback.loops.ir import ITEMSIZE
from pullback.loops.schedule.machine import NOMINAL

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

LEAST_ROWS = 32  # rows of the result: for fewer the whole product is as quick
MAX_ROWS = 256  # rows of the result from which on rows of x are so long that BLAS, which packs, is ahead
WORTH_THREADS = 1 << 20  # multiply-adds of the whole product
LEAST_PIECE = 128  # contracted elements in one piece, at least
MAX_PIECES = 8  # at most; their number is even, as that of cores is


def suits(out: Storage, x: Storage) -> bool:
    """Whether `multiply` is the best choice for out[n, n] = x[n, k] @ x'."""
    n, k = x.shape
    if out.dtype not in ("f32", "f64") or not LEAST_ROWS <= n < MAX_ROWS:
        return False
    return x.strides[0] == 1 and (x.strides[1] >= n or k == 1)


def multiply(ctx: NestContext, out: Storage, x: Storage) -> None:
    """out = x @ x', for the transpose x of a matrix whose rows are contiguous.

    Partial results of pieces of the contracted axis, which threads share, are added at the end; the pieces depend on
    the sizes alone.
    """
    b = ctx.b
    n, k = x.shape
    rows, columns = block_shape(out.dtype, n, n)
    panels, blocks = -(-n // columns), -(-n // rows)
    pieces = min(MAX_PIECES, max(1, k // LEAST_PIECE // 2 * 2)) if n * n * k >= WORTH_THREADS else 1
    length = min(max(NOMINAL.first.bytes // (n * ITEMSIZE[out.dtype]) // 16 * 16, 32), 64)
    size = -(-k // pieces)  # no multiple of `length`, which would cost pieces: 1300 rows of 64 took 1.15 times as long
    tiles = ctx.temporary(out.dtype, (pieces, panels, blocks, rows, columns), "tiles")
    given = np.array([n, size, length, x.strides[1]], np.int64)
    constant = contiguous(ctx.lowering.scalar_constant(given), (len(GRAM_SIZES),))

    def piece(number: Any, start: Any) -> None:
        cleared = tiles.at(number).reshaped((panels * blocks * rows * columns,))
        with b.loop(cleared.shape[0], "vector", "i") as i:
            ctx.store(cleared, (i,), b.const(out.dtype, 0))
        sizes = constant
        if k % size:
            sizes = ctx.local("i64", (len(GRAM_SIZES),), "sizes")
            inner = b.op("min", b.index(size), b.index(k) - start)
            for at, value in enumerate(given):
                ctx.store(sizes, (at,), inner if GRAM_SIZES[at] == "inner" else b.index(int(value)))
        addresses = [ctx.address(s) for s in (sizes, x.slice((0, start), (n, min(size, k))), tiles.at(number))]
        b.call(gram_kernel_name(out.dtype, rows, columns), *addresses)

    if pieces == 1:
        piece(0, 0)
    else:
        with b.loop(pieces, "threads", "piece", (("grain", 1),)) as number:
            piece(number, number * size)
    with b.loop(panels, "sequential", "panel") as panel:
        column = b.op("min", panel * columns, b.index(n - columns))
        first = b.floordiv(panel * columns, b.index(rows))
        with b.loop(b.index(blocks) - first, "sequential", "below") as below:
            block = first + below
            row = b.op("min", block * rows, b.index(n - rows))
            with b.loop(rows, "sequential", "r") as r, b.loop(columns, "vector", "j") as j:
                total = ctx.load(tiles, (0, panel, block, r, j))
                for other in range(1, pieces):
                    total = b.add(total, ctx.load(tiles, (other, panel, block, r, j)))
                ctx.store(out, (row + r, column + j), total)
    mirror(ctx, out.transposed((1, 0)))


def mirror(ctx: NestContext, out: Storage, upper: Storage | None = None) -> None:
    """The upper triangle of out[n, n], or of another matrix, into both triangles of it."""
    b = ctx.b
    n = out.shape[0]
    source = out if upper is None else upper
    with ctx.loops((n, n)) as (i, j):
        ctx.store(out, (i, j), b.select(b.lt(j, i), ctx.load(source, (j, i)), ctx.load(source, (i, j))))


__all__ = ["mirror", "multiply", "suits"]
