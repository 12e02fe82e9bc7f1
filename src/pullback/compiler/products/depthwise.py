"""Convolutions with few features in a group, depthwise ones above all: loop nests, which memory bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from pullback.compiler.graph.structure.thin_convolutions import PLAIN_TAPS, PLAIN_WINDOW, THIN
from pullback.compiler.products.convolution_problem import (
    Copy,
    Problem,
    copied,
)
from pullback.loops.ir import Expr

LEAST_INNER = 32  # elements contracted from some channels, from which on the kernel takes 0.4 to 1.0 of the time
FEW_TAPS = 64  # of a window that is written out


def is_thin(p: Problem) -> bool:
    """Whether a group has so few features and contracted elements that a loop nest is quicker than the kernel."""
    depth, volume = p.w.shape[1], math.prod(p.w.shape[2:])
    return p.features < THIN and (volume <= FEW_TAPS if depth == 1 else depth * volume < LEAST_INNER)


def few_features(p: Problem) -> None:
    """A loop nest over x, or its padded copy: each element is read for few products, so memory is the limit."""
    ctx, b = p.ctx, p.ctx.b
    last = p.out.strides[1] == 1 and p.groups > 1
    copy = None if _is_plain(p) else copied(p, "rpsc" if last else "rcps")
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


def _is_plain(p: Problem) -> bool:
    """Whether x is read where it is, and zeros around it are conditions, which a nest has at its edges only."""
    window = p.w.shape[2:]
    plain = all(dim.dilation == 1 for dim in p.dimensions) and p.x.dtype == p.dtype
    return plain and p.w.shape[1] == 1 and math.prod(window) <= PLAIN_TAPS and max(window, default=0) <= PLAIN_WINDOW


def _sum_in_place(p: Problem, at: tuple[Any, Any], q: Sequence[Expr], feature: Any, chosen: Sequence[Any]) -> Expr:
    """One result of a group of one channel, from x itself."""
    ctx, b = p.ctx, p.ctx.b
    total: Expr | None = None
    for taps in chosen:
        place, inside = [], None
        for each, (_, phase, offset), dim in zip(q, taps, p.dimensions):
            first = (dim.begin + offset) * dim.phases + phase
            place.append(each * dim.phases + first)
            tests = [b.op("ge", place[-1], 0)] if first < 0 else []
            if first + (max(part.count for part in dim.parts) - 1) * dim.phases >= dim.size:
                tests.append(b.op("lt", place[-1], dim.size))
            for test in tests:
                inside = test if inside is None else b.op("and", inside, test)
        x = ctx.load(p.x, (*at, *place))
        x = x if inside is None else b.select(inside, x, b.const(p.dtype, 0))
        product = b.term(x, b.convert(ctx.load(p.w, (feature, 0, *(k for k, _, _ in taps))), p.dtype))
        total = product if total is None else b.add(total, product)
    return b.const(p.dtype, 0) if total is None else total


def _sum_of_taps(p: Problem, copy: Copy, base: Expr, feature: Any, chosen: Sequence[Any]) -> Expr:
    """One result, from a copy of x: its taps and channels, which are few, are written out."""
    ctx, b, depth = p.ctx, p.ctx.b, p.w.shape[1]
    start = b.index(copy.storage.offset) + base

    total: Expr | None = None
    for c, taps in itertools.product(range(depth), chosen):
        x = b.load(copy.storage.buffer, start + c * copy.channel + copy.offset(taps))
        w = ctx.load(p.w, (feature, b.index(c), *(k for k, _, _ in taps)))
        product = b.term(x, b.convert(w, p.dtype))
        total = product if total is None else b.add(total, product)
    return b.const(p.dtype, 0) if total is None else total


__all__ = ["few_features", "is_thin"]
