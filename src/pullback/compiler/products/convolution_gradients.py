"""Convolutions whose windows are larger than their results: gradients of weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products.convolution_problem import (
    Blocks,
    Problem,
    Taps,
    call_indexed,
    copied,
    even,
    fill_part,
    offsets,
    places,
    weights_of,
)
from pullback.compiler.products.kernels import block_shape

PIECE = 1024  # contracted positions in a piece of a gradient of weights
MOST_FEATURES = 48  # of a block of it
COPIED = 40  # multiply-adds that take as long as the copy of an element


def along_batch(p: Problem) -> None:
    """out[n, f, o] = sum over (c, k) of w[f, (c, k)] x[(c, o + k), n]; neighbours in the last dimension join n.

    Where n is short, so do those in the dimension before it, for each of which x is copied once more.
    """
    ctx, b = p.ctx, p.ctx.b
    lines, images, groups = _lines(p), p.out.shape[0], p.groups * p.batches
    copy = copied(p, "gcpsli" if lines > 1 else "gcpsi")
    depth, w = p.w.shape[1], weights_of(p)
    dimensions = [dim.parts for dim in p.dimensions]
    if lines > 1:
        dimensions[-2] = tuple(replace(part, count=1) for part in dimensions[-2])
    for parts in itertools.product(*dimensions):
        if not all(part.count for part in parts):
            continue
        chosen = list(itertools.product(*(part.taps for part in parts)))
        if not chosen:
            fill_part(p, parts)
            continue
        each = max(n for n in range(1, depth + 1) if depth % n == 0 and (n == 1 or n * len(chosen) <= PIECE))
        cuts = _cuts(p, parts) if each == 1 else 1
        pieces = depth // each * cuts
        chosen = chosen[: len(chosen) // cuts]
        x_at = places(w, chosen)[: each * len(chosen)]
        y_at = [copy.offset(c, taps) for c in range(each) for taps in chosen]
        # From one piece of the positions to the next, which lie in the first dimension.
        x_cut, y_cut = 0, 0
        if cuts > 1:
            (k, _, offset), (_, _, first) = parts[0].taps[len(parts[0].taps) // cuts], parts[0].taps[0]
            x_cut, y_cut = k * w.strides[2], (offset - first) * copy.positions[0]
        tables = [offsets(ctx, values) for values in (x_at, y_at)]
        last, length = parts[-1], parts[-1].count * lines * images
        _, columns = block_shape(p.dtype, p.features, length)
        block_features = even(p.features, MOST_FEATURES)
        rows, _ = block_shape(p.dtype, block_features, length)
        rows = min(rows, block_features)
        counts = [part.count for part in parts[:-1]]
        partial = ctx.temporary(p.dtype, (pieces, groups, *counts, p.features, max(length, columns)), "partial")
        shape = (pieces, groups, *counts, -(-p.features // block_features))
        with Blocks(ctx, shape, block_features * len(x_at) * length) as (piece, group, *q, f_block):
            f0 = b.op("min", f_block * block_features, b.index(p.features - block_features))
            c, cut = b.floordiv(piece, b.index(cuts)), b.floormod(piece, b.index(cuts))
            at = c * (each * copy.channel) + cut * y_cut
            if groups > 1:
                at = at + group * (copy.group if p.batches > 1 else depth * copy.channel)
            for position, stride in zip(q, copy.positions):
                at = at + position * stride
            begin = b.index(w.offset) + (group * p.features + f0) * w.strides[0]
            begin = begin + c * (each * w.strides[1]) + cut * x_cut
            left = Storage(w.buffer, begin, (block_features, 1), (w.strides[0], 1))
            sizes = (*(1,) * (2 + len(q)), block_features, partial.shape[-1])
            tile = partial.slice((piece, group, *q, f0, 0), sizes)
            tile = Storage(tile.buffer, tile.offset, sizes[-2:], tile.strides[-2:])
            call_indexed(ctx, tile, left, copy.storage.slice((at,), (1,)), tables, len(x_at), rows, columns)
        with ctx.loops((groups, *counts, lines, images, p.features, last.count)) as (group, *q, line, image, f, o):
            place = (b.index(group), *q, f, (o * lines + line) * images + image)
            total = ctx.load(partial, (0, *place))
            for number in range(1, pieces):
                total = b.add(total, ctx.load(partial, (number, *place)))
            here = [part.first + part.step * position for part, position in zip(parts, q)]
            if lines > 1:
                here[-1] = line
            feature = b.index(group) * p.features + f
            ctx.store(p.out, (image, feature, *here, last.first + last.step * o), b.convert(total, p.out.dtype))


def _cuts(p: Problem, parts: Sequence[Taps]) -> int:
    """Pieces into which the positions of one channel are cut, if they are as far apart in each piece."""
    taps = parts[0].taps
    volume = math.prod(len(part.taps) for part in parts)
    if p.dimensions[0].phases > 1 or len(p.dimensions[0].parts) > 1:
        return 1
    return min(n for n in range(1, len(taps) + 1) if len(taps) % n == 0 and (volume // n <= PIECE or n == len(taps)))


def _lines(p: Problem) -> int:
    """Results of the last dimension but one that join the lanes: all, or one where this saves less than it copies."""
    images, counts = p.out.shape[0], p.out.shape[2:]
    if len(counts) < 2:
        return 1
    dim = p.dimensions[-2]
    if dim.phases > 1 or dim.dilation > 1 or len(dim.parts) > 1:
        return 1

    def taken(length: int) -> int:
        """Multiply-adds, those of empty lanes included, for each position and feature."""
        columns = block_shape(p.dtype, p.features, length)[1]
        return -(-length // columns) * columns

    lines, short = counts[-2], counts[-1] * images
    saved = lines * taken(short) - taken(lines * short)
    groups, depth = p.groups * p.batches, p.w.shape[1]
    positions = math.prod(d.extent * d.phases for d in p.dimensions)
    copied_again = (lines - 1) * groups * depth * images * positions
    outer = math.prod(counts[:-2]) * groups
    return lines if saved * p.features * math.prod(p.w.shape[1:]) * outer > COPIED * copied_again else 1


__all__ = ["along_batch"]
