"""Sorting: any number of operands by some of them as keys."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pullback.core.dimensions import min_dim
from pullback.core.lowering import Nest
from pullback.core.types import in_use, is_strict, place_of_type, type_of
from pullback.lax.movement.gather import GatherDimensionNumbers, GatherScatterMode, gather_p
from pullback.lax.ordering.ordering import sortable, stable_order
from pullback.lax.ordering.row_calls import KINDS, as_rows, call_rows, result_rows
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.errors import ShardingTypeError

__all__ = ["sort", "sort_key_val", "sort_p"]

Array = Any

FEW = 256  # elements that NumPy sorts as quickly in order as in any


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """x[..., indices[...], ...] along an axis; indices are in range and of the rank of x."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    starts = lax.reshape_p.bind(indices, new_sizes=(*indices.shape, 1), dimensions=None)
    return gather_p.bind(
        x,
        starts,
        dimension_numbers=numbers,
        slice_sizes=tuple([min_dim(n, 1) for n in x.shape]),
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def _sort_shape(*avals, dimension, is_stable=True, num_keys=1):
    if not avals:
        raise TypeError("Sort requires at least one operand")
    if any(a.shape != avals[0].shape for a in avals):
        raise TypeError(f"sort: operands must be of one shape, got {', '.join(str(a.shape) for a in avals)}")
    if not 0 <= dimension < avals[0].ndim:
        raise ValueError(f"sort: dimension {dimension} is out of bounds for shape {avals[0].shape}")
    if not 1 <= num_keys <= len(avals):
        raise ValueError(
            f"sort: num_keys={num_keys} must be at least 1 and at most {len(avals)}, the number of operands"
        )
    return list(avals)


def _sort_reference(*operands, dimension, is_stable=True, num_keys=1):
    if len(operands) == 1:
        (x,) = operands
        key = sortable(x)
        # NumPy's unstable sort is several times faster, and differs only in the order of zeros of both signs.
        # Of float16 it is not used: with AVX-512, NumPy 2.4 puts some -0.0 before small negative numbers.
        if key.size < FEW:
            return [np.sort(key, dimension, kind="stable").astype(x.dtype, copy=False)]
        whole = key.dtype.kind in "biu"
        unstable = whole or (key.dtype.char in "fd" and not np.any((key == 0) & np.signbit(key)))
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


def _sort_emit(ctx):
    """One operand, or one key with numbers of 4 or 8 bytes, by one call; else by the places that sorting the keys one
    after the other, from the last, gives. Complex keys by the reference in Python.
    """
    dimension, num_keys, count = ctx.params["dimension"], ctx.params["num_keys"], len(ctx.in_avals)
    operands, results = [ctx.operand(k) for k in range(count)], [ctx.result(k) for k in range(count)]
    if not operands[0].size:
        return
    if any(x.dtype not in KINDS for x in operands[:num_keys]):
        ctx.by_reference()
        return
    sources = [as_rows(ctx, x, dimension) for x in operands]
    with result_rows(ctx, results, dimension) as targets:
        if count == 1:
            scratch = ctx.temporary("u8", (sources[0].size * _SCRATCH.get(sources[0].itemsize, 0) + 1,))
            call_rows(ctx, "pb_sort", sources[0], (), (sources[0], targets[0], scratch))
        elif count == 2 and num_keys == 1 and sources[1].itemsize in (4, 8):
            (keys, payloads), (sorted_keys, sorted_payloads) = sources, targets
            _sort_pairs(ctx, keys, payloads, sorted_keys, sorted_payloads, ctx.is_read(0))
        else:
            order = _order(ctx, sources[:num_keys], targets[0])
            for source, target in zip(sources[1:], targets[1:]):
                _take_rows(ctx, source, order, target)


_SCRATCH = {2: 8, 4: 4, 8: 8}  # bytes for each element of so many bytes


def _sort_pairs(ctx, keys, payloads, sorted_keys, sorted_payloads, want_keys):
    """Keys in order, if wanted, and other numbers in the order of their keys."""
    size = payloads.itemsize
    scratch = ctx.temporary("u8", (keys.size * (32 if max(size, keys.itemsize) == 8 else 16),))
    call_rows(
        ctx, "pb_sort_pairs", keys, (size, int(want_keys)), (keys, payloads, sorted_keys, sorted_payloads, scratch)
    )


def _order(ctx, keys, sorted_first):
    """u32[rows, n]: where the elements of each row in the order of several keys are, of which the first counts most."""
    b, shape = ctx.b, keys[0].shape
    order = ctx.temporary("u32", shape)
    loops(b, shape, lambda index: ctx.store(order, index, b.convert(index[1], "u32")))
    for number, key in reversed(list(enumerate(keys))):
        if number < len(keys) - 1:
            gathered = ctx.temporary(key.dtype, shape)
            _take_rows(ctx, key, order, gathered)
            key = gathered
        following = ctx.temporary("u32", shape)
        _sort_pairs(ctx, key, order, sorted_first, following, number == 0 and ctx.is_read(0))
        order = following
    return order


def _take_rows(ctx, source, order, target):
    """target[r, i] = source[r, order[r, i]]"""

    def take(index):
        place = ctx.b.convert(ctx.load(order, index), "i64")
        ctx.store(target, index, ctx.load(source, (index[0], place)))

    loops(ctx.b, source.shape, take)


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
        case(1, [rng.normal(size=(300, 40)).astype(np.float32), rng.normal(size=(300, 40))], 0),
        case(1, [with_nan, rng.integers(0, 9, 7).astype(np.int16)], 0),
        case(1, [rng.integers(-300, 300, 5000).astype(np.int16)], 0),
        case(1, [np.where(rng.random(70_000) < 0.1, np.nan, rng.normal(size=70_000)).astype(np.float32)], 0),
        case(2, [rng.integers(0, 5, 70_000).astype(np.uint8), rng.normal(size=70_000), rng.random(70_000) > 0.5], 0),
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
    traits={"stacked", "exact"},
    samples=Samples(cases=_sort_cases),
)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sorted along a dimension; of a sequence of arrays, all in the order of the first `num_keys`, lexicographically.

    NaN comes last; -0 and 0 are equal. Raises TypeError for differing shapes, ValueError for a dimension that is not
    there.
    """
    if not isinstance(is_stable, (bool, np.bool_)):
        raise TypeError(f"sort: argument 'is_stable' must be a bool, got {is_stable!r}")
    if isinstance(operand, (tuple, list)):
        if not operand:
            raise TypeError("Sort requires at least one operand")
        operands = as_arrays("sort", *operand)
        dimension = canonical_axis(dimension, operands[0].ndim, "sort")
        _check_cut_alike(operands)
        return tuple(
            sort_p.bind(*operands, dimension=dimension, is_stable=bool(is_stable), num_keys=operator.index(num_keys))
        )
    if not isinstance(num_keys, (int, np.integer)) or num_keys != 1:
        raise ValueError(f"sort: argument 'num_keys' must be 1 for a single operand, got {num_keys!r}")
    operand = as_array(operand, "sort")
    dimension = canonical_axis(dimension, operand.ndim, "sort")
    return sort_p.bind(operand, dimension=dimension, is_stable=bool(is_stable), num_keys=1)[0]


def _check_cut_alike(operands: Sequence[Any]) -> None:
    if not in_use():
        return
    specs = [place_of_type(type_of(x)) or (None,) * x.ndim for x in operands]
    if is_strict() and any(spec != specs[0] for spec in specs):
        raise ShardingTypeError(f"sort: operands must be cut alike, got {', '.join(map(str, specs))}")


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """Keys sorted along a dimension, and values in the same order."""
    return sort((keys, values), dimension, is_stable, 1)
