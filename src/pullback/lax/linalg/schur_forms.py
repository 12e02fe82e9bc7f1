"""Schur, Hessenberg and tridiagonal forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.core.lowering import HostCall
from pullback.lax.linalg.hermitian_eig import hermitian_case
from pullback.lax.linalg.matrices import (
    all_finite,
    batch_leading,
    check_matrix,
    is_complex,
    lapack,
    per_matrix,
    real_of,
    weak_like_operands,
)
from pullback.lax.records.families import *
from pullback.util.static import check_flags

Array = Any


@weak_like_operands
def _schur_shape(aval, *, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    check_matrix("schur", aval, square=True)
    return [ShapedArray(aval.shape, aval.dtype)] * (2 if compute_schur_vectors else 1)


def _schur_reference(a, compute_schur_vectors=True, sort_eig_vals=False, select_callable=None):
    import scipy.linalg

    def one(x):
        if x.shape[0] == 0:
            out = [x, x]
        elif not all_finite(x):
            out = [np.full_like(x, np.nan)] * 2
        else:
            out = list(
                scipy.linalg.schur(
                    x,
                    output="complex" if is_complex(x.dtype) else "real",
                    sort=select_callable if sort_eig_vals else None,
                    check_finite=False,
                )[:2]
            )
        return out if compute_schur_vectors else out[:1]

    return per_matrix(one, a)


schur_p = Primitive(
    "schur",
    doc="A = Z T Z^H: T upper (quasi) triangular, Z unitary.",
    abstract_eval=_schur_shape,
    multiple_results=True,
    reference=_schur_reference,
    jvp=NoRule("no derivative of the Schur decomposition is published that is not ambiguous"),
    transpose=NOT_LINEAR,
    traits={"matrices"},
    lower=HostCall(),
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
schur_p.batch = batch_leading(schur_p)


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


@weak_like_operands
def _hessenberg_shape(aval):
    check_matrix("hessenberg", aval, square=True)
    if aval.shape[-1] == 0:
        raise TypeError(f"hessenberg: expected matrices with at least one row, got shape {aval.shape}")
    return [ShapedArray(aval.shape, aval.dtype), ShapedArray((*aval.shape[:-2], aval.shape[-1] - 1), aval.dtype)]


def _hessenberg_one(a):
    if a.shape[0] == 1:
        return a, np.zeros(0, a.dtype)
    out, taus, _ = lapack("gehrd", a.dtype)(a)
    return out, taus


hessenberg_p = Primitive(
    "hessenberg",
    doc="A = Q H Q^H: H upper Hessenberg, Q as reflectors below it.",
    abstract_eval=_hessenberg_shape,
    multiple_results=True,
    reference=lambda a: per_matrix(_hessenberg_one, a),
    transpose=NOT_LINEAR,
    traits={"matrices"},
    lower=HostCall(),
    jvp=NoRule("it depends on how LAPACK chooses reflectors"),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case((rng.normal(size=s),), {}, derivatives=False, tolerance=1e-9) for s in [(4, 4), (2, 3, 3)]
        ],
    ),
)
hessenberg_p.batch = batch_leading(hessenberg_p)


def hessenberg(a: Any) -> tuple[Array, Array]:
    """(A', taus): Hessenberg form of a: f[..., n, n] in the upper part of A', reflectors below and in taus (LAPACK's
    gehrd).
    """
    out, taus = hessenberg_p.bind(as_array(a, "hessenberg"))
    return out, taus


@weak_like_operands
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


def _tridiagonal_one(a, lower):
    n, real = a.shape[0], real_of(a.dtype)
    if n == 1:
        return a, np.real(np.diagonal(a)).astype(real), np.zeros(0, real), np.zeros(0, a.dtype)
    out, d, e, taus, _ = lapack("hetrd" if is_complex(a.dtype) else "sytrd", a.dtype)(a, lower=int(lower))
    return out, d, e, taus


tridiagonal_p = Primitive(
    "tridiagonal",
    doc="A = Q T Q^H: T real tridiagonal, Q as reflectors.",
    abstract_eval=_tridiagonal_shape,
    multiple_results=True,
    reference=lambda a, lower=True: per_matrix(lambda x: _tridiagonal_one(x, lower), a),
    transpose=NOT_LINEAR,
    traits={"matrices"},
    lower=HostCall(),
    jvp=NoRule("it depends on how LAPACK chooses reflectors"),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case((hermitian_case(rng, s),), {"lower": True}, derivatives=False, tolerance=1e-9)
            for s in [(4, 4), (2, 3, 3)]
        ],
    ),
)
tridiagonal_p.batch = batch_leading(tridiagonal_p)


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """(A', d, e, taus): diagonal d and off-diagonal e of the tridiagonal form of Hermitian a: f[..., n, n]; reflectors
    in A' and taus.
    """
    check_flags("linalg.tridiagonal", lower=lower)
    return tuple(tridiagonal_p.bind(as_array(a, "tridiagonal"), lower=bool(lower)))  # type: ignore[return-value]
