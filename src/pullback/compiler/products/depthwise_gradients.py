"""Gradients of the weights of depthwise convolutions: sums of products of two arrays, one for each place of the window.

    out[g, q] = sum over n, o of x'[g, n, o * dilation + q * stride - low] * w[g, n, o]

`w` is the gradient of the results, which is as large as x, and the results are few. A product would have few rows and
columns: a block of it is mostly empty. Here an accumulator belongs to each place of the window, so an element of w is
read once for up to ACCUMULATORS of them. What a task reads of x is copied with its padding to memory of the thread's
own. Lanes run along what is contiguous: groups, which need no more than that, or columns, whose lanes are added up at
the end.

Rows are added up in chains of CHAIN elements, these in one chain for a task, and tasks by an ordinary sum. The sizes of
tasks along what is added up are the same on every machine, and so is the order of additions.

Measured (two cores of Zen 4, 3 x 3 on 8 x 64 x 56 x 56): 2.7 ms as products, 0.36 so; features last 5.2 and 0.25.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pullback.compiler.lower.storage import Storage
from pullback.compiler.products.convolution_problem import Blocks, Problem
from pullback.compiler.products.kernels import CHAIN
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.ir import ITEMSIZE, Expr
from pullback.loops.schedule.machine import NOMINAL

ACCUMULATORS = 12  # as many as registers leave room for, beside the sums of chains
MOST_PAIRS = 16  # of channels and features in a group, from which on a product fills its blocks
MOST_TAPS = 64  # of a window, whose accumulators are written out
COLUMN_BYTES = 64  # of lanes along columns, on every machine: they are part of the order of additions
IMAGES = 64  # of a task, at most


def suits(p: Problem, params: dict[str, Any]) -> bool:
    """Whether there are so few results for each group that a product would be mostly empty."""
    counts, window = p.out.shape[2:], p.w.shape[2:]
    pairs = p.out.shape[0] * p.features
    return (
        pairs <= MOST_PAIRS
        and len(counts) > 0
        and all(d == 1 for d in params["lhs_dilation"])
        and math.prod(counts) <= MOST_TAPS
        and math.prod(window) > 4 * math.prod(counts)
    )


def channel_gradients(p: Problem, params: dict[str, Any]) -> None:
    """out of a problem that `suits`."""
    along_groups = p.x.strides[0] == 1 and p.w.strides[0] == 1 and p.out.shape[0] == p.features == p.groups == 1
    groups = p.groups * p.batches
    _Tasks(p, params, groups if along_groups and groups >= 4 else 0).emit()


class _Tasks:
    """Tasks of (lanes of groups, or one pair; images; positions), each with its partial sums."""

    def __init__(self, p: Problem, params: dict[str, Any], groups: int) -> None:
        self.p, self.groups = p, groups
        self.strides, self.steps = params["rhs_dilation"], params["window_strides"]
        self.lows = [low for low, _ in params["padding"]]
        item = ITEMSIZE[p.dtype]
        if groups:
            register = current_target().vector_bytes // item
            self.lanes = 1 << min(register.bit_length() - 1, groups.bit_length() - 1)
        else:
            self.lanes = COLUMN_BYTES // item
        self.taps = list(itertools.product(*(range(n) for n in p.out.shape[2:])))
        *outer, last = p.w.shape[2:]
        # Along groups each step of a chain is a position, else a vector of them.
        self.columns = min(last, CHAIN if groups else CHAIN * self.lanes // 2)
        room = NOMINAL.second.bytes // 8 // item
        self.rows = 1
        if outer:
            self.rows = next(r for r in range(min(outer[-1], CHAIN), 0, -1) if r == 1 or self._held(r, 1) <= room)
        whole = self.columns == last and math.prod(outer) == (self.rows if outer else 1)
        most = min(p.w.shape[1], IMAGES, max(1, CHAIN // self.rows))
        self.images = next(n for n in range(most, 0, -1) if n == 1 or (whole and self._held(self.rows, n) <= room))

    def _shape(self, rows: int, images: int) -> list[int]:
        """Of what a task holds of x: images, positions, and lanes along groups."""
        counts = self.p.out.shape[2:]
        sizes = [1] * (len(counts) - 1) + [self.columns]
        if len(counts) > 1:
            sizes[-2] = rows
        reach = [(k - 1) * step for k, step in zip(counts, self.steps)]
        if self.groups:
            whole = [(n - 1) * s + r + 1 for n, s, r in zip(sizes, self.strides, reach)]
            return [images, *whole, self.lanes]
        sizes[-1] = -(-self.columns // self.lanes) * self.lanes
        return [images, *[(n - 1) * s + r + 1 for n, s, r in zip(sizes, self.strides, reach)]]

    def _held(self, rows: int, images: int) -> int:
        return math.prod(self._shape(rows, images))

    def emit(self) -> None:
        p, b, ctx = self.p, self.p.ctx.b, self.p.ctx
        space, images = p.w.shape[2:], p.out.shape[0]
        pieces = [-(-p.w.shape[1] // self.images), *space[:-1], -(-space[-1] // self.columns)]
        if len(space) > 1:
            pieces[-2] = -(-space[-2] // self.rows)
        count, taps, lanes = math.prod(pieces), len(self.taps), self.lanes
        owners = [-(-self.groups // lanes)] if self.groups else [p.groups * p.batches, images, p.features]
        shape = [count, taps, self.groups] if self.groups else [*owners, taps, count * lanes]
        partial = ctx.temporary(p.dtype, shape, "partial")
        work = self.images * self.rows * self.columns * taps * (lanes if self.groups else 1)
        # Lanes of groups next to each other share pages and lines that are fetched together.
        with Blocks(ctx, [*pieces, *owners] if self.groups else [*owners, *pieces], work) as index:
            cut = len(pieces) if self.groups else len(owners)
            owner, piece = (index[cut:], index[:cut]) if self.groups else (index[:cut], index[cut:])
            number = b.index(0)
            for n, each in zip(pieces, piece):
                number = number * n + each
            if self.groups:
                first = b.let(b.op("min", owner[0] * lanes, b.index(self.groups - lanes)))
                row, channel, feature, at = first, 0, first, [number, first]
            else:
                group, image, f = owner
                row, channel, feature = p.place(group, image, f, 0)
                at = [*owner, number * lanes]
            self._task((row, channel), feature, piece, partial, at)
        if self.groups:
            with ctx.loops([*p.out.shape[2:], self.groups]) as (*q, g):
                with b.reduce(count, b.const(p.dtype, 0), "add") as r:
                    r.update(b.add(r.var, ctx.load(partial, (r.i, self._tap(q), g))))
                ctx.store(p.out, (0, g, *q), b.convert(r.result, p.out.dtype))
        else:
            with ctx.loops([*owners, *p.out.shape[2:]]) as (group, image, f, *q):
                with b.reduce(count * lanes, b.const(p.dtype, 0), "add") as r:
                    r.update(b.add(r.var, ctx.load(partial, (group, image, f, self._tap(q), r.i))))
                place = (image, b.index(group) * p.features + f, *q)
                ctx.store(p.out, place, b.convert(r.result, p.out.dtype))

    def _tap(self, q: Sequence[Expr]) -> Expr:
        """The number of a place of the window."""
        number = self.p.ctx.b.index(0)
        for n, each in zip(self.p.out.shape[2:], q):
            number = number * n + each
        return number

    def _task(
        self, source: tuple[Any, Any], feature: Expr, piece: Sequence[Expr], partial: Storage, at: Sequence[Expr]
    ) -> None:
        p, b, ctx = self.p, self.p.ctx.b, self.p.ctx
        space = p.w.shape[2:]
        n0 = b.let(b.index(piece[0]) * self.images)
        begin = [b.index(each) for each in piece[1:]]
        begin[-1] = b.let(begin[-1] * self.columns)
        if len(space) > 1:
            begin[-2] = b.let(begin[-2] * self.rows)
        images = b.let(b.op("min", b.index(self.images), p.w.shape[1] - n0))
        rows = b.let(b.op("min", b.index(self.rows), space[-2] - begin[-2])) if len(space) > 1 else b.index(1)
        columns = b.let(b.op("min", b.index(self.columns), space[-1] - begin[-1]))
        begin = [n0, *begin]
        x, y = self._held_x(source, begin), self._held_w(feature, begin)
        blocks = -(-len(self.taps) // ACCUMULATORS)
        each = -(-len(self.taps) // blocks)
        for start in range(0, len(self.taps), each):
            taps = self.taps[start : start + each]
            zeros = [((b.const(p.dtype, 0),), None)] * len(taps)
            with b.loop(self.lanes, "vector", "j", (("lanes", self.lanes),)) as j:
                with b.carried_loop(images * rows, zeros) as line:
                    image = b.let(b.floordiv(line.i, rows))
                    place: list[Any] = [
                        image,
                        *[0] * (len(space) - 2),
                        *([b.let(line.i - image * rows)] if len(space) > 1 else []),
                    ]
                    sums = self._line(x, y.slice([*place, 0], [1] * y.ndim), taps, place, columns, j)
                    line.update(*[b.add(total, value) for total, value in zip(line.vars, sums)])
                for k, result in enumerate(line.results):
                    ctx.store(partial, [*at[:-1], start + k, at[-1] + j], result)

    def _held_x(self, source: tuple[Any, Any], begin: Sequence[Expr]) -> Storage:
        """What a task reads of x, with zeros around it, in the thread's own memory."""
        p, b, ctx = self.p, self.p.ctx.b, self.p.ctx
        row, channel = source
        held = ctx.local(p.dtype, self._shape(self.rows, self.images), "rows")
        with ctx.loops(held.shape) as (image, *place):
            *place, lane = place if self.groups else [*place, b.index(0)]
            at = [b.index(i) + o * s - low for i, o, s, low in zip(place, begin[1:], self.strides, self.lows)]
            inside = b.op("lt", begin[0] + image, p.w.shape[1])
            for each, size in zip(at, p.x.shape[2:]):
                inside = b.op("and", inside, b.op("and", b.op("ge", each, 0), b.op("lt", each, size)))
            n = begin[0] + image
            if self.groups:
                # The test is the same for all lanes. A masked load of none, outside of memory, would take microseconds.
                n = b.op("min", n, b.index(p.x.shape[1] - 1))
                at = [b.op("max", 0, b.op("min", each, b.index(size - 1))) for each, size in zip(at, p.x.shape[2:])]
            value = ctx.load(p.x, (b.index(row) + lane, b.index(channel) + n, *at))
            value = b.convert(b.let(value) if self.groups else value, p.dtype)
            index = (image, *place, lane) if self.groups else (image, *place)
            ctx.store(held, index, b.select(inside, value, b.const(p.dtype, 0)))
        return held

    def _held_w(self, feature: Expr, begin: Sequence[Expr]) -> Storage:
        """w[n, o..., lanes] from where a task begins: a view where its lanes are contiguous, else a copy."""
        p, b, ctx, w = self.p, self.p.ctx.b, self.p.ctx, self.p.w
        start = w.slice([feature, 0, *[0] * (w.ndim - 2)], [1] * w.ndim)
        if self.groups or w.strides[-1] == 1:
            start = w.slice([feature, *begin], [1] * w.ndim)
            return Storage(start.buffer, start.offset, w.shape[1:], w.strides[1:])
        sizes = [self.images, *[1] * (w.ndim - 3), self.columns]
        if w.ndim > 3:
            sizes[-2] = self.rows
        held = ctx.local(p.dtype, sizes, "results")
        with ctx.loops(sizes) as index:
            at = [o + i for o, i in zip(begin, index)]
            inside = None
            for each, size in zip(at, w.shape[1:]):
                test = b.op("lt", each, size)
                inside = test if inside is None else b.op("and", inside, test)
            assert inside is not None
            value = b.convert(ctx.load(w, (feature, *at)), p.dtype)
            ctx.store(held, index, b.select(inside, value, b.const(p.dtype, 0)))
        return held

    def _line(
        self, x: Storage, y: Storage, taps: Sequence[Sequence[int]], place: Sequence[Any], columns: Expr, j: Expr
    ) -> list[Expr]:
        """The sums over a line of positions, for each lane."""
        p, b, ctx = self.p, self.p.ctx.b, self.p.ctx
        zero, lanes = b.const(p.dtype, 0), self.lanes
        step = self.strides[-1]

        def products(totals: Sequence[Expr], first: Expr, inside: Expr | None) -> list[Expr]:
            def guarded(value: Expr) -> Expr:
                return value if inside is None else b.select(inside, value, zero)

            at = first * y.strides[-1] + (j if self.groups else 0)
            right = guarded(b.convert(b.load(y.buffer, b.index(y.offset) + at), p.dtype))
            found = []
            for total, tap in zip(totals, taps):
                *outer, last = [q * s for q, s in zip(tap, self.steps)]
                lines = [b.index(o) * s + q for o, s, q in zip(place[1:], self.strides, outer)]
                index = [place[0], *lines, first * step + last, *([j] if self.groups else [])]
                # Read outside of the choice: all of it is the task's own, and a load by lanes would be slower.
                found.append(b.add(total, b.term(guarded(b.let(ctx.load(x, index))), right)))
            return found

        zeros = [((zero,), None)] * len(taps)
        if self.groups:
            with b.carried_loop(columns, zeros) as k:
                k.update(*products(k.vars, k.i, None))
            return k.results
        whole = b.floordiv(columns, b.index(lanes))
        with b.carried_loop(whole, zeros) as k:
            k.update(*products(k.vars, k.i * lanes + j, None))
        if p.w.shape[-1] % lanes == 0 and self.columns % lanes == 0:
            return k.results
        last = whole * lanes + j
        return products(k.results, last, b.op("lt", last, columns))


__all__ = ["channel_gradients", "suits"]
