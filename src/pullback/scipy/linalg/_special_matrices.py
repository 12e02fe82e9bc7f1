"""Matrices of special form. Sizes are static; entries come from arrays, or are numbers of the default types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.dimensions import is_symbolic
from pullback.core.types import resharded, type_on_mesh
from pullback.numpy._arguments import check_arraylike, check_rank_promotion, promote_dtypes, static_int
from pullback.util import dtypes
from pullback.util.errors import ArgumentError
from pullback.util.static import check_flags


def block_diag(*arrs: Any) -> Any:
    """The matrices, 2-d or less, along the diagonal; zeros elsewhere. Raises ValueError for more dimensions."""
    check_arraylike("block_diag", *arrs)
    if not arrs:
        arrs = (jnp.zeros((1, 0)),)
    blocks = [jnp.atleast_2d(jnp.asarray(a)) for a in arrs]
    for i, block in enumerate(blocks):
        if block.ndim > 2:
            raise ValueError(f"block_diag: argument {i} is {block.aval.short()}; expected one or two axes")
    dtype = dtypes.result_type(*blocks)
    whole = jnp.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), dtype)
    if (placing := type_on_mesh(blocks[0]).placing) is not None:
        whole = resharded(whole, placing)
    above = left = 0
    for block in blocks:
        if block.size:
            whole = lax.dynamic_update_slice(whole, block.astype(dtype), (above, left))
        above, left = above + block.shape[0], left + block.shape[1]
    return whole


def _stacks(column: Any, row: Any) -> tuple[Any, Any]:
    """Both with the leading axes that theirs broadcast to."""
    lead = np.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    return tuple(jnp.broadcast_to(x, (*lead, x.shape[-1])) for x in (column, row))  # type: ignore[return-value]


def _numbers(n: Any) -> Any:
    """0 to n - 1: places that are known now, but for symbolic lengths."""
    return jnp.arange(n) if is_symbolic(n) else np.arange(n)


def _strong(x: Any) -> Any:
    return lax.convert_element_type(x, x.dtype)


def toeplitz(c: Any, r: Any = None) -> Any:
    """Constant along diagonals: first column c, first row r (its first element is not used; default: conj(c)).

    c: [..., n], r: [..., m] -> [..., n, m], where the other axes broadcast.
    """
    check_arraylike("toeplitz", c, *(() if r is None else (r,)))
    column = jnp.atleast_1d(jnp.asarray(c))
    row = jnp.conj(column) if r is None else jnp.atleast_1d(jnp.asarray(r))
    check_rank_promotion("toeplitz", [column.shape, row.shape], [1, 1])
    column, row = _stacks(column, row)
    n, m = column.shape[-1], row.shape[-1]
    if n == 0 or m == 0:
        return jnp.empty((*column.shape[:-1], n, m), dtypes.result_type(column, row))
    values = jnp.concatenate([jnp.flip(row[..., 1:], -1), column], -1)  # entry (i, j) at i - j + m - 1
    return _strong(values[..., _numbers(n)[:, None] - _numbers(m)[None, :] + (m - 1)])


def hankel(c: Any, r: Any = None) -> Any:
    """Constant along antidiagonals: first column c, last row r (its first element is not used; default: zeros).

    c: [..., n], r: [..., m] -> [..., n, m], where the other axes broadcast.
    """
    check_arraylike("hankel", c, *(() if r is None else (r,)))
    if np.ndim(c) == 0 or (r is not None and np.ndim(r) == 0):
        raise ValueError("hankel: arguments 'c' and 'r' must have at least one dimension, got a scalar")
    column = jnp.atleast_1d(jnp.asarray(c))
    row = jnp.zeros_like(column) if r is None else jnp.atleast_1d(jnp.asarray(r))
    column, row = _stacks(column, row)
    n, m = column.shape[-1], row.shape[-1]
    if n == 0 or m == 0:
        return jnp.empty((*column.shape[:-1], n, m), dtypes.result_type(column, row))
    values = jnp.concatenate([column, row[..., 1:]], -1)
    return _strong(values[..., _numbers(n)[:, None] + _numbers(m)[None, :]])


def circulant(c: Any) -> Any:
    """Each column the one before it, moved down cyclically: entry (i, j) is c[(i - j) mod n]. c: [..., n]."""
    check_arraylike("circulant", c)
    c = jnp.atleast_1d(jnp.asarray(c))
    n = c.shape[-1]
    return c[..., (np.arange(n)[:, None] - np.arange(n)[None, :]) % n]


def companion(a: Any) -> Any:
    """The companion matrix of the polynomial with coefficients a, highest first. ValueError for fewer than two."""
    check_arraylike("companion", a)
    a = jnp.atleast_1d(jnp.asarray(a))
    n = a.shape[-1]
    if n < 2:
        raise ValueError(f"The length of `a` must be at least 2, got shape {a.shape}")
    a = a.astype(dtypes.to_inexact_dtype(a.dtype))
    first = -a[..., 1:] / a[..., :1]
    below = jnp.broadcast_to(jnp.eye(n - 2, n - 1, dtype=a.dtype), (*a.shape[:-1], n - 2, n - 1))
    return jnp.concatenate([first[..., None, :], below], axis=-2)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix that convolves a vector of length n with a[..., m]; `mode` as numpy.convolve's (ValueError)."""
    check_arraylike("convolution_matrix", a)
    a, n = jnp.asarray(a), static_int(n, "convolution_matrix: argument 'n'")
    if a.ndim == 0 or a.shape[-1] == 0:
        raise ValueError(f"convolution_matrix expects vectors, not empty; got {a.aval.short()}")
    if n <= 0:
        raise ValueError(f"convolution_matrix: argument 'n' is {n}; expected at least 1")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolution_matrix: mode {mode!r} is unknown; accepted are 'full', 'same' and 'valid'")
    m = a.shape[-1]
    rows = m + n - 1
    offset = np.arange(rows)[:, None] - np.arange(n)[None, :]
    full = _strong(jnp.where((offset >= 0) & (offset < m), a[..., np.clip(offset, 0, m - 1)], a.dtype.type(0)))
    if mode == "full":
        return full
    size = max(m, n) if mode == "same" else max(m, n) - min(m, n) + 1
    start = (rows - size) // 2 if mode == "same" else min(m, n) - 1
    return full[..., start : start + size, :]


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """The matrix of the discrete Fourier transform, exp(-2 pi i j k / n); scale 'sqrtn' or 'n' divides by it."""
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: argument 'scale' is {scale!r}; accepted are None, 'n' and 'sqrtn'")
    kind = dtypes.canonicalize_dtype(np.complex128 if dtype is None else dtype)
    if not dtypes.issubdtype(kind, np.complexfloating):
        raise ValueError(f"dft: argument 'dtype' is {kind}; accepted are complex types")
    factor = {None: 1.0, "sqrtn": 1 / math.sqrt(n) if n > 0 else 1.0, "n": 1 / n if n > 0 else 1.0}[scale]
    jk = np.outer(np.arange(n), np.arange(n)) % max(n, 1)  # exact angles
    return jnp.asarray((np.exp(-2j * np.pi * jk / max(n, 1)) * factor).astype(kind))


