"""Eigenvalues, Schur, Hessenberg and tridiagonal form, polar decomposition; with derivatives as published.

Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable
from typing import Any

from pullback.core.explain import check
from pullback.core.kinds import INTEGER, NUMBER, optional
from pullback.core.lowering import HostCall, Nest
from pullback.lax.linalg import divided_eigh, symmetric_ql
from pullback.lax.linalg.decompose import all_finite, in_one_call, reciprocal_differences, spread_spectrum, svd
from pullback.lax.linalg.factor import lu_p, symmetrized
from pullback.lax.linalg.matrices import (
    adjoint,
    batch_leading,
    check_matrix,
    columns,
    diagonal,
    is_complex,
    lapack,
    letter,
    per_matrix,
    product,
    real_of,
    rows,
    scaled,
    to_dtype,
    weak_like_operands,
)
from pullback.lax.linalg.small_matrices import suits
from pullback.lax.linalg.solve import triangular_solve
from pullback.lax.linalg.stacks import fill_nan, fill_unless, for_each, is_finite, scratch
from pullback.lax.records.families import *
from pullback.util.errors import ArgumentError
from pullback.util.static import check_flags, check_truth

Array = Any


class EighImplementation(enum.Enum):
    """How Hermitian eigenvalues are computed; on a CPU sizes decide between QL steps in lanes and LAPACK."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """How eigenvalues are computed; on a CPU always by LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


# ---------------------------------------------------------------------------------------------------------------- eigh


@weak_like_operands
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
        w, v, info = lapack("heevd" if is_complex(a.dtype) else "syevd", a.dtype)(a, compute_v=1, lower=int(lower))
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
        raise NotImplementedError("Derivatives not defined for partial eigen decomposition.")
    # Only one triangle is read; a tangent is that of a Hermitian matrix.
    a_dot = symmetrized(a_dot)
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
        ctx.host_call(
            lambda a: _eigh_reference(a, params["lower"], True, params["subset_by_index"]),
            [ctx.operand(0)],
            [ctx.result(0), ctx.result(1)],
        )
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
        scratch(np.int32, integers),
        scratch(np.int32, 1),
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


def _hermitian(rng, shape, dtype=np.float64):
    x = spread_spectrum(rng, shape, dtype)
    q, _ = np.linalg.qr(x)
    return (q * np.arange(1, shape[-1] + 1)) @ np.conj(np.swapaxes(q, -1, -2))


