"""Sets of elements: unique, union, intersection, differences, membership.

How many elements a result has depends on values. Concrete arrays are handled by their values; traced ones need a static
`size`, to which the result is cut or filled. Either way elements are found by sorting and comparing neighbours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.core.dimensions import is_at_least, min_dim
from pullback.numpy._arguments import (
    arrays,
    as_array,
    broadcast_to,
    canonical_axis,
    concrete_or_error,
    convert,
    is_weak,
    make_array,
    promote_dtypes,
    static_int,
)
from pullback.numpy._comparison import isnan
from pullback.numpy._index_keys import where_true
from pullback.numpy._index_update import index_update
from pullback.numpy._indexing import index_get, rewriting_take
from pullback.numpy._select import index_dtype, nonzero, select_where
from pullback.numpy._shape import moveaxis
from pullback.numpy._sorting import searchsorted
from pullback.util import dtypes
from pullback.util.errors import NonConcreteBooleanIndexError
from pullback.util.record import NamedTuple
from pullback.util.static import check_flags


class _UniqueAllResult(NamedTuple):
    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class _UniqueCountsResult(NamedTuple):
    values: Any
    counts: Any


class _UniqueInverseResult(NamedTuple):
    values: Any
    inverse_indices: Any


def _size(name: str, size: Any, *xs: Any) -> int | None:
    """The static size, or None if the arrays are concrete; ConcretizationTypeError if neither."""
    if size is not None:
        return static_int(size, f"{name}: argument 'size'")
    for x in xs:
        concrete_or_error(
            x,
            f"jnp.{name}: the length of the result depends on values, which are traced here. Pass it as 'size', "
            "which fixes the shape.",
        )
    return None


def _known(mask: Any) -> Any:
    """The elements of a mask that an array is to be indexed by, as NumPy's; NonConcreteBooleanIndexError if traced."""
    concrete = mask.to_concrete() if isinstance(mask, Tracer) else mask
    if concrete is None:
        raise NonConcreteBooleanIndexError(mask)
    return np.asarray(concrete)


def _order(rows: Any, equal_nan: bool = True) -> tuple[Any, Any]:
    """(positions of the rows in order, whether each row in that order differs from the one before it).

    `rows` is a vector, or a matrix whose rows are compared lexicographically.
    """
    n = rows.shape[0]
    numbers = lax.iota(index_dtype(), n)
    keys = [rows] if rows.ndim == 1 else [lax.index_in_dim(rows, k, 1, keepdims=False) for k in range(rows.shape[1])]
    if not keys:
        return numbers, lax.lt(numbers, lax.full_like(numbers, 1))
    *ordered, order = lax.sort((*keys, numbers), num_keys=len(keys), is_stable=True)
    new = None
    for key in ordered:
        differs = _differs_from_last(key, equal_nan)
        new = differs if new is None else lax.bitwise_or(new, differs)
    return order, lax.concatenate([lax.full((min_dim(n, 1),), True, np.dtype(bool)), new], 0)


def _differs_from_last(x: Any, equal_nan: bool) -> Any:
    """Whether each element but the first differs from the one before it."""
    n = x.shape[0]
    return _differs(lax.slice_in_dim(x, 1, n, axis=0), lax.slice_in_dim(x, 0, max(n - 1, 0), axis=0), equal_nan)


