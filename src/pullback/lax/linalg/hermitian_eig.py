"""Eigenvalues and eigenvectors of Hermitian matrices; with derivatives as published.

Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

import enum
import math
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.linalg import divided_eigh, routines, symmetric_ql
from pullback.lax.linalg.matrices import (
    adjoint,
    all_finite,
    check_matrix,
    diagonal,
    hermitian_operand,
    in_one_call,
    is_complex,
    letter,
    of_matrices,
    per_matrix,
    product,
    real_of,
    to_dtype,
)
from pullback.lax.linalg.singular_values import reciprocal_differences, spread_spectrum
from pullback.lax.linalg.small_matrices import suits
from pullback.lax.linalg.stacks import fill_unless, for_each, scratch
from pullback.lax.records.families import *
from pullback.util.lapack import integer
from pullback.util.static import check_flags

Array = Any


class EighImplementation(enum.Enum):
    """How Hermitian eigenvalues are computed; on a CPU sizes decide between QL steps in lanes and LAPACK."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


def _eigh_shape(aval, *, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None):
    check_matrix("eigh", aval, square=True)
    *batch, n, _ = aval.shape
    k = n
    if subset_by_index is not None:
        lo, hi = subset_by_index
        if not 0 <= lo < hi <= n:
            raise ValueError(f"eigh: subset_by_index={subset_by_index} must lie within (0, {n})")
        k = hi - lo
    return [ShapedArray((*batch, n, k), aval.dtype), ShapedArray((*batch, k), real_of(aval.dtype))]


def _eigh_one(a, lower):
    n = a.shape[0]
    if n == 0:
        return a, np.zeros(0, real_of(a.dtype))
    if all_finite(np.tril(a) if lower else np.triu(a)):
        w, v, info = routines.syevd(a, lower)
        if info == 0:
            return v, w
    return np.full_like(a, np.nan), np.full(n, np.nan, real_of(a.dtype))


def _eigh_reference(a, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None):
    if in_one_call(a):
        w, v = np.linalg.eigh(a, "L" if lower else "U")
    else:
        v, w = per_matrix(lambda x: _eigh_one(x, lower), a)
    if subset_by_index is not None:
        lo, hi = subset_by_index
        v, w = v[..., lo:hi], w[..., lo:hi]
    return [v, w]


def _eigh_jvp(primals, tangents, *, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None):
    """w_dot = diag(V^H dA V), V_dot = V (F * V^H dA V) with F_ij = 1 / (w_j - w_i)."""
    (a,), (a_dot,) = primals, tangents
    v, w = eigh_p.bind(
        a, lower=lower, sort_eigenvalues=sort_eigenvalues, subset_by_index=subset_by_index, algorithm=algorithm
    )
    if is_zero(a_dot):
        return [v, w], [tangent_zero(v), tangent_zero(w)]
    if subset_by_index is not None and subset_by_index != (0, a.shape[-1]):
        raise NotImplementedError(f"eigh: with subset_by_index={subset_by_index} there is no derivative")
    # The tangent of a Hermitian matrix is one, and is not made one: the rule is linear, and so is the cotangent's.
    core = product(adjoint(v), a_dot, v)
    w_dot = diagonal(lax.real(core) if is_complex(a.dtype) else core)
    v_dot = product(v, lax.mul(to_dtype(reciprocal_differences(w, w), a.dtype), core))
    return [v, w], [v_dot, w_dot]


def _is_stack_of_small(avals, params):
    """Whether matrices are done in lanes."""
    *batch, n, _ = avals[0].shape
    return params["subset_by_index"] is None and suits(batch, avals[0].dtype, symmetric_ql.MOST, n)


def _is_divided(avals, params):
    """Whether one matrix is divided among threads."""
    *batch, n, _ = avals[0].shape
    return params["subset_by_index"] is None and math.prod(batch) == 1 and n >= divided_eigh.LEAST


