"""Sylvester's equation, and products with Q of a QR factorization."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.scipy.linalg._factor import adjoint, matrices, qr, schur, solve_triangular, square
from pullback.util.promoting import promoting_freely
from pullback.util.static import check_flags


def _bartels_stewart(a: Any, b: Any, c: Any, tol: float) -> Any:
    (r, u), (s, v) = schur(a, "complex"), schur(b, "complex")
    f = adjoint(u) @ c.astype(r.dtype) @ v
    eye = jnp.eye(a.shape[-1], dtype=r.dtype)

    def column(k: Any, y: Any) -> Any:
        # (R + s_kk) y_k = f_k - sum over j < k of y_j s_jk; the columns from k on are zero yet.
        of_s, of_f = (lax.dynamic_index_in_dim(x, k, -1, keepdims=True) for x in (s, f))
        shift = lax.dynamic_index_in_dim(of_s, k, -2, keepdims=True)
        found = solve_triangular(r + shift * eye, of_f - y @ of_s)
        return lax.dynamic_update_slice_in_dim(y, found, k, -1)

    x = u @ lax.fori_loop(0, b.shape[-1], column, jnp.zeros_like(f)) @ adjoint(v)
    x = x if np.issubdtype(c.dtype, np.complexfloating) else jnp.real(x)
    of_a, of_b = (jnp.diagonal(t, axis1=-2, axis2=-1) for t in (r, s))
    gap = abs(of_a[..., :, None] + of_b[..., None, :]).min(axis=(-1, -2), keepdims=True, initial=np.inf)
    return jnp.where(gap > tol, x, np.nan)


def _by_eigenvectors(a: Any, b: Any, c: Any, tol: float) -> Any:
    (of_a, u), (of_b, v) = jnp.linalg.eig(a), jnp.linalg.eig(b)
    sums = of_a[..., :, None] + of_b[..., None, :]
    y = jnp.linalg.solve(u, c.astype(u.dtype) @ v) / sums
    x = jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(v, -1, -2), jnp.swapaxes(u @ y, -1, -2)), -1, -2)
    x = x if np.issubdtype(c.dtype, np.complexfloating) else jnp.real(x)
    return jnp.where(abs(sums).min(axis=(-1, -2), keepdims=True, initial=np.inf) > tol, x, np.nan)


@promoting_freely
def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Any:
    """x[..., m, n] with A x + x B = C, A[..., m, m], B[..., n, n]; nan if eigenvalues of A and -B are within tol.

    By the factorizations of Schur (R. H. Bartels, G. W. Stewart, Comm. ACM 15 (1972), 820). Raises ValueError for
    shapes that do not fit and unknown methods. Method 'eigen' goes by eigenvectors, which must be independent.
    """
    if method not in ("schur", "eigen"):
        raise ValueError(f"solve_sylvester: unknown method {method!r}; 'schur' and 'eigen' are valid")
    a, b, c = square("solve_sylvester", A, B, C)
    if b.ndim < 2 or b.shape[-1] != b.shape[-2] or c.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(f"solve_sylvester: A {a.shape}, B {b.shape} and C {c.shape} do not fit")
    if c.size == 0:
        return c
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2], c.shape[:-2])
    a, b, c = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c))
    solve = _bartels_stewart if method == "schur" else _by_eigenvectors
    transposed = jnp.swapaxes(a, -1, -2), jnp.swapaxes(b, -1, -2)
    return lax.custom_linear_solve(
        lambda x: a @ x + x @ b,
        c,
        solve=lambda _, c: solve(a, b, c, tol).astype(c.dtype),
        transpose_solve=lambda _, c: solve(*transposed, c, tol).astype(c.dtype),
    )


def qr_multiply(
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """(Q c with mode 'left', or c Q with 'right', R) of the economic Q R = a; with `pivoting` also the columns p.

    With `conjugate` the conjugate of Q is taken; c may be a vector. Raises ValueError for another mode and shapes that
    do not fit.
    """
    check_flags("qr_multiply", overwrite_a=overwrite_a, overwrite_c=overwrite_c)
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right', got {mode!r}")
    a, c = matrices("qr_multiply", a, c)
    q, *rest = qr(a, mode="economic", pivoting=pivoting)
    q = jnp.conj(q) if conjugate else q
    inner = (q.shape[-1], c.shape[0 if c.ndim == 1 else -2]) if mode == "left" else (q.shape[-2], c.shape[-1])
    if inner[0] != inner[1]:
        product = "Q @ c" if mode == "left" else "c @ Q"
        raise ValueError(f"qr_multiply: {product} of Q {q.shape} and c {c.shape}: {inner[0]} and {inner[1]} differ")
    product = q @ c if mode == "left" else c @ q
    if c.ndim > 1:  # one Q for many c: what comes with it is of all of them, too
        rest = [jnp.broadcast_to(r, (*product.shape[:-2], *r.shape[a.ndim - 2 :])) for r in rest]
    return product, *rest
