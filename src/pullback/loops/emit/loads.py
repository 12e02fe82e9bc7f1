"""Loads: of one element, and inside a vector loop of one for each lane.

An index that grows by one from lane to lane is one contiguous access at the address of lane 0; by zero, a broadcast; by
another constant, one access per lane from a common address, or a choice from contiguous ones (backwards, too); by at
most one, a contiguous access where lanes do lie one after the other (runs.py); else a gather.

Masked loads backwards are masked loads and shuffles (see evaluate.py for what that took before).
"""

from __future__ import annotations

from collections.abc import Sequence

from pullback.loops.ir.affine import Interval, summands, terms
from pullback.loops.ir.fold import const, make
from pullback.loops.ir.ir import Buffer, Const, Expr, Load, Op, Read
from pullback.loops.ir.types import ITEMSIZE, REAL_OF, is_int

from .access import Access, VectorIndex
from .guards import Guard
from .runs import direction, last_lane
from .shuffles import ENOUGH, deinterleaved, joined, parts_in_turns, read_in_turns, shuffled
from .square_access import square_load
from .types import alignment, memory_type, splat, suffix, whole_type
from .values import Asm, Value, broadcast, constant

HARDWARE_GATHERS = 64  # bytes of a register from which processors gather faster than by a load for each lane
# Bytes of an array from which some do not (schedule/lookups.py), and that lanes reach at most, or both wait for memory:
# 3000 columns of 3000 x 3000 take two cores of a Zen 4 10.3 ms by gathers, 7.2 one by one. In 1000 numbers gathers take
# 0.8 of the time.
NEAR, FAR = 1 << 15, 1 << 21


def is_regular(step: int | None) -> bool:
    """Whether an index that grows by `step` from lane to lane is a constant step, with addresses near each other."""
    return step is not None and abs(step) <= 1 << 20


def scalar_load(ev: Access, node: Load) -> Value:
    """The value of a load as a scalar; inside a vector loop, that of lane 0."""
    buffer, dtype = node.buffer, node.dtype
    guard = ev.guards.get(node)
    if buffer.size == 0:
        return constant(dtype, 0j if dtype in REAL_OF else 0)
    if guard is None:
        pointer = ev.address(buffer, node.index)
    else:
        pointer = _guarded_address(ev, node, guard)
    return _scalar_at(ev, buffer, pointer)


def _scalar_at(ev: Access, buffer: Buffer, pointer: str) -> Value:
    dtype = buffer.dtype
    kind = memory_type(dtype)
    if dtype in REAL_OF:
        im = ev.offset(buffer, pointer, "1", part=True)
        return Value(dtype, ev.read(kind, pointer, buffer), 1, ev.read(kind, im, buffer))
    return Value(dtype, ev.from_memory(dtype, ev.read(kind, pointer, buffer), 1))


def _guarded_address(ev: Access, node: Load, guard: Guard) -> str:
    """The address, or that of element 0 if the load is not needed."""
    a, buffer = Asm(ev.code, 1), node.buffer
    index = ev.scalar(node.index).ref
    if guard.clamp:
        index = a.call("llvm.smax", "i64", index, "0")
        index = a.call("llvm.smin", "i64", index, str(buffer.size - 1))
    elif guard.chain:
        needed = _condition(ev, guard, 1)
        index = a.select(needed, "i64", index, "0")
    return ev.offset(buffer, ev.pointers[buffer], index)


def _condition(ev: Access, guard: Guard, lanes: int) -> str:
    """The mask of the lanes in which a guard holds; for one lane, whether it holds in any."""
    whole: str | None = None
    widest = 1
    for cond, polarity in guard.chain:
        value = ev.value(cond)
        here = Asm(ev.code, value.lanes)
        ref = value.ref if polarity else here.not_(value.ref)
        if value.lanes > widest:
            whole = None if whole is None else broadcast(ev.code, Value("bool", whole), value.lanes).ref
            widest = value.lanes
        elif value.lanes < widest:
            ref = broadcast(ev.code, Value("bool", ref), widest).ref
        whole = ref if whole is None else Asm(ev.code, widest).op("and", "i1", whole, ref)
    assert whole is not None
    if lanes == 1 and widest > 1:
        return ev.any_lane(whole, widest)
    if lanes > widest:
        return broadcast(ev.code, Value("bool", whole), lanes).ref
    return whole


