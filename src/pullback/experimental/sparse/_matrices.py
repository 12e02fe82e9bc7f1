"""The older formats of matrices: by coordinates, by rows and by columns, without batches. Computed with as BCOO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.core.dimensions import index as size_of
from pullback.experimental.sparse._base import JAXSparse
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR
from pullback.experimental.sparse._make import bcoo_fromdense, eye
from pullback.experimental.sparse._products import bcoo_dot_general
from pullback.tree_util import register_pytree_node_class
from pullback.util.dtypes import promote_types
from pullback.util.record import NamedTuple


class _Matrix(JAXSparse):
    """A matrix of which some entries are stored; a subclass says in which order."""

    least = 1
    n_sparse, n_batch, n_dense = 2, 0, 0
    indices_sorted = unique_indices = False

    nse = property(lambda self: self.data.size, doc="How many entries are stored.")

    def _set(self, args: Any, shape: Sequence[int]) -> None:
        for name, part in zip(self.parts, args, strict=True):
            setattr(self, name, jnp.asarray(part))
        self.shape = tuple(size_of(n) for n in shape)
        if len(self.shape) != 2:
            raise ValueError(f"{type(self).__name__}: shape must be that of a matrix, got {self.shape}")

    def tree_flatten(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(the parts, and the rest)."""
        return tuple(getattr(self, name) for name in self.parts), {"shape": self.shape}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Any) -> Any:
        """The matrix from what tree_flatten gave."""
        new = object.__new__(cls)
        vars(new).update(zip(cls.parts, children, strict=True))
        vars(new).update(aux_data)
        return new

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        """Sums of the entries, along an axis or of all."""
        return self.to_bcoo().sum(*args, **kwargs)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> Any:
        """The matrix of one in coordinate format. Raises ValueError for other arrays than matrices."""
        raise NotImplementedError(f"{cls.__name__}.of_bcoo")

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        return cls.of_bcoo(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype))

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> Any:
        return cls.of_bcoo(eye(N, M, k, dtype, index_dtype))

    def _not_there(self, other: Any = None) -> Any:
        raise NotImplementedError(f"arithmetic with and parts of {type(self).__name__} matrices, but for @: use BCOO")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __getitem__ = __iter__ = _not_there

    def _turned(self, axes: Sequence[int] | None) -> None:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(f"{type(self).__name__}.transpose: argument 'axes' must be None or (1, 0)")

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        return product(self, other)


class COOInfo(NamedTuple):
    """What is known of a matrix by coordinates, beside its entries."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_pytree_node_class
class COO(_Matrix):
    """A matrix by coordinates: (data[nse], row[nse], col[nse]). ValueError unless `shape` is that of a matrix."""

    parts = ("data", "row", "col")
    row: Any
    col: Any

    def __init__(
        self, args: tuple[Any, Any, Any], *, shape: Sequence[int], rows_sorted: bool = False, cols_sorted: bool = False
    ) -> None:
        self._set(args, shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    @property
    def _info(self) -> COOInfo:
        """What is known of the matrix, beside its entries."""
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    def tree_flatten(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(the parts, and the rest)."""
        order = {"_rows_sorted": self._rows_sorted, "_cols_sorted": self._cols_sorted}
        return (self.data, self.row, self.col), {"shape": self.shape, **order}

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """The matrix of an array."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> COO:
        """The matrix of one in coordinate format. Raises ValueError for other arrays than matrices."""
        _check_matrix("COO", mat)
        return cls((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape, rows_sorted=mat.indices_sorted)

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        return BCOO((self.data, jnp.stack([self.row, self.col], axis=-1)), shape=self.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The transposed matrix."""
        self._turned(axes)
        turned = (self.data, self.col, self.row)
        return COO(turned, shape=self.shape[::-1], rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)


