"""Stores: of one element, and inside a vector loop of one for each lane.

Lanes that lie side by side are one contiguous store; a constant distance apart, one store each, or, with others that
fill the gaps, contiguous stores of shuffled vectors; else a scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pullback.loops.ir.ir import Buffer, Expr, Op, Store
from pullback.loops.ir.types import REAL_OF

from .evaluate import Evaluator
from .loads import is_regular
from .shuffles import interleave, parts_in_turns
from .types import LINE, alignment, memory_type, splat, suffix
from .values import Value, broadcast

VECTORS_ON_THEIR_WAY = 4  # vectors of a row that the next step may read while they are on their way to the cache


def emit_store(ev: Evaluator, buffer: Buffer, index: Expr, expr: Expr) -> None:
    """Writes the value of `expr` at `index`, in every lane that runs."""
    value = ev.value(expr)
    if ev.vector is None:
        _scalar_store(ev, buffer, ev.address(buffer, index), value)
    else:
        _vector_store(ev, buffer, index, value, _keeps_some(ev, expr))
    ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1


def interleaved_store(ev: Evaluator, stores: Sequence[Store]) -> bool:
    """Stores to one buffer, `len(stores)` elements apart from lane to lane, that together fill a stretch of it:
    contiguous stores of shuffled vectors. False, and nothing is done, if they are not so."""
    vector, buffer, step = ev.vector, stores[0].buffer, len(stores)
    if vector is None or ev.mask is not None or vector.lanes & (vector.lanes - 1):
        return False
    each = 2 if buffer.dtype in REAL_OF else 1  # parts of an element, which take turns, too
    if each == 2 and not parts_in_turns(ev.code, step, ev.register_bytes // alignment(buffer.dtype)):
        return False
    if any(vector.stride(store.index) != step for store in stores):
        return False
    ev.begin([expr for store in stores for expr in (store.index, store.value)])
    places = [ev.base_and_offset(buffer, store.index) for store in stores]
    first = min(offset for _, offset in places)
    if len({base for base, _ in places}) > 1 or sorted(o - first for _, o in places) != list(range(step)):
        return False
    lanes, refs = vector.lanes, [""] * (step * each)
    for (_, offset), store in zip(places, stores):
        value = broadcast(ev.code, ev.value(store.value), lanes)
        for k, ref in enumerate(ev.to_memory(value)):
            refs[(offset - first) * each + k] = ref
    kind, align = memory_type(buffer.dtype, lanes), alignment(buffer.dtype)
    for k, ref in enumerate(interleave(ev.code, kind, lanes, refs)):
        at = ev.offset(buffer, places[0][0], str(first * each + k * lanes), part=each == 2)
        ev.code.line(f"  store {kind} {ref}, ptr {at}, align {align}")
    ev.epoch[buffer] = ev.epoch.get(buffer, 0) + 1
    return True


def _scalar_store(ev: Evaluator, buffer: Buffer, pointer: str, value: Value) -> None:
    kind = memory_type(buffer.dtype)
    align = alignment(buffer.dtype)
    for part, ref in enumerate(ev.to_memory(value)):
        at = ev.offset(buffer, pointer, str(part), part=True)
        ev.code.line(f"  store {kind} {ref}, ptr {at}, align {align}")


def _keeps_some(ev: Evaluator, expr: Expr) -> bool:
    """Whether some lanes may get what they had, and should be written nevertheless.

    LLVM makes a masked store of that, unless it is told that all lanes count: with AVX2 such a one takes AMD's cores
    ten cycles and more. Measured (EPYC Genoa, AVX2): factors by Cholesky of 200, 300 and 1000 rows in 213, 549 and
    15,860 us before, 94, 208 and 6,680 now. With AVX-512 masked stores are quick, but a load right after one waits
    until it is in the cache: 1,000 steps of a perceptron, or of a walk that is at times refused, of 20 numbers took
    19.1 and 33.6 us, now 17.1 and 30.6; of 300 they took 13.5 and would take 13.9.
    """
    if not isinstance(expr, Op) or expr.name != "select":
        return False
    assert ev.vector is not None
    last = ev.ranges.get(ev.vector.var, (0, math.inf))[1]
    return ev.code.looks_up < 16 or last < VECTORS_ON_THEIR_WAY * ev.vector.lanes


def _vector_store(ev: Evaluator, buffer: Buffer, index: Expr, value: Value, keeps_some: bool) -> None:
    vector, dtype = ev.vector, buffer.dtype
    assert vector is not None
    lanes = vector.lanes
    step = vector.stride(index)
    if step == 0 and ev.mask is None and value.lanes == 1:
        _scalar_store(ev, buffer, ev.address(buffer, index), value)
        return
    value = broadcast(ev.code, value, lanes)
    align = alignment(dtype)
    if step == 1 or (step == -1 and ev.mask is None):
        pointer = ev.address(buffer, index)
        if step == -1:
            pointer = ev.offset(buffer, pointer, str(1 - lanes))
            value = ev.reversed(value)
        refs, wide, mask = ev.to_memory(value), lanes, ev.mask
        if dtype in REAL_OF:
            refs, wide = (ev.parts_side_by_side(value),), 2 * lanes
            mask = None if mask is None else ev.doubled(mask, lanes)
        kind = memory_type(dtype, wide)
        if mask is None:
            past = f"{LINE}, !nontemporal !{{i32 1}}" if buffer in ev.streamed else str(align)
            whole = " volatile" if keeps_some else ""
            ev.code.line(f"  store{whole} {kind} {refs[0]}, ptr {pointer}, align {past}")
            return
        name = f"llvm.masked.store.{suffix(kind)}.p0"
        ev.code.declare(f"declare void @{name}({kind}, ptr, i32, <{wide} x i1>)")
        ev.code.line(f"  call void @{name}({kind} {refs[0]}, ptr {pointer}, i32 {align}, <{wide} x i1> {mask})")
        return
    refs = ev.to_memory(value)
    kind = memory_type(dtype, lanes)
    if is_regular(step) and ev.mask is None:
        _store_lanes(ev, buffer, ev.address(buffer, index), step or 0, refs, align)
        return
    at = broadcast(ev.code, ev.value(index), lanes).ref
    mask = ev.mask or splat("true", "i1", lanes)
    for part, ref in enumerate(refs):
        pointers = ev.lane_pointers(buffer, ev.pointers[buffer], at, part)
        name = f"llvm.masked.scatter.{suffix(kind)}.v{lanes}p0"
        ev.code.declare(f"declare void @{name}({kind}, <{lanes} x ptr>, i32, <{lanes} x i1>)")
        ev.code.line(
            f"  call void @{name}({kind} {ref}, <{lanes} x ptr> {pointers}, i32 {align}, <{lanes} x i1> {mask})"
        )


def _store_lanes(ev: Evaluator, buffer: Buffer, pointer: str, step: int, refs: Sequence[str], align: int) -> None:
    """Lane by lane, `step` elements apart."""
    vector = ev.vector
    assert vector is not None
    lanes, element = vector.lanes, memory_type(buffer.dtype)
    if buffer.dtype == "c64":  # both parts of an element at once
        whole = ev.parts_side_by_side(Value(buffer.dtype, refs[0], lanes, refs[1]))
        kind = memory_type(buffer.dtype, 2 * lanes)
        refs, element = (ev.code.inst(f"bitcast {kind} {whole} to <{lanes} x i64>", whole),), "i64"
    for k in range(lanes):
        base = ev.offset(buffer, pointer, str(k * step))
        for part, ref in enumerate(refs):
            lane = ev.code.inst(f"extractelement <{lanes} x {element}> {ref}, i64 {k}", ref)
            at = ev.offset(buffer, base, str(part), part=True)
            ev.code.line(f"  store {element} {lane}, ptr {at}, align {align}")
