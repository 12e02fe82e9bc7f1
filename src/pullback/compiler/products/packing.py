"""Operands of products as kernels read them: panels of y, rows of x, pairs of bf16.

y is packed along its rows, eight at a time: panel by panel, a line of the cache of each row, no prefetcher saw the next
one. A product of 512 x 512 spent 0.5 of 3.3 ms of one core on it, now 0.1; of 1024 x 1024 float32 it takes 24.5 ms,
before 27.6.

Rows of x that compete for the sets of the first cache are copied to places that do not: 12 rows that are 4096 bytes
apart want 12 lines of a set of 8, so every read of x misses. One core of a Zen 4 does 106 GFLOP/s so, before 62, of
1020 x 1024 by 1024 x 1024 in float32.

Operands of bf16 are multiplied in pairs, by AVX512-BF16's instruction where there is one (AMX's: tiles.py): 1024 x 1024
takes 7.5 ms on two cores of a Zen 4 (with conversions from and to float32), before 14.9; PyTorch 6.6. Elsewhere they
are copied as floats, the second of a pair before the first, which is the order of that instruction, for the kernel of
floats. (One that took two at a time and turned them had no registers for that with AVX2: 512 x 512 took 4.2 ms of one
core of a Zen 3, now 2.9.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products import prices
from pullback.compiler.products.kernels import CHAIN
from pullback.compiler.products.prices import REAL
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE, Expr
from pullback.loops.schedule.machine import host

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

# Whose products are multiplied in pairs: by an instruction that adds two of them to a float, where there is one; else
# converted to floats first, and added in its order, so that the results are the same.
PAIRED = "bf16"
FAR_BYTES = 1024  # bytes between neighbours along the contracted axis from which x is copied first
PACKED_ROWS = 8  # rows of y that are packed together: as many streams of reads, and pieces of panels in one piece


def near_rows(ctx: NestContext, x: Storage, n: int, rows: int, columns: int, alone: bool) -> Storage:
    """x, or a copy of it that the kernel reads sooner."""
    far = x.strides[1] * ITEMSIZE[x.dtype] >= FAR_BYTES and n >= 4 * columns
    if far or (x.dtype in REAL and x.strides[1] != 1):
        return _row_major(ctx, x, rows, alone)
    if x.strides[1] == 1 and prices.copy_pays(x, x.shape[0], n, rows, columns):
        return _row_major(ctx, x, rows, alone)
    return x


def scratch(ctx: NestContext, dtype: str, shape: tuple[int, ...], alone: bool) -> Storage:
    """Memory of the program's, or of a thread `alone`."""
    if alone:
        return ctx.local(dtype, shape, "tile")
    return ctx.temporary(dtype, shape, "tile")


def _row_major(ctx: NestContext, x: Storage, rows: int, alone: bool) -> Storage:
    """A copy, so many neighbouring rows of which stay in the first cache together."""
    held = _apart(ctx, x.dtype, x.shape, rows, alone)
    ctx.copy(held, x)
    return held


