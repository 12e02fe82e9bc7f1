"""Factorizations that solve: Cholesky and its update, LU; with derivatives as published.

Murray, "Differentiation of the Cholesky decomposition", arXiv:1602.07527; Giles, "Collected matrix derivative results
for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

import math
from typing import Any

from pullback.core.dimensions import min_dim
from pullback.core.explain import check
from pullback.core.kinds import NUMBER
from pullback.core.lowering import HostCall, Nest
from pullback.lax.linalg import blocked_cholesky, blocked_lu, lane_cholesky, lane_lu, routines, small_matrices
from pullback.lax.linalg.matrices import (
    check_matrix,
    hermitian_operand,
    identity,
    letter,
    of_matrices,
    on_diagonal,
    product,
    rows,
    scaled,
    to_dtype,
    triangle,
)
from pullback.lax.linalg.small_matrices import Held, Registers, in_lanes, one_by_one
from pullback.lax.linalg.solve import triangular_solve
from pullback.lax.linalg.stacks import fill_unless, for_each, scratch, zero_outside
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.lapack import integer
from pullback.util.static import check_truth
from pullback.util.tracebacks import api_boundary

Array = Any


# ------------------------------------------------------------------------------------------------------------ cholesky


def _cholesky_shape(aval):
    check_matrix("cholesky", aval, square=True)
    return aval


def _cholesky_one(a):
    if a.shape[0] == 0:
        return a
    factor, info = routines.potrf(a)
    return np.tril(np.full_like(a, np.nan)) if info else factor


def _cholesky_jvp(primals, tangents):
    """L_dot = L phi(L^-1 A_dot L^-H), phi the lower triangle with half the diagonal."""
    (a,), (a_dot,) = primals, tangents
    factor = cholesky_p.bind(a)
    if is_zero(a_dot):
        return factor, tangent_zero(factor)
    left = triangular_solve(factor, a_dot, left_side=True, lower=True)
    middle = triangular_solve(factor, left, left_side=False, lower=True, transpose_a=True, conjugate_a=True)
    middle = triangle(middle, True)
    shape = middle.shape
    half = lax.select_n_p.bind(on_diagonal(shape), middle, lax.mul(middle, constant(middle, 0.5)))
    return factor, product(factor, half)


def _cholesky_emit(ctx):
    aval, out = ctx.in_avals[0], ctx.result(0)
    *batch, n, _ = aval.shape
    b = ctx.b
    if aval.size == 0:
        return
    if small_matrices.suits(batch, aval.dtype, small_matrices.MOST_CHOLESKY, n):
        held = [Held(out.dtype, n, n, ctx.operand(0), out), Held("i32", 1, 1)]
        lanes, work = small_matrices.lanes_of(aval.dtype), n**3 / 3
        in_lanes(ctx, batch, lanes, work, held, lambda a, bad: small_matrices.cholesky(b, a, bad, n))
        return
    if small_matrices.are_few(batch, aval.dtype, n):

        def few(matrix):
            a = Registers(ctx, n, n, matrix(ctx.operand(0)))
            small_matrices.cholesky(b, a, Registers(ctx, 1, 1), n)
            a.write(matrix(out))

        one_by_one(ctx, batch, few)
        return
    alone = math.prod(batch) == 1
    if lane_cholesky.suits(out.dtype, n, alone):
        size = lane_cholesky.padded(out.dtype, n)

        def by_lanes(matrix, upper):
            lane_cholesky.cholesky(ctx, matrix(ctx.operand(0)), matrix(out), upper)

        for_each(ctx, batch, n**3 / 3, [scratch(aval.dtype, size, size)], by_lanes)
        return
    ctx.copy(out, ctx.operand(0))

    def one(matrix, info):
        a = matrix(out)
        # Row-major lower triangle: what LAPACK sees as the upper one, of the conjugate, whose factor is the transpose
        # of ours.
        if alone and n >= blocked_cholesky.LEAST:
            blocked_cholesky.cholesky(ctx, a, aval.dtype, info)
        else:
            ctx.call_fortran(letter(aval.dtype) + "potrf", "U", n, a, n, info)
        fill_unless(ctx, info, [a])
        zero_outside(ctx, a, lambda i, j: b.op("le", j, i))

    for_each(ctx, batch, n**3 / 3, [scratch(integer(), 1)], one)


def _positive(rng, shape, dtype=np.float64):
    x = rng.normal(size=shape)
    return (x @ np.swapaxes(x, -1, -2) + 3 * np.eye(shape[-1])).astype(dtype)


cholesky_p = of_matrices(
    "cholesky",
    doc="The lower triangular L with L L^H = A; A's lower triangle is read.",
    shape=_cholesky_shape,
    one=_cholesky_one,
    jvp=_cholesky_jvp,
    lower=Nest(_cholesky_emit),
    samples=Samples(
        ulp=64,
        cases=lambda rng: [
            Case((_positive(rng, s),), {}, tolerance=1e-9, derivatives=False)
            for s in [(3, 3), (2, 4, 4), (1, 1), (20, 20)]
        ],
    ),
)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L L^H = x for positive definite x: f[..., n, n]; NaN where x is not.

    With `symmetrize_input`, of (x + x^H) / 2; else the lower triangle is read. Raises TypeError (ValueError if nothing
    is to be symmetrized) for matrices that are not square.
    """
    return cholesky_p.bind(hermitian_operand("cholesky", x, symmetrize_input))


