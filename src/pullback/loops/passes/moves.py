"""Moves: numbers of 16 bits, and complex numbers of 64, that are only moved are integers.

    parallel i < 300 { parallel j < 800 { y[..] = x[..] } }    of f16 buffers    =>    the same of u16 buffers

Needs: buffers before memory is planned. Guarantees: the same bits, those of NaNs included; buffers in the same order.

In a register a float of 16 bits is one of 32, as it is computed with: each would be converted there and back, some
lanes one by one. A complex number is two: each half would be read by itself where places are not in order. So buffers
between which values go as they are, or chosen among such, change their types together.

Measured (two cores of a Xeon, with AVX-512 and with AVX2): a transpose of 200 x 300 x 4 bfloat16 to 300 x 200 x 4 took
74 and 62 us, now 39 and 26. A million complex numbers at any places took twice the time of as many float64.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pullback.loops.ir.ir import Buffer, Const, Expr, Function, Load, Op, Stmt, Store
from pullback.loops.ir.types import NP_DTYPE
from pullback.loops.ir.visit import Rewriter, expressions, statements, subexpressions

BITS = {"f16": "u16", "bf16": "u16", "c64": "u64"}


def moves(function: Function) -> Function:
    """The function with integers for what is only moved."""
    groups = _Groups(b for b in function.buffers if b.dtype in BITS)
    if not groups.parent:
        return function
    for stmt in statements(function.body):
        groups.note(stmt)
    new = {b: Buffer(b.name, BITS[b.dtype], b.size, b.space, _bits(b.data, b.dtype)) for b in groups.moved()}
    if not new:
        return function
    return Function(function.name, tuple([new.get(b, b) for b in function.buffers]), _AsBits(new).block(function.body))


def _bits(data: np.ndarray | None, dtype: str) -> np.ndarray | None:
    return None if data is None else data.view(NP_DTYPE[BITS[dtype]])


def _sources(value: Expr, dtype: str) -> list[Expr] | None:
    """The loads and numbers of the type that a value is chosen among; None if it is anything else."""
    if isinstance(value, (Load, Const)):
        return [value] if value.dtype == dtype else None
    if isinstance(value, Op) and value.name == "select" and value.dtype == dtype and not value.attrs:
        found: list[Expr] = []
        for branch in value.args[1:]:
            some = _sources(branch, dtype)
            if some is None:
                return None
            found += some
        return found
    return None


class _Groups:
    """Buffers between which values are moved, and those of which more is done."""

    def __init__(self, buffers: Iterator[Buffer]) -> None:
        self.parent = {b: b for b in buffers}
        self.stored: set[Buffer] = set()
        self.computed: set[Buffer] = set()

    def note(self, stmt: Stmt) -> None:
        """Take in one statement, without those inside it."""
        known = self.parent
        roots = expressions(stmt)
        if isinstance(stmt, Store) and stmt.buffer in known:
            self.stored.add(stmt.buffer)
            sources = _sources(stmt.value, stmt.buffer.dtype)
            if sources is None:
                self.computed.add(stmt.buffer)
            else:
                for source in sources:
                    if isinstance(source, Load) and source.buffer in known:
                        known[self._first(source.buffer)] = self._first(stmt.buffer)
                choices = _choices(stmt.value)
                roots = (stmt.index, *choices, *[s.index for s in sources if isinstance(s, Load)])
        elif not isinstance(stmt, Store):
            self.computed.update(b for b in _passed(stmt) if b in known)
        for expr in subexpressions(roots):
            if isinstance(expr, Load) and expr.buffer in known:
                self.computed.add(expr.buffer)

    def moved(self) -> list[Buffer]:
        """The buffers that may be integers: some of their group is stored, and nothing is computed of any."""
        computed = {self._first(b) for b in self.computed}
        stored = {self._first(b) for b in self.stored} - computed
        return [b for b in self.parent if self._first(b) in stored]

    def _first(self, buffer: Buffer) -> Buffer:
        while self.parent[buffer] is not buffer:
            buffer = self.parent[buffer]
        return buffer


def _choices(value: Expr) -> list[Expr]:
    """The conditions by which a value is chosen."""
    if not isinstance(value, Op):
        return []
    return [value.args[0], *[c for branch in value.args[1:] for c in _choices(branch)]]


def _passed(stmt: Stmt) -> set[Buffer]:
    """Buffers that are handed on as a whole, to what is written for their type."""
    found = {arg.buffer for arg in getattr(stmt, "args", ()) if hasattr(arg, "buffer")}
    return found | set(getattr(stmt, "buffers", ()))


class _AsBits(Rewriter):
    def __init__(self, new: dict[Buffer, Buffer]) -> None:
        super().__init__()
        self.new = new

    def stmt(self, stmt: Stmt) -> list[Stmt]:
        if not isinstance(stmt, Store) or stmt.buffer not in self.new:
            return [stmt]
        return [Store(self.new[stmt.buffer], stmt.index, self._moved(stmt.value))]

    def _moved(self, value: Expr) -> Expr:
        if isinstance(value, Load):
            return Load(self.new[value.buffer], value.index)
        if isinstance(value, Const):
            number = np.asarray(value.value, NP_DTYPE[value.dtype])
            return Const(BITS[value.dtype], int(number.view(NP_DTYPE[BITS[value.dtype]])))
        assert isinstance(value, Op)
        return Op("select", BITS[value.dtype], (value.args[0], *map(self._moved, value.args[1:])))


__all__ = ["moves"]
