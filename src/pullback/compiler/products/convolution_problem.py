"""A convolution as its nests see it: dimensions of space as taps, x copied with its padding, tables of offsets.

x is copied once, with its padding and in an order in which what the lanes of a vector read is contiguous, unless it is
good as it lies. With strides, it is copied in phases, so that neighbours in out are neighbours in the copy; where x
itself is dilated (the transpose of a strided convolution), each phase of out is a convolution of its own with some of
the taps, and no zeros are multiplied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.lower.storage import Storage, contiguous
from pullback.compiler.products.kernels import SIZES, block_shape, kernel_name
from pullback.loops.ir import Expr
from pullback.util.record import frozen_record

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

TURNS = (2, 4, 8)  # phases that are read, or written, together as whole vectors
THREAD_WORK = 1 << 18  # multiply-adds that a thread takes at a time
SPARE_ELEMENTS = 64  # elements after a copy that lanes may read and drop


@frozen_record
class Taps:
    """One dimension of space, for some results: those at first + step * q, q < count, and the taps that meet them."""

    first: int
    step: int
    count: int
    taps: tuple[tuple[int, int, int], ...]  # (tap, phase, offset): reads copy[phase, q + offset]


@frozen_record
class Dimension:
    """One dimension of space: how x is copied, and the parts into which results fall."""

    size: int  # of x
    dilation: int  # of x, where the copy has its zeros
    phases: int  # of the copy: element j of phase p is dilated x[(j + begin) * phases + p]
    begin: int
    extent: int  # of the copy
    parts: tuple[Taps, ...]

    @property
    def reach(self) -> int:
        """Elements of (dilated) x from its first to the last that is read."""
        read = [
            (part.count - 1 + offset + self.begin) * self.phases + phase
            for part in self.parts
            for _, phase, offset in part.taps
        ]
        return 1 + max(read, default=-1)


def dimension(size: int, window: int, count: int, stride: int, low: int, x_dilation: int, dilation: int) -> Dimension:
    places = [(k, k * dilation - low) for k in range(window)]
    split = x_dilation > 1 and stride == 1
    parts = []
    if split:
        for r in range(min(x_dilation, count)):
            taps = tuple((k, 0, (r + at) // x_dilation) for k, at in places if (r + at) % x_dilation == 0)
            parts.append(Taps(r, x_dilation, -(-(count - r) // x_dilation), taps))
    else:
        parts.append(Taps(0, 1, count, tuple((k, at % stride, at // stride) for k, at in places)))
    offsets = [offset for part in parts for _, _, offset in part.taps] or [0]
    begin, longest = min(offsets), max(part.count for part in parts)
    parts = [Taps(p.first, p.step, p.count, tuple((k, f, o - begin) for k, f, o in p.taps)) for p in parts]
    extent = longest + max(offsets) - begin
    return Dimension(size, 1 if split else x_dilation, stride if not split else 1, begin, extent, tuple(parts))


@frozen_record
class Problem:
    """A convolution in canonical order: x[n, c, space], w[f, c, window], out[n, f, space]."""

    ctx: NestContext
    x: Storage
    w: Storage
    out: Storage
    dtype: str  # in which it is computed
    groups: int
    batches: int  # groups of the batch of x
    dimensions: tuple[Dimension, ...]
    words: bool = False  # elements of x and w are two channels (words.py)

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


@frozen_record
class Copy:
    """x[row, channel, phase..., position...] in memory, by strides."""

    storage: Storage
    row: int
    channel: int
    phases: tuple[int, ...]
    positions: tuple[int, ...]
    group: int = 0

    def offset(self, taps: Sequence[tuple[int, int, int]]) -> int:
        """Of a tap for each dimension."""
        return sum(phase * s + at * t for (_, phase, at), s, t in zip(taps, self.phases, self.positions))

    def offsets(self, channels: int, chosen: Sequence[Any]) -> np.ndarray:
        """Of each of so many channels and each of some taps."""
        return outer_sums(np.arange(channels) * self.channel, [self.offset(taps) for taps in chosen])


def copied(p: Problem, order: str, beside: bool = False) -> Copy:
    """x padded, its axes in an order of r(ow), c(hannel), p(hases), s(pace); or x itself where it is good as it is.

    With `beside`, the channels of a position are neighbours.

    Rows may be in two: g(roup), which is not contracted with others, and i(mage) of it. With a l(ine), the positions of
    the last dimension but one are those of the first result, and its place is that of another result.
    """
    ctx, b, n = p.ctx, p.ctx.b, len(p.dimensions)
    found = as_it_is(p, order)
    if found is not None and (found.channel == 1 or not beside):
        return found
    axes: list[tuple[str, int, int]] = []  # (letter, dimension, extent)
    lines = p.out.shape[-2] if "l" in order else 1
    steps = [1 if "p" in order else dim.phases for dim in p.dimensions]  # of space, from one position to the next
    for letter in order:
        if letter == "r":
            axes.append(("r", 0, p.x.shape[0]))
        elif letter == "c":
            axes.append(("c", 0, p.x.shape[1]))
        elif letter == "g":
            axes.append(("g", 0, p.batches))
        elif letter == "i":
            axes.append(("i", 0, p.x.shape[0] // p.batches))
        elif letter == "l":
            axes.append(("l", 0, lines))
        elif letter == "p":
            axes += [("p", d, dim.phases) for d, dim in enumerate(p.dimensions)]
        else:
            axes += [("s", d, dim.extent * steps[d] - (lines - 1) * (d == n - 2)) for d, dim in enumerate(p.dimensions)]
    shape = [extent for _, _, extent in axes]
    buffer = b.temporary("padded", p.dtype, math.prod(shape) + SPARE_ELEMENTS)
    whole = contiguous(buffer, shape)
    # Phases of the last dimension are written out, so that what is read for a vector lies together.
    last = p.dimensions[-1] if p.dimensions else None
    together = last.phases if "p" in order and last and last.dilation == 1 and last.phases in TURNS else 1

    def store(index: Sequence[Expr]) -> None:
        at: dict[tuple[str, int], Expr] = {(letter, d): i for (letter, d, _), i in zip(axes, index)}
        row = at["r", 0] if "r" in order else at["g", 0] * (p.x.shape[0] // p.batches) + at["i", 0]
        place, inside = [], None
        for d, dim in enumerate(p.dimensions):
            position = at["s", d] + at["l", 0] if "l" in order and d == n - 2 else at["s", d]
            if "p" in order:
                coordinate = b.add(b.add(position, dim.begin) * dim.phases, at["p", d])
            else:
                coordinate = b.add(position, dim.begin * dim.phases)
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
        value = b.convert(ctx.load(p.x, (row, at["c", 0], *place)), p.dtype)
        ctx.store(whole, index, value if inside is None else b.select(inside, value, b.const(p.dtype, 0)))

    at = axes.index(("p", n - 1, together)) if together > 1 else None
    if order == "rsc" and _rows_follow(p):
        _copy_rows(p, whole)
    else:
        with ctx.loops([extent if k != at else 1 for k, extent in enumerate(shape)]) as index:
            for phase in range(together):
                store([i if k != at else b.index(phase) for k, i in enumerate(index)])
    stride = {(letter, d): s for (letter, d, _), s in zip(axes, whole.strides)}
    return Copy(
        contiguous(buffer, (math.prod(shape),)),
        stride["r" if "r" in order else "i", 0],
        stride["c", 0],
        tuple(stride["p" if "p" in order else "s", d] for d in range(n)),
        tuple(stride["s", d] * steps[d] for d in range(n)),
        stride.get(("g", 0), 0),
    )


def _rows_follow(p: Problem) -> bool:
    """Whether positions and channels of a line of x are one row, which a copy holds with what is beside it."""
    apart = any(dim.dilation > 1 for dim in p.dimensions)
    return not apart and p.x.strides[1] == 1 and p.x.strides[-1] == p.x.shape[1] and p.x.ndim > 3


def _copy_rows(p: Problem, whole: Storage) -> None:
    """Rows of zeros, and rows with zeros before and behind them: each a few loops, in place of a choice for each
    element, which would be taken apart into as many nests as there are edges.

    Measured: a convolution of 3 x 3 with features last compiles in 0.8 of the time.
    """
    ctx, b, x, channels = p.ctx, p.ctx.b, p.x, p.x.shape[1]
    *outer, last = p.dimensions
    shape = (*whole.shape[:-2], whole.shape[-2] * channels)
    to = whole.reshaped(shape)
    source = Storage(x.buffer, x.offset, (x.shape[0], *x.shape[2:-1], last.size * channels),
                     (x.strides[0], *x.strides[2:-1], 1))  # fmt: skip
    first = last.begin * last.phases  # the position in x of the first one
    start = min(max(0, -first), whole.shape[-2])
    stop = max(start, min(whole.shape[-2], last.size - first))
    with ctx.loops(shape[:-1]) as (row, *index):
        place = [i + dim.begin * dim.phases for i, dim in zip(index, outer)]
        inside = None
        for coordinate, dim, extent in zip(place, outer, shape[1:]):
            low = dim.begin * dim.phases
            tests = [b.op("ge", coordinate, 0)] if low < 0 else []
            tests += [b.op("lt", coordinate, dim.size)] if low + extent > dim.size else []
            for test in tests:
                inside = test if inside is None else b.op("and", inside, test)

        def fill(begin: int, end: int) -> None:
            if end > begin:
                with b.loop((end - begin) * channels, "parallel", "j") as j:
                    ctx.store(to, (row, *index, begin * channels + j), b.const(p.dtype, 0))

        def copy() -> None:
            fill(0, start)
            with b.loop((stop - start) * channels, "parallel", "j") as j:
                value = ctx.load(source, (row, *place, (start + first) * channels + j))
                ctx.store(to, (row, *index, start * channels + j), b.convert(value, p.dtype))
            fill(stop, whole.shape[-2])

        if inside is None:
            copy()
        else:
            with b.if_(inside) as branch:
                copy()
            with branch.otherwise():
                fill(0, whole.shape[-2])


def as_it_is(p: Problem, order: str) -> Copy | None:
    """x without a copy: no padding, no phases but of space, its rows one after the other if lanes run along space."""
    x = p.x
    if x.dtype != p.dtype or any(
        dim.begin < 0 or dim.reach > dim.size or (dim.phases > 1 and "p" in order) or dim.dilation > 1
        for dim in p.dimensions
    ):
        return None
    positions = x.strides[2:]
    if order == "rcps":
        step = 1
        for size, stride in zip(reversed(x.shape[2:]), reversed(positions)):
            if stride != step:
                return None
            step *= size
        if span(positions, [part for dim in p.dimensions for part in dim.parts[:1]]) < block_shape(p.dtype, 64, 64)[1]:
            return None
    elif order[-1] == "i":
        return None
    steps = [dim.phases * stride for dim, stride in zip(p.dimensions, positions)]
    start = sum(dim.begin * step for dim, step in zip(p.dimensions, steps))
    return Copy(
        Storage(x.buffer, x.offset + start if start else x.offset, (1,), (1,)),
        x.strides[0],
        x.strides[1],
        tuple(positions),
        tuple(steps),
    )


def span(positions: Sequence[int], parts: Sequence[Taps]) -> int:
    """Elements of the copy from the first position of results to the last."""
    return 1 + sum((part.count - 1) * stride for part, stride in zip(parts, positions))


def weights_of(p: Problem) -> Storage:
    """w in the type of the computation."""
    if p.w.dtype == p.dtype:
        return p.w
    held = p.ctx.temporary(p.dtype, p.w.shape, "weights")
    with p.ctx.loops(p.w.shape) as index:
        p.ctx.store(held, index, p.ctx.b.convert(p.ctx.load(p.w, index), p.dtype))
    return held


def places(w: Storage, chosen: Sequence[Any]) -> np.ndarray:
    """Where the weights of each channel and tap lie in those of a feature."""
    steps = [sum(k * s for (k, _, _), s in zip(taps, w.strides[2:])) for taps in chosen]
    return outer_sums(np.arange(w.shape[1]) * w.strides[1], steps)


def outer_sums(first: Any, second: Any) -> np.ndarray:
    """All sums of an element of one and one of the other, those with the same first one together."""
    return np.add.outer(first, second).reshape(-1)


def even(n: int, most: int) -> int:
    """The size of pieces, about `most` at most, into which n is cut with the least overlap of the last two."""
    most = max(1, min(n, most))
    sizes = range(max(1, most // 2), min(n, most + most // 4) + 1)
    return min(sizes, key=lambda size: (-(-n // size) * size - n, -size))


def offsets(ctx: NestContext, values: Sequence[int] | np.ndarray) -> Storage:
    return ctx.constant(np.asarray(values, np.int64), "table")


def turns(parts: Sequence[Taps]) -> list[list[Taps]]:
    """Parts whose results take turns are stored together, as whole vectors; others are on their own."""
    parts = [part for part in parts if part.count]
    if len(parts) in TURNS and len({part.count for part in parts}) == 1 and all(part.taps for part in parts):
        return [parts]
    return [[part] for part in parts]


class Blocks:
    """Loops over independent blocks as one loop of threads; gives the index along each axis."""

    def __init__(self, ctx: NestContext, shape: Sequence[int], work: int) -> None:
        count = math.prod(shape)
        role: Any = "threads" if count > 1 and count * work > THREAD_WORK else "sequential"
        attrs = (("grain", max(1, min(THREAD_WORK // max(work, 1), count // 16))),) if role == "threads" else ()
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


def call_indexed(
    ctx: NestContext,
    out: Storage,
    left: Storage,
    right: Storage,
    tables: Sequence[Storage],
    inner: int,
    rows: int,
    columns: int,
    words: bool = False,
) -> None:
    """out[i, j] = sum over k of left[i, x_at[k]] * right[y_at[k] + j]; of `words`."""
    count = -(-out.shape[1] // columns)
    fields = dict.fromkeys(SIZES, 0) | {
        "rows": out.shape[0],
        "panels": count,
        "inner": inner,
        "columns": out.shape[1],
        "x_row": left.strides[0],
        "y_panel": columns,
        "y_last": out.shape[1] - columns,
        "out_row": out.strides[0],
    }
    sizes = contiguous(ctx.lowering.scalar_constant(np.array(list(fields.values()), np.int64)), (len(SIZES),))
    addresses = [ctx.address(s) for s in (sizes, *tables, left, right, out)]
    ctx.b.call(kernel_name(out.dtype, rows, columns, inner, indexed=True, words=words), *addresses)


def fill_part(p: Problem, parts: Sequence[Taps]) -> None:
    """Zeros where no tap meets an element."""
    extents = [*p.out.shape[:2], *(part.count for part in parts)]
    with p.ctx.loops(extents) as (image, feature, *q):
        at = [part.first + part.step * each for part, each in zip(parts, q)]
        p.ctx.store(p.out, (image, feature, *at), p.ctx.b.const(p.out.dtype, 0))


__all__ = [
    "Blocks",
    "Copy",
    "Dimension",
    "Problem",
    "Taps",
    "call_indexed",
    "copied",
    "dimension",
    "even",
    "fill_part",
    "offsets",
    "places",
    "span",
    "turns",
    "weights_of",
]
