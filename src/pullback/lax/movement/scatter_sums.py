"""Many updates of few places by threads and in streams, as `scatter_add`, `segment_sum` and `segment_max` make them.

Each thread has the places for itself, and takes a share of the updates: two or four shares whatever the number of
threads, so that results are the same. It is chosen by its price, as the places are filled and read once more for each.

Sums are about as accurate as pairwise ones. Added one by one, n updates of one place err by up to n / 2 units in the
last place, and how many a place gets is not known before. So where places get `CROWD` updates on the average, these are
added in double the precision: float32 and narrower in float64, float64 with what each addition loses kept in a second
sum (Neumaier). This costs 1.3 to 2 times the time; fewer updates of a place are added as they come.

A share is added in four streams, each a stretch of its updates: one update of each in turn. Where indices are sorted,
each addition to a place waits for the one before it, and so four such are on their way.

Measured: sums of 200,000 into 10 took 228 us where those of the threads were neighbours in a line, now 80 to 125.
54,496 into 13,624 took 78 to 89 us by one thread, by two 60. Of sorted indices 50,000 into 1,000 took 58 us, in four
streams 22, of random ones 20 and 14; in eight streams, whose code is longer, 23 and 23. A million rows of 8 at random
into 100,000 took 1.8 ms, in streams 2.4. Products of 50,000 sorted numbers 109 us, now 38, of 5,000 rows of 17 37 and
17; largest of 5,000 sorted 7.7, now 3.8, of 2,000 rows of four 15 and 3.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.lax.records.nests import loops, two_sum, with_lost

SHORT = 128  # updates that are added one by one in pairwise sums, too
CROWD = 4  # updates of a place, on the average, from which on wider sums cost little
CROWD_OF_MANY = 16  # the same where the wide sums leave the second cache, or are two: NumPy adds so many one by one
GAIN = 0.9  # of the time of one thread that shares may take to be chosen: machines differ
STREAMS, FEWEST = 4, 64  # pieces of a share that are added in turns, and updates of such a piece
NARROW = 4  # elements of a window
LOSS = 1.05  # of the time of two shares on two cores that four may take, which gain on more cores

# Times in ns of one core, measured from 8,000 updates of 500 places to 3 million of a million, in rows of 1 to 64.
_UPDATE, _ELEMENT = 1.3, 0.2  # of an index, twice that with a second sum, and of an element of its window
_PLACE = 0.3  # in one more share

_SUMMED = {"f16": "f64", "bf16": "f64", "f32": "f64", "f64": "f64", "c64": "c128", "c128": "c128"}
_NUMPYS = {
    "float16": np.float64, "bfloat16": np.float64, "float32": np.float64, "float64": np.longdouble,
    "complex64": np.complex128, "complex128": np.clongdouble,
}  # fmt: skip
_OPS = ("add", "sub", "mul", "min", "max")
_INTEGERS = {f"{kind}{width}" for kind in "iu" for width in (8, 16, 32, 64)}


def _nothing(b: Any, dtype: str, loop_op: str) -> Any:
    """What leaves anything as it is that is brought to it."""
    if loop_op == "mul":
        return b.const(dtype, 1 if dtype in _INTEGERS else 1.0)
    if loop_op in ("add", "sub"):
        # Minus zero is the one that leaves zeros of both signs.
        if dtype in _INTEGERS:
            return b.const(dtype, 0)
        zero = b.const("f64", 0.0 if loop_op == "sub" else -0.0)
        return zero if dtype == "f64" else b.convert(zero, dtype)
    if dtype in _INTEGERS:
        width = int(dtype[1:])
        least, most = (-(1 << width - 1), (1 << width - 1) - 1) if dtype[0] == "i" else (0, (1 << width) - 1)
        return b.const(dtype, most if loop_op == "min" else least)
    return b.const(dtype, math.inf if loop_op == "min" else -math.inf)


def _nominal() -> Any:
    """The machine that decides in which order is added."""
    from pullback.loops.schedule.machine import NOMINAL  # which loads the compiler: not at import

    return NOMINAL


def _itemsize(dtype: str) -> int:
    from pullback.loops.ir.types import ITEMSIZE  # which loads the loop IR

    return ITEMSIZE[dtype]


def wide_dtype(dtype: Any, places: int, updates: int) -> Any:
    """The dtype in which NumPy adds so many updates to so many places."""
    return dtype if updates <= SHORT or CROWD * places > updates else np.dtype(_NUMPYS.get(dtype.name, dtype))


def _crowded(out: Any, updates: Any, loop_op: str) -> bool:
    """Whether updates of an array are added in double the precision."""
    if out.dtype not in _SUMMED or loop_op not in ("add", "sub") or updates.size <= SHORT:
        return False
    many = out.size * _itemsize(_SUMMED[out.dtype]) > _nominal().second.bytes and out.itemsize >= 4
    costly = many or _SUMMED[out.dtype] == out.dtype
    return (CROWD_OF_MANY if costly else CROWD) * out.size <= updates.size


def shares(out: Any, updates: Any, shape: tuple[int, ...], loop_op: str | None) -> int:
    """In how many shares updates are collected, 0 where they change the result itself; `shape` is that of the indices.
    One share is for wider sums, or for streams, which a chain of products or of larger ones waits less for.

    The order of additions hangs on it: so it is the nominal machine that says what pays, with two cores.
    """
    machine = _nominal()
    known = out.dtype in _INTEGERS or out.dtype in _SUMMED
    if loop_op not in _OPS or not known or (out.dtype[0] == "c" and loop_op not in ("add", "sub")):
        return 0
    crowded = _crowded(out, updates, loop_op)
    places = out.size * (2 if crowded else 1)
    far = out.size * out.itemsize > machine.second.bytes
    each = _UPDATE * (2 if crowded and _SUMMED[out.dtype] == out.dtype else 1)
    each += machine.last.line_ns * machine.far if far else 0.0
    time = math.prod(shape) * each + updates.size * _ELEMENT

    def price(count: int) -> float:
        return time / 2 + count * places * _PLACE + machine.wake_ns / 2  # workers still look for work, as a rule

    longest = max(shape, default=0)
    if longest < 16 or price(2) > GAIN * time:
        chains = out.dtype in _INTEGERS or loop_op not in ("add", "sub")  # other sums are crowded or far
        return int(crowded or (chains and not far and longest >= STREAMS * FEWEST and CROWD * out.size <= updates.size))
    return 4 if price(4) < LOSS * price(2) else 2


def emit_shares(
    ctx: Any, out: Any, updates: Any, shape: tuple[int, ...], parts: int, group: Callable[..., None], loop_op: str
) -> None:
    """`group(batch, add)` for all of `shape`, in parts of its longest axis on threads, each into places of its own,
    which are then brought to those of `out` by `loop_op`.

    They start at what leaves anything as it is: sums at -0, or at 0 for what is subtracted.
    """
    b, axis = ctx.b, shape.index(max(shape))
    crowded = _crowded(out, updates, loop_op)
    wide = _SUMMED[out.dtype] if crowded else out.dtype
    # Lines of the cache between the parts: threads that write to one line wait for each other.
    apart = -(-2 * _nominal().line // (_itemsize(wide) * max(math.prod(out.shape[1:]), 1))) if parts > 1 else 0
    shape_of_sums = (parts, out.shape[0] + apart, *out.shape[1:]) if out.shape else (parts,)
    sums = ctx.temporary(wide, shape_of_sums)
    size = shape[axis] // parts
    # Wide windows of places that lie far away fill the caches' lines by themselves.
    near = out.size * _itemsize(wide) <= _nominal().second.bytes
    in_streams = near or updates.size <= NARROW * math.prod(shape) or ctx.params["indices_are_sorted"]
    # What each addition loses, where sums cannot be wider.
    rests = ctx.temporary(wide, shape_of_sums) if crowded and wide == out.dtype else None
    nothing = _nothing(b, wide, loop_op)
    combine = "add" if loop_op == "sub" else loop_op

    def flat(array: Any) -> Any:
        """Places as one axis: long loops over them, however short their rows."""
        return array.reshaped((parts, array.size // parts))

    def some(number: int, first: Any, part: Any) -> None:
        def add(place: tuple, value: Any) -> None:
            at = (part, *place)
            value = value if value.dtype == wide else b.convert(value, wide)
            if rests is None:
                ctx.store(sums, at, b.op(combine, ctx.load(sums, at), value))
                return
            total, lost = two_sum(b, b.let(ctx.load(sums, at)), b.let(value))
            ctx.store(sums, at, total)
            ctx.store(rests, at, b.op("add", ctx.load(rests, at), lost))

        def added(streams: int, begin: int, each: int) -> None:
            """`each` updates from `begin` on, and from where these end, ...: one of each stream in turn."""

            def turn(index: tuple) -> None:
                for stream in range(streams):
                    start = b.op("add", first, b.index(begin + stream * each))
                    group((*index[:axis], b.op("add", index[axis], start), *index[axis + 1 :]), add)

            if each:
                loops(b, (*shape[:axis], each, *shape[axis + 1 :]), turn, "sequential")

        streams = STREAMS if in_streams and number >= STREAMS * FEWEST else 1
        each, rest = divmod(number, streams)
        added(streams, 0, each)
        added(1, number - rest, rest)

    # The schedule may take a loop of four for lanes.
    with b.loop(parts, "threads", "part", (("grain", 1),)) if parts > 1 else b.loop(parts) as part:

        def start(index: tuple) -> None:
            for array in (sums, rests):
                if array is not None:
                    ctx.store(flat(array), (part, *index), nothing)

        loops(b, (out.size,), start)
        some(size, b.op("mul", part, size), part)
    if rest := shape[axis] % parts:
        some(rest, b.index(parts * size), b.index(0))

    if out.contiguous:
        whole, target = (out.size,), out.reshaped((out.size,))
        totals, losses = flat(sums), None if rests is None else flat(rests)
    else:
        whole, target, totals, losses = out.shape, out, sums, rests

    def total(index: tuple) -> None:
        value = ctx.load(target, index)
        value = value if value.dtype == wide else b.convert(value, wide)
        for part in range(parts):
            at = (b.index(part), *index)
            found = ctx.load(totals, at)
            value = b.op(loop_op, value, found if losses is None else with_lost(b, b.let(found), ctx.load(losses, at)))
        ctx.store(target, index, value if wide == out.dtype else b.convert(value, out.dtype))

    loops(b, whole, total)
