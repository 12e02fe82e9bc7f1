"""Determinants and the LU decompositions that they are found by; `jax.numpy.linalg` has them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.api import custom_jvp
from pullback.api.eager import remember_all
from pullback.numpy._arguments import check_arraylike, convert, is_weak, promote_dtypes_inexact, to_real_dtype
from pullback.numpy._diagonals import diagonal as _diagonal
from pullback.numpy._diagonals import trace as _trace
from pullback.numpy._parameters import LINALG
from pullback.numpy._reducers import any as _any
from pullback.numpy._reducers import prod as _prod
from pullback.numpy._reducers import sum as _sum
from pullback.numpy._ufuncs import sign
from pullback.util.record import NamedTuple


class SlogdetResult(NamedTuple):
    """Result of `slogdet`."""

    sign: Any
    logabsdet: Any


def _inexact(name: str, *args: Any) -> list[Any]:
    check_arraylike(f"jnp.linalg.{name}", *args)
    return promote_dtypes_inexact(*args)


def _apply_lu(lu: Any, permutation: Any, b: Any) -> Any:
    """Solution of P^T L U x = b by permuting and two triangular systems; linear in b. Batch axes of all are equal."""
    b = _permuted(b, permutation)
    y = lax.linalg.triangular_solve(lu, b, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(lu, y, left_side=True, lower=False)


def _permuted(b: Any, permutation: Any) -> Any:
    """Rows of b: [..., n, k] in the order permutation: [..., n]."""
    from pullback.numpy._take import _take_along

    if b.size == 0:
        return b
    rows = lax.broadcast_in_dim(permutation, b.shape, tuple(range(permutation.ndim)))
    return _take_along(b, rows, b.ndim - 2, lax.GatherScatterMode.PROMISE_IN_BOUNDS, None, False)


def _lu_determinant(a: Any) -> tuple[Any, Any]:
    """(diagonal of U, parity of the row exchanges: 0 or 1) of the LU decomposition."""
    lu, pivots, _ = lax.linalg.lu(a)
    rows = lax.broadcasted_iota(pivots.dtype, pivots.shape, pivots.ndim - 1)
    exchanges = lax.reduce_sum(convert(lax.ne(pivots, rows), np.dtype(np.int32)), (pivots.ndim - 1,))
    return convert(_diagonal(lu, 0, -2, -1), lu.dtype), lax.rem(exchanges, lax.full_like(exchanges, 2))


def det(a: Any) -> Any:
    """Determinants of square matrices a: [..., n, n]; ValueError unless they are square."""
    (a,) = _inexact("det", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"det: square matrices must have shape [..., n, n], got {a.shape}")
    n = a.shape[-1]
    if n == 0:
        return lax.full(a.shape[:-2], 1, a.dtype)
    if isinstance(n, int) and n <= 3:
        return _small_determinant(a)
    return _det(a)


def _small_determinant(a: Any) -> Any:
    """By Leibniz' formula: no division, so that derivatives of singular matrices are right."""

    def entry(i: int, j: int) -> Any:
        row = lax.index_in_dim(a, i, a.ndim - 2, keepdims=False)
        return lax.index_in_dim(row, j, row.ndim - 1, keepdims=False)

    n = a.shape[-1]
    if n == 1:
        return convert(entry(0, 0), a.dtype)

    def minor(i: int, j: int, k: int, m: int) -> Any:
        return lax.sub(lax.mul(entry(i, k), entry(j, m)), lax.mul(entry(i, m), entry(j, k)))

    if n == 2:
        return minor(0, 1, 0, 1)
    terms = [lax.mul(entry(0, j), minor(1, 2, k, m)) for j, k, m in ((0, 1, 2), (1, 2, 0), (2, 0, 1))]
    return lax.add(lax.add(terms[0], terms[1]), terms[2])


