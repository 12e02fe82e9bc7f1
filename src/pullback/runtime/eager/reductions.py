"""Reductions of plans: along which of a plan's loops, and in which order, so that they have the bits of programs.

A program that does one reduction over neighbouring axes, and nothing that changes its nest, combines elements in an
order that follows from lengths and types (orders.py); loops of plans (ext/programs/plan_reductions.cpp)
have the same, for any lengths. Where a program may have another one:

- Sums down the columns of large arrays, which programs read row by row in pieces. Which pieces is known when the forms
  of the nest have been priced, and that takes as long as to compile it.
- Sums over axes that are no neighbours, which are sums of sums here.
- What is added while it is computed: where an element costs more, fewer partial sums or more lanes are kept, and other
  forms of the nest pay. So the sum in a softmax has other last bits in a program of it all than here, after exp.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.runtime.eager.plan_values import Value
from pullback.util.switches import switches

NAMES = {"f": "f32", "d": "f64", "F": "c64", "D": "c128"}  # of types whose order matters
# What each reduction that has loops has them for, by NumPy's characters.
TYPES = {"add": "ilILfdFD", "mul": "fd", "max": "ilILfd", "min": "ilILfd"}
STRAIGHT = 8  # elements that programs combine without a loop, one after the other
SHORT = 14  # elements of a row that lanes share, where nothing says how many
_BYTES = {"x86-64": 16, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}


@functools.cache
def vector_bytes(cpu: str) -> int:
    """Of the vectors of programs, which loops of plans have, too."""
    level = {2: "x86-64-v2", 3: "x86-64-v3", 4: "x86-64-v4"}.get(_core.CPU_LEVEL, "") if cpu == "host" else cpu
    if level in _BYTES:
        return _BYTES[level]
    from pullback.loops.emit.cpu.target import current_target  # with LLVM

    return current_target().vector_bytes


@functools.lru_cache(4096)
def _order(lengths: tuple[int, int, int], char: str, combine: str) -> tuple[str, int] | None:
    """The order in programs of a reduction over the middle one of three axes."""
    outer, n, inner = lengths
    if n <= STRAIGHT:
        return "columns", 1
    from pullback.runtime.eager.orders import order_of  # takes 12 ms, and not all eager work reduces

    runs = [(k, is_reduced) for k, is_reduced in ((outer, False), (n, True), (inner, False)) if k != 1]
    found = order_of(runs, NAMES[char], combine)
    if found is not None and found[0] == "columns" and found[1] > 1 and n // found[1] <= _core.SUM_STEPS:
        return None  # shorter pieces are added otherwise where the compiler does not know their length
    return found


def has_order(combine: str, dtype: np.dtype, shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether a plan combines elements as a program does that does this only."""
    if dtype.kind in "biu":
        return True
    if combine not in TYPES or dtype.char not in TYPES[combine] or not axes or math.prod(shape) == 0:
        return dtype.char in NAMES and (not axes or math.prod(shape) == 0)
    runs = _runs(shape, axes)
    if sum(is_reduced for _, is_reduced in runs) != 1:
        return not any(is_reduced for _, is_reduced in runs)
    return combine in ("max", "min") or _order(_three(runs), dtype.char, combine) is not None


def _runs(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, bool]]:
    """(length, whether it is reduced) of axes, neighbours of one kind as one, without those of one element."""
    runs: list[tuple[int, bool]] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if runs and runs[-1][1] == (d in axes):
            runs[-1] = runs[-1][0] * n, runs[-1][1]
        else:
            runs.append((n, d in axes))
    return runs


def _three(runs: Sequence[tuple[int, bool]]) -> tuple[int, int, int]:
    (at,) = (k for k, (_, is_reduced) in enumerate(runs) if is_reduced)
    return math.prod(n for n, _ in runs[:at]), runs[at][0], math.prod(n for n, _ in runs[at + 1 :])


def reduce(b: Any, combine: str, x: Value, axes: Sequence[int], steps: Sequence[int], out: Value) -> None:
    """out = the reduction of x over `axes`; `steps`: those of `out` along the axes of x."""
    *others, axis = axes
    if others:
        kept = [d for d in range(len(x.shape)) if d != axis]
        part = b.temporary([x.shape[d] for d in kept], x.dtype)
        reduce(b, combine, x, [axis], _between(part.strides, axis), part)
        reduce(b, combine, part, others, [steps[d] for d in kept], out)
        return
    kind, chunks = _chosen(combine, x, axis)
    if chunks > 1:
        _in_chunks(b, combine, kind, chunks, x, axis, steps, out)
    elif kind == "columns":
        _columns(b, combine, x, axis, steps, out)
    else:
        _rows(b, combine, x, axis, steps, out)


