"""Buffer assignment: temporaries get places in one arena, and those that are not alive at the same time share memory.

A temporary is alive from the first statement that mentions it to the last. One that is used inside of a loop and
outside of it is alive during the whole loop; one used inside only is dead between the iterations, so the rule applies
inside again. Iterations of a parallel loop may run at once, or those of a part of it before the rest: what is used
inside of one is alive during all of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from pullback.loops.ir import ITEMSIZE, Buffer, Function, Loop, Stmt, While
from pullback.loops.ir.visit import blocks, loads, stores

ALIGNMENT = 64  # bytes: a line of the caches, and a register of AVX-512


def plan_arena(function: Function, final: Function | None = None) -> tuple[dict[Buffer, int], int]:
    """(byte offset of each temporary, bytes of the arena).

    `final` is the function after passes, whose expressions are much larger: its statements come in the same order, and
    temporaries that are only in it get places of their own.
    """
    lives = live_ranges(function.body)
    temporaries = [buffer for buffer in function.buffers if buffer.space == "temporary"]
    offsets: dict[Buffer, int] = dict.fromkeys(temporaries, 0)
    order = sorted((buffer for buffer in temporaries if buffer in lives), key=lambda x: lives[x][0])
    total = 0
    free: list[tuple[int, int]] = []  # (offset, bytes), sorted by offset, neighbours joined
    busy: list[tuple[int, int, int]] = []  # (last use, offset, bytes)
    for buffer in order:
        first, last = lives[buffer]
        while busy and busy[0][0] < first:
            _, offset, size = heapq.heappop(busy)
            _give_back(free, offset, size)
        size = _bytes(buffer)
        found = min((i for i in range(len(free)) if free[i][1] >= size), key=lambda i: free[i][1], default=None)
        if found is not None:
            offset, room = free[found]
            if room == size:
                del free[found]
            else:
                free[found] = (offset + size, room - size)
        elif free and free[-1][0] + free[-1][1] == total:  # the last hole grows
            offset = free.pop()[0]
            total = offset + size
        else:
            offset, total = total, total + size
        offsets[buffer] = offset
        heapq.heappush(busy, (last, offset, size))
    for buffer in () if final is None else final.buffers:
        if buffer.space == "temporary" and buffer not in offsets:
            offsets[buffer] = total
            total += _bytes(buffer)
    return offsets, total


def _bytes(buffer: Buffer) -> int:
    return -(-max(buffer.size * ITEMSIZE[buffer.dtype], 1) // ALIGNMENT) * ALIGNMENT


def _give_back(free: list[tuple[int, int]], offset: int, size: int) -> None:
    low, high = 0, len(free)
    while low < high:
        middle = (low + high) // 2
        if free[middle][0] < offset:
            low = middle + 1
        else:
            high = middle
    if low < len(free) and offset + size == free[low][0]:
        size += free[low][1]
        del free[low]
    if low > 0 and free[low - 1][0] + free[low - 1][1] == offset:
        offset, size = free[low - 1][0], free[low - 1][1] + size
        del free[low - 1]
        low -= 1
    free.insert(low, (offset, size))


def live_ranges(body: Sequence[Stmt]) -> dict[Buffer, tuple[int, int]]:
    """For each temporary the numbers of the first and last statement that need it."""
    totals: dict[Buffer, int] = {}
    _count(body, totals)
    ranges: dict[Buffer, tuple[int, int]] = {}
    _walk(body, 0, totals, ranges)
    return ranges


def _mentioned(stmt: Stmt) -> list[Buffer]:
    return [buffer for buffer in loads(stmt) | stores(stmt) if buffer.space == "temporary"]


def _count(body: Sequence[Stmt], totals: dict[Buffer, int]) -> None:
    for stmt in body:
        for buffer in _mentioned(stmt):
            totals[buffer] = totals.get(buffer, 0) + 1
        for block in blocks(stmt):
            _count(block, totals)


def _walk(
    body: Sequence[Stmt], number: int, totals: dict[Buffer, int], ranges: dict[Buffer, tuple[int, int]]
) -> tuple[int, dict[Buffer, int]]:
    """Numbers the statements of `body` from `number` on; returns the next number and how often buffers are
    mentioned.
    """
    mentioned: dict[Buffer, int] = {}
    for stmt in body:
        start = number
        number += 1
        own = dict.fromkeys(_mentioned(stmt), 1)
        inside: dict[Buffer, tuple[int, int]] = {}
        for block in blocks(stmt):
            number, counts = _walk(block, number, totals, inside)
            for buffer, count in counts.items():
                own[buffer] = own.get(buffer, 0) + count
        repeats = isinstance(stmt, (Loop, While))
        at_once = isinstance(stmt, Loop) and stmt.role in ("parallel", "threads")
        for buffer, count in own.items():
            mentioned[buffer] = mentioned.get(buffer, 0) + count
            if buffer in inside and not at_once and (not repeats or count == totals[buffer]):
                first, last = inside[buffer]
            else:
                first, last = start, number - 1
            known = ranges.get(buffer)
            ranges[buffer] = (first, last) if known is None else (min(known[0], first), max(known[1], last))
    return number, mentioned
