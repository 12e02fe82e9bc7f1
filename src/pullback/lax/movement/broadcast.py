"""Broadcasting: `broadcast_in_dim`, of which all other forms are made."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pullback.core.dimensions import index as size_of
from pullback.core.types import cut_as, place_of_type, type_of
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.records.families import *

__all__ = [
    "broadcast",
    "broadcast_in_dim",
    "broadcast_in_dim_p",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "expand_dims",
]

Array = Any


# Functions of which JAX takes a single size for the shape of a vector.
ONE_SIZE = ("full", "full_like", "broadcasted_iota", "empty", "reshape")


def canonical_shape(shape: Any, name: str) -> tuple[int, ...]:
    """A shape as a tuple of Python ints; TypeError for what is not one."""
    if type(shape) is int and name in ONE_SIZE:
        return (shape,)
    try:
        return tuple([n if type(n) is int else size_of(n) for n in shape])
    except TypeError:
        if any(hasattr(n, "aval") for n in (shape if isinstance(shape, (tuple, list)) else ())):
            raise
        raise TypeError(
            f"{name}: Shapes must be 1D sequences; each size is an integer known while tracing. Got {shape!r}"
        ) from None


# ---------------------------------------------------------------------------------------------------- broadcast_in_dim


def _broadcast_shape(aval, *, shape, broadcast_dimensions, sharding=None):
    what = f"(operand {aval.shape}, shape {tuple(shape)}, broadcast_dimensions {tuple(broadcast_dimensions)})"
    if len(broadcast_dimensions) != aval.ndim:
        raise TypeError(
            f"broadcast_in_dim: argument 'broadcast_dimensions' needs one number for each axis of the operand, {what}"
        )
    if len(shape) < aval.ndim:
        raise TypeError(f"broadcast_in_dim: argument 'shape' has fewer axes than the operand {what}")
    if any(type(n) is int and n < 0 for n in shape):
        raise TypeError(f"broadcast_in_dim: argument 'shape' must have nonnegative sizes, got {tuple(shape)}")
    previous = -1
    for axis, (n, d) in enumerate(zip(aval.shape, broadcast_dimensions)):
        if not 0 <= d < len(shape):
            raise TypeError(
                f"broadcast_in_dim: argument 'broadcast_dimensions' has {d}, which is no axis of the result {what}"
            )
        if n != 1 and n != shape[d]:
            raise TypeError(
                f"broadcast_in_dim: axis {axis} of the operand has size {n}, which does not become {shape[d]}: only "
                f"axes of size 1 grow {what}"
            )
        if d <= previous:
            raise TypeError(
                f"broadcast_in_dim: argument 'broadcast_dimensions' is {tuple(broadcast_dimensions)}; expected axes "
                "in rising order, each once"
            )
        previous = d
    return shape


def _broadcast_reference(x, shape, broadcast_dimensions, sharding=None):
    expanded = [1] * len(shape)
    for n, d in zip(np.shape(x), broadcast_dimensions):
        expanded[d] = n
    return np.broadcast_to(np.reshape(x, expanded), shape)


def _broadcast_transpose(y_bar, aval, shape, broadcast_dimensions, sharding=None):
    sizes = dict(zip(broadcast_dimensions, aval.shape))
    summed = tuple(d for d, n in enumerate(shape) if n != 1 and sizes.get(d, 1) == 1)
    if summed:
        y_bar = lax.reduce_sum_p.bind(y_bar, axes=summed)
    return y_bar if y_bar.shape == aval.shape else lax.reshape_p.bind(y_bar, new_sizes=aval.shape, dimensions=None)


def _broadcast_batch(args, dims, shape, broadcast_dimensions, sharding=None):
    (x,), (d,) = args, dims
    x = move_batch_axis(x, d, 0)
    return broadcast_in_dim_p.bind(
        x, shape=(x.shape[0], *shape), broadcast_dimensions=(0, *[k + 1 for k in broadcast_dimensions])
    ), 0


def _broadcast_at(ctx, index):
    (aval,) = ctx.in_avals
    zero = ctx.b.const("i64", 0)
    return ctx.operand(
        0, tuple([index[d] if n != 1 else zero for n, d in zip(aval.shape, ctx.params["broadcast_dimensions"])])
    )


broadcast_in_dim_p = movement(
    "broadcast_in_dim",
    traits=("inside",),
    doc="Repeat along new dimensions and dimensions of size 1.",
    shape=_broadcast_shape,
    reference=_broadcast_reference,
    transpose=_broadcast_transpose,
    batch=_broadcast_batch,
    at=_broadcast_at,
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=s).astype(np.float32),), {"shape": t, "broadcast_dimensions": d})
            for s, t, d in [
                ((), (2, 3), ()),
                ((3,), (2, 3), (1,)),
                ((2,), (2, 3), (0,)),
                ((1, 3), (2, 3), (0, 1)),
                ((1,), (1, 4), (0,)),
            ]
        ]
    ),
)


def broadcast_in_dim(
    operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *, out_sharding: Any = None
) -> Array:
    """Dimension k of the operand becomes dimension broadcast_dimensions[k] of the result; sizes agree or are 1.

    Dimensions that do not increase transpose. Raises TypeError for sizes that don't fit and dimensions named twice.
    """
    operand = as_array(operand, "broadcast_in_dim")
    shape = canonical_shape(shape, "broadcast_in_dim")
    dims = tuple([operator.index(d) for d in broadcast_dimensions])
    if len(dims) == operand.ndim and len(set(dims)) == len(dims) and list(dims) != sorted(dims):
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        operand, dims = lax.transpose(operand, order), tuple(sorted(dims))
    if operand.shape == shape and len(dims) == len(shape):
        _broadcast_shape(operand.aval, shape=shape, broadcast_dimensions=dims)
        return out_placed("broadcast_in_dim", operand, out_sharding)
    out = broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims)
    return out_placed("broadcast_in_dim", out, out_sharding)


def broadcast(operand: Any, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The operand repeated along new leading dimensions of the given sizes."""
    operand = as_array(operand, "broadcast")
    sizes = canonical_shape(sizes, "broadcast")
    if not sizes:
        return out_placed("broadcast", operand, out_sharding)
    return out_placed(
        "broadcast",
        broadcast_in_dim(operand, sizes + operand.shape, tuple(range(len(sizes), len(sizes) + operand.ndim))),
        out_sharding,
    )


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast by NumPy's rules; ValueError if they don't."""
    shapes = tuple(tuple(size_of(n) for n in (s if hasattr(s, "__iter__") else (s,))) for s in shapes)
    if any(type(n) is int and n < 0 for shape in shapes for n in shape):
        raise TypeError(f"broadcast_shapes: lengths must not be negative, got shapes={list(shapes)}")
    out = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for i, n in enumerate(reversed(shape), 1):
            if n != 1:
                if out[-i] not in (1, n):
                    raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}")
                out[-i] = n
    return tuple(out)


def broadcast_to_rank(x: Any, rank: int) -> Array:
    """Dimensions of size 1 added in front up to `rank`."""
    x = as_array(x, "broadcast_to_rank")
    return expand_dims(x, tuple(range(rank - x.ndim)))


def broadcast_like(arr: Any, like_arr: Any) -> Array:
    """`arr` broadcast to the shape of `like_arr` by NumPy's rules, cut along explicit axes as that is; ValueError where
    `arr` is cut otherwise.
    """
    arr, like_arr = as_arrays("broadcast_like", arr, like_arr)
    out = broadcast_in_dim(arr, like_arr.shape, tuple(range(like_arr.ndim - arr.ndim, like_arr.ndim)))
    have, wanted = type_of(arr), type_of(like_arr)
    parts, like = (place_of_type(a) or (None,) * a.ndim for a in (have, wanted))
    if any(part not in (None, to) for part, to in zip(parts, like[like_arr.ndim - arr.ndim :])):
        raise ValueError(
            f"broadcast_like: Incompatible types for broadcasting: {have.str_short()} is cut over the mesh otherwise "
            f"than {wanted.str_short()}"
        )
    return cut_as(out, wanted) if place_of_type(wanted) else out


def expand_dims(array: Any, dimensions: Sequence[int]) -> Array:
    """Dimensions of size 1 inserted so that they are at the given places of the result; ValueError for duplicates."""
    array = as_array(array, "expand_dims")
    if not len(dimensions):
        return array
    ndim = array.ndim + len(dimensions)
    places = {canonical_axis(d, ndim, "expand_dims") for d in dimensions}
    if len(places) != len(dimensions):
        raise ValueError(f"repeated axis in lax.expand_dims: {tuple(dimensions)}")
    kept = tuple(i for i in range(ndim) if i not in places)
    shape = [1] * ndim
    for n, d in zip(array.shape, kept):
        shape[d] = n
    return broadcast_in_dim_p.bind(array, shape=tuple(shape), broadcast_dimensions=kept)
