"""Squares (register tiles that are transposed): as many iterations of a parallel loop as the vector loop around it has
lanes, side by side.

What lies one after the other along the inner loop but far apart from lane to lane is read, or written, as whole vectors
along the inner loop, and the square of registers is transposed by shuffles. A transpose, alone or in an expression, so
takes for eight float32 one contiguous access and three shuffles, not eight accesses and as many insertions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pullback.loops.ir.affine import stride
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.ir import SQUARE, Const, Expr, Let, Loop, Read, Stmt, Store, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import Substitute, access_nodes, accessed

from .shuffles import INTERLEAVED

MAX_SIDE = 16  # rows of a square: there are not more registers on all machines
PART = 16  # bytes of a register's parts, within which elements are shuffled at once


class Square:
    """The square being emitted: some `copies` of a body, for iterations from `first` on, of which this is `copy`."""

    def __init__(self, loop: Loop, copies: int) -> None:
        self.first = Var(loop.var.name, "i64")
        self.copies = copies
        self.copy = 0
        self.columns: dict[Any, list[str]] = {}  # of parts of rows that have been loaded
        self.varying = {self.first}
        self.bodies = [self._body(loop, k) for k in range(copies)]

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
    side = max(2, min(MAX_SIDE, vector_bytes // widest))
    for extent in (loop.extent, inner.extent):
        while isinstance(extent, Const) and side > max(extent.value, 1):
            side //= 2
    return side


def is_square_store(dtype: str, step: int | None, along: int | None) -> bool:
    """Whether stores `step` apart from lane to lane and `along` from copy to copy are written as a square."""
    return dtype != "c128" and step not in (None, 0, 1, -1) and along in (1, -1)


def copies_of(loop: Loop, lanes: int, var: Var, varying: set[Var], known: Mapping[Var, Expr]) -> int:
    """How many copies of the body of a loop of squares make sense, in a vector loop of `var` on so many lanes.

    A square that is written has as many as lanes. One that is only read, or written otherwise, consists of parts that
    have nothing in common, as many copies each as elements are shuffled at once: the loop goes over the parts. (Packing
    a matrix for a product is of this kind: a quarter of the code, and of the time to compile it.)
    """
    own = {stmt.var: stmt.value for stmt in loop.body if isinstance(stmt, Let)}
    definitions = {**known, **own}
    side = 1
    for stmt in loop.body:
        for node in access_nodes(stmt):
            step = stride(node.index, var, varying, definitions, {})
            if isinstance(node, Store):
                along = stride(node.index, loop.var, {loop.var, *own}, definitions, {})
                if is_square_store(node.buffer.dtype, step, along):
                    return lanes
            elif step in INTERLEAVED:
                return lanes
            side = max(side, PART // ITEMSIZE[node.buffer.dtype])
    return min(lanes, side)
