"""What a form of a nest would look like, in as few statements as its price needs, and how it is built once chosen.

A sketch is a nest that is never run: an axis that the form cuts stands in it as two loops of the same variable, the
outer of which goes several iterations at a time (`by`), and a reduction as what one step of it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pullback.loops.ir.fold import const
from pullback.loops.ir.ir import Let, Loop, Stmt, Var
from pullback.util.record import NamedTuple

BY = "by"  # iterations of its axis that a loop goes at a time
ROWS_AT_ONCE = 8  # that are added to a scratch row at a time


class Form(NamedTuple):
    """A way to run a nest: how it is built, and its sketch; None: what is built is looked at, as it costs little.

    `in_turns`: it fetches data and works on them in turns, and saves as much waiting as so many operations take.
    """

    build: Callable[[], list[Stmt]]
    sketch: Sequence[Loop] | None = None
    in_turns: float | None = None


def part_of(loop: Loop, extent: int, by: int, role: str, body: Sequence[Stmt]) -> Loop:
    """A loop over a part of the axis of `loop`, `by` iterations at a time."""
    return Loop(loop.var, const("i64", extent), role, tuple(body), (), ((BY, by),))  # type: ignore[arg-type]


def row_by_row(column: Loop, width: int, lets: Sequence[Stmt], loop: Loop, height: int) -> Loop:
    """`height` steps of a loop down columns, for `width` neighbouring columns at a time."""
    updates = [Let(Var("update", x.dtype), x) for group in loop.carried for x in group.updates]
    rows = min(ROWS_AT_ONCE, height)
    inner = part_of(loop, rows, 1, "sequential", (*loop.body, *updates))
    across = part_of(column, width, 1, "vector", (*lets, inner))
    return part_of(loop, -(-height // rows), rows, "sequential", (across,))


def tasks(chain: Sequence[Loop], body: Sequence[Stmt]) -> Loop:
    """The loops of `chain` around `body`, which threads may share."""
    inner = tuple(body)
    for loop in reversed(chain):
        inner = (Loop(loop.var, loop.extent, "threads", inner, (), loop.attrs),)
    (outermost,) = inner
    assert isinstance(outermost, Loop)
    return outermost
