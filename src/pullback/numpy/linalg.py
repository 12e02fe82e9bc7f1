"""Linear algebra on stacks of matrices, the last two axes: `jax.numpy.linalg`, over `lax.linalg`."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.api import custom_jvp
from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.lax.linalg.matrices import symmetrized
from pullback.manual import add_pages as _add_pages
from pullback.manual.numpy.linalg import PAGES as _PAGES
from pullback.numpy import _products
from pullback.numpy._arguments import (
    arrays,
    broadcast_arrays,
    broadcast_shapes_of,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    check_rank_promotion,
    concrete_or_error,
    const,
    convert,
    static_int,
    to_real_dtype,
)
from pullback.numpy._comparison import isnan
from pullback.numpy._creation import from_list
from pullback.numpy._decompositions import EighResult as EighResult
from pullback.numpy._decompositions import EigResult as EigResult
from pullback.numpy._decompositions import QRResult as QRResult
from pullback.numpy._decompositions import SVDResult as SVDResult
from pullback.numpy._decompositions import (
    _adjoint,
    _check_square,
    _eps,
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    qr,
    svd,
    svdvals,
)
from pullback.numpy._determinants import SlogdetResult as SlogdetResult
from pullback.numpy._determinants import _apply_lu, _inexact, det, slogdet
from pullback.numpy._diagonals import diagonal as _diagonal
from pullback.numpy._diagonals import trace as _trace
from pullback.numpy._einsum import einsum
from pullback.numpy._parameters import LINALG, LINALG_OWN
from pullback.numpy._reducers import any as _any
from pullback.numpy._reducers import max as _max
from pullback.numpy._reducers import min as _min
from pullback.numpy._reducers import sum as _sum
from pullback.numpy._select import select_where
from pullback.numpy._shape import expand_dims, matrix_transpose, moveaxis
from pullback.numpy._ufuncs import conj, multiply, real
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.static import check_flags

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer",
    "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "tensorinv", "tensorsolve", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip


def _product(a: Any, b: Any) -> Any:
    return _products.matmul(a, b)


# ---- equations


@custom_jvp
def _solve(a: Any, b: Any) -> Any:
    lu, _, permutation = lax.linalg.lu(a)
    return _apply_lu(lu, permutation, b)


@_solve.defjvp
def _solve_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    # a x = b gives a x_dot = b_dot - a_dot x: one factorization serves both.
    (a, b), (a_dot, b_dot) = primals, tangents
    lu, _, permutation = lax.linalg.lu(a)
    x = _apply_lu(lu, permutation, b)
    return x, _apply_lu(lu, permutation, lax.sub(b_dot, _product(a_dot, x)))


def solve(a: Any, b: Any) -> Any:
    """x with a x = b for square a: [..., n, n]; b is a vector [n] or a stack of matrices [..., n, k].

    Raises ValueError unless a is square and the shapes go together.
    """
    a, b = _inexact("solve", a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or b.ndim == 0:
        raise ValueError(
            f"solve: a has shape {a.shape} and b {b.shape}; expected square matrices a[..., m, m] with a vector b[m] "
            "or matrices b[..., m, k]"
        )
    vector = b.ndim == 1
    check_rank_promotion("solve", [a.shape, b.shape], [2, 1 if vector else 2])
    if vector:
        b = lax.expand_dims(b, (1,))
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"inconsistent size for core dimension 'm': {b.shape[-2]} vs {a.shape[-1]} (solve: a={a.shape}, "
            f"b={b.shape})"
        )
    lead = broadcast_shapes_of("solve", [a.shape[:-2], b.shape[:-2]])
    a, b = broadcast_to(a, lead + a.shape[-2:]), broadcast_to(b, lead + b.shape[-2:])
    x = _solve(a, b)
    return lax.squeeze(x, (x.ndim - 1,)) if vector else x


def inv(a: Any) -> Any:
    """Inverses of square matrices a: [..., n, n]; ValueError unless they are square."""
    (a,) = _inexact("inv", a)
    _check_square("inv", a, ValueError)
    rows, columns = (lax.broadcasted_iota(np.dtype(np.int32), a.shape, a.ndim - k) for k in (2, 1))
    return solve(a, convert(lax.eq(rows, columns), a.dtype))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """x with tensordot(a, x, x.ndim) = b; `axes` of a are moved to its end first."""
    a, b = arrays("jnp.linalg.tensorsolve", a, b)
    if axes is not None:
        a = moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    n = math.prod(shape)
    if a.shape[: b.ndim] != b.shape or n != b.size:
        raise ValueError(
            f"tensorsolve: a has shape {a.shape} and b {b.shape}; expected the shape of b in front of axes of a with "
            "as many elements"
        )
    return lax.reshape(solve(lax.reshape(a, (n, n)), lax.reshape(b, (n,))), shape)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """Inverse of a as a linear map from its last axes to its first `ind`; ValueError unless both have the same size."""
    (a,) = arrays("jnp.linalg.tensorinv", a)
    ind = static_int(ind, "linalg.tensorinv: argument 'ind'")
    if ind <= 0:
        raise ValueError(f"tensorinv: argument 'ind' is {ind}; expected at least 1")
    rows, columns = a.shape[:ind], a.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError(f"product of dimensions before and after index {ind} must be equal, got a.shape={a.shape}")
    return lax.reshape(inv(lax.reshape(a, (math.prod(rows), math.prod(columns)))), columns + rows)


def lstsq(a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False) -> tuple[Any, Any, Any, Any]:
    """(x, residuals, rank, singular values) of the least squares problem min |a x - b|, a: [m, n], b: [m] or [m, k].

    Singular values below rcond times the largest count as 0; rcond is by default eps * max(m, n). Raises TypeError
    for other ranks, ValueError if the numbers of rows differ.
    """
    a, b = _inexact("lstsq", a, b)
    if a.shape[0] != b.shape[0]:
        raise ValueError(f"lstsq: a has shape {a.shape} and b {b.shape}; expected as many rows in both")
    if a.ndim != 2:
        raise TypeError(f"lstsq: argument 'a' has shape {a.shape}; expected a matrix")
    vector = b.ndim == 1
    if vector:
        b = lax.expand_dims(b, (1,))
    if b.ndim != 2:
        raise TypeError(f"lstsq: argument 'b' has shape {b.shape}; expected a vector or a matrix")
    m, n = a.shape
    dtype = a.dtype
    if a.size == 0:
        s: Any = lax.full((0,), 0, to_real_dtype(dtype))
        rank: Any = lax.full((), 0, np.dtype(dtypes.canonicalize_dtype(np.int64)))
        x: Any = lax.full((n, b.shape[1]), 0, dtype)
    else:
        if rcond is None:
            limit: Any = _eps(dtype) * max(m, n)
        else:
            limit = select_where(
                lax.lt(convert(rcond, to_real_dtype(dtype)), convert(0, to_real_dtype(dtype))), _eps(dtype), rcond
            )
        u, s, vt = svd(a, full_matrices=False)
        cutoff = lax.mul(convert(limit, s.dtype), lax.index_in_dim(s, 0, 0, keepdims=False))
        mask = lax.bitwise_and(lax.ge(s, broadcast_to(cutoff, s.shape)), lax.gt(s, lax.full_like(s, 0)))
        rank = lax.reduce_sum(convert(mask, np.dtype(dtypes.canonicalize_dtype(np.int64))), (0,))
        safe = lax.select(mask, s, lax.full_like(s, 1))
        inverse = lax.select(mask, lax.div(lax.full_like(s, 1), safe), lax.full_like(s, 0))
        projected = _product(_adjoint(u), b)
        x = _product(
            _adjoint(vt), lax.mul(lax.broadcast_in_dim(convert(inverse, dtype), projected.shape, (0,)), projected)
        )
    if b.size == 0 or (numpy_resid and a.size == 0):
        residuals: Any = lax.full((0,), 0, to_real_dtype(dtype))
    else:
        residuals = (
            _sum(lax.square(lax.abs(lax.sub(b, _product(a, x)))), axis=0)
            if a.size
            else _sum(lax.square(lax.abs(b)), axis=0)
        )
        if numpy_resid:
            known = int(np.asarray(concrete_or_error(rank, "lstsq: numpy_resid=True needs a concrete rank")))
            if known < n or m <= n:
                residuals = lax.full((0,), 0, dtypes.canonicalize_dtype(np.float64))
    return (lax.squeeze(x, (1,)) if vector else x), residuals, rank, s


# ---- inverses without a full rank


@functools.partial(custom_jvp, nondiff_argnums=(1, 2))
def _pinv(a: Any, rtol: Any, hermitian: bool) -> Any:
    m, n = a.shape[-2:]
    if m == 0 or n == 0:
        return lax.full((*a.shape[:-2], n, m), 0, a.dtype)
    u, s, vh = svd(a, full_matrices=False, hermitian=hermitian)
    limit = 10 * max(m, n) * _eps(a.dtype) if rtol is None else rtol
    cutoff = multiply(
        convert(limit, s.dtype) if np.ndim(limit) == 0 else expand_dims(convert(limit, s.dtype), -1),
        lax.slice_in_dim(s, 0, 1, axis=s.ndim - 1),
    )
    s, cutoff = broadcast_arrays("pinv", s, cutoff)
    u, vh = (broadcast_to(x, (*s.shape[:-1], *x.shape[-2:])) for x in (u, vh))
    large = lax.gt(s, cutoff)
    divisors = convert(lax.select(large, s, lax.full_like(s, 1)), u.dtype)
    rows = _adjoint(u)
    rows = lax.div(rows, broadcast_to(expand_dims(divisors, -1), rows.shape))
    rows = lax.select(broadcast_to(expand_dims(large, -1), rows.shape), rows, lax.full_like(rows, 0))
    return _product(_adjoint(vh), rows)


@_pinv.defjvp
def _pinv_jvp(rtol: Any, hermitian: bool, primals: Any, tangents: Any) -> tuple[Any, Any]:
    # Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973), (4.12): with P = a^+,
    # P_dot = -P a_dot P + P P^H a_dot^H (1 - a P) + (1 - P a) a_dot^H P^H P.
    (a,), (a_dot,) = primals, tangents
    p = _pinv(a, rtol, hermitian)
    if p.size == 0:
        return p, lax.full_like(p, 0)
    a_dot_h, p_h = _adjoint(a_dot), _adjoint(p)
    first = lax.neg(_product(_product(p, a_dot), p))
    pph = _product(p, p_h)
    t = _product(pph, a_dot_h)
    second = lax.sub(t, _product(_product(t, a), p))
    php = _product(p_h, p)
    t = _product(a_dot_h, php)
    third = lax.sub(t, _product(p, _product(a, t)))
    return p, lax.add(first, lax.add(second, third))


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """Pseudoinverses of matrices a: [..., m, n]; singular values up to rtol (10 max(m, n) eps) times the largest count
    as 0.

    `rcond` is another name of rtol. Raises ValueError below rank 2.
    """
    check_flags("linalg.pinv", hermitian=hermitian)
    if rcond is not None:
        if rtol is not None:
            raise ValueError("pinv: 'rcond' is another name of 'rtol'; pass one of the two")
        rtol = rcond
    rtol = from_list(rtol)
    (a,) = _inexact("pinv", a)
    if a.ndim < 2:
        raise ValueError(f"pinv: expected matrices, got shape {a.shape}")
    if hermitian and a.shape[-1] == a.shape[-2]:
        a = symmetrized(a)  # whose inverse it is, and so the derivatives
    return _pinv(a, rtol, hermitian)


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """Number of singular values above rtol or tol, by default max(m, n) eps times the largest; of a vector 1 unless it
    is 0. As in JAX both are thresholds by themselves: neither is multiplied by the largest singular value.
    """
    check_flags("linalg.matrix_rank", hermitian=hermitian)
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol and rtol may be given")
    (M,) = _inexact("matrix_rank", M)
    if M.ndim < 2:
        return convert(_any(lax.ne(M, lax.full_like(M, 0))), np.dtype(np.int32))
    s = lax.abs(eigvalsh(M)) if hermitian else svd(M, full_matrices=False, compute_uv=False)
    index = np.dtype(dtypes.canonicalize_dtype(np.int64))
    if tol is None and rtol is None:
        if s.size == 0:
            return lax.full(s.shape[:-1], 0, index)
        limit = multiply(_max(s, axis=-1, keepdims=True), convert(max(M.shape[-2:]) * _eps(M.dtype), s.dtype))
    else:
        limit = convert(rtol if tol is None else tol, s.dtype)
        limit = expand_dims(limit, -1) if limit.ndim else limit
    return _sum(lax.gt(*broadcast_arrays("matrix_rank", s, limit)), axis=-1, dtype=index)


# ---- norms


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Norms of vectors (one axis) or matrices (two axes); of an array as a whole by default, as if it were one vector.

    Vectors: any number, inf, -inf, 0. Matrices: 'fro', 'nuc', 1, -1, 2, -2, inf, -inf. Raises ValueError for other
    orders and numbers of axes.
    """
    check_flags("linalg.norm", keepdims=keepdims)
    (x,) = _inexact("norm", x)
    rank = x.ndim
    if axis is None:
        if ord is None:
            return _length(x, None, keepdims)
        axes = tuple(range(rank))
    elif isinstance(axis, tuple):
        axes = tuple(canonical_axis("norm", k, rank) for k in axis)
    else:
        axes = (canonical_axis("norm", axis, rank),)
    if len(axes) == 1:
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else _vector_order(ord))
    if len(axes) != 2:
        given = axes if axis is None else axis
        raise ValueError(f"norm: axis={given}; a vector norm is along one axis, a matrix norm along two")
    row, column = axes
    if ord is None or ord in ("f", "fro"):
        return _length(x, axes, keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        summed, other = (row, column) if ord in (1, -1) else (column, row)
        sums = _sum(lax.abs(x), axis=summed, keepdims=True)
        result = (_largest if ord > 0 else _min)(sums, other, keepdims=True)
    elif ord in (2, -2) or ord == "nuc":
        moved = moveaxis(x, axes, (-2, -1))
        s = svd(moved, full_matrices=False, compute_uv=False)
        values = _sum(s, axis=-1) if ord == "nuc" else (_largest if ord == 2 else _min)(s, -1)
        return expand_dims(values, axes) if keepdims else values
    else:
        orders = "1, -1, 2, -2, inf, -inf, 'fro', 'nuc' or None"
        raise ValueError(f"Invalid order '{ord}' for matrix norm. It takes {orders}.")
    return result if keepdims else lax.squeeze(result, axes)


def _length(x: Any, axes: Any, keepdims: bool) -> Any:
    """The root of the sum of squares; of floats of 16 bits the squares have 32, as the sum has: they are not rounded,
    and do not overflow.
    """
    wide = convert(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    squares = real(lax.mul(wide, conj(wide)))
    return convert(lax.sqrt(_sum(squares, axis=axes, keepdims=keepdims)), to_real_dtype(x.dtype))


def _largest(x: Any, axis: Any, keepdims: bool = False) -> Any:
    """The largest of sizes, 0 of none."""
    return _max(x, axis=axis, keepdims=keepdims, initial=None if x.size else 0)


def _vector_order(ord: Any) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid order '{ord}' for vector norm. It takes numbers, inf, -inf or None.")
    if isinstance(ord, complex):
        raise TypeError(f"argument 'ord' of a vector norm must be real, got {ord}")
    return ord


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Norm over axes (all by default) taken as one vector: (sum |x|**ord)**(1/ord), the largest or smallest |x| for
    infinities, the number of nonzero elements for 0. Norms 1 and infinity of integers are integers.
    """
    check_flags("linalg.vector_norm", keepdims=keepdims)
    (x,) = arrays("vector_norm", x)
    if not dtypes.issubdtype(x.dtype, np.inexact):
        if not hasattr(ord, "aval") and ord in (1, math.inf, -math.inf):
            size = lax.abs(x) if dtypes.issubdtype(x.dtype, np.signedinteger) else x
            reduce = _sum if ord == 1 else _largest if ord > 0 else _min
            return reduce(size, axis=canonical_axes("vector_norm", axis, x.ndim), keepdims=keepdims)
        # The squares of narrow integers are summed in the default integer, whose root is the default float.
        x = convert(x, np.dtype(dtypes.canonicalize_dtype(np.float64 if ord in (None, 2) else np.float32)))
    _vector_order(ord)
    axes = canonical_axes("vector_norm", axis, x.ndim)
    if ord is None or (not hasattr(ord, "aval") and ord == 2):
        return _length(x, axes, keepdims)
    if not hasattr(ord, "aval"):
        if ord == math.inf:
            return _largest(lax.abs(x), axes, keepdims)
        if ord == -math.inf:
            return _min(lax.abs(x), axis=axes, keepdims=keepdims)
        if ord == 0:
            return _sum(lax.ne(x, const(x, 0)), axis=axes, dtype=to_real_dtype(x.dtype), keepdims=keepdims)
        if ord == 1:
            return _sum(lax.abs(x), axis=axes, keepdims=keepdims)
    size = lax.abs(x)
    power = convert(ord, size.dtype)
    total = _sum(lax.pow(size, broadcast_to(power, size.shape)), axis=axes, keepdims=keepdims)
    return lax.pow(total, broadcast_to(lax.div(const(power, 1), power), total.shape))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Norms of matrices over the last two axes; orders as of `norm`."""
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def cond(x: Any, p: Any = None) -> Any:
    """Condition numbers |x| |x^-1| in a norm; None and 2: the largest over the smallest singular value."""
    (x,) = _inexact("cond", x)
    if x.ndim < 2:
        raise ValueError(f"linalg.cond: argument 'x' has shape {x.shape}; expected matrices")
    if 0 in x.shape[-2:]:
        raise ValueError(f"linalg.cond: argument 'x' has shape {x.shape}, of matrices without elements")
    if p in (None, 2, -2):
        s = svd(x, full_matrices=False, compute_uv=False)
        largest, smallest = (lax.index_in_dim(s, k, s.ndim - 1, keepdims=False) for k in (0, s.shape[-1] - 1))
        result = lax.div(smallest, largest) if p == -2 else lax.div(largest, smallest)
    else:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"jnp.linalg.cond: for p != {{None, 2, -2}}, array must be square; got x.shape={x.shape}")
        result = lax.mul(norm(x, ord=p, axis=(-2, -1)), norm(inv(x), ord=p, axis=(-2, -1)))
    # A singular matrix gives 0 / 0, which means infinity unless there were NaN to begin with.
    undefined = lax.bitwise_and(isnan(result), lax.bitwise_not(_any(isnan(x), axis=(-2, -1))))
    return lax.select(undefined, lax.full_like(result, math.inf), result)


# ---- products


def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Matrix product; see `numpy.matmul`."""
    return _products.matmul(x1, x2, precision=precision, preferred_element_type=preferred_element_type)


def matrix_power(a: Any, n: int) -> Any:
    """n-th power of square matrices by repeated squaring; of the inverse for negative n. TypeError unless square and n
    integer.
    """
    check_arraylike("jnp.linalg.matrix_power", a)
    (a,) = arrays("jnp.linalg.matrix_power", a)
    if a.ndim < 2:
        raise TypeError(f"linalg.matrix_power: argument 'a' has shape {a.shape}; expected matrices")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError(f"linalg.matrix_power: argument 'a' has shape {a.shape}; expected square matrices")
    try:
        n = static_int(n, "linalg.matrix_power: argument 'n'")
    except TypeError as error:
        raise TypeError(f"exponent must be an integer, got {n}") from error
    if n == 0:
        rows, columns = (lax.broadcasted_iota(np.dtype(np.int32), a.shape, a.ndim - k) for k in (2, 1))
        return convert(lax.eq(rows, columns), a.dtype)
    if n < 0:
        a, n = inv(a), -n
    result, square = None, a
    while n:
        if n & 1:
            result = square if result is None else _product(result, square)
        n >>= 1
        if n:
            square = _product(square, square)
    return result


def multi_dot(arrays: Any, *, precision: Any = None) -> Any:
    """Product of several matrices (the first and the last may be vectors) in the order that costs least."""
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    parts = list(arrays)
    if len(parts) < 2:
        raise ValueError(f"multi_dot: argument 'arrays' must have at least two arrays, got {len(parts)}")
    ranks = [np.ndim(p) for p in parts]
    if ranks[0] not in (1, 2) or ranks[-1] not in (1, 2) or any(r != 2 for r in ranks[1:-1]):
        raise ValueError(
            f"multi_dot: expected matrices, but for the first and last, which may be vectors; got ranks {ranks}"
        )
    terms, label = [], 0
    for rank in ranks:
        if rank == 2:
            terms.append(chr(97 + label) + chr(98 + label))
            label += 1
        else:
            terms.append(chr(97 + label))
    used = "".join(terms)
    out = "".join(c for c in dict.fromkeys(used) if used.count(c) == 1)
    return einsum(f"{','.join(terms)}->{out}", *parts, optimize="optimal", precision=precision)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Products of vectors along an axis; see `numpy.vecdot`."""
    return _products.vecdot(x1, x2, axis=axis, precision=precision, preferred_element_type=preferred_element_type)


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sum of products over several axes; see `numpy.tensordot`."""
    return _products.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type, out_sharding=out_sharding
    )


def outer(x1: Any, x2: Any, /) -> Any:
    """Products of all pairs of elements of two vectors; ValueError for other ranks."""
    x1, x2 = arrays("jnp.linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"linalg.outer: arguments of shapes {x1.shape} and {x2.shape}; expected two vectors")
    return _products.outer(x1, x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Cross product of vectors of length 3 along an axis; ValueError for other lengths."""
    x1, x2 = arrays("jnp.linalg.cross", x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            f"linalg.cross: axis {axis} is of length {x1.shape[axis]} in x1 and {x2.shape[axis]} in x2; expected 3"
        )
    return _products.cross(x1, x2, axis=axis)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of matrices, the last two axes."""
    return _trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Diagonals of matrices, the last two axes."""
    return _diagonal(x, offset=offset, axis1=-2, axis2=-1)


_remember_all(globals(), LINALG, LINALG_OWN, skip=("multi_dot",), at_once=True)
_explain_all(globals(), LINALG, LINALG_OWN)
_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