def _differs(x: Any, y: Any, equal_nan: bool) -> Any:
    if equal_nan and dtypes.issubdtype(x.dtype, np.inexact):
        return lax.bitwise_and(lax.ne(x, y), lax.bitwise_not(lax.bitwise_and(isnan(x), isnan(y))))
    return lax.ne(x, y)


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """Different elements in order (different slices along an axis), and if asked for: where each comes first, which of
    them each element is, and how often each comes.

    With a static `size` the result is cut, or filled up with `fill_value` (the smallest element by default).
    """
    (ar,) = arrays("unique", ar)
    size = _size("unique", size, ar)
    del sorted
    if axis is None:
        shape_of_inverse = ar.shape
        rows = lax.reshape(ar, (ar.size,))
        slices = rows
    else:
        if ar.ndim == 0:
            raise ValueError("unique: argument 'axis' must be None for a scalar")
        axis = canonical_axis("unique", axis, ar.ndim)
        slices = moveaxis(ar, axis, 0)
        shape_of_inverse = (ar.shape[axis],)
        rows = lax.reshape(slices, (slices.shape[0], int(np.prod(slices.shape[1:], dtype=int))))
    n = rows.shape[0]
    index = index_dtype()
    if n == 0 and size and fill_value is None:
        raise ValueError(f"unique: no elements to fill size={size} places with; pass 'fill_value'")
    if n == 0:
        return _empty_unique(
            slices, size or 0, fill_value, (return_index, return_inverse, return_counts), shape_of_inverse, axis or 0
        )
    if size is None:
        asked = (return_index, return_inverse, return_counts)
        return _unique_concrete(rows, slices, axis, asked, equal_nan, shape_of_inverse)
    if rows.ndim == 1 and not (return_index or return_inverse):
        order = None  # the elements themselves are enough
        ordered = lax.sort(rows)
        new = lax.concatenate([lax.full((1,), True, np.dtype(bool)), _differs_from_last(ordered, equal_nan)], 0)
    else:
        order, new = _order(rows, equal_nan)
    count = lax.reduce_sum(convert(new, index), (0,))
    starts = nonzero(new, size=size, fill_value=n)[0]
    valid = lax.lt(lax.iota(index, size), broadcast_to(count, (size,)))
    # What fills the result up is the smallest element unless another value is given.
    source = ordered if order is None else order
    first = select_where(valid, index_get(source, starts, mode="clip"), lax.index_in_dim(source, 0, 0, keepdims=False))
    values = first if order is None else rewriting_take(slices, first)
    if fill_value is not None:
        spread = lax.broadcast_in_dim(valid, values.shape, (0,))
        values = select_where(spread, values, convert(as_array(fill_value), values.dtype))
    weak = is_weak(ar) and fill_value is None and not dtypes.issubdtype(ar.dtype, np.complexfloating)
    values = convert(values, values.dtype, weak)
    if axis is not None:
        values = moveaxis(values, 0, axis)
    out = [values]
    if return_index:
        out.append(first)
    if return_inverse:
        group = lax.sub(lax.cumsum(convert(new, index), axis=0), lax.full((n,), 1, index))
        inverse = index_update(lax.full((n,), 0, index), order, group, "set", unique_indices=True)
        out.append(lax.reshape(inverse, shape_of_inverse))
    if return_counts:
        # The count of the last element of a result that was cut ends where the next, which is left out, starts.
        ends = lax.slice_in_dim(nonzero(new, size=size + 1, fill_value=n)[0], 1, size + 1, axis=0)
        out.append(lax.sub(ends, starts))
    return out[0] if len(out) == 1 else tuple(out)


def _unique_concrete(
    rows: Any, slices: Any, axis: int | None, asked: tuple[bool, bool, bool], equal_nan: bool, inverse_shape: Any
) -> Any:
    """The values are taken by their positions, so that they have derivatives.

    Measured: 2e7 integers by NumPy's unique took 2.7 s, in which nobody hears Ctrl-C; so they take 0.5.
    """
    order, new = _order(as_array(concrete_or_error(rows, "unique")), equal_nan)
    index = index_dtype()
    positions, starts = np.asarray(order), where_true(np.asarray(new), index)[0]
    first = positions[starts]
    values = rewriting_take(slices, first.astype(np.int32))
    if dtypes.issubdtype(values.dtype, np.complexfloating):  # strongly typed, as JAX sorts them by their parts
        values = convert(values, values.dtype)
    if axis is not None:
        values = moveaxis(values, 0, axis)
    out = [values]
    return_index, return_inverse, return_counts = asked
    if return_index:
        out.append(make_array(first.astype(index), index))
    if return_inverse:
        inverse = np.empty(positions.size, index)
        inverse[positions] = np.cumsum(np.asarray(new), dtype=index) - 1
        out.append(make_array(inverse.reshape(inverse_shape), index))
    if return_counts:
        out.append(make_array(np.diff(starts, append=positions.size).astype(index), index))
    return out[0] if len(out) == 1 else tuple(out)


def _empty_unique(
    slices: Any, size: int, fill_value: Any, asked: tuple[bool, bool, bool], inverse_shape: Any, axis: int
) -> Any:
    index = index_dtype()
    shape = (size, *slices.shape[1:])
    value = lax.full(shape, 0, slices.dtype)
    if fill_value is not None:
        value = broadcast_to(convert(as_array(fill_value), slices.dtype), shape)
    value = moveaxis(convert(value, slices.dtype, is_weak(slices)), 0, axis)
    extras = [lax.full((size,), 0, index), lax.full(inverse_shape, 0, index), lax.full((size,), 0, index)]
    out = [value, *(x for x, wanted in zip(extras, asked) if wanted)]
    return out[0] if len(out) == 1 else tuple(out)


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueAllResult:
    """(values, indices, inverse_indices, counts) of the different elements; NaN differ from each other."""
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueCountsResult:
    """(values, counts) of the different elements; NaN differ from each other."""
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> _UniqueInverseResult:
    """(values, inverse_indices) of the different elements; NaN differ from each other."""
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The different elements; NaN differ from each other."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# ---- two sets


