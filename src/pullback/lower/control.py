"""Loops, branches and copies over storages: what control flow primitives are made of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from pullback.loop_ir import Builder, Expr
from pullback.lower.storage import Storage, contiguous, offset_of

if TYPE_CHECKING:
    from pullback.lower.contexts import NestContext


@contextmanager
def loops(b: Builder, shape: Sequence[int], role: str = "parallel") -> Iterator[list[Expr]]:
    """Nested loops over a shape; gives the index. Axes of size 1 make no loop."""
    with ExitStack() as stack:
        yield [b.index(0) if n == 1 else stack.enter_context(b.loop(n, role)) for n in shape]  # type: ignore[arg-type]


def copy(b: Builder, dst: Storage, src: Storage) -> None:
    """dst[...] = src, of equal shapes; nothing if they are the same memory."""
    if dst.shape != src.shape:
        raise AssertionError(f"copy: {src.shape} to {dst.shape}")
    if dst.same_memory(src) and dst.strides == src.strides:
        return
    if dst.contiguous and src.contiguous:
        size = (dst.size,)
        dst, src = dst.reshaped(size), src.reshaped(size)
    with loops(b, dst.shape) as index:
        b.store(dst.buffer, offset_of(b, dst, index), b.load(src.buffer, offset_of(b, src, index)))


def swap_in(b: Builder, pairs: Sequence[tuple[Storage, Storage]]) -> None:
    """Copy (dst, src) pairs as if all were read before any is written."""
    pairs = [(dst, src) for dst, src in pairs if not (dst.same_memory(src) and dst.strides == src.strides)]
    written = [dst.buffer for dst, _ in pairs]
    ready = []
    for dst, src in pairs:
        if src.buffer in written:
            held = contiguous(b.temporary("held", src.dtype, src.size), src.shape)
            copy(b, held, src)
            src = held
        ready.append((dst, src))
    for dst, src in ready:
        copy(b, dst, src)


def carry_loop(
    ctx: NestContext,
    closed: Any,
    length: int,
    reverse: bool,
    consts: Sequence[Storage],
    init: Sequence[Storage],
    xs: Sequence[Storage],
    carry: Sequence[Storage],
    ys: Sequence[Storage],
) -> None:
    """A sequential loop; the carry lives in its results' memory, and each body reads and writes it there."""
    b = ctx.b
    swap_in(b, list(zip(carry, init)))
    if length == 0:
        return
    with b.loop(length, "sequential", "step") as step:
        i = b.sub(b.index(length - 1), step) if reverse else step
        ctx.subprogram(closed, [*consts, *carry, *(x.at(i) for x in xs)], [*carry, *(y.at(i) for y in ys)])


def while_loop(
    ctx: NestContext,
    cond: Any,
    body: Any,
    cond_consts: Sequence[Storage],
    body_consts: Sequence[Storage],
    init: Sequence[Storage],
    results: Sequence[Storage],
) -> None:
    """The state lives in the results' memory."""
    b = ctx.b
    swap_in(b, list(zip(results, init)))
    flag = ctx.temporary("bool", (), "flag")
    with b.while_() as scope:
        ctx.subprogram(cond, [*cond_consts, *results], [flag])
        scope.test(ctx.load(flag))
        ctx.subprogram(body, [*body_consts, *results], list(results))


def choose(
    ctx: NestContext, branches: Sequence[Any], index: Storage, operands: Sequence[Storage], results: Sequence[Storage]
) -> None:
    """Nested Ifs; an index outside of the range takes the nearest branch."""
    b = ctx.b
    which = b.let(ctx.load(index, (0,) * index.ndim), "which")

    def branch(k: int) -> None:
        if k == len(branches) - 1:
            ctx.subprogram(branches[k], operands, results)
            return
        cond = b.op("not", which) if which.dtype == "bool" else b.le(which, b.const(which.dtype, k))
        with b.if_(cond) as scope:
            ctx.subprogram(branches[k], operands, results)
        with scope.otherwise():
            branch(k + 1)

    branch(0)


def elements(storages: Sequence[Storage]) -> int:
    """How many elements storages have in all."""
    return sum(math.prod(s.shape) for s in storages)
