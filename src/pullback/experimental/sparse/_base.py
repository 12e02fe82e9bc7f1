"""What all formats of sparse arrays share: a shape, values, their form as a pytree."""

from __future__ import annotations

import math
import types
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from pullback.core import Tracer
from pullback.util.errors import Explained
from pullback.util.record import NamedTuple

# The functions behind the methods. They are in modules that import this one, and the package hands them over.
operations: Any = types.SimpleNamespace()


class SparseEfficiencyError(Explained, ValueError):
    """A layout was asked for that would store much more than before."""


class SparseEfficiencyWarning(UserWarning):
    """A layout that stores much more than before."""


def refuse_sharding(name: str, argument: str, sharding: Any) -> None:
    """NotImplementedError if the argument of a function that makes sparse arrays is given."""
    if sharding is not None:
        raise NotImplementedError(f"{name}: argument '{argument}' is not supported for sparse arrays, got {sharding}")


class SparseInfo(NamedTuple):
    """What is known of a sparse array, beside its entries."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


class JAXSparse:
    """An array of which only some entries are stored, as the arrays that `parts` names."""

    parts: ClassVar[tuple[str, ...]]
    least: ClassVar[int]  # the number of dimensions of `indices` without a batch
    data: Any
    indices: Any
    shape: tuple[int, ...]
    indices_sorted: bool
    unique_indices: bool
    nse: Any
    n_batch: Any
    n_sparse: Any
    n_dense: Any
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

    def to_bcoo(self) -> Any:
        """The array in coordinate format."""
        raise NotImplementedError(f"{type(self).__name__} has no coordinate form: its class defines no to_bcoo()")

    def todense(self) -> Any:
        """The array with all its elements."""
        return operations.bcoo_todense(self.to_bcoo())

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions in another order."""
        raise NotImplementedError(f"{type(self).__name__}.transpose; use to_bcoo() first")

    @property
    def T(self) -> Any:
        """The array with its dimensions reversed."""
        return self.transpose()

    def astype(self, dtype: Any) -> Self:
        """The same places with values of another dtype."""
        return self.with_data(self.data.astype(dtype))

    def block_until_ready(self) -> Self:
        """The array itself, when its parts are computed."""
        for name in self.parts:
            getattr(self, name).block_until_ready()
        return self

    def __matmul__(self, other: Any) -> Any:
        return operations.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return operations.matmul(other, self)

    @property
    def info(self) -> dict[str, bool]:
        """What is known about the indices, as the constructor takes it."""
        return {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}

    @property
    def _info(self) -> Any:
        """What is known of the array, beside its entries."""
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, ...]:
        """The parts, as JAX's own modules take arrays apart."""
        return self.tree_flatten()[0]

    def with_data(self, data: Any) -> Self:
        """The array with other values at the same places."""
        (_, *places), aux_data = self.tree_flatten()
        return self.tree_unflatten(aux_data, (data, *places))

    def __repr__(self) -> str:
        name, parts = type(self).__name__, [getattr(self, part) for part in self.parts]
        if not all(hasattr(part, "dtype") for part in parts):  # tree_map gave other leaves
            return f"{name}(({', '.join(map(repr, parts))}), shape={self.shape})"
        words = [f"{self.dtype}{list(self.shape)}", f"nse={self.nse}"]
        words += [f"{word}={n}" for word in ("n_batch", "n_dense") if (n := getattr(self, word))]
        return f"{name}({', '.join(words)})"

    # As a pytree: transformations replace the parts by whatever they like, so nothing is checked.

    def tree_flatten(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """(the parts, and the rest)."""
        return tuple(getattr(self, name) for name in self.parts), {"shape": self.shape, **self.info}

    @classmethod
    def tree_unflatten(cls, aux_data: dict[str, Any], children: Any) -> Self:
        """The array from what tree_flatten gave."""
        new = object.__new__(cls)
        vars(new).update(zip(cls.parts, children, strict=True))
        vars(new).update(aux_data)
        if hasattr(new.data, "ndim") and getattr(new.indices, "ndim", 0) >= cls.least:
            # vmap takes a batch dimension away, and gives one to results.
            more = new.data.ndim - 1 + new.n_sparse - len(new.shape)
            if more:
                new.shape = new.data.shape[:more] + new.shape if more > 0 else new.shape[-more:]
        elif isinstance(new.indices, Tracer) and new.indices.interpreter.transformation == "vmap":
            raise ValueError(
                f"vmap: a {cls.__name__} array of shape {new.shape} with n_batch=0 cannot be mapped; only batch "
                "dimensions can, which update_layout(n_batch=...) makes"
            )
        return new