eigh_p = Primitive(
    "eigh",
    doc="Eigenvectors and ascending eigenvalues of Hermitian matrices.",
    abstract_eval=_eigh_shape,
    multiple_results=True,
    reference=_eigh_reference,
    jvp=_eigh_jvp,
    transpose=NOT_LINEAR,
    traits={"matrices"},
    lower=Nest(
        _eigh_emit, decides=lambda avals, params: _is_stack_of_small(avals, params) or _is_divided(avals, params)
    ),
    samples=Samples(
        ulp=256,
        cases=lambda rng: [
            Case(
                (_hermitian(rng, s),),
                {"lower": lo, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None},
                tolerance=1e-9,
                derivatives=False,
            )
            for s, lo in [((3, 3), True), ((2, 4, 4), False), ((1, 1), True)]
        ],
    ),
)
eigh_p.batch = batch_leading(eigh_p)


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

    With `symmetrize_input`, of (x + x^H) / 2; else one triangle is read. NaN where x is not finite. Raises ValueError
    for matrices that are not square.
    """
    check_flags("linalg.eigh", lower=lower, sort_eigenvalues=sort_eigenvalues, implementation=implementation)
    x = as_array(x, "eigh")
    check_matrix("eigh", x.aval, square=True)
    if symmetrize_input:
        x = symmetrized(x)
    v, w = eigh_p.bind(
        x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        algorithm=implementation,
        subset_by_index=None if subset_by_index is None else tuple(map(int, subset_by_index)),
    )
    return v, w


# ----------------------------------------------------------------------------------------------------------------- eig


@functools.lru_cache(maxsize=16)
def _complex_of(dtype):
    return np.dtype({"float32": "complex64", "float64": "complex128"}.get(dtype.name, dtype.name))


@weak_like_operands
def _eig_shape(
    aval,
    *,
    compute_left_eigenvectors=True,
    compute_right_eigenvectors=True,
    enable_eigvec_derivs=False,
    implementation=None,
):
    check_matrix("eig", aval, square=True)
    dtype = _complex_of(aval.dtype)
    return [ShapedArray(aval.shape[:-1], dtype)] + [ShapedArray(aval.shape, dtype)] * (
        compute_left_eigenvectors + compute_right_eigenvectors
    )


def _eig_one(a, left, right):
    import scipy.linalg

    n, dtype = a.shape[0], _complex_of(a.dtype)
    if n == 0 or not all_finite(a):
        return [
            np.full(n, complex(np.nan, np.nan), dtype),
            *[np.full((n, n), complex(np.nan, np.nan), dtype)] * (left + right),
        ]
    out = scipy.linalg.eig(a, left=left, right=right, check_finite=False)
    return [x.astype(dtype) for x in (out if isinstance(out, tuple) else (out,))]


def _eig_reference(a, compute_left_eigenvectors=True, compute_right_eigenvectors=True, **params):
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    if not left and in_one_call(a):
        return [x.astype(_complex_of(a.dtype)) for x in (np.linalg.eig(a) if right else (np.linalg.eigvals(a),))]
    return per_matrix(lambda x: _eig_one(x, left, right), a)


def _eig_jvp(
    primals,
    tangents,
    *,
    compute_left_eigenvectors=True,
    compute_right_eigenvectors=True,
    enable_eigvec_derivs=False,
    implementation=None,
):
    """w_dot = diag(V^-1 dA V); V_dot = V (F * V^-1 dA V) up to the length and phase that V is normalized to."""
    (a,), (a_dot,) = primals, tangents
    params = {
        "compute_left_eigenvectors": compute_left_eigenvectors,
        "compute_right_eigenvectors": compute_right_eigenvectors,
        "enable_eigvec_derivs": enable_eigvec_derivs,
        "implementation": implementation,
    }
    if is_zero(a_dot):
        outs = eig_p.bind(a, **params)
        return outs, [tangent_zero(x) for x in outs]
    vectors = compute_left_eigenvectors or compute_right_eigenvectors
    if vectors and not (enable_eigvec_derivs and compute_right_eigenvectors and not compute_left_eigenvectors):
        raise NotImplementedError(
            "The derivatives of non-symmetric eigenvectors are not supported. Only first-order derivatives of "
            "eigenvalues "
            "are supported; for right eigenvectors alone, set enable_eigvec_derivs=True."
        )
    w, v = eig_p.bind(a, **(params | {"compute_left_eigenvectors": False, "compute_right_eigenvectors": True}))
    core = solve(v, product(to_dtype(a_dot, v.dtype), v))
    w_dot = diagonal(core)
    if not vectors:
        return [w], [w_dot]
    x = product(v, lax.mul(reciprocal_differences(w, w), core))
    # Columns keep unit length: what changes it is taken out.
    change = lax.reduce_sum(lax.real(lax.mul(lax.conj(v), x)), (v.ndim - 2,))
    v_dot = lax.sub(x, lax.mul(v, to_dtype(columns(change, v.shape), v.dtype)))
    return [w, v], [w_dot, v_dot]


def _eig_emit(ctx):
    """LAPACK's geev; of real matrices it gives a complex pair of vectors as real and imaginary part in two columns."""
    aval, params, b = ctx.in_avals[0], ctx.params, ctx.b
    *batch, n, _ = aval.shape
    if n == 0:
        return
    complex_ = is_complex(aval.dtype)
    wanted = [params["compute_left_eigenvectors"], params["compute_right_eigenvectors"]]
    outs = iter(range(1, len(ctx.out_avals)))
    targets = [ctx.result(k) if wants and ctx.is_read(k := next(outs)) else None for wants in wanted]
    jobs = ["N" if target is None else "V" for target in targets]
    length = 66 * n
    memory = [
        scratch(aval.dtype, n, n),
        *(scratch(aval.dtype, *((1, 1) if target is None else (n, n))) for target in targets),
        scratch(aval.dtype, length),
        scratch(np.int32, 1),
        scratch(real_of(aval.dtype), 2, n),
    ]

    def vectors(target, found, imaginary):
        """Column j of `found`, which is column-major."""
        if complex_:
            ctx.copy(target, found.transposed((1, 0)))
            return
        with ctx.loops((n, n)) as (i, j):
            turn = ctx.load(imaginary, (j,))
            first, second = b.op("gt", turn, 0.0), b.op("lt", turn, 0.0)
            re = ctx.load(found, (b.select(second, b.sub(j, 1), j), i))
            im = ctx.load(found, (b.select(first, b.add(j, 1), j), i))
            im = b.select(first, im, b.select(second, b.op("neg", im), b.const(im.dtype, 0)))
            ctx.store(target, (i, j), b.op("complex", re, im))

    def one(matrix, copy, left, right, work, info, reals):
        source, w = matrix(ctx.operand(0)), matrix(ctx.result(0), 1)
        results = [w, *(matrix(target) for target in targets if target is not None)]
        with ctx.if_(is_finite(ctx, source)) as branch:
            ctx.copy(copy, source.transposed((1, 0)))
            values = [w] if complex_ else [reals.at(0), reals.at(1)]
            extra = [reals] if complex_ else []
            sides = [left, left.shape[0], right, right.shape[0]]
            name = letter(aval.dtype) + "geev"
            ctx.call_fortran(name, *jobs, n, copy, n, *values, *sides, work, length, *extra, info)
            if not complex_:
                with ctx.loops((n,)) as (i,):
                    ctx.store(w, (i,), b.op("complex", ctx.load(reals, (0, i)), ctx.load(reals, (1, i))))
            for target, found in zip(targets, (left, right)):
                if target is not None:
                    vectors(matrix(target), found, reals.at(1))
            fill_unless(ctx, info, results)
        with branch.otherwise():
            fill_nan(ctx, results)

    for_each(ctx, batch, (25 if any(targets) else 10) * n**3, memory, one)


