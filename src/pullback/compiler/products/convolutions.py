"""Convolutions as products without a copy of the windows.

    out[n, f, o] = sum over c, k of w[f, c, k] * x'[n, c, o * stride + k * w_dilation - low]

x is copied once, with its padding and in an order in which what the lanes of a vector read is contiguous, unless it is
good as it lies; the indexed kernel of kernels.py then finds the element of each (c, k) through a table. Three orders,
by what runs along the lanes:

    space       of x[n, c, ...] neighbouring positions, rows included: some lanes fall between rows and are dropped
    features    of w[k, c, f], whose panels are written out; out has its features last
    batch       where windows are larger than results (gradients of weights): x[c, ..., n], the positions contracted

With strides, x is copied in phases, so that neighbours in out are neighbours in the copy; where x itself is dilated
(the transpose of a strided convolution), each phase of out is a convolution of its own with some of the taps, and no
zeros are multiplied. A group of few features is a loop nest, bound by memory (depthwise.py); gradients of its weights
are sums (depthwise_gradients.py).

No matrix of windows is written. Where many features read the same windows, some panels of them are packed on a thread's
stack. Phases of a transposed convolution are computed and stored together: those along a row take turns, and share one
loop of threads. Depthwise convolutions with small windows read x where it is; `loops/passes/split.py` cuts their loops
at the edges.

Measured: 58 to 76 GFLOP/s for 64 channels of 32 x 32 (oneDNN: 81). Depthwise 3 x 3 on 8 x 64 x 56 x 56 took 845 us of
processor time with a padded copy, now 545 (features last: 1011 and 644).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products.convolution_gradients import along_batch
from pullback.compiler.products.convolution_problem import (
    TURNS,
    Blocks,
    Copy,
    Problem,
    Taps,
    call_indexed,
    copied,
    dimension,
    even,
    fill_part,
    offsets,
    places,
    span,
    weights_of,
)
from pullback.compiler.products.depthwise import FEW_TAPS, THIN, few_features
from pullback.compiler.products.depthwise_gradients import channel_gradients, suits
from pullback.compiler.products.kernels import block_shape
from pullback.compiler.products.panels import call as call_panels
from pullback.loops.ir import ITEMSIZE

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

KERNELS = ("f32", "f64", "i32", "u32")
WIDE = {"f16": "f32", "bf16": "f32"}
TILE = 1 << 16  # bytes of results from which on what a thread computes before it writes them crowds the cache
MOST_TILE = 1 << 17
LOCAL = 1 << 17  # bytes of packed windows
PACKING = 4  # rows of results that take as long as the packing of what they read
BLOCK = 16  # columns of results that take as long as to begin a block
UNPACKED = 0.35  # of the time of a product that reads packed windows is what one of few features takes longer
REUSED = 5  # blocks of features that read the same windows, from which on these are packed


def convolve(ctx: NestContext, out: Storage, x: Storage, w: Storage, params: dict[str, Any]) -> bool:
    """out = the convolution; storages in canonical order, of any strides. False if it is of a type without kernel."""
    dtype = WIDE.get(out.dtype, out.dtype)
    if dtype not in KERNELS:
        return False
    dimensions = tuple(
        dimension(size, k, count, s, low, ld, rd)
        for size, k, count, s, (low, _), ld, rd in zip(
            x.shape[2:],
            w.shape[2:],
            out.shape[2:],
            params["window_strides"],
            params["padding"],
            params["lhs_dilation"],
            params["rhs_dilation"],
        )
    )
    p = Problem(ctx, x, w, out, dtype, params["feature_group_count"], params["batch_group_count"], dimensions)
    volume, counts = math.prod(w.shape[2:]), math.prod(out.shape[2:])
    _, wide = block_shape(dtype, 64, p.features)
    if suits(p, params):
        channel_gradients(p, params)
    elif p.features < THIN and volume <= min(counts, FEW_TAPS):
        few_features(p)
    elif volume > 4 * counts:
        along_batch(p)
    elif out.strides[1] == 1 and p.features >= wide and out.dtype == dtype:
        _along_features(p)
    else:
        _along_space(p)
    return True


# Lanes along space.


def _along_space(p: Problem) -> None:
    copy = copied(p, "rcps")
    *outer, last = p.dimensions
    for parts in itertools.product(*(dim.parts for dim in outer)):
        if all(part.count for part in parts):
            for turns in _turns(last.parts):
                _space_parts(p, copy, [(*parts, part) for part in turns])


def _turns(parts: Sequence[Taps]) -> list[list[Taps]]:
    """Parts whose results take turns are stored together, as whole vectors; others are on their own."""
    parts = [part for part in parts if part.count]
    if len(parts) in TURNS and len({part.count for part in parts}) == 1 and all(part.taps for part in parts):
        return [parts]
    return [[part] for part in parts]


def _space_parts(p: Problem, copy: Copy, all_parts: Sequence[Sequence[Taps]]) -> None:
    """Blocks of (image, group, features, outermost positions), each a call of the kernel and a copy of its tile.

    Of several parts, which have equal counts, each has a tile, and all tiles are copied at once.
    """
    ctx, b = p.ctx, p.ctx.b
    depth, parts = p.w.shape[1], all_parts[0]
    taps = [list(itertools.product(*(part.taps for part in each))) for each in all_parts]
    if not all(taps):
        fill_part(p, parts)
        return
    weights = weights_of(p)
    x_at = [places(weights, chosen) for chosen in taps]
    y_at = [[copy.offset(c, at) for c in range(depth) for at in chosen] for chosen in taps]
    outer = parts[0]
    line = span(copy.positions[1:], parts[1:])  # positions of one outermost index
    item = ITEMSIZE[p.dtype]
    block_features, lines = _cut(p, outer.count, line, copy.positions[0], len(taps))
    length = (lines - 1) * copy.positions[0] + line
    rows, columns = block_shape(p.dtype, block_features, length)
    rows = min(rows, block_features)
    width = max(length, columns)
    shape = (p.out.shape[0], p.groups * p.batches, -(-p.features // block_features), -(-outer.count // lines))
    longest, work = max(map(len, y_at)), block_features * sum(map(len, y_at)) * length
    tables = [[offsets(ctx, values) for values in each] for each in zip(x_at, y_at)]
    packed_panels = 0
    if block_features >= REUSED * rows:
        packed_panels = min(LOCAL // (longest * columns * item), -(-width // columns))
    held = [_in_order(p, weights, at) if packed_panels else weights for at in x_at]
    blocks = Blocks(ctx, shape, work)
    with blocks as (image, group, f_block, line_block):
        f0 = b.op("min", f_block * block_features, b.index(p.features - block_features))
        q0 = b.op("min", line_block * lines, b.index(outer.count - lines))
        row, channel, feature = p.place(group, image, f0, 0)
        tiles = []
        for w, at, table in zip(held, y_at, tables):
            if block_features * width * item * len(taps) <= MOST_TILE:
                tile = ctx.local(p.dtype, (block_features, width), "tile")
            else:
                whole = ctx.temporary(p.dtype, (math.prod(shape), block_features, width), "tile")
                tile = whole.at(blocks.flat)
            start = copy.storage.slice((row * copy.row + channel * copy.channel + q0 * copy.positions[0],), (1,))
            left = Storage(w.buffer, b.index(w.offset) + feature * w.strides[0], (block_features, 1), (w.strides[0], 1))
            if packed_panels:
                _packed_calls(p, tile, left, start, table[1], len(at), rows, columns, packed_panels)
            else:
                call_indexed(ctx, tile, left, start, table, len(at), rows, columns)
            tiles.append(tile)
        extents = [block_features, lines, *(part.count for part in parts[1:])]
        with ctx.loops(extents) as (i, *q):
            flat = b.index(0)
            for each, stride in zip(q, copy.positions):
                flat = flat + each * stride
            values = [b.let(ctx.load(tile, (i, flat))) for tile in tiles]
            for value, those in zip(values, all_parts):
                place = [part.first + part.step * each for part, each in zip(those, [q0 + q[0], *q[1:]])]
                ctx.store(p.out, (image, feature + i, *place), b.convert(value, p.out.dtype))


def _cut(p: Problem, outer: int, line: int, row: int, turns: int) -> tuple[int, int]:
    """(features, outermost positions) of the tiles that compute the fewest results, dropped and repeated ones included.

    `line` results belong to one outermost position, and begin `row` elements after the one before.
    """
    item, images = ITEMSIZE[p.dtype], p.out.shape[0] * p.groups * p.batches
    rows, columns = block_shape(p.dtype, p.features, line)
    best = (math.inf, p.features, 1)
    for f_blocks in _pieces(-(-p.features // rows)):
        features = min(p.features, f_blocks * rows)
        packing = PACKING if features >= REUSED * rows else features * UNPACKED
        for lines in _pieces(outer):
            width = -(-((lines - 1) * row + line) // columns) * columns
            blocks = images * -(-p.features // features) * -(-outer // lines)
            idle = sum(-(-blocks // threads) * threads for threads in (2, 4)) / (2 * blocks)
            crowded = max(1.0, item * features * width * turns / TILE)
            cost = blocks * idle * crowded * (f_blocks * rows + packing) * (width + BLOCK)
            best = min(best, (cost, features, lines))
    return best[1:]


def _pieces(n: int) -> list[int]:
    """The sizes of equal pieces of n, the last of which may be smaller, for up to 16 pieces and for single ones."""
    return sorted({-(-n // count) for count in (*range(1, min(n, 16) + 1), n)}, reverse=True)


def _in_order(p: Problem, w: Storage, x_at: Sequence[int]) -> Storage:
    """w as [f, (c, k)] with the elements of `x_at` as neighbours."""
    ctx = p.ctx
    if list(x_at) == list(range(len(x_at))):
        return w
    table = offsets(ctx, x_at)
    held = ctx.temporary(p.dtype, (w.shape[0], len(x_at)), "weights")
    with ctx.loops(held.shape) as (f, k):
        value = ctx.b.load(w.buffer, ctx.b.index(w.offset) + f * w.strides[0] + ctx.load(table, (k,)))
        ctx.store(held, (f, k), value)
    return held


def _packed_calls(
    p: Problem,
    tile: Storage,
    left: Storage,
    start: Storage,
    table: Storage,
    inner: int,
    rows: int,
    columns: int,
    most: int,
) -> None:
    """The product of a tile where many features read the same windows: these are packed, some panels at a time.

    Read through the table 64 features of 64 channels go at 81 GFLOP/s, packed at 94: lines come one after the other.
    """
    ctx, b = p.ctx, p.ctx.b
    m, width = tile.shape
    count = -(-width // columns)
    each = even(count, most)
    groups = -(-count // each)
    packed = ctx.local(p.dtype, (each, inner, columns), "panels")
    x = Storage(left.buffer, left.offset, (m, inner), (left.strides[0], 1))
    with b.loop(groups, "sequential", "group") as group:
        first = b.let(b.op("min", group * each, b.index(count - each)))
        with b.loop(each, "sequential", "panel") as panel:
            column = b.let(b.op("min", (first + panel) * columns, b.index(width - columns)))
            with b.loop(inner, "sequential", "k") as k:
                at = b.let(ctx.load(table, (k,)) + column + b.index(start.offset))
                with b.loop(columns, "vector", "j", (("lanes", columns),)) as j:
                    ctx.store(packed, (panel, k, j), b.load(start.buffer, at + j))
        most = min(each * columns, width)
        given = {}
        if width % columns and groups > 1:
            last = b.index(width - (count - each) * columns)
            given["columns"] = b.select(b.eq(group, groups - 1), last, b.index(most))
        part = tile.slice((0, first * columns), (m, most))
        call_panels(ctx, part, x, packed, rows, given)


# Lanes along features.


def _along_features(p: Problem) -> None:
    """One call for each line of results, which it writes where they belong."""
    ctx, b = p.ctx, p.ctx.b
    copy = copied(p, "rpsc")
    depth = p.w.shape[1]
    window, groups = p.w.shape[2:], p.groups * p.batches
    _, columns = block_shape(p.dtype, 64, p.features)
    count = -(-p.features // columns)
    panels = ctx.temporary(p.dtype, (groups * count, *window, depth, columns), "weights")
    with ctx.loops(panels.shape[:-1]) as (panel, *k, c), b.loop(columns, "vector", "j") as j:
        first = b.op("min", b.floormod(panel, b.index(count)) * columns, b.index(p.features - columns))
        f = b.floordiv(panel, b.index(count)) * p.features + first + j
        ctx.store(panels, (panel, *k, c, j), b.convert(ctx.load(p.w, (f, c, *k)), p.dtype))
    for parts in itertools.product(*(dim.parts for dim in p.dimensions)):
        if not all(part.count for part in parts):
            continue
        chosen = list(itertools.product(*(part.taps for part in parts)))
        if not chosen:
            fill_part(p, parts)
            continue
        x_at = [copy.offset(c, taps) for taps in chosen for c in range(depth)]
        y_at = [
            c * columns + sum(k * s for (k, _, _), s in zip(taps, panels.strides[1:]))
            for taps in chosen
            for c in range(depth)
        ]
        tables = [offsets(ctx, values) for values in (x_at, y_at)]
        last = parts[-1]
        rows, _ = block_shape(p.dtype, last.count, p.features)
        rows = min(rows, last.count)
        shape = (p.out.shape[0], p.groups * p.batches, *(part.count for part in parts[:-1]))
        with Blocks(ctx, shape, last.count * len(x_at) * p.features) as (image, group, *q):
            row, channel, feature = p.place(group, image, 0, 0)
            at = row * copy.row + channel * copy.channel
            for each, stride in zip(q, copy.positions):
                at = at + each * stride
            left = copy.storage.slice((at,), (1,))
            left = Storage(left.buffer, left.offset, (last.count, 1), (copy.positions[-1], 1))
            here = [part.first + part.step * each for part, each in zip(parts, q)]
            target = p.out.slice((image, feature, *here, last.first), (1,) * p.out.ndim)
            step = p.out.strides[-1] * last.step
            target = Storage(target.buffer, target.offset, (last.count, p.features), (step, 1))
            weights = panels.slice((group * count,), (1,))
            call_indexed(ctx, target, left, weights, tables, len(x_at), rows, columns, panels.strides[0])


__all__ = ["convolve"]
