"""QR decompositions and products of Householder reflectors; with derivatives as published.

Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", arXiv:1009.6112.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.core.dimensions import min_dim
from pullback.core.lowering import Nest
from pullback.lax.linalg import blocked_qr, routines, small_matrices
from pullback.lax.linalg.factor import lu_p
from pullback.lax.linalg.matrices import (
    adjoint,
    check_matrix,
    column_range,
    columns,
    is_complex,
    letter,
    of_matrices,
    on_diagonal,
    product,
    row_range,
    rows,
    to_dtype,
    triangle,
    widened_if_empty,
)
from pullback.lax.linalg.small_matrices import Held, in_lanes
from pullback.lax.linalg.solve import triangular_solve
from pullback.lax.linalg.stacks import for_each, scratch
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.lapack import integer
from pullback.util.static import check_flags
from pullback.util.tracebacks import api_boundary

Array = Any


def _qr_shape(aval, *, pivoting=False, full_matrices=True, use_magma=None):
    check_matrix("qr", aval)
    *batch, m, n = aval.shape
    k = m if full_matrices else min_dim(m, n)
    outs = [ShapedArray((*batch, m, k), aval.dtype), ShapedArray((*batch, k, n), aval.dtype)]
    return [*outs, ShapedArray((*batch, n), np.int32)] if pivoting else outs


def _qr_one(a, pivoting=False, full_matrices=True, use_magma=None):
    m, n = a.shape
    if min(m, n) == 0:
        k = m if full_matrices else 0
        out = [np.eye(m, k, dtype=a.dtype), np.zeros((k, n), a.dtype)]
        return [*out, np.arange(n, dtype=np.int32)] if pivoting else out
    packed, taus, *order = (routines.geqp3 if pivoting else routines.geqrf)(a)
    k = m if full_matrices else min(m, n)
    q = np.zeros((m, k), a.dtype)
    q[:, : min(k, n)] = packed[:, :k]
    return [routines.orgqr(q, taus), np.triu(packed[:k]), *[x.astype(np.int32) for x in order]]


def _qr_jvp(primals, tangents, *, pivoting=False, full_matrices=True, use_magma=None):
    """With dC = Q^H dA R^-1: dQ = Q (omega - dC) + dA R^-1 and dR = (dC - omega) R, omega skew from the lower triangle
    of dC. Of a tall matrix this is so for the first n columns of Q; `_completed` has the others.
    """
    (a,), (a_dot,) = primals, tangents
    q, r, *p = qr_p.bind(a, pivoting=pivoting, full_matrices=full_matrices, use_magma=None)
    extra = [tangent_zero(x) for x in p]
    if is_zero(a_dot):
        return [q, r, *p], [tangent_zero(q), tangent_zero(r), *extra]
    *batch, m, n = a.shape
    out = [q, r, *p]
    if p:
        shape = (*batch, n, n)
        choose = lax.eq_p.bind(lax.broadcasted_iota(np.int32, shape, len(shape) - 2), columns(p[0], shape))
        a_dot = product(a_dot, to_dtype(choose, a.dtype))
    k = min(m, n)
    whole, q, r = q, column_range(q, 0, k), row_range(r, 0, k)
    core, core_dot = column_range(r, 0, k), column_range(a_dot, 0, k)
    x = triangular_solve(core, core_dot, left_side=False, lower=False)
    c = product(adjoint(q), x)
    low = triangle(c, True, 1)
    omega = lax.sub(low, adjoint(low))
    if is_complex(a.dtype):  # a real diagonal of R fixes the phases
        d = lax.select_n_p.bind(on_diagonal(c.shape), constant(c, 0), c)
        omega = lax.add(omega, lax.sub(d, to_dtype(lax.real(d), c.dtype)))
    q_dot = lax.add(product(q, lax.sub(omega, c)), x)
    r_dot = product(lax.sub(c, omega), core)
    if n > k:
        rest = lax.add(
            product(adjoint(q_dot), product(q, column_range(r, k, n))), product(adjoint(q), column_range(a_dot, k, n))
        )
        r_dot = lax.concatenate([r_dot, rest], r_dot.ndim - 1)
    if full_matrices and m > n:
        q_dot = _completed(whole, q_dot)
        below = lax.full((*batch, m - n, n), 0, r.dtype)
        r_dot = lax.concatenate([r_dot, below], r_dot.ndim - 2)
    return out, [q_dot, r_dot, *extra]


def _completed(q, first_dot):
    """The tangent of a square Q, given that of its first k columns Q1, which the same reflectors make.

    Q - I = V S, V the vectors of k reflectors, so that the columns of Q - I are combinations of those of W = Q1 - E1:
    Q2 = E2 + W P with P = W1^-1 Q21, where a digit after W or a second one says which rows. So dP^H is
    (dW2 - P^H dW1) W1^-1, and Q2^H dQ2 = Q2^H dQ1 P - Q21^H dP. Where W1 has no inverse some reflector is none, and
    the columns of Q2 are not turned among each other.
    """
    m, k = first_dot.shape[-2:]
    first, second = column_range(q, 0, k), column_range(q, k, m)
    w = row_range(first, 0, k)
    w = lax.sub(w, to_dtype(on_diagonal(w.shape), w.dtype))
    inverse = _inverse_or_zero(w)
    second_above = row_range(second, 0, k)
    p = product(inverse, second_above)
    p_dot = lax.sub(row_range(first_dot, k, m), product(adjoint(p), row_range(first_dot, 0, k)))
    p_dot = adjoint(product(p_dot, inverse))
    across = product(adjoint(second), first_dot)
    turned = lax.sub(product(across, p), product(adjoint(second_above), p_dot))
    second_dot = lax.sub(product(second, turned), product(first, adjoint(across)))
    return lax.concatenate([first_dot, second_dot], q.ndim - 1)


def _inverse_or_zero(w):
    """The inverses of square matrices; 0 for those that have none, to the accuracy of their type."""
    lu, _, order = lu_p.bind(w)
    swap = to_dtype(lax.eq_p.bind(rows(order, w.shape), lax.broadcasted_iota(np.int32, w.shape, w.ndim - 1)), w.dtype)
    left = triangular_solve(lu, swap, left_side=True, lower=True, unit_diagonal=True)
    inverse = triangular_solve(lu, left, left_side=True, lower=False)
    largest = lax.reduce_max(lax.abs(inverse), (w.ndim - 2, w.ndim - 1))
    regular = lax.lt(largest, constant(largest, 1 / float(np.finfo(w.dtype).eps)))
    keep = lax.broadcast_in_dim(regular, w.shape, tuple(range(w.ndim - 2)))
    return lax.select(keep, inverse, lax.full_like(inverse, 0))


def _qr_emit(ctx):
    b, aval, params = ctx.b, ctx.in_avals[0], ctx.params
    *batch, m, n = aval.shape
    k = min(m, n)
    columns_of_q = ctx.out_avals[0].shape[-1]
    if params["pivoting"] or k == 0:
        ctx.by_reference()
        return
    source, q, r, kind = ctx.operand(0), ctx.result(0), ctx.result(1), letter(aval.dtype)
    size = max(n, columns_of_q)
    length = 64 * size
    zero = b.const(source.dtype, 0)
    if small_matrices.suits(batch, aval.dtype, small_matrices.MOST_QR, m, n, columns_of_q):
        wanted = ctx.is_read(0)
        rows_of_r = r.shape[-2]
        held = [Held(r.dtype, m, n, source), Held(r.dtype, k, 1), Held(r.dtype, rows_of_r, n, None, r)]
        held += [Held(r.dtype, m, columns_of_q, None, q)] if wanted else []

        def reflect(a, taus, upper, *q):
            small_matrices.qr(b, a, q[0] if q else None, taus, m, n, columns_of_q)
            small_matrices.take_upper(b, a, upper, rows_of_r, n)

        in_lanes(ctx, batch, small_matrices.lanes_of(aval.dtype), 4 * m * n * k, held, reflect)
        return
    blocked = math.prod(batch) == 1 and k >= blocked_qr.LEAST
    memory = [
        scratch(aval.dtype, size, m),  # column-major m x size
        scratch(aval.dtype, k),
        scratch(integer(), 1),
        scratch(aval.dtype, length),
        *(blocked_qr.memory(m, n, aval.dtype) if blocked else []),
    ]

    def one(matrix, packed, taus, info, work, *blocks):
        factors = packed.slice((0, 0), (n, m))
        ctx.copy(factors, matrix(source).transposed((1, 0)))
        if blocked:
            blocked_qr.reflect(ctx, factors, aval.dtype, taus, *blocks)
        else:
            ctx.call_fortran(kind + "geqrf", m, n, packed, m, taus, work, length, info)
        out = matrix(r)
        loops(
            b,
            out.shape,
            lambda at: ctx.store(out, at, b.select(b.op("le", at[0], at[1]), ctx.load(packed, (at[1], at[0])), zero)),
        )
        if not ctx.is_read(0):
            return
        found = packed.slice((0, 0), (columns_of_q, m))
        if blocked:
            blocked_qr.generate(ctx, found, aval.dtype, *blocks)
        else:
            generate = kind + ("ungqr" if is_complex(aval.dtype) else "orgqr")
            ctx.call_fortran(generate, m, columns_of_q, k, packed, m, taus, work, length, info)
        ctx.copy(matrix(q), found.transposed((1, 0)))

    for_each(ctx, batch, 2 * m * n * k + 2 * m * k * columns_of_q, memory, one)


def _qr_cases(rng):
    return [
        Case(
            (rng.normal(size=s),),
            {"pivoting": p, "full_matrices": f, "use_magma": None},
            tolerance=1e-10,
        )
        for s, p, f in [
            ((3, 3), False, True),
            ((4, 2), False, False),
            ((4, 2), False, True),
            ((2, 4), False, False),
            ((2, 3, 3), False, False),
            ((4, 3), True, False),
        ]
    ]


qr_p = of_matrices(
    "qr",
    doc="A = Q R: Q with orthonormal columns, R upper triangular.",
    shape=_qr_shape,
    multiple_results=True,
    one=_qr_one,
    jvp=_qr_jvp,
    lower=Nest(_qr_emit),
    samples=Samples(ulp=256, cases=_qr_cases),
)


def qr(
    x: Any, *, pivoting: bool = False, full_matrices: bool = True, use_magma: bool | None = None
) -> tuple[Array, ...]:
    """(Q, R) with x = Q R, or (Q, R, p) with x[:, p] = Q R, of x: f[..., m, n]; Q has m or min(m, n) columns.

    Raises TypeError for operands of rank below 2.
    """
    check_flags("linalg.qr", pivoting=pivoting, full_matrices=full_matrices, use_magma=use_magma)
    x, as_given = widened_if_empty(as_array(x, "qr"))
    outs = qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices), use_magma=use_magma)
    return tuple(map(as_given, outs))


_LAPACK_TYPES = frozenset({"float32", "float64", "complex64", "complex128"})


def _geqrf_shape(a):
    check_matrix("geqrf", a)
    *batch, m, n = a.shape
    return [a, ShapedArray((*batch, min_dim(m, n)), a.dtype)]


def _geqrf_one(a):
    if a.size == 0:
        return a, np.zeros(0, a.dtype)
    return routines.geqrf(a)


def _geqrf_emit(ctx):
    aval = ctx.in_avals[0]
    *batch, m, n = aval.shape
    k = min(m, n)
    if k == 0 or aval.dtype.name not in _LAPACK_TYPES:
        ctx.by_reference()
        return
    length = 64 * n
    memory = [scratch(aval.dtype, n, m), scratch(aval.dtype, length), scratch(integer(), 1)]

    def one(matrix, columns, work, info):
        ctx.copy(columns, matrix(ctx.operand(0)).transposed((1, 0)))
        taus = matrix(ctx.result(1), 1)
        ctx.call_fortran(letter(aval.dtype) + "geqrf", m, n, columns, m, taus, work, length, info)
        ctx.copy(matrix(ctx.result(0)), columns.transposed((1, 0)))

    for_each(ctx, batch, 2 * m * n * k, memory, one)


geqrf_p = of_matrices(
    "geqrf",
    doc="R on and above the diagonal, the reflectors that make Q below it, and their factors.",
    shape=_geqrf_shape,
    multiple_results=True,
    one=_geqrf_one,
    lower=Nest(_geqrf_emit),
    jvp=NoRule("differentiate qr instead"),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case((rng.normal(size=s),), {}, derivatives=False, tolerance=1e-9) for s in [(4, 3), (2, 3, 3), (2, 5)]
        ],
    ),
)


@api_boundary
def geqrf(a: Any) -> tuple[Array, Array]:
    """(A', taus) of a: f[..., m, n] as LAPACK's geqrf has them: R in the upper part of A', reflectors below it."""
    packed, taus = geqrf_p.bind(as_array(a, "geqrf"))
    return packed, taus


# ---------------------------------------------------------------------------------------------- products of reflectors


def _householder_shape(a, taus):
    check_dtypes("householder_product", a, taus, tip=False)
    check_matrix("householder_product", a)
    *batch, m, n = a.shape
    if m < n:
        raise ValueError(f"householder_product: argument 'a' must not be wider than tall, got shape {a.shape}")
    if taus.ndim != a.ndim - 1:
        raise TypeError(
            f"householder_product: argument 'taus' must have one dimension less than 'a', got shapes {taus.shape} and "
            f"{a.shape}"
        )
    if taus.shape[:-1] != tuple(batch) or taus.shape[-1] > n:
        raise ValueError(
            f"householder_product: argument 'taus' must have one number, or none, for each column of 'a', got shapes "
            f"{taus.shape} and {a.shape}"
        )
    return ShapedArray(a.shape, a.dtype)


def _householder_one(a, taus):
    if a.size == 0:
        return a
    if taus.shape[0] == 0:
        return np.eye(*a.shape, dtype=a.dtype)
    return routines.orgqr(a, taus)


def _householder_emit(ctx):
    aval, k = ctx.in_avals[0], ctx.in_avals[1].shape[-1]
    *batch, m, n = aval.shape
    if not (k and math.prod(aval.shape)):
        ctx.by_reference()
        return
    length, name = 64 * n, letter(aval.dtype) + ("ungqr" if is_complex(aval.dtype) else "orgqr")

    def one(matrix, columns, work, info):
        ctx.copy(columns, matrix(ctx.operand(0)).transposed((1, 0)))
        ctx.call_fortran(name, m, n, k, columns, m, matrix(ctx.operand(1), 1), work, length, info)
        ctx.copy(matrix(ctx.result(0)), columns.transposed((1, 0)))

    memory = [scratch(aval.dtype, n, m), scratch(aval.dtype, length), scratch(integer(), 1)]
    for_each(ctx, batch, 4 * m * n * k, memory, one)


householder_product_p = of_matrices(
    "householder_product",
    doc="The product of the reflectors that LAPACK's geqrf stores.",
    shape=_householder_shape,
    one=_householder_one,
    core=(2, 1),
    lower=Nest(_householder_emit),
    jvp=NoRule("differentiate qr instead"),
    samples=Samples(
        ulp=64,
        cases=lambda rng: [
            Case((rng.normal(size=(4, 3)), rng.uniform(0, 1, 3)), {}, derivatives=False, tolerance=1e-10)
        ],
    ),
)


def householder_product(a: Any, taus: Any) -> Array:
    """The first n columns of H_1 ... H_k, H_i = I - taus[i] v v^H with v from column i of a: f[..., m, n] below the
    diagonal.
    """
    return householder_product_p.bind(*as_arrays("householder_product", a, taus))


def _ormqr_shape(a, taus, c, *, left=True, transpose=False):
    check_dtypes("ormqr", a, taus, c, tip=False)
    check_matrix("ormqr", a)
    if not a.shape[:-2] == taus.shape[:-1] == c.shape[:-2]:
        raise TypeError(
            f"All inputs to ormqr must have the same batch dimensions, got shapes {a.shape}, {taus.shape} and {c.shape}"
        )
    if taus.shape[-1] > a.shape[-1]:
        raise ValueError(f"ormqr: {taus.shape[-1]} factors for the {a.shape[-1]} reflectors of shape {a.shape}")
    if c.shape[-2 if left else -1] != a.shape[-2]:
        raise ValueError(f"ormqr: the reflectors of shape {a.shape} do not fit the matrix of shape {c.shape}")
    return ShapedArray(c.shape, c.dtype)


def _ormqr_one(a, taus, c, left=True, transpose=False):
    trans = "N" if not transpose else "C" if is_complex(a.dtype) else "T"
    if not (taus.size and c.size):  # the identity, or nothing to multiply
        return np.array(c)
    return routines.ormqr("L" if left else "R", trans, a[:, : taus.size], taus, c)


def _ormqr_emit(ctx):
    a, taus, c = ctx.in_avals
    left, transpose = ctx.params.get("left", True), ctx.params.get("transpose", False)
    *batch, rows, columns = c.shape
    k = taus.shape[-1]
    if not (k and math.prod(c.shape)) or c.dtype.name not in _LAPACK_TYPES:
        ctx.by_reference()
        return
    complex_ = is_complex(c.dtype)
    routine = letter(c.dtype) + ("unmqr" if complex_ else "ormqr")
    turned = "N" if not transpose else "C" if complex_ else "T"
    m, n = a.shape[-2:]
    length = 64 * max(rows, columns)
    memory = [
        scratch(c.dtype, n, m), scratch(c.dtype, columns, rows), scratch(c.dtype, length), scratch(integer(), 1),
    ]  # fmt: skip

    def one(matrix, reflectors, product, work, info):
        ctx.copy(reflectors, matrix(ctx.operand(0)).transposed((1, 0)))
        ctx.copy(product, matrix(ctx.operand(2)).transposed((1, 0)))
        factors = matrix(ctx.operand(1), 1)
        sizes = (rows, columns, k, reflectors, m, factors, product, rows)
        ctx.call_fortran(routine, "L" if left else "R", turned, *sizes, work, length, info)
        ctx.copy(matrix(ctx.result(0)), product.transposed((1, 0)))

    for_each(ctx, batch, 4 * rows * columns * k, memory, one)


ormqr_p = of_matrices(
    "ormqr",
    doc="A matrix times the product of reflectors that LAPACK's geqrf stores.",
    shape=_ormqr_shape,
    one=_ormqr_one,
    core=(2, 1, 2),
    lower=Nest(_ormqr_emit),
    jvp=NoRule("differentiate qr instead"),
    samples=Samples(
        ulp=64,
        cases=lambda rng: (
            [
                Case(
                    (rng.normal(size=(3, 3)), rng.uniform(0, 1, 3), rng.normal(size=(3, 2))),
                    {"left": True, "transpose": t},
                    derivatives=False,
                    tolerance=1e-10,
                )
                for t in (False, True)
            ]
            + [
                Case(
                    (rng.normal(size=(2, 3, 4)), rng.uniform(0, 1, (2, 3)), rng.normal(size=(2, 2, 3))),
                    {"left": False, "transpose": True},
                    derivatives=False,
                    tolerance=1e-10,
                )
            ]
        ),
    ),
)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """Q c or c Q (or with Q^H), Q the product of the reflectors stored in a and taus."""
    return ormqr_p.bind(*as_arrays("ormqr", a, taus, c), left=bool(left), transpose=bool(transpose))
