"""The loops of a nest as one loop over tasks, each of which takes some iterations of the last loop (strip-mining)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from pullback.loops.ir.fold import const, make
from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Expr, Let, Loop, Read, Stmt, Var
from pullback.loops.ir.visit import Substitute
from pullback.loops.schedule.space import known_extent


class Pieces:
    """The iterations of the last loop of `chain`, `width` at a time."""

    def __init__(self, chain: Sequence[Loop], width: int) -> None:
        self.total = known_extent(chain[-1])
        self.width = min(width, self.total)
        self.number = -(-self.total // self.width)
        self.outer = prod(known_extent(each) for each in chain[:-1])
        self.first: Expr = const("i64", 0)  # iteration of a piece
        self.count: Expr = const("i64", self.width)  # of its iterations
        self.position: dict[Var, Expr] = {}  # what stands for the variables of the other loops
        self._task = Var("task", "i64")
        self._lets = self._named(chain)

    def _named(self, chain: Sequence[Loop]) -> list[Stmt]:
        """The place of a task."""
        number = Var("strip", "i64")
        pieces = const("i64", self.number)
        lets: list[Stmt] = [Let(number, make("floormod", (Read(self._task), pieces)))]
        left = make("floordiv", (Read(self._task), pieces))
        for each in reversed(chain[:-1]):
            var = Var(each.var.name, "i64")
            lets.append(Let(var, make("floormod", (left, each.extent))))
            self.position[each.var] = Read(var)
            left = make("floordiv", (left, each.extent))
        if self.number > 1:
            start, width = Var("start", "i64"), const("i64", self.width)
            lets.append(Let(start, make("mul", (Read(number), width))))
            self.first = Read(start)
            if self.total % self.width:
                self.count = make("min", (width, make("sub", (const("i64", self.total), self.first))))
        return lets

    def around(self, new: Fresh, body: Sequence[Stmt]) -> Loop:
        """The loop over the tasks."""
        loop = Loop(self._task, const("i64", self.outer * self.number), "parallel", (*self._lets, *body))
        (renamed,) = Substitute({}, new.var).block((loop,))
        assert isinstance(renamed, Loop)
        return renamed
