"""What transformations need of arrays, handed to `core.hooks`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core import hooks
from pullback.core.primitive import registry
from pullback.core.types import cut_as_mapped, resharded, vma_of
from pullback.lax.elementwise import arithmetic, bits, compare
from pullback.lax.movement import creation, joining
from pullback.lax.movement import shape as shapes
from pullback.lax.movement.broadcast import broadcast_in_dim_p
from pullback.lax.records.rules import move_batch_axis
from pullback.lax.reductions import reductions
from pullback.util import dtypes


def zeros(aval: Any) -> Any:
    """Zeros of an aval, cut as its type says; NumPy ones where the dtype only has zeros."""
    dtype = aval.dtype
    if dtypes.is_extended(dtype):
        zero = dtype._rules.zero(dtype)
        return broadcast_in_dim_p.bind(zero, shape=aval.shape, broadcast_dimensions=()) if aval.shape else zero
    if dtype.kind == "V" and dtype.itemsize == 0:
        return np.zeros(aval.shape, dtype)
    zero = np.zeros((), dtype)[()]
    if dtypes.canonicalize_dtype(dtype) != dtype:  # of 64 bits, from where these were enabled
        zero = hooks.exactly(zero)
    if aval.weak_type:
        zero = hooks.asarray(zero, weak_type=True)
    if not aval.shape:
        return _varying(hooks.asarray(zero, weak_type=aval.weak_type), aval)
    found = _varying(broadcast_in_dim_p.bind(zero, shape=aval.shape, broadcast_dimensions=()), aval)
    placing = getattr(aval, "placing", None)
    return found if placing is None else resharded(found, placing)


def _varying(x: Any, aval: Any) -> Any:
    """x, that varies along the axes of shard_map that values of a type do: so does its cotangent."""
    axes = vma_of(aval)
    return registry["pvary"].bind(x, axes=tuple(sorted(axes, key=str))) if axes else x


def add(x: Any, y: Any) -> Any:
    """x + y of tangents, and of what types of users make of it."""
    dtype: Any = getattr(x, "dtype", None)
    return dtype._rules.add(dtype, x, y) if dtypes.is_extended(dtype) else arithmetic.add_any(x, y)


def broadcast(x: Any, size: int, axis: int) -> Any:
    """`x` repeated along a new axis."""
    shape = np.shape(x)
    new = (*shape[:axis], size, *shape[axis:])
    kept = tuple(i for i in range(len(new)) if i != axis)
    return cut_as_mapped(broadcast_in_dim_p.bind(x, shape=new, broadcast_dimensions=kept), axis)


def convert(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` with dtype and weak type."""
    return bits.convert(x if hasattr(x, "aval") else hooks.asarray(x), dtype, weak_type)


def _leading(index: Any, like: Any) -> Any:
    shape = np.shape(like)
    if not np.ndim(index) or np.shape(index) == shape:
        return index
    return broadcast_in_dim_p.bind(index, shape=shape, broadcast_dimensions=tuple(range(np.ndim(index))))


def select(pred: Any, on_true: Any, on_false: Any) -> Any:
    """on_true where pred else on_false; `pred` may have the leading axes only."""
    return compare.select_n_p.bind(_leading(pred, on_true), on_false, on_true)


def select_n(index: Any, *cases: Any) -> Any:
    """cases[index]; `index` may have the leading axes only."""
    return compare.select_n_p.bind(_leading(index, cases[0]), *cases)


def sum(x: Any, axes: Sequence[int]) -> Any:
    """The sum over axes."""
    return reductions.reduce_sum_p.bind(x, axes=tuple(axes))


def reduce_or(x: Any) -> Any:
    """Whether any element of a boolean array is true."""
    return reductions.reduce_or_p.bind(x, axes=tuple(range(np.ndim(x)))) if np.ndim(x) else x


def interleave(x: Any, y: Any, axis: int) -> Any:
    """x0 y0 x1 y1 ... along an axis; `x` may have one element more."""
    n = y.shape[axis]
    if n == 0:
        return x
    head = x if x.shape[axis] == n else shapes.slice_in_dim(x, 0, n, 1, axis)
    merged = shapes.reshape(joining.stack([head, y], axis + 1), (*y.shape[:axis], 2 * n, *y.shape[axis + 1 :]))
    return merged if head is x else joining.concatenate([merged, shapes.slice_in_dim(x, n, n + 1, 1, axis)], axis)


def ones(aval: Any) -> Any:
    """Ones of an aval."""
    one = np.ones((), aval.dtype)[()]
    if aval.weak_type:
        one = hooks.asarray(one, weak_type=True)
    return (
        broadcast_in_dim_p.bind(one, shape=aval.shape, broadcast_dimensions=())
        if aval.shape
        else hooks.asarray(one, weak_type=aval.weak_type)
    )


def eye(n: int, m: int, k: int, dtype: Any) -> Any:
    """An n x m array with ones where column - row is k, and zeros elsewhere."""
    rows = creation.broadcasted_iota(np.dtype(np.int32), (n, m), 0)
    columns = creation.broadcasted_iota(np.dtype(np.int32), (n, m), 1)
    shifted = arithmetic.add(rows, np.int32(k))
    return bits.convert(compare.eq(shifted, columns), dtype, False)


hooks.fill(
    ones=ones,
    eye=eye,
    zeros=zeros,
    broadcast=broadcast,
    moveaxis=move_batch_axis,
    convert=convert,
    select=select,
    select_n=select_n,
    sum=sum,
    reduce_or=reduce_or,
    interleave=interleave,
    stack=joining.stack,
    less=compare.lt,
    not_equal=compare.ne,
    stop_gradient=creation.stop_gradient,
    clamp=arithmetic.clamp,
    add=add,
    reshape=shapes.reshape,
    rev=shapes.rev,
    slice_in_dim=shapes.slice_in_dim,
    concatenate=joining.concatenate,
    full=creation.full,
    iota=creation.iota,
    dimension_as_value=creation.dimension_as_value,
)
