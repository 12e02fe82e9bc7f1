"""Loads and stores of squares (squares.py): rows are vectors in memory, what is computed with are columns.

Eight rows of eight float32 are read as vectors and shuffled, inside any expression. Channels of images, three or five
to a pixel, are blends and one permutation a vector.

Measured: a transpose of 1500 x 1500 complex64 took 7.2 ms, now 1.6 (JAX 3.4), of 2000 x 2000 float64 10.8, now 3 (JAX
5), of 3000 x 3000 bytes 8.7, now 1.5. What a tile spans (1 to 4 lines) made no difference. 4 x 224 x 224 x 3 bytes to
channels first took 119 us, now 22, and back 214, now 22 (float32: 128 to 83, 191 to 74).
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.ir import Load, Store
from pullback.loops.ir.types import ITEMSIZE

from .access import Access
from .shuffles import transpose
from .squares import PART, is_square_store
from .types import alignment, memory_type, whole_type
from .values import Value, broadcast


def square_load(ev: Access, node: Load, step: int, along: int) -> Value:
    """Loads side by side for the copies (`along`: 1 or -1) and `step` apart from lane to lane: rows, transposed."""
    square, vector, buffer, dtype = ev.square, ev.vector, node.buffer, node.dtype
    assert square is not None and vector is not None
    side = vector.lanes
    number = square.copy if along > 0 else square.copies - 1 - square.copy
    base, offset = ev.base_and_offset(buffer, node.index)
    element = whole_type(dtype)
    n = min(side, PART // ITEMSIZE[dtype])
    first = offset - number + number // n * n  # the part of each row in which this copy's column lies
    # Copies of one part share its columns, but for those that a branch has to itself.
    key = ev.code.scopes[-1], buffer, ev.epoch.get(buffer, 0), base, first, step
    columns = square.columns.get(key)
    if columns is None:
        starts = [ev.offset(buffer, base, str(first + k * step)) for k in range(side)]
        rows = [ev.read(f"<{n} x {element}>", start, buffer) for start in starts]
        columns = square.columns[key] = transpose(ev.code, element, n, rows)
    ref = columns[number % n]
    if dtype == "c64":
        return ev.parts_of(dtype, ref, side)
    return Value(dtype, ev.from_memory(dtype, _bitcast(ev, ref, element, memory_type(dtype), side), side), side)


def square_store(ev: Access, stores: Sequence[Store]) -> bool:
    """One store of each copy of a square, if they lie side by side but their lanes apart: transposed, then rows.

    False, and nothing is done, if they do not.
    """
    square, vector, buffer = ev.square, ev.vector, stores[0].buffer
    assert square is not None and vector is not None
    side, dtype = vector.lanes, buffer.dtype
    step, along = vector.stride(stores[0].index), square.step(stores[0].index, vector.definitions)
    if step is None or along is None or not is_square_store(dtype, step, along) or square.copies < side:
        return False
    ev.begin((stores[0].index,))
    base, offset = ev.base_and_offset(buffer, stores[0].index)
    element, refs = whole_type(dtype), []
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


def _part(ev: Access, ref: str, element: str, lanes: int, start: int, n: int) -> str:
    """The n lanes of a vector from `start` on."""
    if n == lanes:
        return ref
    kind, chosen = f"<{lanes} x {element}>", ", ".join(f"i32 {k}" for k in range(start, start + n))
    return ev.code.inst(f"shufflevector {kind} {ref}, {kind} poison, <{n} x i32> <{chosen}>", ref)


def _bitcast(ev: Access, ref: str, before: str, after: str, lanes: int) -> str:
    if before == after:
        return ref
    return ev.code.inst(f"bitcast <{lanes} x {before}> {ref} to <{lanes} x {after}>", ref)