# ------------------------------------------------------------------------------------------------------------------ lu


def _lu_shape(aval):
    check_matrix("lu", aval)
    *batch, m, n = aval.shape
    return [
        ShapedArray(aval.shape, aval.dtype),
        ShapedArray((*batch, min_dim(m, n)), np.int32),
        ShapedArray((*batch, m), np.int32),
    ]


def permutation_of(pivots: np.ndarray, permutation_size: int) -> np.ndarray:
    """The permutation that a sequence of row swaps makes."""
    out = np.arange(permutation_size, dtype=np.int32)
    for i, k in enumerate(pivots):
        out[[i, k]] = out[[k, i]]
    return out


def _lu_one(a):
    m, n = a.shape
    if min(m, n) == 0:
        return a, np.zeros(0, np.int32), np.arange(m, dtype=np.int32)
    lu, pivots = routines.getrf(a)
    return lu, pivots.astype(np.int32), permutation_of(pivots, m)


def _lu_jvp(primals, tangents):
    """With P A = L U and F = L^-1 P A_dot U^-1: L_dot = L tril(F, -1), U_dot = triu(F) U; what sticks out follows."""
    (a,), (a_dot,) = primals, tangents
    lu, pivots, permutation = lu_p.bind(a)
    rest = [tangent_zero(pivots), tangent_zero(permutation)]
    if is_zero(a_dot):
        return [lu, pivots, permutation], [tangent_zero(lu), *rest]
    *batch, m, n = a.shape
    k = min(m, n)
    # Rows in the order of the permutation, by a product with ones and zeros.
    square = (*batch, m, m)
    swap = lax.eq_p.bind(rows(permutation, square), lax.broadcasted_iota(np.int32, square, len(square) - 1))
    a_dot = product(to_dtype(swap, a.dtype), a_dot)

    def part(x, i0, i1, j0, j1):
        return lax.slice_in_dim(lax.slice_in_dim(x, i0, i1, axis=x.ndim - 2), j0, j1, axis=x.ndim - 1)

    core = part(lu, 0, k, 0, k)
    left = triangular_solve(core, part(a_dot, 0, k, 0, k), left_side=True, lower=True, unit_diagonal=True)
    f = triangular_solve(core, left, left_side=False, lower=False)
    f_lower, f_upper = triangle(f, True, 1), triangle(f, False)
    unit = lax.add(
        triangle(core, True, 1), lax.broadcast_in_dim(identity(k, a.dtype), core.shape, (core.ndim - 2, core.ndim - 1))
    )
    upper = triangle(core, False)
    l_dot, u_dot = product(unit, f_lower), product(f_upper, upper)
    out = lax.add(l_dot, u_dot)
    if m > k:
        below = lax.sub(part(a_dot, k, m, 0, k), product(part(lu, k, m, 0, k), u_dot))
        out = lax.concatenate([out, triangular_solve(core, below, left_side=False, lower=False)], out.ndim - 2)
    if n > k:
        beside = lax.sub(part(a_dot, 0, k, k, n), product(l_dot, part(lu, 0, k, k, n)))
        out = lax.concatenate(
            [out, triangular_solve(core, beside, left_side=True, lower=True, unit_diagonal=True)], out.ndim - 1
        )
    return [lu, pivots, permutation], [out, *rest]


