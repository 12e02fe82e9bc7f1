"""Plan buffers: where in the arena each temporary lies, sharing memory between those that live at different times.

Needs: the final function. Guarantees: offsets are multiples of 64 bytes, and temporaries alive at the same time are
apart. A temporary lives from the first to the last top-level statement that uses it.

    t0 used by statements 0-1, t1 by 1-2, t2 by 2-3     =>     t0: 0, t1: 64, t2: 0; 128 bytes
"""

from __future__ import annotations

from ..loop_ir.ir import Buffer, Function
from ..loop_ir.types import ITEMSIZE
from ..loop_ir.visit import loaded, stored

ALIGN = 64


def plan_buffers(function: Function) -> tuple[dict[Buffer, int], int]:
    """(byte offset of each temporary that is used, bytes of the arena)."""
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for k, stmt in enumerate(function.body):
        for buffer in loaded((stmt,)) | stored((stmt,)):
            if buffer.space == "temporary":
                first.setdefault(buffer, k)
                last[buffer] = k
    plan: dict[Buffer, int] = {}
    placed: list[tuple[int, int, Buffer]] = []  # (offset, end, buffer), by offset
    total = 0
    # Big ones first: small ones then fill the gaps.
    position = {buffer: k for k, buffer in enumerate(function.buffers)}
    for buffer in sorted(first, key=lambda b: (-_bytes(b), first[b], position[b])):
        size = _bytes(buffer)
        offset = 0
        for start, end, other in placed:
            if last[other] < first[buffer] or last[buffer] < first[other]:
                continue
            if offset + size <= start:
                break
            offset = max(offset, end)
        plan[buffer] = offset
        placed.append((offset, offset + size, buffer))
        placed.sort(key=lambda item: (item[0], item[1]))
        total = max(total, offset + size)
    return plan, total


def _bytes(buffer: Buffer) -> int:
    return -(-max(buffer.size * ITEMSIZE[buffer.dtype], 1) // ALIGN) * ALIGN
