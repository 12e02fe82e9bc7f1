"""The class BCSR: matrices by rows, with batch and dense dimensions.

An array of shape [*batch, rows, columns, *dense] is `data[*batch, nse, *dense]`, the columns `indices[*batch, nse]` of
the entries, and `indptr[*batch, rows + 1]`: those of row i are numbers indptr[i] to indptr[i + 1]. Entries from
indptr[rows] on are padding. What is computed with it is computed in coordinates, for which the rows are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.api import vmap
from pullback.core.dimensions import index as size_of
from pullback.experimental.sparse import _shapes as shapes
from pullback.experimental.sparse import _structure as structure
from pullback.experimental.sparse._base import JAXSparse, operations, refuse_sharding
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._products import bcoo_dot_general
from pullback.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse matrix by rows: data[*batch, nse, *dense], indices[*batch, nse], indptr[*batch, rows + 1], as a tuple.

    Raises ValueError where shapes do not fit.
    """

    parts = ("data", "indices", "indptr")
    least = 1
    n_sparse = 2
    indptr: Any

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices, self.indptr = (jnp.asarray(a) for a in args)
        self.shape = tuple(size_of(n) for n in shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._check()

    def _check(self) -> None:
        data, indices, indptr, shape = self.data.shape, self.indices.shape, self.indptr.shape, self.shape
        batch = len(indices) - 1
        wanted = (
            f"BCSR: data of shape {data}, indices of shape {indices} and indptr of shape {indptr} do not make an array "
            f"of shape {shape}"
        )
        if batch < 0 or any(not np.issubdtype(x.dtype, np.integer) for x in (self.indices, self.indptr)):
            raise ValueError(f"{wanted}: indices and indptr must be integers")
        if len(shape) < batch + 2:
            raise ValueError(f"{wanted}: it has two sparse dimensions")
        if indices[:batch] != shape[:batch]:
            raise ValueError(f"{wanted}: indices must be [*batch, nse]")
        if data != (*indices, *shape[batch + 2 :]):
            raise ValueError(f"{wanted}: data must be [*batch, nse, *dense], {(*indices, *shape[batch + 2 :])}")
        if indptr != (*shape[:batch], shape[batch] + 1):
            raise ValueError(f"{wanted}: indptr must be [*batch, rows + 1], {(*shape[:batch], shape[batch] + 1)}")

    nse = property(lambda self: self.indices.shape[-1], doc="How many entries each element of the batch has.")
    n_batch = property(lambda self: self.indices.ndim - 1, doc="How many leading dimensions are a batch.")
    n_dense = property(
        lambda self: self.data.ndim - self.indices.ndim, doc="How many trailing dimensions are stored in full."
    )

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCSR:
        """The sparse form of an array: see `bcsr_fromdense`."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32", n_dense: int = 0, n_batch: int = 0,
        nse: int = 0,
    ) -> BCSR:  # fmt: skip
        places = {"nse": nse, "n_batch": n_batch, "n_dense": n_dense}
        return cls.from_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, **places))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The array by rows, its entries sorted. Raises NotImplementedError unless two dimensions are sparse."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo: {arr!r} has {arr.n_sparse} sparse dimensions, not two")
        rows = arr.shape[arr.n_batch]
        sizes = jnp.array(structure.sparse_shape(arr), arr.indices.dtype)

        def one(data: Any, indices: Any) -> tuple[Any, Any, Any]:
            # Padding to the end, whatever its place.
            valid = structure.inside(indices, structure.sparse_shape(arr))
            indices = jnp.where(valid[:, None], indices, sizes)
            order = jnp.lexsort((indices[:, 1], indices[:, 0]))
            counts = jnp.zeros(rows, indices.dtype).at[indices[:, 0]].add(1, mode="drop")
            indptr = jnp.concatenate([jnp.zeros(1, indices.dtype), jnp.cumsum(counts, dtype=indices.dtype)])
            return data[order], indices[order, 1], indptr

        data, indices = structure.full(arr)
        for _ in range(arr.n_batch):
            one = vmap(one)
        return cls(one(data, indices), shape=arr.shape, indices_sorted=True, unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """The sparse matrix of SciPy as BCSR. Raises NotImplementedError for batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse: n_dense and n_batch are not supported, only 0")
        mat = mat.tocsr()
        places = (part.astype(index_dtype or np.int32) for part in (mat.indices, mat.indptr))
        return cls((mat.data, *places), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The array in coordinate format."""
        rows, columns = self.shape[self.n_batch : self.n_batch + 2]

        def one(indices: Any, indptr: Any) -> Any:
            # An entry's row is how many rows begin up to it; a search in `indptr` for each took half of a product.
            row = jnp.cumsum(jnp.zeros_like(indices).at[indptr].add(1)) - 1
            row = row.astype(indices.dtype)
            return jnp.stack([row, jnp.where(row < rows, indices, columns)], axis=-1)

        for _ in range(self.n_batch):
            one = vmap(one)
        return BCOO((self.data, one(self.indices, self.indptr)), shape=self.shape, **self.info)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Entries of one place summed into one; see `bcoo_sum_duplicates`."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Not there yet: raises NotImplementedError, as all arithmetic but @ does."""
        self._not_there(args or kwargs)

    def __getitem__(self, index: Any) -> BCSR:
        """New axes in front, which are a batch; NotImplementedError for parts."""
        given = index if isinstance(index, tuple) else (index,)
        new = next((k for k, i in enumerate(given) if i is not None), len(given))
        if any(i is not Ellipsis and i != slice(None) for i in given[new:]):
            return self._not_there(index)
        data, indices, indptr = (part[(None,) * new] for part in (self.data, self.indices, self.indptr))
        return BCSR((data, indices, indptr), shape=(1,) * new + self.shape, **self.info)

    def _not_there(self, other: Any = None) -> Any:
        raise NotImplementedError("arithmetic with BCSR arrays, but for @; use to_bcoo() first")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __iter__ = _not_there


def bcsr_fromdense(
    mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0, index_dtype: Any = np.int32
) -> BCSR:
    """The sparse form of `mat`, whose first n_batch dimensions are a batch, and the last n_dense dense.

    As `bcoo_fromdense`; raises ValueError also unless two dimensions are sparse.
    """
    if jnp.ndim(mat) - n_batch - n_dense != 2:
        raise ValueError(
            f"bcsr_fromdense: must have 2 sparse dimensions; got shape {jnp.shape(mat)}, {n_batch=}, {n_dense=}"
        )
    entries = operations.bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    return BCSR.from_bcoo(entries)


def bcsr_todense(mat: BCSR) -> Any:
    """The array with all its elements."""
    return mat.todense()


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Entries of one place summed into one; see `bcoo_sum_duplicates`."""
    return mat.sum_duplicates(nse, remove_zeros=False)


def bcsr_dot_general(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any,
    precision: None = None,
    preferred_element_type: None = None,
    out_sharding: Any = None,
) -> Any:
    """The product of `lax.dot_general` where one operand is a BCSR: see `bcoo_dot_general`."""
    return bcoo_dot_general(
        lhs,
        rhs,
        dimension_numbers=dimension_numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements [*batch, nse, *dense] of `mat` at indices[*batch, nse] and indptr[*batch, rows + 1]."""
    indices, mat = jnp.asarray(indices), jnp.asarray(mat)
    shape = mat.shape
    nothing = jnp.zeros((*indices.shape, *shape[indices.ndim + 1 :]), mat.dtype)
    places = BCSR((nothing, indices, indptr), shape=shape)
    return structure.bcoo_extract(places.to_bcoo(), mat, assume_unique=True).data


def bcsr_broadcast_in_dim(
    mat: BCSR, *, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: Any = None
) -> BCSR:
    """The matrix with dimensions of size 1 repeated; see `bcoo_broadcast_in_dim`."""
    refuse_sharding("bcsr_broadcast_in_dim", "sharding", sharding)
    entries = mat.to_bcoo()
    return BCSR.from_bcoo(shapes.bcoo_broadcast_in_dim(entries, shape=shape, broadcast_dimensions=broadcast_dimensions))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Arrays one after the other along a sparse dimension. ValueError if shapes do not fit."""
    return BCSR.from_bcoo(shapes.bcoo_concatenate([m.to_bcoo() for m in operands], dimension=dimension))
