"""Sorting and searching: sort, argsort, partition, lexsort, searchsorted."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Array as AnyArray
from pullback.core.dimensions import is_symbolic
from pullback.core.explain import shown
from pullback.core.types import cut_as, type_of
from pullback.lax.records.operands import check_places
from pullback.numpy._arguments import (
    arrays,
    canonical_axis,
    convert,
    make_array,
    promote_dtypes,
)
from pullback.numpy._indexing import rewriting_take, take_inside
from pullback.util import dtypes
from pullback.util.static import check_flags


def _refuse(name: str, kind: Any, order: Any) -> None:
    if kind is not None:
        raise TypeError(
            f"{name}: argument 'kind' is not supported; stable=True keeps equal elements in their order, which "
            "stable=False need not"
        )
    if order is not None:
        raise TypeError(f"{name}: argument 'order' is not supported, as arrays have no fields")


def _laid_out(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    (a,) = arrays(name, a)
    if axis is None:
        return lax.reshape(a, (a.size,)), 0
    return a, canonical_axis(name, axis, a.ndim)


def sort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Any:
    """Elements along an axis (all in C order if it is None) in order; NaN last, complex numbers by real, then imaginary
    part.

    Raises TypeError for `kind` and `order`.
    """
    check_flags("sort", descending=descending)
    _refuse("sort", kind, order)
    a, axis = _laid_out("sort", a, axis)
    result = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(result, (axis,)) if descending else result


def argsort(
    a: Any,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """Positions of the elements in order along an axis (of all in C order if it is None), equal ones as they come if
    `stable`.
    """
    check_flags("argsort", descending=descending)
    _refuse("argsort", kind, order)
    a, axis = _laid_out("argsort", a, axis)
    if dtype is not None:
        index = np.dtype(dtypes.check_user_dtype_supported(dtype, "argsort"))
        if not dtypes.issubdtype(index, np.integer):
            raise ValueError(f"argsort: dtype must be integer; got dtype={index}")
    else:
        index = np.dtype(np.int64 if dtypes.canonicalize_dtype(np.int64) == np.int64 else np.int32)
    check_places("argsort", a.shape[axis], index)
    numbers = cut_as(lax.broadcasted_iota(index, a.shape, axis), type_of(a))
    # Descending is ascending from the other end: reversed before, equal elements keep their order when reversed back.
    if descending and stable:
        a, numbers = lax.rev(a, (axis,)), lax.rev(numbers, (axis,))
    _, result = lax.sort((a, numbers), dimension=axis, is_stable=stable, num_keys=1)
    return lax.rev(result, (axis,)) if descending else result


def partition(a: Any, kth: int, axis: int = -1) -> Any:
    """Elements along an axis so that the kth is where sorting would put it, smaller ones before, larger ones behind."""
    a, axis = _laid_out("partition", a, axis)
    kth = _checked_kth("partition", a, kth, axis)
    if a.shape[axis] > SHORT:
        from pullback.lax.ordering import selection  # which most programs do not need

        return selection.partition(a, kth, axis)
    return _rest_last_first(lax.sort(a, dimension=axis), kth, axis)


# As many elements are sorted nearly as quickly as they are partitioned. JAX gives them in an order that programs and
# examples show: what comes before in order, what comes behind as `top_k` gives it, `argpartition` by position.
SHORT = 32


def _rest_last_first(ordered: Any, kth: int, axis: int) -> Any:
    """With what comes behind kth the other way round."""
    first = lax.slice_in_dim(ordered, 0, kth + 1, axis=axis)
    return lax.concatenate([first, lax.rev(lax.slice_in_dim(ordered, kth + 1, None, axis=axis), (axis,))], axis)


def _checked_kth(name: str, a: Any, kth: Any, axis: int) -> int:
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    return canonical_axis(name, kth, a.shape[axis], "kth")


def argpartition(a: Any, kth: int, axis: int = -1) -> Any:
    """Positions of the elements along an axis in an order as `partition` gives, as int32."""
    a, axis = _laid_out("argpartition", a, axis)
    kth = _checked_kth("argpartition", a, kth, axis)
    if a.shape[axis] > SHORT:
        from pullback.lax.ordering import selection  # which most programs do not need

        return selection.argpartition(a, kth, axis)
    positions = cut_as(lax.broadcasted_iota(np.int32, a.shape, axis), type_of(a))
    _, order = lax.sort((a, positions), dimension=axis, num_keys=1)
    first = lax.slice_in_dim(order, 0, kth + 1, axis=axis)
    rest = lax.sort(lax.slice_in_dim(order, kth + 1, None, axis=axis), dimension=axis)
    return lax.concatenate([first, rest], axis)


def sort_complex(a: Any) -> Any:
    """Elements in order, as complex numbers."""
    (a,) = arrays("sort_complex", a)
    return convert(sort(a, axis=0 if a.ndim == 0 else -1), dtypes.to_complex_dtype(a.dtype))


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Positions in the order of several keys, of which the last counts most; ValueError if their shapes differ."""
    if isinstance(keys, (AnyArray, np.ndarray)):
        (keys,) = arrays("lexsort", keys)
        keys = [lax.index_in_dim(keys, k, 0, keepdims=False) for k in range(keys.shape[0])] if keys.ndim else []
    if not isinstance(keys, (list, tuple)):
        raise TypeError(f"lexsort: argument 'keys' must be a sequence of arrays, got {shown(keys)}")
    keys = arrays("lexsort", *keys)
    if not keys:
        raise TypeError("lexsort: argument 'keys' is empty; expected at least one array")
    if len({k.shape for k in keys}) > 1:
        raise ValueError(
            f"lexsort: argument 'keys' has shapes {[k.shape for k in keys]}; expected the same shape for all"
        )
    index = np.dtype(dtypes.canonicalize_dtype(np.int64))
    if keys[0].ndim == 0:
        return make_array(0, index)
    axis = canonical_axis("lexsort", axis, keys[0].ndim)
    numbers = lax.broadcasted_iota(index, keys[0].shape, axis)
    return lax.sort((*keys[::-1], numbers), dimension=axis, num_keys=len(keys), is_stable=True)[-1]


