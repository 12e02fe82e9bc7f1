"""The class BCOO: values, and where in an array they lie.

An array of shape [*batch, *sparse, *dense] is `data[*batch, nse, *dense]` and `indices[*batch, nse, n_sparse]`. Each of
the nse entries is added at its place; those whose index lies outside of the shape are padding. Values at one place
add up. So a program can have fewer entries than there is room for, and shapes stay known.
"""

from __future__ import annotations

import math
import operator
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.tree_util import register_pytree_node_class

# The functions behind the methods. They are in modules that import this one, and the package hands them over.
operations: Any = types.SimpleNamespace()


class SparseEfficiencyError(ValueError):
    """A layout was asked for that would store much more than before."""


class SparseEfficiencyWarning(UserWarning):
    """A layout that stores much more than before."""


class JAXSparse:
    """What all sparse arrays have: a shape, and operators that give sparse arrays where the result is sparse."""

    data: Any
    shape: tuple[int, ...]
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def todense(self) -> Any:
        """The array with all its elements."""
        raise NotImplementedError(f"{type(self).__name__}.todense")

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions in another order."""
        raise NotImplementedError(f"{type(self).__name__}.transpose")

    @property
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return self.transpose()


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: data[*batch, nse, *dense] at indices[*batch, nse, n_sparse], as (data, indices).

    Raises ValueError where shapes do not fit.
    """

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        self.data, self.indices = (jnp.asarray(a) for a in args)
        self.shape = tuple(operator.index(n) for n in shape)
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

    @property
    def _info(self) -> dict[str, bool]:
        return {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}

    def __repr__(self) -> str:
        if not (hasattr(self.data, "dtype") and hasattr(self.indices, "shape")):  # tree_map gave other leaves
            return f"BCOO(({self.data!r}, {self.indices!r}), shape={self.shape})"
        parts = [f"{self.dtype}{list(self.shape)}", f"nse={self.nse}"]
        parts += [f"{name}={n}" for name in ("n_batch", "n_dense") if (n := getattr(self, name))]
        return f"BCOO({', '.join(parts)})"

    # As a pytree: transformations replace data and indices by whatever they like, so nothing
    # is checked.

    def tree_flatten(self) -> tuple[tuple[Any, Any], dict[str, Any]]:
        """(data, indices), and the rest."""
        return (self.data, self.indices), {"shape": self.shape, **self._info}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Any) -> BCOO:
        """The array from what tree_flatten gave."""
        new = object.__new__(cls)
        new.data, new.indices = children
        vars(new).update(aux_data)
        if hasattr(new.data, "ndim") and getattr(new.indices, "ndim", 0) > 1:
            # vmap takes a batch dimension away, and gives one to results.
            more = new.data.ndim - 1 + new.n_sparse - len(new.shape)
            if more:
                new.shape = new.data.shape[:more] + new.shape if more > 0 else new.shape[-more:]
        return new

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

    # Structure.

    def todense(self) -> Any:
        """The array with all its elements."""
        return operations.bcoo_todense(self)

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

    def sum(self, axis: Any = None) -> BCOO | Any:
        """The sum over axes, as a sparse array; over all of them, as an array."""
        found = operations.bcoo_reduce_sum(self, axes=_axes(axis, self.ndim))
        return found if found.ndim else found.todense()

    def astype(self, dtype: Any) -> BCOO:
        """The same places with values of another dtype."""
        return self._with(self.data.astype(dtype))

    def sort_indices(self) -> BCOO:
        """Entries in the order of their indices."""
        return operations.bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Entries of one place summed into one; see `bcoo_sum_duplicates`."""
        return operations.bcoo_sum_duplicates(self, nse, remove_zeros=remove_zeros)

    def block_until_ready(self) -> BCOO:
        """The array itself, when its parts are computed."""
        self.data.block_until_ready()
        self.indices.block_until_ready()
        return self

    def _with(self, data: Any) -> BCOO:
        return BCOO((data, self.indices), shape=self.shape, **self._info)

    def __getitem__(self, index: Any) -> BCOO:
        return operations.get(self, index)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    # Arithmetic. Functions that keep zeros act on the values; those of products act on sums of entries too.

    def __neg__(self) -> BCOO:
        return self._with(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def _distinct(self) -> BCOO:
        return self if self.unique_indices else self.sum_duplicates(nse=self.nse)

    def __abs__(self) -> BCOO:
        found = self._distinct()
        return found._with(abs(found.data))

    def __pow__(self, power: Any) -> BCOO:
        if not isinstance(power, (int, float)) or power <= 0:
            raise NotImplementedError("BCOO ** n is sparse for a positive number n only; use todense() first")
        found = self._distinct()
        return found._with(found.data**power)

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

    def __matmul__(self, other: Any) -> Any:
        return operations.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return operations.matmul(other, self)

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
    return tuple(sorted({a % ndim for a in axes}))