def fiedler(a: Any) -> Any:
    """Entry (i, j) is |a[i] - a[j]|. a: [..., n]."""
    check_arraylike("fiedler", a)
    a = jnp.atleast_1d(jnp.asarray(a))
    return jnp.abs(a[..., :, None] - a[..., None, :])


def fiedler_companion(a: Any) -> Any:
    """Fiedler's pentadiagonal companion matrix of the polynomial a, highest first. Fiedler, Linear Algebra Appl.
    2003."""
    check_arraylike("fiedler_companion", a)
    a = jnp.atleast_1d(jnp.asarray(a))
    if not a.shape[-1]:
        raise ValueError("fiedler_companion: argument 'a' must have at least one coefficient, got an empty array")
    a = a.astype(dtypes.to_inexact_dtype(a.dtype))
    n = a.shape[-1] - 1
    out = lax.full_like(a, 0, shape=(*a.shape[:-1], max(n, 0), max(n, 0)))
    if n < 1:
        return out
    a = a / a[..., :1]
    rows, columns, values = (
        [0],
        [0],
        [-a[..., 1]],
    )  # row 2k: -a[2k+1], -a[2k+2] and 1 about the diagonal; row 2k+1: one 1
    for r in range(n):
        entries = [(r, max(r - 2, 0), 1)] if r % 2 else [(r, r - 1, -a[..., r + 1]) if r else None, (r, r + 2, 1)]
        if r % 2 == 0 and r + 1 < n:
            entries.append((r, r + 1, -a[..., r + 2]))
        for entry in entries:
            if entry is not None and entry[1] < n:
                rows.append(entry[0])
                columns.append(entry[1])
                values.append(jnp.broadcast_to(jnp.asarray(entry[2], a.dtype), a.shape[:-1]))
    return out.at[..., np.array(rows), np.array(columns)].set(jnp.stack(values, -1))