def _lane_mask(ev: Access, node: Load) -> str | None:
    """Lanes in which a vector load may be performed; None if in all."""
    vector = ev.vector
    assert vector is not None
    mask = ev.mask
    guard = ev.guards.get(node)
    if guard is not None and guard.chain:
        own = _condition(ev, guard, vector.lanes)
        mask = own if mask is None else Asm(ev.code, vector.lanes).op("and", "i1", mask, own)
    return mask


def _address_for_all(ev: Access, node: Load, guard: Guard) -> str | None:
    """The address of lanes that all need a load or none, which then is that of the first elements; None if it differs
    from lane to lane whether they do, or there are not as many elements.

    Loads of which a mask leaves nothing take a Zen 4 about 100 cycles each: a stack of four arrays of 4 MB took 690 us,
    now 220.
    """
    assert ev.vector is not None
    if node.buffer.size < ev.vector.lanes or any(ev.value(cond).lanes > 1 for cond, _ in guard.chain):
        return None
    there, needed = ev.address(node.buffer, node.index), _condition(ev, guard, 1)
    return Asm(ev.code, 1).select(needed, "ptr", there, ev.pointers[node.buffer])


def vector_load(ev: Access, node: Load) -> Value:
    """The values of a load in all lanes, by the cheapest accesses that its index allows."""
    vector, buffer, dtype = ev.vector, node.buffer, node.dtype
    assert vector is not None
    lanes = vector.lanes
    if buffer.size == 0:
        return constant(dtype, 0j if dtype in REAL_OF else 0)
    guard = ev.guards.get(node)
    step = vector.stride(node.index)
    if step == 1 and guard is not None and guard.chain and not guard.clamp:
        pointer = _address_for_all(ev, node, guard)
        if pointer is not None:
            return _contiguous(ev, buffer, pointer, ev.mask)
    mask = _lane_mask(ev, node)
    if not is_regular(step) and guard is None and mask is None and (shared := _window(ev, node)) is not None:
        return shared
    if not is_regular(step) and (along := direction(ev, node)) is not None:
        return _run(ev, node, along, guard is not None and guard.clamp, mask)
    if not is_regular(step) or (guard is not None and guard.clamp):
        return _gather(ev, node, guard is not None and guard.clamp, mask)
    if mask is not None and step not in (1, 0, -1):
        return _gather(ev, node, False, mask)
    pointer = ev.address(buffer, node.index)
    if step == 1:
        return _contiguous(ev, buffer, pointer, mask)
    if step == -1:
        first = ev.offset(buffer, pointer, str(1 - lanes))
        turned = None if mask is None else ev.reversed(Value("bool", mask, lanes)).ref
        return ev.reversed(_contiguous(ev, buffer, first, turned))
    kinds = lambda: vector.kinds(buffer, step or 0)
    if dtype in REAL_OF:
        most = ev.register_bytes // ITEMSIZE[REAL_OF[dtype]]
        shuffles = parts_in_turns(ev.code, step, most - 1) and ENOUGH * kinds() >= abs(step or 0)
    else:
        shuffles = read_in_turns(step, lanes, kinds)
    if step and mask is None and shuffles:
        shared = _interleaved_load(ev, node, step)
        if shared is not None:
            return shared
    if ev.square is not None and mask is None and dtype != "c128" and step:
        along = ev.square.step(node.index, vector.definitions)
        if along in (1, -1):
            return square_load(ev, node, step, along)
    if dtype == "c64":
        return _paired_lanes(ev, buffer, pointer, step or 0)
    return _each(ev, buffer, [ev.offset(buffer, pointer, str(k * (step or 0))) for k in range(lanes)])


