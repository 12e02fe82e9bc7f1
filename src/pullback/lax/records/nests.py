"""Writing loops over index spaces, for the lowering rules that emit statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any


def loops(b: Any, shape: Sequence[int], body: Callable[[tuple[Any, ...]], None], role: str = "parallel") -> None:
    """`body(index)` inside loops over `shape`, the last dimension innermost; dimensions of size 1 have no loop."""
    with ExitStack() as stack:
        index = tuple(b.const("i64", 0) if n == 1 else stack.enter_context(b.loop(n, role)) for n in shape)
        body(index)


def fold(b: Any, shape: Sequence[int], step: Callable[..., Any], values: Any, index: tuple[Any, ...] = ()) -> Any:
    """`values` after `values = step(values, index)` for each index of a shape, in loops from the first dimension
    inwards.
    """
    if len(index) == len(shape):
        return step(values, index)
    n = shape[len(index)]
    if n == 1:
        return fold(b, shape, step, values, (*index, b.const("i64", 0)))
    with b.carried_loop(n, [(tuple(values), None)], "sequential") as r:
        r.update(*fold(b, shape, step, tuple(r.vars), (*index, r.i)))
    return tuple(r.results)


def copy_into(ctx: Any, source: Any, target: Any) -> None:
    """target[i] = source[i] for all i."""
    loops(ctx.b, target.shape, lambda index: ctx.store(target, index, ctx.load(source, index)))


def two_sum(b: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """The rounded sum of two numbers, and what is lost by that (Knuth); of complex ones part by part."""
    total = b.let(b.op("add", x, y))
    rest = b.let(b.op("sub", total, x))
    return total, b.op("add", b.op("sub", x, b.op("sub", total, rest)), b.op("sub", y, rest))


def with_lost(b: Any, total: Any, lost: Any) -> Any:
    """total + lost; of what is infinite or NaN nothing was lost."""
    if total.dtype in ("c64", "c128"):
        return b.op("complex", *(with_lost(b, b.op(part, total), b.op(part, lost)) for part in ("real", "imag")))
    return b.select(b.op("is_finite", lost), b.op("add", total, lost), total)
