"""Singular value and polar decompositions; with derivatives as published.

Townsend, "Differentiating the singular value decomposition" (2016).
"""

from __future__ import annotations

import enum
from typing import Any

from pullback.core.dimensions import min_dim
from pullback.core.explain import check
from pullback.core.kinds import INTEGER, NUMBER, optional
from pullback.core.lowering import Nest
from pullback.lax.linalg import bidiagonal_qr, routines, small_matrices
from pullback.lax.linalg.jacobi import MOST_SVD, svd_in_lanes
from pullback.lax.linalg.matrices import (
    adjoint,
    all_finite,
    check_matrix,
    column_range,
    columns,
    diagonal,
    in_one_call,
    is_complex,
    letter,
    of_matrices,
    on_diagonal,
    per_matrix,
    product,
    real_of,
    rows,
    to_dtype,
    widened_if_empty,
)
from pullback.lax.linalg.stacks import fill_unless, for_each, scratch
from pullback.lax.records.families import *
from pullback.util.errors import ArgumentError
from pullback.util.lapack import integer
from pullback.util.static import check_flags

Array = Any


class SvdAlgorithm(enum.Enum):
    """How a singular value decomposition is computed; on a CPU sizes decide: Jacobi's rotations or QR steps for stacks
    of small matrices, else LAPACK's divide and conquer.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


def _svd_shape(aval, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    check_matrix("svd", aval)
    *batch, m, n = aval.shape
    k = min_dim(m, n)
    if subset_by_index is not None:
        if full_matrices and subset_by_index != (0, k):
            raise ValueError(f"svd: subset_by_index={subset_by_index} is for full_matrices=False only")
        lo, hi = subset_by_index
        if not 0 <= lo <= hi <= k:
            raise ValueError(f"svd: subset_by_index={subset_by_index} must lie within (0, {k})")
        k = hi - lo
    s = ShapedArray((*batch, k), real_of(aval.dtype))
    if not compute_uv:
        return [s]
    return [
        s,
        ShapedArray((*batch, m, m if full_matrices else k), aval.dtype),
        ShapedArray((*batch, n if full_matrices else k, n), aval.dtype),
    ]


def _svd_one(a, full_matrices, compute_uv):
    m, n = a.shape
    k = min(m, n)
    shapes = [(k,), (m, m if full_matrices else k), (n if full_matrices else k, n)]
    if k == 0:
        out = [np.zeros(0, real_of(a.dtype)), np.eye(*shapes[1], dtype=a.dtype), np.eye(*shapes[2], dtype=a.dtype)]
    else:
        ok = all_finite(a)
        if ok:
            u, s, vt, info = routines.gesdd(a, full_matrices, compute_uv)
            ok = info == 0
        out = (
            [s, u, vt]
            if ok
            else [np.full(shapes[0], np.nan, real_of(a.dtype)), *[np.full(x, np.nan, a.dtype) for x in shapes[1:]]]
        )
    return out if compute_uv else out[:1]


def _svd_reference(a, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    if in_one_call(a):
        found = np.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
        outs = [found[1], found[0], found[2]] if compute_uv else [found]
    else:
        outs = per_matrix(lambda x: _svd_one(x, full_matrices, compute_uv), a)
    if subset_by_index is not None:
        lo, hi = subset_by_index
        if not full_matrices or (lo, hi) != (0, outs[0].shape[-1]):  # all singular values leave the vectors whole
            outs = [outs[0][..., lo:hi], *([outs[1][..., lo:hi], outs[2][..., lo:hi, :]] if compute_uv else [])]
    return outs


def reciprocal_differences(x: Any, y: Any) -> Any:
    """1 / (y_j - x_i) off the diagonal, 0 on it and where the difference vanishes; x, y: f[..., n]."""
    shape = (*x.shape, x.shape[-1])
    gap = lax.sub(columns(y, shape), rows(x, shape))
    vanishes = lax.bitwise_or(on_diagonal(shape), lax.eq(gap, constant(gap, 0)))
    safe = lax.select_n_p.bind(vanishes, gap, constant(gap, 1))
    return lax.select_n_p.bind(vanishes, lax.div(constant(gap, 1), safe), constant(gap, 0))


def _svd_jvp(primals, tangents, *, full_matrices=True, compute_uv=True, subset_by_index=None, algorithm=None):
    (a,), (a_dot,) = primals, tangents
    m, n = a.shape[-2:]
    params = {"full_matrices": False, "compute_uv": True, "subset_by_index": None, "algorithm": algorithm}
    if is_zero(a_dot):
        outs = svd_p.bind(
            a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index, algorithm=algorithm
        )
        return outs, [tangent_zero(x) for x in outs]
    whole = compute_uv and full_matrices and m != n
    s, u, vt = svd_p.bind(a, **params | {"full_matrices": whole})
    # What a full decomposition adds to the vectors: orthonormal, and turned no more than it must be.
    k = min(m, n)
    more_u, more_v = (column_range(u, k, m), column_range(adjoint(vt), k, n)) if whole else (None, None)
    if whole:
        u, vt = column_range(u, 0, k), adjoint(column_range(adjoint(vt), 0, k))
    core = product(adjoint(u), a_dot, adjoint(vt))  # U^H dA V
    s_dot = diagonal(lax.real(core) if is_complex(a.dtype) else core)
    lo, hi = subset_by_index or (0, min(m, n))

    def last(x):
        return x if (lo, hi) == (0, min(m, n)) else column_range(x, lo, hi)

    if not compute_uv:
        return [last(s)], [last(s_dot)]
    shape = core.shape
    s_columns, s_rows = to_dtype(columns(s, shape), a.dtype), to_dtype(rows(s, shape), a.dtype)
    f = to_dtype(reciprocal_differences(lax.square(s), lax.square(s)), a.dtype)
    right, left = lax.mul(core, s_columns), lax.mul(s_rows, core)
    u_part = lax.mul(f, lax.add(right, adjoint(right)))
    v_part = lax.mul(f, lax.add(left, adjoint(left)))
    if is_complex(a.dtype):  # the phase that U and V share is split evenly
        d = lax.select_n_p.bind(on_diagonal(shape), constant(core, 0), core)
        phase = lax.div(lax.mul(lax.sub(d, adjoint(d)), constant(core, 0.5)), _nonzero(s_columns))
        u_part = lax.add(u_part, phase)
    u_dot, v_dot = product(u, u_part), product(adjoint(vt), v_part)
    if m > n:
        x = product(a_dot, adjoint(vt))
        u_dot = lax.add(
            u_dot,
            lax.div(lax.sub(x, product(u, product(adjoint(u), x))), _nonzero(to_dtype(columns(s, x.shape), a.dtype))),
        )
    if n > m:
        x = product(adjoint(a_dot), u)
        v_dot = lax.add(
            v_dot,
            lax.div(lax.sub(x, product(adjoint(vt), product(vt, x))), _nonzero(to_dtype(columns(s, x.shape), a.dtype))),
        )
    outs, dots = [s, u, adjoint(vt)], [s_dot, u_dot, v_dot]
    if whole:
        for side, more in ((1, more_u), (2, more_v)):
            x, x_dot = outs[side], dots[side]
            more_dot = lax.neg(product(x, product(adjoint(x_dot), more)))
            outs[side] = lax.concatenate([x, more], x.ndim - 1)
            dots[side] = lax.concatenate([x_dot, more_dot], x.ndim - 1)
    else:
        outs, dots = [last(x) for x in outs], [last(x) for x in dots]
    return [outs[0], outs[1], adjoint(outs[2])], [dots[0], dots[1], adjoint(dots[2])]


def _nonzero(x):
    return lax.select_n_p.bind(lax.eq_p.bind(x, constant(x, 0)), x, constant(x, 1))


def _is_stack_of_small(avals, params):
    """Whether the singular values are found in lanes."""
    *batch, m, n = avals[0].shape
    if params["subset_by_index"] is not None or (params["compute_uv"] and params["full_matrices"] and m != n):
        return False
    return small_matrices.suits(batch, avals[0].dtype, bidiagonal_qr.MOST, m, n)


def _svd_emit(ctx):
    aval, params = ctx.in_avals[0], ctx.params
    *batch, m, n = aval.shape
    low, high = min(m, n), max(m, n)
    if low == 0 or params["subset_by_index"] is not None:
        ctx.by_reference()
        return
    vectors = params["compute_uv"] and (ctx.is_read(1) or ctx.is_read(2))
    if _is_stack_of_small(ctx.in_avals, params | {"compute_uv": vectors}):
        sides = [ctx.result(k) if vectors and ctx.is_read(k) else None for k in (1, 2)]
        in_lanes = svd_in_lanes if high <= MOST_SVD else bidiagonal_qr.svd
        in_lanes(ctx, batch, m, n, ctx.operand(0), ctx.result(0), *sides)
        return
    kind, complex_ = letter(aval.dtype), is_complex(aval.dtype)
    # The matrix is copied column-major, though the transpose could be decomposed without: signs are then as NumPy's.
    job = "N" if not vectors else "A" if params["full_matrices"] else "S"
    source = ctx.operand(0)
    length = 4 * low * low + 7 * low + 66 * (m + n) + 3 * high
    reals = max(5 * low * low + 7 * low, 2 * high * low + 2 * low * low + low) if complex_ else 0
    outs = [ctx.result(i) for i in range(len(ctx.out_avals) if vectors else 1)]
    wide, tall = (m, n) if job == "A" else (low, low) if job == "S" else (1, 1)
    memory = [
        scratch(aval.dtype, n, m),
        scratch(aval.dtype, wide, m if vectors else 1),  # column-major m x wide
        scratch(aval.dtype, n if vectors else 1, tall),  # column-major tall x n
        scratch(aval.dtype, length),
        scratch(integer(), 8 * low),
        scratch(integer(), 1),
        scratch(real_of(aval.dtype), reals),
    ]

    def one(matrix, copy, left, right, work, integers, info, real_work):
        ctx.copy(copy, matrix(source).transposed((1, 0)))
        sizes = [job, m, n, copy, m, matrix(outs[0], 1), left, left.shape[1], right, tall, work, length]
        ctx.call_fortran(kind + "gesdd", *sizes, *([real_work] if complex_ else []), integers, info)
        if vectors:
            ctx.copy(matrix(outs[1]), left.transposed((1, 0)))
            ctx.copy(matrix(outs[2]), right.transposed((1, 0)))
        fill_unless(ctx, info, [matrix(out, 2 if k else 1) for k, out in enumerate(outs)])

    for_each(ctx, batch, (20 if vectors else 4) * high * low * low, memory, one)


def spread_spectrum(rng, shape, dtype=np.float64):
    """Matrices whose singular values are well apart."""
    x = rng.normal(size=shape)
    if dtype == np.complex128:
        x = x + 1j * rng.normal(size=shape)
    k = min(shape[-2:])
    u, _, vt = np.linalg.svd(x, full_matrices=False)
    return (u * np.arange(1, k + 1)) @ vt


def _svd_cases(rng):
    return [
        Case(
            (spread_spectrum(rng, s),),
            {"full_matrices": f, "compute_uv": uv, "subset_by_index": None, "algorithm": None},
            tolerance=1e-9,
            derivatives=not uv,
        )
        for s, f, uv in [
            ((3, 3), False, False),
            ((4, 2), False, False),
            ((2, 3, 3), False, True),
            ((4, 2), True, True),
            ((2, 4), False, True),
        ]
    ]


svd_p = of_matrices(
    "svd",
    doc="Singular values, left and right singular vectors.",
    shape=_svd_shape,
    multiple_results=True,
    reference=_svd_reference,
    jvp=_svd_jvp,
    lower=Nest(_svd_emit, decides=lambda avals, params: params["compute_uv"] and _is_stack_of_small(avals, params)),
    samples=Samples(ulp=256, cases=_svd_cases),
)


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """(U, s, V^H) with x = U diag(s) V^H, s descending, of x: f[..., m, n]; only s unless `compute_uv`.

    U has m columns and V^H n rows, or min(m, n) unless `full_matrices`. NaN where x is not finite. Raises TypeError
    for rank below 2, ValueError for a subset that is not there.
    """
    check_flags("linalg.svd", full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm)
    x, as_given = widened_if_empty(as_array(x, "svd"))
    outs = svd_p.bind(
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=None if subset_by_index is None else tuple(map(int, subset_by_index)),
        algorithm=algorithm,
    )
    if not compute_uv:
        return as_given(outs[0])
    s, u, vt = map(as_given, outs)
    return u, s, vt


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Any, Any]:
    """(U, H, iterations, converged): the polar decomposition x = U H, U with orthonormal columns, H positive
    semidefinite.

    Computed from the singular value decomposition, in one step.
    """
    check_flags("qdwh", is_hermitian=is_hermitian)
    x = as_array(x, "qdwh")
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(f"qdwh: argument 'x' must be a matrix no wider than tall, got {x.shape}")
    check("qdwh", optional(NUMBER), eps=eps)
    if eps is not None and not eps > 0:
        raise ArgumentError(f"qdwh: argument 'eps' must be positive, got {eps}")
    check("qdwh", optional(INTEGER), max_iterations=max_iterations)
    x = _within(x, dynamic_shape)
    u, s, vt = svd(x, full_matrices=False)
    h = product(adjoint(vt), lax.mul(to_dtype(rows(s, vt.shape), vt.dtype), vt))
    # Of one type whatever x is: its iterations start from a matrix of numbers that are not weakly typed.
    unitary = _within(lax.convert(product(u, vt), x.dtype), dynamic_shape)
    return unitary, h, as_array(1, "qdwh"), as_array(True, "qdwh")


def _within(x: Any, dynamic_shape: tuple[Any, Any] | None) -> Any:
    """x with 0 outside of its first rows and columns, whose numbers `dynamic_shape` gives and may be traced."""
    if dynamic_shape is None:
        return x
    for axis, size in enumerate(dynamic_shape):
        size = lax.convert(as_array(size, "qdwh"), np.dtype(np.int32))
        inside = lax.lt(lax.broadcasted_iota(np.int32, x.shape, axis), size)
        x = lax.select(inside, x, lax.full_like(x, 0))
    return x
