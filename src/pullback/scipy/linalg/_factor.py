"""Factorizations, and what is solved by them."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.explain import check
from pullback.core.kinds import NESTED, optional
from pullback.lax import linalg as lax_linalg
from pullback.numpy._arguments import check_arraylike, check_rank_promotion, promote_dtypes_inexact
from pullback.util import dtypes
from pullback.util.promoting import promoting_freely
from pullback.util.static import check_flags
from pullback.util.warning import warn

# Those that take lists for arrays.
_LISTS = frozenset(("cho_factor", "cho_solve", "cholesky", "eigh", "lu", "lu_factor", "lu_solve", "polar", "qr", "svd"))
_LISTS |= {"qr_multiply", "rsf2csf", "solve_sylvester", "solve_triangular"}
_UNCHECKED = frozenset(("eigh", "hessenberg", "lu", "lu_factor", "qr", "schur", "sqrtm", "svd"))


def matrices(name: str, *args: Any) -> Any:
    """The arguments as arrays of one float or complex type. Raises ValueError (of those functions that JAX hands on
    unchecked, TypeError) for fewer than two dimensions of the first."""
    if name not in _LISTS:
        check_arraylike(name, *args)
    out = promote_dtypes_inexact(*(jnp.asarray(a) for a in args))
    if out[0].ndim < 2:
        error = TypeError if name in _UNCHECKED else ValueError
        raise error(f"{name}: expected a matrix, f[..., m, n], got {out[0].aval.short()}")
    return out[0] if len(out) == 1 else out


def square(name: str, *args: Any) -> Any:
    """As `matrices`; ValueError (of `eigh`, which symmetrizes, TypeError) unless the first is square."""
    out = matrices(name, *args)
    first = out if len(args) == 1 else out[0]
    if first.shape[-1] != first.shape[-2]:
        error = TypeError if name == "eigh" else ValueError
        raise error(f"{name}: expected a square matrix, got {first.aval.short()}")
    return out


def adjoint(a: Any) -> Any:
    """The conjugate transpose."""
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """U with U^H U = a (L with L L^H = a if `lower`), of the triangle of a that is named; nan where a is not
    definite."""
    check_flags("cholesky", lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    a = square("cholesky", a)
    factor = lax_linalg.cholesky(a if lower else adjoint(a), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """(cholesky(a, lower), lower), for cho_solve."""
    check_flags("cho_factor", lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    return cholesky(a, lower), lower


def _with_right_side(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """(a[..., n, n], b[..., n, k] of the same batch, whether b was of vectors): one vector or matrix is that of all.

    What has one dimension less than `a` is vectors if its last one is as long as they are, which JAX gives up.
    """
    if b.ndim == 0:
        raise ValueError(f"{name}: the right side must be vectors or matrices, got a scalar")
    batched = b.ndim > 1 and b.ndim == a.ndim - 1 and b.shape[-1] == a.shape[-1]
    if batched:
        text = "batched vectors as right side are deprecated, and will be taken for a matrix: use b[..., None]"
        warn(f"{name}: {text}", FutureWarning)
    vector = batched or b.ndim == 1
    b = b[..., None] if vector else b
    if a.shape[:-2] == b.shape[:-2]:
        return a, b, vector
    check_rank_promotion(name, [a.shape, b.shape[:-1] if vector else b.shape], [2, 1 if vector else 2])
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jnp.broadcast_to(a, (*batch, *a.shape[-2:])), jnp.broadcast_to(b, (*batch, *b.shape[-2:])), vector


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """x with a x = b, from cho_factor(a)."""
    check_flags("cho_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    c, lower = c_and_lower
    c, b = square("cho_solve", c, b)
    c, b, vector = _with_right_side("cho_solve", c, b)
    first = lax_linalg.triangular_solve(c, b, left_side=True, lower=lower, transpose_a=not lower, conjugate_a=not lower)
    x = lax_linalg.triangular_solve(c, first, left_side=True, lower=lower, transpose_a=lower, conjugate_a=lower)
    return x[..., 0] if vector else x


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The determinant."""
    check_flags("det", overwrite_a=overwrite_a, check_finite=check_finite)
    return jnp.linalg.det(square("det", a))


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The inverse."""
    check_flags("inv", overwrite_a=overwrite_a, check_finite=check_finite)
    return jnp.linalg.inv(square("inv", a))


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """(eigenvalues, ascending, eigenvectors) of a Hermitian matrix, of the triangle named by `lower`.

    Raises NotImplementedError for the generalized problem (b) and for `eigvals`.
    """
    check_flags(
        "eigh", lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a, overwrite_b=overwrite_b, turbo=turbo,
        check_finite=check_finite,
    )  # fmt: skip
    if b is not None:
        raise NotImplementedError("eigh: argument 'b', of generalised problems, is not supported")
    if type != 1:
        raise NotImplementedError(f"eigh: argument 'type' is {type}; only 1 is supported")
    if eigvals is not None:
        raise NotImplementedError("eigh: argument 'eigvals' is not supported; choose from all eigenvalues by slicing")
    values, vectors = jnp.linalg.eigh(square("eigh", a), UPLO="L" if lower else "U")
    return values if eigvals_only else (values, vectors)


def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H, zero below the first subdiagonal, with Q H Q^H = a; (H, Q) if `calc_q`."""
    check_flags("hessenberg", calc_q=calc_q, overwrite_a=overwrite_a, check_finite=check_finite)
    a = square("hessenberg", a)
    n = a.shape[-1]
    if not n:
        return (a, a) if calc_q else a
    packed, taus = lax_linalg.hessenberg(a)
    h = jnp.triu(packed, -1)
    if not calc_q:
        return h
    if n < 2:
        return h, jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), a.shape)
    inner = lax_linalg.householder_product(packed[..., 1:, :-1], taus)
    batch = a.shape[:-2]
    q = jnp.broadcast_to(jnp.eye(n, dtype=a.dtype), (*batch, n, n)).at[..., 1:, 1:].set(inner)
    return h, q


