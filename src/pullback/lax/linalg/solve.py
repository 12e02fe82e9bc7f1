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


def _solve_emit(ctx):
    p, aval = ctx.params, ctx.in_avals[0]
    out, a_all = ctx.result(0), ctx.operand(0)
    if ctx.out_aval.size == 0:
        return
    if p["conjugate_a"] and not p["transpose_a"] and aval.dtype.kind == "c":
        copy = ctx.temporary(a_all.dtype, a_all.shape)
        loops(ctx.b, a_all.shape, lambda index: ctx.store(copy, index, ctx.b.op("conj", ctx.load(a_all, index))))
        a_all = copy
    *batch, n, _ = aval.shape
    trans = "N" if not p["transpose_a"] else "C" if p["conjugate_a"] else "T"
    r, c = out.shape[-2:]
    left, right_sides = p["left_side"], c if p["left_side"] else r
    flags = {"lower": p["lower"], "turned": p["transpose_a"], "unit": p["unit_diagonal"], "left": left}
    if small_matrices.suits(batch, aval.dtype, small_matrices.MOST_SOLVE, n):
        held = [Held(out.dtype, n, n, a_all), Held(out.dtype, r, c, ctx.operand(1), out)]
        lanes, work = small_matrices.lanes_of(aval.dtype), n * r * c
        in_lanes(
            ctx, batch, lanes, work, held, lambda a, x: small_matrices.substitute(ctx.b, a, x, n, right_sides, **flags)
        )
        return
    if small_matrices.are_few(batch, aval.dtype, n):
        one_by_one(ctx, batch, lambda matrix: _solve_few(ctx, matrix, n, right_sides, flags))
        return
    b = ctx.b
    if lane_solve.suits(out.dtype, n, right_sides):
        work = n * r * c / 2
        threads = math.prod(batch) == 1 and work > WORTH_THREADS
        given = {
            "lower": p["lower"],
            "turned": p["transpose_a"] == left,
            "conjugate": trans == "C",
            "unit": p["unit_diagonal"],
        }
        sides = [] if left else 2 * [scratch(aval.dtype, c, r)]

        def one(matrix, *held):
            source, target = matrix(ctx.operand(1)), matrix(out)
            if left:
                lane_solve.substitute(ctx, matrix(a_all), source, target, threads=threads, **given)
                return
            for_lanes, found = held  # the transposed system
            ctx.copy(for_lanes, source.transposed((1, 0)))
            lane_solve.substitute(ctx, matrix(a_all), for_lanes, found, threads=threads, **given)
            ctx.copy(target, found.transposed((1, 0)))

        for_each(ctx, batch, work, sides, one)
        return
    ctx.copy(out, ctx.operand(1))

    def solve(a, x, count):
        # The transposed system: sides and triangles swap, op stays.
        if n >= blocked_solve.LEAST and right_sides >= LEAST_RIGHT_SIDES:
            flags = "U" if p["lower"] else "L", trans, "U" if p["unit_diagonal"] else "N"
            side = "R" if p["left_side"] else "L"
            x = x.reshaped((x.size,)) if x.ndim > 1 else x
            blocked_solve.substitute(ctx, aval.dtype, a, n, x, c, count, side, flags)
            return
        ctx.call_fortran(
            letter(aval.dtype) + "trsm",
            "R" if p["left_side"] else "L",
            "U" if p["lower"] else "L",
            trans,
            "U" if p["unit_diagonal"] else "N",
            *((count, r) if p["left_side"] else (c, count)),
            aval.dtype.type(1),
            a,
            n,
            x,
            c,
        )

    if right_sides == 1 and math.prod(batch) == 1 and (not p["left_side"] or trans != "C"):
        # trsm packs the triangle for one vector as for many: of 500 x 500 float32 it took 68 us, this 31 to 38. Of a
        # stack's small ones it does not, and of trsv on several threads each waits for its buffer.
        flipped = {"N": "T", "T": "N"}[trans] if p["left_side"] else trans
        chosen = "U" if p["lower"] else "L", flipped, "U" if p["unit_diagonal"] else "N"
        symbol = letter(aval.dtype) + "trsv"
        for_each(
            ctx, batch, n * n, [], lambda matrix: ctx.call_fortran(symbol, *chosen, n, matrix(a_all), n, matrix(out), 1)
        )
        return
    parts = min(right_sides // LEAST_RIGHT_SIDES, MOST_PARTS)
    if math.prod(batch) > 1 or parts < 2 or n * r * c < WORTH_PARTS:
        for_each(ctx, batch, n * r * c, [], lambda matrix: solve(matrix(a_all), matrix(out), right_sides))
        return
    # The right-hand sides of one matrix are shared out; how depends on sizes alone, as results may depend on it.
    size = -(-right_sides // (16 * parts)) * 16  # whole tiles of the kernels
    flat = out.reshaped((out.size,))
    with ctx.blas_alone(), b.loop(-(-right_sides // size), "threads", "part", (("grain", 1),)) as part:
        start = b.let(b.mul(part, b.index(size)))
        count = b.op("min", b.index(size), b.sub(b.index(right_sides), start))
        first = start if p["left_side"] else b.mul(start, b.index(c))
        solve(a_all, flat.slice((first,), (1,)), count)


def _solve_few(ctx, matrix, n, right_sides, flags):
    """A small system, each right-hand side in registers; from the right it is the transposed system."""
    a, left = Registers(ctx, n, n, matrix(ctx.operand(0))), flags["left"]
    source, target = (x if left else x.transposed((1, 0)) for x in (matrix(ctx.operand(1)), matrix(ctx.result(0))))
    flags = flags | {"left": True, "turned": flags["turned"] == left}

    def one(index):
        x = Registers(ctx, n, 1, source, index[0])
        small_matrices.substitute(ctx.b, a, x, n, 1, **flags)
        x.write(target, index[0])

    loops(ctx.b, (right_sides,), one)


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
