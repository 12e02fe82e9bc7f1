"""Convolutions as products without a copy of the windows.

    out[n, f, o] = sum over c, k of w[f, c, k] * x'[n, c, o * stride + k * w_dilation - low]

x is copied once, with its padding and in an order in which what the lanes of a vector read is contiguous, unless it is
good as it lies; the indexed kernel of kernels.py then finds the element of each (c, k) through a table. Three orders,
by what runs along the lanes:

    space       of x[n, c, ...] neighbouring positions, rows included: some lanes fall between rows and are dropped
    features    of w[k, c, f], whose panels are written out (convolution_features.py)
    batch       where windows are larger than results (gradients of weights): x[c, ..., n], the positions contracted

With strides, x is copied in phases, so that neighbours in out are neighbours in the copy; where x itself is dilated
(the transpose of a strided convolution), each phase of out is a convolution of its own with some of the taps, and no
zeros are multiplied. A group of few features is a loop nest, bound by memory (depthwise.py); gradients of its weights
are sums (depthwise_gradients.py). Those of bf16 go by tiles (convolution_tiles.py), where the CPU has them.

No matrix of windows is written. Phases of a transposed convolution are computed and stored together: those along a row
take turns, and share one loop of threads. Depthwise convolutions with small windows read x where it is;
`loops/passes/split.py` cuts their loops at the edges.

Measured on two cores of a Zen 5: 3 x 3 of 64 channels of 32 x 32 1.29 ms along features, 1.95 along space (PyTorch:
1.35 to 1.43), of 3 channels 0.074 and 0.043. Depthwise 3 x 3 on 8 x 64 x 56 x 56 took 845 us of
processor time with a padded copy, now 545 (features last: 1011 and 644).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products import convolution_tiles
from pullback.compiler.products.convolution_features import along_features, steps_of
from pullback.compiler.products.convolution_gradients import along_batch
from pullback.compiler.products.convolution_problem import (
    Blocks,
    Copy,
    Problem,
    Taps,
    call_indexed,
    copied,
    dimension,
    fill_part,
    offsets,
    places,
    span,
    turns,
    weights_of,
)
from pullback.compiler.products.depthwise import few_features, is_thin
from pullback.compiler.products.depthwise_gradients import channel_gradients, suits
from pullback.compiler.products.kernels import block_shape
from pullback.compiler.products.words import HALF_WORDS, as_it_lies
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

KERNELS = ("f32", "f64", "i32", "u32")
WIDE = {"f16": "f32", "bf16": "f32"}
CROWDING_BYTES = 1 << 16  # bytes of results from which on what a thread computes before it writes them crowds the cache
MOST_TILE = 1 << 17  # bytes of a tile, times its taps, up to which it is a buffer of the function's own
BLOCK_COST = 16  # columns of results that take as long as to begin a block
ACROSS_LINES_COST = 1.1  # times as long that a multiply-add takes whose lanes lie across lines
STORE_COST = 20  # contracted elements for which a result takes as long as its way through a tile in squares


def convolve(ctx: NestContext, out: Storage, x: Storage, w: Storage, params: dict[str, Any]) -> bool:
    """out = the convolution; storages in canonical order, of any strides. False if it is of a type without kernel, or
    has no dimensions to slide along: all kernels have lanes or blocks along one."""
    dtype = WIDE.get(out.dtype, out.dtype)
    if dtype not in KERNELS or len(out.shape) == 2:
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
    if convolution_tiles.suits(p):
        convolution_tiles.by_tiles(p)
    elif suits(p, params):
        channel_gradients(p, params)
    elif is_thin(p) and volume <= counts:
        few_features(p)
    elif volume > 4 * counts:
        along_batch(p)
    else:
        p = _by_words(p)
        (along_features if _features_pay(p) else _along_space)(p)
    return True


def _by_words(p: Problem) -> Problem:
    """Integers that fit in 16 bits as pairs of channels, which the kernels multiply at once.

    Measured (Zen 4, one core): i8 of 2 x 30 x 30 x 16 into 24 features, 3 x 3, 196 us by products of i32, now 78; JAX
    114.
    """
    x, w, depth = p.x, p.w, p.w.shape[1]
    if x.dtype not in HALF_WORDS or w.dtype not in HALF_WORDS or depth < 2 or (p.groups > 1 and depth % 2):
        return p
    x, w = as_it_lies(p.ctx, x, 1, "i32"), as_it_lies(p.ctx, w, 1, "i32")
    return replace(p, x=x, w=w, dtype="i32", words=True)


def _features_pay(p: Problem) -> bool:
    """Whether lanes along features take less than lanes along space."""
    if p.features < current_target().vector_bytes // ITEMSIZE[p.dtype]:
        return False
    if p.out.strides[1] == 1:
        return True
    inner = math.prod(p.w.shape[1:]) / math.prod(len(dim.parts) for dim in p.dimensions)
    return steps_of(p) * (inner + STORE_COST) < _space_steps(p) * inner * ACROSS_LINES_COST


def _space_steps(p: Problem) -> float:
    """As `steps_of`: multiply-adds of registers for each contracted element, with lanes along space."""
    lanes = current_target().vector_bytes // ITEMSIZE[p.dtype]
    first, *others = p.dimensions
    results = sum(part.count for part in first.parts)
    for dim in others:
        results *= dim.extent * len(dim.parts)
    rows, columns = block_shape(p.dtype, p.features, results)
    rows = min(rows, p.features)
    features = p.groups * p.batches * -(-p.features // rows) * rows
    return p.out.shape[0] * features * max(results, columns) / lanes


# Lanes along space.


def _along_space(p: Problem) -> None:
    copy = copied(p, "rcps")
    *outer, last = p.dimensions
    for parts in itertools.product(*(dim.parts for dim in outer)):
        if all(part.count for part in parts):
            for together in turns(last.parts):
                _space_parts(p, copy, [(*parts, part) for part in together])


def _space_parts(p: Problem, copy: Copy, all_parts: Sequence[Sequence[Taps]]) -> None:
    """Blocks of (image, group, features, outermost positions), each a call of the kernel and a copy of its tile.

    Of several parts, which have equal counts, each has a tile, and all tiles are copied at once.
    """
    ctx, b = p.ctx, p.ctx.b
    depth, parts = p.w.shape[1], all_parts[0]
    taps = [list(itertools.product(*(part.taps for part in each))) for each in all_parts]
    if not all(taps):
        for empty in all_parts:
            fill_part(p, empty)
        return
    weights = weights_of(p)
    x_at = [places(weights, chosen) for chosen in taps]
    y_at = [copy.offsets(depth, chosen) for chosen in taps]
    outer = parts[0]
    line = span(copy.positions[1:], parts[1:])  # positions of one outermost index
    item = ITEMSIZE[p.dtype]
    block_features, lines = _cut(p, outer.count, line, copy.positions[0], len(taps))
    length = (lines - 1) * copy.positions[0] + line
    rows, columns = block_shape(p.dtype, block_features, length)
    rows = min(rows, block_features)
    width = max(length, columns)
    shape = (p.out.shape[0], p.groups * p.batches, -(-p.features // block_features), -(-outer.count // lines))
    work = block_features * sum(map(len, y_at)) * length
    tables = [[offsets(ctx, values) for values in each] for each in zip(x_at, y_at)]
    blocks = Blocks(ctx, shape, work)
    with blocks as (image, group, f_block, line_block):
        f0 = b.op("min", f_block * block_features, b.index(p.features - block_features))
        q0 = b.op("min", line_block * lines, b.index(outer.count - lines))
        row, channel, feature = p.place(group, image, f0, 0)
        tiles = []
        for at, table in zip(y_at, tables):
            if block_features * width * item * len(taps) <= MOST_TILE:
                tile = ctx.local(p.dtype, (block_features, width), "tile")
            else:
                whole = ctx.temporary(p.dtype, (math.prod(shape), block_features, width), "tile")
                tile = whole.at(blocks.flat)
            start = copy.storage.slice((row * copy.row + channel * copy.channel + q0 * copy.positions[0],), (1,))
            first = b.index(weights.offset) + feature * weights.strides[0]
            left = Storage(weights.buffer, first, (block_features, 1), (weights.strides[0], 1))
            call_indexed(ctx, tile, left, start, table, len(at), rows, columns, words=p.words)
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
        for lines in _pieces(outer):
            width = -(-((lines - 1) * row + line) // columns) * columns
            blocks = images * -(-p.features // features) * -(-outer // lines)
            idle = sum(-(-blocks // threads) * threads for threads in (2, 4)) / (2 * blocks)
            crowded = max(1.0, item * features * width * turns / CROWDING_BYTES)
            cost = blocks * idle * crowded * f_blocks * rows * (width + BLOCK_COST)
            best = min(best, (cost, features, lines))
    return best[1:]


def _pieces(n: int) -> list[int]:
    """The sizes of equal pieces of n, the last of which may be smaller, for up to 16 pieces and for single ones."""
    return sorted({-(-n // count) for count in (*range(1, min(n, 16) + 1), n)}, reverse=True)


__all__ = ["convolve"]
