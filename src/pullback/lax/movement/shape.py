"""Rearrangement: every result element is an operand element (or padding). Compiled, these are index maps and cost
nothing.

`reshape`, `transpose`, `squeeze`, `slice`, `rev`, `tile` have one operand, as has `broadcast_in_dim`
(`movement/broadcast.py`); `pad`, `concatenate`, `stack`, `split`, `unstack` are in `movement/joining.py`, what makes
arrays of nothing in `movement/creation.py`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from pullback.core import hooks, trace
from pullback.core.dimensions import index as size_of
from pullback.core.lowering import InlineFunction
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.movement.broadcast import canonical_shape, expand_dims
from pullback.lax.records.families import *
from pullback.util.tracebacks import api_boundary

__all__ = [
    "collapse",
    "copy",
    "copy_p",
    "reshape",
    "reshape_p",
    "rev",
    "rev_p",
    "slice",
    "slice_in_dim",
    "slice_p",
    "squeeze",
    "squeeze_p",
    "index_in_dim",
    "tile",
    "tile_p",
    "transpose",
    "transpose_p",
]

Array = Any
_Slice: Any = slice  # the type, before this module's function takes the name


# ------------------------------------------------------------------------------------------------------------- reshape


def _reshape_shape(aval, *, new_sizes, dimensions=None, sharding=None):
    if any(n < 0 for n in new_sizes):
        raise TypeError(f"reshape: argument 'new_sizes' must have nonnegative sizes, got {tuple(new_sizes)}")
    if math.prod(new_sizes) != aval.size:
        raise ValueError(
            f"reshape: total size must be unchanged: shape {aval.shape} has {aval.size} elements, new_sizes "
            f"{tuple(new_sizes)} has {math.prod(new_sizes)}"
        )
    if dimensions is not None and sorted(dimensions) != list(range(aval.ndim)):
        raise TypeError(
            f"reshape: argument 'dimensions' is {tuple(dimensions)}, which isn't a permutation of the axes of shape "
            f"{aval.shape}"
        )
    return new_sizes


def _reshape_reference(x, new_sizes, dimensions=None, sharding=None):
    return np.reshape(x if dimensions is None else np.transpose(x, dimensions), new_sizes)


def _reshape_transpose(y_bar, aval, new_sizes, dimensions=None, sharding=None):
    if dimensions is None:
        return reshape_p.bind(y_bar, new_sizes=aval.shape, dimensions=None)
    turned = reshape_p.bind(y_bar, new_sizes=tuple(aval.shape[d] for d in dimensions), dimensions=None)
    return transpose_p.bind(turned, permutation=tuple(int(i) for i in np.argsort(dimensions)))


def _reshape_batch(args, dims, new_sizes, dimensions=None, sharding=None):
    x = move_batch_axis(args[0], dims[0], 0)
    if dimensions is not None:
        dimensions = (0, *[d + 1 for d in dimensions])
    return reshape_p.bind(x, new_sizes=(x.shape[0], *new_sizes), dimensions=dimensions), 0


def _blocks(a: Sequence[int], b: Sequence[int]) -> list[tuple[int, int, int, int]]:
    """The finest cuts (i0, i1, j0, j1) for which a[i0:i1] and b[j0:j1] have equal products."""
    blocks, i, j = [], 0, 0
    while i < len(a) or j < len(b):
        i0, j0 = i, j
        m, i = (a[i], i + 1) if i < len(a) else (1, i)
        n, j = (b[j], j + 1) if j < len(b) else (1, j)
        while m != n:
            if m < n:
                m, i = m * a[i], i + 1
            else:
                n, j = n * b[j], j + 1
        blocks.append((i0, i, j0, j))
    return blocks


def reindex(b: Any, index: Sequence[Any], shape: Sequence[int], new_shape: Sequence[int]) -> list[Any]:
    """The index in an array of `new_shape` of the element that `index` names in one of `shape`; sizes of 1 cost
    nothing.
    """
    zero = b.const("i64", 0)
    source = [(n, i) for n, i in zip(shape, index) if n != 1]
    target = [n for n in new_shape if n != 1]
    found: list[Any] = []
    for i0, i1, j0, j1 in _blocks([n for n, _ in source], target):
        if i1 - i0 == 1 and j1 - j0 == 1:
            found.append(source[i0][1])
            continue
        flat = zero
        for n, i in source[i0:i1]:
            flat = b.op("add", b.op("mul", flat, n), i) if flat is not zero else i
        parts = []
        for n in reversed(target[j0 + 1 : j1]):
            parts.append(b.op("floormod", flat, n))
            flat = b.op("floordiv", flat, n)
        found += [*([flat] if j1 > j0 else []), *reversed(parts)]
    rest = iter(found)
    return [next(rest) if n != 1 else zero for n in new_shape]


def _reshape_at(ctx, index):
    (aval,), dimensions = ctx.in_avals, ctx.params.get("dimensions")
    if aval.size == 0:
        return ctx.operand(0, tuple(ctx.b.const("i64", 0) for _ in aval.shape))
    shape = aval.shape if dimensions is None else tuple(aval.shape[d] for d in dimensions)
    source = reindex(ctx.b, index, ctx.out_aval.shape, shape)
    if dimensions is not None:
        turned = [None] * len(source)
        for i, d in zip(source, dimensions):
            turned[d] = i
        source = turned
    return ctx.operand(0, tuple(source))


reshape_p = movement(
    "reshape",
    traits=("inside",),
    doc="The same elements in row-major order in another shape.",
    shape=_reshape_shape,
    reference=_reshape_reference,
    transpose=_reshape_transpose,
    batch=_reshape_batch,
    at=_reshape_at,
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=s).astype(np.float32),), {"new_sizes": t, "dimensions": None})
            for s, t in [
                ((2, 3), (6,)),
                ((6,), (3, 1, 2)),
                ((2, 3, 4), (4, 6)),
                ((2, 6), (3, 4)),
                ((), (1, 1)),
                ((0, 3), (3, 0)),
            ]
        ]
    ),
)


def reshape(
    operand: Any, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, *, out_sharding: Any = None
) -> Array:
    """The same elements in row-major order in another shape; with `dimensions`, after a transposition.

    Raises ValueError if the sizes don't agree, TypeError if they are negative.
    """
    operand = as_array(operand, "reshape")
    new_sizes = canonical_shape(new_sizes, "reshape")
    dimensions = None if dimensions is None else tuple(operator.index(d) for d in dimensions)
    if dimensions is not None and dimensions != tuple(range(operand.ndim)):
        _reshape_shape(operand.aval, new_sizes=new_sizes, dimensions=dimensions)
        operand = transpose(operand, dimensions)
    if operand.shape == new_sizes:
        return out_placed("reshape", operand, out_sharding)
    return out_placed("reshape", reshape_p.bind(operand, new_sizes=new_sizes, dimensions=None), out_sharding)


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Dimensions start_dimension .. stop_dimension - 1 merged into one. Raises ValueError if there are none."""
    operand = as_array(operand, "collapse")
    lo, hi, _ = _Slice(start_dimension, stop_dimension).indices(operand.ndim)
    if hi < lo:
        raise ValueError(
            f"collapse: dimensions {start_dimension} to {stop_dimension} are no range of axes of shape {operand.shape}"
        )
    return reshape(operand, (*operand.shape[:lo], math.prod(operand.shape[lo:hi]), *operand.shape[hi:]))


