"""Eigenvalues and eigenvectors of symmetric tridiagonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core.explain import check
from pullback.core.kinds import ARRAY, NUMBER, Kind, optional
from pullback.lax import linalg as lax_linalg
from pullback.numpy._arguments import static_int
from pullback.util import dtypes
from pullback.util.promoting import promoting_freely
from pullback.util.static import check_flags

_PAIR = Kind("a pair of integers", lambda x: np.iterable(x) and len(tuple(x)) == 2)
_REAL = (np.dtype(np.float32), np.dtype(np.float64))
_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))


@promoting_freely
def eigh_tridiagonal(
    d: Any,
    e: Any,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    tol: float | None = None,
    key: Any = None,
) -> Any:
    """(w, v): the eigenvalues w: f[k] in ascending order and eigenvectors v: f[n, k], in columns, of the symmetric
    matrix with diagonal d: f[n] and off-diagonal e: f[n - 1]; w alone with `eigvals_only`.

    Complex e stand below the diagonal of a Hermitian matrix, of whose d the real part counts. select: 'a' for all
    eigenvalues, 'i' for those numbered select_range[0] to select_range[1], both included. Errors are a few
    units in the last place of the largest eigenvalue, whatever `tol`; no `key` is needed, as nothing is drawn.
    Leading axes are batches. Raises ValueError for other values of select and numbers out of range, TypeError for other
    types than single and double precision and for lengths that do not fit, NotImplementedError for select='v', whose
    result has no fixed shape.

    >>> eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    check_flags("eigh_tridiagonal", eigvals_only=eigvals_only)
    check("eigh_tridiagonal", optional(NUMBER), tol=tol)
    if key is not None and not dtypes.issubdtype(getattr(key, "dtype", None), dtypes.prng_key):
        check("eigh_tridiagonal", ARRAY, key=key)
    if not isinstance(select, str) or select not in ("a", "i", "v"):
        raise ValueError(f"eigh_tridiagonal: argument 'select' must be one of 'a', 'i', 'v', got {select!r}")
    d, e = jnp.asarray(d), jnp.asarray(e)
    if d.dtype != e.dtype or d.dtype not in _REAL + _COMPLEX:
        raise TypeError(
            "eigh_tridiagonal: arguments 'd' and 'e' must be of one type, float32 or float64 (or complex), got "
            f"{d.dtype} and {e.dtype}"
        )
    if not d.ndim or d.ndim != e.ndim or e.shape != (*d.shape[:-1], max(d.shape[-1] - 1, 0)):
        raise TypeError(
            f"eigh_tridiagonal: for argument 'd' of shape {d.shape}, argument 'e' must be one shorter along the last "
            f"axis, got {e.shape}"
        )
    if select == "v":
        raise NotImplementedError("eigh_tridiagonal: select='v', whose result has no fixed shape, is not implemented")
    n = d.shape[-1]
    first, last = 0, n - 1
    if select == "i":
        if select_range is None:
            raise ValueError("eigh_tridiagonal: for select='i', argument 'select_range' must be specified")
        check("eigh_tridiagonal", _PAIR, select_range=select_range)
        first, last = (static_int(i, "eigh_tridiagonal: argument 'select_range'") for i in select_range)
        if not 0 <= first <= last < n:
            raise ValueError(
                f"eigh_tridiagonal: argument 'select_range' must be (first, last) with 0 <= first <= last < {n}, got "
                f"{select_range}"
            )
    rows = jnp.arange(n)
    diagonal = d.real.astype(d.dtype)
    # The lower triangle alone is read.
    matrix = jnp.zeros((*d.shape, n), d.dtype).at[..., rows, rows].set(diagonal)
    matrix = matrix.at[..., rows[1:], rows[:-1]].set(e)
    if eigvals_only:
        upper = jnp.swapaxes(matrix, -1, -2).conj()
        w = jnp.linalg.eigvalsh(jnp.where(rows[:, None] >= rows, matrix, upper))
        return w[..., first : last + 1]
    v, w = lax_linalg.eigh(matrix, lower=True, symmetrize_input=False)
    return w[..., first : last + 1], v[..., first : last + 1]