def _lu_emit(ctx):
    b, aval = ctx.b, ctx.in_avals[0]
    *batch, m, n = aval.shape
    k = min(m, n)
    if m == 0:
        return
    source, lu, pivots, permutation = ctx.operand(0), ctx.result(0), ctx.result(1), ctx.result(2)
    if k and small_matrices.suits(batch, aval.dtype, small_matrices.MOST_LU, m, n):
        held = [
            Held(lu.dtype, m, n, source, lu),
            Held("i32", k, 1, None, pivots if ctx.is_read(1) else None),
            Held("i32", m, 1, None, permutation if ctx.is_read(2) else None),
        ]
        lanes, work = small_matrices.lanes_of(aval.dtype), m * n * k
        in_lanes(ctx, batch, lanes, work, held, lambda a, p, order: small_matrices.lu(b, a, p, order, m, n))
        return
    if small_matrices.are_few(batch, aval.dtype, m, n):

        def few(matrix):
            a, swaps, order = Registers(ctx, m, n, matrix(source)), Registers(ctx, k, 1), Registers(ctx, m, 1)
            small_matrices.lu(b, a, swaps, order, m, n)
            a.write(matrix(lu))
            swaps.write(matrix(pivots, 1))
            order.write(matrix(permutation, 1))

        one_by_one(ctx, batch, few)
        return
    alone = math.prod(batch) == 1
    by_lanes = lane_lu.suits(lu.dtype, m, n, alone)
    shape = lane_lu.scratch_shape(lu.dtype, n) if by_lanes else (n, m)
    places = np.int32 if by_lanes else integer()
    memory = [scratch(aval.dtype, *shape), scratch(integer(), 1), scratch(places, k), scratch(np.int32, m)]

    def one(matrix, turned_copy, info, swaps, order):
        loops(b, (m,), lambda index: ctx.store(order, index, b.convert(index[0], "i32")))
        if by_lanes:
            lane_lu.lu(ctx, matrix(source), matrix(lu), swaps, turned_copy)
        elif k:
            ctx.copy(turned_copy, matrix(source).transposed((1, 0)))
            if alone and k >= blocked_lu.LEAST:
                blocked_lu.lu(ctx, turned_copy, aval.dtype, swaps)
            else:
                ctx.call_fortran(letter(aval.dtype) + "getrf", m, n, turned_copy, m, swaps, info)
            ctx.copy(matrix(lu), turned_copy.transposed((1, 0)))

        def swap(index):
            i = index[0]
            j = b.let(b.op("sub", ctx.load(swaps, (i,)), 1))
            ctx.store(swaps, (i,), j)
            place = b.convert(j, "i64")
            first, second = b.let(ctx.load(order, (i,))), b.let(ctx.load(order, (place,)))
            ctx.store(order, (i,), second)
            ctx.store(order, (place,), first)

        loops(b, (k,), swap, "sequential")
        if k:
            found = matrix(pivots, 1)
            loops(b, (k,), lambda index: ctx.store(found, index, b.convert(ctx.load(swaps, index), "i32")))
        ctx.copy(matrix(permutation, 1), order)

    for_each(ctx, batch, m * n * k * 2 / 3, memory, one)


lu_p = of_matrices(
    "lu",
    doc="P A = L U: L and U in one matrix, row swaps, and the permutation.",
    shape=_lu_shape,
    multiple_results=True,
    one=_lu_one,
    jvp=_lu_jvp,
    lower=Nest(_lu_emit),
    samples=Samples(
        ulp=64,
        cases=lambda rng: [
            Case((rng.normal(size=s),), {}, tolerance=1e-10) for s in [(3, 3), (2, 4, 4), (4, 2), (2, 5), (1, 1)]
        ],
    ),
)


@api_boundary
def lu(x: Any) -> list[Array]:
    """[LU, pivots, permutation] with x[permutation] = L U: L unit lower and U upper triangular in one f[..., m, n].

    pivots: i32[..., min(m, n)], row i was swapped with row pivots[i]; permutation: i32[..., m].
    """
    return list(lu_p.bind(as_array(x, "lu")))


def _permutation_shape(aval, *, permutation_size):
    if aval.dtype != np.int32:
        raise TypeError(f"lu_pivots_to_permutation: pivots must be int32, got {aval.dtype}")
    if permutation_size < aval.shape[-1]:
        raise ValueError(
            f"lu_pivots_to_permutation: permutation_size={permutation_size} is less than the pivots of {aval.shape}"
        )
    return ShapedArray((*aval.shape[:-1], permutation_size), np.int32)


