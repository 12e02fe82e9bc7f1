"""LAPACK over stacks of matrices: the loop over the stack, whose chunks run on several threads.

LAPACK is column-major and arrays are row-major, so what it sees of an array is the transpose; rules choose the
routine's flags so that no copy is needed, or copy the transpose. A matrix is the work of one thread: how a stack is cut
depends on sizes alone, and results do not depend on the number of threads.

What nothing reads is not computed: `eigh` without its vectors is `syevd` with job N, at half the time. Measured: with
two threads of OpenBLAS's on a loaded machine of two cores `gesdd` of 500 x 500 took 204 ms instead of 37, `syevd`
without vectors seconds instead of 19 ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.lax.records.nests import loops
from pullback.loops.ir import ITEMSIZE
from pullback.util import dtypes

CHUNKS = 16  # pieces of a stack, at most, each with scratch memory of its own
WORTH_THREADS = 30_000  # ns of a whole stack
OF_A_CALL = 1000  # ns that a call of LAPACK takes for a matrix of no size

Scratch = tuple[Any, Sequence[int]]


def scratch(dtype: Any, *shape: int) -> Scratch:
    """Uninitialized memory that the work on one matrix needs; a shape without elements has one."""
    return dtype, tuple(max(int(n), 1) for n in shape)


def for_each(ctx: Any, batch: Sequence[int], work: float, memory: Sequence[Scratch], body: Callable[..., None]) -> None:
    """`body(matrix, *memory)` for each index of a stack.

    `matrix(storage, ndim)` is the matrix (or vector) of a storage there; `memory` becomes a storage for each entry;
    `work`: additions and multiplications for one matrix.
    """
    n = math.prod(batch)
    if n == 0:
        return
    chunks = min(n, CHUNKS) if n * (OF_A_CALL + work / 2) > WORTH_THREADS else 1
    size = -(-n // chunks)
    chunks = -(-n // size)
    held = [ctx.temporary(_name(d), (chunks, padded(_name(d), shape)), "work") for d, shape in memory]
    b = ctx.b

    def run(i: Any, chunk: Any) -> None:
        def matrix(storage: Any, ndim: int = 2) -> Any:
            shape = storage.shape[storage.ndim - ndim :] if ndim else ()
            return storage.reshaped((n, *shape)).at(i)

        own = [h.at(chunk).slice((0,), (math.prod(shape),)).reshaped(shape) for h, (_, shape) in zip(held, memory)]
        body(matrix, *own)

    with ctx.blas_alone():
        if n == 1:
            run(0, 0)
        elif chunks == 1:
            with b.loop(n, "sequential") as i:
                run(i, 0)
        else:
            with b.loop(chunks, "threads", "chunk", (("grain", 1),)) as chunk:
                start = b.let(b.mul(chunk, b.index(size)))
                count = b.op("min", b.index(size), b.sub(b.index(n), start)) if n % size else b.index(size)
                with b.loop(count, "sequential") as i:
                    run(b.let(b.add(start, i)), chunk)


def _name(dtype: Any) -> str:
    return dtypes.short_name(np.dtype(dtype))


def padded(dtype: str, shape: Sequence[int]) -> int:
    """Elements of a shape, to the end of a cache line: threads do not write lines of others."""
    line = 64 // ITEMSIZE[dtype]
    return -(-math.prod(shape) // line) * line


def fill_unless(ctx: Any, info: Any, targets: Sequence[Any]) -> None:
    """NaN everywhere in the targets if LAPACK reported failure in `info`."""
    with ctx.if_(ctx.b.op("ne", ctx.load(info, (0,)), 0)):
        fill_nan(ctx, targets)


def fill_nan(ctx: Any, targets: Sequence[Any]) -> None:
    """NaN everywhere in the targets."""
    for target in targets:
        value: complex = complex("nan+nanj") if target.dtype.startswith("c") else float("nan")
        ctx.fill(target, ctx.b.const(target.dtype, value))


def is_finite(ctx: Any, matrix: Any) -> Any:
    """Whether no element of a storage is infinite or NaN, as a bool."""
    b = ctx.b
    real = {"c64": "f32", "c128": "f64"}.get(matrix.dtype, matrix.dtype)
    total = b.const(real, 0)
    for part in ("real", "imag") if real != matrix.dtype else ("",):
        flat = matrix.reshaped((matrix.size,))
        with b.reduce(matrix.size, b.const(real, 0), "add") as r:
            x = ctx.load(flat, (r.i,))
            x = b.op(part, x) if part else x
            r.update(b.add(r.var, b.mul(x, b.const(real, 0))))  # 0 * inf is NaN
        total = b.add(total, r.result)
    return b.op("eq", total, b.const(real, 0))


def zero_outside(ctx: Any, target: Any, inside: Callable[[Any, Any], Any]) -> None:
    """Zero where `inside(i, j)` does not hold."""
    b = ctx.b
    loops(
        b,
        target.shape,
        lambda at: ctx.store(
            target, at, b.select(inside(at[0], at[1]), ctx.load(target, at), b.const(target.dtype, 0))
        ),
    )
