"""Overlap: a large collective operation is begun where its operand is there, and waited for where its result is wanted.

Needs: nests in the order in which they run. Guarantees: the same values; collective operations begin in one order on
all processes, as all have the same statements. Statements before it that it does not need, and those after it that do
not need its result, go between its beginning and its end, as far as AHEAD statements; no operation passes another.

    call product(&a[0], &b[0], &c[0])                    call pb_collective_begin(0, &g[0], &s[0])
    call pb_collective(0, &g[0], &s[0])                  call product(&a[0], &b[0], &c[0])
    parallel i < 4096 { w[i] = s[i] * 0.1 }       =>     call product(&x[0], &y[0], &z[0])
    call product(&x[0], &y[0], &z[0])                    call pb_collective_end(0, &g[0], &s[0])
                                                         parallel i < 4096 { w[i] = s[i] * 0.1 }

Why not LLVM: to it both are calls that may touch all memory. It comes before memory is planned: operand and result are
alive until the end. What runs Python may raise, or wait for others by itself: nothing passes it.

Measured: two processes of which one has 10 ms of work before an all-reduce of 0.8 MB and the other after it take 11.3
ms, before 21.8 (`python -m benchmarks scale --only overlap`). What moves the messages: ext/collectives/under_way.h.
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.ir import Address, Buffer, Call, Function, HostCall, Let, Stmt, Var
from pullback.loops.ir.types import ITEMSIZE
from pullback.loops.ir.visit import bound, free_vars, loaded, statements, stored, with_blocks

OPERATION = "pb_collective"
LARGE_BYTES = 1 << 16  # bytes of operand and result together: less takes a few microseconds
AHEAD = 24  # statements between the two at most: for each collective, so many are looked at
# Calls whose order is what they are for.
_ORDERED = ("pb_show", "pb_show_copy", "pb_meet", "pb_take", "pb_part", "pb_withdraw", "pb_span", "pb_step")


def overlap(function: Function) -> Function:
    """The function with other work between the beginnings and the ends of large collective operations."""
    if not any(_operation(stmt) for stmt in statements(function.body)):
        return function
    return Function(function.name, function.buffers, _block(function.body))


def _operation(stmt: Stmt) -> tuple[Buffer, Buffer] | None:
    """The memory of operand and result of a large collective operation."""
    if not isinstance(stmt, Call) or stmt.symbol != OPERATION:
        return None
    source, target = (arg.buffer for arg in stmt.args if isinstance(arg, Address))
    nbytes = sum(b.size * ITEMSIZE[b.dtype] for b in (source, target))
    return (source, target) if nbytes >= LARGE_BYTES and source is not target else None


def _block(body: Sequence[Stmt]) -> tuple[Stmt, ...]:
    result: list[Stmt] = []
    going: list[tuple[Call, Buffer, Buffer]] = []

    def end(which: Sequence[tuple[Call, Buffer, Buffer]]) -> None:
        for each in which:
            going.remove(each)
            result.append(Call(OPERATION + "_end", each[0].args))

    for stmt in _delayed(_hastened([with_blocks(stmt, _block) for stmt in body])):
        if going:
            reads, writes = _touched(stmt)
            stops = _stops(stmt)
            end([g for g in going if stops or g[1] in writes or g[2] in reads or g[2] in writes])
        operation = _operation(stmt)
        if operation is None or not isinstance(stmt, Call):
            result.append(stmt)
            continue
        going.append((stmt, *operation))
        result.append(Call(OPERATION + "_begin", stmt.args))
    end(list(going))
    return tuple(_whole(result))


def _whole(body: Sequence[Stmt]) -> list[Stmt]:
    """Beginnings that are followed by their ends are the operations that they were."""
    result: list[Stmt] = []
    for stmt in body:
        last = result[-1] if result else None
        if isinstance(stmt, Call) and stmt.symbol == OPERATION + "_end" and isinstance(last, Call):
            if last.symbol == OPERATION + "_begin" and last.args == stmt.args:
                result[-1] = Call(OPERATION, stmt.args)
                continue
        result.append(stmt)
    return result


def _touched(stmt: Stmt) -> tuple[set[Buffer], set[Buffer]]:
    """What a statement reads and writes; other calls may write to whatever they are given."""
    if isinstance(stmt, Call) and stmt.symbol == OPERATION:
        source, target = (arg.buffer for arg in stmt.args if isinstance(arg, Address))
        return {source}, {target}
    return loaded((stmt,)), stored((stmt,))


def _stops(stmt: Stmt) -> bool:
    return any(
        isinstance(s, HostCall) or (isinstance(s, Call) and s.symbol in _ORDERED) for s in (stmt, *statements((stmt,)))
    )


class _Chain:
    """Statements that keep their order with an operation, since they need each other's values or memory."""

    def __init__(self, operation: Call, source: Buffer, target: Buffer) -> None:
        self.reads, self.writes = {source}, {target}
        self.binds: set[Var] = set()
        self.uses: set[Var] = set(free_vars((operation,)))
        self.statements: list[Stmt] = []

    def takes(self, stmt: Stmt) -> bool:
        """Whether a statement before all of them, or behind, must stay there; it is taken then."""
        reads, writes = _touched(stmt)
        uses, binds = free_vars((stmt,)), bound(stmt)
        memory = (reads | writes) & self.writes | writes & self.reads
        tied = bool(memory or self.binds.intersection(uses) or self.uses.intersection(binds))
        if tied:
            self.reads |= reads
            self.writes |= writes
            self.uses.update(uses)
            self.binds.update(binds)
            self.statements.append(stmt)
        return tied


def _chain(stmt: Stmt) -> _Chain | None:
    """Of a large operation."""
    operation = _operation(stmt)
    return _Chain(stmt, *operation) if operation is not None and isinstance(stmt, Call) else None


def _communicates(stmt: Stmt) -> bool:
    return any(isinstance(s, Call) and s.symbol == OPERATION for s in (stmt, *statements((stmt,))))


def _hastened(body: list[Stmt]) -> list[Stmt]:
    """The statements, those that a large operation does not need behind it."""
    for k in range(len(body)):
        needed = _chain(stmt := body[k])  # the order changes before it
        if needed is None:
            continue
        behind, first = [], k
        for other in reversed(body[max(k - AHEAD, 0) : k]):
            if _stops(other) or _communicates(other):
                break
            if not needed.takes(other):
                behind.append(other)
            first -= 1
        if not all(isinstance(other, Let) for other in behind):
            body = [*body[:first], *reversed(needed.statements), stmt, *reversed(behind), *body[k + 1 :]]
    return body


def _delayed(body: list[Stmt]) -> list[Stmt]:
    """The statements, those that wait for a large operation behind those that do not."""
    for k in range(len(body)):
        later = _chain(body[k])  # the order changes behind it
        if later is None:
            continue
        ahead, taken = [], k + 1
        for other in body[k + 1 : k + 1 + AHEAD]:
            if _stops(other):
                break
            if not later.takes(other):
                ahead.append(other)
            taken += 1
        if later.statements and not all(isinstance(other, Let) for other in ahead):
            body = [*body[: k + 1], *ahead, *later.statements, *body[taken:]]
    return body


__all__ = ["overlap"]
