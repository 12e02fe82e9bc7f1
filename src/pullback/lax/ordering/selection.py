"""What can be said of the order of elements without sorting them: the largest, those at given places, partitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pullback.core.dimensions import Dimension
from pullback.core.dimensions import index as size_of
from pullback.core.explain import check
from pullback.core.kinds import INTEGER
from pullback.core.lowering import Nest
from pullback.lax.ordering.ordering import largest, sortable, stable_order
from pullback.lax.ordering.row_calls import as_rows, call_rows, result_rows
from pullback.lax.ordering.sort import sort_p, take_along
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.lax.records.operands import check_places
from pullback.util.errors import ArgumentError

__all__ = ["approx_max_k", "approx_min_k", "approx_top_k_p", "top_k", "top_k_p"]

Array = Any


# --------------------------------------------------------------------------------------------------------------- top_k


def _top_k_shape(aval, *, k, axis=-1):
    axis = axis + aval.ndim if axis < 0 else axis
    if k < 0:
        raise ValueError(f"top_k: argument 'k' must not be negative, got {k}")
    if not aval.ndim:
        raise TypeError("top_k: the operand must not be a scalar")
    if aval.shape[axis] < k:
        raise ValueError(f"top_k: k={k} is more than axis {axis} of the operand has, which is of shape {aval.shape}")
    check_places("top_k", aval.shape[axis], np.int32)
    if dtypes.kind_of(aval.dtype) == "c":
        raise ValueError(f"top_k does not take complex operands, got {aval.dtype}")
    shape = (*aval.shape[:axis], k, *aval.shape[axis + 1 :])
    return [ShapedArray(shape, aval.dtype, aval.weak_type), ShapedArray(shape, np.int32)]


def _top_k_reference(x, k, axis=-1):
    best = largest(x, k, axis % x.ndim)
    return [np.take_along_axis(x, best, axis), best.astype(np.int32)]


def _top_k_jvp(primals, tangents, k, axis=-1):
    (x,), (x_dot,) = primals, tangents
    values, places = top_k_p.bind(x, k=k, axis=axis)
    dot = tangent_zero(values) if is_zero(x_dot) else take_along(x_dot, places, axis % x.ndim)
    return [values, places], [dot, tangent_zero(places)]


def _top_k_batch(args, dims, k, axis=-1):
    (x,), (d,) = args, dims
    axis = axis % (x.ndim - 1)
    return top_k_p.bind(x, k=k, axis=axis + (axis >= d)), [d, d]


def _top_k_emit(ctx):
    _largest_emit(ctx, ctx.params["k"], ctx.params.get("axis", -1))


def _largest_emit(ctx, k, axis):
    x, results = ctx.operand(0), [ctx.result(0), ctx.result(1)]
    axis = axis % x.ndim
    if not results[0].size:
        return
    source = as_rows(ctx, x, axis)
    with result_rows(ctx, results, axis) as targets:
        call_rows(ctx, "pb_top_k", source, (k,), (source, *targets))


top_k_p = Primitive(
    "top_k",
    doc="The k largest elements along an axis, and where they are.",
    abstract_eval=_top_k_shape,
    multiple_results=True,
    reference=_top_k_reference,
    jvp=_top_k_jvp,
    transpose=NOT_LINEAR,
    batch=_top_k_batch,
    lower=Nest(_top_k_emit),
    traits={"stacked", "exact"},
    samples=Samples(
        cases=lambda rng: (
            [
                Case((rng.normal(size=(3, 6)).astype(np.float32),), {"k": k, "axis": a})
                for k, a in [(2, 1), (3, 0), (6, 1), (0, 1)]
            ]
            + [Case((np.array([1, np.nan, 3, 3, -np.inf], np.float32),), {"k": 4, "axis": 0}, derivatives=False)]
            + [Case((rng.integers(-9, 9, (2, 1500)).astype(np.int32),), {"k": 5, "axis": 1}, derivatives=False)]
            + [
                Case((rng.normal(size=70_000).astype(dtype),), {"k": k, "axis": 0}, derivatives=False)
                for dtype, k in [("f4", 10), ("f8", 300), ("f2", 50), ("f4", 60_000)]
            ]
        )
    ),
)


def top_k(operand: Any, k: int, *, axis: int = -1) -> list[Array]:
    """The k largest elements along an axis in descending order, and their indices (int32); the first of equal ones
    comes first.

    Floats are in their total order: -NaN, -inf, ..., -0, 0, ..., inf, NaN. Raises ValueError for k above the size and
    for a scalar, TypeError if k is no integer.
    """
    operand = as_array(operand, "top_k")
    if not operand.ndim:
        raise ValueError("top_k: argument 'operand' must have at least one dimension, got a scalar")
    if not hasattr(k, "__index__") and not isinstance(k, Dimension):
        raise TypeError(f"top_k: argument 'k' must be an integer, got {k!r}")
    k, axis = size_of(k), canonical_axis(axis, operand.ndim, "top_k")
    return list(top_k_p.bind(operand, k=k, axis=axis))


def _approx_shape(
    aval,
    *,
    k,
    reduction_dimension=-1,
    recall_target=0.95,
    is_max_k=True,
    reduction_input_size_override=-1,
    aggregate_to_topk=True,
):
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError(f"approx_max_k, approx_min_k: argument 'operand' must be of floats, got {aval.dtype}")
    checked = _top_k_shape(aval, k=k, axis=reduction_dimension)
    if aggregate_to_topk:
        return checked
    found = _approx_size(
        aval.shape[reduction_dimension], aval.ndim, k, recall_target, reduction_input_size_override, aggregate_to_topk
    )
    return _top_k_shape(aval, k=found, axis=reduction_dimension)


def _approx_size(n, rank, k, recall_target=0.95, reduction_input_size_override=-1, aggregate_to_topk=True, **_):
    """How many elements are found: k, or before these are chosen what tiles of an accelerator would give.

    The size follows from the expected recall (F. Chern and others, TPU-KNN, 2022) in tiles of 128, 1024 for vectors.
    """
    tile = 128 if rank > 1 else 1024
    if aggregate_to_topk or n <= tile:
        return k if aggregate_to_topk else n
    if k == 1:
        return tile
    if recall_target == 1:
        return n
    wanted = max(int((1 - k) / math.log(recall_target)), tile)
    halvings = math.floor(math.log2(max(max(n, reduction_input_size_override) / wanted, 1)))
    tiles = math.ceil(math.ceil(n / tile) / 2**halvings)
    return n if halvings == 0 else max(tiles * tile, k)


def _approx_reference(x, k, reduction_dimension=-1, is_max_k=True, **params):
    k = _approx_size(x.shape[reduction_dimension], x.ndim, k, **params)
    if is_max_k:
        return _top_k_reference(x, k, reduction_dimension)
    order = np.take(stable_order(x, reduction_dimension % x.ndim), range(k), reduction_dimension)
    return [np.take_along_axis(x, order, reduction_dimension), order.astype(np.int32)]


def _approx_jvp(primals, tangents, **params):
    (x,), (x_dot,) = primals, tangents
    values, places = approx_top_k_p.bind(x, **params)
    dot = tangent_zero(values) if is_zero(x_dot) else take_along(x_dot, places, params["reduction_dimension"] % x.ndim)
    return [values, places], [dot, tangent_zero(places)]


def _approx_batch(args, dims, reduction_dimension=-1, **params):
    (x,), (d,) = args, dims
    axis = reduction_dimension % (x.ndim - 1)
    return approx_top_k_p.bind(x, reduction_dimension=axis + (axis >= d), **params), [d, d]


def _approx_emit(ctx):
    p = ctx.params
    if p["is_max_k"]:
        axis = p["reduction_dimension"]
        _largest_emit(ctx, ctx.result(0).shape[axis], axis)
    else:
        ctx.by_reference()


approx_top_k_p = Primitive(
    "approx_top_k",
    doc="The k largest or smallest elements; a CPU finds them all.",
    abstract_eval=_approx_shape,
    multiple_results=True,
    reference=_approx_reference,
    jvp=_approx_jvp,
    transpose=NOT_LINEAR,
    batch=_approx_batch,
    lower=Nest(_approx_emit),
    traits={"exact"},
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(3, 6)).astype(np.float32),), {"k": 2, "reduction_dimension": 1, "is_max_k": m})
            for m in (True, False)
        ]
    ),
)


def _approx(operand, k, reduction_dimension, recall_target, override, aggregate, is_max_k):
    operand = as_array(operand, "approx_max_k" if is_max_k else "approx_min_k")
    if size_of(k) <= 0:
        raise ValueError(f"approx_max_k, approx_min_k: argument 'k' must be positive, got {k}")
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target must be in (0, 1], got {recall_target}")
    check("approx_top_k", INTEGER, reduction_input_size_override=override)
    if not isinstance(aggregate, (bool, np.bool_)):
        raise ArgumentError(f"approx_top_k: argument 'aggregate_to_topk' must be True or False, got {aggregate!r}")
    axis = canonical_axis(reduction_dimension, operand.ndim, "approx_top_k")
    if override != -1 and override < operand.shape[axis]:
        raise ValueError(
            "approx_max_k, approx_min_k: argument 'reduction_input_size_override' must not be less than the size "
            f"{operand.shape[axis]} that is given, got {override}"
        )
    values, places = approx_top_k_p.bind(
        operand,
        k=size_of(k),
        reduction_dimension=axis,
        recall_target=float(recall_target),
        is_max_k=is_max_k,
        reduction_input_size_override=override,
        aggregate_to_topk=bool(aggregate),
    )
    return [values, places]


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """A list of the k largest elements and their indices; on a CPU exactly those.

    With `aggregate_to_topk=False` some more than k, as many as an accelerator would find before it chooses.
    """
    return _approx(
        operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk, True
    )


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """A list of the k smallest elements and their indices; on a CPU exactly those.

    With `aggregate_to_topk=False` some more than k, as many as an accelerator would find before it chooses.
    """
    return _approx(
        operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk, False
    )


# ----------------------------------------------------------------------------------------- partitions, order statistics


def _partition_reference(x, kth, axis):
    return np.partition(sortable(x), kth, axis).astype(x.dtype, copy=False)


def _argpartition_reference(x, kth, axis):
    return np.argpartition(sortable(x), kth, axis).astype(np.int32)


def _partition_emit(ctx):
    axis, kth = ctx.params["axis"], ctx.params["kth"]
    x = ctx.operand(0)
    if not x.size:
        return
    source = as_rows(ctx, x, axis)
    with result_rows(ctx, [ctx.result(0)], axis) as (target,):
        scratch = ctx.temporary("u8", (24 if x.itemsize == 8 else 12, x.size))
        numbers = ctx.eqn.primitive is argpartition_p
        call_rows(ctx, "pb_partition", source, (int(numbers), kth), (source, target, scratch))


def _partition_jvp(primals, tangents, kth, axis):
    (x,), (x_dot,) = primals, tangents
    if is_zero(x_dot):
        out = partition_p.bind(x, kth=kth, axis=axis)
        return out, tangent_zero(out)
    order = argpartition_p.bind(x, kth=kth, axis=axis)
    return take_along(x, order, axis), take_along(x_dot, order, axis)


def _along_batch_of(primitive):
    def batch(args, dims, axis, **params):
        (x,), (d,) = args, dims
        return primitive().bind(x, axis=axis + (axis >= d), **params), d

    return batch


partition_p = Primitive(
    "partition",
    doc="Elements along an axis so that the kth is where sorting would put it, smaller before, larger behind.",
    abstract_eval=lambda aval, *, kth, axis: aval,
    reference=_partition_reference,
    jvp=_partition_jvp,
    transpose=NOT_LINEAR,
    batch=_along_batch_of(lambda: partition_p),
    lower=Nest(_partition_emit),
    traits={"own order"},
)

argpartition_p = Primitive(
    "argpartition",
    doc="Where the elements of a partition are.",
    abstract_eval=lambda aval, *, kth, axis: ShapedArray(aval.shape, np.int32),
    reference=_argpartition_reference,
    jvp=ZERO,
    transpose=NOT_LINEAR,
    batch=_along_batch_of(lambda: argpartition_p),
    lower=Nest(_partition_emit),
    traits={"own order"},
)


def _statistics_shape(aval, *, places, axis):
    return ShapedArray((*aval.shape[:axis], len(places), *aval.shape[axis + 1 :]), aval.dtype, aval.weak_type)


def _statistics_reference(x, places, axis):
    return np.take(np.partition(sortable(x), places, axis), places, axis).astype(x.dtype, copy=False)


def _statistics_jvp(primals, tangents, places, axis):
    (x,), (x_dot,) = primals, tangents
    if is_zero(x_dot):
        out = order_statistics_p.bind(x, places=places, axis=axis)
        return out, tangent_zero(out)
    numbers = lax.broadcasted_iota(np.int32, x.shape, axis)
    ordered, order = sort_p.bind(x, numbers, dimension=axis, is_stable=True, num_keys=1)
    shape = _statistics_shape(x.aval if hasattr(x, "aval") else typeof(x), places=places, axis=axis).shape
    where = lax.broadcast_in_dim(np.array(places, np.int32), shape, (axis,))
    return take_along(ordered, where, axis), take_along(x_dot, take_along(order, where, axis), axis)


def _statistics_emit(ctx):
    axis, places = ctx.params["axis"], ctx.params["places"]
    x = ctx.operand(0)
    if not x.size:
        return
    source = as_rows(ctx, x, axis)
    with result_rows(ctx, [ctx.result(0)], axis) as (target,):
        scratch = ctx.temporary("u8", (16 if x.itemsize == 8 else 8, x.size))
        wanted = ctx.constant(np.array(places, np.int64), "places")
        call_rows(ctx, "pb_select", source, (len(places),), (wanted, source, target, scratch))


order_statistics_p = Primitive(
    "order_statistics",
    doc="The elements along an axis that sorting would put at the given places, which rise.",
    abstract_eval=_statistics_shape,
    reference=_statistics_reference,
    jvp=_statistics_jvp,
    transpose=NOT_LINEAR,
    batch=_along_batch_of(lambda: order_statistics_p),
    lower=Nest(_statistics_emit),
    traits={"exact"},
    samples=Samples(
        cases=lambda rng: (
            [Case((rng.normal(size=(3, 6)).astype(np.float32),), {"places": (1, 4), "axis": a}) for a in (0, 1) if a]
            + [
                Case(
                    (rng.normal(size=70_000).astype(np.float32),),
                    {"places": (0, 34_999, 35_000), "axis": 0},
                    derivatives=False,
                ),
                Case((rng.integers(-3, 3, 9000),), {"places": (0, 4500, 8999), "axis": 0}),
                Case((np.array([2, np.nan, -1, np.inf]),), {"places": (0, 2, 3), "axis": 0}, derivatives=False),
            ]
        )
    ),
)


def _sorted(operand, axis):
    """(The elements along an axis in order, where they were)."""
    places = lax.iota(np.int32, operand.shape[axis])
    places = lax.broadcast_in_dim(places, operand.shape, (axis,))
    return sort_p.bind(operand, places, dimension=axis, is_stable=True, num_keys=1)


def _sorted_at(operand, places, axis):
    ordered = _sorted(operand, axis)[0]
    return lax.concatenate([lax.slice_in_dim(ordered, p, p + 1, axis=axis) for p in places], axis)


partition_p.spelled_out = lambda operand, kth, axis: _sorted(operand, axis)[0]
argpartition_p.spelled_out = lambda operand, kth, axis: _sorted(operand, axis)[1]
order_statistics_p.spelled_out = _sorted_at


def partition(operand: Any, kth: int, axis: int) -> Array:
    """Elements along an axis, partitioned at `kth`; in linear time."""
    return partition_p.bind(operand, kth=kth, axis=axis)


def argpartition(operand: Any, kth: int, axis: int) -> Array:
    """Where the elements of `partition` are, as int32."""
    return argpartition_p.bind(operand, kth=kth, axis=axis)


def order_statistics(operand: Any, places: Sequence[int], axis: int) -> Array:
    """x: [..., n, ...] -> [..., len(places), ...], the elements that sorting would put there; in linear time.

    `places` rise. NaN comes last.
    """
    return order_statistics_p.bind(operand, places=tuple(places), axis=axis)


# ------------------------------------------------------------------------------------------------ where conditions hold


def _positions_shape(mask, *, size, dtype):
    lead = mask.shape[:-1]
    return [ShapedArray((*lead, size), dtype), ShapedArray((*lead, 1), dtype)]


def _positions_reference(mask, size, dtype):
    rows = mask.reshape(-1, mask.shape[-1]) if mask.size else np.zeros((int(np.prod(mask.shape[:-1])), 0), bool)
    found = np.zeros((len(rows), size), dtype)
    for row, out in zip(rows, found):
        where = np.flatnonzero(row)[:size]
        out[: where.size] = where
    lead = mask.shape[:-1]
    return [found.reshape((*lead, size)), np.sum(rows, -1).astype(dtype).reshape((*lead, 1))]


def _positions_batch(args, dims, size, dtype):
    mask = batch_front(args[0], dims[0], batch_size(args, dims))
    return positions_p.bind(mask, size=size, dtype=dtype), [0, 0]


def _positions_emit(ctx):
    """One pass over the mask, without a branch: each index is written where the next one found belongs, and stays
    there if it was one; what is past the size goes to one place more.
    """
    b, mask, found, count = ctx.b, ctx.operand(0), ctx.result(0), ctx.result(1)
    *lead, n = mask.shape
    size = found.shape[-1]
    held = ctx.temporary(found.dtype, (*lead, size + 1))

    def row(outer):
        with b.carried_loop(n, [((b.index(0),), None)]) as scan:
            (rank,) = scan.vars
            ctx.store(held, (*outer, b.op("min", rank, b.index(size))), b.convert(scan.i, found.dtype))
            scan.update(b.op("add", rank, b.convert(ctx.load(mask, (*outer, scan.i)), "i64")))
        (total,) = scan.results
        ctx.store(count, (*outer, 0), b.convert(total, count.dtype))
        with b.loop(size) as j:
            kept = ctx.load(held, (*outer, j))
            ctx.store(found, (*outer, j), b.select(b.op("lt", j, total), kept, b.const(found.dtype, 0)))

    loops(b, lead, row)


positions_p = Primitive(
    "positions",
    doc="Where a mask holds along the last axis, the first `size` of these, then zeros; and how often it holds.",
    abstract_eval=_positions_shape,
    multiple_results=True,
    reference=_positions_reference,
    jvp=ZERO,
    transpose=NOT_LINEAR,
    batch=_positions_batch,
    lower=Nest(_positions_emit),
    traits={"exact"},
    samples=Samples(
        cases=lambda rng: [
            Case((rng.random(shape) < part,), {"size": size, "dtype": np.dtype(dtype)}, derivatives=False)
            for shape, part, size, dtype in [
                ((40,), 0.5, 10, np.int32),
                ((40,), 0.5, 40, np.int64),
                ((3, 5, 17), 0.3, 6, np.int32),
                ((9,), 0.0, 3, np.int32),
                ((70_000,), 0.5, 30_000, np.int32),
            ]
        ]
    ),
)


def _sorted_positions(mask, size, dtype):
    """`positions` by sorting the indices, those where the mask does not hold behind the others."""
    n, axis = mask.shape[-1], mask.ndim - 1
    places = lax.broadcast_in_dim(lax.iota(dtype, n), mask.shape, (axis,))
    count = lax.reduce_sum_p.bind(lax.convert_element_type(mask, dtype), axes=(axis,), out_sharding=None)
    count = lax.expand_dims(count, (axis,))
    ordered = lax.sort(lax.select(mask, places, lax.full_like(places, n)), dimension=axis)
    ordered = lax.pad(ordered, np.asarray(0, dtype), [(0, 0, 0)] * axis + [(0, size - n, 0)])
    counts = lax.broadcast_in_dim(count, ordered.shape, tuple(range(mask.ndim)))
    within = lax.lt(lax.broadcasted_iota(dtype, ordered.shape, axis), counts)
    return [lax.select(within, ordered, lax.full_like(ordered, 0)), count]


positions_p.spelled_out = _sorted_positions


def positions(mask: Any, size: int, dtype: Any) -> tuple[Array, Array]:
    """mask: bool[..., n] -> dtype[..., size], where it holds along the last axis in order, zeros behind; and
    dtype[..., 1], how often it holds.
    """
    found, count = positions_p.bind(mask, size=size, dtype=np.dtype(dtype))
    return found, count