def _each(ev: Access, buffer: Buffer, starts: Sequence[str]) -> Value:
    """A lane for each address. They are put together as they lie in memory, and converted all at once."""
    dtype, lanes = buffer.dtype, len(starts)
    if dtype in REAL_OF:
        both = [_scalar_at(ev, buffer, start).parts for start in starts]
        re, im = (ev.pack(memory_type(dtype), [parts[k] for parts in both]) for k in (0, 1))
        return Value(dtype, re, lanes, im)
    element = whole_type(dtype)
    return _of_whole(ev, dtype, ev.pack(element, [ev.read(element, start, buffer) for start in starts]), lanes)


def _of_whole(ev: Access, dtype: str, whole: str, lanes: int) -> Value:
    """Elements that were put together as they are moved, as a value."""
    if dtype == "f16":
        whole = ev.code.inst(f"bitcast <{lanes} x i16> {whole} to <{lanes} x half>", whole)
    return Value(dtype, ev.from_memory(dtype, whole, lanes), lanes)


def _paired_lanes(ev: Access, buffer: Buffer, pointer: str, step: int) -> Value:
    """Elements of two 4-byte parts, `step` apart: each is loaded whole."""
    vector = ev.vector
    assert vector is not None
    lanes = vector.lanes
    starts = [ev.offset(buffer, pointer, str(k * step)) for k in range(lanes)]
    whole = ev.pack("i64", [ev.read("i64", start, buffer) for start in starts])
    return ev.parts_of(buffer.dtype, whole, lanes)


