"""Sums of many updates into few places, as `scatter_add` and `segment_sum` make them: about as accurate as pairwise.

Added one by one, n updates of one place err by up to n / 2 units in the last place, and how many a place gets is not
known before. So where places get `CROWD` updates on the average, these are added in double the precision: float32 and
narrower in float64, float64 with what each addition loses kept in a second sum (Neumaier). Of many updates there are
four such sums, on threads, whatever the number of threads. Fewer updates of a place are added one by one, as they come.

Measured: sums of 200,000 into 10 took 228 us where those of the threads were neighbours in a line, now 80 to 125.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.lax.records.nests import loops, two_sum, with_lost
from pullback.loops.ir.types import ITEMSIZE

PARTS = 4
MANY = 1 << 16  # updates that are worth threads
SHORT = 128  # updates that are added one by one in pairwise sums, too
CROWD = 4  # updates of a place, on the average, from which on wider sums cost little
CROWD_OF_MANY = 16  # the same where the wide sums leave the second cache: so many NumPy adds one by one, too

_SUMMED = {"f16": "f64", "bf16": "f64", "f32": "f64", "f64": "f64", "c64": "c128", "c128": "c128"}
_NUMPYS = {
    "float16": np.float64, "bfloat16": np.float64, "float32": np.float64, "float64": np.longdouble,
    "complex64": np.complex128, "complex128": np.clongdouble,
}  # fmt: skip
_INTEGERS = {f"{kind}{width}" for kind in "iu" for width in (8, 16, 32, 64)}


def wide_dtype(dtype: Any, places: int, updates: int) -> Any:
    """The dtype in which NumPy adds so many updates to so many places."""
    return dtype if updates <= SHORT or CROWD * places > updates else np.dtype(_NUMPYS.get(dtype.name, dtype))


def parts_of_sums(out: Any, updates: Any, shape: tuple[int, ...]) -> int:
    """In how many sums apart updates are added to places, 0 for none; `shape` is that of the places' indices."""
    if updates.size >= MANY and 2 * PARTS * out.size <= updates.size and max(shape, default=0) >= 4 * PARTS:
        return PARTS if out.dtype in _INTEGERS or out.dtype in _SUMMED else 0
    count = math.prod(shape)
    from pullback.loops.schedule.machine import NOMINAL  # which loads the compiler: not at import

    wide = out.size * ITEMSIZE[_SUMMED.get(out.dtype, out.dtype)]
    crowd = CROWD_OF_MANY if wide > NOMINAL.second.bytes and ITEMSIZE[out.dtype] >= 4 else CROWD
    return int(out.dtype in _SUMMED and count > SHORT and crowd * out.size <= updates.size)


def emit_sums(ctx: Any, out: Any, shape: tuple[int, ...], parts: int, group: Callable[..., None], loop_op: str) -> None:
    """`group(batch, add)` for all of `shape`, in parts of its longest axis on threads, each into sums of its own, which
    are added to `out` or (`loop_op` "sub") subtracted from it.

    They start at -0, which added to anything leaves it as it is, or at 0 for what is subtracted.
    """
    b, axis = ctx.b, shape.index(max(shape))
    wide = _SUMMED.get(out.dtype, out.dtype)
    # Lines of the cache between the parts: threads that write to one line wait for each other.
    from pullback.loops.schedule.machine import NOMINAL  # which loads the compiler: not at import

    apart = -(-2 * NOMINAL.line // (ITEMSIZE[wide] * max(math.prod(out.shape[1:]), 1))) if parts > 1 else 0
    shape_of_sums = (parts, out.shape[0] + apart, *out.shape[1:]) if out.shape else (parts,)
    sums = ctx.temporary(wide, shape_of_sums)
    size = shape[axis] // parts
    rests = ctx.temporary(wide, shape_of_sums) if wide == out.dtype and out.dtype in _SUMMED else None
    nothing = b.const(wide, 0) if out.dtype in _INTEGERS else b.const("f64", 0.0 if loop_op == "sub" else -0.0)
    nothing = nothing if nothing.dtype == wide else b.convert(nothing, wide)

    def some(number: Any, first: Any, part: Any) -> None:
        def add(place: tuple, value: Any) -> None:
            at = (part, *place)
            value = value if value.dtype == wide else b.convert(value, wide)
            if rests is None:
                ctx.store(sums, at, b.op("add", ctx.load(sums, at), value))
                return
            total, lost = two_sum(b, b.let(ctx.load(sums, at)), b.let(value))
            ctx.store(sums, at, total)
            ctx.store(rests, at, b.op("add", ctx.load(rests, at), lost))

        def of(index: tuple) -> None:
            group((*index[:axis], b.op("add", index[axis], first), *index[axis + 1 :]), add)

        loops(b, (*shape[:axis], number, *shape[axis + 1 :]), of, "sequential")

    # The schedule may take a loop of four for lanes.
    with b.loop(parts, "threads", "part", (("grain", 1),)) if parts > 1 else b.loop(parts) as part:

        def start(index: tuple) -> None:
            for array in (sums, rests):
                if array is not None:
                    ctx.store(array, (part, *index), nothing)

        loops(b, out.shape, start)
        some(size, b.op("mul", part, size), part)
    if rest := shape[axis] % parts:
        some(rest, b.index(parts * size), b.index(0))

    def total(index: tuple) -> None:
        value = ctx.load(out, index)
        value = value if value.dtype == wide else b.convert(value, wide)
        for part in range(parts):
            at = (b.index(part), *index)
            found = ctx.load(sums, at)
            value = b.op(loop_op, value, found if rests is None else with_lost(b, b.let(found), ctx.load(rests, at)))
        ctx.store(out, index, value if wide == out.dtype else b.convert(value, out.dtype))

    loops(b, out.shape, total)