def _eigh_emit(ctx):
    aval, params = ctx.in_avals[0], ctx.params
    *batch, n, _ = aval.shape
    if n == 0 or params["subset_by_index"] is not None:
        ctx.by_reference()
        return
    vectors = ctx.is_read(0)
    if _is_stack_of_small(ctx.in_avals, params):
        found = ctx.result(0) if vectors else None
        symmetric_ql.eigh(ctx, batch, n, ctx.operand(0), params["lower"], found, ctx.result(1))
        return
    kind, complex_ = letter(aval.dtype), is_complex(aval.dtype)
    length, reals, integers = (
        (2 * n + n * n + 64 * n, 1 + 5 * n + 2 * n * n, 3 + 5 * n)
        if complex_
        else (1 + 6 * n + 2 * n * n + 64 * n, 0, 3 + 5 * n)
    )
    memory = [
        scratch(aval.dtype, n, n),
        scratch(aval.dtype, length),
        scratch(integer(), integers),
        scratch(integer(), 1),
        scratch(real_of(aval.dtype), reals),
    ]
    job, uplo = "V" if vectors else "N", "L" if params["lower"] else "U"
    if vectors and _is_divided(ctx.in_avals, params):

        def divided(matrix, *memory):
            results = matrix(ctx.result(0)), matrix(ctx.result(1), 1)
            divided_eigh.eigh(ctx, matrix(ctx.operand(0)), uplo, aval.dtype, *results, memory)

        for_each(ctx, batch, 9 * n**3, divided_eigh.memory(n, aval.dtype), divided)
        return

    def one(matrix, copy, work, whole, info, real_work):
        v, w = matrix(ctx.result(0)), matrix(ctx.result(1), 1)
        ctx.copy(copy, matrix(ctx.operand(0)).transposed((1, 0)))
        extra = [real_work, reals] if complex_ else []
        name = kind + ("heevd" if complex_ else "syevd")
        ctx.call_fortran(name, job, uplo, n, copy, n, w, work, length, *extra, whole, integers, info)
        if vectors:
            ctx.copy(v, copy.transposed((1, 0)))
        fill_unless(ctx, info, [v, w] if vectors else [w])

    for_each(ctx, batch, (9 if vectors else 2) * n**3, memory, one)


def hermitian_case(rng, shape, dtype=np.float64):
    x = spread_spectrum(rng, shape, dtype)
    q, _ = np.linalg.qr(x)
    return (q * np.arange(1, shape[-1] + 1)) @ np.conj(np.swapaxes(q, -1, -2))


eigh_p = of_matrices(
    "eigh",
    doc="Eigenvectors and ascending eigenvalues of Hermitian matrices.",
    shape=_eigh_shape,
    multiple_results=True,
    reference=_eigh_reference,
    jvp=_eigh_jvp,
    lower=Nest(
        _eigh_emit, decides=lambda avals, params: _is_stack_of_small(avals, params) or _is_divided(avals, params)
    ),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case(
                (hermitian_case(rng, s),),
                {"lower": lo, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None},
                tolerance=1e-9,
                derivatives=False,
            )
            for s, lo in [((3, 3), True), ((2, 4, 4), False), ((1, 1), True)]
        ],
    ),
)


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """(V, w): orthonormal eigenvectors in the columns of V and ascending eigenvalues of Hermitian x: f[..., n, n].

    With `symmetrize_input`, of (x + x^H) / 2; else one triangle is read. NaN where x is not finite. Raises TypeError
    (ValueError if nothing is to be symmetrized) for matrices that are not square.
    """
    check_flags("linalg.eigh", lower=lower, sort_eigenvalues=sort_eigenvalues, implementation=implementation)
    v, w = eigh_p.bind(
        hermitian_operand("eigh", x, symmetrize_input),
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        algorithm=implementation,
        subset_by_index=None if subset_by_index is None else tuple(map(int, subset_by_index)),
    )
    return v, w
