"""Convolutions whose lanes run along features: w in panels of them, x read an element at a time.

A panel meets the positions of a line, so no lane is empty at the ends of lines, and x needs neither an order of its own
nor phases: with padding it is copied once, else it is read where it lies. Results that do not have their features last
are stored from a tile of some lines and one panel, as squares are turned: few instructions beside hundreds of
multiply-adds for each.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products.convolution_problem import (
    Blocks,
    Copy,
    Problem,
    Taps,
    call_indexed,
    copied,
    even,
    fill_part,
    offsets,
    outer_sums,
    turns,
)
from pullback.compiler.products.kernels import block_rows, whole_panels
from pullback.loops.emit.access import MAX_LOCAL_BYTES
from pullback.loops.ir import ITEMSIZE
from pullback.loops.schedule.machine import CORES, host

BLOCKS_OF_LINE = 8  # blocks of rows of the kernel in a piece of a line: of a longer one, enough pieces for threads
EACH_PIECES = 2 * CORES  # blocks that threads share, where there is work for them
LEAST_WORK = 1 << 18  # multiply-adds of a block worth a thread's while


def along_features(p: Problem) -> None:
    """out by panels of features, of which there are as many as a register has lanes at least."""
    ctx = p.ctx
    channels_last = p.x.strides[1] == 1
    copy = copied(p, "rsc" if channels_last else "rcs")
    depth, window, groups = p.w.shape[1], p.w.shape[2:], p.groups * p.batches
    columns, _ = _columns(p)
    count = -(-p.features // columns)
    # What is contiguous in x, channels or positions, is read one after the other.
    inner = (*window, depth) if channels_last else (depth, *window)
    panels = ctx.temporary(p.dtype, (groups * count, *inner, columns), "weights")
    _pack(p, panels, channels_last)
    steps = panels.strides[1:-1]
    c_step, steps = (steps[-1], steps[:-1]) if channels_last else (steps[0], steps[1:])

    def tables(chosen: Sequence[Sequence[tuple[int, int, int]]]) -> list[Storage]:
        """Where each contracted element lies in x and in a panel."""
        channels = np.arange(depth)
        sides = (
            ([copy.offset(taps) for taps in chosen], channels * copy.channel),
            ([sum(k * s for (k, _, _), s in zip(taps, steps)) for taps in chosen], channels * c_step),
        )
        pairs = sides if channels_last else [(own, taps) for taps, own in sides]
        return [offsets(ctx, outer_sums(*pair)) for pair in pairs]

    *outer, last = p.dimensions
    for parts in itertools.product(*(dim.parts for dim in outer)):
        if not all(part.count for part in parts):
            continue
        for together in turns(last.parts):
            all_parts = [(*parts, part) for part in together]
            chosen = [list(itertools.product(*(part.taps for part in each))) for each in all_parts]
            if all(chosen):
                _blocks(p, copy, panels, all_parts, [tables(each) for each in chosen])
            else:
                for each in all_parts:
                    fill_part(p, each)


def _pack(p: Problem, panels: Storage, channels_last: bool) -> None:
    """w in panels; axes of it that follow each other are one, so that squares of it can be turned."""
    ctx, b, w = p.ctx, p.ctx.b, p.w
    columns = panels.shape[-1]
    count = panels.shape[0] // (p.groups * p.batches)
    shape, strides = list(w.shape[1:]), list(w.strides[1:])
    if channels_last:
        shape, strides = [*shape[1:], shape[0]], [*strides[1:], strides[0]]
    merged = [(1, 1)]
    for n, stride in zip(shape, strides):
        if n > 1:
            size, step = merged[-1]
            if size == 1 or step == n * stride:
                merged[-1] = (size * n, stride)
            else:
                merged.append((n, stride))
    shape = [n for n, _ in merged]
    to = panels.reshaped((panels.shape[0], *shape, columns))
    source = Storage(w.buffer, w.offset, (w.shape[0], *shape), (w.strides[0], *(stride for _, stride in merged)))
    with ctx.loops(to.shape) as (panel, *k, j):
        first = b.op("min", b.floormod(panel, b.index(count)) * columns, b.index(p.features - columns))
        f = b.floordiv(panel, b.index(count)) * p.features + first + j
        ctx.store(to, (panel, *k, j), b.convert(ctx.load(source, (f, *k)), p.dtype))


def _blocks(
    p: Problem,
    copy: Copy,
    panels: Storage,
    all_parts: Sequence[Sequence[Taps]],
    tables: Sequence[Sequence[Storage]],
) -> None:
    """Blocks of (image, group, outer positions, lines, positions of a line, panels).

    Of several parts, which have equal counts, each has a tile, and all tiles are stored at once.
    """
    ctx, b, parts, columns = p.ctx, p.ctx.b, all_parts[0], panels.shape[-1]
    direct = len(all_parts) == 1 and p.out.strides[1] == 1 and p.out.dtype == p.dtype
    *outer, all_lines, line = [1] * (len(parts) == 1) + [part.count for part in parts]
    images, count = p.out.shape[0], -(-p.features // columns)
    wide, rows, _ = _pieces_of_line(p.dtype, columns, line)
    pieces = -(-line // wide)
    inner = sum(table[0].size for table in tables)
    units, tiles_bytes = math.prod([images, p.groups, p.batches, *outer, pieces]), 0
    if not direct:
        tiles_bytes = len(all_parts) * wide * columns * ITEMSIZE[p.dtype]
    lines, each = _sizes(p, units, all_lines, wide, inner, columns, tiles_bytes)
    shape = (images, p.groups * p.batches, *outer, -(-all_lines // lines), pieces, -(-count // each))
    with Blocks(ctx, shape, lines * wide * inner * each * columns) as (image, group, *q, block, piece, some):
        row, channel, feature = p.place(group, image, 0, 0)
        begin = b.let(b.op("min", block * lines, b.index(all_lines - lines)))
        start = b.let(b.op("min", piece * wide, b.index(line - wide)))
        panel_count = b.index(each) if count % each == 0 else b.let(b.op("min", b.index(each), count - some * each))
        with b.loop(panel_count, "sequential", "panel") as number:
            panel = b.let(some * each + number)
            f0 = b.let(b.op("min", panel * columns, b.index(p.features - columns)))
            weights = panels.slice((group * count + panel,), (1,))
            tiles = []
            for those, table in zip(all_parts, tables):
                tile = None if direct else ctx.local(p.dtype, (lines, wide, columns), "tile")
                with b.loop(lines, "sequential", "line") as i:
                    place = [*q, begin + i, start][-len(parts) :]
                    at = row * copy.row + channel * copy.channel
                    for position, stride in zip(place, copy.positions):
                        at = at + position * stride
                    left = copy.storage.slice((at,), (1,))
                    left = Storage(left.buffer, left.offset, (wide, 1), (copy.positions[-1], 1))
                    if tile is None:
                        here = [part.first + part.step * position for part, position in zip(those, place)]
                        target = p.out.slice((image, feature + f0, *here), (1,) * p.out.ndim)
                        step = p.out.strides[-1] * those[-1].step
                        target = Storage(target.buffer, target.offset, (wide, columns), (step, 1))
                    else:
                        target = tile.at(i)
                    call_indexed(ctx, target, left, weights, table, table[0].size, rows, columns, words=p.words)
                if tile is not None:
                    tiles.append(tile)
            if tiles:
                _store(p, tiles, all_parts, (image, feature + f0), [*q, begin, start][-len(parts) :])


def _store(
    p: Problem,
    tiles: Sequence[Storage],
    all_parts: Sequence[Sequence[Taps]],
    at: tuple[Any, Any],
    first: Sequence[Any],
) -> None:
    """Tiles of (lines, positions, features) where they belong, from an image, a feature and a position on."""
    ctx, b = p.ctx, p.ctx.b
    lines, wide, columns = tiles[0].shape
    with ctx.loops((columns, lines, wide)) as (f, i, j):
        values = [b.let(ctx.load(tile, (i, j, f))) for tile in tiles]
        inside = [0] * (len(first) - 2) + [i, j][-len(first) :]
        for value, parts in zip(values, all_parts):
            here = [part.first + part.step * (q + k) for part, q, k in zip(parts, first, inside)]
            ctx.store(p.out, (at[0], at[1] + f, *here), b.convert(value, p.out.dtype))


def steps_of(p: Problem) -> float:
    """Multiply-adds of registers for each contracted element, those that others repeat or drop included."""
    return p.out.shape[0] * math.prod(p.out.shape[2:-1]) * p.groups * p.batches * _columns(p)[1]


def _columns(p: Problem) -> tuple[int, float]:
    """(features of a panel, steps of all panels for each line): those of the fewest steps."""

    def steps(columns: int) -> float:
        lines = sum(_pieces_of_line(p.dtype, columns, part.count)[2] for part in p.dimensions[-1].parts if part.count)
        return -(-p.features // columns) * lines

    columns = min(whole_panels(p.dtype, p.features), key=steps)
    return columns, steps(columns)


def _pieces_of_line(dtype: str, columns: int, line: int) -> tuple[int, int, float]:
    """(positions of a piece, rows of the kernel's block, steps of all pieces): those of the fewest steps."""
    least = -(-line // (BLOCKS_OF_LINE * block_rows(dtype, line, columns)[0]))

    def steps(pieces: int) -> float:
        return pieces * block_rows(dtype, -(-line // pieces), columns)[1]

    wide = -(-line // min(range(least, 2 * least), key=steps))
    rows, each = block_rows(dtype, wide, columns)
    return wide, rows, -(-line // wide) * each


def _sizes(
    p: Problem, units: int, all_lines: int, wide: int, inner: int, columns: int, tiles_bytes: int
) -> tuple[int, int]:
    """(lines, panels) of a block: those for which least is read, if there are pieces for all threads.

    A block reads its lines of x once for each panel, from the second cache if they fit there, and its panels. Its tiles
    take `tiles_bytes` for each line, on the thread's stack.
    """
    item, count = ITEMSIZE[p.dtype], -(-p.features // columns)
    window = p.w.shape[2:]
    reach = window[-2] - 1 if len(window) > 1 else 0
    line_bytes, panel_bytes = p.w.shape[1] * wide * item, inner * columns * item
    best = (math.inf, math.inf, 1, 1)
    for lines in sorted({even(all_lines, n) for n in range(1, min(all_lines, 64) + 1)}):
        for each in sorted({-(-count // n) for n in range(1, count + 1)}):
            blocks = units * -(-all_lines // lines) * -(-count // each)
            work = lines * wide * inner * each * columns
            missing = max(1.0, min(EACH_PIECES / blocks, work / LEAST_WORK))
            held = (lines + reach) * line_bytes
            tile = lines * wide * columns * item
            crowded = held + panel_bytes + tile > host().second.bytes // 2
            if lines > 1 and (crowded or lines * tiles_bytes > MAX_LOCAL_BYTES):
                continue
            computed = blocks * lines * each
            best = min(best, (missing * computed, blocks * (held + each * panel_bytes), lines, each))
    return best[2:]


__all__ = ["along_features", "steps_of"]