def hadamard(n: int, dtype: Any = int) -> Any:
    """Sylvester's matrix of signs with orthogonal rows; n must be a power of two (ValueError)."""
    n = static_int(n, "hadamard: argument 'n'")
    if n < 1 or n & (n - 1):
        raise ValueError(f"n must be an integer, and n must be a power of 2; got {n}")
    numbers = lax.iota(np.uint32, n)
    is_odd = lax.population_count(numbers[:, None] & numbers[None]) & np.uint32(1)
    return jnp.where(is_odd, -1, 1).astype(dtypes.check_user_dtype_supported(dtype, "hadamard"))


def helmert(n: int, full: bool = False) -> Any:
    """The Helmert matrix of order n without its first row, or whole if `full`."""
    check_flags("helmert", full=full)
    if (n := static_int(n, "helmert: argument 'n'")) < 1:
        raise ValueError(f"helmert: argument 'n' must be positive, got {n}")
    rows = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(float(n)))
    rows[0] = 1
    squares = np.array([n, *[i * (i + 1) for i in range(1, n)]][:n], float)  # of the rows' lengths
    return jnp.asarray((rows / np.sqrt(squares)[:, None])[0 if full else 1 :])


def _order(name: str, n: Any) -> int:
    """The number of rows, which must not be negative."""
    n = static_int(n, f"{name}: argument 'n'")
    if n < 0:
        raise ArgumentError(f"{name}: argument 'n' must be nonnegative, got {n}")
    return n


def hilbert(n: int) -> Any:
    """Entry (i, j) is 1 / (i + j + 1)."""
    numbers = np.arange(_order("hilbert", n))
    return jnp.asarray(1 / (numbers[:, None] + numbers + 1))


def invhilbert(n: int) -> Any:
    """The inverse of hilbert(n)."""
    n = _order("invhilbert", n)

    def entry(i: int, j: int) -> int:
        size = (i + j + 1) * math.comb(n + i, n - j - 1) * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2
        return -size if (i + j) % 2 else size

    return jnp.asarray(_of_integers(n, entry))


def _of_integers(n: int, entry: Callable[[int, int], int]) -> np.ndarray:
    """The matrix of exact numbers, rounded once."""
    return np.array([[float(entry(i, j)) for j in range(n)] for i in range(n)], np.float64).reshape(n, n)


def leslie(f: Any, s: Any) -> Any:
    """The Leslie matrix of fecundities f[..., n] and survival rates s[..., n - 1]. ValueError for other sizes."""
    check_arraylike("leslie", f, s)
    f, s = jnp.asarray(f), jnp.asarray(s)
    if f.shape[-1] != s.shape[-1] + 1 or f.shape[-1] < 2:
        raise ValueError(f"Incorrect lengths for f and s. Got f.shape={f.shape}, s.shape={s.shape}")
    n = f.shape[-1]
    check_rank_promotion("leslie", [f.shape, s.shape], [1, 1])
    f, s = promote_dtypes(f, s)
    batch = jnp.broadcast_shapes(f.shape[:-1], s.shape[:-1])
    out = lax.full_like(f, 0, shape=(*batch, n, n)).at[..., 0, :].set(f)
    index = np.arange(n - 1)
    return out.at[..., index + 1, index].set(s)


_KINDS = {
    "symmetric": lambda i, j: math.comb(i + j, i),
    "lower": lambda i, j: math.comb(i, j),
    "upper": lambda i, j: math.comb(j, i),
}


def _kind(kind: str | None) -> str:
    kind = "symmetric" if kind is None else kind
    if kind not in _KINDS:
        raise ValueError(f"argument 'kind' is {kind!r}; accepted are {', '.join(map(repr, _KINDS))}")
    return kind


def pascal(n: int, kind: str | None = None) -> Any:
    """The Pascal matrix of binomial coefficients: 'symmetric' (default), 'lower' or 'upper'; ValueError for others."""
    entry = _KINDS[_kind(kind)]
    return jnp.asarray(_of_integers(n, entry).astype(np.float32))


def invpascal(n: int, kind: str | None = None) -> Any:
    """The inverse of pascal(n, kind)."""
    kind = _kind(kind)

    def entry(i: int, j: int) -> int:
        if kind == "symmetric":  # the inverse of the upper factor times that of the lower one
            size = sum(math.comb(k, i) * math.comb(k, j) for k in range(n))
        else:
            size = _KINDS[kind](i, j)
        return -size if (i + j) % 2 else size

    return jnp.asarray(_of_integers(n, entry))
