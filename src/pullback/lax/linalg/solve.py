"""Systems of equations with a triangular matrix; with derivatives as published.

Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).

Many right-hand sides lie in lanes (lane_solve.py). Those of a large complex system are shared by threads in four parts,
each of which packs the triangle again.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.elementwise.bits import convert
from pullback.lax.linalg import blocked_solve, lane_solve, routines, small_matrices
from pullback.lax.linalg.matrices import (
    PREFIX,
    check_matrix,
    conjugated,
    letter,
    per_matrix,
    product,
    triangle,
    turned,
    weak_like_operands,
)
from pullback.lax.linalg.small_matrices import Held, Registers, in_lanes, one_by_one
from pullback.lax.linalg.stacks import for_each, scratch
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.record import frozen_record
from pullback.util.static import check_flags

Array = Any


# ---------------------------------------------------------------------------------------------------- triangular_solve


@weak_like_operands
def _solve_shape(a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    check_matrix("triangular_solve", a)
    check_dtypes("triangular_solve", a, b, tip=False)
    if a.shape[-1] != a.shape[-2]:
        raise ValueError(f"triangular_solve: argument 'a' must be a stack of square matrices, got shape {a.shape}")
    if b.ndim != a.ndim:
        raise TypeError(f"triangular_solve: 'a' and 'b' must be of one rank, got shapes {a.shape} and {b.shape}")
    if a.shape[:-2] != b.shape[:-2] or b.shape[-2 if left_side else -1] != a.shape[-1]:
        raise ValueError(f"triangular_solve: 'b' of shape {b.shape} does not fit 'a' of shape {a.shape}")
    return ShapedArray(b.shape, b.dtype)


def _solve_reference(a, b, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if b.size == 0:
        return b

    def one(a, b):
        if conjugate_a and not transpose_a:
            a = np.conj(a)
        trans = "N" if not transpose_a else "C" if conjugate_a else "T"
        return routines.trsm(a, b, "L" if left_side else "R", lower, trans, unit_diagonal)

    return per_matrix(one, a, b)[0]


def _solve_jvp(primals, tangents, **params):
    """op(A) X = B: X_dot = op(A)^-1 (B_dot - op(A_dot) X), and likewise from the right."""
    (a, b), (a_dot, b_dot) = primals, tangents
    x = triangular_solve_p.bind(a, b, **params)
    right = None if is_zero(b_dot) else b_dot
    if not is_zero(a_dot):
        a_dot = triangle(a_dot, params["lower"], 1 if params["unit_diagonal"] else 0)
        a_dot = conjugated(a_dot) if params["conjugate_a"] else a_dot
        a_dot = turned(a_dot) if params["transpose_a"] else a_dot
        change = lax.neg(product(a_dot, x) if params["left_side"] else product(x, a_dot))
        right = add_tangents(right, change)
    if right is None:
        return x, tangent_zero(x)
    return x, triangular_solve_p.bind(a, right, **params)


def _solve_transpose(x_bar, a, b, *, left_side, lower, transpose_a, conjugate_a, unit_diagonal):
    if is_linear(a):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'triangular_solve' is not there for its matrix"
        )
    if is_zero(x_bar):
        return [None, tangent_zero(b)]
    return [
        None,
        triangular_solve_p.bind(
            a,
            x_bar,
            left_side=left_side,
            lower=lower,
            transpose_a=not transpose_a,
            conjugate_a=conjugate_a,
            unit_diagonal=unit_diagonal,
        ),
    ]


def _solve_batch(args, dims, **params):
    (a, b), (da, db) = args, dims
    if da is None:
        # One matrix for all: the batch axis becomes more right-hand sides.
        left, stack, n = params["left_side"], a.shape[:-2], a.shape[-1]
        at = b.ndim - 1 if left else len(stack)
        b = move_batch_axis(b, db, at)
        count = math.prod(b.shape[len(stack) :]) // max(n, 1)
        flat = lax.reshape(b, (*stack, n, count) if left else (*stack, count, n))
        return lax.reshape(triangular_solve_p.bind(a, flat, **params), b.shape), at
    size = batch_size(args, dims)
    return triangular_solve_p.bind(batch_front(a, da, size), batch_front(b, db, size), **params), 0


# One matrix with many right-hand sides: these in a part at least, parts at most, and additions and multiplications from
# which they are worth threads. Each part packs the triangle again: 500 right-hand sides of 500 x 500 took 1.55 ms on
# one thread as a whole, 1.65 in 4 parts, and 1.9 in 8.
LEAST_RIGHT_SIDES = 64
MOST_PARTS = 4
WORTH_PARTS = 4_000_000
WORTH_THREADS = 300_000  # additions and multiplications from which panels of lanes are worth threads


@frozen_record
class _System:
    """A stack of systems as code sees it, and how it is to be solved."""

    ctx: Any
    dtype: np.dtype
    matrices: Any  # the buffer of a
    known: Any  # that of b
    out: Any
    batch: tuple[int, ...]
    n: int
    rows: int
    columns: int
    left: bool
    lower: bool
    trans: str  # as BLAS names it: N, T or C
    unit: bool

    @property
    def right_sides(self) -> int:
        """The right-hand sides of one matrix."""
        return self.columns if self.left else self.rows

    @property
    def work(self) -> int:
        """Twice the additions and multiplications of one system."""
        return self.n * self.rows * self.columns

    @property
    def alone(self) -> bool:
        """Whether there is one matrix."""
        return math.prod(self.batch) == 1

    @property
    def swapped(self) -> tuple[str, str]:
        """The triangle and the diagonal in BLAS's words: its columns are our rows, so the triangles swap."""
        return "U" if self.lower else "L", "U" if self.unit else "N"


