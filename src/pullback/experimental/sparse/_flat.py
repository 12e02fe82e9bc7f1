"""The operations on BCOO and BCSR of arrays for data and indices, and the primitives that mean them.

The functions of the same names without an underscore do not need them. Libraries that take sparse arrays apart, as
JAX's own modules do, call these, and bind the primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback import lax
from pullback import numpy as jnp
from pullback.api import vmap
from pullback.experimental.sparse import _sampled, _shapes, _structure
from pullback.experimental.sparse._base import SparseInfo
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR, bcsr_dot_general, bcsr_extract, bcsr_fromdense
from pullback.experimental.sparse._make import bcoo_fromdense
from pullback.experimental.sparse._primitives import primitive
from pullback.experimental.sparse._products import bcoo_dot_general, bcoo_multiply_dense, bcoo_multiply_sparse
from pullback.util.record import NamedTuple


class BCOOProperties(NamedTuple):
    """How many dimensions of each kind a BCOO has, and how many entries."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


class BCSRProperties(NamedTuple):
    """The same of a BCSR, which has two sparse dimensions."""

    n_batch: int
    n_dense: int
    nse: int


def _whole(data: Any, indices: Any, spinfo: Any) -> BCOO:
    return BCOO((data, indices), **spinfo._asdict())


def _rows(data: Any, indices: Any, indptr: Any, spinfo: Any) -> BCSR:
    return BCSR((data, indices, indptr), **spinfo._asdict())


def _parts(mat: Any) -> tuple[Any, ...]:
    return mat.tree_flatten()[0]


# ------------------------------------------------------------------------------------------------ by coordinates


def _bcoo_todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    return _whole(data, indices, spinfo).todense()


