"""Which dimensions of a sparse array are batch, sparse and dense: changing it, and what is built on that."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api import vmap
from pullback.experimental.sparse._base import SparseEfficiencyError, SparseEfficiencyWarning
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._structure import full, inside, sparse_shape, values_where
from pullback.util.warning import warn


def bcoo_update_layout(
    mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
) -> BCOO:
    """The array with other numbers of batch and dense dimensions (None: as many as now), the rest being sparse.

    on_inefficient: "error" (SparseEfficiencyError), "warn" or None, where more values are stored afterwards. Raises
    ValueError for numbers that do not fit.
    """
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_update_layout: expected a BCOO array, got {type(mat)}")
    batch = mat.n_batch if n_batch is None else int(n_batch)
    dense = mat.n_dense if n_dense is None else int(n_dense)
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficient={on_inefficient!r}; expected 'error', 'warn', or None.")
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: n_batch={batch} and n_dense={dense} do not fit an array of {mat.ndim} dimensions"
        )
    before = mat.data.size
    new = _more_sparse(mat, min(batch, mat.n_batch), min(dense, mat.n_dense))
    after = math.prod(mat.shape[:batch]) * new.nse * math.prod(mat.shape[mat.ndim - dense :])
    if (batch > new.n_batch or dense > new.n_dense) and after > before and on_inefficient is not None:
        text = (
            f"bcoo_update_layout: n_batch={batch} and n_dense={dense} store {after} values of {mat!r}, which has "
            f"{before}; set on_inefficient to None or 'warn' if that is what you want"
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        warn(text, SparseEfficiencyWarning)
    return _less_sparse(new, batch, dense)


def _more_sparse(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    """The array with the last batch and the first dense dimensions made sparse."""
    if n_batch == mat.n_batch and n_dense == mat.n_dense:
        return mat
    data, indices = full(mat)
    batch, sparse = mat.shape[: mat.n_batch], mat.n_sparse
    spread = mat.shape[mat.n_batch + sparse : mat.ndim - n_dense]
    gone, kept = batch[n_batch:], batch[:n_batch]
    places = jnp.where(inside(indices, sparse_shape(mat))[..., None], indices, jnp.array(sparse_shape(mat), np.int32))
    rows, cells = math.prod(gone), math.prod(spread)
    data = data.reshape(*kept, rows, mat.nse, cells, *mat.shape[mat.ndim - n_dense :])
    places = places.reshape(*kept, rows, mat.nse, 1, sparse)
    outer = _grid(gone, indices.dtype).reshape(rows, 1, 1, len(gone))
    inner = _grid(spread, indices.dtype).reshape(1, 1, cells, len(spread))
    shape = (*kept, rows, mat.nse, cells)
    columns = [jnp.broadcast_to(part, (*shape, part.shape[-1])) for part in (outer, places, inner)]
    indices = jnp.concatenate(columns, -1).reshape(*kept, rows * mat.nse * cells, sparse + len(gone) + len(spread))
    data = data.reshape(*kept, rows * mat.nse * cells, *mat.shape[mat.ndim - n_dense :])
    return BCOO((data, indices.astype(mat.indices.dtype)), shape=mat.shape, unique_indices=mat.unique_indices)


def _grid(shape: Sequence[int], dtype: Any) -> Any:
    """All indices into an array of this shape, one a row."""
    return np.indices(shape, np.int32).reshape(len(shape), math.prod(shape)).T.astype(dtype)


def _less_sparse(mat: BCOO, n_batch: int, n_dense: int) -> BCOO:
    """The array with the first sparse dimensions made batch dimensions, and the last ones dense."""
    first, last = n_batch - mat.n_batch, n_dense - mat.n_dense
    if not first and not last:
        return mat
    shape = sparse_shape(mat)
    leading, kept, trailing = shape[:first], shape[first : len(shape) - last], shape[len(shape) - last :]

    def one(data: Any, indices: Any) -> tuple[Any, Any]:
        """data[nse, *dense] and indices[nse, n_sparse] in the new layout."""
        valid = inside(indices, shape)
        if trailing:
            cells = jnp.asarray(_grid(trailing, indices.dtype))
            there = (indices[:, None, len(shape) - last :] == cells).all(-1)
            flat = data.reshape(data.shape[0], 1, *data.shape[1:])
            spread = values_where(there, jnp.broadcast_to(flat, (data.shape[0], len(cells), *data.shape[1:])))
            data = spread.reshape(data.shape[0], *trailing, *data.shape[1:])
        rest = jnp.where(valid[:, None], indices[:, first : len(shape) - last], jnp.array(kept, indices.dtype))
        if not kept:  # nothing is left that could say that an entry is padding
            data = values_where(valid, data)
        if not first:
            return data, rest
        rows = jnp.asarray(_grid(leading, indices.dtype))
        own = valid & (indices[:, :first] == rows[:, None, :]).all(-1)
        many = jnp.where(own[..., None], rest, jnp.array(kept, indices.dtype))
        values = values_where(own, jnp.broadcast_to(data, (len(rows), *data.shape)))
        return values.reshape(*leading, *data.shape), many.reshape(*leading, *rest.shape)

    data, indices = full(mat)
    run = one
    for _ in range(mat.n_batch):
        run = vmap(run)
    data, indices = run(data, indices)
    return BCOO((data, indices), shape=mat.shape)


def bcoo_conv_general_dilated(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> BCOO:
    """The convolution of sparse arrays [1, 1, n] and [1, 1, k] in one dimension, as `lax.conv_general_dilated`.

    Raises NotImplementedError for strides, dilations, groups, other layouts, several features or batches.
    """
    name = "bcoo_conv_general_dilated"
    plain = (
        tuple(window_strides) == (1,) and lhs_dilation in (None, (1,), [1]) and rhs_dilation in (None, (1,), [1])
        and dimension_numbers is None and (feature_group_count, batch_group_count) == (1, 1) and out_sharding is None
    )  # fmt: skip
    if not plain or any(tuple(x.shape[:2]) != (1, 1) or len(x.shape) != 3 for x in (lhs, rhs)):
        raise NotImplementedError(
            f"{name}: only arrays [1, 1, n] and [1, 1, k], with strides and dilations of 1, are convolved sparsely"
        )
    if precision is not None and not isinstance(precision, str) and not hasattr(precision, "name"):
        raise NotImplementedError(f"{name}: precision {precision!r}")
    x, k = (_more_sparse(a if isinstance(a, BCOO) else BCOO.fromdense(a), 0, 0) for a in (lhs, rhs))
    n, m = x.shape[2], k.shape[2]
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise ValueError(f"{name}: argument 'padding' must be SAME, VALID or a pair, got {padding!r}")
        whole = m - 1 if padding.upper() == "SAME" else 0
        low, high = whole // 2, whole - whole // 2
    else:
        ((low, high),) = padding
    size = max(n + low + high - m + 1, 0)
    place = x.indices[:, None, 2] - k.indices[None, :, 2] + low
    kept = inside(x.indices, x.shape)[:, None] & inside(k.indices, k.shape)[None, :] & (place >= 0) & (place < size)
    dtype = preferred_element_type or jnp.result_type(x.dtype, k.dtype)
    data = jnp.where(kept, x.data[:, None].astype(dtype) * k.data[None, :].astype(dtype), 0).reshape(-1)
    columns = [jnp.where(kept, 0, 1), jnp.where(kept, 0, 1), jnp.where(kept, place, size)]
    indices = jnp.stack([c.astype(x.indices.dtype).reshape(-1) for c in columns], -1)
    return BCOO((data, indices), shape=(1, 1, size)).sum_duplicates(nse=data.shape[0], remove_zeros=False)
