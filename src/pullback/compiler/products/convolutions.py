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
zeros are multiplied. A group of few features is a loop nest: it is bound by memory.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.lower.storage import Storage, contiguous
from pullback.compiler.products.kernels import SIZES, block_shape, kernel_name
from pullback.compiler.products.panels import call as call_panels
from pullback.loops.ir import ITEMSIZE, Expr

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

KERNELS = ("f32", "f64", "i32", "u32")
WIDE = {"f16": "f32", "bf16": "f32"}
TILE = 1 << 16  # bytes of results from which on what a thread computes before it writes them crowds the cache
MOST_TILE = 1 << 17
THIN = 4  # features of a group below which the kernel's block is mostly empty
TURNS = (2, 4, 8)  # phases of results whose stores are made as one
PLAIN_TAPS, PLAIN_WINDOW = 9, 5  # with which nests are cut at the edges of x; else it is copied with zeros around it
FEW_TAPS = 64  # of a window that is written out
LOCAL = 1 << 17  # bytes of packed windows
PACKING = 4  # rows of results that take as long as the packing of what they read
BLOCK = 16  # columns of results that take as long as to begin a block
UNPACKED = 0.35  # of the time of a product that reads packed windows is what one of few features takes longer
REUSED = 5  # blocks of features that read the same windows, from which on these are packed
PIECE = 1024  # contracted positions in a piece of a gradient of weights
MOST_FEATURES = 48  # of a block of it
GRAIN = 1 << 18  # multiply-adds that a thread takes at a time
SLACK = 64  # elements after a copy that lanes may read and drop


@dataclass(frozen=True)
class _Taps:
    """One dimension of space, for some results: those at first + step * q, q < count, and the taps that meet them."""

    first: int
    step: int
    count: int
    taps: tuple[tuple[int, int, int], ...]  # (tap, phase, offset): reads copy[phase, q + offset]


@dataclass(frozen=True)
class _Dimension:
    """One dimension of space: how x is copied, and the parts into which results fall."""

    size: int  # of x
    dilation: int  # of x, where the copy has its zeros
    phases: int  # of the copy: element j of phase p is dilated x[(j + begin) * phases + p]
    begin: int
    extent: int  # of the copy
    parts: tuple[_Taps, ...]


