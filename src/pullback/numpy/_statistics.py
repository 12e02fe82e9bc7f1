"""Statistics that are more than one reduction: quantiles, averages, covariances, histograms, counts, interpolation."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from pullback import lax
from pullback.core import Tracer
from pullback.numpy._arguments import (
    arrays,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    concrete_or_error,
    convert,
    is_integer,
    make_array,
    promote_dtypes,
    promote_dtypes_inexact,
    refuse_out,
    static_int,
)
from pullback.numpy._creation import array, asarray, diagonal_mask, linspace
from pullback.numpy._creation import diagonal as _diagonal
from pullback.numpy._indexing import index_update, rewriting_take
from pullback.numpy._join import concatenate
from pullback.numpy._products import dot
from pullback.numpy._reducers import any as _any
from pullback.numpy._reducers import argmax, mean
from pullback.numpy._reducers import max as _max
from pullback.numpy._reducers import min as _min
from pullback.numpy._reducers import sum as _sum
from pullback.numpy._select import select_where, take_along_axis
from pullback.numpy._shape import moveaxis
from pullback.numpy._sorting import argsort, searchsorted
from pullback.numpy._ufuncs import conj, const, isnan, real, remainder, true_divide
from pullback.util import dtypes


def trace(a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None) -> Any:
    """Sum of the elements a[..., i, i + offset] over two axes; narrow integers are widened as by `sum`.

    The offset may be traced. Raises ValueError if the axes are the same or out of bounds.
    """
    refuse_out("trace", out)
    (a,) = arrays("trace", a)
    first, second = canonical_axis("trace", axis1, a.ndim, "axis1"), canonical_axis("trace", axis2, a.ndim, "axis2")
    if first == second:
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    if not isinstance(offset, Tracer):
        return _sum(_diagonal(a, operator.index(offset), first, second), -1, dtype)
    # The place of the diagonal is not known, so that all that is not on it becomes 0.
    a = lax.transpose(a, (*(k for k in builtin_range(a.ndim) if k not in (first, second)), first, second))
    mask = lax.broadcast_in_dim(diagonal_mask(a.shape[-2:], offset), a.shape, (a.ndim - 2, a.ndim - 1))
    return _sum(lax.select(mask, a, lax.full_like(a, 0)), (-2, -1), dtype)


builtin_range = range  # histograms have an argument of this name

# ---- quantiles

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
) -> Any:
    check_arraylike(name, a, q)
    if overwrite_input or out is not None:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in _QUANTILE_METHODS:
        raise ValueError(
            f"method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or 'inverted_cdf', got {method!r}"
        )
    # Integers become floats by themselves, so that a weakly typed q does not widen them.
    a, q = promote_dtypes(*promote_dtypes_inexact(a), *promote_dtypes_inexact(q))
    a, q = convert(a, a.dtype), convert(q, q.dtype)
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise ValueError(f"{name} does not support complex input, as the operation is poorly defined.")
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.")
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
        raise TypeError(f"{name}: an axis of length 0 has no quantiles, got shape {shape}")
    x = flatten(a)
    if weights is not None:
        weights = _spread_weights(name, weights, a, axis)
        result = _weighted(x, flatten(weights), q, skip_nan)
    else:
        result = _unweighted(x, q, method, skip_nan)
    # q stands first in the result, then what was not reduced.
    if keepdims:
        lead = result.shape[: q.ndim]
        result = lax.reshape(result, (*lead, *(1 if k in axes else d for k, d in enumerate(shape))))
    return result


def _spread_weights(name: str, weights: Any, a: Any, axis: Any) -> Any:
    (weights,) = arrays(name, weights)
    if weights.shape == a.shape:
        return convert(weights, a.dtype)
    if axis is None:
        raise ValueError(
            f"{name}: weights have shape {weights.shape}, but without an axis they need that of a, {a.shape}"
        )
    axes = canonical_axes(name, axis, a.ndim)
    if weights.shape != tuple(a.shape[k] for k in axes):
        raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
    order = np.argsort(axes)
    ordered = lax.transpose(convert(weights, a.dtype), tuple(int(k) for k in order))
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
        low, high = lax.clamp(zero, low, last), lax.clamp(zero, high, last)

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


def _fraction(name: str, a: Any, q: Any) -> Any:
    check_arraylike(name, a, q)
    (q,) = promote_dtypes_inexact(q)
    return lax.div(q, const(q, 100))


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
    del out_sharding
    q = _fraction("percentile", a, q)
    return _quantile("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, False)


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
    q = _fraction("nanpercentile", a, q)
    return _quantile("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights, True)


def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """Middle element over axes, or the mean of the two middle ones; NaN if there is one."""
    return _quantile("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, False)


def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """As `median`, of the elements that are not NaN."""
    return _quantile("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, True)


# ---- averages and covariances


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False) -> Any:
    """Weighted mean over axes; with `returned` the sum of weights, too.

    Raises ValueError if weights have neither a's shape nor that of the axes.
    """
    if weights is None:
        (a,) = arrays("average", a)
        (a,) = promote_dtypes_inexact(a)
        result = mean(a, axis, keepdims=keepdims)
        axes = canonical_axes("average", axis, a.ndim)
        total = lax.full_like(result, math.prod(a.shape[k] for k in axes))
        return (result, total) if returned else result
    check_arraylike("average", a, weights)
    a, weights = promote_dtypes_inexact(a, weights)
    if a.shape != weights.shape:
        if axis is None:
            raise ValueError("Axis must be specified when shapes of a and weights differ.")
        axes = canonical_axes("average", axis, a.ndim)
        if weights.shape != tuple(a.shape[k] for k in axes):
            raise ValueError("Shape of weights must be consistent with shape of a along specified axis.")
        order = tuple(int(k) for k in np.argsort(axes))
        weights = lax.broadcast_in_dim(lax.transpose(weights, order), a.shape, tuple(sorted(axes)))
    total = _sum(weights, axis, keepdims=keepdims)
    result = lax.div(_sum(lax.mul(a, weights), axis, keepdims=keepdims), total)
    return (result, total) if returned else result


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    dtype: Any = None,
) -> Any:
    """Covariance matrix of variables given as rows (or columns), of m and then of y.

    `fweights` are integer numbers of repetitions, `aweights` relative weights of the observations. Raises ValueError
    above rank 2, TypeError for frequencies that are not integers.
    """
    if y is not None:
        m, y = promote_dtypes_inexact(*arrays("cov", m, y))
        if y.ndim > 2:
            raise ValueError("y has more than 2 dimensions")
    else:
        (m,) = promote_dtypes_inexact(*arrays("cov", m))
    if m.ndim > 2:
        raise ValueError("m has more than 2 dimensions")
    x = _variables(m, rowvar)
    if y is not None:
        x = concatenate([x, _variables(y, rowvar)], 0)
    if dtype is not None:
        x = convert(x, np.dtype(dtypes.check_user_dtype_supported(dtype, "cov")))
    if x.shape[0] == 0:
        return lax.full((0, 0), 0, x.dtype)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = None
    if fweights is not None:
        (fweights,) = arrays("cov", fweights)
        if fweights.ndim > 1:
            raise RuntimeError("cannot handle multidimensional fweights")
        if fweights.shape[0] != x.shape[1]:
            raise RuntimeError("incompatible numbers of samples and fweights")
        if not dtypes.issubdtype(fweights.dtype, np.integer):
            raise TypeError("fweights must be integer.")
        weights = lax.abs(fweights)
    if aweights is not None:
        (aweights,) = arrays("cov", aweights)
        if aweights.ndim > 1:
            raise RuntimeError("cannot handle multidimensional aweights")
        if aweights.shape[0] != x.shape[1]:
            raise RuntimeError("incompatible numbers of samples and aweights")
        (aweights,) = promote_dtypes_inexact(aweights)
        aweights = lax.abs(aweights)
        weights = aweights if weights is None else lax.mul(*promote_dtypes(weights, aweights))
    average_, total = average(x, axis=1, weights=weights, returned=True)
    total = lax.index_in_dim(total, 0, 0, keepdims=False)
    if weights is None:
        factor: Any = const(real(x), max(x.shape[1] - ddof, 0))
    elif ddof == 0:
        factor = total
    elif aweights is None:
        factor = lax.sub(total, const(total, ddof))
    else:
        spread = _sum(lax.mul(*promote_dtypes(weights, aweights)))
        factor = lax.sub(total, lax.div(lax.mul(convert(spread, total.dtype), const(total, ddof)), total))
    # Too few observations give NaN, not a negative variance.
    factor = lax.max(real(factor), const(real(factor), 0))
    x = lax.sub(x, broadcast_to(lax.expand_dims(average_, (1,)), x.shape))
    right = x if weights is None else lax.mul(x, broadcast_to(convert(weights, x.dtype), x.shape))
    product = dot(x, lax.transpose(conj(right), (1, 0)))
    result = lax.div(product, convert(factor, product.dtype))
    dropped = tuple(k for k, n in enumerate(result.shape) if n == 1)
    return lax.squeeze(result, dropped) if dropped else result


def _variables(x: Any, rowvar: bool) -> Any:
    if x.ndim < 2:
        return lax.reshape(x, (1, x.size))
    return x if rowvar else lax.transpose(x, (1, 0))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, dtype: Any = None) -> Any:
    """Matrix of the correlations of variables given as rows (or columns), of x and then of y."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return lax.div(c, c)
    deviation = lax.sqrt(real(_diagonal(c)))
    deviation = convert(deviation, c.dtype)
    c = lax.div(c, lax.broadcast_in_dim(deviation, c.shape, (0,)))
    c = lax.div(c, lax.broadcast_in_dim(deviation, c.shape, (1,)))
    if dtypes.issubdtype(c.dtype, np.complexfloating):
        return lax.complex(*(lax.clamp(const(p, -1), p, const(p, 1)) for p in (lax.real(c), lax.imag(c))))
    return lax.clamp(const(c, -1), c, const(c, 1))