def _solve_emit(ctx):
    if ctx.out_aval.size == 0:
        return
    system = _system(ctx)
    if small_matrices.suits(system.batch, system.dtype, small_matrices.MOST_SOLVE, system.n):
        _emit_stacked(system)
    elif small_matrices.are_few(system.batch, system.dtype, system.n):
        one_by_one(ctx, system.batch, lambda matrix: _emit_few(system, matrix))
    elif lane_solve.suits(system.out.dtype, system.n, system.right_sides):
        _emit_lanes(system)
    else:
        ctx.copy(system.out, system.known)
        _emit_library(system)


def _system(ctx) -> _System:
    p, aval = ctx.params, ctx.in_avals[0]
    out, a = ctx.result(0), ctx.operand(0)
    if p["conjugate_a"] and not p["transpose_a"] and aval.dtype.kind == "c":
        copy = ctx.temporary(a.dtype, a.shape)
        loops(ctx.b, a.shape, lambda index: ctx.store(copy, index, ctx.b.op("conj", ctx.load(a, index))))
        a = copy
    *batch, n, _ = aval.shape
    rows, columns = out.shape[-2:]
    trans = "N" if not p["transpose_a"] else "C" if p["conjugate_a"] else "T"
    left, lower, unit = p["left_side"], p["lower"], p["unit_diagonal"]
    return _System(ctx, aval.dtype, a, ctx.operand(1), out, tuple(batch), n, rows, columns, left, lower, trans, unit)


def _emit_stacked(s: _System) -> None:
    """Small systems of a long stack, one in each lane."""
    held = [Held(s.out.dtype, s.n, s.n, s.matrices), Held(s.out.dtype, s.rows, s.columns, s.known, s.out)]
    flags = {"lower": s.lower, "turned": s.trans != "N", "unit": s.unit, "left": s.left}

    def one(a, x):
        small_matrices.substitute(s.ctx.b, a, x, s.n, s.right_sides, **flags)

    in_lanes(s.ctx, s.batch, small_matrices.lanes_of(s.dtype), s.work, held, one)


def _emit_few(s: _System, matrix) -> None:
    """A small system, each right-hand side in registers; from the right it is the transposed system."""
    b, a = s.ctx.b, Registers(s.ctx, s.n, s.n, matrix(s.matrices))
    source, target = (x if s.left else x.transposed((1, 0)) for x in (matrix(s.known), matrix(s.out)))

    def one(index):
        x = Registers(s.ctx, s.n, 1, source, index[0])
        turned = (s.trans != "N") == s.left
        small_matrices.substitute(b, a, x, s.n, 1, left=True, lower=s.lower, turned=turned, unit=s.unit)
        x.write(target, index[0])

    loops(b, (s.right_sides,), one)


def _emit_lanes(s: _System) -> None:
    """Many right-hand sides lie in lanes; from the right it is the transposed system, whose sides are copied."""
    threads = s.alone and s.work / 2 > WORTH_THREADS
    turned = (s.trans != "N") == s.left
    given = {"lower": s.lower, "turned": turned, "conjugate": s.trans == "C", "unit": s.unit}
    sides = [] if s.left else 2 * [scratch(s.dtype, s.columns, s.rows)]

    def one(matrix, *held):
        a, source, target = matrix(s.matrices), matrix(s.known), matrix(s.out)
        if s.left:
            lane_solve.substitute(s.ctx, a, source, target, threads=threads, **given)
            return
        for_lanes, found = held
        s.ctx.copy(for_lanes, source.transposed((1, 0)))
        lane_solve.substitute(s.ctx, a, for_lanes, found, threads=threads, **given)
        s.ctx.copy(target, found.transposed((1, 0)))

    for_each(s.ctx, s.batch, s.work / 2, sides, one)