# Elements that values are compared with all of, whatever the method: 1,000,000 values among 20 elements took four
# times as long by bisection.
FEW = 64
# Bytes of elements up to which bisection finds each step in a cache: there it takes a third to an eighth of the time of
# sorting (50,000 values among 5,000: 0.30 ms and 0.99), as it does of few values; of 1,000,000 among as many 1.4 times.
NEAR = 1 << 20
_METHODS = ("scan", "scan_unrolled", "sort", "compare_all", "default")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan") -> Any:
    """Where the values would be inserted into a sorted vector: before its equals (side 'left') or behind them
    ('right').

    NaN counts as larger than everything. `method` chooses how: by bisection ('scan'), sorting (where that is not known
    to be slower), or comparing with all; the places are the same.
    Raises ValueError unless a is a vector and side and method are known.
    """
    a, v = arrays("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'. Expected one of ['left', 'right'].")
    if method not in _METHODS:
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'. Expected one of {_METHODS}.")
    if a.ndim != 1:
        raise ValueError(f"a should be 1-dimensional, got shape {a.shape}")
    a, v = promote_dtypes(a, v)
    if sorter is not None:
        (sorter,) = arrays("searchsorted", sorter)
        a = rewriting_take(a, sorter)
    index = np.dtype(np.int32 if is_symbolic(a.shape[0]) or a.shape[0] < 2**31 else np.int64)
    if a.shape[0] == 0:
        return lax.full(v.shape, 0, index)
    if is_symbolic(a.shape[0]) and method != "compare_all":
        return _by_sorting(a, v, side, index)
    if method == "compare_all" or a.size <= FEW:
        return _by_comparing(a, v, side, index)
    if method == "sort" and a.size * a.dtype.itemsize > NEAR and v.size * 8 > a.size:
        return _by_sorting(a, v, side, index)
    return _by_bisection(a, v, side, index)


