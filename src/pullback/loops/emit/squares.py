"""Squares: as many iterations of a parallel loop as the vector loop around it has lanes, side by side.

What lies one after the other along the inner loop but far apart from lane to lane is read, or written, as whole vectors
along the inner loop, and the square of registers is transposed by shuffles. A transpose, alone or in an expression, so
takes for eight float32 one contiguous access and three shuffles, not eight accesses and as many insertions.
"""

from __future__ import annotations

from collections.abc import Mapping

from pullback.loops.ir.affine import stride
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.ir import SQUARE, Const, Expr, Loop, Read, Stmt, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import Substitute, accessed

MOST = 16  # rows of a square: there are not more registers on all machines


class Square:
    """The square being emitted: `side` copies of a body, for iterations from `first` on, of which this is `copy`."""

    def __init__(self, loop: Loop, side: int) -> None:
        self.first = Var(loop.var.name, "i64")
        self.side = side
        self.copy = 0
        self.varying = {self.first}
        self.bodies = [self._body(loop, k) for k in range(side)]

    def _body(self, loop: Loop, k: int) -> tuple[Stmt, ...]:
        """The body for copy k, with variables of its own."""

        def rename(var: Var) -> Var:
            own = Var(var.name, var.dtype)
            self.varying.add(own)
            return own

        return Substitute({loop.var: make("add", (Read(self.first), const("i64", k)))}, rename).block(loop.body)

    def step(self, index: Expr, definitions: Mapping[Var, Expr]) -> int | None:
        """How much an index grows from copy to copy; `definitions` are Lets that it may read."""
        return stride(index, self.first, self.varying, definitions, {})


def square_in(loop: Loop) -> Loop | None:
    """The loop of squares in a vector loop."""
    (inner,) = loop.body if len(loop.body) == 1 else (None,)
    return inner if isinstance(inner, Loop) and SQUARE in inner.attrs else None


def square_side(loop: Loop, inner: Loop, vector_bytes: int) -> int:
    """Lanes of a vector loop, and copies of the body of `inner`, its loop of squares: a register of widest elements."""
    widest = max((ITEMSIZE[buffer.dtype] for buffer, _ in accessed(inner.body)), default=4)
    side = max(2, min(MOST, vector_bytes // widest))
    for extent in (loop.extent, inner.extent):
        while isinstance(extent, Const) and side > max(extent.value, 1):
            side //= 2
    return side
