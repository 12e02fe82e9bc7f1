"""Loops joined by the statements that follow them: the walk that `item_loops` and `row_blocks` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

from pullback.loops.ir.fresh import Fresh
from pullback.loops.ir.ir import Buffer, Function, Loop, Stmt
from pullback.loops.ir.visit import loads, statements, stores, with_blocks
from pullback.util.record import NamedTuple


class Joined(NamedTuple):
    """What takes the place of a loop and of the next `taken` statements."""

    body: Sequence[Stmt]
    taken: int


class Joining(ABC):
    """A function whose loops may be joined by what follows them; `uses` counts the statements that touch a buffer."""

    def __init__(self, mark: str, function: Function) -> None:
        self.function = function
        self.changed = False
        self.new = Fresh(mark, function)
        self.uses: Counter[Buffer] = Counter()
        for stmt in statements(function.body):
            self.uses.update(loads(stmt) | stores(stmt))

    @abstractmethod
    def begins(self, loop: Loop) -> bool:
        """Whether statements may join a loop."""

    @abstractmethod
    def group(self, loop: Loop, following: Sequence[Stmt]) -> Joined | None:
        """The loop with what joins it; None if nothing does."""

    def run(self) -> Function:
        """The function with such loops joined."""
        body = self.block(self.function.body)
        if not self.changed:
            return self.function
        return Function(self.function.name, (*self.function.buffers, *self.new.buffers), body)

    def block(self, body: Sequence[Stmt]) -> tuple[Stmt, ...]:
        """The statements with loops joined by what follows them."""
        result: list[Stmt] = []
        left = list(body)
        while left:
            stmt = left.pop(0)
            if isinstance(stmt, Loop) and self.begins(stmt):
                found = self.group(stmt, left)
                if found is None:
                    result.append(stmt)
                else:
                    self.changed = True
                    result += found.body
                    del left[: found.taken]
            elif isinstance(stmt, Loop) and stmt.role != "sequential":
                result.append(stmt)
            else:
                result.append(with_blocks(stmt, self.block))
        return tuple(result)