def _pair(name: str, ar1: Any, ar2: Any) -> tuple[Any, Any]:
    a, b = promote_dtypes(*arrays(name, ar1, ar2))
    return lax.reshape(a, (a.size,)), lax.reshape(b, (b.size,))


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """Different elements of both arrays, in order; size as for `unique`."""
    a, b = _pair("union1d", ar1, ar2)
    size = _size("union1d", size, a, b)
    return unique(lax.concatenate([a, b], 0), size=size, fill_value=fill_value)


def setdiff1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """Different elements of the first array that are not in the second, in order; size as for `unique`."""
    (a,), (b,) = arrays("setdiff1d", ar1), arrays("setdiff1d", ar2)
    size = _size("setdiff1d", size, a)
    a = lax.reshape(a, (a.size,))
    fill = as_array(0 if fill_value is None else fill_value)
    if a.size == 0:
        return broadcast_to(convert(fill, a.dtype, is_weak(a)), (size or 0,))
    if size is None:
        a = a if assume_unique else unique(a)
        keep = _known(isin(a, b, invert=True))
        return rewriting_take(a, where_true(keep, np.dtype(np.int32))[0])
    keep = isin(a, b, invert=True)
    if not assume_unique:
        order, new = _order(a)
        first = index_update(lax.full(a.shape, False, np.dtype(bool)), order, new, "set", unique_indices=True)
        keep = lax.bitwise_and(keep, first)
        a, keep = rewriting_take(a, order), rewriting_take(keep, order)
    where = nonzero(keep, size=size, fill_value=a.shape[0])[0]
    found = index_get(a, where, mode="clip")
    inside = lax.lt(where, lax.full(where.shape, a.shape[0], where.dtype))
    weak = is_weak(a) and dtypes.kind_of(a.dtype) in "if"
    return lax.select(inside, found, broadcast_to(convert(fill, a.dtype, weak), where.shape))


