"""Loops and branches whose bodies are programs: what control flow primitives are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.compiler.lower.contexts import NestContext
from pullback.compiler.lower.moves import swap_in
from pullback.compiler.lower.storage import Storage
from pullback.loops.ir.ir import STEPS


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
    with b.loop(length, "sequential", "step", ((STEPS, length),)) as step:
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
