"""Grids: meshgrid, indices, and what is written with brackets (mgrid, ogrid, r_, c_, s_, index_exp)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import lax
from pullback.numpy._arguments import arrays, canonical_shape, concrete_or_error, promote_dtypes
from pullback.numpy._creation import array
from pullback.numpy._join import concatenate, stack
from pullback.numpy._ranges import arange, linspace
from pullback.util import dtypes


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    """Coordinates of a grid, one array for each vector; with 'xy' the first two axes are exchanged.

    `sparse` leaves the other axes at length 1. Raises ValueError for other indexings, for copy=False and unless all are
    1D.
    """
    converted = arrays("meshgrid", *xi)
    if not copy:
        raise ValueError(
            f"meshgrid: argument 'copy' must be True, got {copy}: the results are always arrays of their own"
        )
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: argument 'indexing' must be 'xy' or 'ij', got {indexing!r}")
    if any(x.ndim != 1 for x in converted):
        raise ValueError(f"meshgrid: each argument must be 1D, got shapes {[x.shape for x in converted]}")
    rank = len(converted)
    axes = list(range(rank))
    if indexing == "xy" and rank >= 2:
        axes[0], axes[1] = 1, 0
    lengths = [0] * rank
    for x, axis in zip(converted, axes):
        lengths[axis] = x.shape[0]
    return [
        lax.broadcast_in_dim(x, tuple(n if k == axis or not sparse else 1 for k, n in enumerate(lengths)), (axis,))
        for x, axis in zip(converted, axes)
    ]


def indices(dimensions: Any, dtype: Any = None, sparse: bool = False) -> Any:
    """Positions along each axis of an array of these lengths, stacked along a first axis; a tuple if `sparse`."""
    if np.ndim(dimensions) == 0:
        raise TypeError(f"indices: argument 'dimensions' must be a sequence of integers, got {dimensions!r}")
    lengths = canonical_shape(dimensions)
    target = np.dtype(dtypes.check_user_dtype_supported(int if dtype is None else dtype, "indices"))
    if sparse:
        shapes = [tuple(n if j == k else 1 for j in range(len(lengths))) for k, n in enumerate(lengths)]
        return tuple(lax.broadcasted_iota(target, shape, k) for k, shape in enumerate(shapes))
    if not lengths:
        return lax.full((0,), 0, target)
    return stack([lax.broadcasted_iota(target, lengths, k) for k in range(len(lengths))])


def _line(item: Any, context: str) -> Any:
    """start:stop:step as a vector; an imaginary step is a number of values, the last being stop."""
    parts = [concrete_or_error(p, f"{context}: bounds must be static") for p in (item.start, item.stop, item.step)]
    start, stop, step = (
        p if p is None or isinstance(p, (int, float, complex)) else np.asarray(p).item() for p in parts
    )
    start = 0 if start is None else start
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, 1 if step is None else step)


class _Grid:
    """Base of mgrid and ogrid: indexed by slices, one an axis."""

    sparse = False
    name = ""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _line(key, f"jnp.{self.name}")
        if not isinstance(key, (tuple, list)):
            raise TypeError(f"jnp.{self.name} takes slices, got {key!r}")
        lines = promote_dtypes(*(_line(k, f"jnp.{self.name}") for k in key)) if key else []
        grid = meshgrid(*lines, indexing="ij", sparse=self.sparse)
        return grid if self.sparse else stack(grid) if grid else lax.full((0,), 0, np.dtype(np.int32))

    def __repr__(self) -> str:
        return f"<jnp.{self.name}>"


class _Mgrid(_Grid):
    """`mgrid[0:2, 0:3]`: dense grid of the values of slices, stacked along a first axis."""

    sparse, name = False, "mgrid"


class _Ogrid(_Grid):
    """`ogrid[0:2, 0:3]`: open grid of the values of slices, a list of arrays that broadcast."""

    sparse, name = True, "ogrid"


class _Joiner:
    """Base of r_ and c_: joins arrays, numbers and slices; a text in front gives 'axis,ndmin,first axis' or 'r' or
    'c' for a matrix.
    """

    axis, ndmin, trans1d = 0, 1, -1
    name = ""

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        matrix = ""
        if items and isinstance(items[0], str):
            directive = items.pop(0)
            if directive in ("r", "c"):
                matrix = directive
            else:
                try:
                    numbers = [int(v) for v in directive.split(",")]
                except ValueError:
                    raise ValueError(f"could not understand directive {directive!r}") from None
                axis = numbers[0]
                ndmin = numbers[1] if len(numbers) > 1 else ndmin
                trans1d = numbers[2] if len(numbers) > 2 else trans1d
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError("string directive must be placed at the beginning")
            part = _line(item, f"jnp.{self.name}") if isinstance(item, slice) else array(item, copy=False)
            rank = part.ndim
            if rank < ndmin:
                part = lax.reshape(part, (1,) * (ndmin - rank) + part.shape)
                if trans1d >= 0 and rank:
                    # The axes that the array had start at axis trans1d.
                    order = list(range(ndmin - rank))
                    order[trans1d:trans1d] = range(ndmin - rank, ndmin)
                    part = lax.transpose(part, tuple(order))
                elif trans1d < -1 and rank:
                    first = max(0, ndmin - rank + trans1d + 1)
                    order = list(range(ndmin - rank))
                    order[first:first] = range(ndmin - rank, ndmin)
                    part = lax.transpose(part, tuple(order))
            parts.append(part)
        joined = concatenate(parts, axis)
        if matrix and joined.ndim == 1:  # a row, or with 'c' a column
            return lax.expand_dims(joined, (1 if matrix == "c" else 0,))
        return joined

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<jnp.{self.name}>"


class RClass(_Joiner):
    """`r_[1:3, 5, x]`: arrays, numbers and slices joined along the first axis."""

    axis, ndmin, trans1d, name = 0, 1, -1, "r_"


class CClass(_Joiner):
    """`c_[x, y]`: vectors as columns, joined along the last axis."""

    axis, ndmin, trans1d, name = -1, 2, 0, "c_"


mgrid, ogrid, r_, c_ = _Mgrid(), _Ogrid(), RClass(), CClass()
s_, index_exp = np.s_, np.index_exp