def _in_both(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """(both sets sorted together, positions, whether each is equal to the next); no repetitions, not both empty."""
    joined = lax.concatenate([a, b], 0)
    numbers = lax.iota(index_dtype(), joined.shape[0])
    ordered, order = lax.sort((joined, numbers), num_keys=1, is_stable=True)
    n = joined.shape[0]
    same = lax.eq(lax.slice_in_dim(ordered, 0, n - 1, axis=0), lax.slice_in_dim(ordered, 1, n, axis=0))
    return ordered, order, same


def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Different elements that are in both arrays, in order; if asked for, where they come first in each.

    With a static `size` the result is cut or filled up with `fill_value` (the smallest common element by default),
    positions with the length of the array.
    """
    a, b = _pair("intersect1d", ar1, ar2)
    size = _size("intersect1d", size, *(() if assume_unique else (a, b)))
    if size is None:
        return _intersect_concrete(a, b, assume_unique, return_indices)
    if a.size == 0 or b.size == 0:
        empty = _filled(size, fill_value, a.dtype)
        index = index_dtype()
        return (empty, lax.full((size,), a.size, index), lax.full((size,), b.size, index)) if return_indices else empty
    # An element counts where it is the first of its equals in the first array, and the second array has it.
    order, new = _order(a)
    ordered = rewriting_take(a, order)
    present = isin(ordered, b)
    where = nonzero(lax.bitwise_and(new, present), size=size, fill_value=a.shape[0])[0]
    valid = lax.lt(where, lax.full_like(where, a.shape[0]))
    found = index_get(ordered, where, mode="clip")
    if fill_value is None:
        filler: Any = lax.full((), 0, a.dtype)  # where nothing is common
        if size:
            known, first = (lax.index_in_dim(x, 0, 0, keepdims=False) for x in (valid, found))
            filler = lax.select(known, first, filler)
    else:
        filler = convert(as_array(fill_value), a.dtype)
    values = select_where(valid, found, filler)
    if not return_indices:
        return values
    first = select_where(valid, index_get(order, where, mode="clip"), lax.full_like(where, a.shape[0]))
    b_order, _ = _order(b)
    b_where = searchsorted(rewriting_take(b, b_order), values)
    second = select_where(valid, index_get(b_order, b_where, mode="clip"), lax.full_like(where, b.shape[0]))
    return values, first, second


def _intersect_concrete(a: Any, b: Any, assume_unique: bool, return_indices: bool) -> Any:
    index = index_dtype()
    firsts = None
    if not assume_unique:
        (a, of_a), (b, of_b) = unique(a, return_index=True), unique(b, return_index=True)
        firsts = _known(of_a), _known(of_b)
    if a.size and b.size:
        ordered, order, same = _in_both(a, b)
        where = np.flatnonzero(_known(same))
        order = _known(order)
        common, i, j = rewriting_take(ordered, where), order[where], order[where + 1] - a.size
    else:
        common = convert(lax.full((0,), 0, a.dtype), a.dtype, is_weak(a))
        i = j = np.empty(0, index)
    if not return_indices:
        return common
    if firsts is not None:
        i, j = firsts[0][i], firsts[1][j]
    return common, make_array(i.astype(index)), make_array(j.astype(index))


def _filled(size: int, fill_value: Any, dtype: Any) -> Any:
    """The result of an operation on empty sets."""
    value = lax.full((), 0, dtype) if fill_value is None else convert(as_array(fill_value), dtype)
    return broadcast_to(value, (size,))


def setxor1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None
) -> Any:
    """Different elements that are in one of the arrays alone, in order; size as for `unique`."""
    a, b = _pair("setxor1d", ar1, ar2)
    size = _size("setxor1d", size, *(() if assume_unique else (a, b)))
    if size is None:
        a, b = (a, b) if assume_unique else (unique(a), unique(b))
        if a.size + b.size == 0:
            return a
        ordered, _, same = _in_both(a, b)
        edge = np.zeros(1, bool)
        repeated = _known(same)
        alone = ~np.concatenate([repeated, edge]) & ~np.concatenate([edge, repeated])
        return rewriting_take(ordered, np.flatnonzero(alone).astype(np.int32))
    joined = lax.concatenate([a, b], 0)
    joined = convert(joined, joined.dtype)
    if joined.size == 0:
        return _filled(size, fill_value, a.dtype)
    alone = lax.concatenate([isin(a, b, invert=True), isin(b, a, invert=True)], 0)
    order, new = _order(joined)
    keep = lax.bitwise_and(new, rewriting_take(alone, order))
    where = nonzero(keep, size=size, fill_value=joined.shape[0])[0]
    valid = lax.lt(where, lax.full_like(where, joined.shape[0]))
    found = index_get(rewriting_take(joined, order), where, mode="clip")
    if fill_value is None:
        filler: Any = lax.index_in_dim(found, 0, 0, keepdims=False) if size else lax.full((), 0, a.dtype)
    else:
        filler = convert(as_array(fill_value), a.dtype)
    return select_where(valid, found, filler)


def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, method: str = "auto"
) -> Any:
    """Whether each element is among the test elements, or with `invert` is not.

    `method`: 'compare_all', 'binary_search', 'sort', or 'auto'.
    """
    check_flags("isin", assume_unique=assume_unique, invert=invert)
    del assume_unique
    if method not in ("compare_all", "binary_search", "sort", "auto"):
        raise ValueError(
            f"isin: argument 'method' is {method!r}; accepted are 'auto', 'binary_search', 'compare_all' and 'sort'"
        )
    x, tests = promote_dtypes(*arrays("isin", element, test_elements))
    tests = lax.reshape(tests, (tests.size,))
    if tests.size == 0 or x.size == 0:
        return lax.full(x.shape, bool(invert), np.dtype(bool))
    if method == "compare_all" or (method == "auto" and is_at_least(16, tests.size)):
        shape = (*x.shape, tests.size)
        same = lax.eq(
            lax.broadcast_in_dim(x, shape, tuple(range(x.ndim))), lax.broadcast_in_dim(tests, shape, (x.ndim,))
        )
        found = lax.reduce_or(same, (x.ndim,))
    else:
        ordered = lax.sort(tests)
        where = searchsorted(ordered, x, method="sort" if method == "sort" else "scan")
        where = lax.min(where, lax.full_like(where, tests.size - 1))
        found = lax.eq(rewriting_take(ordered, where), x)
    return convert(lax.bitwise_not(found) if invert else found, np.dtype(bool))