def _eig_cases(rng):
    a = rng.normal(size=(3, 3)) * 0.3 + np.diag([1.0, 3.0, 5.0])
    return [
        Case(
            (a,),
            {
                "compute_left_eigenvectors": left,
                "compute_right_eigenvectors": right,
                "enable_eigvec_derivs": False,
                "implementation": None,
            },
            tolerance=1e-9,
            derivatives=False,
        )
        for left, right in [(False, False), (True, True), (False, True)]
    ]


eig_p = Primitive(
    "eig",
    doc="Eigenvalues, left and right eigenvectors of square matrices.",
    abstract_eval=_eig_shape,
    multiple_results=True,
    reference=_eig_reference,
    jvp=_eig_jvp,
    transpose=NOT_LINEAR,
    traits={"matrices"},
    lower=Nest(_eig_emit),
    samples=Samples(ulp=256, cases=_eig_cases),
)
eig_p.batch = batch_leading(eig_p)


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """[w, V_left, V_right]: complex eigenvalues and normalized eigenvectors (as told) of x: f[..., n, n].

    NaN where x is not finite. Raises ValueError for matrices that are not square.
    """
    check_flags(
        "linalg.eig",
        compute_left_eigenvectors=compute_left_eigenvectors,
        compute_right_eigenvectors=compute_right_eigenvectors,
        enable_eigvec_derivs=enable_eigvec_derivs,
        implementation=implementation,
        use_magma=use_magma,
    )
    for name, flag in (("left", compute_left_eigenvectors), ("right", compute_right_eigenvectors)):
        if flag not in (False, True) or isinstance(flag, float):
            raise ArgumentError(f"eig: argument 'compute_{name}_eigenvectors' must be True or False, got {flag!r}")
    return list(
        eig_p.bind(
            as_array(x, "eig"),
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
            implementation=implementation,
        )
    )


# -------------------------------------------------------------------------------------- schur, hessenberg, tridiagonal


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
            Case((_hermitian(rng, s),), {"lower": True}, derivatives=False, tolerance=1e-9) for s in [(4, 4), (2, 3, 3)]
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
    check_matrix("symmetric_product", a.aval)
    if c.shape != (*a.shape[:-1], a.shape[-2]):
        raise ValueError(
            f"symmetric_product: expected C of shape {(*a.shape[:-1], a.shape[-2])} for A of shape {a.shape}, got "
            f"{c.shape}"
        )
    n = a.ndim
    batch = tuple(range(n - 2))
    out = scaled(lax.dot_general(a, a, (((n - 1,), (n - 1,)), (batch, batch))), alpha)
    return lax.add(out, scaled(c, beta)) if beta else out


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
    if dynamic_shape is not None:
        raise NotImplementedError("qdwh: dynamic_shape is not supported")
    check_flags("qdwh", is_hermitian=is_hermitian)
    x = as_array(x, "qdwh")
    if x.ndim != 2 or x.shape[0] < x.shape[1]:
        raise ValueError(f"qdwh: argument 'x' must be a matrix with at least as many rows as columns, got {x.shape}")
    check("qdwh", optional(NUMBER), eps=eps)
    if eps is not None and not eps > 0:
        raise ArgumentError(f"qdwh: argument 'eps' must be positive, got {eps}")
    check("qdwh", optional(INTEGER), max_iterations=max_iterations)
    u, s, vt = svd(as_array(x, "qdwh"), full_matrices=False)
    h = product(adjoint(vt), lax.mul(to_dtype(rows(s, vt.shape), vt.dtype), vt))
    # Of one type whatever x is: its iterations start from a matrix of numbers that are not weakly typed.
    return lax.convert(product(u, vt), x.dtype), h, as_array(1, "qdwh"), as_array(True, "qdwh")


def solve(a: Any, b: Any) -> Array:
    """X with A X = B by LU with partial pivoting; for rules."""
    lu, _, permutation = lu_p.bind(a)
    shape = (*a.shape[:-1], a.shape[-1])
    swap = lax.eq_p.bind(rows(permutation, shape), lax.broadcasted_iota(np.int32, shape, len(shape) - 1))
    y = triangular_solve(lu, product(to_dtype(swap, a.dtype), b), left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(lu, y, left_side=True, lower=False)
