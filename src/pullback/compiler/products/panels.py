"""Products by our own kernel (kernels.py): its operands in order (packing.py), its calls shared among threads.

Complex products are real ones: rows of x are read as they lie, as twice as many real numbers, and row k of y becomes
two, y[k] and i y[k], so that (re, im) of x times these two is what lies in memory of the complex result.

That needs no more multiplications than complex ones, and has the same kernel, and threads of ours: OpenBLAS started its
own for little work, 64 x 64 complex128 took 226 us where one thread takes 54. On two cores of a Zen 4 512 x 512
complex64 take 5.8 ms, by blocks of BLAS 6.5, and 1000 x 1000 complex128 85 ms instead of 89.

What one core writes and another reads is dear, and so is y that comes again for each block of rows. So each thread
packs for itself where that costs less (prices.py): panels, each just before it multiplies all of x with them
(`_by_panels`), or all of a small y, for its rows (`_by_copies`). On two cores of a Zen 4 64 rows by the transpose of
2000 x 2000 take 3.8 ms, before 5.2; 64 x 1024 bfloat16 by the transpose of 1024 x 1024 0.40, before 0.87; and
in float32, 80 x 80 x 80 7.5 us, before 11.5, 100 x 300 x 100 38, before 71, 250 x 250 x 250 146, before 229.

A small result of long rows of x and of y' is a sum of a few products over pieces of these, each of which is packed by
the thread that multiplies it (`_by_pieces`), by sizes alone: on two cores of a Zen 4 60 x 1000 float32 by the transpose
of 60 x 1000 take 47 us, before 180; 64 x 1024 60 and 115.

Tried, and no better: slabs of the contracted axis (256 or 512 elements, x copied into the second cache), which lost up
to a tenth at 1000 to 2048, as sums are read and written again; prefetching the next panel of y, other numbers of rows
in a block made no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.lower.storage import Storage, contiguous, merged_stride
from pullback.compiler.products import prices
from pullback.compiler.products.kernels import CHAIN, SIZES, block_shape, kernel_name, product_shape
from pullback.compiler.products.packing import (
    PAIRED,
    blocks_of,
    fill,
    near_rows,
    packed,
    paired_rows,
    room,
    scratch,
    start_of,
    where_it_lies,
)
from pullback.compiler.products.prices import MAX_ROW_BLOCKS, REAL
from pullback.loops.emit.access import SCRATCH_BYTES
from pullback.loops.ir import ITEMSIZE, Expr, Let
from pullback.loops.schedule.item_loops import of_items
from pullback.loops.schedule.machine import host
from pullback.loops.schedule.row_blocks import of_rows

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

WORDS = "u32"  # of operands of a product in i32: two i16 each, which one instruction multiplies and adds
KERNELS = ("f32", "f64", "i32", "u32", *REAL)
LEAST_WORK = 16 * 16 * 8  # multiply-adds below which a loop nest is as good
SMALLEST_SHARE = 1 << 16  # multiply-adds of a part of a batch
LEAST_BLOCKS = 32  # blocks that threads share, at least, where there is enough work
LARGE_BLOCK = 1 << 25  # multiply-adds of a block worth cutting
PIECE_LENGTH = 2048  # contracted elements of a piece, where a small result is the sum of several
SMALL_RESULT = 1 << 15  # elements of such a result at most
# A result that is small, of long rows of both operands: elements of it, contracted elements of a piece at least, pieces
# at most (an even number of them, as that of cores is) but for those that fit where a thread keeps them, multiply-adds.
CORNER, SHORTEST, EVEN, MOST, WORTH = 1 << 13, 136, 8, 64, 1 << 17
WIDEST = 64  # columns of a panel at most
GRAM_LEAST = 64  # rows from which half of a product with its own transpose is saved by panels: two of the widest
GRAM_MOST = 512  # rows up to which a thread keeps the sums of a group of panels, on any machine


def suits(out: Storage, x: Storage, y: Storage) -> bool:
    """Whether the kernel is the best choice for out[m, n] = x[m, k] @ y[k, n]."""
    (m, k), n = x.shape, y.shape[1]
    work = m * n * k
    if out.dtype not in KERNELS or min(m, n) < 4 or k < 4 or work < LEAST_WORK:
        return False
    if x.dtype != PAIRED and (out.dtype[0] in "iu" or m * n <= SMALL_RESULT):
        return True
    return k * prices.parts(out) <= prices.LONGEST_PANEL


def _shape(dtype: str, m: int, n: int) -> tuple[int, int]:
    """product_shape, its columns in elements of this type."""
    return _real(product_shape, dtype, m, n)


def _real(shape: Callable[[str, int, int], tuple[int, int]], dtype: str, m: int, n: int) -> tuple[int, int]:
    """A shape of blocks of results, its columns in elements of this type, of which complex ones are two."""
    if dtype not in REAL:
        return shape(dtype, m, n)
    rows, columns = shape(REAL[dtype], m, 2 * n)
    return rows, columns // 2


def multiply(ctx: NestContext, out: Storage, x: Storage, y: Storage, alone: bool = False) -> None:
    """out = x @ y for matrices of any strides; `alone`: inside a loop of threads, with scratch space of its own."""
    if out.strides[1] != 1:
        if out.strides[0] == 1:
            multiply(ctx, out.transposed((1, 0)), y.transposed((1, 0)), x.transposed((1, 0)), alone)
            return
        held = scratch(ctx, out.dtype, out.shape, alone)
        multiply(ctx, held, x, y, alone)
        ctx.copy(out, held)
        return
    m, n = out.shape
    rows, columns = _shape(out.dtype, m, n)
    target = out if n >= columns else scratch(ctx, out.dtype, (m, columns), alone)
    paired = x.dtype == PAIRED
    x = paired_rows(ctx, x, n, rows, columns, alone) if paired else near_rows(ctx, x, n, rows, columns, alone)
    shared = not alone and prices.threads_pay(prices.work_ns(out, m * n * x.shape[1]), out, x, y)
    if (pieces := pieces_of(out, x, y)) > 1:
        _by_pieces(ctx, out, x, y, rows, columns, pieces, shared)
        return
    panels = None if paired or y.dtype in REAL else where_it_lies(y, m, rows, columns)
    far = not alone and not shared and prices.read_far(y)
    if panels is None and (shared or far) and _by_own(ctx, out, x, y, rows, columns, shared):
        return
    if panels is None:
        panels = packed(ctx, y, columns, alone, paired)
    if x.shape[1] > prices.LONGEST_PANEL and not alone and not paired:
        _sum_of_pieces(ctx, target, x, panels, rows)
    else:
        _calls(ctx, target, x, panels, rows, shared)
    if target is not out:
        ctx.copy(out, Storage(target.buffer, target.offset, (m, n), target.strides))


def _by_own(ctx: NestContext, out: Storage, x: Storage, y: Storage, rows: int, columns: int, shared: bool) -> bool:
    """Shares the product among threads that pack for themselves, if that costs less than that one packs for all. Where
    there is one, it packs panels just before it reads them, too: all of a large y would go to memory and back.
    """
    shape = few = rows, columns
    if columns <= out.shape[1] < 2 * columns:  # too few of these panels for threads to share
        few = _real(block_shape, out.dtype, *out.shape)
    ways = [
        (prices.together_ns(out, x, y, rows), None, shape),
        (prices.own_panels_ns(out, x, y, *few), _by_panels, few),
        (prices.own_copies_ns(out, x, y, *shape), _by_copies, shape),
    ]
    _, way, shape = min(ways, key=lambda way: way[0])
    if way is not None:
        way(ctx, out, x, y, *shape, shared)
    return way is not None


def pieces_of(out: Storage, x: Storage, y: Storage) -> int:
    """How many products are summed for a small result of long rows of x and y', by sizes alone; 1 for any other."""
    (m, k), n = x.shape, y.shape[1]
    if out.dtype not in ("f32", "f64") or x.dtype != out.dtype or y.dtype != out.dtype or y.strides[1] == 1:
        return 1  # rows of bf16 may be floats by now (packing.paired_rows), y is not
    if m * n > CORNER or k < 2 * SHORTEST or m * n * k < WORTH:
        return 1
    held = k * (n + WIDEST) * ITEMSIZE[out.dtype]
    pieces = max(min(EVEN, k // SHORTEST // 2 * 2), -(-held // SCRATCH_BYTES))
    return pieces if pieces <= MOST and k // pieces >= CHAIN + pieces else 1  # the last is no shorter than a chain


def _by_pieces(
    ctx: NestContext, out: Storage, x: Storage, y: Storage, rows: int, columns: int, pieces: int, shared: bool
) -> None:
    """out = x @ y as the sum of products over pieces of the contracted axis, which threads share."""
    b = ctx.b
    (m, k), n = x.shape, y.shape[1]
    size = -(-k // pieces)
    partial = ctx.temporary(out.dtype, (pieces, m, max(n, columns)), "partial")
    with b.loop(pieces, "threads" if shared else "sequential", "piece", (("grain", 1),) if shared else ()) as piece:
        start = piece * size
        inner: Any = b.let(b.op("min", b.index(size), b.index(k) - start)) if k % size else size
        own = y.slice((start, 0), (size, n))
        panels = room(ctx, own, -(-n // columns), size, columns, True, False)
        fill(ctx, panels, own, inner, n, False, False)
        given = {"inner": inner} if k % size else {}
        call(ctx, partial.at(piece), x.slice((0, start), (m, size)), panels, rows, given)
    _summed(ctx, out, partial)


def batch(ctx: NestContext, out: Storage, x: Storage, y: Storage, each: Any = None, held: int | None = None) -> None:
    """out[b..., m, n] = x[b..., m, k] @ y[b..., k, n], whose last two axes suit the kernel; or those of `each` in the
    place of `multiply`, which then holds so many bytes alone.
    """
    b = ctx.b
    sizes = out.shape[:-2]
    count = int(np.prod(sizes))
    (m, k), n = x.shape[-2:], y.shape[-1]
    work = m * n * k
    if held is None:
        held = (k * (n + _shape(out.dtype, m, n)[1]) * prices.parts(out) + m * max(k, n)) * ITEMSIZE[out.dtype]
    alone = held <= SCRATCH_BYTES and prices.alone_pays(out.dtype, count, work)
    shared = alone and prices.threads_pay(prices.work_ns(out, count * work), out, x, y)
    grain = max(1, min(SMALLEST_SHARE // work, -(-count // LEAST_BLOCKS))) if shared else None
    with b.loop(count, "threads" if shared else "sequential", "item", of_items(count, grain)) as item:
        (each or multiply)(ctx, _item(ctx, out, item), _item(ctx, x, item), _item(ctx, y, item), alone)


def _item(ctx: NestContext, s: Storage, item: Expr) -> Storage:
    """The item-th matrix of a batch of any axes."""
    b = ctx.b
    sizes, strides = s.shape[:-2], s.strides[:-2]
    step = merged_stride(sizes, strides)
    if step is not None:
        return Storage(s.buffer, s.offset, (int(np.prod(sizes)), *s.shape[-2:]), (step, *s.strides[-2:])).at(item)
    for position, size in enumerate(sizes):
        inner = int(np.prod(sizes[position + 1 :]))
        i: Expr | int = item if inner == 1 else b.floordiv(item, b.index(inner))
        s = s.at(0 if size == 1 else i if position == 0 else b.floormod(b.index(i), b.index(size)))
    return s


def _calls(ctx: NestContext, out: Storage, x: Storage, panels: Storage, rows: int, shared: bool) -> None:
    """The kernel on all of out[m, n]; `shared`: by blocks of rows or of panels that threads share."""
    b = ctx.b
    (m, k), n = x.shape, out.shape[1]
    columns = panels.shape[2]
    if not shared:
        call(ctx, out, x, panels, rows)
        return
    units, full = max(1, m // rows), max(1, n // columns)
    down = min(units, MAX_ROW_BLOCKS)
    across = min(
        full, max(-(-LEAST_BLOCKS // down) if down < MAX_ROW_BLOCKS else 1, min(4, m * n * k // down // LARGE_BLOCK))
    )
    attrs: tuple[tuple[str, Any], ...] = of_rows(m, rows) if across == 1 else (("grain", 1),)
    with b.loop(down * across, "threads", "block", attrs) as block:
        i, j = (block, 0) if across == 1 else (b.floormod(block, b.index(down)), b.floordiv(block, b.index(down)))
        start, size, most = _share(ctx, i, down, units, rows, m)
        given = {"rows": size}
        if across == 1:
            call(ctx, out.slice((start, 0), (most, n)), x.slice((start, 0), (most, k)), panels, rows, given)
            return
        left, width, widest = _share(ctx, j, across, full, columns, n)
        given |= {"columns": width, "panels": b.floordiv(width + (columns - 1), b.index(columns))}
        part = panels.slice(
            (b.floordiv(left, b.index(columns)), 0, 0), (-(-widest // columns), panels.shape[1], columns)
        )
        call(ctx, out.slice((start, left), (most, widest)), x.slice((start, 0), (most, k)), part, rows, given)


def _by_copies(
    ctx: NestContext, out: Storage, x: Storage, y: Storage, rows: int, columns: int, shared: bool
) -> None:
    """out = x @ y by a block of rows for each thread, which packs all of y for itself."""
    b = ctx.b
    (m, k), n = x.shape, out.shape[1]
    paired = y.dtype == PAIRED
    units = m // rows
    tasks = min(host().cores, units)
    with b.loop(tasks, *_of_tasks(shared)) as task:
        start, size, most = _share(ctx, task, tasks, units, rows, m)
        panels = packed(ctx, y, columns, True, paired)
        call(ctx, out.slice((start, 0), (most, n)), x.slice((start, 0), (most, k)), panels, rows, {"rows": size})


def gram_suits(out: Storage, x: Storage) -> bool:
    """Whether `gram` can be had for out[n, n] = x[n, k] @ x'; by sizes alone, as BLAS adds in another order."""
    n, k = x.shape
    if out.dtype not in KERNELS or out.dtype in REAL or out.strides[1] != 1:
        return False
    return n >= GRAM_LEAST and k <= prices.LONGEST_PANEL and (k < 2 * CHAIN or n <= GRAM_MOST)


def gram(ctx: NestContext, out: Storage, x: Storage) -> None:
    """out[n, n] = x[n, k] @ x' on its diagonal and below; what is above is not defined."""
    n = out.shape[0]
    rows, columns = _shape(out.dtype, n, n)
    x, y = near_rows(ctx, x, n, rows, columns, False), x.transposed((1, 0))
    _by_panels(ctx, out, x, y, rows, columns, True, below=True)


def _of_tasks(shared: bool) -> tuple[Any, ...]:
    """Kind, name and attributes of a loop over tasks."""
    return ("threads", "task", (("grain", 1),)) if shared else ("sequential", "task")


def _by_panels(
    ctx: NestContext, out: Storage, x: Storage, y: Storage, rows: int, columns: int, shared: bool, below: bool = False
) -> None:
    """out = x @ y by groups of panels that threads share; each packs its own, a piece of the contracted axis at a time.

    What pieces give is added up in a tile of the thread's own, whose bits are those of one call for all. With `below`,
    rows above the first column of a group are left out.
    """
    b = ctx.b
    (m, n), k = out.shape, y.shape[0]
    paired = y.dtype == PAIRED
    # With `below`, the first tasks have more rows: more tasks are shared more evenly.
    group, pieces = prices.groups(out.dtype, y, columns, m + rows, below)
    blocks = -(-m // rows)
    tasks, units = prices.tasks_of(n, columns, group)
    with b.loop(tasks, *_of_tasks(shared)) as task:
        left, width, widest = _share(ctx, task, tasks, units, columns, n)
        most = -(-widest // columns)
        given = {"columns": width, "panels": b.floordiv(width + (columns - 1), b.index(columns))}
        top: Expr | int = 0
        height: Expr | int = m
        if below:
            top = b.let(b.op("min", left, b.index(m - rows)))
            height = given["rows"] = b.let(b.index(m) - top)
        own = out.slice((top, left), (m, widest))
        if pieces == 1:
            panels = room(ctx, y, most, k, columns, True, paired)
            fill(ctx, panels, y.slice((0, left), (k, widest)), k, width, paired, k % 2 == 1)
            call(ctx, own, x.slice((top, 0), x.shape), panels, rows, given)
            return
        tile = ctx.local(out.dtype, (blocks * rows, most * columns), "tile")
        with b.loop(tile.size, "vector") as v:
            b.store(tile.buffer, v, b.const(out.dtype, 0))
        with b.loop(pieces, "sequential", "piece") as piece:
            first, inner, longest = _share(ctx, piece, pieces, k // CHAIN, CHAIN, k)
            panels = room(ctx, y, most, longest, columns, True, paired)
            fill(ctx, panels, y.slice((first, left), (longest, widest)), inner, width, paired, k % 2 == 1)
            part = x.slice((top, first), (m, longest))
            if paired:  # zeros after an odd number
                inner = b.floordiv(inner + 1, b.index(2)) * 2
            call(ctx, tile.slice((0, 0), (m, widest)), part, panels, rows, given | {"inner": inner}, added=True)
        some = blocks_of(ctx, height, rows)
        with b.loop(some, "sequential", "block") as block, b.loop(rows, "sequential", "r") as r:
            row = start_of(ctx, block, rows, height) + r
            with b.loop(given["panels"], "sequential", "panel") as panel, b.loop(columns, "vector", "j") as j:
                value = ctx.load(tile, (block * rows + r, panel * columns + j))
                ctx.store(own, (row, start_of(ctx, panel, columns, width) + j), value)


def _share(ctx: NestContext, i: Expr | int, count: int, units: int, unit: int, extent: int) -> tuple[Expr, Expr, int]:
    """(start, size, largest size) of the i-th of `count` blocks of an extent: whole units, what is left in the last, or
    less in the last where units are more than the extent.

    The first two are variables, as of_rows wants them. What blocks of equal size overlap would be computed twice: 15
    blocks of 36 rows are 540, not 512, a twentieth twice.
    """
    b = ctx.b
    i = b.index(i)
    first, size = b.var("first", "i64"), b.var("count", "i64")
    b.emit(Let(first, b.floordiv(i * units, b.index(count)) * unit))
    stop = b.floordiv((i + 1) * units, b.index(count)) * unit
    if extent != units * unit:
        stop = b.select(b.eq(i, b.index(count - 1)), b.index(extent), stop)
    last = extent - (count - 1) * units // count * unit
    most = max(-(-units // count) * unit if count > 1 else 0, last)
    least = min(units // count * unit, last)
    # Bounds that are said: items of a batch are known to stay apart by them.
    held = b.index(most) if least == most else b.op("max", b.op("min", stop - b.read(first), most), least)
    b.emit(Let(size, held))
    return b.read(first), b.read(size), most


def _summed(ctx: NestContext, out: Storage, partial: Storage) -> None:
    """out = the sum of partial products, in their order."""
    with ctx.loops(out.shape) as (i, j):
        total = ctx.load(partial, (0, i, j))
        for number in range(1, partial.shape[0]):
            total = ctx.b.add(total, ctx.load(partial, (number, i, j)))
        ctx.store(out, (i, j), total)


def _sum_of_pieces(ctx: NestContext, out: Storage, x: Storage, panels: Storage, rows: int) -> None:
    """A small result: partial products over pieces of the contracted axis, one for a thread, and their sum."""
    b = ctx.b
    (m, k), n = x.shape, out.shape[1]
    count, _, columns = panels.shape
    pieces = -(-k // PIECE_LENGTH)
    size = -(-k // pieces)
    partial = ctx.temporary(out.dtype, (pieces, m, n), "partial")
    with b.loop(pieces, "threads", "piece", (("grain", 1),)) as piece:
        start = piece * size
        given = {"inner": b.op("min", b.index(size), b.index(k) - start)} if k % size else {}
        part = panels.slice((0, start * prices.parts(x), 0), (count, size * prices.parts(x), columns))
        call(ctx, partial.at(piece), x.slice((0, start), (m, size)), part, rows, given)
    _summed(ctx, out, partial)


def call(
    ctx: NestContext,
    out: Storage,
    x: Storage,
    panels: Storage,
    rows: int,
    given: Mapping[str, Expr] = MappingProxyType({}),
    added: bool = False,
) -> None:
    """One call of the kernel; `given` are the rows, panels, columns and contracted elements (inner) where they differ
    from those of the storages.
    """
    b = ctx.b
    parts = prices.parts(out)
    narrow = x.dtype == PAIRED  # a pair is one element of what the kernel reads
    together = 2 if narrow else 1
    inner = x.shape[1] * parts // together
    columns = panels.shape[2] * parts
    in_place = panels.strides[0] == columns and panels.shape[1] > 1
    fields = dict.fromkeys(SIZES, 0) | {
        "rows": x.shape[0],
        "panels": panels.shape[0],
        "inner": inner,
        "columns": out.shape[1] * parts,
        "x_row": x.strides[0] * parts // together,
        "x_inner": x.strides[1],  # 1 of complex numbers
        "y_panel": panels.strides[0] * parts,
        "y_last": out.shape[1] - columns if in_place else (panels.shape[0] - 1) * panels.strides[0] * parts,
        "y_inner": panels.strides[1] * parts,
        "out_row": out.strides[0] * parts,
    }
    near = fields["x_inner"] == 1 and fields["y_inner"] == columns
    sizes = contiguous(ctx.lowering.scalar_constant(np.array(list(fields.values()), np.int64)), (len(SIZES),))
    dynamic = {name: value * parts if name in ("inner", "columns") else value for name, value in given.items()}
    if narrow and "inner" in dynamic:
        dynamic["inner"] = b.floordiv(dynamic["inner"], b.index(2))
    if in_place and "columns" in dynamic:
        dynamic["y_last"] = dynamic["columns"] - columns
    elif "panels" in dynamic:
        dynamic["y_last"] = (dynamic["panels"] - 1) * (panels.strides[0] * parts)
    if dynamic:
        held = ctx.local("i64", (len(SIZES),), "sizes")
        for k, name in enumerate(SIZES):
            ctx.store(held, (k,), dynamic.get(name, b.index(fields[name])))
        sizes = held
    addresses = [ctx.address(s) for s in (sizes, x, panels, out)]
    dtype = PAIRED if narrow else REAL.get(out.dtype, out.dtype)
    words = x.dtype == WORDS and out.dtype == "i32"
    b.call(kernel_name(dtype, rows, columns, inner, added=added, near=near, words=words), *addresses)


__all__ = ["batch", "call", "gram", "gram_suits", "multiply", "pieces_of", "suits"]
