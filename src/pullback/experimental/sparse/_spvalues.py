"""`sparsify` one level below: sparse arrays as places in a list of buffers, which transformations of jaxprs pass on.

A `SparsifyEnv` holds arrays; a `SparsifyValue` says which of them are the data, indices and row pointers of a value.
Values that share an array, as the indices of `x` and of `2 * x`, have the same number for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback.numpy as jnp
from pullback import api, tree_util
from pullback.core import ClosedJaxpr, ShapedArray, typeof
from pullback.experimental.sparse._base import JAXSparse
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import BCSR
from pullback.experimental.sparse._sparsify import evaluate, is_sparse
from pullback.util.record import NamedTuple


class SparsifyValue(NamedTuple):
    """A dense or sparse value: its shape, the numbers of its arrays in a `SparsifyEnv`, and what is known of them."""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool = False
    unique_indices: bool = False

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def is_sparse(self) -> bool:
        """Whether the value has indices."""
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """Whether the value is an array."""
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        """Whether the value is a BCOO array."""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """Whether the value is a BCSR array."""
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The arrays of values, by number."""

    def __init__(self, bufs: Sequence[Any] = ()) -> None:
        self._buffers = list(bufs)

    def _push(self, array: Any) -> int:
        array = jnp.asarray(array)
        for number, known in enumerate(self._buffers):
            if known is array:
                return number
        self._buffers.append(array)
        return len(self._buffers) - 1

    def _at(self, number: int | None, what: str, value: SparsifyValue) -> Any:
        if number is None:
            raise ValueError(f"SparsifyEnv: {value} has no {what}")
        return self._buffers[number]

    def data(self, spvalue: SparsifyValue) -> Any:
        """The elements of a value, or its stored entries."""
        return self._at(spvalue.data_ref, "data", spvalue)

    def indices(self, spvalue: SparsifyValue) -> Any:
        """The indices of a sparse value. Raises ValueError for a dense one."""
        return self._at(spvalue.indices_ref, "indices", spvalue)

    def indptr(self, spvalue: SparsifyValue) -> Any:
        """The row pointers of a BCSR value. Raises ValueError for others."""
        return self._at(spvalue.indptr_ref, "indptr", spvalue)

    def dense(self, data: Any) -> SparsifyValue:
        """The value of an array, which is stored."""
        return SparsifyValue(jnp.shape(data), self._push(data))

    def sparse(
        self,
        shape: Sequence[int],
        data: Any = None,
        indices: Any = None,
        indptr: Any = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """The value of a sparse array's parts, which are stored, or are given by their numbers.

        Raises ValueError for a part that is given twice, and where data or indices are not given.
        """
        numbers: dict[str, int | None] = {}
        parts = {"data": (data, data_ref), "indices": (indices, indices_ref), "indptr": (indptr, indptr_ref)}
        for name, (array, number) in parts.items():
            if array is not None and number is not None:
                raise ValueError(f"SparsifyEnv.sparse: give one of arguments '{name}' and '{name}_ref', not both")
            if array is None and number is None and name != "indptr":
                raise ValueError(f"SparsifyEnv.sparse: one of arguments '{name}' and '{name}_ref' must be given")
            numbers[f"{name}_ref"] = number if array is None else self._push(array)
        return SparsifyValue(tuple(shape), **numbers, indices_sorted=indices_sorted, unique_indices=unique_indices)


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def _to_value(spenv: SparsifyEnv, x: Any) -> SparsifyValue:
    if not isinstance(x, JAXSparse):
        return spenv.dense(x)
    kept: Any = x if isinstance(x, (BCOO, BCSR)) else x.to_bcoo()
    known = {"indices_sorted": kept.indices_sorted, "unique_indices": kept.unique_indices}
    return spenv.sparse(kept.shape, kept.data, kept.indices, kept.indptr if isinstance(kept, BCSR) else None, **known)


def _to_array(spenv: SparsifyEnv, value: SparsifyValue) -> Any:
    if value.is_dense():
        return spenv.data(value)
    known = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
    if value.is_bcoo():
        return BCOO((spenv.data(value), spenv.indices(value)), shape=value.shape, **known)
    return BCSR((spenv.data(value), spenv.indices(value), spenv.indptr(value)), shape=value.shape, **known)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """The tree of arrays, dense or sparse, as one of values; their arrays are stored in `spenv`."""
    return tree_util.tree_map(lambda x: _to_value(spenv, x), args, is_leaf=is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The tree of values as one of arrays: dense ones, BCOO and BCSR."""
    return tree_util.tree_map(lambda v: _to_array(spenv, v), spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """The types of the dense arrays that the values stand for, in their tree."""

    def aval(value: SparsifyValue) -> ShapedArray:
        data = typeof(spenv.data(value))
        return ShapedArray(value.shape, data.dtype, weak_type=data.weak_type)

    return tree_util.tree_map(aval, spvalues, is_leaf=_is_value)


def eval_sparse(jaxpr: Any, consts: Sequence[Any], spvalues: Sequence[SparsifyValue], spenv: SparsifyEnv) -> list[Any]:
    """The values of a jaxpr's results, of its arguments' values."""
    arrays = [_to_array(spenv, value) for value in spvalues]
    return [_to_value(spenv, x) for x in evaluate(ClosedJaxpr(jaxpr, consts), arrays)]


def sparsify_raw(f: Callable[..., Any]) -> Callable[..., tuple[list[Any], Any]]:
    """`f`, written for dense arrays, as a function of a `SparsifyEnv` and of values in it, and of static keywords.

    It gives the values of the results, and their tree. Raises NotImplementedError as `sparsify`.
    """

    def wrapped(spenv: SparsifyEnv, *spvalues: Any, **params: Any) -> tuple[list[Any], Any]:
        leaves, tree = tree_util.tree_flatten(spvalues, is_leaf=_is_value)
        types = [api.ShapeDtypeStruct(a.shape, a.dtype) for a in spvalues_to_avals(spenv, leaves)]
        as_dense = tree_util.tree_unflatten(tree, types)
        closed, shapes = api.make_jaxpr(lambda *args: f(*args, **params), return_shape=True)(*as_dense)
        return eval_sparse(closed.jaxpr, closed.consts, leaves, spenv), tree_util.tree_structure(shapes)

    return wrapped
