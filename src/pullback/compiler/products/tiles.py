"""Products of bf16 and of integers of 8 bits by the kernels of tile_kernels.py, where the CPU multiplies tiles (AMX).

x is read where it lies, if its rows are contiguous words of 32 bits; y is packed into panels of such words. Threads
share blocks of rows and of panels; each packs its own panels, or, where y is too large for that, all are packed
first. Results of another type than the kernel's (bf16) are converted from a tile just computed, so that sums in float32
have no place in memory.

Results depend on the operands alone: each is the same sum of the same instructions, however the work is cut.

Measured on two cores of a Xeon (bf16 @ bf16 as bf16; before, by pairs with AVX512-BF16): 256 x 256 takes 27 us, before
184, 1024 x 1024 1.06 ms, before 11.0, 2048 x 2048 9.5 ms, before 87; PyTorch 47 us, 1.65 and 9.1 ms. Products of int8
as int32 of 1024 x 1024 take 0.65 ms, before 16.9; PyTorch 0.79.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.lower.storage import Storage, contiguous
from pullback.compiler.products import prices
from pullback.compiler.products.kernels import SIZES
from pullback.compiler.products.tile_kernels import WORDS, tile_kernel_name, tile_shape
from pullback.loops.emit.access import SCRATCH_BYTES
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE, Builder, Expr
from pullback.loops.schedule.machine import host

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

NARROW = ("bf16", "i8", "u8")
LEAST_WORK = 32 * 32 * 16  # multiply-adds below which a loop nest, or the kernel of pairs, is as good
LEAST_CONTRACTED = 16  # contracted elements, half of a row of a tile: the same of fewer
MULTIPLY_ADD_NS = 5e-3  # of one core
ROWS, COLUMNS = 64, 256  # of a tile of results that are converted: 64 KB
PACKED_WORDS = 16  # words of y that are packed together: a square of registers


def kind_of(x: Storage, y: Storage, dtype: str) -> str | None:
    """The kind of kernel (`DOTS`) for operands of these types and a result in `dtype`, where the CPU has one."""
    if x.dtype not in NARROW or y.dtype not in NARROW or not current_target().multiplies_tiles:
        return None
    if x.dtype == y.dtype == "bf16":
        return "bf16" if dtype in ("bf16", "f32") else None
    if "bf16" in (x.dtype, y.dtype):
        return None
    return x.dtype + y.dtype if dtype in ("i32", "u32", "i8", "u8") else None


def suits(m: int, k: int, n: int) -> bool:
    """Whether a kernel is the best choice for m x n results of k products each."""
    return min(m, n) >= 4 and k >= LEAST_CONTRACTED and m * n * k >= LEAST_WORK


def held(x: Storage, y: Storage) -> int:
    """Bytes that `multiply` holds for one matrix of a batch, alone: panels, a tile of results, often a copy of x."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    _, columns = tile_shape(m, n)
    size = ITEMSIZE[x.dtype]
    copy = m * (k + 4) * size if x.strides[-1] != 1 or k * size % 4 or x.strides[-2] * size % 4 else 0
    return (k + 4) * size * -(-n // columns) * columns + copy + 4 * ROWS * min(COLUMNS, -(-n // columns) * columns)


def multiply(ctx: NestContext, out: Storage, x: Storage, y: Storage, alone: bool = False) -> None:
    """out = x @ y for matrices of any strides; `alone`: inside a loop of threads, with scratch space of its own."""
    if out.strides[1] != 1 and out.strides[0] == 1:
        multiply(ctx, out.transposed((1, 0)), y.transposed((1, 0)), x.transposed((1, 0)), alone)
        return
    kind = kind_of(x, y, out.dtype)
    assert kind is not None
    b = ctx.b
    (m, k), n = x.shape, y.shape[1]
    rows, columns = tile_shape(m, n)
    x = _words(ctx, x, alone)
    words = -(-k * ITEMSIZE[y.dtype] // 4)
    panel_bytes = 4 * words * columns
    full = max(1, n // columns)  # panels, the last of which may be followed by a part of one
    shared = not alone and prices.threads_pay(m * n * k * MULTIPLY_ADD_NS, out, x, y)
    down, across = _cut(m, k * ITEMSIZE[x.dtype], full, panel_bytes) if shared else (1, 1)
    most = -(-full // across) + (n % columns > 0)
    own = down == 1 and most * panel_bytes <= SCRATCH_BYTES
    packed: Storage | None = None
    if not own:
        packed = _scratch(ctx, WORDS[kind], (-(-n // columns), words, columns), alone)
        _fill(ctx, packed, y, n)
    with b.loop(
        down * across, "threads" if shared else "sequential", "task", (("grain", 1),) if shared else ()
    ) as task:
        i, j = b.floormod(task, b.index(down)), b.floordiv(task, b.index(down))
        top, height = _share(ctx, i, down, max(1, m // rows), rows, m)
        left, width = _share(ctx, j, across, full, columns, n)
        highest, widest = _most(down, max(1, m // rows), rows, m), _most(across, full, columns, n)
        first = b.floordiv(left, b.index(columns))
        if packed is None:
            panels = _scratch(ctx, WORDS[kind], (most, words, columns), True)
            _fill(ctx, panels, y.slice((0, left), (k, widest)), n if across == 1 else width)
        else:
            panels = packed.slice((first, 0, 0), (most, words, columns))
        part, block = x.slice((top, 0), (highest, k)), out.slice((top, left), (highest, widest))
        if out.dtype in ("f32", "i32", "u32") and out.strides[1] == 1 and n >= columns:
            _call(ctx, kind, block, part, panels, rows, height, width)
        else:
            _by_rows(ctx, kind, block, part, panels, rows, (height, width))


def _by_rows(
    ctx: NestContext, kind: str, out: Storage, x: Storage, panels: Storage, rows: int, sizes: tuple[Expr, Expr]
) -> None:
    """The first rows and columns, as many as `sizes` say, through a tile of some rows that is converted."""
    b = ctx.b
    height, width = sizes
    columns = panels.shape[2]
    few = out.shape[1] < columns
    some = min(max(1, ROWS // rows) * rows, out.shape[0])
    wide = min(max(1, COLUMNS // columns), panels.shape[0]) * columns
    tile = _scratch(ctx, WORDS[kind], (some, wide), True)
    with (
        b.loop(b.floordiv(width + (wide - 1), b.index(wide)), "sequential", "panels") as group,
        b.loop(b.floordiv(height + (some - 1), b.index(some)), "sequential", "chunk") as chunk,
    ):
        # As many rows and columns as the kernel takes at least: those before are computed again.
        top = b.let(b.op("min", chunk * some, height - rows))
        left = b.index(0) if few else b.let(b.op("min", group * wide, width - columns))
        tall = b.let(b.op("min", b.index(some), height - top))
        broad = b.index(out.shape[1]) if few else b.let(b.op("min", b.index(wide), width - left))
        part = panels.slice((group * (wide // columns), 0, 0), panels.shape)
        _call(
            ctx, kind, tile, x.slice((top, 0), (some, x.shape[1])), part, rows, tall, b.index(columns) if few else broad
        )
        with b.loop(tall, "sequential", "r") as r, b.loop(broad, "vector", "j") as j:
            ctx.store(out, (top + r, left + j), b.convert(ctx.load(tile, (r, j)), out.dtype))


def _cut(m: int, row_bytes: int, full: int, panel_bytes: int) -> tuple[int, int]:
    """(blocks of rows, blocks of panels) that threads share.

    Where rows of x stay in half of the second cache, so many blocks of panels that each has its panels to itself; else
    blocks of rows that do, each of which goes through all panels.
    """
    machine = host()
    half = machine.second.bytes // 2
    pieces = 2 * machine.cores
    across = min(full, max(pieces, -(-full * panel_bytes // (SCRATCH_BYTES // 2))))
    if m * row_bytes <= half or m < 4 * machine.cores * 32:
        return 1, across
    down = -(-m * row_bytes // half)
    down += -down % machine.cores
    return min(down, max(1, m // 32)), 1


def _share(ctx: NestContext, i: Expr, count: int, units: int, unit: int, extent: int) -> tuple[Expr, Expr]:
    """(start, size) of the i-th of `count` blocks of an extent: whole units, what is left in the last."""
    b = ctx.b
    if count == 1:
        return b.index(0), b.index(extent)
    first = b.let(b.floordiv(i * units, b.index(count)) * unit)
    stop = b.floordiv((i + 1) * units, b.index(count)) * unit
    if extent != units * unit:
        stop = b.select(b.eq(i, b.index(count - 1)), b.index(extent), stop)
    return first, b.let(stop - first)


def _most(count: int, units: int, unit: int, extent: int) -> int:
    """The largest size of a block of `_share`."""
    return extent if count == 1 else -(-units // count) * unit + max(0, extent - units * unit)


def _scratch(ctx: NestContext, dtype: str, shape: tuple[int, ...], alone: bool) -> Storage:
    return ctx.local(dtype, shape, "tile") if alone else ctx.temporary(dtype, shape, "tile")


def _words(ctx: NestContext, x: Storage, alone: bool) -> Storage:
    """x, or a copy of it, whose rows are contiguous words, zeros after the last element."""
    m, k = x.shape
    each = 4 // ITEMSIZE[x.dtype]
    even = k + -k % each
    if x.strides[1] == 1 and k == even and (m == 1 or x.strides[0] % each == 0):
        return x
    held = _scratch(ctx, x.dtype, (m, even), alone)
    ctx.copy(held.slice((0, 0), (m, k)), x)
    if k != even:
        with ctx.loops((m, even - k)) as (i, j):
            ctx.store(held, (i, j + k), ctx.b.const(x.dtype, 0))
    return held


def _fill(ctx: NestContext, panels: Storage, y: Storage, n: Expr | int) -> None:
    """The first n columns of y into panels, the last of which overlaps the one before or has columns of zeros.

    A word has the elements of 2 or 4 rows that follow each other, the first in its lowest bits; zeros for rows that are
    not there. `n` is `columns` at least where it is known only when the program runs.
    """
    b = ctx.b
    k = y.shape[0]
    _, words, columns = panels.shape
    each = 4 // ITEMSIZE[y.dtype]
    few = isinstance(n, int) and n < columns
    turned = y.strides[1] != 1 and not few
    group = min(PACKED_WORDS, words)
    count = b.floordiv(b.index(n) + (columns - 1), b.index(columns))
    last = b.index(n) - columns

    def row_of(i: Expr) -> Expr:
        return b.op("min", i, b.index(k - 1)) if k % each else i

    with b.loop(-(-words // group), "parallel", "group") as block, b.loop(count, "parallel", "panel") as panel:
        first = b.op("min", block * group, b.index(words - group)) if words % group else block * group
        start = b.index(0) if few else b.op("min", panel * columns, last)
        square = y
        if turned:
            square = ctx.local(y.dtype, (each * group, columns), "square")
            with b.loop(each * group, "parallel", "k") as i, b.loop(columns, "vector", "j") as j:
                ctx.store(square, (i, j), ctx.load(y, (row_of(first * each + i), start + j)))
        with b.loop(group, "parallel", "k") as i, b.loop(columns, "vector", "j") as j:
            parts = []
            for place in range(each):
                at = (first + i) * each + place
                found = ctx.load(square, (i * each + place, j) if turned else (row_of(at), start + j))
                inside = b.lt(at, b.index(k)) if k % each else None
                if few:
                    within = b.lt(j, b.index(n))
                    inside = within if inside is None else b.op("and", inside, within)
                parts.append(found if inside is None else b.select(inside, found, b.const(y.dtype, 0)))
            ctx.store(panels, (panel, first + i, j), b.bitcast(word_of(b, parts), panels.dtype))


def word_of(b: Builder, parts: Sequence[Expr]) -> Expr:
    """Two bf16, or four integers of 8 bits, as a word (u32); the first is in its lowest bits."""
    if parts[0].dtype == "bf16":
        low, high = (b.bitcast(b.convert(part, "f32"), "u32") for part in parts)  # whose lower halves are zero
        return b.op("or", b.op("shr_logical", low, b.const("u32", 16)), high)
    word = b.const("u32", 0)
    for place, part in enumerate(parts):
        word = b.op("or", word, b.op("shl", b.convert(b.bitcast(part, "u8"), "u32"), b.const("u32", 8 * place)))
    return word


def _call(
    ctx: NestContext, kind: str, out: Storage, x: Storage, panels: Storage, rows: int, height: Expr, width: Expr
) -> None:
    """One call of the kernel for so many rows and columns."""
    b = ctx.b
    columns = panels.shape[2]
    count = b.let(b.floordiv(width + (columns - 1), b.index(columns)))
    fields: dict[str, Expr | int] = {
        "rows": height,
        "panels": count,
        "inner": panels.shape[1],
        "columns": width,
        "x_row": x.strides[0] * ITEMSIZE[x.dtype] // 4,
        "x_inner": 1,
        "y_panel": panels.strides[0],
        "y_last": (count - 1) * panels.strides[0],
        "y_inner": columns,
        "out_row": out.strides[0],
    }
    constants = [value if isinstance(value, int) else None for value in map(_number, fields.values())]
    if all(value is not None for value in constants):
        sizes = contiguous(ctx.lowering.scalar_constant(np.array(constants, np.int64)), (len(SIZES),))
    else:
        sizes = ctx.local("i64", (len(SIZES),), "sizes")
        for place, name in enumerate(SIZES):
            ctx.store(sizes, (place,), b.index(fields[name]))
    b.call(tile_kernel_name(kind, rows, columns), *(ctx.address(s) for s in (sizes, x, panels, out)))


def _number(value: Any) -> Any:
    return getattr(value, "value", value)


__all__ = ["kind_of", "multiply", "suits", "word_of"]