def _apart(ctx: NestContext, dtype: str, shape: tuple[int, ...], rows: int, alone: bool) -> Storage:
    """Scratch space for a matrix, so many neighbouring rows of which stay in the first cache together."""
    m, step = shape
    if prices._competing(step * ITEMSIZE[dtype], rows):
        line = host().line // ITEMSIZE[dtype]
        step = -(-step // line) * line + line
    return scratch(ctx, dtype, (m, step), alone).slice((0, 0), shape)


def where_it_lies(y: Storage, m: int, rows: int, columns: int) -> Storage | None:
    """y[k, n] as [panel, k, column] where it lies, if the kernel may read it there, and had better."""
    k, n = y.shape
    step = y.strides[0] if k > 1 else n
    if n < columns or (y.strides[1] != 1 and n > 1):
        return None
    if n != columns and prices.packing_pays(k * n * ITEMSIZE[y.dtype], step * ITEMSIZE[y.dtype], m, rows):
        return None
    return Storage(y.buffer, y.offset, (-(-n // columns), k, columns), (columns, step, 1))


def packed(ctx: NestContext, y: Storage, columns: int, alone: bool, paired: bool) -> Storage:
    """A copy of y[k, n] as [panel, k, column]; the last panel overlaps the one before, or has columns of zeros."""
    k, n = y.shape
    panels = room(ctx, y, -(-n // columns), k, columns, alone, paired)
    fill(ctx, panels, y, k, n, paired, k % 2 == 1)
    return panels


def room(ctx: NestContext, y: Storage, count: int, k: int, columns: int, alone: bool, paired: bool) -> Storage:
    """Scratch space for so many panels of k rows of y."""
    if not paired:
        return scratch(ctx, y.dtype, (count, k * prices.parts(y), columns), alone)
    pairs = -(-k // 2)
    return scratch(ctx, "f32", (count, pairs if current_target().dots_pairs else 2 * pairs, columns), alone)


def fill(ctx: NestContext, panels: Storage, y: Storage, k: Expr | int, n: Expr | int, paired: bool, odd: bool) -> None:
    """The first k rows and n columns of y into panels, the last of which overlaps the one before.

    Numbers known only when the program runs are `columns` and CHAIN at least; `odd`: k may be odd. Of complex numbers,
    a row is two: y[k] and i y[k].
    """
    if paired:
        _fill_pairs(ctx, panels, y, k, n, odd)
        return
    b = ctx.b
    columns, parts = panels.shape[2], prices.parts(y)

    few = isinstance(n, int) and n < columns
    turned = few and y.strides[1] != 1  # in squares, which conditions would not be
    some = n if turned else columns

    def row(panel: Expr, start: Expr, i: Expr) -> None:
        with b.loop(some, "vector", "j") as j:
            if few and not turned:
                value = b.select(b.lt(j, b.index(n)), ctx.load(y, (i, j)), b.const(y.dtype, 0))
            else:
                value = ctx.load(y, (i, start + j))
            ctx.store(panels, (panel, i * parts, j), value)
            if parts == 2:
                times_i = b.op("complex", b.neg(b.op("imag", value)), b.op("real", value))
                ctx.store(panels, (panel, i * parts + 1, j), times_i)

    if turned:
        with b.loop(k * parts, "parallel", "k") as i, b.loop(columns - some, "vector", "j") as j:
            ctx.store(panels, (0, i, j + some), b.const(y.dtype, 0))
    count = blocks_of(ctx, n, columns)
    along = y.strides[1] == 1 and y.shape[0] >= 2 * PACKED_ROWS
    if isinstance(k, int) and not along:
        with b.loop(count, "parallel", "panel") as panel, b.loop(k, "parallel", "k") as i:
            row(panel, start_of(ctx, panel, columns, n), i)
        return
    # Rows are read along: panel by panel each would be read a line of the cache at a time, out of prefetchers' reach.
    # Columns are turned in squares, which takes a number of rows that is known.
    group = PACKED_ROWS if along else CHAIN
    with b.loop(blocks_of(ctx, k, group), "parallel", "group") as block:
        first = start_of(ctx, block, group, k)
        with b.loop(count, "parallel", "panel") as panel, b.loop(group, "parallel", "k") as i:
            row(panel, start_of(ctx, panel, columns, n), first + i)


def blocks_of(ctx: NestContext, extent: Expr | int, size: int) -> Expr | int:
    """Into how many blocks of this size an extent is cut."""
    b = ctx.b
    return -(-extent // size) if isinstance(extent, int) else b.floordiv(extent + (size - 1), b.index(size))


def start_of(ctx: NestContext, block: Expr, size: int, extent: Expr | int) -> Expr:
    """Where a block begins, the last of which overlaps the one before."""
    if isinstance(extent, int):
        return ctx.b.op("min", block * size, ctx.b.index(max(extent - size, 0))) if extent % size else block * size
    return ctx.b.op("min", block * size, extent - size)


def paired_rows(ctx: NestContext, x: Storage, n: int, rows: int, columns: int, alone: bool) -> Storage:
    """x[m, k] of bf16 as the kernel reads it, an element of zeros after an odd number of them: in pairs as they are, or
    as floats, the second of a pair first.
    """
    b, (m, k) = ctx.b, x.shape
    narrow, even = current_target().dots_pairs, k + k % 2
    stays = narrow and x.strides[1] == 1 and k == even and x.strides[0] % 2 == 0
    if stays and not prices.copy_pays(x, m, n, rows, columns):
        return x
    held = _apart(ctx, PAIRED if narrow else "f32", (m, even), rows, alone)
    if narrow:
        with ctx.loops((m, k)) as (i, j):
            ctx.store(held, (i, j), ctx.load(x, (i, j)))
    else:
        with ctx.loops((m, k // 2)) as (i, pair):
            for place in (1, 0):
                ctx.store(held, (i, pair * 2 + 1 - place), b.convert(ctx.load(x, (i, pair * 2 + place)), "f32"))
    if k != even:
        with ctx.loops((m,)) as (i,):
            if not narrow:
                ctx.store(held, (i, k), b.convert(ctx.load(x, (i, k - 1)), "f32"))
            ctx.store(held, (i, k if narrow else k - 1), b.const(held.dtype, 0))
    return held


def _fill_pairs(ctx: NestContext, panels: Storage, y: Storage, k: Expr | int, n: Expr | int, odd: bool) -> None:
    """`_fill` for products of pairs: rows of two bf16 each, or of float32, the second row of a pair first.

    The last panel overlaps the one before, or has columns of zeros; so has the row after an odd number of them.
    """
    b = ctx.b
    columns, narrow = panels.shape[2], current_target().dots_pairs

    pairs = blocks_of(ctx, k, 2)
    turned = y.strides[1] != 1 and not (isinstance(n, int) and n < columns)  # in squares first, whose rows are read
    group = CHAIN // 2 if turned else PACKED_ROWS // 2
    group = min(pairs, group) if isinstance(pairs, int) else group

    def row_of(i: Expr) -> Expr:
        return b.op("min", i, b.index(k) - 1) if odd else i

    with (
        b.loop(blocks_of(ctx, pairs, group), "parallel", "group") as block,
        b.loop(blocks_of(ctx, n, columns), "parallel", "panel") as panel,
    ):
        first, start = start_of(ctx, block, group, pairs), start_of(ctx, panel, columns, n)
        square = ctx.local(PAIRED, (2 * group, columns), "square") if turned else y
        if turned:
            with b.loop(2 * group, "parallel", "k") as i, b.loop(columns, "vector", "j") as j:
                ctx.store(square, (i, j), ctx.load(y, (row_of(first * 2 + i), start + j)))
        with b.loop(group, "parallel", "k") as i, b.loop(columns, "vector", "j") as j:
            pair, halves = first + i, []
            for place in range(2):
                at, column = pair * 2 + place, start + j
                inside = b.lt(at, b.index(k)) if odd else None
                if isinstance(n, int) and n < columns:
                    within = b.lt(column, b.index(n))
                    inside = within if inside is None else b.op("and", inside, within)
                found = ctx.load(square, (i * 2 + place, j) if turned else (row_of(at), column))
                found = b.convert(found, "f32")
                halves.append(found if inside is None else b.select(inside, found, b.const("f32", 0)))
            if narrow:
                bits = [b.bitcast(half, "u32") for half in halves]  # their lower 16 are zero
                both = b.op("or", b.op("shr_logical", bits[0], b.const("u32", 16)), bits[1])
                ctx.store(panels, (panel, pair, j), b.bitcast(both, "f32"))
            else:
                for place, half in enumerate(halves):
                    ctx.store(panels, (panel, pair * 2 + 1 - place, j), half)
