"""Products of matrices through BLAS, and Fortran calls in general."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.compiler.lower.storage import Storage, merged_stride
from pullback.compiler.products import gram, panels, tiles, vector_products
from pullback.compiler.products.packing import PAIRED
from pullback.compiler.products.words import HALF_WORDS, in_words
from pullback.loops.ir import ITEMSIZE, NP_DTYPE, Address, Const, Expr
from pullback.loops.ir.types import is_int
from pullback.util import dtypes
from pullback.util.lapack import integer

if TYPE_CHECKING:
    from pullback.compiler.lower.contexts import NestContext

LEAST_CALLED = 16 * 16 * 16  # multiply-adds below which a loop nest beats the call
THIN, SHORT = 4, 32  # results in a row or column, and contracted elements, below which the same holds,
WORTH_SHARING = 1 << 16  # from as many multiply-adds on
WIDE = {"f16": "f32", "bf16": "f32"}  # in which products of these are computed
PREFIX = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}


def call_fortran(ctx: NestContext, symbol: str, args: tuple[Any, ...], result: str | None = None) -> Expr | None:
    """Call a Fortran routine: every argument goes by reference, scalars through memory cells."""
    return ctx.b.call(symbol, *(_by_reference(ctx, arg) for arg in args), result=result)


def _by_reference(ctx: NestContext, arg: Any) -> Address:
    if isinstance(arg, Address):
        return arg
    if isinstance(arg, Storage):
        return ctx.address(arg)
    if isinstance(arg, str):
        return _cell_of_constant(ctx, np.frombuffer(arg.encode("ascii"), np.uint8))
    if isinstance(arg, (bool, int)):
        return _cell_of_constant(ctx, np.asarray([arg], integer()))
    if isinstance(arg, (np.ndarray, np.generic)):
        return _cell_of_constant(ctx, np.asarray(arg).reshape(-1))
    if isinstance(arg, Const):
        return _cell_of_constant(ctx, np.asarray([arg.value], integer() if is_int(arg.dtype) else NP_DTYPE[arg.dtype]))
    if isinstance(arg, Expr):
        value = ctx.b.convert(arg, dtypes.short_name(integer())) if is_int(arg.dtype) else arg
        cell = ctx.local(value.dtype, (1,), "cell")  # of each thread its own
        ctx.store(cell, (0,), value)
        return ctx.address(cell)
    raise TypeError(f"call_fortran: cannot pass {arg!r}; expected a Storage, an expression, a number or a string")


def _cell_of_constant(ctx: NestContext, value: np.ndarray) -> Address:
    return ctx.b.address(ctx.lowering.scalar_constant(value))


def matmul(ctx: NestContext, out: Storage, x: Storage, y: Storage, alpha: float = 1.0, beta: float = 0.0) -> None:
    """out[m, n] = alpha * x[m, k] @ y[k, n] + beta * out.

    Storages have two axes and any strides. Most run on our own kernel (panels.py); what is scaled or added to, and
    some of x with its own transpose, go through BLAS, which wants copies of some operands; products with vectors, small
    ones and other types become a loop nest. Large ones are cut into blocks that threads share, in a way that depends on
    the sizes alone.
    """
    (m, k), n = x.shape, y.shape[1]
    if m == 0 or n == 0:
        return
    if alpha == 1.0 and beta == 0.0 and min(m, n) <= vector_products.MAX_VECTORS_FAR:
        turned = n < m
        sides = (out, x, y) if not turned else (s.transposed((1, 0)) for s in (out, y, x))
        if vector_products.multiply(ctx, *sides):
            return
    # x with its own transpose: half of the work
    own = _is_gram(x, y) and m * n * k > ONE_THREAD_WORK and out.dtype not in panels.REAL and _half_pays(out, k)
    if alpha == 1.0 and beta == 0.0 and own and gram.suits(out, x):
        gram.multiply(ctx, out, x)
        return
    if own and n < panels.GRAM_LEAST and panels.pieces_of(out, x, y) > 1:
        own = False
    if alpha == 1.0 and beta == 0.0 and own and panels.gram_suits(out, x):
        held = ctx.temporary(out.dtype, out.shape, "half")
        panels.gram(ctx, held, x)
        gram.mirror(ctx, out, held.transposed((1, 0)))
        return
    if alpha == 1.0 and beta == 0.0 and panels.suits(out, x, y) and not own:
        panels.multiply(ctx, out, x, y)
        return
    # A product with a vector is bound by memory; a nest shares the reading among threads, which gemv does badly.
    thin = min(m, n) < THIN and k < SHORT and m * n * k > WORTH_SHARING
    if out.dtype not in PREFIX or m * n * k <= LEAST_CALLED or k == 0 or n == 1 or m == 1 or thin:
        _loops(ctx, out, x, y, alpha, beta)
        return
    if _row_leading(out) is None and _row_leading(out.transposed((1, 0))) is not None:
        matmul(ctx, out.transposed((1, 0)), y.transposed((1, 0)), x.transposed((1, 0)), alpha, beta)
        return
    target = out if _row_leading(out) is not None else ctx.temporary(out.dtype, out.shape)
    if target is not out and beta:
        ctx.copy(target, out)
    half = alpha == 1.0 and beta == 0.0 and out.dtype in ("f32", "f64") and _is_gram(x, y) and target.contiguous
    x, y = _blas_layout(ctx, x), _blas_layout(ctx, y)
    pieces = _pieces_of_k(m, n, k) if beta == 0.0 else 1
    if pieces > 1:
        _split_k(ctx, target, x, y, alpha, pieces, half)
    elif half:
        _gram(ctx, target, x, y)
    else:
        _blocks(ctx, target, x, y, alpha, beta)
    if half:
        gram.mirror(ctx, target)
    if target is not out:
        ctx.copy(out, target)


# Contracted elements from which half of a product with its own transpose takes longer than to copy the other half:
# measured on two cores of a Zen 5, where 2000 x 16 float64 took 2.6 ms by halves, and takes 0.9.
MIRRORED, MIRRORED_FAR = 32, 96
FAR_BYTES = 1 << 23  # bytes of a result that is written to memory, and read from there
LEAST_BLOCK = 128  # rows or columns of a block that one thread computes, at least
LEAST_PIECE = 1024  # of the contracted axis, at least, in one piece
WORTH_THREADS = 1 << 20  # multiply-adds
ONE_THREAD_WORK = 1 << 18  # multiply-adds up to which OpenBLAS itself uses one thread


def _blocks(ctx: NestContext, out: Storage, x: Storage, y: Storage, alpha: float, beta: float) -> None:
    """gemm by blocks of rows or columns, whichever there are more of."""
    (m, k), n = x.shape, y.shape[1]
    extent = max(m, n)
    size = max(LEAST_BLOCK, -(-extent // 512) * 16)
    work = m * n * k * (4 if out.dtype in panels.REAL else 1)
    if work < WORTH_THREADS or extent < 2 * LEAST_BLOCK:
        with one_thread(ctx, work):
            _gemm(ctx, out, x, y, alpha, beta)
        return
    b = ctx.b
    with one_thread(ctx, work), b.loop(-(-extent // size), "threads", "block", (("grain", 1),)) as block:
        start = b.mul(block, b.index(size))
        count: Any = b.op("min", b.index(size), b.sub(b.index(extent), start)) if extent % size else size
        if m >= n:
            _gemm(ctx, out.slice((start, 0), (size, n)), x.slice((start, 0), (size, k)), y, alpha, beta, rows=count)
        else:
            _gemm(ctx, out.slice((0, start), (m, size)), x, y.slice((0, start), (k, size)), alpha, beta, columns=count)


def _gram(ctx: NestContext, out: Storage, x: Storage, y: Storage) -> None:
    """The upper triangle of x @ x', x' = y, in pieces of equal work that threads share.

    Of a grid of blocks, those on the diagonal are syrk; block (i, j) above it is cut into an upper half, the piece (i,
    j), and a lower one, the piece (j, i).
    """
    n, k = x.shape
    if n * n * k < WORTH_THREADS or n < 2 * LEAST_BLOCK:
        with one_thread(ctx, n * n * k):
            _syrk(ctx, out, x)
        return
    b = ctx.b
    count = 2 if n < 8 * LEAST_BLOCK else 4
    size = -(-n // count)
    half = size // 2
    with one_thread(ctx), b.loop(count * count, "threads", "piece", (("grain", 1),)) as piece:
        i, j = b.let(b.floordiv(piece, b.index(count))), b.let(b.floormod(piece, b.index(count)))
        first, second = (b.let(b.mul(b.op(which, i, j), b.index(size))) for which in ("min", "max"))
        columns = b.let(b.op("min", b.index(size), b.sub(b.index(n), second)))
        with b.if_(b.op("eq", i, j)) as branch:
            _syrk(ctx, out.slice((first, first), (size, size)), x.slice((first, 0), (size, k)), rows=columns)
        with branch.otherwise():
            lower = b.let(b.op("gt", i, j))
            start = b.let(b.add(first, b.select(lower, b.index(half), b.index(0))))
            rows = b.select(lower, b.index(size - half), b.index(half))
            corner, left = out.slice((start, second), (half, size)), x.slice((start, 0), (half, k))
            right = y.slice((0, second), (k, size))
            _gemm(ctx, corner, left, right, 1.0, 0.0, rows=rows, columns=columns)


def _pieces_of_k(m: int, n: int, k: int) -> int:
    """Into how many pieces a long contracted axis is cut; 1 where the result is large enough to be cut instead."""
    if m * n * k < WORTH_THREADS or max(m, n) >= 2 * LEAST_BLOCK or k < 2 * LEAST_PIECE:
        return 1
    return min(8, k // LEAST_PIECE)


def _split_k(ctx: NestContext, out: Storage, x: Storage, y: Storage, alpha: float, pieces: int, half: bool) -> None:
    """Partial products over pieces of the contracted axis, then their sum."""
    b = ctx.b
    (m, k), n = x.shape, y.shape[1]
    size = -(-k // pieces)
    size += -size % 16
    pieces = -(-k // size)
    partial = ctx.temporary(out.dtype, (pieces, m, n), "partial")
    with one_thread(ctx, m * n * k), b.loop(pieces, "threads", "piece", (("grain", 1),)) as piece:
        start = b.mul(piece, b.index(size))
        count: Any = b.op("min", b.index(size), b.sub(b.index(k), start)) if k % size else size
        left, right = x.slice((0, start), (m, size)), y.slice((start, 0), (size, n))
        if half:
            _syrk(ctx, partial.at(piece), left, inner=count)
        else:
            _gemm(ctx, partial.at(piece), left, right, alpha, 0.0, inner=count)
    with ctx.loops((m, n)) as (i, j):
        total = ctx.load(partial, (0, i, j))
        for number in range(1, pieces):
            total = b.add(total, ctx.load(partial, (number, i, j)))
        ctx.store(out, (i, j), total)


@contextmanager
def one_thread(ctx: NestContext, work: int = ONE_THREAD_WORK + 1) -> Iterator[None]:
    """BLAS on the calling thread alone: the program's threads are ours, and BLAS would have its own wait for them,
    spinning.

    `work` is in multiply-adds; BLAS itself uses one thread for little.
    """
    if work <= ONE_THREAD_WORK:
        yield
        return
    ctx.b.call("pb_blas_begin")
    yield
    ctx.b.call("pb_blas_end")


def _gemm(
    ctx: NestContext,
    out: Storage,
    x: Storage,
    y: Storage,
    alpha: float,
    beta: float,
    *,
    rows: Any = None,
    columns: Any = None,
    inner: Any = None,
) -> None:
    """One call; rows, columns and inner are the sizes where they differ from those of the storages."""
    (m, k), n = x.shape, y.shape[1]
    # Row-major out = x @ y is column-major out' = y' @ x'.
    a, lda, trans_a = _operand(y)
    c, ldb, trans_b = _operand(x)
    scalar = np.dtype({"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}[out.dtype])
    call_fortran(
        ctx,
        PREFIX[out.dtype] + "gemm",
        (
            trans_a,
            trans_b,
            columns or n,
            rows or m,
            inner or k,
            np.asarray(alpha, scalar),
            a,
            lda,
            c,
            ldb,
            np.asarray(beta, scalar),
            out,
            _row_leading(out),
        ),
    )


def _syrk(ctx: NestContext, out: Storage, x: Storage, inner: Any = None, rows: Any = None) -> None:
    """The lower triangle (of column-major out) of x @ x'; rows and inner are sizes that differ from the storages'."""
    n, k = x.shape
    a, lead, trans = _operand(x)
    one, zero = (np.asarray(v, {"f32": "f4", "f64": "f8"}[out.dtype]) for v in (1, 0))
    flags = ("L", "T" if trans == "N" else "N")
    call_fortran(
        ctx, PREFIX[out.dtype] + "syrk", (*flags, rows or n, inner or k, one, a, lead, zero, out, _row_leading(out))
    )


def _is_gram(x: Storage, y: Storage) -> bool:
    """Whether y is the transpose of x, in the same memory."""
    return x.same_memory(y) and x.shape == y.shape[::-1] and x.strides == y.strides[::-1] and x.shape[0] >= 32


def _half_pays(out: Storage, k: int) -> bool:
    """Whether a product with its own transpose had better be computed by half, and mirrored; by sizes alone."""
    return k >= (MIRRORED_FAR if out.size * ITEMSIZE[out.dtype] > FAR_BYTES else MIRRORED)


def _row_leading(s: Storage) -> int | None:
    """The leading dimension of a matrix whose rows are contiguous, or None."""
    rows, columns = s.shape
    if s.strides[1] != 1 and columns > 1:
        return None
    lead = s.strides[0] if rows > 1 else columns
    return lead if lead >= max(columns, 1) else None


def _blas_layout(ctx: NestContext, s: Storage) -> Storage:
    """The matrix itself if BLAS can read it, else a copy."""
    if _row_leading(s) is not None or _row_leading(s.transposed((1, 0))) is not None:
        return s
    return packed(ctx, s)


def _operand(s: Storage) -> tuple[Storage, int, str]:
    """(storage, leading dimension, transposition) of the column-major transpose of a matrix in BLAS layout."""
    lead = _row_leading(s)
    if lead is not None:
        return s, lead, "N"
    lead = _row_leading(s.transposed((1, 0)))
    assert lead is not None
    return s, lead, "T"


def _loops(ctx: NestContext, out: Storage, x: Storage, y: Storage, alpha: float, beta: float) -> None:
    b = ctx.b
    (m, k), n = x.shape, y.shape[1]
    wide = WIDE.get(out.dtype, out.dtype)
    with ctx.loops((m, n)) as (i, j):
        with b.reduce(k, b.const(wide, 0), "or" if wide == "bool" else "add") as r:
            left, right = b.convert(ctx.load(x, (i, r.i)), wide), b.convert(ctx.load(y, (r.i, j)), wide)
            r.update(
                b.op("or", r.var, b.op("and", left, right)) if wide == "bool" else b.add(r.var, b.term(left, right))
            )
        value = r.result
        if alpha != 1.0:
            value = b.mul(value, b.const(wide, alpha))
        if beta != 0.0:
            value = b.add(value, b.mul(b.convert(ctx.load(out, (i, j)), wide), b.const(wide, beta)))
        ctx.store(out, (i, j), b.convert(value, out.dtype))


def packed(ctx: NestContext, s: Storage) -> Storage:
    """A row-major copy."""
    copy = ctx.temporary(s.dtype, s.shape, "packed")
    ctx.copy(copy, s)
    return copy


def dot_general(
    ctx: NestContext,
    out: Storage,
    x: Storage,
    y: Storage,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> None:
    """out[batch..., x's free axes..., y's free axes...] = sum over the contracted axes of x * y.

    x and y may have any strides. Operands of another type than the result are converted first, but for bf16 and
    integers of 8 bits where there is a kernel; results of 16 bits are computed in float32. Batches become a parallel
    loop. A result of other than two axes whose rows lie apart is computed elsewhere, and copied.
    """
    if not out.contiguous and (
        out.ndim != 2 or batch[0] or x.ndim == len(contracting[0]) or y.ndim == len(contracting[1])
    ):
        target = ctx.temporary(out.dtype, out.shape)
        dot_general(ctx, target, x, y, contracting, batch)
        ctx.copy(out, target)
        return
    tiled = tiles.kind_of(x, y, out.dtype) is not None
    if tiled and _by_tiles(ctx, out, x, y, contracting, batch):
        return
    if x.dtype in HALF_WORDS and y.dtype in HALF_WORDS and _by_words(ctx, out, x, y, contracting, batch):
        return
    wide = WIDE.get(out.dtype)
    if wide is not None:
        target = ctx.temporary(wide, out.shape)
        dot_general(ctx, target, x, y, contracting, batch)
        with ctx.loops(out.shape) as index:
            ctx.store(out, index, ctx.b.convert(ctx.load(target, index), out.dtype))
        return
    narrow = x.dtype == y.dtype and WIDE.get(x.dtype) == out.dtype
    paired = narrow and x.dtype == PAIRED
    if not narrow:
        x, y = _as_type(ctx, x, out.dtype), _as_type(ctx, y, out.dtype)
    x3, y3, out3 = _matrices(ctx, out, x, y, contracting, batch)
    sizes = out3.shape[:-2]
    if math.prod(sizes) == 0:
        return
    if narrow and not sizes and min(x3.shape[0], y3.shape[1]) <= vector_products.WORTH_A_PASS:
        turned = y3.shape[1] < x3.shape[0]
        sides = (s.transposed((1, 0)) for s in (out3, y3, x3)) if turned else (out3, x3, y3)
        if vector_products.multiply(ctx, *sides):  # which reads a matrix once, and needs no copy
            return
    if narrow and not paired:
        x3, y3 = _as_type(ctx, x3, out.dtype), _as_type(ctx, y3, out.dtype)
    suits = (sizes or paired) and panels.suits(*(_first(s, sizes) for s in (out3, x3, y3)))
    if suits:
        (panels.batch if sizes else panels.multiply)(ctx, out3, x3, y3)
        return
    x3, y3 = _as_type(ctx, x3, out.dtype), _as_type(ctx, y3, out.dtype)
    with ctx.loops(sizes) as index:
        for i in index:
            x3, y3, out3 = x3.at(i), y3.at(i), out3.at(i)
        matmul(ctx, out3, x3, y3)


def _by_words(
    ctx: NestContext,
    out: Storage,
    x: Storage,
    y: Storage,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
) -> bool:
    """dot_general of integers that fit in 16 bits, two contracted elements at a time; False, with nothing written,
    where that is no gain.

    Measured (EPYC Genoa, AVX-512): i8 of 512 x 512 into i32 1774 us by products of i32, now 619.
    """
    count, m, k, n = _extents(x, y, contracting, batch)
    integers = out.dtype[0] in "iu" and ITEMSIZE[out.dtype] <= 4  # sums are modulo 2**32
    if not count or not integers or min(m, k, n) < 4 or m * n * k < panels.LEAST_WORK:
        return False
    if out.dtype != "i32":
        target = ctx.temporary("i32", out.shape)
        _by_words(ctx, target, x, y, contracting, batch)
        with ctx.loops(out.shape) as index:
            ctx.store(out, index, ctx.b.convert(ctx.load(target, index), out.dtype))
        return True
    x3, y3, out3 = _matrices(ctx, out, x, y, contracting, batch)
    last = x3.ndim - 1
    x3, y3 = in_words(ctx, x3, last, panels.WORDS), in_words(ctx, y3, last - 1, panels.WORDS)
    (panels.batch if out3.ndim > 2 else panels.multiply)(ctx, out3, x3, y3)
    return True


def _by_tiles(
    ctx: NestContext,
    out: Storage,
    x: Storage,
    y: Storage,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
) -> bool:
    """dot_general by instructions on tiles; False, with nothing written, where other kernels do it as well."""
    count, m, k, n = _extents(x, y, contracting, batch)
    if not count or not tiles.suits(m, k, n):
        return False
    x3, y3, out3 = _matrices(ctx, out, x, y, contracting, batch)
    if out3.ndim > 2:
        panels.batch(ctx, out3, x3, y3, tiles.multiply, tiles.held(x3, y3))
    else:
        tiles.multiply(ctx, out3, x3, y3)
    return True


def _extents(
    x: Storage,
    y: Storage,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
) -> tuple[int, int, int, int]:
    """(matrices, m, k, n): how many matrices of m x n sums of k products each."""
    sides = [(x, contracting[0], batch[0]), (y, contracting[1], batch[1])]
    m, n = (math.prod(s.shape[a] for a in range(s.ndim) if a not in c and a not in b) for s, c, b in sides)
    return math.prod(x.shape[a] for a in batch[0]), m, math.prod(x.shape[a] for a in contracting[0]), n


def _matrices(
    ctx: NestContext,
    out: Storage,
    x: Storage,
    y: Storage,
    contracting: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
) -> tuple[Storage, Storage, Storage]:
    """x[batch..., m, k], y[batch..., k, n] and out[batch..., m, n]."""
    (x_contract, y_contract), (x_batch, y_batch) = contracting, batch
    x_free = [a for a in range(x.ndim) if a not in x_contract and a not in x_batch]
    y_free = [a for a in range(y.ndim) if a not in y_contract and a not in y_batch]
    # The contracted axes may go in any order, if it is the same for both: that of the strides of y, then of x.
    pairs = sorted(zip(x_contract, y_contract), key=lambda pair: (-y.strides[pair[1]], -x.strides[pair[0]]))
    x_contract, y_contract = [p[0] for p in pairs], [p[1] for p in pairs]
    x3 = _merged(ctx, x, list(x_batch), [x_free, x_contract])
    y3 = _merged(ctx, y, list(y_batch), [y_contract, y_free])
    sizes = [x.shape[a] for a in x_batch]
    return x3, y3, out.reshaped((*sizes, x3.shape[-2], y3.shape[-1]))


def _first(s: Storage, sizes: Sequence[int]) -> Storage:
    """The first matrix of a batch."""
    for _ in sizes:
        s = s.at(0)
    return s


def _as_type(ctx: NestContext, s: Storage, dtype: str) -> Storage:
    if s.dtype == dtype:
        return s
    converted = ctx.temporary(dtype, s.shape, "converted")
    with ctx.loops(s.shape) as index:
        ctx.store(converted, index, ctx.b.convert(ctx.load(s, index), dtype))
    return converted


def _merged(ctx: NestContext, s: Storage, batch: list[int], groups: list[list[int]]) -> Storage:
    """The storage with its batch axes first and each group of axes as one; packed where the strides do not allow
    that.
    """
    order = s.transposed([*batch, *(a for group in groups for a in group)])
    shape, strides = list(order.shape[: len(batch)]), list(order.strides[: len(batch)])
    position = len(batch)
    for group in groups:
        sizes, steps = order.shape[position : position + len(group)], order.strides[position : position + len(group)]
        position += len(group)
        step = merged_stride(sizes, steps)
        if step is None:
            copy = packed(ctx, order)
            return copy.reshaped((*shape[: len(batch)], *(math.prod(s.shape[a] for a in g) for g in groups)))
        shape.append(math.prod(sizes))
        strides.append(step)
    return Storage(s.buffer, s.offset, tuple(shape), tuple(strides))
