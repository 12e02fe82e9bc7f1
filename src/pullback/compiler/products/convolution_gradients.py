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
from pullback.compiler.products.kernels import block_rows, block_shape, whole_panels
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE

PIECE_POSITIONS = 1024  # contracted positions in a piece of a gradient of weights
MOST_FEATURES = 48  # of a block of it
COPY_COST = 40  # multiply-adds that take as long as the copy of an element


def along_batch(p: Problem) -> None:
    """out[n, f, o] = sum over (c, k) of w[f, (c, k)] x[(c, o + k), n]; neighbours in the last dimension join n.

    Lanes run along these: where n is short, along those in the dimension before the last too, for each of which x is
    copied once more. Or they run along features, whose elements of w then lie next to each other, and n are the rows.
    """
    ctx, b = p.ctx, p.ctx.b
    images, groups = p.out.shape[0], p.groups * p.batches
    lines = _lines(p)
    turned = _features_pay(p, lines)
    if turned:
        lines = 1
    joined = not _apart(p) or lines > 1
    copy = copied(p, "gcpsli" if lines > 1 else "gcpsi" if joined else "gcsi")
    depth, w = p.w.shape[1], _features_last(p) if turned else weights_of(p)
    dimensions = [dim.parts for dim in p.dimensions]
    if lines > 1:
        dimensions[-2] = tuple(replace(part, count=1) for part in dimensions[-2])
    for parts in itertools.product(*dimensions):
        if not all(part.count for part in parts):
            continue
        chosen = list(itertools.product(*(part.taps for part in parts)))
        if not chosen:
            if lines > 1:
                parts = (*parts[:-2], replace(parts[-2], count=lines), parts[-1])
            fill_part(p, parts)
            continue
        each = max(n for n in range(1, depth + 1) if depth % n == 0 and (n == 1 or n * len(chosen) <= PIECE_POSITIONS))
        cuts = _cuts(p, parts) if each == 1 else 1
        pieces = depth // each * cuts
        chosen = chosen[: len(chosen) // cuts]
        x_at = places(w, chosen)[: each * len(chosen)]
        y_at = copy.offsets(each, chosen)
        # From one piece of the positions to the next, which lie in the first dimension.
        x_cut, y_cut = 0, 0
        if cuts > 1:
            (k, _, offset), (k0, _, first) = parts[0].taps[len(parts[0].taps) // cuts], parts[0].taps[0]
            x_cut, y_cut = (k - k0) * w.strides[2], (offset - first) * copy.positions[0]
        tables = [offsets(ctx, values) for values in (x_at, y_at)]
        last, counts = parts[-1], [part.count for part in parts]
        neighbours = counts.pop() if joined else 1
        length = neighbours * lines * images
        if turned:
            block_features = p.features
            rows, columns, _ = _turned_blocks(p, length)
        else:
            columns = block_shape(p.dtype, p.features, length)[1]
            block_features = even(p.features, MOST_FEATURES)
            rows = min(block_shape(p.dtype, block_features, length)[0], block_features)
        extents = (length, p.features) if turned else (p.features, max(length, columns))
        partial = ctx.temporary(p.dtype, (pieces, groups, *counts, *extents), "partial")
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
            right = copy.storage.slice((at,), (1,))
            sizes = (*(1,) * (2 + len(q)), extents[0] if turned else block_features, extents[1])
            tile = partial.slice((piece, group, *q, *((0, 0) if turned else (f0, 0))), sizes)
            tile = Storage(tile.buffer, tile.offset, sizes[-2:], tile.strides[-2:])
            if turned:
                # Where n and neighbours follow each other in the copy, so do rows.
                left, right = Storage(right.buffer, right.offset, (length, 1), (1, 1)), left
            call_indexed(ctx, tile, left, right, tables[::-1] if turned else tables, len(x_at), rows, columns)
        with ctx.loops((groups, *counts, lines, images, p.features, neighbours)) as (group, *q, line, image, f, o):
            own = (o * lines + line) * images + image
            place = (b.index(group), *q, *((own, f) if turned else (f, own)))
            total = ctx.load(partial, (0, *place))
            for number in range(1, pieces):
                total = b.add(total, ctx.load(partial, (number, *place)))
            here = [part.first + part.step * position for part, position in zip(parts, q)]
            if lines > 1:
                here[-1] = line
            if joined:
                here.append(last.first + last.step * o)
            feature = b.index(group) * p.features + f
            ctx.store(p.out, (image, feature, *here), b.convert(total, p.out.dtype))


def _cuts(p: Problem, parts: Sequence[Taps]) -> int:
    """Pieces into which the positions of one channel are cut, if they are as far apart in each piece."""
    taps = parts[0].taps
    volume = math.prod(len(part.taps) for part in parts)
    if p.dimensions[0].phases > 1 or len(p.dimensions[0].parts) > 1:
        return 1
    return min(
        n for n in range(1, len(taps) + 1) if len(taps) % n == 0 and (volume // n <= PIECE_POSITIONS or n == len(taps))
    )


def _lines(p: Problem) -> int:
    """Results of the last dimension but one that join the lanes: all, or one where this saves less than it copies."""
    images, counts = p.out.shape[0], p.out.shape[2:]
    if len(counts) < 2:
        return 1
    dim = p.dimensions[-2]
    if dim.phases > 1 or dim.dilation > 1 or len(dim.parts) > 1:
        return 1

    lines, short = counts[-2], counts[-1] * images
    saved = lines * _taken(p, short) - _taken(p, lines * short)
    outer = math.prod(counts[:-2]) * p.groups * p.batches
    again = COPY_COST * _copied_again(p, lines)
    return lines if saved * p.features * math.prod(p.w.shape[1:]) * outer > again else 1


def _taken(p: Problem, length: int) -> int:
    """Multiply-adds, those of empty lanes included, for each position and feature."""
    columns = block_shape(p.dtype, p.features, length)[1]
    return -(-length // columns) * columns


def _copied_again(p: Problem, lines: int) -> int:
    """Elements of x that are copied more than once if so many lines join the lanes."""
    positions = math.prod(d.extent * d.phases for d in p.dimensions)
    return (lines - 1) * p.groups * p.batches * p.w.shape[1] * p.out.shape[0] * positions


def _features_pay(p: Problem, lines: int) -> bool:
    """Whether lanes along features take less than lanes along neighbours of so many lines."""
    lanes = current_target().vector_bytes // ITEMSIZE[p.dtype]
    if p.features < lanes:
        return False
    counts, positions = p.out.shape[2:], math.prod(p.w.shape[1:])
    short = counts[-1] * p.out.shape[0]
    outer = math.prod(counts[:-1]) // lines * p.groups * p.batches
    along = outer * positions * _taken(p, lines * short) * p.features + COPY_COST * _copied_again(p, lines)
    turned = outer * lines * positions * _turned_blocks(p, short)[2] * lanes
    if p.w.strides[0] != 1:
        turned += COPY_COST * p.w.size
    return turned < along


def _turned_blocks(p: Problem, length: int) -> tuple[int, int, float]:
    """(rows, columns, steps of all) of the kernel's blocks with lanes along features."""

    def blocks(columns: int) -> tuple[int, int, float]:
        rows, steps = block_rows(p.dtype, length, columns)
        return rows, columns, steps * -(-p.features // columns)

    return min(map(blocks, whole_panels(p.dtype, p.features)), key=lambda found: found[2])


def _features_last(p: Problem) -> Storage:
    """w in the type of the computation, its features next to each other."""
    if p.w.dtype == p.dtype and p.w.strides[0] == 1:
        return p.w
    features, *others = p.w.shape
    held = p.ctx.temporary(p.dtype, (*others, features), "weights").transposed((len(others), *range(len(others))))
    with p.ctx.loops(held.shape) as index:
        p.ctx.store(held, index, p.ctx.b.convert(p.ctx.load(p.w, index), p.dtype))
    return held


def _apart(p: Problem) -> bool:
    """Whether neighbours stay apart: x would be copied in phases, and n alone fills as many lanes."""
    count, images = p.out.shape[-1], p.out.shape[0]
    return p.dimensions[-1].phases > 1 and 8 * count * _taken(p, images) <= 9 * _taken(p, count * images)


__all__ = ["along_batch"]
