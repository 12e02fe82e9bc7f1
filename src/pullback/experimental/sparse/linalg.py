"""Linear algebra with sparse matrices: a direct solver, and the largest eigenvalues by an iteration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core import ShapedArray, typeof
from pullback.experimental.sparse._matrices import CSR, product
from pullback.lax.control.callback import pure_callback
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.sparse.linalg import PAGES as _PAGES
from pullback.util.absent import absent_names
from pullback.util.extras import scipy_module


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6, reorder: int = 1) -> Any:
    """x[n] with A x = b for the matrix A[n, n] by rows (data[nse], indices[nse], indptr[n + 1]), by SciPy's solver.

    Differentiable in data and b. tol and reorder belong to a solver for GPUs. Raises TypeError unless b is a vector
    of A's length, ValueError for a `reorder` other than 0 to 3, ImportError where SciPy is not installed.

    >>> spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(2))
    Array([0.5 , 0.25], dtype=float32)
    """
    if reorder not in (0, 1, 2, 3):
        raise ValueError(f"reorder={reorder} not valid, must be one of [1, 2, 3, 4]")
    float(tol)
    data, indices, indptr, b = (jnp.asarray(x) for x in (data, indices, indptr, b))
    n = b.shape[0] if b.ndim == 1 else -1
    if indptr.shape != (n + 1,):
        raise TypeError(f"spsolve: b of shape {b.shape} does not fit indptr of shape {indptr.shape}")
    if data.dtype != b.dtype:
        raise TypeError(f"spsolve: data of dtype {data.dtype} and b of dtype {b.dtype} must be of one dtype")

    sparse, direct = (scipy_module(name, "sparse.linalg.spsolve") for name in ("sparse", "sparse.linalg"))

    def solved(transposed: bool) -> Callable[[Any, Any], Any]:
        def on_host(data: Any, indices: Any, indptr: Any, b: Any) -> np.ndarray:
            matrix = sparse.csr_matrix(tuple(map(np.asarray, (data, indices, indptr))), shape=(n, n))
            return direct.spsolve(matrix.T if transposed else matrix, np.asarray(b)).astype(np.asarray(b).dtype)

        def solve(_matvec: Any, b: Any) -> Any:
            like = ShapedArray(b.shape, b.dtype)
            return pure_callback(on_host, like, data, indices, indptr, b, vmap_method="sequential")

        return solve

    def matvec(x: Any) -> Any:
        return product(CSR((data, indices, indptr), shape=(n, n)), x)

    return lax.custom_linear_solve(matvec, b, solved(False), solved(True))


def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: float | None = None) -> tuple[Any, Any, Any]:
    """(eigenvalues[k], eigenvectors[n, k], number of iterations): the k largest of a Hermitian A[n, n].

    A may be a function of arrays[n, k]. X[n, k] are directions to begin with. After each iteration the best
    combinations of X, of the residuals and of the last step are kept; it ends after m, or when the residual of each
    pair is below tol * 10 * n * (eigenvalue + norm of A x). Raises ValueError unless 0 < 5 k < n and shapes fit.
    """
    X = jnp.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"lobpcg_standard: X must be a matrix, got shape {X.shape}")
    n, k = X.shape
    if not 0 < 5 * k < n:
        raise ValueError(f"lobpcg_standard: expected search dim * 5 < matrix dim (got {k * 5}, {n}), and at least one")
    apply: Callable[[Any], Any]
    if callable(A):
        apply = A
    else:
        matrix = jnp.asarray(A)
        if matrix.shape != (n, n) or matrix.dtype != X.dtype:
            raise ValueError(f"lobpcg_standard: A is {typeof(matrix)}, expected {X.dtype.name}[{n},{n}]")

        def apply(x: Any) -> Any:
            return jnp.matmul(matrix, x, precision="highest")

    dtype = X.dtype
    if typeof(apply(X)).shape != (n, k):
        raise ValueError(f"lobpcg_standard: A gives shape {jnp.shape(apply(X))} for {(n, k)}")
    bound = float(np.finfo(dtype).eps if tol is None else tol) * 10 * n

    def best(basis: Any) -> tuple[Any, Any]:
        """(coefficients of the k best directions in an orthonormal basis, their values), the largest first."""
        small = jnp.matmul(basis.T, apply(basis), precision="highest")
        values, vectors = jnp.linalg.eigh((small + small.T) / 2)
        return vectors[:, ::-1][:, :k], values[::-1][:k]

    def rest(x: Any, basis: Any) -> Any:
        """What of x is orthogonal to an orthonormal basis, of length 1; 0 where nothing is left."""
        for _ in range(2):
            x = x - jnp.matmul(basis, jnp.matmul(basis.T, x, precision="highest"), precision="highest")
        norm = jnp.linalg.norm(x, axis=0)
        return jnp.where(norm > 0, x / jnp.where(norm > 0, norm, 1), 0)

    def residual(x: Any, theta: Any) -> tuple[Any, Any]:
        image = apply(x)
        r = image - x * theta
        return r, jnp.linalg.norm(r, axis=0) > bound * (jnp.abs(theta) + jnp.linalg.norm(image, axis=0))

    def going(state: Any) -> Any:
        i, x, _, theta = state
        return (i < m) & jnp.any(residual(x, theta)[1])

    def step(state: Any) -> Any:
        i, x, p, theta = state
        r, _ = residual(x, theta)
        basis = jnp.linalg.qr(jnp.concatenate([x, rest(r, x)], axis=1))[0]
        basis = jnp.linalg.qr(jnp.concatenate([basis, rest(p, basis)], axis=1))[0]
        coefficients, theta = best(basis)
        new = jnp.matmul(basis, coefficients, precision="highest")
        return i + 1, jnp.linalg.qr(new)[0], rest(new, x), theta

    x = jnp.linalg.qr(X)[0]
    first, theta = best(x)
    x = jnp.matmul(x, first, precision="highest")
    i, x, _, theta = lax.while_loop(going, step, (jnp.int32(0), x, jnp.zeros_like(x), theta))
    # The sign of a vector that QR gave is arbitrary, its direction is not.
    coefficients, theta = best(x)
    return theta, jnp.matmul(x, coefficients, precision="highest"), i


__getattr__ = absent_names(__name__)

__all__ = ["lobpcg_standard", "spsolve"]

_add_pages(globals(), _PAGES)