def _permutation_emit(ctx):
    b, aval = ctx.b, ctx.in_avals[0]
    size = ctx.params["permutation_size"]

    def one(matrix):
        order, swaps = matrix(ctx.result(0), 1), matrix(ctx.operand(0), 1)
        loops(b, (size,), lambda index: ctx.store(order, index, b.convert(index[0], "i32")))

        def swap(index):
            place = b.let(b.convert(ctx.load(swaps, index), "i64"))
            place = b.op("min", b.op("max", place, 0), size - 1)
            first, second = b.let(ctx.load(order, index)), b.let(ctx.load(order, (place,)))
            ctx.store(order, index, second)
            ctx.store(order, (place,), first)

        loops(b, (aval.shape[-1],), swap, "sequential")

    if size:
        for_each(ctx, aval.shape[:-1], 2 * size, [], one)


lu_pivots_to_permutation_p = of_matrices(
    "lu_pivots_to_permutation",
    doc="The permutation that row swaps make.",
    shape=_permutation_shape,
    jvp=ZERO,
    one=permutation_of,
    core=(1,),
    lower=Nest(_permutation_emit),
    traits=("stacked", "exact"),
    samples=Samples(
        cases=lambda rng: [
            Case((np.array([[1, 2, 2], [0, 1, 2]], np.int32),), {"permutation_size": 4}),
            Case((np.array([1, 1], np.int32),), {"permutation_size": 2}),
        ]
    ),
)


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation i32[..., permutation_size] that the row swaps of `lu` make. Raises TypeError for other dtypes
    than int32.
    """
    return lu_pivots_to_permutation_p.bind(
        as_array(pivots, "lu_pivots_to_permutation"), permutation_size=int(permutation_size)
    )


# ----------------------------------------------------------------------------------------------------- cholesky_update


def _update_shape(r, w):
    check_dtypes("cholesky_update", r, w, tip=False)
    check_matrix("cholesky_update", r, square=True)
    if w.shape != r.shape[:-1]:
        raise ValueError(
            f"cholesky_update: r_matrix of shape {r.shape} takes a w_vector of shape {r.shape[:-1]}, got {w.shape}"
        )
    return ShapedArray(r.shape, r.dtype)


def _update_one(r, w):
    """Givens rotations that carry w into R row by row (Golub and Van Loan, 6.5.4)."""
    r, w = np.array(r), np.array(w)
    n = r.shape[0]
    for k in range(n):
        length = np.hypot(r[k, k], w[k])
        c, s = r[k, k] / length, w[k] / length
        row = c * r[k] + s * w
        w = c * w - s * r[k]
        r[k] = row
        r[k, :k] = 0
    return r


cholesky_update_p = of_matrices(
    "cholesky_update",
    doc="R' with R'^T R' = R^T R + w w^T.",
    shape=_update_shape,
    one=_update_one,
    core=(2, 1),
    lower=HostCall(),
    jvp=NoRule("differentiate cholesky of the sum instead"),
    samples=Samples(
        ulp=64,
        cases=lambda rng: [
            Case((np.linalg.cholesky(_positive(rng, (3, 3))).T.copy(), rng.normal(size=3)), {}, derivatives=False)
        ],
    ),
)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular R' with R'^T R' = R^T R + w w^T, for upper triangular R: f[n, n] and w: f[n]."""
    return cholesky_update_p.bind(*as_arrays("cholesky_update", r_matrix, w_vector))


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Array:
    """alpha A A^T + beta C, with C: f[..., n, n] symmetric and A: f[..., n, k]. Raises ValueError for shapes that don't
    fit.
    """
    check_truth("symmetric_product", symmetrize_output=symmetrize_output)
    check("symmetric_product", NUMBER, alpha=alpha, beta=beta)
    a, c = as_arrays("symmetric_product", a_matrix, c_matrix)
    for argument, x in (("a_matrix", a), ("c_matrix", c)):
        if dtypes.kind_of(x.dtype) != "f" or x.dtype != a.dtype:
            raise TypeError(
                f"symmetric_product: arguments 'a_matrix' and 'c_matrix' must be of one floating-point type, got "
                f"{x.dtype} for '{argument}'"
            )
    if a.ndim < 2:
        raise TypeError(f"symmetric_product: argument 'a_matrix' must have at least 2 dimensions, got shape {a.shape}")
    if c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            f"symmetric_product: expected C of shape {(*a.shape[:-1], a.shape[-2])} for A of shape {a.shape}, got "
            f"{c.shape}"
        )
    n = a.ndim
    batch = tuple(range(n - 2))
    out = scaled(lax.dot_general(a, a, (((n - 1,), (n - 1,)), (batch, batch))), alpha)
    return lax.add(out, scaled(c, beta)) if beta else out