# ---- counts


def bincount(
    x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None, out_sharding: Any = None
) -> Any:
    """How often each number occurs in a vector of integers, or the sums of the weights; negative numbers count as 0.

    The length is one more than the largest number unless given, for which x must be concrete.
    """
    del out_sharding
    (x,) = arrays("bincount", x)
    if x.dtype == np.bool_:
        x = convert(x, np.dtype(np.int32))
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = static_int(minlength, "'minlength' argument of jnp.bincount")
    if length is None:
        known = np.asarray(
            concrete_or_error(
                x,
                "The error occurred because of argument 'x' of jnp.bincount. To avoid this error, pass a static "
                "`length` argument.",
            )
        )
        length = max(minlength, int(known.max()) + 1 if known.size else 0)
    else:
        length = static_int(length, "'length' argument of jnp.bincount")
    if weights is None:
        values: Any = make_array(1, np.dtype(dtypes.canonicalize_dtype(np.int64)))
    else:
        (values,) = arrays("bincount", weights)
        if values.shape != x.shape:
            raise ValueError("shape of weights must match shape of x.")
    counts = lax.full((length,), 0, values.dtype)
    place = lax.max(x, lax.full_like(x, 0))
    if values.dtype == np.bool_:
        return index_update(counts, place, values, "max", mode="drop")
    return index_update(counts, place, values, "add", mode="drop")


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """Number of the bin of each element, for bins given by rising or falling edges; 0 and len(bins) are outside.

    With `right` the right edge belongs to a bin, else the left. Raises ValueError unless the bins are a vector.
    """
    x, bins = arrays("digitize", x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins of shape {bins.shape}")
    how = "scan" if method is None else method
    index = np.dtype(np.int32)
    n = bins.shape[0]
    if n == 0:
        return lax.full(x.shape, 0, index)
    side = "right" if not right else "left"
    first, last = (lax.index_in_dim(bins, k, 0, keepdims=False) for k in (0, n - 1))
    rising = searchsorted(bins, x, side=side, method=how)
    falling = searchsorted(lax.rev(bins, (0,)), x, side=side, method=how)
    falling = lax.sub(lax.full_like(falling, n), falling)
    return lax.select(broadcast_to(lax.ge(last, first), rising.shape), rising, falling)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Edges of bins: a number of equal ones over the range of a (or the one given), or edges themselves."""
    del weights
    if isinstance(bins, str):
        raise NotImplementedError(f"histogram_bin_edges: bins={bins!r}: choosing bins from the data is not implemented")
    check_arraylike("histogram_bin_edges", a)
    (a,) = promote_dtypes_inexact(*arrays("histogram_bin_edges", a))
    if np.ndim(bins) == 0 and not is_integer(bins):
        raise TypeError(f"histogram_bin_edges: argument 'bins' must be an integer or edges, got {bins!r}")
    if not is_integer(bins):
        (edges,) = promote_dtypes_inexact(asarray(bins))
        return convert(edges, np.result_type(a.dtype, edges.dtype) if edges.dtype != a.dtype else a.dtype)
    count = operator.index(bins)
    if range is None:
        low, high = _min(a), _max(a)
    else:
        bounds = asarray(range)
        if bounds.shape != (2,):
            raise ValueError(f"`range` must be either None or a sequence of two scalars, got {range}")
        low, high = (convert(bounds[k], a.dtype) for k in (0, 1))
    # A range of no width is widened, as by NumPy.
    narrow = lax.eq(low, high)
    low, high = (
        lax.select(narrow, lax.sub(low, const(low, 0.5)), low),
        lax.select(narrow, lax.add(high, const(high, 0.5)), high),
    )
    return linspace(low, high, count + 1, dtype=a.dtype)


def histogram(a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None) -> Any:
    """(numbers of elements or sums of weights in bins, edges); with `density` scaled to an integral of 1."""
    if weights is None:
        (a,) = promote_dtypes_inexact(*arrays("histogram", a))
        weights = lax.full_like(a, 1)
    else:
        a, weights = promote_dtypes_inexact(*arrays("histogram", a, weights))
        if a.shape != weights.shape:
            raise ValueError("weights should have the same shape as a.")
    edges = histogram_bin_edges(a, bins, range)
    counts = _count_in_bins(lax.reshape(a, (a.size,)), edges, lax.reshape(weights, (weights.size,)))
    if density:
        width = lax.sub(lax.slice_in_dim(edges, 1, None, axis=0), lax.slice_in_dim(edges, 0, -1, axis=0))
        counts = lax.div(lax.div(counts, convert(width, counts.dtype)), broadcast_to(_sum(counts), counts.shape))
    return counts, edges


def _bin_number(x: Any, edges: Any) -> Any:
    """Number of the bin of each element; bins are open on the right but for the last, and -1 or n stand for outside."""
    x, edges = promote_dtypes(x, edges)
    number = searchsorted(edges, x, side="right")
    n = edges.shape[0] - 1
    at_end = lax.eq(x, lax.broadcast_in_dim(lax.index_in_dim(edges, n, 0, keepdims=False), x.shape, ()))
    return lax.sub(lax.select(at_end, lax.full_like(number, n), number), lax.full_like(number, 1))


def _count_in_bins(x: Any, edges: Any, weights: Any) -> Any:
    number = _bin_number(x, edges)
    n = edges.shape[0] - 1
    inside = lax.select(lax.lt(number, lax.full_like(number, 0)), lax.full_like(number, n), number)
    return index_update(lax.full((n,), 0, weights.dtype), inside, weights, "add", mode="drop")


def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, list[Any]]:
    """(numbers of points or sums of weights in boxes, list of edges); points are the rows of a matrix."""
    if isinstance(sample, (list, tuple)):
        sample = moveaxis(array([asarray(s) for s in sample]), 0, -1)
    (sample,) = arrays("histogramdd", sample)
    if sample.ndim != 2:
        raise ValueError(f"histogramdd: expected points as rows of a matrix, got shape {sample.shape}")
    count, rank = sample.shape
    (sample,) = promote_dtypes_inexact(sample)
    if weights is not None:
        (weights,) = promote_dtypes_inexact(*arrays("histogramdd", weights))
        if weights.shape != (count,):
            raise ValueError("should have one weight for each sample.")
    if range is not None and (len(range) != rank or any(r is not None and len(r) != 2 for r in range)):
        raise ValueError(
            f"For sample.shape={(count, rank)}, range must be a sequence of {rank} pairs or Nones; got {range=}"
        )
    per_axis = list(bins) if isinstance(bins, (list, tuple)) else [bins] * rank
    if len(per_axis) != rank:
        raise ValueError("should be a bin for each dimension.")
    edges, numbers = [], []
    for k in builtin_range(rank):
        column = lax.index_in_dim(sample, k, 1, keepdims=False)
        e = histogram_bin_edges(column, per_axis[k], None if range is None else range[k])
        edges.append(e)
        numbers.append(_bin_number(column, e))
    shape = tuple(e.shape[0] - 1 for e in edges)
    flat, outside = None, None
    for number, n in zip(numbers, shape):
        out = lax.bitwise_or(lax.lt(number, lax.full_like(number, 0)), lax.ge(number, lax.full_like(number, n)))
        flat = number if flat is None else lax.add(lax.mul(flat, lax.full_like(flat, n)), number)
        outside = out if outside is None else lax.bitwise_or(outside, out)
    size = math.prod(shape)
    place = lax.select(outside, lax.full_like(flat, size), flat)
    values = make_array(1, np.dtype(dtypes.canonicalize_dtype(np.int64))) if weights is None else weights
    counts = lax.reshape(index_update(lax.full((size,), 0, values.dtype), place, values, "add", mode="drop"), shape)
    if density:
        (counts,) = promote_dtypes_inexact(counts)
        total = _sum(counts)
        for k, e in enumerate(edges):
            width = lax.sub(lax.slice_in_dim(e, 1, None, axis=0), lax.slice_in_dim(e, 0, -1, axis=0))
            counts = lax.div(counts, lax.broadcast_in_dim(convert(width, counts.dtype), shape, (k,)))
        counts = lax.div(counts, broadcast_to(total, shape))
    return counts, edges


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool | None = None
) -> tuple[Any, Any, Any]:
    """(numbers of points or sums of weights in rectangles, edges along x, edges along y)."""
    x, y = arrays("histogram2d", x, y)
    if not isinstance(bins, (list, tuple)):
        bins = [bins, bins]
    elif len(bins) not in (1, 2):
        edges = asarray(bins)
        bins = [edges, edges]
    sample = lax.concatenate([lax.expand_dims(c, (1,)) for c in promote_dtypes(x, y)], 1)
    counts, (x_edges, y_edges) = histogramdd(sample, bins, range, weights, density)
    return counts, x_edges, y_edges


# ---- interpolation


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Values at x of the polygon through the points (xp, fp), with xp rising; beyond the ends the end values.

    `left` and `right` replace these, or are 'extrapolate'; with `period` xp is taken modulo it. Raises ValueError
    unless xp and fp are vectors of one length.
    """
    check_arraylike("interp", x, xp, fp)
    if np.shape(xp) != np.shape(fp) or np.ndim(xp) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp = promote_dtypes_inexact(x, xp)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("jnp.interp: complex x values not supported.")
    (fp,) = promote_dtypes_inexact(fp)
    if np.shape(xp)[0] == 0:
        raise ValueError("array of sample points is empty")
    if isinstance(left, str) and left != "extrapolate":
        raise ValueError("the only valid string value of `left` is 'extrapolate', but got: '" + left + "'")
    if isinstance(right, str) and right != "extrapolate":
        raise ValueError("the only valid string value of `right` is 'extrapolate', but got: '" + right + "'")
    if period is not None:
        known = period if isinstance(period, Tracer) else np.asarray(period)
        if known.ndim != 0:
            raise ValueError(f"period must be a scalar; got {period}")
        period = convert(period, x.dtype)
        if not isinstance(known, Tracer) and known == 0:
            raise ValueError(f"period must be a non-zero value; got {period}")
        period = lax.abs(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = rewriting_take(xp, order), rewriting_take(fp, order)
        xp = concatenate(
            [lax.sub(rewriting_take(xp, slice(-1, None)), period), xp, lax.add(rewriting_take(xp, slice(0, 1)), period)]
        )
        fp = concatenate([rewriting_take(fp, slice(-1, None)), fp, rewriting_take(fp, slice(0, 1))])
        left = right = None
    n = xp.shape[0]
    i = searchsorted(xp, x, side="right")
    i = lax.clamp(np.asarray(min(1, n - 1), i.dtype), i, np.asarray(max(n - 1, 0), i.dtype))
    before = lax.max(lax.sub(i, lax.full_like(i, 1)), lax.full_like(i, 0))
    x0, x1, f0, f1 = (rewriting_take(v, k) for v, k in ((xp, before), (xp, i), (fp, before), (fp, i)))
    distance = lax.sub(x1, x0)
    same = lax.le(lax.abs(distance), lax.full_like(distance, np.spacing(float(dtypes.finfo(xp.dtype).eps))))
    slope_base = lax.select(same, lax.full_like(distance, 1), distance)
    offset = lax.sub(x, x0)
    rise = lax.sub(f1, f0)
    result = select_where(same, f0, lax.add(f0, lax.mul(convert(lax.div(offset, slope_base), rise.dtype), rise)))
    first, last = (lax.index_in_dim(xp, k, 0, keepdims=False) for k in (0, n - 1))
    if left != "extrapolate" if isinstance(left, str) or left is None else True:
        value = lax.index_in_dim(fp, 0, 0, keepdims=False) if left is None else left
        result = select_where(lax.lt(x, broadcast_to(first, x.shape)), value, result)
    if right != "extrapolate" if isinstance(right, str) or right is None else True:
        value = lax.index_in_dim(fp, n - 1, 0, keepdims=False) if right is None else right
        result = select_where(lax.gt(x, broadcast_to(last, x.shape)), value, result)
    return result
