"""Matrices of a pattern, and the diagonals of matrices: `eye`, `tri`, `tril`, `triu`, `diag`, `diagonal`, `trace`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.core.dimensions import is_symbolic, max_dim, min_dim
from pullback.core.types import place_of_type, type_on_mesh
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_to,
    canonical_axis,
    canonical_shape,
    const,
    convert,
    is_integer,
    is_weak,
    refuse_out,
    static_int,
)
from pullback.numpy._creation import default_float, place
from pullback.numpy._reducers import sum as _sum
from pullback.util import dtypes
from pullback.util.static import check_flags


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:
    """N x M matrix with ones on the k-th diagonal and zeros elsewhere; ValueError for negative sizes."""
    dtype = default_float() if dtype is None else dtypes.check_user_dtype_supported(dtype, "eye")
    if not is_integer(k) and not (isinstance(k, Tracer) and k.ndim == 0 and dtypes.issubdtype(k.dtype, np.integer)):
        raise ValueError(f"k must be a scalar integer; got {k}")
    (n,) = canonical_shape((N,), "argument 'N' of jnp.eye()")
    m = n if M is None else canonical_shape((M,), "argument of 'M' jnp.eye()")[0]
    if n < 0 or m < 0:
        raise ValueError(f"negative dimensions are not allowed, got {N} and {M}")
    return place(convert(diagonal_mask((n, m), k), dtype), device)


def diagonal_mask(shape: tuple[int, ...], k: Any = 0) -> Any:
    """Booleans that are True where column == row + k, over the last two axes of the shape."""
    rows, columns = _places(shape, -2), _places(shape, -1)
    return lax.eq(lax.add(rows, convert(k, rows.dtype)), columns)


def _places(shape: tuple[int, ...], axis: int) -> Any:
    """Each element's place along an axis, which counts from the end."""
    return lax.broadcasted_iota(np.dtype(np.int32), shape, len(shape) + axis)


def lower_mask(shape: tuple[int, ...], k: Any = 0) -> Any:
    """Booleans that are True where column <= row + k, over the last two axes of the shape."""
    last = lax.add(_places(shape, -2), convert(k, np.dtype(np.int32)))
    return lax.ge(last, _places(shape, -1))


