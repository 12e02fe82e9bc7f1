"""The class BCOO: values, and where in an array they lie.

An array of shape [*batch, *sparse, *dense] is `data[*batch, nse, *dense]` and `indices[*batch, nse, n_sparse]`. Each of
the nse entries is added at its place; those whose index lies outside of the shape are padding. Values at one place
add up. So a program can have fewer entries than there is room for, and shapes stay known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core.dimensions import index as size_of
from pullback.experimental.sparse._base import JAXSparse, operations
from pullback.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: data[*batch, nse, *dense] at indices[*batch, nse, n_sparse], as (data, indices).

    Raises ValueError where shapes do not fit.
    """

    parts = ("data", "indices")
    least = 2

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices = (jnp.asarray(a) for a in args)
        self.shape = tuple(size_of(n) for n in shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._check()

    def _check(self) -> None:
        data, indices, shape = self.data.shape, self.indices.shape, self.shape
        batch = len(indices) - 2
        wanted = f"BCOO: data of shape {data} and indices of shape {indices} do not make an array of shape {shape}"
        if batch < 0 or not np.issubdtype(self.indices.dtype, np.integer):
            raise ValueError(f"{wanted}: indices must be integers of shape [*batch, nse, n_sparse]")
        if len(shape) != batch + indices[-1] + len(data) - batch - 1 or len(data) < batch + 1:
            raise ValueError(f"{wanted}: batch, sparse and dense dimensions must add up")
        for given, name in ((data[:batch], "data"), (indices[:batch], "indices")):
            if any(n not in (1, m) for n, m in zip(given, shape[:batch], strict=True)):
                raise ValueError(f"{wanted}: the batch dimensions {given} of {name} must be {shape[:batch]}, or 1")
        if data[batch] != indices[batch]:
            raise ValueError(f"{wanted}: {data[batch]} values, but {indices[batch]} indices")
        if data[batch + 1 :] != shape[batch + indices[-1] :]:
            raise ValueError(f"{wanted}: the dense dimensions of data must be {shape[batch + indices[-1] :]}")

    nse = property(lambda self: self.indices.shape[-2], doc="How many entries each element of the batch has.")
    n_batch = property(lambda self: self.indices.ndim - 2, doc="How many leading dimensions are a batch.")
    n_sparse = property(lambda self: self.indices.shape[-1], doc="How many dimensions are sparse.")
    n_dense = property(
        lambda self: self.data.ndim - 1 - self.n_batch, doc="How many trailing dimensions are stored in full."
    )

    # Making.

    @classmethod
    def fromdense(
        cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32, n_dense: int = 0, n_batch: int = 0
    ) -> BCOO:
        """The sparse form of an array: see `bcoo_fromdense`."""
        return operations.bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """The sparse matrix of SciPy as BCOO. Raises NotImplementedError for batch or dense dimensions."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse with n_dense or n_batch")
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], axis=1).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32", n_dense: int = 0, n_batch: int = 0,
        nse: int = 0,
    ) -> BCOO:  # fmt: skip
        return operations.empty(shape, dtype, index_dtype, nse=nse, n_batch=n_batch, n_dense=n_dense)

    # Structure.

    def to_bcoo(self) -> BCOO:
        """The array itself."""
        return self

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """Dimensions in another order; batch, sparse and dense ones stay among themselves (ValueError)."""
        order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return operations.bcoo_transpose(self, permutation=order)

    def reshape(self, *args: Any, order: str = "C") -> BCOO:
        """The elements in another shape, of sparse dimensions only."""
        if order != "C":
            raise NotImplementedError(f"BCOO.reshape: order {order!r}")
        sizes = args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return operations.bcoo_reshape(self, new_sizes=sizes)

    def sum(self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False) -> BCOO | Any:
        """The sum over axes, as a sparse array; over all of them, as an array. With keepdims summed axes have size 1.

        Raises ValueError for an axis that is not there, or twice; NotImplementedError for `out`.
        """
        if out is not None:
            raise NotImplementedError("The 'out' argument to BCOO.sum is not supported.")
        axes = _axes(axis, self.ndim)
        given = self if dtype is None else self.astype(dtype)
        found = operations.bcoo_reduce_sum(given, axes=axes)
        if keepdims:
            shape = tuple(1 if d in axes else n for d, n in enumerate(self.shape))
            if not found.ndim:
                return jnp.reshape(found.todense(), shape)
            kept = [d for d in range(self.ndim) if d not in axes]
            return operations.bcoo_broadcast_in_dim(found, shape=shape, broadcast_dimensions=kept)
        return found if found.ndim else found.todense()

    def sort_indices(self) -> BCOO:
        """Entries in the order of their indices."""
        return operations.bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Entries of one place summed into one; see `bcoo_sum_duplicates`."""
        return operations.bcoo_sum_duplicates(self, nse, remove_zeros=remove_zeros)

    def update_layout(
        self, *, n_batch: int | None = None, n_dense: int | None = None, on_inefficient: str | None = "error"
    ) -> BCOO:
        """The array with other numbers of batch and dense dimensions; see `bcoo_update_layout`."""
        return operations.bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient)

    def __getitem__(self, index: Any) -> BCOO:
        return operations.get(self, index)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # Arithmetic. Functions that keep zeros act on the values; those of products act on sums of entries too.

    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def distinct(self) -> BCOO:
        """The array with one entry for each place."""
        return self if self.unique_indices else self.sum_duplicates(nse=self.nse)

    def __abs__(self) -> BCOO:
        found = self.distinct()
        return found.with_data(abs(found.data))

    def __pow__(self, power: Any) -> BCOO:
        if not isinstance(power, (int, float)) or power <= 0:
            raise NotImplementedError("BCOO ** n is sparse for a positive number n only; use todense() first")
        found = self.distinct()
        return found.with_data(found.data**power)

    def __mul__(self, other: Any) -> Any:
        return operations.multiply(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return operations.divide(self, other)

    def __add__(self, other: Any) -> Any:
        return operations.add(self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return operations.add(self, -other)

    def __rsub__(self, other: Any) -> Any:
        return operations.add(-self, other)

    def _dense_result(self, other: Any) -> Any:
        raise NotImplementedError(
            "a comparison of sparse arrays has a dense result; use todense() first if that is what you want"
        )

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _dense_result


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    for a in axes:
        if not -ndim <= a < ndim:
            raise ValueError(f"sum: axis {a} is out of bounds for an array of {ndim} dimensions")
    found = sorted(a % ndim for a in axes)
    if len(set(found)) < len(found):
        raise ValueError(f"sum: duplicate value in 'axis': {tuple(axes)}")
    return tuple(found)
