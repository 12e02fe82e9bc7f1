"""Quantiles: percentiles, medians; with weights; without what is missing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.dimensions import is_symbolic
from pullback.core.staging import known_value
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.ordering.selection import order_statistics
from pullback.numpy._arguments import (
    arrays,
    canonical_axes,
    check_arraylike,
    const,
    convert,
    promote_dtypes,
    promote_dtypes_inexact,
)
from pullback.numpy._comparison import isnan
from pullback.numpy._join import concatenate
from pullback.numpy._reducers import any as _any
from pullback.numpy._reducers import argmax
from pullback.numpy._reducers import sum as _sum
from pullback.numpy._select import select_where
from pullback.numpy._shape import moveaxis
from pullback.numpy._take import take_along_axis
from pullback.numpy._ufuncs import has_kind, true_divide
from pullback.util import dtypes
from pullback.util.static import check_flags

_QUANTILE_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    overwrite_input: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    skip_nan: bool,
    percent: bool = False,
) -> Any:
    check_flags(name, overwrite_input=overwrite_input, keepdims=keepdims)
    check_arraylike(name, a, q)
    if dtypes.issubdtype(dtypes.dtype_of(q), np.complexfloating):
        raise TypeError(f"{name}: argument 'q' must be real, got dtype {dtypes.dtype_of(q)}")
    if overwrite_input or out is not None:
        raise ValueError(f"{name} does not support overwrite_input and out, as arrays are immutable")
    if method not in _QUANTILE_METHODS:
        raise ValueError(
            f"{name}: argument 'method' is {method!r}, expected one of {', '.join(map(repr, _QUANTILE_METHODS))}"
        )
    known = known_value(q)
    if percent:
        (q,) = promote_dtypes_inexact(q)
        known = None if known is None else known.astype(q.dtype) / q.dtype.type(100)
        q = lax.div(q, const(q, 100))
    # Integers become floats by themselves, so that a weakly typed q does not widen them.
    (a,), (fraction,) = promote_dtypes_inexact(a), promote_dtypes_inexact(q)
    a = convert(a, a.dtype)
    q = convert(fraction, a.dtype) if dtypes.issubdtype(a.dtype, np.floating) else fraction
    if q.dtype.itemsize == 2:  # too short to count elements with
        q = convert(fraction, np.dtype(np.float32))
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError(f"{name}: complex numbers have no order, got dtype {a.dtype}")
    if q.ndim > 1:
        raise ValueError(f"{name}: argument 'q' must be a scalar or a vector, got shape {q.shape}")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{name}: weights need method='inverted_cdf', got {method!r}")
    axes = canonical_axes(name, axis, a.ndim)
    shape = a.shape
    # All reduced axes become one, the last.
    others = tuple(k for k in range(a.ndim) if k not in axes)
    n = math.prod(shape[k] for k in axes)

    def flatten(x: Any) -> Any:
        return lax.reshape(lax.transpose(x, others + axes), (*(shape[k] for k in others), n))

    if a.size == 0 and n:
        reduced = (
            tuple(1 if k in axes else d for k, d in enumerate(shape)) if keepdims else tuple(shape[k] for k in others)
        )
        return lax.full((*q.shape, *reduced), 0, a.dtype)
    if n == 0:
        # As in JAX, the one element that is left without NaN is indexed; others are sliced.
        kind = IndexError if skip_nan and not (others or keepdims or q.ndim) else TypeError
        raise kind(f"{name}: an axis of length 0 has no quantiles, got shape {shape}")
    x = flatten(a)
    if weights is not None:
        weights = flatten(_spread_weights(name, weights, a, axis))
        x = promote_dtypes(x, weights)[0] if has_kind(weights, np.inexact) else x
        result = _weighted(x, convert(weights, q.dtype), q, skip_nan)
    elif known is None or skip_nan or is_symbolic(x.shape[-1]) or not np.all(np.isfinite(known)):
        result = _unweighted(x, q, method, skip_nan)
        if skip_nan:  # no element is the quantile of none, nor has it a derivative
            empty = _sum(convert(lax.bitwise_not(isnan(x)), np.dtype(np.int32)), x.ndim - 1)
            empty = lax.eq(empty, lax.full_like(empty, 0))
            empty = lax.broadcast_in_dim(empty, result.shape, tuple(range(q.ndim, result.ndim)))
            result = lax.select(empty, lax.full_like(result, math.nan), result)
    else:
        result = _at_known(x, known.astype(q.dtype), method)
    # q stands first in the result, then what was not reduced.
    if keepdims:
        lead = result.shape[: q.ndim]
        kept = (1,) if not shape else tuple(1 if k in axes else d for k, d in enumerate(shape))  # one axis of a scalar
        result = lax.reshape(result, (*lead, *kept))
    return result


def _spread_weights(name: str, weights: Any, a: Any, axis: Any) -> Any:
    (weights,) = arrays(name, weights)
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise ValueError(
            f"{name}: weights have shape {weights.shape}, but without an axis they need that of a, {a.shape}"
        )
    axes = canonical_axes(name, axis, a.ndim)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ValueError(
            f"{name}: weights have shape {weights.shape}, expected that of a, {a.shape}, or its lengths along "
            f"axis {axis}"
        )
    order = np.argsort(axes)
    ordered = lax.transpose(weights, tuple(int(k) for k in order))
    return lax.broadcast_in_dim(ordered, a.shape, tuple(sorted(axes)))


def _unweighted(x: Any, q: Any, method: str, skip_nan: bool) -> Any:
    n, axis = x.shape[-1], x.ndim - 1
    missing = isnan(x)
    if not skip_nan:
        # One NaN makes all NaN, so that every quantile of the row is.
        some = _any(missing, axis, keepdims=True)
        x = select_where(some, const(x, math.nan), x)
    ordered = lax.sort(x, dimension=axis)
    lead = x.shape[:-1]
    shape = (*q.shape, *lead)
    spread_q = lax.broadcast_in_dim(q, shape, tuple(range(q.ndim)))
    if skip_nan:
        count = _sum(convert(lax.bitwise_not(missing), q.dtype), axis)
        last = lax.sub(count, const(count, 1))
        last = lax.broadcast_in_dim(last, shape, tuple(range(q.ndim, len(shape))))
        last = lax.max(last, lax.full_like(last, 0))
        count = lax.add(last, lax.full_like(last, 1))
    else:
        last = lax.full(shape, n - 1, q.dtype)
        count = lax.full(shape, n, q.dtype)
    zero = lax.full_like(last, 0)
    if method == "inverted_cdf":
        position = lax.sub(lax.ceil(lax.mul(spread_q, count)), lax.full_like(count, 1))
        low = high = lax.clamp(zero, position, last)
        high_weight = zero
    else:
        position = lax.mul(spread_q, last)
        low = lax.floor(position)
        high = lax.ceil(position)
        high_weight = lax.sub(position, low)
        low, high = [lax.max(zero, lax.min(place, last)) for place in (low, high)]

    def pick(where: Any) -> Any:
        index = convert(where, np.dtype(np.int32))
        # Rows of the data go with rows of the positions; those of q become the last axis for it.
        index = (
            moveaxis(lax.reshape(index, (*q.shape, *lead)), 0, -1) if q.ndim else lax.expand_dims(index, (len(lead),))
        )
        picked = take_along_axis(ordered, index, axis, mode="promise_in_bounds")
        return moveaxis(picked, -1, 0) if q.ndim else lax.squeeze(picked, (axis,))

    if method == "nearest":
        half_up = lax.gt(high_weight, lax.full_like(high_weight, 0.5))
        return pick(select_where(half_up, high, low))
    if method in ("lower", "inverted_cdf"):
        return pick(low)
    if method == "higher":
        return pick(high)
    below, above = pick(low), pick(high)
    if method == "midpoint":
        return lax.mul(lax.add(below, above), const(below, 0.5))
    weight = convert(high_weight, below.dtype)
    # Not below + weight (above - below), which is NaN between equal infinities; at an element there is no weighing.
    between = lax.add(lax.mul(below, lax.sub(const(weight, 1), weight)), lax.mul(above, weight))
    return lax.select(lax.eq(low, high), below, between)


def _at_known(x: Any, q: np.ndarray, method: str) -> Any:
    """As `_unweighted` for fractions whose values are known: only the elements that matter are looked for."""
    n, axis = x.shape[-1], x.ndim - 1
    last = q.dtype.type(n - 1)
    position = np.ceil(q * q.dtype.type(n)) - q.dtype.type(1) if method == "inverted_cdf" else q * last
    position = position.astype(q.dtype)
    low, high = np.clip(np.floor(position), 0, last), np.clip(np.ceil(position), 0, last)
    weight = position - np.floor(position)
    if method in ("lower", "inverted_cdf"):
        high = low
    elif method == "higher":
        low = high
    elif method == "nearest":
        low = high = np.where(weight > 0.5, high, low)
    # NaN comes last: one more element says whether there is any.
    places = sorted({n - 1, *np.minimum(np.stack([low, high]).astype(np.int64), n - 1).reshape(-1).tolist()})
    found = order_statistics(x, places, axis)
    missing = isnan(lax.index_in_dim(found, len(places) - 1, axis, keepdims=False))

    def pick(where: np.ndarray) -> Any:
        numbers = np.searchsorted(places, np.minimum(where.astype(np.int64), n - 1))
        picked = [lax.index_in_dim(found, int(k), axis, keepdims=False) for k in numbers.reshape(-1)]
        if not q.ndim:
            return picked[0]
        if not picked:
            return lax.full((0, *x.shape[:-1]), 0, x.dtype)
        return concatenate([lax.expand_dims(part, (0,)) for part in picked], 0)

    result = below = pick(low)
    if method in ("midpoint", "linear"):
        above = pick(high)
        if method == "midpoint":
            result = lax.mul(lax.add(below, above), const(below, 0.5))
        else:
            spread = tuple(range(q.ndim))
            part = lax.broadcast_in_dim(weight.astype(x.dtype), below.shape, spread)
            rest = lax.broadcast_in_dim((1 - weight).astype(x.dtype), below.shape, spread)
            same = lax.broadcast_in_dim(low == high, below.shape, spread)
            # Not below + weight (above - below), which is NaN between equal infinities; at an element, no weighing.
            result = lax.select(same, below, lax.add(lax.mul(below, rest), lax.mul(above, part)))
    if missing.ndim < result.ndim:
        missing = lax.broadcast_in_dim(missing, result.shape, tuple(range(1, result.ndim)))
    return select_where(missing, const(x, math.nan), result)


def _weighted(x: Any, weights: Any, q: Any, skip_nan: bool) -> Any:
    """The first element, in order, at which the sum of weights reaches q times the total."""
    axis = x.ndim - 1
    missing = isnan(x)
    if skip_nan:
        weights = select_where(missing, const(weights, 0), weights)
    else:
        some = _any(missing, axis, keepdims=True)
        x = select_where(some, const(x, math.nan), x)
    ordered, sorted_weights = lax.sort((x, weights), dimension=axis, num_keys=1)
    reached = lax.cumsum(sorted_weights, axis=axis)
    total = lax.slice_in_dim(reached, x.shape[-1] - 1, x.shape[-1], axis=axis)
    shape = (*q.shape, *x.shape)
    fraction = lax.broadcast_in_dim(true_divide(reached, total), shape, tuple(range(q.ndim, len(shape))))
    enough = lax.ge(fraction, lax.broadcast_in_dim(q, shape, tuple(range(q.ndim))))
    weighty = lax.broadcast_in_dim(lax.gt(sorted_weights, const(weights, 0)), shape, tuple(range(q.ndim, len(shape))))
    first = argmax(lax.bitwise_and(enough, weighty), axis=len(shape) - 1, keepdims=True)
    spread = lax.broadcast_in_dim(ordered, shape, tuple(range(q.ndim, len(shape))))
    return lax.squeeze(take_along_axis(spread, first, len(shape) - 1), (len(shape) - 1,))


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """Values below which the fractions q of the elements over axes lie; NaN if there is one among them.

    q has rank 0 or 1, and is the first axis of the result. Between elements `method` decides: 'linear', 'lower',
    'higher', 'midpoint', 'nearest' or 'inverted_cdf', which alone takes weights.
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """As `quantile`, of the elements that are not NaN."""
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights, True)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
    out_sharding: Any = None,
) -> Any:
    """As `quantile`, with q in percent."""
    return out_placed(
        "jnp.percentile",
        _quantile("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, False, True),
        out_sharding,
    )


def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: Any = None,
) -> Any:
    """As `percentile`, of the elements that are not NaN."""
    return _quantile("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights, True, True)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """Middle element over axes, or the mean of the two middle ones; NaN if there is one."""
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, False)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """As `median`, of the elements that are not NaN."""
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, True)