def _bcoo_fromdense(
    mat: Any, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> tuple[Any, Any]:
    return _parts(bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def _bcoo_extract(indices: Any, arr: Any, *, assume_unique: bool = True) -> Any:
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    data = jnp.zeros((*indices.shape[:-1], *arr.shape[n_batch + n_sparse :]), arr.dtype)
    mat = BCOO((data, indices), shape=arr.shape)
    return _structure.bcoo_extract(mat, arr, assume_unique=assume_unique).data


def _bcoo_dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    lhs_spinfo: SparseInfo,
) -> Any:
    return bcoo_dot_general(
        _whole(lhs_data, lhs_indices, lhs_spinfo),
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def _bcoo_rdot_general(
    lhs: Any,
    rhs_data: Any,
    rhs_indices: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    rhs_spinfo: SparseInfo,
) -> Any:
    return bcoo_dot_general(
        lhs,
        _whole(rhs_data, rhs_indices, rhs_spinfo),
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def _bcoo_spdot_general(
    lhs_data: Any,
    lhs_indices: Any,
    rhs_data: Any,
    rhs_indices: Any,
    *,
    lhs_spinfo: SparseInfo,
    rhs_spinfo: SparseInfo,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
) -> tuple[Any, Any]:
    return _parts(
        bcoo_dot_general(
            _whole(lhs_data, lhs_indices, lhs_spinfo),
            _whole(rhs_data, rhs_indices, rhs_spinfo),
            dimension_numbers=dimension_numbers,
            preferred_element_type=preferred_element_type,
        )
    )


def _bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    return _sampled.bcoo_dot_general_sampled(A, B, indices, dimension_numbers=dimension_numbers)


def _bcoo_multiply_dense(data: Any, indices: Any, v: Any, *, spinfo: SparseInfo) -> Any:
    return bcoo_multiply_dense(_whole(data, indices, spinfo), v)


def _bcoo_multiply_sparse(
    lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *, lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo
) -> tuple[Any, Any, tuple[int, ...]]:
    mat = bcoo_multiply_sparse(_whole(lhs_data, lhs_indices, lhs_spinfo), _whole(rhs_data, rhs_indices, rhs_spinfo))
    return mat.data, mat.indices, mat.shape


def _bcoo_reduce_sum(
    data: Any, indices: Any, *, spinfo: SparseInfo, axes: Sequence[int]
) -> tuple[Any, Any, tuple[int, ...]]:
    mat = _structure.bcoo_reduce_sum(_whole(data, indices, spinfo), axes=axes)
    return mat.data, mat.indices, mat.shape


def _bcoo_sum_duplicates(data: Any, indices: Any, *, spinfo: SparseInfo, nse: int | None) -> tuple[Any, Any]:
    return _parts(_structure.bcoo_sum_duplicates(_whole(data, indices, spinfo), nse))


def _bcoo_sort_indices(data: Any, indices: Any, *, spinfo: SparseInfo) -> tuple[Any, Any]:
    return _parts(_structure.bcoo_sort_indices(_whole(data, indices, spinfo)))


def _bcoo_transpose(data: Any, indices: Any, *, permutation: Sequence[int], spinfo: SparseInfo) -> tuple[Any, Any]:
    return _parts(_structure.bcoo_transpose(_whole(data, indices, spinfo), permutation=permutation))


def _bcoo_broadcast_in_dim(
    data: Any, indices: Any, *, spinfo: SparseInfo, shape: Sequence[int], broadcast_dimensions: Sequence[int]
) -> tuple[Any, Any]:
    mat = _whole(data, indices, spinfo)
    return _parts(_shapes.bcoo_broadcast_in_dim(mat, shape=shape, broadcast_dimensions=broadcast_dimensions))


def _bcoo_set_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with room for nse entries: the first ones, or padding behind those that there are."""
    if nse <= mat.nse:
        data = lax.slice_in_dim(mat.data, 0, nse, axis=mat.n_batch)
        indices = lax.slice_in_dim(mat.indices, 0, nse, axis=mat.n_batch)
    else:
        room = [(0, 0)] * mat.n_batch + [(0, nse - mat.nse)]
        data = jnp.pad(mat.data, room + [(0, 0)] * mat.n_dense)
        outside = jnp.array(mat.shape[mat.n_batch : mat.n_batch + mat.n_sparse], mat.indices.dtype)
        more = jnp.broadcast_to(outside, (*mat.indices.shape[:-2], nse - mat.nse, mat.n_sparse))
        indices = jnp.concatenate([mat.indices, more], axis=-2)
    return BCOO((data, indices), shape=mat.shape, **mat.info)


def _validate_bcoo(data: Any, indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """What the arrays are; ValueError where they make no array of the shape."""
    mat = BCOO((data, indices), shape=shape)
    return BCOOProperties(mat.n_batch, mat.n_sparse, mat.n_dense, mat.nse)


# ------------------------------------------------------------------------------------------------ by rows


def _bcsr_todense(data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
    return _rows(data, indices, indptr, spinfo).todense()


def _bcsr_fromdense(
    mat: Any, *, nse: int, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> tuple[Any, Any, Any]:
    return _parts(bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype))


def _bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    return bcsr_extract(indices, indptr, mat)


def _bcsr_dot_general(
    lhs_data: Any,
    lhs_indices: Any,
    lhs_indptr: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    preferred_element_type: Any = None,
    lhs_spinfo: SparseInfo,
) -> Any:
    return bcsr_dot_general(
        _rows(lhs_data, lhs_indices, lhs_indptr, lhs_spinfo),
        rhs,
        dimension_numbers=dimension_numbers,
        preferred_element_type=preferred_element_type,
    )


def _bcsr_to_bcoo(indices: Any, indptr: Any, *, shape: Sequence[int]) -> Any:
    """The indices by coordinates."""
    dense = tuple(shape)[indices.ndim + 1 :]
    data = jnp.zeros((*indices.shape, *dense))
    return BCSR((data, indices, indptr), shape=shape).to_bcoo().indices


def _bcoo_to_bcsr(indices: Any, *, shape: Sequence[int], index_dtype: Any) -> tuple[Any, Any]:
    """(indices, indptr) of indices by coordinates that are sorted."""
    dense = tuple(shape)[indices.ndim :]
    data = jnp.zeros((*indices.shape[:-1], *dense))
    mat = BCSR.from_bcoo(BCOO((data, indices), shape=shape))
    return mat.indices.astype(index_dtype), mat.indptr.astype(index_dtype)


def _validate_bcsr(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> BCSRProperties:
    """What the arrays are; ValueError where they make no array of the shape."""
    mat = BCSR((data, indices, indptr), shape=shape)
    return BCSRProperties(mat.n_batch, mat.n_dense, mat.nse)


# ------------------------------------------------------------------------------------------------ of both


def _count_stored_elements_per_batch(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """How many entries each element of the batch needs."""
    mat = jnp.asarray(mat)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"n_batch={n_batch} and n_dense={n_dense} are too many for shape {mat.shape}")
    stored = (mat != 0).any(axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    return stored.sum(axis=tuple(range(n_batch, stored.ndim)))


def _count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Any:
    """How many entries the fullest element of the batch needs."""
    counts = _count_stored_elements_per_batch(mat, n_batch, n_dense)
    return counts.max(initial=0)


def nfold_vmap(fun: Callable[..., Any], N: int, *, broadcasted: bool = True, in_axes: Any = 0) -> Callable[..., Any]:
    """`fun` over N leading dimensions of its arguments; where they have one element and others more, over that."""
    for _ in range(N):
        fun = broadcasting_vmap(fun, in_axes) if broadcasted else vmap(fun, in_axes)
    return fun


def broadcasting_vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """vmap, whose arguments may have one element along the axis where others have more."""

    def mapped(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) else tuple(in_axes)
        sizes = {np.shape(x)[k] for x, k in zip(args, axes, strict=True) if k is not None}
        if len(sizes) < 2:
            return vmap(fun, axes, out_axes)(*args)
        if len(sizes - {1}) > 1:
            raise ValueError(f"broadcasting_vmap: arguments have sizes {sorted(sizes)} along the mapped axes")
        once = [k is not None and np.shape(x)[k] == 1 for x, k in zip(args, axes, strict=True)]
        args = tuple(jnp.squeeze(x, k) if one else x for x, k, one in zip(args, axes, once, strict=True))
        return vmap(fun, tuple(None if one else k for k, one in zip(axes, once, strict=True)), out_axes)(*args)

    return mapped


bcoo_todense_p = primitive("bcoo_todense", _bcoo_todense)
bcoo_fromdense_p = primitive("bcoo_fromdense", _bcoo_fromdense, multiple_results=True)
bcoo_extract_p = primitive("bcoo_extract", _bcoo_extract)
bcoo_dot_general_p = primitive("bcoo_dot_general", _bcoo_dot_general)
bcoo_spdot_general_p = primitive("bcoo_spdot_general", _bcoo_spdot_general, multiple_results=True)
bcoo_dot_general_sampled_p = primitive("bcoo_dot_general_sampled", _bcoo_dot_general_sampled)
bcoo_sum_duplicates_p = primitive("bcoo_sum_duplicates", _bcoo_sum_duplicates, multiple_results=True)
bcoo_sort_indices_p = primitive("bcoo_sort_indices", _bcoo_sort_indices, multiple_results=True)
bcoo_transpose_p = primitive("bcoo_transpose", _bcoo_transpose, multiple_results=True)
bcsr_todense_p = primitive("bcsr_todense", _bcsr_todense)
bcsr_fromdense_p = primitive("bcsr_fromdense", _bcsr_fromdense, multiple_results=True)
bcsr_extract_p = primitive("bcsr_extract", _bcsr_extract)
bcsr_dot_general_p = primitive("bcsr_dot_general", _bcsr_dot_general)