@register_pytree_node_class
class CSR(_Matrix):
    """A matrix by rows: (data[nse], indices[nse], indptr[rows + 1]). ValueError unless `shape` is that of a matrix."""

    parts = ("data", "indices", "indptr")
    indptr: Any

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        self._set(args, shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """The matrix of an array."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> CSR:
        """The matrix of one in coordinate format. Raises ValueError for other arrays than matrices."""
        _check_matrix("CSR", mat)
        rows = BCSR.from_bcoo(mat)
        return cls((rows.data, rows.indices, rows.indptr), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        return BCSR((self.data, self.indices, self.indptr), shape=self.shape).to_bcoo()

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """The transposed matrix, by columns."""
        self._turned(axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])


@register_pytree_node_class
class CSC(_Matrix):
    """A matrix by columns: (data[nse], indices[nse], indptr[columns + 1]). ValueError as for CSR."""

    parts = ("data", "indices", "indptr")
    indptr: Any

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]) -> None:
        self._set(args, shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """The matrix of an array."""
        turned = mat.T if isinstance(mat, np.ndarray) else jnp.asarray(mat).T
        return csr_fromdense(turned, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def of_bcoo(cls, mat: BCOO) -> CSC:
        """The matrix of one in coordinate format. Raises ValueError for other arrays than matrices."""
        _check_matrix("CSC", mat)
        return CSR.of_bcoo(mat.T).T

    def to_bcoo(self) -> BCOO:
        """The matrix as BCOO."""
        return self.transpose().to_bcoo().T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """The transposed matrix, by rows."""
        self._turned(axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])


def _check_matrix(name: str, mat: BCOO) -> None:
    if (mat.ndim, mat.n_batch, mat.n_dense) != (2, 0, 0):
        raise ValueError(f"{name}: expected a matrix without batch and dense dimensions, got {mat!r}")


def matrix(sparse_format: str, mat: BCOO) -> Any:
    """A matrix in the format "coo", "csr" or "csc"."""
    kinds: dict[str, Any] = {"coo": COO, "csr": CSR, "csc": CSC}
    return kinds[sparse_format].of_bcoo(mat)


def product(mat: Any, other: Any, transpose: bool = False) -> Any:
    """mat @ other, or mat.T @ other, of the dtype to which both promote. TypeError where shapes do not fit."""
    other = jnp.asarray(other)
    if other.ndim not in (1, 2):
        raise NotImplementedError(f"matmul with object of shape {other.shape}")
    whole = mat.to_bcoo()
    axis = 0 if transpose else 1
    if whole.shape[axis] != other.shape[0]:
        raise TypeError(f"matmul: matrix of shape {whole.shape[:: -1 if transpose else 1]} times shape {other.shape}")
    dtype = promote_types(whole.dtype, other.dtype)
    numbers = (((axis,), (0,)), ((), ()))
    return bcoo_dot_general(whole.astype(dtype), other.astype(dtype), dimension_numbers=numbers)


def _of_matrix(name: str, mat: Any, kind: type) -> None:
    if not isinstance(mat, kind):
        raise TypeError(f"{name}: argument 'mat' must be a {kind.__name__}, got {mat!r}")


def _fit(name: str, other: Any, ndim: int) -> None:
    if jnp.ndim(other) != ndim:
        raise ValueError(f"{name}: the second argument must have {ndim} dimensions, got shape {jnp.shape(other)}")


def _counted(mat: Any, nse: int | None) -> int | None:
    """How many entries an array of NumPy has, which is known while a program is recorded, too."""
    return int(np.count_nonzero(mat)) if nse is None and isinstance(mat, np.ndarray) else nse


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """The matrix of an array by coordinates, with `nse` entries (by default as many as are not 0)."""
    found = bcoo_fromdense(mat, nse=_counted(mat, nse), index_dtype=index_dtype)
    row, col = found.indices[:, 0], found.indices[:, 1]
    return COO((found.data, row, col), shape=found.shape, rows_sorted=True)


def coo_todense(mat: COO) -> Any:
    """The matrix with all its elements."""
    _of_matrix("coo_todense", mat, COO)
    return mat.todense()


def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, and a vector."""
    _of_matrix("coo_matvec", mat, COO)
    _fit("coo_matvec", v, 1)
    return product(mat, v, transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, and a matrix."""
    _of_matrix("coo_matmat", mat, COO)
    _fit("coo_matmat", B, 2)
    return product(mat, B, transpose)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """The matrix of an array by rows, with `nse` entries (by default as many as are not 0)."""
    found = BCSR.fromdense(mat, nse=_counted(mat, nse), index_dtype=index_dtype)
    return CSR((found.data, found.indices, found.indptr), shape=found.shape)


def csr_todense(mat: CSR) -> Any:
    """The matrix with all its elements."""
    _of_matrix("csr_todense", mat, CSR)
    return mat.todense()


def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, and a vector."""
    _of_matrix("csr_matvec", mat, CSR)
    _fit("csr_matvec", v, 1)
    return product(mat, v, transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Any:
    """The product of the matrix, or of its transpose, and a matrix."""
    _of_matrix("csr_matmat", mat, CSR)
    _fit("csr_matmat", B, 2)
    return product(mat, B, transpose)


__all__ = [
    "COO", "CSC", "CSR", "coo_fromdense", "coo_matmat", "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat",
    "csr_matvec", "csr_todense", "product",
]  # fmt: skip