# ----------------------------------------------------------------------------------------------------------- transpose


def _transpose_shape(aval, *, permutation):
    if sorted(permutation) != list(range(aval.ndim)):
        raise TypeError(
            f"transpose: argument 'permutation' is {tuple(permutation)}, which isn't a permutation of the axes of "
            f"shape {aval.shape}"
        )
    return tuple([aval.shape[i] for i in permutation])


def inverse_permutation(permutation: Sequence[int]) -> tuple[int, ...]:
    """The permutation that undoes another."""
    out = [0] * len(permutation)
    for i, p in enumerate(permutation):
        out[p] = i
    return tuple(out)


def _transpose_batch(args, dims, permutation):
    (x,), (d,) = args, dims
    return transpose_p.bind(x, permutation=(d, *[p + (p >= d) for p in permutation])), 0


def _transpose_at(ctx, index):
    return ctx.operand(0, tuple([index[i] for i in inverse_permutation(ctx.params["permutation"])]))


transpose_p = movement(
    "transpose",
    traits=("inside",),
    doc="Dimensions reordered.",
    shape=_transpose_shape,
    reference=lambda x, permutation: np.transpose(x, permutation),
    transpose=lambda y_bar, aval, permutation: transpose_p.bind(y_bar, permutation=inverse_permutation(permutation)),
    batch=_transpose_batch,
    at=_transpose_at,
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(2, 3, 4)[: len(p)]).astype(np.float32),), {"permutation": p})
            for p in [(), (1, 0), (2, 0, 1), (0, 2, 1)]
        ]
    ),
)


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Dimension i of the result is dimension permutation[i] of the operand. Raises TypeError for what is not a
    permutation.
    """
    operand = as_array(operand, "transpose")
    permutation = tuple([operator.index(d) for d in permutation])
    if permutation == tuple(range(operand.ndim)):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


# ------------------------------------------------------------------------------------------------------------- squeeze


def _squeeze_shape(aval, *, dimensions):
    if any(not 0 <= d < aval.ndim for d in dimensions) or len(set(dimensions)) != len(dimensions):
        raise ValueError(f"squeeze: dimensions {tuple(dimensions)} are not distinct dimensions of {aval.short()}")
    if any(aval.shape[d] != 1 for d in dimensions):
        raise ValueError(
            f"squeeze: only axes of size 1 can be left out; argument 'dimensions' is {tuple(dimensions)}, in shape "
            f"{aval.shape}"
        )
    return tuple([n for i, n in enumerate(aval.shape) if i not in dimensions])


def _squeeze_batch(args, dims, dimensions):
    (x,), (d,) = args, dims
    out = squeeze_p.bind(x, dimensions=tuple([k + (k >= d) for k in dimensions]))
    return out, d - sum(k < d for k in dimensions)


def _squeeze_at(ctx, index):
    rest, zero = iter(index), ctx.b.const("i64", 0)
    dropped = ctx.params["dimensions"]
    return ctx.operand(0, tuple([zero if i in dropped else next(rest) for i in range(ctx.in_avals[0].ndim)]))


squeeze_p = movement(
    "squeeze",
    traits=("inside",),
    doc="Dimensions of size 1 dropped.",
    shape=_squeeze_shape,
    reference=lambda x, dimensions: np.squeeze(x, dimensions),
    transpose=lambda y_bar, aval, dimensions: expand_dims(y_bar, dimensions),
    batch=_squeeze_batch,
    at=_squeeze_at,
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(1, 3, 1)).astype(np.float32),), {"dimensions": d}) for d in [(0,), (2,), (0, 2)]
        ]
    ),
)


def squeeze(array: Any, dimensions: Sequence[int]) -> Array:
    """The given dimensions dropped, which must have size 1 (ValueError)."""
    array = as_array(array, "squeeze")
    places = tuple(sorted({canonical_axis(d, array.ndim, "squeeze") for d in dimensions}))
    if len(places) != len(dimensions):
        raise ValueError(f"repeated axis in squeeze: {tuple(dimensions)}")
    return squeeze_p.bind(array, dimensions=places) if places else array


# --------------------------------------------------------------------------------------------------------------- slice


def _slice_shape(aval, *, start_indices, limit_indices, strides=None):
    for what, values in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", strides)):
        if values is not None and len(values) != aval.ndim:
            raise TypeError(
                f"slice: argument '{what}' is {tuple(values)}; expected one number for each axis of the operand, "
                f"which has shape {aval.shape}"
            )
    if any(lo < 0 for lo in start_indices):
        raise TypeError(f"slice: argument 'start_indices' must not be negative, got {tuple(start_indices)}")
    if any(hi > n for hi, n in zip(limit_indices, aval.shape)):
        raise TypeError(
            f"slice: argument 'limit_indices' is {tuple(limit_indices)}, beyond the end of the operand, which has "
            f"shape {aval.shape}"
        )
    if any(lo > hi for lo, hi in zip(start_indices, limit_indices)):
        raise TypeError(
            f"slice: argument 'limit_indices' is {tuple(limit_indices)}, which ends before 'start_indices', "
            f"{tuple(start_indices)}, begins"
        )
    if strides is None:
        return tuple([hi - lo for lo, hi in zip(start_indices, limit_indices)])
    if any(s < 1 for s in strides):
        raise TypeError(f"slice: argument 'strides' is {tuple(strides)}; steps are at least 1")
    return tuple([(hi - lo + s - 1) // s for lo, hi, s in zip(start_indices, limit_indices, strides)])


def _slice_reference(x, start_indices, limit_indices, strides=None):
    return x[tuple(map(_Slice, start_indices, limit_indices, strides or (1,) * len(start_indices)))]


def _slice_transpose(y_bar, aval, start_indices, limit_indices, strides=None):
    config = []
    for n, m, lo, s in zip(aval.shape, y_bar.shape, start_indices, strides or (1,) * aval.ndim):
        config.append((lo, n - lo - ((m - 1) * s + 1 if m else 0), s - 1))
    return lax.pad_p.bind(y_bar, constant(y_bar, 0), padding_config=tuple(config))


def _slice_batch(args, dims, start_indices, limit_indices, strides=None):
    (x,), (d,) = args, dims

    def insert(values, value):
        return (*values[:d], value, *values[d:])

    return slice_p.bind(
        x,
        start_indices=insert(start_indices, 0),
        limit_indices=insert(limit_indices, x.shape[d]),
        strides=None if strides is None else insert(strides, 1),
    ), d


def _slice_at(ctx, index):
    b, p = ctx.b, ctx.params
    strides = p.get("strides") or (1,) * len(index)
    return ctx.operand(
        0,
        tuple(
            [
                b.op("add", b.op("mul", i, s), lo) if s != 1 else b.op("add", i, lo) if lo else i
                for i, lo, s in zip(index, p["start_indices"], strides)
            ]
        ),
    )


slice_p = movement(
    "slice",
    traits=("inside",),
    doc="Every strides-th element from start to limit, per dimension.",
    shape=_slice_shape,
    reference=_slice_reference,
    transpose=_slice_transpose,
    batch=_slice_batch,
    at=_slice_at,
    samples=Samples(
        cases=lambda rng: [
            Case(
                (rng.normal(size=(4, 5)).astype(np.float32),), {"start_indices": lo, "limit_indices": hi, "strides": s}
            )
            for lo, hi, s in [((1, 0), (3, 5), None), ((0, 1), (4, 5), (2, 3)), ((2, 2), (2, 5), (1, 2))]
        ]
    ),
)


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Array:
    """operand[start:limit:stride] in each dimension, all static. Raises TypeError for indices outside of the
    operand.
    """
    operand = as_array(operand, "slice")
    if hooks.transfers is not None and (strides is None or all([n == 1 for n in strides])):
        hooks.transfers.of_index(tuple(start_indices))
    return slice_p.bind(
        operand,
        start_indices=tuple([size_of(i) for i in start_indices]),
        limit_indices=tuple([size_of(i) for i in limit_indices]),
        strides=None if strides is None else tuple([size_of(i) for i in strides]),
    )


def _from_end(index: Any, n: Any) -> Any:
    return index + n if type(index) is int and index < 0 else index


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """operand[start:limit:stride] along one axis; negative indices count from the end. Raises TypeError as `slice`."""
    operand = as_array(operand, "slice_in_dim")
    axis = canonical_axis(axis, operand.ndim, "slice_in_dim")
    n = operand.shape[axis]
    lo = 0 if start_index is None else size_of(start_index)
    hi = n if limit_index is None else size_of(limit_index)
    start, limit, strides = [0] * operand.ndim, list(operand.shape), [1] * operand.ndim
    start[axis], limit[axis], strides[axis] = _from_end(lo, n), _from_end(hi, n), operator.index(stride)
    return slice_p.bind(
        operand, start_indices=tuple(start), limit_indices=tuple(limit), strides=None if stride == 1 else tuple(strides)
    )


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """operand[index] along one axis, for a static index. Raises IndexError if it is out of range."""
    operand = as_array(operand, "index_in_dim")
    index, axis = size_of(index), canonical_axis(axis, operand.ndim, "index_in_dim")
    n = operand.shape[axis]
    if not -n <= index < n:
        raise IndexError(f"index_in_dim: index {index} is out of bounds: axis {axis} has {n} elements")
    index = index + n if index < 0 else index
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


# ----------------------------------------------------------------------------------------------------------- rev, tile


def _rev_shape(aval, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev: argument 'dimensions' is {tuple(dimensions)}, which names an axis twice")
    if any(not 0 <= d < aval.ndim for d in dimensions):
        raise TypeError(
            f"rev: argument 'dimensions' is {tuple(dimensions)}; the operand has only the axes of shape {aval.shape}"
        )
    return aval.shape


def _rev_batch(args, dims, dimensions):
    (x,), (d,) = args, dims
    return rev_p.bind(x, dimensions=tuple([k + (k >= d) for k in dimensions])), d


def _rev_at(ctx, index):
    b, shape = ctx.b, ctx.in_avals[0].shape
    reversed_dims = ctx.params["dimensions"]
    return ctx.operand(
        0,
        tuple([b.op("sub", b.const("i64", shape[d] - 1), i) if d in reversed_dims else i for d, i in enumerate(index)]),
    )


rev_p = movement(
    "rev",
    traits=("inside",),
    doc="The order of elements reversed along some dimensions.",
    shape=_rev_shape,
    reference=lambda x, dimensions: np.flip(x, dimensions),
    batch=_rev_batch,
    at=_rev_at,
    transpose=lambda y_bar, aval, dimensions: rev_p.bind(y_bar, dimensions=dimensions),
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(3, 4)).astype(np.float32),), {"dimensions": d}) for d in [(), (0,), (1, 0)]
        ]
    ),
)


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """The order of elements reversed along the given dimensions. Raises TypeError for dimensions that are not there."""
    return rev_p.bind(as_array(operand, "rev"), dimensions=tuple([operator.index(d) for d in dimensions]))


def _tile_shape(aval, *, reps):
    if len(reps) != aval.ndim or any(r < 0 for r in reps):
        raise TypeError(
            f"tile: argument 'reps' is {tuple(reps)}; expected a number, 0 or more, for each axis of shape {aval.shape}"
        )
    return tuple([n * r for n, r in zip(aval.shape, reps)])


def _tile_transpose(y_bar, aval, reps):
    split = tuple(k for r, n in zip(reps, aval.shape) for k in (r, n))
    return lax.reduce_sum_p.bind(
        reshape_p.bind(y_bar, new_sizes=split, dimensions=None), axes=tuple(range(0, 2 * aval.ndim, 2))
    )


def _tile_batch(args, dims, reps):
    (x,), (d,) = args, dims
    return tile_p.bind(x, reps=(*reps[:d], 1, *reps[d:])), d


def _tile_written_out(avals, params):
    """The operand broadcast along a new axis before each that is repeated, reshaped."""

    def repeated(x):
        reps, shape, places = params["reps"], [], []
        for r, n in zip(reps, x.shape):
            shape += [n] if isinstance(r, int) and r == 1 else [r, n]
            places.append(len(shape) - 1)
        spread = lax.broadcast_in_dim(x, tuple(shape), tuple(places))
        return [lax.reshape(spread, tuple([r * n for r, n in zip(reps, x.shape)]))]

    return trace(repeated, avals)


tile_p = movement(
    "tile",
    doc="Copies side by side.",
    shape=_tile_shape,
    reference=lambda x, reps: np.tile(x, reps),
    transpose=_tile_transpose,
    batch=_tile_batch,
    lower=InlineFunction(trace=_tile_written_out),
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(2, 3)).astype(np.float32),), {"reps": r}) for r in [(1, 2), (3, 1), (2, 2)]
        ]
    ),
)


def tile(operand: Any, reps: Sequence[int]) -> Array:
    """The operand repeated reps[i] times along dimension i. Raises TypeError for a wrong number of reps."""
    return tile_p.bind(as_array(operand, "tile"), reps=tuple([size_of(r) for r in reps]))


copy_p = movement(
    "copy",
    traits=("inside",),
    doc="The same values, in memory of their own.",
    shape=lambda aval: aval.shape,
    reference=np.copy,
    transpose=lambda y_bar, aval: y_bar,
    batch=lambda args, dims: (copy_p.bind(args[0]), dims[0]),
    at=lambda ctx, index: ctx.operand(0, index),
    is_view=False,
    samples=Samples(cases=lambda rng: [Case((rng.normal(size=(2, 3)).astype(np.float32),), {})]),
)


@api_boundary
def copy(x: Any) -> Array:
    """The same values, in memory of their own."""
    return copy_p.bind(as_array(x, "copy"))
