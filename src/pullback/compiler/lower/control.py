"""Loops and branches whose bodies are programs: what control flow primitives are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.compiler.lower.contexts import NestContext
from pullback.compiler.lower.moves import copy, swap_in
from pullback.compiler.lower.storage import Storage
from pullback.compiler.lower.turns import Turns, turns
from pullback.loops.ir.ir import STEPS, STEPS_EACH, STEPS_FROM

STEPS_OF_WHILE = 100  # that a loop is taken to have which ends when it finds that it is done


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
    turned: Sequence[bool] = (),
) -> None:
    """A sequential loop; the carry lives in its results' memory, and each body reads and writes it there.

    Those of xs and ys that are `turned` are gone through from the other end.
    """
    b = ctx.b
    swap_in(b, list(zip(carry, init)))
    if length == 0:
        return

    def step(number: Any, state: Sequence[Storage], then: Sequence[Storage], by: Turns | None = None) -> None:
        other_end = b.sub(b.index(length - 1), number) if reverse or any(turned) else number
        flags = turned or (False,) * (len(xs) + len(ys))
        rows = [s.at(number if flag == reverse else other_end) for s, flag in zip((*xs, *ys), flags)]
        inputs, results = [*consts, *state, *rows[: len(xs)]], rows[len(xs) :]
        if by is None:
            ctx.subprogram(closed, inputs, [*then, *results])
        else:
            by.step(ctx, inputs, then, results)

    zero = b.index(0)
    inputs = [*consts, *carry, *(x.at(zero) for x in xs)]
    by_turns = turns(ctx, closed, length, inputs, len(consts), carry, [y.at(zero) for y in ys])
    if by_turns is None:
        with b.loop(length, "sequential", "step", ((STEPS, length),)) as number:
            step(number, carry, carry)
        return
    odd = length % 2
    if odd:
        step(b.index(0), carry, carry)
    by_turns.begin(ctx, carry)
    attrs = ((STEPS, length), (STEPS_EACH, 2), (STEPS_FROM, odd))
    with b.loop(length // 2, "sequential", "pair", attrs) as pair:
        first = b.let(b.add(b.mul(pair, b.index(2)), b.index(odd)))
        step(first, carry, by_turns.other, by_turns)
        step(b.add(first, b.index(1)), by_turns.other, carry, by_turns)


def while_loop(
    ctx: NestContext,
    cond: Any,
    body: Any,
    cond_consts: Sequence[Storage],
    body_consts: Sequence[Storage],
    init: Sequence[Storage],
    results: Sequence[Storage],
) -> None:
    """The state lives in the results' memory; where steps go by turns, at the end at the latest."""
    b = ctx.b
    swap_in(b, list(zip(results, init)))
    flag = ctx.temporary("bool", (), "flag")
    by_turns = None
    if not cond.effects:  # it is asked once more after an odd number of steps
        by_turns = turns(ctx, body, STEPS_OF_WHILE, [*body_consts, *results], len(body_consts), results)
    if by_turns is not None:
        by_turns.begin(ctx, results)
    with b.while_() as scope:
        ctx.subprogram(cond, [*cond_consts, *results], [flag])
        scope.test(ctx.load(flag))
        if by_turns is None:
            ctx.subprogram(body, [*body_consts, *results], list(results))
            return
        other = by_turns.other
        by_turns.step(ctx, [*body_consts, *results], other)
        ctx.subprogram(cond, [*cond_consts, *other], [flag])
        with b.if_(ctx.load(flag)) as more:
            by_turns.step(ctx, [*body_consts, *other], results)
        with more.otherwise():
            for place, made in zip(results, other):
                copy(b, place, made)


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