def _dimension(size: int, window: int, count: int, stride: int, low: int, x_dilation: int, dilation: int) -> _Dimension:
    places = [(k, k * dilation - low) for k in range(window)]
    split = x_dilation > 1 and stride == 1
    parts = []
    if split:
        for r in range(min(x_dilation, count)):
            taps = tuple((k, 0, (r + at) // x_dilation) for k, at in places if (r + at) % x_dilation == 0)
            parts.append(_Taps(r, x_dilation, -(-(count - r) // x_dilation), taps))
    else:
        parts.append(_Taps(0, 1, count, tuple((k, at % stride, at // stride) for k, at in places)))
    offsets = [offset for part in parts for _, _, offset in part.taps] or [0]
    begin, longest = min(offsets), max(part.count for part in parts)
    parts = [_Taps(p.first, p.step, p.count, tuple((k, f, o - begin) for k, f, o in p.taps)) for p in parts]
    extent = longest + max(offsets) - begin
    return _Dimension(size, 1 if split else x_dilation, stride if not split else 1, begin, extent, tuple(parts))


@dataclass(frozen=True)
class _Problem:
    """A convolution in canonical order: x[n, c, space], w[f, c, window], out[n, f, space]."""

    ctx: NestContext
    x: Storage
    w: Storage
    out: Storage
    dtype: str  # in which it is computed
    groups: int
    batches: int  # groups of the batch of x
    dimensions: tuple[_Dimension, ...]

    @property
    def features(self) -> int:
        """Results of one group."""
        return self.w.shape[0] // (self.groups * self.batches)

    def place(self, group: Any, image: Any, f: Any, channel: Any) -> tuple[Any, Any, Any]:
        """(row of x, channel of x, feature of out)."""
        b = self.ctx.b
        depth, images = self.w.shape[1], self.out.shape[0]
        row = b.index(group) * images + image if self.batches > 1 else image
        at = b.index(group) * depth + channel if self.groups > 1 else channel
        return row, at, b.index(group) * self.features + f if self.groups * self.batches > 1 else f


def convolve(ctx: NestContext, out: Storage, x: Storage, w: Storage, params: dict[str, Any]) -> bool:
    """out = the convolution; storages in canonical order, of any strides. False if it is of a type without kernel."""
    dtype = WIDE.get(out.dtype, out.dtype)
    if dtype not in KERNELS:
        return False
    dimensions = tuple(
        _dimension(size, k, count, s, low, ld, rd)
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
    p = _Problem(ctx, x, w, out, dtype, params["feature_group_count"], params["batch_group_count"], dimensions)
    volume, counts = math.prod(w.shape[2:]), math.prod(out.shape[2:])
    _, wide = block_shape(dtype, 64, p.features)
    if p.features < THIN and volume <= min(counts, FEW_TAPS):
        _direct(p)
    elif volume > 4 * counts and p.batches == 1 and p.groups == 1:
        _along_batch(p)
    elif out.strides[1] == 1 and p.features >= wide and out.dtype == dtype:
        _along_features(p)
    else:
        _along_space(p)
    return True


# The copy of x.


@dataclass(frozen=True)
class _Copy:
    """x[row, channel, phase..., position...] in memory, by strides."""

    storage: Storage
    row: int
    channel: int
    phases: tuple[int, ...]
    positions: tuple[int, ...]

    def offset(self, channel: int, taps: Sequence[tuple[int, int, int]]) -> int:
        """Of a channel and a tap for each dimension."""
        return channel * self.channel + sum(
            phase * s + at * t for (_, phase, at), s, t in zip(taps, self.phases, self.positions)
        )


def _copied(p: _Problem, order: str) -> _Copy:
    """x padded, its axes in an order of r(ow), c(hannel), p(hases), s(pace); or x itself where it is good as it is."""
    ctx, b, n = p.ctx, p.ctx.b, len(p.dimensions)
    found = _as_it_is(p, order)
    if found is not None:
        return found
    axes: list[tuple[str, int, int]] = []  # (letter, dimension, extent)
    for letter in order:
        if letter == "r":
            axes.append(("r", 0, p.x.shape[0]))
        elif letter == "c":
            axes.append(("c", 0, p.x.shape[1]))
        elif letter == "p":
            axes += [("p", d, dim.phases) for d, dim in enumerate(p.dimensions)]
        else:
            axes += [("s", d, dim.extent) for d, dim in enumerate(p.dimensions)]
    shape = [extent for _, _, extent in axes]
    buffer = b.temporary("padded", p.dtype, math.prod(shape) + SLACK)
    whole = contiguous(buffer, shape)
    with ctx.loops(shape) as index:
        at: dict[tuple[str, int], Expr] = {(letter, d): i for (letter, d, _), i in zip(axes, index)}
        place, inside = [], None
        for d, dim in enumerate(p.dimensions):
            coordinate = b.add(b.add(at["s", d], dim.begin) * dim.phases, at["p", d])
            tests = []
            if dim.dilation > 1:
                tests.append(b.op("eq", b.op("floormod", coordinate, dim.dilation), 0))
                coordinate = b.op("floordiv", coordinate, dim.dilation)
            low, high = dim.begin * dim.phases, (dim.begin + dim.extent) * dim.phases - 1
            if low < 0 or dim.dilation > 1:
                tests.append(b.op("ge", coordinate, 0))
            if high >= dim.size or dim.dilation > 1:
                tests.append(b.op("lt", coordinate, dim.size))
            place.append(coordinate)
            for test in tests:
                inside = test if inside is None else b.op("and", inside, test)
        value = b.convert(ctx.load(p.x, (at["r", 0], at["c", 0], *place)), p.dtype)
        ctx.store(whole, index, value if inside is None else b.select(inside, value, b.const(p.dtype, 0)))
    stride = {(letter, d): s for (letter, d, _), s in zip(axes, whole.strides)}
    return _Copy(
        contiguous(buffer, (math.prod(shape),)),
        stride["r", 0],
        stride["c", 0],
        tuple(stride["p", d] for d in range(n)),
        tuple(stride["s", d] for d in range(n)),
    )


def _as_it_is(p: _Problem, order: str) -> _Copy | None:
    """x without a copy: no padding, no phases, and its rows one after the other if lanes run along space."""
    x = p.x
    if x.dtype != p.dtype or any(
        dim.begin < 0 or dim.begin + dim.extent > dim.size or dim.phases > 1 or dim.dilation > 1 for dim in p.dimensions
    ):
        return None
    positions = x.strides[2:]
    if order == "rcps":
        step = 1
        for size, stride in zip(reversed(x.shape[2:]), reversed(positions)):
            if stride != step:
                return None
            step *= size
        if (
            _span(p, positions, [part for dim in p.dimensions for part in dim.parts[:1]])
            < block_shape(p.dtype, 64, 64)[1]
        ):
            return None
    elif order == "cpsr":
        return None
    start = sum(dim.begin * stride for dim, stride in zip(p.dimensions, positions))
    return _Copy(
        Storage(x.buffer, x.offset + start if start else x.offset, (1,), (1,)),
        x.strides[0],
        x.strides[1],
        (0,) * len(positions),
        tuple(positions),
    )


# Lanes along space.


def _span(p: _Problem, positions: Sequence[int], parts: Sequence[_Taps]) -> int:
    """Elements of the copy from the first position of results to the last."""
    return 1 + sum((part.count - 1) * stride for part, stride in zip(parts, positions))


def _along_space(p: _Problem) -> None:
    copy = _copied(p, "rcps")
    *outer, last = p.dimensions
    for parts in itertools.product(*(dim.parts for dim in outer)):
        if all(part.count for part in parts):
            for turns in _turns(last.parts):
                _space_parts(p, copy, [(*parts, part) for part in turns])


def _turns(parts: Sequence[_Taps]) -> list[list[_Taps]]:
    """Parts whose results take turns are stored together, as whole vectors; others are on their own."""
    parts = [part for part in parts if part.count]
    if len(parts) in TURNS and len({part.count for part in parts}) == 1 and all(part.taps for part in parts):
        return [parts]
    return [[part] for part in parts]


def _space_parts(p: _Problem, copy: _Copy, all_parts: Sequence[Sequence[_Taps]]) -> None:
    """Blocks of (image, group, features, outermost positions), each a call of the kernel and a copy of its tile.

    Of several parts, which have equal counts, each has a tile, and all tiles are copied at once.
    """
    ctx, b = p.ctx, p.ctx.b
    depth, parts = p.w.shape[1], all_parts[0]
    taps = [list(itertools.product(*(part.taps for part in each))) for each in all_parts]
    if not all(taps):
        _fill_part(p, parts)
        return
    weights = _weights(p)
    x_at = [_places(weights, chosen) for chosen in taps]
    y_at = [[copy.offset(c, at) for c in range(depth) for at in chosen] for chosen in taps]
    outer = parts[0]
    line = _span(p, copy.positions[1:], parts[1:])  # positions of one outermost index
    item = ITEMSIZE[p.dtype]
    block_features, lines = _cut(p, outer.count, line, copy.positions[0], len(taps))
    length = (lines - 1) * copy.positions[0] + line
    rows, columns = block_shape(p.dtype, block_features, length)
    rows = min(rows, block_features)
    width = max(length, columns)
    shape = (p.out.shape[0], p.groups * p.batches, -(-p.features // block_features), -(-outer.count // lines))
    longest, work = max(map(len, y_at)), block_features * sum(map(len, y_at)) * length
    tables = [[_table(ctx, values) for values in each] for each in zip(x_at, y_at)]
    packed_panels = 0
    if block_features >= REUSED * rows:
        packed_panels = min(LOCAL // (longest * columns * item), -(-width // columns))
    held = [_in_order(p, weights, at) if packed_panels else weights for at in x_at]
    blocks = _blocks(ctx, shape, work)
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
                _call(ctx, tile, left, start, table, len(at), rows, columns)
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


def _cut(p: _Problem, outer: int, line: int, row: int, turns: int) -> tuple[int, int]:
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


def _in_order(p: _Problem, w: Storage, x_at: Sequence[int]) -> Storage:
    """w as [f, (c, k)] with the elements of `x_at` as neighbours."""
    ctx = p.ctx
    if list(x_at) == list(range(len(x_at))):
        return w
    table = _table(ctx, x_at)
    held = ctx.temporary(p.dtype, (w.shape[0], len(x_at)), "weights")
    with ctx.loops(held.shape) as (f, k):
        value = ctx.b.load(w.buffer, ctx.b.index(w.offset) + f * w.strides[0] + ctx.load(table, (k,)))
        ctx.store(held, (f, k), value)
    return held


def _packed_calls(
    p: _Problem,
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
    each = _even(count, most)
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


def _fill_part(p: _Problem, parts: Sequence[_Taps]) -> None:
    """Zeros where no tap meets an element."""
    extents = [*p.out.shape[:2], *(part.count for part in parts)]
    with p.ctx.loops(extents) as (image, feature, *q):
        at = [part.first + part.step * each for part, each in zip(parts, q)]
        p.ctx.store(p.out, (image, feature, *at), p.ctx.b.const(p.out.dtype, 0))


# Lanes along features.


def _along_features(p: _Problem) -> None:
    """One call for each line of results, which it writes where they belong."""
    ctx, b = p.ctx, p.ctx.b
    copy = _copied(p, "rpsc")
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
            _fill_part(p, parts)
            continue
        x_at = [copy.offset(c, taps) for taps in chosen for c in range(depth)]
        y_at = [
            c * columns + sum(k * s for (k, _, _), s in zip(taps, panels.strides[1:]))
            for taps in chosen
            for c in range(depth)
        ]
        tables = [_table(ctx, values) for values in (x_at, y_at)]
        last = parts[-1]
        rows, _ = block_shape(p.dtype, last.count, p.features)
        rows = min(rows, last.count)
        shape = (p.out.shape[0], p.groups * p.batches, *(part.count for part in parts[:-1]))
        with _blocks(ctx, shape, last.count * len(x_at) * p.features) as (image, group, *q):
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
            _call(ctx, target, left, weights, tables, len(x_at), rows, columns, panels.strides[0])


# Lanes along the batch.


def _along_batch(p: _Problem) -> None:
    """out[n, f, o] = sum over (c, k) of w[f, (c, k)] x[(c, o + k), n]; neighbours in the last dimension join n."""
    ctx, b = p.ctx, p.ctx.b
    copy = _copied(p, "cpsr")
    depth, w = p.w.shape[1], _weights(p)
    images = p.x.shape[0]
    for parts in itertools.product(*(dim.parts for dim in p.dimensions)):
        if not all(part.count for part in parts):
            continue
        chosen = list(itertools.product(*(part.taps for part in parts)))
        if not chosen:
            _fill_part(p, parts)
            continue
        each = max(n for n in range(1, depth + 1) if depth % n == 0 and (n == 1 or n * len(chosen) <= PIECE))
        pieces = depth // each
        x_at = _places(w, chosen)[: each * len(chosen)]
        y_at = [copy.offset(c, taps) for c in range(each) for taps in chosen]
        tables = [_table(ctx, values) for values in (x_at, y_at)]
        last, length = parts[-1], parts[-1].count * images
        _, columns = block_shape(p.dtype, p.features, length)
        block_features = _even(p.features, MOST_FEATURES)
        rows, _ = block_shape(p.dtype, block_features, length)
        rows = min(rows, block_features)
        counts = [part.count for part in parts[:-1]]
        partial = ctx.temporary(p.dtype, (pieces, *counts, p.features, max(length, columns)), "partial")
        shape = (pieces, *counts, -(-p.features // block_features))
        with _blocks(ctx, shape, block_features * len(x_at) * length) as (piece, *q, f_block):
            f0 = b.op("min", f_block * block_features, b.index(p.features - block_features))
            at = piece * (each * copy.channel)
            for place, stride in zip(q, copy.positions):
                at = at + place * stride
            begin = b.index(w.offset) + f0 * w.strides[0] + piece * (each * w.strides[1])
            left = Storage(w.buffer, begin, (block_features, 1), (w.strides[0], 1))
            sizes = (*(1,) * (1 + len(q)), block_features, partial.shape[-1])
            tile = partial.slice((piece, *q, f0, 0), sizes)
            tile = Storage(tile.buffer, tile.offset, sizes[-2:], tile.strides[-2:])
            _call(ctx, tile, left, copy.storage.slice((at,), (1,)), tables, len(x_at), rows, columns)
        with ctx.loops((*counts, images, p.features, last.count)) as (*q, image, f, o):
            total = ctx.load(partial, (0, *q, f, o * images + image))
            for number in range(1, pieces):
                total = b.add(total, ctx.load(partial, (number, *q, f, o * images + image)))
            here = [part.first + part.step * place for part, place in zip(parts, q)]
            ctx.store(p.out, (image, f, *here, last.first + last.step * o), b.convert(total, p.out.dtype))


# Few features in a group.


def _direct(p: _Problem) -> None:
    """A loop nest over x, or its padded copy: each element is read for few products, so memory is the limit."""
    ctx, b = p.ctx, p.ctx.b
    last = p.out.strides[1] == 1 and p.groups > 1
    copy = None if _is_plain(p) else _copied(p, "rpsc" if last else "rcps")
    for parts in itertools.product(*(dim.parts for dim in p.dimensions)):
        if not all(part.count for part in parts):
            continue
        chosen = list(itertools.product(*(part.taps for part in parts)))
        counts = [part.count for part in parts]
        groups, features = p.groups * p.batches, p.features
        extents = [p.out.shape[0], *counts, groups, features] if last else [p.out.shape[0], groups, features, *counts]
        with ctx.loops(extents) as index:
            if last:
                image, *q, group, f = index
            else:
                image, group, f, *q = index
            row, channel, feature = p.place(group, image, f, 0)
            if copy is None:
                total = _sum_in_place(p, (row, channel), q, feature, chosen)
            else:
                base = b.index(row) * copy.row + b.index(channel) * copy.channel
                for each, stride in zip(q, copy.positions):
                    base = base + each * stride
                total = _sum_of_taps(p, copy, base, feature, chosen)
            at = [part.first + part.step * each for part, each in zip(parts, q)]
            ctx.store(p.out, (image, feature, *at), b.convert(total, p.out.dtype))


def _is_plain(p: _Problem) -> bool:
    """Whether x is read where it is, and zeros around it are conditions, which a nest has at its edges only."""
    window = p.w.shape[2:]
    plain = all(dim.phases == 1 and dim.dilation == 1 for dim in p.dimensions) and p.x.dtype == p.dtype
    return plain and p.w.shape[1] == 1 and math.prod(window) <= PLAIN_TAPS and max(window, default=0) <= PLAIN_WINDOW


def _sum_in_place(p: _Problem, at: tuple[Any, Any], q: Sequence[Expr], feature: Any, chosen: Sequence[Any]) -> Expr:
    """One result of a group of one channel, from x itself."""
    ctx, b = p.ctx, p.ctx.b
    total: Expr | None = None
    for taps in chosen:
        place, inside = [], None
        for each, (_, _, offset), dim in zip(q, taps, p.dimensions):
            first = dim.begin + offset
            place.append(each + first)
            tests = [b.op("ge", place[-1], 0)] if first < 0 else []
            if first + max(part.count for part in dim.parts) > dim.size:
                tests.append(b.op("lt", place[-1], dim.size))
            for test in tests:
                inside = test if inside is None else b.op("and", inside, test)
        x = ctx.load(p.x, (*at, *place))
        x = x if inside is None else b.select(inside, x, b.const(p.dtype, 0))
        product = b.term(x, b.convert(ctx.load(p.w, (feature, 0, *(k for k, _, _ in taps))), p.dtype))
        total = product if total is None else b.add(total, product)
    return b.const(p.dtype, 0) if total is None else total


def _sum_of_taps(p: _Problem, copy: _Copy, base: Expr, feature: Any, chosen: Sequence[Any]) -> Expr:
    """One result: its taps are written out, and its channels too if they are few."""
    ctx, b, depth = p.ctx, p.ctx.b, p.w.shape[1]
    start = b.index(copy.storage.offset) + base

    def add_taps(total: Expr | None, c: Expr) -> Expr:
        for taps in chosen:
            x = b.load(copy.storage.buffer, start + c * copy.channel + copy.offset(0, taps))
            w = ctx.load(p.w, (feature, c, *(k for k, _, _ in taps)))
            product = b.term(x, b.convert(w, p.dtype))
            total = product if total is None else b.add(total, product)
        return b.const(p.dtype, 0) if total is None else total

    if depth * len(chosen) > FEW_TAPS:
        with b.reduce(depth, b.const(p.dtype, 0), "add") as r:
            r.update(add_taps(r.var, r.i))
        return r.result
    total = None
    for c in range(depth):
        total = add_taps(total, b.index(c))
    assert total is not None
    return total


# Common parts.


def _weights(p: _Problem) -> Storage:
    """w in the type of the computation."""
    if p.w.dtype == p.dtype:
        return p.w
    held = p.ctx.temporary(p.dtype, p.w.shape, "weights")
    with p.ctx.loops(p.w.shape) as index:
        p.ctx.store(held, index, p.ctx.b.convert(p.ctx.load(p.w, index), p.dtype))
    return held


def _places(w: Storage, chosen: Sequence[Any]) -> list[int]:
    """Where the weights of each channel and tap lie in those of a feature."""
    steps = [sum(k * s for (k, _, _), s in zip(taps, w.strides[2:])) for taps in chosen]
    return [c * w.strides[1] + step for c in range(w.shape[1]) for step in steps]


def _even(n: int, most: int) -> int:
    """The size of pieces, about `most` at most, into which n is cut with the least overlap of the last two."""
    most = max(1, min(n, most))
    sizes = range(max(1, most // 2), min(n, most + most // 4) + 1)
    return min(sizes, key=lambda size: (-(-n // size) * size - n, -size))


def _table(ctx: NestContext, values: Sequence[int]) -> Storage:
    return ctx.constant(np.asarray(values, np.int64), "table")


class _blocks:
    """Loops over independent blocks as one loop of threads; gives the index along each axis."""

    def __init__(self, ctx: NestContext, shape: Sequence[int], work: int) -> None:
        count = math.prod(shape)
        role: Any = "threads" if count > 1 and count * work > GRAIN else "sequential"
        attrs = (("grain", max(1, min(GRAIN // max(work, 1), count // 16))),) if role == "threads" else ()
        self.b, self.shape = ctx.b, shape
        self.loop = ctx.b.loop(count, role, "block", attrs)

    def __enter__(self) -> list[Expr]:
        flat = self.flat = self.loop.__enter__()
        index: list[Expr] = []
        for n in reversed(self.shape):
            whole = math.prod(self.shape[: len(self.shape) - len(index) - 1]) == 1
            index.append(self.b.index(0) if n == 1 else flat if whole else self.b.floormod(flat, self.b.index(n)))
            if n > 1:
                flat = self.b.floordiv(flat, self.b.index(n))
        return index[::-1]

    def __exit__(self, *error: Any) -> None:
        self.loop.__exit__(*error)


def _call(
    ctx: NestContext,
    out: Storage,
    left: Storage,
    right: Storage,
    tables: Sequence[Storage],
    inner: int,
    rows: int,
    columns: int,
    panel: int | None = None,
) -> None:
    """out[i, j] = sum over k of left[i, x_at[k]] * right[y_at[k] + j], or right in panels so far apart."""
    count = -(-out.shape[1] // columns)
    fields = dict.fromkeys(SIZES, 0) | {
        "rows": out.shape[0],
        "panels": count,
        "inner": inner,
        "columns": out.shape[1],
        "x_row": left.strides[0],
        "y_panel": columns if panel is None else panel,
        "y_last": out.shape[1] - columns if panel is None else (count - 1) * panel,
        "out_row": out.strides[0],
    }
    sizes = contiguous(ctx.lowering.scalar_constant(np.array(list(fields.values()), np.int64)), (len(SIZES),))
    addresses = [ctx.address(s) for s in (sizes, *tables, left, right, out)]
    ctx.b.call(kernel_name(out.dtype, rows, columns, inner, indexed=True), *addresses)


__all__ = ["convolve"]