@promoting_freely
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """(P, L, U) with P L U = a; (P L, U) if `permute_l`."""
    check_flags("lu", permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite)
    a = matrices("lu", a)
    m, n = a.shape[-2:]
    k = min(m, n)
    packed, _, permutation = lax_linalg.lu(a)
    p = (permutation[..., None, :] == jnp.arange(m)[:, None]).astype(dtypes.finfo(a.dtype).dtype)
    lower = jnp.tril(packed, -1)[..., :, :k] + jnp.eye(m, k, dtype=a.dtype)
    upper = jnp.triu(packed)[..., :k, :]
    return (jnp.matmul(p.astype(a.dtype), lower), upper) if permute_l else (p, lower, upper)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """(L and U in one matrix, pivots i32[n]), for lu_solve."""
    check_flags("lu_factor", overwrite_a=overwrite_a, check_finite=check_finite)
    packed, pivots, _ = lax_linalg.lu(matrices("lu_factor", a))
    return packed, pivots


def lu_solve(
    lu_and_piv: tuple[Any, Any], b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """x with a x = b (a^T x for trans=1, a^H x for 2), from lu_factor(a). Raises ValueError for another `trans`."""
    check_flags("lu_solve", overwrite_b=overwrite_b, check_finite=check_finite)
    packed, pivots = lu_and_piv
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    packed, b = square("lu_solve", packed, b)
    pivots = jnp.broadcast_to(pivots, (*np.broadcast_shapes(pivots.shape[:-1], packed.shape[:-2]), pivots.shape[-1]))
    packed, b, vector = _with_right_side("lu_solve", packed, b)
    pivots = jnp.broadcast_to(pivots, (*packed.shape[:-2], pivots.shape[-1]))
    if b.ndim < 2 or b.shape[-2] != packed.shape[-1]:
        raise ValueError(
            f"lu_solve: argument 'b' must have {packed.shape[-1]} rows, as the matrix has, got shape "
            f"{b.shape[:-1] if vector else b.shape}"
        )
    order = lax_linalg.lu_pivots_to_permutation(pivots, packed.shape[-1])
    options: dict[str, Any] = {"left_side": True, "transpose_a": trans > 0, "conjugate_a": trans == 2}

    def lower(y: Any) -> Any:
        return lax_linalg.triangular_solve(packed, y, lower=True, unit_diagonal=True, **options)

    def upper(y: Any) -> Any:
        return lax_linalg.triangular_solve(packed, y, lower=False, **options)

    if trans == 0:
        x = upper(lower(jnp.take_along_axis(b, order[..., None], axis=-2)))
    else:
        x = jnp.take_along_axis(lower(upper(b)), jnp.argsort(order, axis=-1)[..., None], axis=-2)
    return x[..., 0] if vector else x


def polar(
    a: Any, side: str = "right", *, method: str = "qdwh", eps: float | None = None, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """(U, P) with U P = a ('left': P U = a), U unitary (or with orthonormal rows or columns), P positive semidefinite.

    By the singular value decomposition, whatever `method` ('qdwh' or 'svd') says. Raises ValueError for another side.
    """
    if side not in ("right", "left"):
        raise ValueError(f"The argument `side` must be either 'left' or 'right', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method!r}; expected 'qdwh' or 'svd'")
    check("polar", optional(NESTED), eps=eps, max_iterations=max_iterations)
    a = matrices("polar", a)
    w, s, vh = jnp.linalg.svd(a, full_matrices=False)
    u = jnp.matmul(w, vh)
    factor = vh if side == "right" else adjoint(w)
    if method == "qdwh":  # whose iterations are of numbers of one type, which is not weak
        u = u.astype(u.dtype)
    return u, jnp.matmul(adjoint(factor) * s[..., None, :].astype(a.dtype), factor)


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """(Q, R) with Q R = a: 'full' squares, 'economic' the needed columns, 'r' (R,) alone; with `pivoting` also the
    columns p: Q R = a[:, p]. Raises ValueError for another mode.
    """
    check_flags("qr", pivoting=pivoting, overwrite_a=overwrite_a, lwork=lwork, check_finite=check_finite)
    a = matrices("qr", a)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    full = mode != "economic"
    found = lax_linalg.qr(a, pivoting=pivoting, full_matrices=full)
    return (found[1:] if pivoting else (found[1],)) if mode == "r" else tuple(found)


def schur(a: Any, output: str = "real") -> list[Any]:
    """[T, Z] with Z T Z^H = a, T upper triangular ('complex'; of real matrices 'real': with 2x2 blocks).

    Raises ValueError for another output.
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: argument 'output' is {output!r}; accepted are 'complex' and 'real'")
    a = square("schur", a)
    if output == "complex":
        a = a.astype(dtypes.to_complex_dtype(a.dtype))
    return list(lax_linalg.schur(a))


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: Any = None,
    check_finite: bool = True,
) -> Any:
    """x with op(a) x = b, a triangular; op: 0 or 'N' itself, 1 or 'T' transposed, 2 or 'C' adjoint; ValueError
    otherwise."""
    check_flags(
        "solve_triangular", lower=lower, unit_diagonal=unit_diagonal, overwrite_b=overwrite_b, debug=debug,
        check_finite=check_finite,
    )  # fmt: skip
    kinds = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}
    if trans not in kinds:
        raise ValueError(f"Invalid 'trans' value {trans}")
    a, b = square("solve_triangular", a, b)
    a, b, vector = _with_right_side("solve_triangular", a, b)
    x = lax_linalg.triangular_solve(
        a, b, left_side=True, lower=lower, transpose_a=kinds[trans] > 0, conjugate_a=kinds[trans] == 2,
        unit_diagonal=unit_diagonal,
    )  # fmt: skip
    return x[..., 0] if vector else x


def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Any:
    """x with a x = b: a general ('gen'), symmetric ('sym'), Hermitian ('her') or positive definite ('pos') matrix.

    Raises ValueError for another `assume_a`.
    """
    check_flags(
        "solve", lower=lower, overwrite_a=overwrite_a, overwrite_b=overwrite_b, debug=debug, check_finite=check_finite
    )
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"solve: argument 'assume_a' is {assume_a!r}; accepted are 'gen', 'her', 'pos' and 'sym'")
    a, b = square("solve", a, b)
    if assume_a == "pos":
        return _solve_definite(a, b, lower)
    return jnp.linalg.solve(a, b)


def _solve_definite(a: Any, b: Any, lower: bool) -> Any:
    """By a Cholesky factor of one triangle. Derivatives are those of a x = b in all entries of a."""
    a, b, vector = _with_right_side("solve", a, b)
    if b.shape[-2] != a.shape[-1]:
        raise ValueError(
            f"solve: argument 'b' must have {a.shape[-1]} rows, as the matrix has, got shape "
            f"{b.shape[:-1] if vector else b.shape}"
        )
    factor = cho_factor(lax.stop_gradient(a), lower)

    def transposed(_: Any, y: Any) -> Any:  # a^T is the conjugate of a
        return jnp.conj(cho_solve(factor, jnp.conj(y)))

    x = lax.custom_linear_solve(
        lambda x: jnp.matmul(a, x), b, lambda _, y: cho_solve(factor, y), transposed, symmetric=a.dtype.kind != "c"
    )
    return x[..., 0] if vector else x


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """(U, s, V^H) with U diag(s) V^H = a, s descending; s alone unless `compute_uv`."""
    check_flags(
        "svd", full_matrices=full_matrices, compute_uv=compute_uv, overwrite_a=overwrite_a, check_finite=check_finite,
        lapack_driver=lapack_driver,
    )  # fmt: skip
    a = matrices("svd", a)
    found = jnp.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv)
    return tuple(found) if compute_uv else found


__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "eigh", "hessenberg", "inv", "lu", "lu_factor", "lu_solve",
    "matrices", "polar", "qr", "schur", "solve", "solve_triangular", "square", "svd",
]  # fmt: skip
