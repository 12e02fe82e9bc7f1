"""Sorting: any number of operands by some of them as keys; the largest elements."""

from __future__ import annotations

import math
import operator
from typing import Any

from pullback.core.lowering import HostCall, Nest
from pullback.lax._families import *
from pullback.lax._gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from pullback.lax._nests import loops
from pullback.lax._ordering import largest, sortable, stable_order

__all__ = ["approx_max_k", "approx_min_k", "approx_top_k_p", "sort", "sort_key_val", "sort_p", "top_k", "top_k_p"]

Array = Any


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """x[..., indices[...], ...] along an axis; indices are in range and of the rank of x."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    starts = lax.reshape_p.bind(indices, new_sizes=(*indices.shape, 1), dimensions=None)
    return gather_p.bind(
        x,
        starts,
        dimension_numbers=numbers,
        slice_sizes=(1,) * x.ndim,
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _sort_shape(*avals, dimension, is_stable=True, num_keys=1):
    if not avals:
        raise TypeError("Sort requires at least one operand")
    if any(a.shape != avals[0].shape for a in avals):
        raise TypeError(f"Arguments to sort must have equal shapes, got: {', '.join(str(a.shape) for a in avals)}")
    if not 0 <= dimension < avals[0].ndim:
        raise ValueError(f"axis {dimension} is out of bounds for array of dimension {avals[0].ndim}")
    if not 1 <= num_keys <= len(avals):
        raise ValueError(f"num_keys={num_keys} must be between 1 and len(operands)={len(avals)}")
    return list(avals)


def _sort_reference(*operands, dimension, is_stable=True, num_keys=1):
    if len(operands) == 1:
        (x,) = operands
        key = sortable(x)
        # NumPy's unstable sort is several times faster, and differs only in the order of zeros of both signs.
        unstable = key.dtype.kind in "biu" or (key.dtype.kind == "f" and not np.any((key == 0) & np.signbit(key)))
        return [np.sort(key, dimension, kind=None if unstable else "stable").astype(x.dtype, copy=False)]
    if num_keys == 1:
        order = stable_order(operands[0], dimension)
    else:
        order = np.lexsort([sortable(x) for x in reversed(operands[:num_keys])], dimension)
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _sort_jvp(primals, tangents, dimension, is_stable=True, num_keys=1):
    if all(map(is_zero, tangents)):
        outs = sort_p.bind(*primals, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
        return outs, [tangent_zero(x) for x in outs]
    place = lax.broadcasted_iota(np.int32, primals[0].shape, dimension)
    *outs, order = sort_p.bind(*primals, place, dimension=dimension, is_stable=is_stable, num_keys=num_keys)
    return outs, [tangent_zero(x) if is_zero(t) else take_along(t, order, dimension) for x, t in zip(outs, tangents)]


def _sort_batch(args, dims, dimension, is_stable=True, num_keys=1):
    size = batch_size(args, dims)
    if len(args) == 1:
        outs = sort_p.bind(*args, dimension=dimension + (dimension >= dims[0]), is_stable=is_stable, num_keys=num_keys)
        return outs, [dims[0]]
    outs = sort_p.bind(
        *[batch_front(x, d, size) for x, d in zip(args, dims)],
        dimension=dimension + 1,
        is_stable=is_stable,
        num_keys=num_keys,
    )
    return outs, [0] * len(outs)


NATIVE_ROW = 32  # elements up to which rows are sorted by insertion in the program
NATIVE_MOVES = 1 << 15  # and moves in all, beyond which the host's sort is faster in spite of the call


def _before(b, x, y, num_keys):
    """Whether the elements x come before y by their keys; NaN comes last."""
    result = None
    for p, q in zip(reversed(x[:num_keys]), reversed(y[:num_keys])):
        less, equal = b.op("lt", p, q), b.op("eq", p, q)
        if p.dtype in ("f16", "bf16", "f32", "f64"):
            p_nan, q_nan = b.op("ne", p, p), b.op("ne", q, q)
            less = b.op("or", less, b.op("and", q_nan, b.op("not", p_nan)))
            equal = b.op("or", equal, b.op("and", p_nan, q_nan))
        result = less if result is None else b.op("or", less, b.op("and", equal, result))
    return result


def _sort_emit(ctx):
    """Short rows by insertion, which is stable; else the reference in Python, whose sort is hard to beat."""
    b, dimension, num_keys = ctx.b, ctx.params["dimension"], ctx.params["num_keys"]
    shape, count = ctx.in_avals[0].shape, len(ctx.in_avals)
    n = shape[dimension]
    operands, results = [ctx.operand(k) for k in range(count)], [ctx.result(k) for k in range(count)]
    rows = shape[:dimension] + shape[dimension + 1 :]
    is_complex = any(a.dtype.kind == "c" for a in ctx.in_avals[:num_keys])
    if n > NATIVE_ROW or math.prod(rows) * n * n // 4 > NATIVE_MOVES or is_complex:
        params = {name: ctx.params[name] for name in ("dimension", "is_stable", "num_keys")}
        ctx.host_call(lambda *arrays: _sort_reference(*arrays, **params), operands, results)
        return
    for source, target in zip(operands, results):
        ctx.copy(target, source)
    place = ctx.temporary("i64", (1,))

    def row(outer):
        def at(i):
            return (*outer[:dimension], i, *outer[dimension:])

        def insert(index):
            i = b.op("add", index[0], 1)
            element = [b.let(ctx.load(target, at(i))) for target in results]
            ctx.store(place, (0,), i)
            with ctx.while_() as loop:
                j = b.let(ctx.load(place, (0,)))
                previous = b.op("max", b.op("sub", j, 1), 0)
                above = [ctx.load(target, at(previous)) for target in results]
                loop.test(b.op("and", b.op("gt", j, 0), _before(b, element, above, num_keys)))
                for target in results:
                    ctx.store(target, at(j), ctx.load(target, at(previous)))
                ctx.store(place, (0,), b.op("sub", j, 1))
            for target, value in zip(results, element):
                ctx.store(target, at(ctx.load(place, (0,))), value)

        loops(b, (max(n - 1, 0),), insert, "sequential")

    if math.prod(shape):
        loops(b, rows, row, "sequential")


def _sort_cases(rng):
    def case(keys, operands, dimension):
        return Case(
            tuple(operands),
            {"dimension": dimension, "is_stable": True, "num_keys": keys},
            derivatives=operands[0].size < 100,  # differences step over neighbours of large arrays
        )

    x = rng.normal(size=(3, 7)).astype(np.float32)
    ties = rng.integers(0, 3, (3, 7)).astype(np.int32)
    with_nan = np.array([3, np.nan, -1, np.inf, np.nan, -np.inf, 0], np.float32)
    return [
        case(1, [x], 1),
        case(1, [x], 0),
        case(1, [ties, x], 1),
        case(2, [ties, x, x * 2], 0),
        case(1, [with_nan], 0),
        case(1, [rng.integers(0, 9, 20).astype(np.uint8)], 0),
        case(1, [x > 0], 1),
        case(1, [rng.normal(size=(2, 3000)).astype(np.float32), rng.integers(0, 9, (2, 3000)).astype(np.int32)], 1),
        case(1, [rng.integers(0, 50, 2000), rng.integers(0, 9, 2000).astype(np.int32)], 0),
        case(2, [np.array([2, np.nan, 2, -np.inf, np.nan]), np.array([3, 2, 1, 4, 1], np.int8), np.arange(5.0)], 0),
    ]


sort_p = Primitive(
    "sort",
    doc="Operands in the order of the first num_keys of them.",
    abstract_eval=_sort_shape,
    multiple_results=True,
    reference=_sort_reference,
    jvp=_sort_jvp,
    transpose=NOT_LINEAR,
    batch=_sort_batch,
    lower=Nest(_sort_emit),
    samples=Samples(cases=_sort_cases),
)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sorted along a dimension; of a sequence of arrays, all in the order of the first `num_keys`, lexicographically.

    NaN comes last; -0 and 0 are equal. Raises TypeError for differing shapes, ValueError for a dimension that is not
    there.
    """
    if isinstance(operand, (tuple, list)):
        if not operand:
            raise TypeError("Sort requires at least one operand")
        operands = as_arrays("sort", *operand)
        dimension = canonical_axis(dimension, operands[0].ndim, "sort")
        return tuple(
            sort_p.bind(*operands, dimension=dimension, is_stable=bool(is_stable), num_keys=operator.index(num_keys))
        )
    operand = as_array(operand, "sort")
    dimension = canonical_axis(dimension, operand.ndim, "sort")
    return sort_p.bind(operand, dimension=dimension, is_stable=bool(is_stable), num_keys=1)[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """Keys sorted along a dimension, and values in the same order."""
    return sort((keys, values), dimension, is_stable, 1)


# --------------------------------------------------------------------------------------------------------------- top_k


def _top_k_shape(aval, *, k, axis=-1):
    axis = axis + aval.ndim if axis < 0 else axis
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if not aval.ndim:
        raise TypeError("top_k operand must have >= 1 dimension, got ()")
    if aval.shape[axis] < k:
        raise ValueError(
            f"k argument to top_k must be no larger than size along axis; got k={k} with shape={list(aval.shape)} and "
            f"axis={axis}"
        )
    if dtypes.kind_of(aval.dtype) == "c":
        raise ValueError("top_k is not compatible with complex inputs.")
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


top_k_p = Primitive(
    "top_k",
    doc="The k largest elements along an axis, and where they are.",
    abstract_eval=_top_k_shape,
    multiple_results=True,
    reference=_top_k_reference,
    jvp=_top_k_jvp,
    transpose=NOT_LINEAR,
    batch=_top_k_batch,
    lower=HostCall(),
    samples=Samples(
        cases=lambda rng: (
            [
                Case((rng.normal(size=(3, 6)).astype(np.float32),), {"k": k, "axis": a})
                for k, a in [(2, 1), (3, 0), (6, 1), (0, 1)]
            ]
            + [Case((np.array([1, np.nan, 3, 3, -np.inf], np.float32),), {"k": 4, "axis": 0}, derivatives=False)]
            + [Case((rng.integers(-9, 9, (2, 1500)).astype(np.int32),), {"k": 5, "axis": 1}, derivatives=False)]
        )
    ),
)


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The k largest elements along an axis in descending order, and their indices (int32); the first of equal ones
    comes first.

    NaN counts as largest. Raises ValueError for k above the size, TypeError for a scalar.
    """
    operand = as_array(operand, "top_k")
    if not operand.ndim:
        raise TypeError("top_k operand must have >= 1 dimension, got ()")
    values, places = top_k_p.bind(operand, k=operator.index(k), axis=canonical_axis(axis, operand.ndim, "top_k"))
    return values, places


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
    return _top_k_shape(aval, k=k, axis=reduction_dimension)


def _approx_reference(x, k, reduction_dimension=-1, is_max_k=True, **params):
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


approx_top_k_p = Primitive(
    "approx_top_k",
    doc="The k largest or smallest elements; a CPU finds them all.",
    abstract_eval=_approx_shape,
    multiple_results=True,
    reference=_approx_reference,
    jvp=_approx_jvp,
    transpose=NOT_LINEAR,
    batch=_approx_batch,
    lower=HostCall(),
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(3, 6)).astype(np.float32),), {"k": 2, "reduction_dimension": 1, "is_max_k": m})
            for m in (True, False)
        ]
    ),
)


def _approx(operand, k, reduction_dimension, recall_target, override, aggregate, is_max_k):
    operand = as_array(operand, "approx_max_k" if is_max_k else "approx_min_k")
    if not 0 < recall_target <= 1:
        raise ValueError(f"recall_target must be in (0, 1], got {recall_target}")
    axis = canonical_axis(reduction_dimension, operand.ndim, "approx_top_k")
    values, places = approx_top_k_p.bind(
        operand,
        k=operator.index(k),
        reduction_dimension=axis,
        recall_target=float(recall_target),
        is_max_k=is_max_k,
        reduction_input_size_override=override,
        aggregate_to_topk=bool(aggregate),
    )
    return values, places


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """The k largest elements and their indices; on a CPU exactly those."""
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
) -> tuple[Array, Array]:
    """The k smallest elements and their indices; on a CPU exactly those."""
    return _approx(
        operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk, False
    )