def _before(x: Any, y: Any) -> Any:
    """x < y in the order of sorting: NaN last, complex numbers by real, then imaginary part."""
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        rx, ry, ix, iy = lax.real(x), lax.real(y), lax.imag(x), lax.imag(y)
        tie = lax.bitwise_and(lax.bitwise_not(_before(rx, ry)), lax.bitwise_not(_before(ry, rx)))
        return lax.bitwise_or(_before(rx, ry), lax.bitwise_and(tie, _before(ix, iy)))
    less = lax.lt(x, y)
    if dtypes.issubdtype(x.dtype, np.floating):
        return lax.bitwise_or(less, lax.bitwise_and(lax.eq(x, x), lax.ne(y, y)))
    return less


def _goes_on(element: Any, value: Any, side: str) -> Any:
    """Whether the value's place is behind the element."""
    return _before(element, value) if side == "left" else lax.bitwise_not(_before(value, element))


def _by_comparing(a: Any, v: Any, side: str, index: np.dtype) -> Any:
    """How many elements go before each value, each of which is compared with all."""
    a, v = lax.stop_gradient(a), lax.stop_gradient(v)
    shape = (*v.shape, a.shape[0])
    element = lax.broadcast_in_dim(a, shape, (v.ndim,))
    value = lax.broadcast_in_dim(v, shape, tuple(range(v.ndim)))
    if not dtypes.issubdtype(a.dtype, np.floating):
        return lax.reduce_sum(convert(_goes_on(element, value, side), index), (v.ndim,))
    # One comparison each: elements that are NaN count for all values, and are taken away where they should not.
    after = lax.le(value, element) if side == "left" else lax.lt(value, element)
    count = lax.reduce_sum(convert(lax.bitwise_not(after), index), (v.ndim,))
    nans = lax.broadcast(lax.reduce_sum(convert(lax.ne(a, a), index), (0,)), v.shape)
    if side == "right":
        nans = lax.select(lax.ne(v, v), lax.full_like(nans, 0), nans)
    return lax.sub(count, nans)


def _by_sorting(a: Any, v: Any, side: str, index: np.dtype) -> Any:
    """Both sorted together stably, with the values in front of their equals or behind them; then they are counted."""
    n, m = a.shape[0], v.size
    flat = lax.reshape(v, (m,))
    both = [flat, a] if side == "left" else [a, flat]
    numbers = lax.iota(index, n + m)
    order = lax.sort((lax.concatenate(both, 0), numbers), num_keys=1, is_stable=True)[1]
    place = rewriting_take(lax.full((n + m,), 0, index), slice(None))
    from pullback.numpy._index_update import index_update

    place = index_update(place, order, numbers, "set", unique_indices=True)
    own = lax.slice_in_dim(place, 0, m, axis=0) if side == "left" else lax.slice_in_dim(place, n, n + m, axis=0)
    # Of the elements before a value, those that are values themselves do not count.
    value_rank = argsort(argsort(flat))
    return lax.reshape(lax.sub(own, convert(value_rank, index)), v.shape)


def _by_bisection(a: Any, v: Any, side: str, index: np.dtype) -> Any:
    """From the highest bit of the place to the lowest: each is set if that many elements go before the value.

    Only the place is carried, and nothing is branched on.
    """
    n = a.shape[0]
    a, v = lax.stop_gradient(a), lax.stop_gradient(v)
    bits = int(n).bit_length()

    def step(k: Any, place: Any) -> Any:
        bit = lax.shift_left(np.ones((), index), convert(lax.sub(bits - 1, k), index))
        more = lax.add(place, lax.broadcast(bit, v.shape))
        last = lax.min(lax.sub(more, lax.full_like(more, 1)), lax.full_like(more, n - 1))
        behind = lax.bitwise_and(lax.le(more, lax.full_like(more, n)), _goes_on(take_inside(a, last), v, side))
        return lax.select(behind, more, place)

    return lax.fori_loop(0, bits, step, lax.full(v.shape, 0, index))
