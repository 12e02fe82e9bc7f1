"""Eigenvalues and eigenvectors of general matrices; with derivatives as published.

Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008).
"""

from __future__ import annotations

import enum
import functools
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.linalg import routines
from pullback.lax.linalg.factor import lu_p
from pullback.lax.linalg.matrices import (
    all_finite,
    check_matrix,
    columns,
    diagonal,
    in_one_call,
    is_complex,
    letter,
    of_matrices,
    per_matrix,
    product,
    real_of,
    rows,
    to_dtype,
)
from pullback.lax.linalg.singular_values import reciprocal_differences
from pullback.lax.linalg.solve import triangular_solve
from pullback.lax.linalg.stacks import fill_nan, fill_unless, for_each, is_finite, scratch
from pullback.lax.records.families import *
from pullback.util.errors import ArgumentError
from pullback.util.lapack import integer
from pullback.util.static import check_flags

Array = Any


class EigImplementation(enum.Enum):
    """How eigenvalues are computed; on a CPU always by LAPACK."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


@functools.lru_cache(maxsize=16)
def _complex_of(dtype):
    return np.dtype({"float32": "complex64", "float64": "complex128"}.get(dtype.name, dtype.name))


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
    n, dtype = a.shape[0], _complex_of(a.dtype)
    if n and all_finite(a):
        *out, info = routines.geev(a, left, right)
        if info == 0:
            return [x for x, wanted in zip(out, (True, left, right)) if wanted]
    nan = complex(np.nan, np.nan)
    return [np.full(n, nan, dtype), *[np.full((n, n), nan, dtype)] * (left + right)]


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
    core = _solve(v, product(to_dtype(a_dot, v.dtype), v))
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
        scratch(integer(), 1),
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


eig_p = of_matrices(
    "eig",
    doc="Eigenvalues, left and right eigenvectors of square matrices.",
    shape=_eig_shape,
    multiple_results=True,
    reference=_eig_reference,
    jvp=_eig_jvp,
    lower=Nest(_eig_emit),
    traits=("matrices", "exact"),
    samples=Samples(ulp=256, cases=_eig_cases),
)


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


def _solve(a: Any, b: Any) -> Array:
    """X with A X = B by LU with partial pivoting; for rules."""
    lu, _, permutation = lu_p.bind(a)
    shape = (*a.shape[:-1], a.shape[-1])
    swap = lax.eq_p.bind(rows(permutation, shape), lax.broadcasted_iota(np.int32, shape, len(shape) - 1))
    y = triangular_solve(lu, product(to_dtype(swap, a.dtype), b), left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(lu, y, left_side=True, lower=False)
