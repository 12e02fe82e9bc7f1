"""Convolutions of bf16 by instructions on tiles (AMX).

x is copied with its channels last, unless it is so: what a window reads of one of its lines is then a run of neighbours
in memory, which tiles take 32 at a time, through tables of where they begin. Rows of a tile are neighbouring positions
(lines included, where little lies between them), or images, where windows are larger than results: in gradients of
weights. Columns are features, whose weights are packed into panels.

What lies between lines is computed and dropped, as results go through a tile in float32 anyway.

Measured on two cores of a Xeon, before (float32) and PyTorch in brackets: 3 x 3 of 64 channels of 8 x 56 x 56 1.20 ms
(20.4, 7.0), channels last 1.27 (16.2, 9.6); of 128 of 8 x 28 x 28 channels last 1.14 (12.8, 0.64), with its gradients
6.2 (40.5, 5.2).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback.compiler.lower.storage import Storage, contiguous
from pullback.compiler.products.convolution_problem import Blocks, Copy, Problem, Taps, copied, fill_part, offsets
from pullback.compiler.products.kernels import SIZES
from pullback.compiler.products.tile_kernels import STEP, tile_kernel_name, tile_shape
from pullback.compiler.products.tiles import kind_of, word_of
from pullback.loops.ir import Expr
from pullback.loops.schedule.machine import host
from pullback.util.record import frozen_record

LEAST_ELEMENTS = 16  # contracted elements of a window, and results of it: for fewer tiles are nearly empty
TILE_BYTES = 1 << 16  # bytes of results in float32 between the kernel and the place of them


def suits(p: Problem) -> bool:
    """Whether `by_tiles` is the best choice."""
    depth = p.w.shape[1]
    if kind_of(p.x, p.w, p.out.dtype) != "bf16" or (depth % 2 and p.groups > 1) or p.out.size == 0:
        return False
    return p.features >= 4 and depth * math.prod(p.w.shape[2:]) >= LEAST_ELEMENTS


@frozen_record
class Rows:
    """What the rows of a tile are: results so far apart in the copy of x."""

    images: bool
    count: int  # of results in a row of them: images, or positions of a line
    lines: int  # of them that are computed at once
    between: int  # rows from one line to the next
    stride: int  # elements of the copy from row to row

    @property
    def total(self) -> int:
        """Rows, those between lines included."""
        return (self.lines - 1) * self.between + self.count


def by_tiles(p: Problem) -> None:
    """out = the convolution of bf16 operands."""
    p = replace(p, x=_even(p), dtype="bf16")
    copy = copied(p, "rsc", beside=True)
    columns = tile_shape(64, p.features)[1]
    panels = _panels(p, columns)
    for parts in itertools.product(*(dim.parts for dim in p.dimensions)):
        if not all(part.count for part in parts):
            continue
        chosen = list(itertools.product(*(part.taps for part in parts)))
        if chosen:
            _part(p, copy, panels, parts, chosen)
        else:
            fill_part(p, parts)


def _even(p: Problem) -> Storage:
    """x, with a channel of zeros after an odd number of them."""
    ctx, (images, channels, *space) = p.ctx, p.x.shape
    if channels % 2 == 0:
        return p.x
    held = ctx.temporary("bf16", (images, *space, channels + 1), "even")
    n = len(space)
    held = held.transposed((0, n + 1, *range(1, n + 1)))
    ctx.copy(held.slice((0,) * (n + 2), p.x.shape), p.x)
    with ctx.loops((images, *space)) as (image, *at):
        ctx.store(held, (image, channels, *at), ctx.b.const("bf16", 0))
    return held


def _panels(p: Problem, columns: int) -> Storage:
    """w as [group and panel, tap, pair of channels, feature], the last panel of a group overlapping the one before."""
    ctx, b = p.ctx, p.ctx.b
    depth, window = p.w.shape[1], p.w.shape[2:]
    groups, count, taps = p.groups * p.batches, -(-p.features // columns), math.prod(window)
    words = -(-depth // 2)
    panels = ctx.temporary("f32", (groups * count, taps, words, columns), "weights")
    inside = panels.reshaped((groups * count, *window, words, columns))
    with ctx.loops(inside.shape) as (panel, *tap, word, j):
        first = b.op("min", b.floormod(panel, b.index(count)) * columns, b.index(max(p.features - columns, 0)))
        f = b.op("min", first + j, b.index(p.features - 1)) if p.features < columns else first + j
        f = b.floordiv(panel, b.index(count)) * p.features + f
        halves = []
        for place in range(2):
            channel = word * 2 + place
            at = b.op("min", channel, b.index(depth - 1)) if depth % 2 else channel
            tests = [b.lt(channel, b.index(depth))] if depth % 2 and place else []
            tests += [b.lt(j, b.index(p.features))] if p.features < columns else []
            value = ctx.load(p.w, (f, at, *tap))
            for test in tests:
                value = b.select(test, value, b.const("bf16", 0))
            halves.append(value)
        ctx.store(inside, (panel, *tap, word, j), b.bitcast(word_of(b, halves), "f32"))
    return panels


def _tables(
    p: Problem, copy: Copy, panels: Storage, chosen: Sequence[Sequence[Any]]
) -> tuple[list[Storage], tuple[int, int, int]]:
    """Where rows of tiles begin in x and in a panel; (whole ones, partial ones, words of these)."""
    window, words, columns = p.w.shape[2:], panels.shape[2], panels.shape[3]
    depth = 2 * words
    runs: list[list[int]] = []  # (place in x, tap, taps) of neighbours
    for each in chosen:
        place, tap = copy.offset(each), 0
        for (k, _, _), size in zip(each, window):
            tap = tap * size + k
        if runs and place == runs[-1][0] + runs[-1][2] * depth and tap == runs[-1][1] + runs[-1][2]:
            runs[-1][2] += 1
        else:
            runs.append([place, tap, 1])
    if len({length * words % STEP for _, _, length in runs}) > 1:
        runs = [[place + k * depth, tap + k, 1] for place, tap, length in runs for k in range(length)]
    rest = runs[0][2] * words % STEP
    whole, partial = [], []
    for place, tap, length in runs:
        at, count = tap * words * columns, length * words
        whole += [(place + 2 * word, at + word * columns) for word in range(0, count - rest, STEP)]
        partial += [(place + 2 * (count - rest), at + (count - rest) * columns)] if rest else []
    tables = [offsets(p.ctx, values) for values in zip(*(whole + partial))]
    return tables, (len(whole), len(partial), rest)


def _rows(p: Problem, copy: Copy, parts: Sequence[Taps]) -> Rows:
    """Positions or images, whichever leave less of tiles empty."""
    images = p.out.shape[0]
    *outer, line = [part.count for part in parts]
    stride, between, lines = copy.positions[-1], line, 1
    if outer and copy.positions[-2] % stride == 0 and 4 * (copy.positions[-2] // stride) <= 5 * line:
        between, lines = copy.positions[-2] // stride, outer[-1]
    positions = Rows(False, line, lines, between, stride)
    most = max(2 * 32, TILE_BYTES // (4 * 32))
    if positions.total > most:
        lines = max(1, (most - line) // between + 1)
        lines = -(-outer[-1] // -(-outer[-1] // lines)) if outer else 1
        positions = replace(positions, lines=lines)
    blocks = -(-positions.total // 16) * math.prod(outer) / positions.lines * images
    # Positions share what they read of x, and a call of the kernel has all lines of them.
    if blocks <= 2 * -(-images // 16) * math.prod(outer) * line:
        return positions
    return Rows(True, min(images, most), 1, 1, copy.row)


def _part(p: Problem, copy: Copy, panels: Storage, parts: Sequence[Taps], chosen: Sequence[Sequence[Any]]) -> None:
    ctx, b = p.ctx, p.ctx.b
    images, columns = p.out.shape[0], panels.shape[-1]
    tables, counts = _tables(p, copy, panels, chosen)
    rows = _rows(p, copy, parts)
    extents = [part.count for part in parts]
    count = -(-p.features // columns)
    # Along each axis: images, positions; blocks of the axes that are the rows'.
    if rows.images:
        spaces, first = extents, -(-images // rows.count)
    else:
        wide = min(rows.count, max(64, TILE_BYTES // (4 * columns)))  # of a longer line
        spaces, first = [*extents[:-1], -(-extents[-1] // wide)], images
        if len(extents) > 1:
            spaces[-2] = -(-extents[-2] // rows.lines)
        rows = replace(rows, count=wide)
    groups = p.groups * p.batches
    apart = count if first * groups * math.prod(spaces) < 4 * host().cores else 1
    shape = (first, groups, *spaces, apart)
    height, _ = tile_shape(rows.total, columns)
    work = rows.total * len(chosen) * 2 * panels.shape[2] * columns * (count // apart)
    with Blocks(ctx, shape, work // 8) as (block, group, *at, some):
        places: list[Any] = list(at)
        image: Any = block
        if rows.images:
            image = b.let(b.op("min", block * rows.count, b.index(images - rows.count)))
        else:
            places[-1] = b.let(b.op("min", at[-1] * rows.count, b.index(extents[-1] - rows.count)))
            if len(extents) > 1 and rows.lines > 1:
                places[-2] = b.let(b.op("min", at[-2] * rows.lines, b.index(extents[-2] - rows.lines)))
        row, channel, feature = p.place(group, image, 0, 0)
        start = row * copy.row + channel
        for place, stride in zip(places, copy.positions):
            start = start + place * stride
        tile = ctx.local("f32", (rows.total, columns), "tile")
        left = copy.storage.slice((start,), (1,))
        with b.loop(count // apart, "sequential", "panel") as number:
            panel = b.let(some + number)
            f0 = b.let(b.op("min", panel * columns, b.index(max(p.features - columns, 0))))
            fields = dict.fromkeys(SIZES, 0) | {
                "rows": rows.total, "panels": 1, "inner": counts[0], "columns": columns, "x_row": rows.stride,
                "x_inner": counts[1], "y_inner": counts[2], "out_row": columns,
            }  # fmt: skip
            sizes = contiguous(ctx.lowering.scalar_constant(np.array(list(fields.values()), np.int64)), (len(SIZES),))
            weights = panels.slice((group * count + panel, 0, 0, 0), panels.shape)
            name = tile_kernel_name("bf16", height, columns, indexed=True)
            b.call(name, *(ctx.address(s) for s in (sizes, *tables, left, weights, tile)))
            _store(p, tile, rows, parts, (image, feature + f0), places)


def _store(
    p: Problem, tile: Storage, rows: Rows, parts: Sequence[Taps], at: tuple[Any, Any], places: Sequence[Expr]
) -> None:
    """The results of a tile where they belong."""
    ctx, b = p.ctx, p.ctx.b
    width = min(p.features, tile.shape[1])

    def store(f: Expr, line: Expr | int, i: Expr) -> None:
        image, positions = at[0], list(places)
        if rows.images:
            image = image + i
        else:
            positions[-1] = positions[-1] + i
            if len(positions) > 1:
                positions[-2] = positions[-2] + line
        here = [part.first + part.step * place for part, place in zip(parts, positions)]
        row = i if rows.lines == 1 else b.index(line) * rows.between + i
        ctx.store(p.out, (image, at[1] + f, *here), b.convert(ctx.load(tile, (row, f)), p.out.dtype))

    if p.out.strides[1] == 1:
        with ctx.loops((rows.lines, rows.count, width)) as (line, i, f):
            store(f, line, i)
    else:
        with ctx.loops((width, rows.lines, rows.count)) as (f, line, i):
            store(f, line, i)


__all__ = ["by_tiles", "suits"]
