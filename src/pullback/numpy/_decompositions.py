"""Decompositions of stacks of matrices: Cholesky, QR, singular values, eigenvalues; `jax.numpy.linalg` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import lax
from pullback.api.eager import remember_all
from pullback.core.explain import explain_all
from pullback.numpy._arguments import broadcast_to, convert
from pullback.numpy._determinants import _inexact
from pullback.numpy._parameters import LINALG, LINALG_OWN
from pullback.numpy._shape import expand_dims, matrix_transpose
from pullback.numpy._ufuncs import conj, sign
from pullback.util import dtypes
from pullback.util.record import NamedTuple
from pullback.util.static import check_flags


class EighResult(NamedTuple):
    """Result of `eigh`."""

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Result of `eig`."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """Result of `qr`."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Result of `svd`."""

    U: Any
    S: Any
    Vh: Any


def _check_square(name: str, a: Any, of_rank: type[Exception] = TypeError, error: type[Exception] = ValueError) -> None:
    """The errors, unless these are square matrices; which they are for which function is as users know it."""
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        kind = of_rank if a.ndim < 2 else error
        raise kind(f"Argument to {name} must have shape [..., n, n], got {a.shape}.")


def _adjoint(x: Any) -> Any:
    return conj(matrix_transpose(x))


def _eps(dtype: Any) -> float:
    return float(dtypes.finfo(dtype).eps)


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """Triangular L with a = L L^H (upper: U with a = U^H U) of positive definite matrices a: [..., n, n]; else NaN.

    The input is made Hermitian first unless `symmetrize_input` is False. Raises TypeError unless matrices are square.
    """
    check_flags("linalg.cholesky", upper=upper, symmetrize_input=symmetrize_input)
    (a,) = _inexact("cholesky", a)
    _check_square("cholesky", a, error=TypeError if symmetrize_input else ValueError)
    factor = lax.linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return _adjoint(factor) if upper else factor


def qr(a: Any, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and upper triangular R with a = Q R, for a: [..., m, n].

    mode 'reduced' or 'full', its old name: Q [..., m, k], R [..., k, n] with k = min(m, n); 'complete': Q [..., m, m];
    'r': R alone; 'raw': what LAPACK returns, transposed. Raises ValueError for other modes.
    """
    (a,) = _inexact("qr", a)
    if a.ndim < 2:
        raise TypeError(f"Argument to qr must have shape [..., m, n], got {a.shape}.")
    if mode == "raw":
        packed, taus = lax.linalg.geqrf(a)
        return QRResult(matrix_transpose(packed), taus)
    if mode in ("reduced", "full", "r"):
        full_matrices = False
    elif mode == "complete":
        full_matrices = True
    else:
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = lax.linalg.qr(a, pivoting=False, full_matrices=full_matrices)
    return r if mode == "r" else QRResult(q, r)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """Unitary U, V^H and descending s >= 0 with a = U diag(s) V^H, for a: [..., m, n]; without `compute_uv` s alone.

    `full_matrices` gives square U and V^H. `hermitian` computes them by `eigh`. `subset_by_index` gives singular
    values first to last.
    """
    check_flags("linalg.svd", full_matrices=full_matrices, compute_uv=compute_uv, hermitian=hermitian)
    (a,) = _inexact("svd", a)
    if a.ndim < 2:
        raise TypeError(f"Argument to svd must have shape [..., m, n], got {a.shape}.")
    if hermitian:
        w, v = lax.linalg.eigh(a, lower=True)[::-1]
        size = lax.abs(w)
        signs = sign(w)
        order = lax.sort(
            (lax.neg(size), lax.broadcasted_iota(np.dtype(np.int32), size.shape, size.ndim - 1)), num_keys=1
        )[1]
        s = _along_last(size, order)
        if not compute_uv:
            return s
        columns = broadcast_to(expand_dims(order, -2), v.shape)
        u = _along_last(v, columns)
        signed = lax.mul(u, broadcast_to(convert(expand_dims(_along_last(signs, order), -2), u.dtype), u.shape))
        return SVDResult(u, s, _adjoint(signed))
    if compute_uv:
        u, s, vh = _svd_of(a, full_matrices, True, subset_by_index)
        return SVDResult(u, s, vh)
    result = _svd_of(a, full_matrices, False, subset_by_index)
    return result[0] if isinstance(result, (tuple, list)) else result


def _svd_of(a: Any, full_matrices: bool, compute_uv: bool, subset: Any) -> Any:
    return lax.linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset)


def _along_last(x: Any, order: Any) -> Any:
    from pullback.numpy._take import take_along_axis

    return take_along_axis(x, order, -1, mode="promise_in_bounds")


def svdvals(x: Any, /) -> Any:
    """Singular values in descending order."""
    return svd(x, compute_uv=False, hermitian=False)


def eig(a: Any) -> EigResult:
    """Eigenvalues (complex, in no order) and right eigenvectors as columns, of square matrices a: [..., n, n]."""
    (a,) = _inexact("eig", a)
    _check_square("eig", a)
    w, v = lax.linalg.eig(a, compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: Any) -> Any:
    """Eigenvalues (complex, in no order) of square matrices a: [..., n, n]."""
    (a,) = _inexact("eigvals", a)
    _check_square("eigvals", a)
    return lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues (real, ascending) and orthonormal eigenvectors as columns, of Hermitian matrices a: [..., n, n].

    UPLO names the triangle that is read. Raises ValueError for other names than 'L' and 'U'.
    """
    check_flags("linalg.eigh", symmetrize_input=symmetrize_input)
    (a,) = _inexact("eigh", a)
    _check_square("eigh", a, error=TypeError if symmetrize_input else ValueError)
    if UPLO is None or UPLO == "L":
        lower = True
    elif UPLO == "U":
        lower = False
    else:
        raise ValueError(f"eigh: argument 'UPLO' is the triangle to read, 'L' (as None) or 'U'; got {UPLO!r}")
    v, w = lax.linalg.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """Eigenvalues (real, ascending) of Hermitian matrices a: [..., n, n]."""
    check_flags("linalg.eigvalsh", symmetrize_input=symmetrize_input)
    return eigh(a, UPLO, symmetrize_input=symmetrize_input).eigenvalues


remember_all(globals(), LINALG, LINALG_OWN, at_once=True)
explain_all(globals(), LINALG, LINALG_OWN)
