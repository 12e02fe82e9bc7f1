"""The lowering of discrete Fourier transforms: an axis at a time, by the passes of ext/fourier, which threads share.

Very many transforms of a few numbers are straight code of the program. Lengths above LARGEST_LOCAL are transforms of
n1 and of n2, n1 n2 = n: with j = j1 n2 + j2 and k = k1 + n1 k2 the sum over j2 of w^(j2 k1) w2^(j2 k2) times the sum
over j1 of w1^(j1 k1) x[j]. What is between lies as [j2, k1], so that both read and the second writes neighbours
together.

Measured: as loop nests of the program passes took 12 to 100 ms to compile for each length, where JAX takes 15; as calls
they take 5 to 12.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.lax.fourier.codelets import Codelets
from pullback.lax.fourier.plans import LARGEST_LOCAL, Plan, block_width, plan_of, split_length, work_length
from pullback.loops.ir import Expr
from pullback.loops.ir.types import COMPLEX_OF, REAL_OF

# From here on the library's order of walking through memory is no worse.
LARGEST = 1 << 22
# Transforms up to this length are straight code of the program where there are many; lanes of complex ones of eight are
# full in the passes, too.
LARGEST_CODELET, LARGEST_COMPLEX_CODELET = 8, 7
# Up to so many numbers calls of passes are quick enough. Measured (single precision, ms to compile and us to run):
# 8 x 8 x 8 as straight code 40 and 0.8, as calls 4 and 1.2, in JAX 12 and 3.9; 1,000 real rows of 8 21 and 2.3, as
# calls 4 and 4.3, in JAX 16 and 17.
MOST_CALLED = 1 << 13
# Rows of transforms below a length go through passes together, as many as fill the widest vectors
# (ext/fourier/tasks.h).
TOGETHER, TOGETHER_BELOW = 16, 128
# What numbers of one transform take for each level of a transform of two.
LEVEL_NS = 0.15

# Kinds of ext/fourier/fourier.h.
ROWS, COLUMNS, REAL_ROWS, ROWS_TO_REAL, TURNED_COLUMNS, UNTANGLE, TANGLE, ARRAYS = range(8)


def generates(lengths: tuple[int, ...], real: bool) -> bool:
    """Whether the passes do transforms of these lengths over the last axes of an array."""
    for k, n in enumerate(reversed(lengths)):
        if k == 0 and real and n % 2 == 0:
            n //= 2
        if work_length(n) <= LARGEST_LOCAL:
            continue
        if k or n > LARGEST or split_length(n) is None:
            return False
    return True


def complex_passes(ctx: Any, source: Any, result: Any, axes: list[int], sign: int, divisor: int) -> None:
    """Transforms along `axes`, one after the other, of a complex array that is not overwritten, over `divisor`."""
    for k, axis in enumerate(axes):
        last = k == len(axes) - 1
        target = result if last else ctx.temporary(source.dtype, source.shape, "spectrum")
        complex_axis(ctx, source, target, axis, sign, divisor if last else 1)
        source = target


def complex_axis(ctx: Any, source: Any, target: Any, axis: int, sign: int, divisor: int) -> None:
    """target = the transform of source along one axis, over `divisor`; both row-major, of one shape."""
    shape = source.shape
    n, outer, inner = shape[axis], math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    dtype = REAL_OF[source.dtype]
    work = _Calls(ctx, dtype, sign, divisor)
    if _is_straight(n, outer * inner, LARGEST_COMPLEX_CODELET):
        _straight(ctx, source, target, n, inner, sign, divisor)
        return
    if inner == 1:
        work.complex_rows(source, target, outer, n)
        return
    plan = plan_of(n, dtype)
    width = block_width(n, inner, dtype)
    if width == inner:
        with work.chunks(outer, n, inner) as (o, count):
            at = ctx.b.mul(o, ctx.b.index(n * inner))
            work.call(ARRAYS, count, inner, plan, (source, at), (target, at))
    else:
        with work.blocks(outer, inner, width, n) as (o, start, _):
            at = ctx.b.add(ctx.b.mul(o, ctx.b.index(n * inner)), start)
            work.call(COLUMNS, ctx.b.index(width), inner, plan, (source, at), (target, at))


def _is_straight(n: int, count: int, largest: int) -> bool:
    """Whether `count` transforms of n numbers are straight code; the passes have none of two and fewer."""
    return n <= 2 or (n <= largest and count * n > MOST_CALLED)


def _straight(ctx: Any, source: Any, target: Any, n: int, inner: int, sign: int, divisor: int) -> None:
    b, codelets = ctx.b, Codelets(ctx.b, REAL_OF[source.dtype], sign)
    with ctx.loops((math.prod(source.shape) // (n * inner), inner)) as (o, q):
        first = b.add(b.mul(o, b.index(n * inner)), q)
        places = [b.add(first, b.index(k * inner)) for k in range(n)]
        values = []
        for place in places:
            z = b.let(b.load(source.buffer, b.add(place, b.index(source.offset))))
            values.append(codelets.pinned((b.op("real", z), b.op("imag", z))))
        for place, z in zip(places, codelets.dft(values)):
            whole = b.op("complex", *codelets.both(codelets.scaled(z, 1 / divisor)))
            b.store(target.buffer, b.add(place, b.index(target.offset)), whole)


def real_axis(ctx: Any, source: Any, target: Any) -> None:
    """target[..., n // 2 + 1] = the first half of the transform of the real source[..., n] along the last axis."""
    b, n, rows = ctx.b, source.shape[-1], math.prod(source.shape[:-1])
    dtype, half = source.dtype, n // 2
    work = _Calls(ctx, dtype, -1, 1)
    if _is_straight(n, rows, LARGEST_CODELET):
        codelets = Codelets(b, dtype, -1)
        with ctx.loops((rows,)) as (o,):
            given = [ctx.load(source.reshaped((rows, n)), (o, k)) for k in range(n)]
            values = codelets.dft([(b.let(x), None) for x in given])
            for k in range(half + 1):
                ctx.store(target.reshaped((rows, half + 1)), (o, k), b.op("complex", *codelets.both(values[k])))
        return
    length = half if n % 2 == 0 else n
    if work_length(length) <= LARGEST_LOCAL:
        plan = plan_of(length, dtype, n if n % 2 == 0 else 0)
        with work.chunks(rows, n) as (o, count):
            places = b.mul(o, b.index(n)), b.mul(o, b.index(half + 1))
            work.call(REAL_ROWS, count, n, plan, (source, places[0]), (target, places[1]))
        return
    whole = ctx.temporary(COMPLEX_OF[dtype], (rows, length), "whole")
    if n % 2 == 0:
        work.complex_rows(source, whole, rows, half)  # neighbours are the parts of a number
        work.by_circle(UNTANGLE, whole, target, rows, n, (half, half + 1))
        return
    given = ctx.temporary(COMPLEX_OF[dtype], (rows, n), "given")
    with ctx.loops((rows, n)) as (o, k):
        zero = b.const(dtype, 0.0)
        ctx.store(given, (o, k), b.op("complex", ctx.load(source.reshaped((rows, n)), (o, k)), zero))
    work.complex_rows(given, whole, rows, n)
    with ctx.loops((rows, half + 1)) as (o, k):
        ctx.store(target.reshaped((rows, half + 1)), (o, k), ctx.load(whole, (o, k)))


def real_axis_back(ctx: Any, source: Any, target: Any, divisor: int) -> None:
    """target[..., n] = the real inverse transform of the half spectrum source[..., n // 2 + 1], over `divisor`.

    The imaginary parts of elements 0 and, for an even n, n / 2 are taken as zero.
    """
    b, n, rows = ctx.b, target.shape[-1], math.prod(target.shape[:-1])
    dtype, half, paired = target.dtype, n // 2, n % 2 == 0
    work = _Calls(ctx, dtype, 1, divisor)
    spectrum, result = source.reshaped((rows, half + 1)), target.reshaped((rows, n))
    if _is_straight(n, rows, LARGEST_CODELET):
        codelets = Codelets(b, dtype, 1)
        with ctx.loops((rows,)) as (o,):
            given = [b.let(ctx.load(spectrum, (o, k))) for k in range(half + 1)]
            values = [codelets.pinned((b.op("real", z), b.op("imag", z))) for z in given]
            values[0] = values[0][0], None
            if paired:
                values[half] = values[half][0], None
            back = values[n - half - 1 : 0 : -1]
            values += [codelets.pinned((re, None if im is None else codelets.minus(im))) for re, im in back]
            for k, z in enumerate(codelets.dft(values)):
                ctx.store(result, (o, k), codelets.scaled(z, 1 / divisor)[0])
        return
    length = half if paired else n
    if work_length(length) <= LARGEST_LOCAL:
        plan = plan_of(length, dtype, n if paired else 0)
        with work.chunks(rows, n) as (o, count):
            places = b.mul(o, b.index(half + 1)), b.mul(o, b.index(n))
            work.call(ROWS_TO_REAL, count, n, plan, (source, places[0]), (target, places[1]))
        return
    whole = ctx.temporary(COMPLEX_OF[dtype], (rows, length), "whole")
    if paired:
        work.by_circle(TANGLE, source, whole, rows, n, (half + 1, half))
        work.complex_rows(whole, target, rows, half)
        return
    with ctx.loops((rows, n)) as (o, k):  # the whole spectrum from its half
        beyond = b.op("gt", k, b.index(half))
        z = b.let(ctx.load(spectrum, (o, b.select(beyond, b.sub(b.index(n), k), k))))
        im = b.let(b.op("imag", z))
        im = b.select(beyond, b.neg(im), b.select(b.op("eq", k, b.index(0)), b.const(dtype, 0.0), im))
        ctx.store(whole, (o, k), b.op("complex", b.op("real", z), im))
    back = ctx.temporary(COMPLEX_OF[dtype], (rows, n), "back")
    work.complex_rows(whole, back, rows, n)
    with ctx.loops((rows, n)) as (o, k):
        ctx.store(result, (o, k), b.op("real", ctx.load(back, (o, k))))


class _Calls:
    """Calls of the passes for one type, direction and divisor of the results."""

    def __init__(self, ctx: Any, dtype: str, sign: int, divisor: int) -> None:
        self.ctx, self.b, self.dtype, self.divisor = ctx, ctx.b, dtype, divisor
        self.backward = int(sign > 0)

    def call(
        self,
        kind: int,
        count: Expr,
        inner: int,
        plan: Plan,
        x: tuple[Any, Expr],
        out: tuple[Any, Expr],
        block: Expr | None = None,
        divisor: int | None = None,
    ) -> None:
        """What ext/fourier/fourier.h says; x and out are memory and the number of an element in it."""
        b, ctx = self.b, self.ctx
        numbers = [
            b.index(kind), count, b.index(inner), b.index(self.backward),
            b.index(self.divisor if divisor is None else divisor), b.index(0) if block is None else block,
        ]  # fmt: skip
        tables = [ctx.address(ctx.constant(part, "plan")) for part in plan]
        places = [b.address(memory.buffer, b.add(at, b.index(memory.offset))) for memory, at in (x, out)]
        ctx.call(f"pb_fourier_{self.dtype}", *numbers, *tables, *places)

    def complex_rows(self, source: Any, target: Any, rows: int, n: int) -> None:
        """The transforms of rows of n complex numbers that lie one after the other."""
        if work_length(n) > LARGEST_LOCAL:
            self._long(source, target, rows, n)
            return
        plan = plan_of(n, self.dtype)
        with self.chunks(rows, n) as (o, count):
            at = self.b.mul(o, self.b.index(n))
            self.call(ROWS, count, n, plan, self._complex(source, at), self._complex(target, at))

    def _complex(self, memory: Any, at: Expr) -> tuple[Any, Expr]:
        """Element `at` of complex numbers, whose parts may be elements of a real array."""
        return (memory, at) if memory.dtype in REAL_OF else (memory, self.b.mul(at, self.b.index(2)))

    @contextmanager
    def chunks(self, rows: int, n: int, inner: int = 1) -> Iterator[tuple[Expr, Expr]]:
        """(the first row, how many rows) of pieces of work that are worth a task each; rows are of `inner` columns."""
        each = -(-rows // _pieces(rows * inner * _nanoseconds(n), rows))
        if work_length(n) * inner < TOGETHER_BELOW:
            each = min(-(-each // TOGETHER) * TOGETHER, rows)
        b, pieces = self.b, -(-rows // each)
        if pieces <= 1:
            yield b.index(0), b.index(rows)
            return
        with b.loop(pieces, "threads", "piece", (("grain", 1),)) as piece:
            first = b.let(b.mul(piece, b.index(each)))
            yield first, b.min(b.index(each), b.sub(b.index(rows), first))

    @contextmanager
    def blocks(self, outer: int, inner: int, width: int, n: int) -> Iterator[tuple[Expr, Expr, Expr]]:
        """(number of the array, first column, number of the block) of blocks of neighbouring columns."""
        b, across = self.b, -(-inner // width)
        total = outer * across
        pieces = _pieces(total * _nanoseconds(n) * width, total)
        attrs = (("grain", -(-total // pieces)),) if pieces > 1 else ()
        with b.loop(total, "threads" if attrs else "sequential", "block", attrs) as flat:
            o = b.floordiv(flat, b.index(across)) if outer > 1 else b.index(0)
            block = b.floormod(flat, b.index(across)) if outer > 1 else flat
            start = b.mul(block, b.index(width))
            yield o, start if inner % width == 0 else b.let(b.min(start, b.index(inner - width))), block

    def by_circle(self, kind: int, source: Any, target: Any, rows: int, n: int, sizes: tuple[int, int]) -> None:
        """What is before or after the transform of half the length of long rows of n real numbers."""
        b, (given, made) = self.b, sizes
        plan, half = plan_of(2, self.dtype, n), n // 2
        size = 1 << 13
        with self.blocks(rows, half, min(size, half), 2) as (o, start, _):
            x, out = b.mul(o, b.index(given)), b.mul(o, b.index(made))
            self.call(kind, b.index(min(size, half)), n, plan, (source, x), (target, out), start)

    def _long(self, source: Any, target: Any, rows: int, n: int) -> None:
        b, dtype = self.b, self.dtype
        pair = split_length(n)
        assert pair is not None
        n1, n2 = pair
        between = self.ctx.temporary(COMPLEX_OF[dtype], (rows, n2, n1), "between")
        width = block_width(n1, n2, dtype)
        plan = plan_of(n1, dtype, 0, (n, width))
        with self.blocks(rows, n2, width, n1) as (o, start, block):
            row = b.mul(o, b.index(n2))
            x, out = b.add(b.mul(o, b.index(n)), start), b.mul(b.add(row, start), b.index(n1))
            self.call(TURNED_COLUMNS, b.index(width), n2, plan, self._complex(source, x), (between, out), block, 1)
        width = block_width(n2, n1, dtype)
        plan = plan_of(n2, dtype)
        with self.blocks(rows, n1, width, n2) as (o, start, _):
            at = b.add(b.mul(o, b.index(n)), start)
            self.call(COLUMNS, b.index(width), n1, plan, (between, at), self._complex(target, at))


def _pieces(time: float, most: int) -> int:
    """How many pieces of work there are that threads share."""
    from pullback.loops.schedule.apply.parallelize import even_pieces  # these load the compiler: not at import
    from pullback.loops.schedule.machine import NOMINAL

    return even_pieces(time, most) if time > NOMINAL.task_ns else 1


def _nanoseconds(n: int) -> float:
    """What a transform of n numbers is expected to take."""
    work = work_length(n)
    return LEVEL_NS * (2.5 if work != n else 1) * work * math.log2(work) + 5


__all__ = ["complex_passes", "generates", "real_axis", "real_axis_back"]