def _interleaved_load(ev: Access, node: Load, step: int) -> Value | None:
    """Every `step`-th element, chosen from contiguous loads; None if that cannot be. A negative step goes backwards:
    the same elements, turned around. The parts of complex elements take turns, too.
    """
    vector, buffer = ev.vector, node.buffer
    assert vector is not None
    bounds = ev.interval(node.index)
    if bounds is None or vector.lanes & (vector.lanes - 1):
        return None
    base, offset = ev.base_and_offset(buffer, node.index)
    each = 2 if buffer.dtype in REAL_OF else 1
    elements = abs(step)
    count = elements * each  # parts of elements from lane to lane
    number = offset % elements  # loads of neighbours then begin at one address
    inside = bounds[0] >= number and bounds[1] + elements - 1 - number < buffer.size
    if not inside and vector.lanes < count:
        return None
    number = number if inside else 0
    lanes = vector.lanes
    first = (offset - number) * each - (count * (lanes - 1) if step < 0 else 0)
    # Register by register: LLVM takes shuffles of several apart, which takes it long, into more than there need be.
    size = min(lanes, max(ev.register_bytes * each // ITEMSIZE[buffer.dtype], 1))
    if size < count or size & (size - 1):
        size = lanes
    kind = memory_type(buffer.dtype, size)
    pieces: list[list[str]] = [[] for _ in range(each)]
    for start in range(0, lanes, size):
        places = [first + start * count + k * size for k in range(count)]
        short = not inside and start + size == lanes
        if short:  # the last one ends with the last element that is wanted
            places[-1] -= count - each
        parts = [ev.read(kind, ev.offset(buffer, base, str(at), part=each == 2), buffer) for at in places]
        if short:
            moved = [min(k + count - each, size - 1) for k in range(size)]
            parts[-1] = shuffled(ev.code, kind, parts[-1], "poison", moved)
        for k, piece in enumerate(pieces):
            piece.append(deinterleaved(ev.code, kind, size, parts, number * each + k))
    refs = [joined(ev.code, memory_type(buffer.dtype), size, piece) for piece in pieces]
    value = (
        Value(node.dtype, refs[0], lanes, refs[1])
        if each == 2
        else Value(node.dtype, ev.from_memory(buffer.dtype, refs[0], lanes), lanes)
    )
    return ev.reversed(value) if step < 0 else value


def _contiguous(ev: Access, buffer: Buffer, pointer: str, mask: str | None) -> Value:
    vector, dtype = ev.vector, buffer.dtype
    assert vector is not None
    lanes = vector.lanes
    wide = 2 * lanes if dtype in REAL_OF else lanes
    kind = memory_type(dtype, wide)
    if mask is None:
        ref = ev.read(kind, pointer, buffer)
    else:
        if wide != lanes:
            mask = ev.doubled(mask, lanes)
        ref = _masked_read(ev, kind, wide, pointer, buffer, mask)
    if dtype in REAL_OF:
        both = Value(REAL_OF[dtype], ref, wide)
        re = ev.shuffle(both, range(0, wide, 2))
        return Value(dtype, re.ref, lanes, ev.shuffle(both, range(1, wide, 2)).ref)
    return Value(dtype, ev.from_memory(dtype, ref, lanes), lanes)


def _masked_read(ev: Access, kind: str, wide: int, pointer: str, buffer: Buffer, mask: str) -> str:
    align = alignment(buffer.dtype)
    name = f"llvm.masked.load.{suffix(kind)}.p0"
    ev.code.declare(f"declare {kind} @{name}(ptr, i32, <{wide} x i1>, {kind})")
    text = f"call {kind} @{name}(ptr {pointer}, i32 {align}, <{wide} x i1> {mask}, {kind} zeroinitializer)"
    return ev.code.load(text, f"{text} @{buffer.name} {ev.epoch.get(buffer, 0)}", buffer, pointer, mask)


def _window(ev: Access, node: Load) -> Value | None:
    """Elements at known places, for each register those of a stretch of memory that two registers hold: these, and one
    shuffle. None if it is longer, or the places are not known: columns of short rows in a constant order.
    """
    vector, buffer = ev.vector, node.buffer
    assert vector is not None
    if vector.base[0] == "%" or buffer.dtype in REAL_OF:
        return None
    found, offset = terms(node.index)
    places = [offset] * vector.lanes
    alike: Expr = const("i64", 0)
    for term in found:
        if not vector.depends(term):
            alike = make("add", (alike, term))
            continue
        for k in range(vector.lanes):
            known = _known(vector, term, int(vector.base) + k)
            if known is None:
                return None
            places[k] += known
    element = whole_type(buffer.dtype)
    some = min(vector.lanes, max(ev.register_bytes // ITEMSIZE[buffer.dtype], 1))  # lanes of a register
    parts = [places[k : k + some] for k in range(0, vector.lanes, some)]
    spans = [max(part) - min(part) + 1 for part in parts]
    if len(parts) & (len(parts) - 1) or vector.lanes % some or not all(2 <= span < 2 * some for span in spans):
        return None
    base = ev.address(buffer, alike)
    registers = []
    for part, span in zip(parts, spans):
        low, n = min(part), 1 << span.bit_length() - 1
        kind = f"<{n} x {element}>"
        x, y = (ev.read(kind, ev.offset(buffer, base, str(place)), buffer) for place in (low, low + span - n))
        chosen = [place - low if place - low < n else place - low - span + 2 * n for place in part]
        registers.append(shuffled(ev.code, kind, x, y, chosen))
    return _of_whole(ev, buffer.dtype, joined(ev.code, element, some, registers), vector.lanes)


def _known(vector: VectorIndex, expr: Expr, at: int) -> int | None:
    """An integer that is made of the vector loop's index and constants, in iteration `at`."""
    match expr:
        case Const():
            return int(expr.value)
        case Read():
            if expr.var is vector.var:
                return at
            given = vector.definitions.get(expr.var)
            return None if given is None else _known(vector, given, at)
        case Load():
            if expr.buffer.data is None or (place := _known(vector, expr.index, at)) is None:
                return None
            inside = 0 <= place < expr.buffer.size  # what no select chooses may be outside
            return int(expr.buffer.data.reshape(-1)[place]) if inside else None
        case Op(name="select"):
            chosen = _known(vector, expr.args[0], at)
            return None if chosen is None else _known(vector, expr.args[1 if chosen else 2], at)
        case Op():
            args: list[Expr] = []
            for arg in expr.args:
                value = _known(vector, arg, at) if arg.dtype == "bool" or is_int(arg.dtype) else None
                if value is None:
                    return None
                args.append(const(arg.dtype, value))
            folded = make(expr.name, tuple(args), expr.dtype)
            return int(folded.value) if isinstance(folded, Const) else None
    return None


def _gather(ev: Access, node: Load, clamp: bool, mask: str | None, rare: bool = False) -> Value:
    """The elements of all lanes, wherever they are; what is `rare` is little code before it is quick."""
    vector, buffer, dtype = ev.vector, node.buffer, node.dtype
    assert vector is not None
    lanes = vector.lanes
    a = Asm(ev.code, lanes)
    if not rare and (short := _short_place(ev, node)) is not None:
        return _one_by_one(ev, node, short, mask)
    place = lane_place(ev, node, clamp)
    base, index = ev.pointers[buffer], broadcast(ev.code, ev.value(place), lanes).ref
    if place is not node.index:
        base, index = ev.address(buffer, _alike(vector, node)), a.cast("sext", "i32", index, "i64")
    if clamp:
        index = a.call("llvm.smax", "i64", index, a.imm("i64", 0))
        index = a.call("llvm.smin", "i64", index, a.imm("i64", buffer.size - 1))
    parts = []
    for part in range(2 if dtype in REAL_OF else 1):
        pointers = ev.lane_pointers(buffer, base, index, part)
        kind = memory_type(dtype, lanes)
        align = alignment(dtype)
        name = f"llvm.masked.gather.{suffix(kind)}.v{lanes}p0"
        ev.code.declare(f"declare {kind} @{name}(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})")
        chosen = mask or splat("true", "i1", lanes)
        text = (
            f"call {kind} @{name}(<{lanes} x ptr> {pointers}, i32 {align}, <{lanes} x i1> {chosen}, "
            f"{kind} zeroinitializer)"
        )
        ref = ev.code.load(text, f"{text} @{buffer.name} {ev.epoch.get(buffer, 0)}", buffer, pointers, chosen)
        parts.append(ev.from_memory(dtype, ref, lanes))
    return Value(dtype, parts[0], lanes, parts[1] if len(parts) > 1 else None)


def _run(ev: Access, node: Load, along: int, clamp: bool, mask: str | None) -> Value:
    """One access if lanes lie one after the other, in the direction `along`; else a gather."""
    vector, buffer = ev.vector, node.buffer
    assert vector is not None
    a, lanes = Asm(ev.code, 1), vector.lanes
    first, last = ev.scalar(node.index).ref, ev.scalar(last_lane(vector, node.index)).ref
    low, high = (first, last) if along == 1 else (last, first)
    scattered = a.cmp("ne", "i64", a.op("sub", "i64", high, low), str(lanes - 1))
    if clamp or mask is not None:  # lanes that do not need it may lie outside
        outside = a.op("or", "i1", a.cmp("slt", "i64", low, "0"), a.cmp("sgt", "i64", high, str(buffer.size - 1)))
        scattered = a.op("or", "i1", scattered, outside)

    def together() -> Value:
        value = _contiguous(ev, buffer, ev.offset(buffer, ev.pointers[buffer], low), None)
        return value if along == 1 else ev.reversed(value)

    return ev.either(scattered, lambda: _gather(ev, node, clamp, mask, rare=True), together)


def lane_place(ev: Access, node: Load, clamp: bool) -> Expr:
    """What a gather evaluates in lanes: what of its index differs between them, in 32 bits if it has so few."""
    short = None if clamp else _differing(ev, node)[0]
    return node.index if short is None else short


def _short_place(ev: Access, node: Load) -> Expr | None:
    """The part of a gather's index that differs between lanes, in 32 bits, if each lane is better loaded by itself."""
    vector, size = ev.vector, ITEMSIZE[node.dtype]
    gathers = ev.register_bytes >= HARDWARE_GATHERS
    assert vector is not None
    near = not vector.singly or node.buffer.size * size <= NEAR
    guard = ev.guards.get(node)
    if (
        (gathers and near)
        or ev.mask is not None
        or (guard is not None and (guard.clamp or node.buffer.size >= 1 << 31))
    ):
        return None
    short, bounds = _differing(ev, node)
    reach = node.buffer.size if bounds is None else min(node.buffer.size, bounds[1] - bounds[0] + 1)
    return short if not gathers or reach * size <= FAR else None


def _differing(ev: Access, node: Load) -> tuple[Expr | None, Interval | None]:
    """What of an index differs between lanes as one sum in 32 bits, and its bounds where they are known; None if it
    is not such a sum, as those of places that data give for each axis are: x[p, q] of rows of 300 reads 300 p + q."""
    vector = ev.vector
    assert vector is not None
    if node in vector.differing:
        return vector.differing[node]
    whole: Expr | None = None
    low = high = 0
    found: tuple[Expr | None, Interval | None] = None, None
    differ = [(term, factor) for term, factor in summands(node.index)[0] if vector.depends(term)]
    for term, factor in differ:
        if not isinstance(term, Op) or term.name != "convert" or term.args[0].dtype != "i32":
            break
        part, bounds = term.args[0], ev.interval(term)
        if len(differ) == 1 and factor == 1:
            found = part, bounds
            break
        if bounds is None:
            break
        ends = sorted((bounds[0] * factor, bounds[1] * factor))
        low, high = low + ends[0], high + ends[1]
        if min(low, ends[0]) < -(1 << 31) or max(high, ends[1]) >= 1 << 31:
            break
        part = part if factor == 1 else make("mul", (part, const("i32", factor)))
        whole = part if whole is None else make("add", (whole, part))
    else:
        found = whole, (low, high)
    vector.differing[node] = found
    return found


def _alike(vector: VectorIndex, node: Load) -> Expr:
    """What of an index is the same in all lanes."""
    found, offset = terms(node.index)
    alike: Expr = const("i64", offset)
    for term in found:
        if not vector.depends(term):
            alike = make("add", (alike, term))
    return alike


def _one_by_one(ev: Access, node: Load, place: Expr, mask: str | None) -> Value:
    """A gather from places of 32 bits, which the loads' addresses widen: LLVM would make 64-bit addresses in lanes.

    Lanes that do not need theirs load the first element: 1000 x 300 by take_along_axis took 120 us, now 80.
    """
    vector, buffer = ev.vector, node.buffer
    assert vector is not None
    lanes = vector.lanes
    short = broadcast(ev.code, ev.value(place), lanes)
    alike = _alike(vector, node)
    if mask is None:
        base = ev.address(buffer, alike)
        # Places of loads that are performed are inside of the buffer, so not negative; a part of one may be.
        widen = "zext" if base == ev.pointers[buffer] else "sext"
    else:
        base, widen = ev.pointers[buffer], "zext"  # whole places, whose parts may wrap
        a = Asm(ev.code, lanes)
        start = broadcast(ev.code, ev.value(make("convert", (alike,), "i32")), lanes)
        whole = a.select(mask, "i32", a.op("add", "i32", start.ref, short.ref), a.imm("i32", 0))
        short = Value("i32", whole, lanes)
    starts = []
    for k in range(lanes):
        lane = ev.code.inst(f"extractelement {short.type} {short.ref}, i64 {k}", short.ref)
        starts.append(ev.offset(buffer, base, Asm(ev.code, 1).cast(widen, "i32", lane, "i64")))
    return _each(ev, buffer, starts)