def _chosen(combine: str, x: Value, axis: int) -> tuple[str, int]:
    """Along which loop, and in how many chunks."""
    in_rows = x.strides[axis] == x.dtype.itemsize
    if combine in ("max", "min") or x.dtype.kind not in "fc":  # in any order
        return "rows" if in_rows and x.shape[axis] > STRAIGHT else "columns", 1
    if x.is_contiguous:
        n = x.shape[axis]
        lengths = math.prod(x.shape[:axis]), n, math.prod(x.shape[axis + 1 :])
        found = _order(lengths, x.dtype.char, combine)
        if found is not None:
            return found
    return "rows" if in_rows and x.shape[axis] >= SHORT else "columns", 1


def _in_chunks(
    b: Any, combine: str, kind: str, chunks: int, x: Value, axis: int, steps: Sequence[int], out: Value
) -> None:
    """What threads of a program do, each a chunk of the axis, and then the same of their results."""
    n, inner = x.shape[axis], list(x.shape[axis + 1 :])
    size = n // chunks
    shape = [*x.shape[:axis], chunks, *inner]
    parts = b.temporary(shape, x.dtype)
    even = n == chunks * size
    last = n - (chunks - 1) * size
    for first, count, length in [(0, chunks, size)] if even else [(0, chunks - 1, size), (chunks - 1, 1, last)]:
        piece = replace(
            x,
            shape=(*x.shape[:axis], count, length, *inner),
            strides=(*x.strides[:axis], size * x.strides[axis], x.strides[axis], *x.strides[axis + 1 :]),
            offset=x.offset + first * size * x.strides[axis],
        )
        to = replace(parts, offset=parts.offset + first * parts.strides[axis])
        own = _between(parts.strides, axis + 1)
        if kind == "rows":
            _rows(b, combine, piece, axis + 1, own, to, not even)
        else:
            _columns(b, combine, piece, axis + 1, own, to)
    (_rows if kind == "rows" else _columns)(b, combine, parts, axis, steps, out)


def _rows(b: Any, combine: str, x: Value, axis: int, steps: Sequence[int], out: Value, is_chunk: bool = False) -> None:
    """By lanes along the axis, which is made contiguous if it is not."""
    if x.strides[axis] != x.dtype.itemsize:
        order = [d for d in range(len(x.shape)) if d != axis] + [axis]
        x = b.contiguous(
            replace(x, shape=tuple([x.shape[d] for d in order]), strides=tuple([x.strides[d] for d in order]))
        )
        steps, axis = [steps[d] for d in order], len(order) - 1
    others = [d for d in range(len(x.shape)) if d != axis]
    row = max(others, key=lambda d: x.shape[d], default=None)
    outer = [d for d in others if d != row]
    count, step, to = (1, 0, 0) if row is None else (x.shape[row], x.strides[row], steps[row])
    loop = combine, x.dtype, vector_bytes(switches.cpu)
    b.reduction(loop, (count, x.shape[axis], is_chunk), (step, to), [x.shape[d] for d in outer], x, out,
                [[s[d] for d in outer] for s in (x.strides, steps)], 2 * count)  # fmt: skip


def _columns(b: Any, combine: str, x: Value, axis: int, steps: Sequence[int], out: Value) -> None:
    """Each column by itself: neighbours as vectors; otherwise one loop does as many as there are along an axis."""
    item = x.dtype.itemsize
    others = [d for d in range(len(x.shape)) if d != axis]
    inner = max(others, key=lambda d: (x.strides[d] == item, x.shape[d]), default=None)
    outer = [d for d in others if d != inner]
    count, step, to = (1, item, item) if inner is None else (x.shape[inner], x.strides[inner], steps[inner])
    one_by_one = 0 if step == item else 2.5 * count
    b.reduction((combine, x.dtype, 0), (count, x.shape[axis]), (step, to, x.strides[axis]), [x.shape[d] for d in outer],
                x, out, [[s[d] for d in outer] for s in (x.strides, steps)], one_by_one)  # fmt: skip


def _between(strides: Sequence[int], axis: int) -> list[int]:
    """Steps along all axes of a result that lacks one of them: 0 along that."""
    return [*strides[:axis], 0, *strides[axis:]]


__all__ = ["TYPES", "has_order", "reduce", "vector_bytes"]