def identity(n: Any, dtype: Any = None) -> Any:
    """Identity matrix of n rows."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """N x M matrix with ones on and below the k-th diagonal."""
    dtype = np.dtype(np.float32) if dtype is None else dtypes.check_user_dtype_supported(dtype, "tri")
    m = N if M is None else M
    return convert(
        lower_mask(
            (static_int(N, "tri: argument 'N'"), static_int(m, "tri: argument 'M'")), _diagonal_number("tri", k)
        ),
        dtype,
    )


def _at_least_2d(name: str, m: Any) -> Any:
    (m,) = arrays(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {m.shape}")
    return m


def tril(m: Any, k: int = 0) -> Any:
    """m with zeros above the k-th diagonal of its last two axes; ValueError below rank 2."""
    m = _at_least_2d("tril", m)
    mask = broadcast_to(lower_mask(m.shape[-2:], _diagonal_number("tril", k)), m.shape)
    return lax.select(mask, m, lax.full_like(m, 0))


def triu(m: Any, k: int = 0) -> Any:
    """m with zeros below the k-th diagonal of its last two axes; ValueError below rank 2."""
    m = _at_least_2d("triu", m)
    mask = broadcast_to(lower_mask(m.shape[-2:], _minus_one(_diagonal_number("triu", k))), m.shape)
    return lax.select(mask, lax.full_like(m, 0), m)


def _diagonal_number(name: str, k: Any) -> Any:
    """k, an integer or a traced one; TypeError for other numbers, ValueError for what cannot be hashed."""
    if isinstance(k, Tracer) and dtypes.issubdtype(k.dtype, np.integer):
        return k
    check_flags(name, k=k)
    if isinstance(k, (bool, np.bool_)):
        raise TypeError(f"{name}: argument 'k' must be an integer, got {k}")
    return static_int(k, f"{name}: argument 'k'")


def _minus_one(k: Any) -> Any:
    return k - 1 if isinstance(k, int) else lax.sub(as_array(k), const(as_array(k), 1))


def diag(v: Any, k: int = 0) -> Any:
    """Of a vector, the matrix with it on the k-th diagonal; of a matrix, its k-th diagonal. ValueError for other
    ranks.
    """
    (v,) = arrays("diag", v)
    k = static_int(k, "diag: argument 'k'")
    if v.ndim == 1:
        n = v.shape[0] + abs(k)
        # The element of row i is v[i] for k >= 0, of column j v[j] for k < 0.
        edge = lax.pad(v, const(v, 0), ((0, n - v.shape[0], 0),))
        spread = lax.broadcast_in_dim(edge, (n, n), (0,) if k >= 0 else (1,))
        return convert(lax.select(diagonal_mask((n, n), k), spread, lax.full_like(spread, 0)), v.dtype, is_weak(v))
    if v.ndim == 2:
        return diagonal(v, k)
    raise ValueError(f"diag input must be 1d or 2d, got shape {v.shape}")


def diagflat(v: Any, k: int = 0) -> Any:
    """Matrix with the elements of v on the k-th diagonal."""
    (v,) = arrays("diagflat", v)
    return diag(lax.reshape(convert(v, v.dtype), (v.size,)), k)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Elements a[..., i, i + offset] over two axes, as the last axis of the result; ValueError for
    axes out of bounds.
    """
    (a,) = arrays("diagonal", a)
    offset = static_int(offset, "diagonal: argument 'offset'")
    if a.ndim < 2:
        raise ValueError(f"diagonal: argument 'a' needs two axes or more, got shape {a.shape}")
    axis1 = canonical_axis("diagonal", axis1, a.ndim, "axis1")
    axis2 = canonical_axis("diagonal", axis2, a.ndim, "axis2")
    if axis1 == axis2:
        raise ValueError(f"diagonal: axis1 and axis2 cannot be the same, got {axis1} for both")
    batch = tuple(d for d in range(a.ndim) if d not in (axis1, axis2))
    if batch + (axis1, axis2) != tuple(range(a.ndim)):
        a = lax.transpose(a, (*batch, axis1, axis2))
    *lead, n, m = a.shape
    if a.ndim == 2 and n == m and offset == 0:
        a = convert(a, a.dtype)  # JAX masks and adds here, so that weak types become strong
    count = max_dim(0, min_dim(n + min(offset, 0), m - max(offset, 0)))
    if is_symbolic(count):  # the square that the diagonal crosses
        corner = (*(0 for _ in lead), max(-offset, 0), max(offset, 0))
        a = lax.slice(a, corner, (*lead, corner[-2] + count, corner[-1] + count))
        n, m, offset = count, count, 0
    # Rows laid end to end, neighbours on the diagonal are m + 1 apart: a strided slice, which is a view.
    flat = lax.reshape(a, (*lead, n * m))
    first = offset if offset >= 0 else -offset * m
    zeros_ = (0,) * len(lead)
    if count == 0:
        return lax.slice(flat, (*zeros_, 0), (*lead, 0), None)
    return lax.slice(flat, (*zeros_, first), (*lead, first + (count - 1) * (m + 1) + 1), (*(1 for _ in lead), m + 1))


def trace(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """Sum of the elements a[..., i, i + offset] over two axes; narrow integers are widened as by `sum`.

    The offset may be traced. Raises ValueError if the axes are the same or out of bounds.
    """
    refuse_out("trace", out)
    (a,) = arrays("trace", a)
    first, second = canonical_axis("trace", axis1, a.ndim, "axis1"), canonical_axis("trace", axis2, a.ndim, "axis2")
    if first == second:
        raise ValueError(f"trace: axis1 and axis2 cannot be the same, got {axis1} and {axis2}")
    if not isinstance(offset, Tracer):
        if isinstance(offset, (bool, np.bool_)) or not is_integer(offset):
            raise ValueError(f"trace: argument 'offset' must be an integer, got {offset!r}")
    if not isinstance(offset, Tracer) and place_of_type(type_on_mesh(a)) is None:
        return _sum(diagonal(a, operator.index(offset), first, second), -1, dtype)
    if isinstance(offset, Tracer) and not dtypes.issubdtype(offset.dtype, np.integer):
        raise ValueError(f"trace: argument 'offset' must be an integer, got {offset}")
    # The place of the diagonal is not known, or it is on several devices, so that all that is not on it becomes 0.
    a = lax.transpose(a, (*(k for k in range(a.ndim) if k not in (first, second)), first, second))
    mask = lax.broadcast_in_dim(diagonal_mask(a.shape[-2:], offset), a.shape, (a.ndim - 2, a.ndim - 1))
    return _sum(lax.select(mask, a, lax.full_like(a, 0)), (-2, -1), dtype)
