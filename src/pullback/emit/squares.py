"""Squares: as many iterations of a parallel loop as the vector loop around it has lanes, side by side.

What lies one after the other along the inner loop but far apart from lane to lane is read, or written, as whole vectors
along the inner loop, and the square of registers is transposed by shuffles. A transpose, alone or in an expression, so
takes for eight float32 one contiguous access and three shuffles, not eight accesses and as many insertions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..loop_ir.affine import stride
from ..loop_ir.fold import const, make
from ..loop_ir.ir import SQUARE, Const, Expr, Load, Loop, Read, Stmt, Store, Var
from ..loop_ir.types import ITEMSIZE
from ..loop_ir.visit import Substitute, accessed
from .shuffles import transpose
from .types import alignment, memory_type
from .values import Value, broadcast

if TYPE_CHECKING:
    from .evaluate import Evaluator

MOST = 16  # rows of a square: there are not more registers on all machines
PART = 16  # bytes of a register's parts, within which elements are shuffled at once


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


def square_load(ev: Evaluator, node: Load, step: int, along: int) -> Value:
    """Loads side by side for the copies (`along`: 1 or -1) and `step` apart from lane to lane: rows, transposed."""
    square, buffer, dtype = ev.square, node.buffer, node.dtype
    assert square is not None
    side = square.side
    number = square.copy if along > 0 else side - 1 - square.copy
    base, offset = ev.base_and_offset(buffer, node.index)
    element = _whole_element(dtype)
    n = min(side, PART // ITEMSIZE[dtype])
    first = offset - number + number // n * n  # the part of each row in which this copy's column lies
    starts = [ev.offset(buffer, base, str(first + k * step)) for k in range(side)]
    # Copies make the same instructions, and find them.
    columns = transpose(ev.code, element, n, [ev.read(f"<{n} x {element}>", start, buffer) for start in starts])
    ref = columns[number % n]
    if dtype == "c64":
        return ev.parts_of(dtype, ref, side)
    return Value(dtype, ev.from_memory(dtype, _bitcast(ev, ref, element, memory_type(dtype), side), side), side)


def square_store(ev: Evaluator, stores: Sequence[Store]) -> bool:
    """One store of each copy of a square, if they lie side by side but their lanes apart: transposed, then rows.

    False, and nothing is done, if they do not.
    """
    square, vector, buffer = ev.square, ev.vector, stores[0].buffer
    assert square is not None and vector is not None
    side, dtype = square.side, buffer.dtype
    step, along = vector.stride(stores[0].index), square.step(stores[0].index, vector.definitions)
    if dtype == "c128" or step in (None, 0, 1, -1) or along not in (1, -1):
        return False
    ev.begin((stores[0].index,))
    base, offset = ev.base_and_offset(buffer, stores[0].index)
    element, refs = _whole_element(dtype), []
    for square.copy, store in enumerate(stores):
        ev.begin((store.value,))
        value = broadcast(ev.code, ev.value(store.value), side)
        if dtype == "c64":
            whole = ev.parts_side_by_side(value)
            refs.append(ev.code.inst(f"bitcast <{2 * side} x float> {whole} to <{side} x i64>", whole))
        else:
            refs.append(_bitcast(ev, ev.to_memory(value)[0], memory_type(dtype), element, side))
    if along < 0:
        refs.reverse()
        offset -= side - 1
    n = min(side, PART // ITEMSIZE[dtype])
    align = alignment(dtype)
    for start in range(0, side, n):
        parts = [_part(ev, ref, element, side, start, n) for ref in refs]
        for k, row in enumerate(transpose(ev.code, element, n, parts), start):
            at = ev.offset(buffer, base, str(offset + k * step))
            ev.code.line(f"  store <{side} x {element}> {row}, ptr {at}, align {align}")
    ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1
    return True


def _part(ev: Evaluator, ref: str, element: str, lanes: int, start: int, n: int) -> str:
    """The n lanes of a vector from `start` on."""
    if n == lanes:
        return ref
    kind, chosen = f"<{lanes} x {element}>", ", ".join(f"i32 {k}" for k in range(start, start + n))
    return ev.code.inst(f"shufflevector {kind} {ref}, {kind} poison, <{n} x i32> <{chosen}>", ref)


def _bitcast(ev: Evaluator, ref: str, before: str, after: str, lanes: int) -> str:
    if before == after:
        return ref
    return ev.code.inst(f"bitcast <{lanes} x {before}> {ref} to <{lanes} x {after}>", ref)


def _whole_element(dtype: str) -> str:
    """The type as which elements are moved: what LLVM has shuffles for."""
    return {"c64": "i64", "f16": "i16"}.get(dtype, memory_type(dtype))
