"""Schur, Hessenberg and tridiagonal forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.linalg import routines
from pullback.lax.linalg.hermitian_eig import hermitian_case
from pullback.lax.linalg.matrices import (
    all_finite,
    check_matrix,
    is_complex,
    letter,
    of_matrices,
    real_of,
)
from pullback.lax.linalg.stacks import fill_nan, fill_unless, for_each, is_finite, scratch
from pullback.lax.records.families import *
from pullback.util.lapack import integer
from pullback.util.static import check_flags
from pullback.util.tracebacks import api_boundary

Array = Any


def _schur_shape(aval, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    check_matrix("schur", aval, square=True)
    return [ShapedArray(aval.shape, aval.dtype)] * (2 if compute_schur_vectors else 1)


def _schur_one(a, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    if a.shape[0] == 0:
        out = [a, a]
    elif not all_finite(a):
        out = [np.full_like(a, np.nan)] * 2
    else:
        *out, info = routines.gees(a, select_callable if sort_eig_vals else None)
        if info == a.shape[0] + 1:
            raise np.linalg.LinAlgError("schur: eigenvalues are too close to each other to be sorted")
        if 0 < info <= a.shape[0]:
            out = [np.full_like(a, np.nan)] * 2
    return out if compute_schur_vectors else out[:1]


def _schur_emit(ctx):
    """LAPACK's gees, which does not sort; where it is to, the user's function decides."""
    aval, params = ctx.in_avals[0], ctx.params
    *batch, n, _ = aval.shape
    if n == 0:
        return
    if params["sort_eig_vals"]:
        ctx.by_reference()
        return
    complex_ = is_complex(aval.dtype)
    vectors = params["compute_schur_vectors"] and ctx.is_read(1)
    length = 66 * n
    memory = [
        scratch(aval.dtype, n, n),
        scratch(aval.dtype, *((n, n) if vectors else (1, 1))),
        scratch(aval.dtype, length),
        scratch(aval.dtype, 2, n),
        scratch(real_of(aval.dtype), n),
        scratch(integer(), n),
        scratch(integer(), 1),
    ]

    def one(matrix, form, found, work, values, reals, integers, info):
        source, results = matrix(ctx.operand(0)), [matrix(ctx.result(k)) for k in range(1 + vectors)]
        with ctx.if_(is_finite(ctx, source)) as branch:
            ctx.copy(form, source.transposed((1, 0)))
            of_pairs = [values.at(0)] if complex_ else [values.at(0), values.at(1)]
            flags = ["V" if vectors else "N", "N", info]  # no function that sorts, and no count of what comes first
            sizes = [n, form, n, info, *of_pairs, found, found.shape[0], work, length]
            extra = [reals] if complex_ else []
            ctx.call_fortran(letter(aval.dtype) + "gees", *flags, *sizes, *extra, integers, info)
            for target, made in zip(results, (form, found)):
                ctx.copy(target, made.transposed((1, 0)))
            fill_unless(ctx, info, results)
        with branch.otherwise():
            fill_nan(ctx, results)

    for_each(ctx, batch, 25 * n**3, memory, one)


schur_p = of_matrices(
    "schur",
    doc="A = Z T Z^H: T upper (quasi) triangular, Z unitary.",
    shape=_schur_shape,
    multiple_results=True,
    one=_schur_one,
    jvp=NoRule("no derivative of the Schur decomposition is published that is not ambiguous"),
    lower=Nest(_schur_emit),
    traits=("matrices", "exact"),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case(
                (rng.normal(size=s),),
                {"compute_schur_vectors": True, "sort_eig_vals": False, "select_callable": None},
                tolerance=1e-9,
                derivatives=False,
            )
            for s in [(3, 3), (2, 3, 3)]
        ],
    ),
)


def schur(
    x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Callable | None = None
) -> list[Array]:
    """[T, Z] (or [T]) with x = Z T Z^H: Z unitary, T upper triangular, for real x with 2x2 blocks of complex pairs.

    With `sort_eig_vals`, eigenvalues for which `select_callable` holds come first.
    """
    check_flags(
        "linalg.schur",
        compute_schur_vectors=compute_schur_vectors,
        sort_eig_vals=sort_eig_vals,
        select_callable=select_callable,
    )
    if sort_eig_vals and select_callable is None:
        raise ValueError("schur: sort_eig_vals=True needs select_callable")
    return list(
        schur_p.bind(
            as_array(x, "schur"),
            compute_schur_vectors=bool(compute_schur_vectors),
            sort_eig_vals=bool(sort_eig_vals),
            select_callable=select_callable,
        )
    )


def _hessenberg_shape(aval):
    check_matrix("hessenberg", aval, square=True)
    if aval.shape[-1] == 0:
        raise TypeError(f"hessenberg: expected matrices with at least one row, got shape {aval.shape}")
    return [ShapedArray(aval.shape, aval.dtype), ShapedArray((*aval.shape[:-2], aval.shape[-1] - 1), aval.dtype)]


def _hessenberg_one(a):
    if a.shape[0] == 1:
        return a, np.zeros(0, a.dtype)
    return routines.gehrd(a)


def _hessenberg_emit(ctx):
    aval = ctx.in_avals[0]
    *batch, n, _ = aval.shape
    if n == 1:
        ctx.copy(ctx.result(0), ctx.operand(0))
        return
    length = 64 * n

    def one(matrix, form, work, info):
        ctx.copy(form, matrix(ctx.operand(0)).transposed((1, 0)))
        sizes = (n, 1, n, form, n, matrix(ctx.result(1), 1), work, length)
        ctx.call_fortran(letter(aval.dtype) + "gehrd", *sizes, info)
        ctx.copy(matrix(ctx.result(0)), form.transposed((1, 0)))

    memory = [scratch(aval.dtype, n, n), scratch(aval.dtype, length), scratch(integer(), 1)]
    for_each(ctx, batch, 10 / 3 * n**3, memory, one)


hessenberg_p = of_matrices(
    "hessenberg",
    doc="A = Q H Q^H: H upper Hessenberg, Q as reflectors below it.",
    shape=_hessenberg_shape,
    multiple_results=True,
    one=_hessenberg_one,
    lower=Nest(_hessenberg_emit),
    traits=("matrices", "exact"),
    jvp=NoRule("it depends on how LAPACK chooses reflectors"),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case((rng.normal(size=s),), {}, derivatives=False, tolerance=1e-9) for s in [(4, 4), (2, 3, 3)]
        ],
    ),
)


@api_boundary
def hessenberg(a: Any) -> list[Array]:
    """[A', taus]: Hessenberg form of a: f[..., n, n] in the upper part of A', reflectors below and in taus (LAPACK's
    gehrd).
    """
    return list(hessenberg_p.bind(as_array(a, "hessenberg")))


def _tridiagonal_shape(aval, *, lower=True):
    check_matrix("tridiagonal", aval, square=True)
    *batch, n, _ = aval.shape
    if n == 0:
        raise TypeError(f"tridiagonal: expected matrices with at least one row, got shape {aval.shape}")
    real = real_of(aval.dtype)
    return [
        aval,
        ShapedArray((*batch, n), real),
        ShapedArray((*batch, n - 1), real),
        ShapedArray((*batch, n - 1), aval.dtype),
    ]


def _tridiagonal_one(a, lower=True):
    n, real = a.shape[0], real_of(a.dtype)
    if n == 1:
        return a, np.real(np.diagonal(a)).astype(real), np.zeros(0, real), np.zeros(0, a.dtype)
    return routines.sytrd(a, lower)


def _tridiagonal_emit(ctx):
    aval, name = ctx.in_avals[0], "hetrd" if is_complex(ctx.in_avals[0].dtype) else "sytrd"
    *batch, n, _ = aval.shape
    if n == 1:
        ctx.by_reference()
        return
    length, triangle = 64 * n, "L" if ctx.params["lower"] else "U"

    def one(matrix, form, work, info):
        ctx.copy(form, matrix(ctx.operand(0)).transposed((1, 0)))
        others = [matrix(ctx.result(k), 1) for k in (1, 2, 3)]
        ctx.call_fortran(letter(aval.dtype) + name, triangle, n, form, n, *others, work, length, info)
        ctx.copy(matrix(ctx.result(0)), form.transposed((1, 0)))

    memory = [scratch(aval.dtype, n, n), scratch(aval.dtype, length), scratch(integer(), 1)]
    for_each(ctx, batch, 4 / 3 * n**3, memory, one)


tridiagonal_p = of_matrices(
    "tridiagonal",
    doc="A = Q T Q^H: T real tridiagonal, Q as reflectors.",
    shape=_tridiagonal_shape,
    multiple_results=True,
    one=_tridiagonal_one,
    lower=Nest(_tridiagonal_emit),
    jvp=NoRule("it depends on how LAPACK chooses reflectors"),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case((hermitian_case(rng, s),), {"lower": True}, derivatives=False, tolerance=1e-9)
            for s in [(4, 4), (2, 3, 3)]
        ],
    ),
)


def tridiagonal(a: Any, *, lower: bool = True) -> list[Array]:
    """[A', d, e, taus]: diagonal d and off-diagonal e of the tridiagonal form of Hermitian a: f[..., n, n]; reflectors
    in A' and taus.
    """
    check_flags("linalg.tridiagonal", lower=lower)
    return list(tridiagonal_p.bind(as_array(a, "tridiagonal"), lower=bool(lower)))