def _emit_library(s: _System) -> None:
    """By BLAS, or by blocks of products, in the place of the result."""
    parts = min(s.right_sides // LEAST_RIGHT_SIDES, MOST_PARTS)
    if s.right_sides == 1 and s.alone and (not s.left or s.trans != "C"):
        # trsm packs the triangle for one vector as for many: of 500 x 500 float32 it took 68 us, this 31 to 38. Of a
        # stack's small ones it does not, and of trsv on several threads each waits for its buffer.
        uplo, diagonal = s.swapped
        chosen = uplo, {"N": "T", "T": "N"}[s.trans] if s.left else s.trans, diagonal
        symbol = letter(s.dtype) + "trsv"

        def one(matrix):
            s.ctx.call_fortran(symbol, *chosen, s.n, matrix(s.matrices), s.n, matrix(s.out), 1)

        for_each(s.ctx, s.batch, s.n * s.n, [], one)
    elif not s.alone or parts < 2 or s.work < WORTH_PARTS:
        for_each(s.ctx, s.batch, s.work, [], lambda m: _solve_sides(s, m(s.matrices), m(s.out), s.right_sides))
    else:
        _emit_parts(s, parts)


def _emit_parts(s: _System, parts: int) -> None:
    """The right-hand sides of one matrix are shared out; how depends on sizes alone, as results may depend on it."""
    b = s.ctx.b
    size = -(-s.right_sides // (16 * parts)) * 16  # whole tiles of the kernels
    flat = s.out.reshaped((s.out.size,))
    with s.ctx.blas_alone(), b.loop(-(-s.right_sides // size), "threads", "part", (("grain", 1),)) as part:
        start = b.let(b.mul(part, b.index(size)))
        count = b.op("min", b.index(size), b.sub(b.index(s.right_sides), start))
        first = start if s.left else b.mul(start, b.index(s.columns))
        _solve_sides(s, s.matrices, flat.slice((first,), (1,)), count)


def _solve_sides(s: _System, a, x, count) -> None:
    """`count` right-hand sides of one matrix. It is the transposed system: sides and triangles swap, op stays."""
    side, (uplo, diagonal) = "R" if s.left else "L", s.swapped
    if s.n >= blocked_solve.LEAST and s.right_sides >= LEAST_RIGHT_SIDES:
        x = x.reshaped((x.size,)) if x.ndim > 1 else x
        flags = uplo, s.trans, diagonal
        blocked_solve.substitute(s.ctx, s.dtype, a, s.n, x, s.columns, count, side, flags)
        return
    sizes = (count, s.rows) if s.left else (s.columns, count)
    one = s.dtype.type(1)
    s.ctx.call_fortran(letter(s.dtype) + "trsm", side, uplo, s.trans, diagonal, *sizes, one, a, s.n, x, s.columns)


def _solve_cases(rng):
    found = []
    for shape, left, lower, trans, unit in [
        ((3, 3), True, True, False, False),
        ((3, 3), False, True, True, False),
        ((2, 3, 3), True, False, True, True),
        ((2, 3, 3), False, False, False, False),
    ]:
        a = rng.normal(size=shape) + 3 * np.eye(3)
        b = rng.normal(size=(*shape[:-2], 3, 2) if left else (*shape[:-2], 2, 3))
        found.append(
            Case(
                (a, b),
                {"left_side": left, "lower": lower, "transpose_a": trans, "conjugate_a": False, "unit_diagonal": unit},
                tolerance=1e-10,
            )
        )
    z = found[0].operands[0] + 1j * rng.normal(size=(3, 3))
    found.append(
        Case(
            (z, z[:, :2]),
            {"left_side": True, "lower": True, "transpose_a": False, "conjugate_a": True, "unit_diagonal": False},
            tolerance=1e-10,
            derivatives=False,
        )
    )
    return found


triangular_solve_p = Primitive(
    "triangular_solve",
    doc="X with op(A) X = B (or X op(A) = B) for triangular A.",
    abstract_eval=_solve_shape,
    reference=_solve_reference,
    jvp=_solve_jvp,
    transpose=_solve_transpose,
    batch=_solve_batch,
    lower=Nest(_solve_emit),
    traits={"stacked", "quicker compiled"},
    samples=Samples(ulp=64, cases=_solve_cases),
)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """X with op(a) X = b (`left_side`) or X op(a) = b, for triangular a: f[..., n, n] and b: f[..., n, k] or f[..., k,
    n].

    b may lack the dimension k. op transposes and conjugates as told; the other triangle is not read, nor the diagonal
    if it is unit. Raises ValueError for shapes that don't fit.
    """
    check_flags(
        "linalg.triangular_solve",
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal,
    )
    a, b = as_arrays("triangular_solve", a, b)
    if a.dtype == b.dtype and dtypes.kind_of(a.dtype) == "f" and a.dtype.name not in PREFIX:
        # Floats of 16 bits and fewer are solved for as float32.
        x = triangular_solve(
            *(convert(v, np.dtype(np.float32)) for v in (a, b)),
            left_side=left_side,
            lower=lower,
            transpose_a=transpose_a,
            conjugate_a=conjugate_a,
            unit_diagonal=unit_diagonal,
        )
        return convert(x, a.dtype)
    vector = b.ndim == a.ndim - 1
    place = b.ndim if left_side else b.ndim - 1
    if vector:
        b = lax.expand_dims(b, (place,))
    conjugate_a = bool(conjugate_a) and a.dtype.kind == "c"
    out = triangular_solve_p.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a,
        unit_diagonal=bool(unit_diagonal),
    )
    return lax.squeeze(out, (place,)) if vector else out