@custom_jvp
def _det(a: Any) -> Any:
    entries, parity = _lu_determinant(a)
    product = lax.reduce_prod(entries, (entries.ndim - 1,))
    return lax.select(lax.eq(parity, lax.full_like(parity, 0)), product, lax.neg(product))


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Jacobi's formula, det_dot = tr(adj(a) a_dot), with the adjugate from the LU decomposition.

    With a = P^T L U, adj(a) is adj(U) adj(L) adj(P^T); adj(U) is found without dividing by the diagonal of U where
    only its last entry may vanish, which pivoting makes the rule for matrices of rank n - 1.
    """
    (a,), (a_dot,) = primals, tangents
    y = _det(a)
    n = a.shape[-1]
    lu, pivots, permutation = lax.linalg.lu(a)
    del pivots
    entries, parity = _lu_determinant(a)
    # Products of all diagonal entries of U but one: of those before and those behind it.
    one = lax.full((*entries.shape[:-1], 1), 1, entries.dtype)
    before = lax.concatenate(
        [one, lax.slice_in_dim(lax.cumprod(entries, axis=entries.ndim - 1), 0, n - 1, axis=entries.ndim - 1)],
        entries.ndim - 1,
    )
    last = lax.index_in_dim(entries, n - 1, entries.ndim - 1, keepdims=False)
    # The last pivot is taken as 1 in the triangular systems, and multiplied in where it belongs.
    rows = lax.broadcasted_iota(np.dtype(np.int32), lu.shape, lu.ndim - 2)
    columns = lax.broadcasted_iota(np.dtype(np.int32), lu.shape, lu.ndim - 1)
    corner = lax.bitwise_and(lax.eq(rows, lax.full_like(rows, n - 1)), lax.eq(columns, lax.full_like(columns, n - 1)))
    unit = lax.select(corner, lax.full_like(lu, 1), lu)
    # det of the leading block, det(U) without its last entry.
    leading = lax.index_in_dim(before, n - 1, before.ndim - 1, keepdims=False)
    signed = lax.select(lax.eq(parity, lax.full_like(parity, 0)), leading, lax.neg(leading))
    # tr(adj(a) a_dot) = det(U') [ last * tr over all but the last row + last row ] of U'^-1 L^-1 P a_dot, U' with last
    # entry 1, after its last column's share is put right: U^-1 = U'^-1 diag(1, ..., 1, 1 / last).
    solved = lax.linalg.triangular_solve(
        unit, _permuted(a_dot, permutation), left_side=True, lower=True, unit_diagonal=True
    )
    solved_rows = lax.broadcasted_iota(np.dtype(np.int32), solved.shape, solved.ndim - 2)
    at_last = lax.eq(solved_rows, lax.full_like(solved_rows, n - 1))
    weight = lax.broadcast_in_dim(last, solved.shape, tuple(range(last.ndim)))
    weighted = lax.select(at_last, solved, lax.mul(solved, weight))
    x = lax.linalg.triangular_solve(unit, weighted, left_side=True, lower=False)
    return y, lax.mul(signed, _trace(x, 0, -2, -1))


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """(sign, logarithm of the absolute value) of determinants of square matrices, by 'lu' (the default) or 'qr'."""
    (a,) = _inexact("slogdet", a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ValueError(f"slogdet: square matrices must have shape [..., n, n], got {a.shape}")
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method {method!r}: expected 'lu', 'qr', or None to have 'lu'")
    if a.shape[-1] == 0:
        return SlogdetResult(lax.full(a.shape[:-2], 1, a.dtype), lax.full(a.shape[:-2], 0, to_real_dtype(a.dtype)))
    if method != "qr" and a.dtype.itemsize == 2 and isinstance(a.shape[-1], int) and a.shape[-1] <= 2:
        small = _small_determinant(a)  # LAPACK knows no half precision
        return SlogdetResult(sign(small), lax.log(lax.abs(small)))
    return SlogdetResult(*(_slogdet_qr(a) if method == "qr" else _slogdet(a)))


@custom_jvp
def _slogdet(a: Any) -> tuple[Any, Any]:
    entries, parity = _lu_determinant(a)
    return _signs_and_logs(entries, parity, a)


def _signs_and_logs(entries: Any, parity: Any, a: Any) -> tuple[Any, Any]:
    singular = _any(lax.eq(entries, lax.full_like(entries, 0)), axis=-1)
    product = _prod(sign(entries), axis=-1)
    flipped = lax.select(lax.eq(parity, lax.full_like(parity, 0)), product, lax.neg(product))
    result = lax.select(singular, lax.full_like(flipped, 0), flipped)
    size = lax.abs(entries)
    logs = _sum(lax.log(size), axis=-1)
    logs = lax.select(singular, lax.full_like(logs, -math.inf), logs)
    weak = is_weak(a) and a.shape[-1] <= 2  # JAX has closed forms of these, which keep the type
    return convert(result, a.dtype, weak), convert(logs, logs.dtype, weak)


@_slogdet.defjvp
def _slogdet_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    # d log det(a) = tr(a^-1 a_dot); its imaginary part turns the sign of complex matrices.
    (a,), (a_dot,) = primals, tangents
    lu, _, permutation = lax.linalg.lu(a)
    s, logdet = _slogdet(a)
    change = _trace(_apply_lu(lu, permutation, a_dot), 0, -2, -1)
    if np.dtype(a.dtype).kind == "c":
        turn = lax.mul(lax.complex(lax.full_like(lax.imag(change), 0), lax.imag(change)), s)
        return (s, logdet), (turn, lax.real(change))
    return (s, logdet), (lax.full_like(s, 0), change)


def _slogdet_qr(a: Any) -> tuple[Any, Any]:
    """R's diagonal; the sign of det(Q) is that of its LU decomposition, whose pivots are far from 0."""
    if np.dtype(a.dtype).kind == "c":
        raise NotImplementedError("slogdet method='qr' not implemented for complex numbers.")
    q, r = lax.linalg.qr(a, full_matrices=False)
    entries, q = _diagonal(r, 0, -2, -1), convert(q, q.dtype)
    q_sign, _ = _slogdet(q)
    s, logs = _signs_and_logs(entries, lax.full(entries.shape[:-1], 0, np.dtype(np.int32)), q)
    return lax.mul(s, lax.stop_gradient(q_sign)), logs


remember_all(globals(), LINALG, at_once=True)
