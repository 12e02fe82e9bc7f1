"""Loops and branches whose bodies are programs: what control flow primitives are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.compiler.lower.contexts import NestContext
from pullback.compiler.lower.moves import copy, swap_in
from pullback.compiler.lower.storage import Storage, begin_at
from pullback.loops.ir import ITEMSIZE
from pullback.loops.ir.ir import STEPS, STEPS_EACH, STEPS_FROM
from pullback.loops.schedule.machine import NOMINAL
from pullback.loops.schedule.price import source_ns

RUNS = 100  # that a program is taken to be compiled for
STEPS_OF_WHILE = 100  # that a loop is taken to have which ends when it finds that it is done
COMPILED_NS = 200_000  # that an equation of a loop takes to compile once more, as equal nests are kernels


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

    def step(number: Any, state: Sequence[Storage], then: Sequence[Storage]) -> None:
        other_end = b.sub(b.index(length - 1), number) if reverse or any(turned) else number
        flags = turned or (False,) * (len(xs) + len(ys))
        rows = [s.at(number if flag == reverse else other_end) for s, flag in zip((*xs, *ys), flags)]
        ctx.subprogram(closed, [*consts, *state, *rows[: len(xs)]], [*then, *rows[len(xs) :]])

    zero = b.index(0)
    inputs = [*consts, *carry, *(x.at(zero) for x in xs)]
    other = _other_places(ctx, closed, length, inputs, carry, [y.at(zero) for y in ys])
    if other is None:
        with b.loop(length, "sequential", "step", ((STEPS, length),)) as number:
            step(number, carry, carry)
        return
    odd = length % 2
    if odd:
        step(b.index(0), carry, carry)
    attrs = ((STEPS, length), (STEPS_EACH, 2), (STEPS_FROM, odd))
    with b.loop(length // 2, "sequential", "pair", attrs) as pair:
        first = b.let(b.add(b.mul(pair, b.index(2)), b.index(odd)))
        step(first, carry, other)
        step(b.add(first, b.index(1)), other, carry)


def _other_places(
    ctx: NestContext,
    closed: Any,
    steps: int,
    inputs: Sequence[Storage],
    carry: Sequence[Storage],
    rows: Sequence[Storage] = (),
) -> list[Storage] | None:
    """Where every second step leaves the carry, if steps that go from there and back by turns are worth it; else None.

    A carry that is read at other places than it is written cannot be computed in place: it is made elsewhere and
    copied. Two steps in turns copy nothing, but are compiled both. Measured: 20 steps of the heat equation on 1000 x
    1000 float32 took 6.0 ms, now 3.2; 51 of the wave equation on 600 x 600 took 7.1, now 4.8; 64 of heat, life and
    shortest paths on 128 x 128 took 211, 394 and 148 us, now 137, 168 and 77, and 2 to 5 ms more to compile.
    """
    if steps < 2 or _copied_ns(carry) * steps * RUNS < COMPILED_NS:
        return None
    copied = ctx.lowering.copied(closed, inputs, [*carry, *rows])
    turns = list(map(begin_at(copied), carry))
    moved = [c for c, turned in zip(carry, turns) if turned]
    if _copied_ns(moved) * steps * RUNS < COMPILED_NS * max(len(closed.eqns), 1):
        return None
    return [ctx.temporary(c.dtype, c.shape, "turn") if turned else c for c, turned in zip(carry, turns)]


def _copied_ns(storages: Sequence[Storage]) -> float:
    """What copying them takes at least, in ns: a line is read and one is written."""
    size = sum(2 * s.size * ITEMSIZE[s.dtype] for s in storages)
    return size / NOMINAL.line * max(source_ns(size, NOMINAL), NOMINAL.first.line_ns)


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
    other = None
    if not cond.effects:  # it is asked once more after an odd number of steps
        other = _other_places(ctx, body, STEPS_OF_WHILE, [*body_consts, *results], results)
    with b.while_() as scope:
        ctx.subprogram(cond, [*cond_consts, *results], [flag])
        scope.test(ctx.load(flag))
        if other is None:
            ctx.subprogram(body, [*body_consts, *results], list(results))
            return
        ctx.subprogram(body, [*body_consts, *results], other)
        ctx.subprogram(cond, [*cond_consts, *other], [flag])
        with b.if_(ctx.load(flag)) as more:
            ctx.subprogram(body, [*body_consts, *other], list(results))
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
