"""Summary statistics: ranks, modes, standard errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api.vmap import vmap
from pullback.numpy._arguments import check_arraylike
from pullback.util import dtypes
from pullback.util.record import NamedTuple
from pullback.util.static import check_flags


class ModeResult(NamedTuple):
    """The most frequent values, and how often they occur."""

    mode: Any
    count: Any


def _policy(name: str, nan_policy: str) -> None:
    if nan_policy not in ("propagate", "omit", "raise"):
        raise ValueError(f"{name}: argument 'nan_policy' is {nan_policy!r}; accepted are 'omit' and 'propagate'")
    if nan_policy == "raise":
        raise NotImplementedError(f"{name}: nan_policy 'raise' is not supported, as it needs the values while tracing")


def _along(x: Any, axis: int | None) -> tuple[Any, int, bool]:
    x = jnp.asarray(x)
    if axis is None:
        return x.ravel(), 0, True
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"argument 'axis' is {axis}, which is out of bounds for a rank of {x.ndim}")
    return x, axis % x.ndim, False


def mode(a: Any, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent value along `axis` (None: of all), the least of several, and its count.

    Raises ValueError for a bad axis or policy, NotImplementedError for nan_policy 'omit' and 'raise'.
    """
    check_arraylike("mode", a)
    check_flags("mode", keepdims=keepdims)
    _policy("mode", nan_policy)
    if nan_policy == "omit":
        raise NotImplementedError("mode: nan_policy 'omit' is not supported")
    ndim = np.ndim(a)
    x, axis, flat = _along(a, axis if ndim else None)
    moved = jnp.moveaxis(x, axis, 0)
    columns = moved.reshape(moved.shape[0], math.prod(moved.shape[1:]))
    if columns.shape[0] == 0:
        # There is nothing to count: nan, and a count of 0 in floats, whatever the type of `a`.
        dtype = dtypes.canonicalize_dtype(np.float64)
        values, counts = jnp.full(columns.shape[1:], np.nan, dtype), jnp.zeros(columns.shape[1:], dtype)
    else:
        values, counts = vmap(_mode_of, in_axes=1)(columns)
    values, counts = values.reshape(moved.shape[1:]), counts.reshape(moved.shape[1:])
    if keepdims:
        if flat:
            values, counts = values.reshape((1,) * ndim), counts.reshape((1,) * ndim)
        else:
            values, counts = jnp.expand_dims(values, axis), jnp.expand_dims(counts, axis)
    return ModeResult(values, counts)


def _mode_of(x: Any) -> tuple[Any, Any]:
    ordered = jnp.sort(x)
    _, start, end = _runs(ordered)
    counts = end - start
    best = jnp.argmax(counts)
    nan = jnp.isnan(x).any() if dtypes.issubdtype(x.dtype, np.inexact) else False
    value, count = ordered[best], counts[best]
    if nan is False:
        return value, count
    return jnp.where(nan, jnp.asarray(np.nan, x.dtype), value), jnp.where(nan, jnp.sum(jnp.isnan(x)), count)


def rankdata(a: Any, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Any:
    """Ranks from 1, along `axis` (None: of all). Ties get their 'average', 'min', 'max', 'dense' or 'ordinal' rank; the
    ranks are floats, nan where an element that is ranked with them is.

    Raises ValueError for another method or a bad axis, NotImplementedError for nan_policy 'omit' and 'raise'.
    """
    check_arraylike("rankdata", a)
    _policy("rankdata", nan_policy)
    if nan_policy == "omit":
        raise NotImplementedError("rankdata: nan_policy 'omit' is not supported")
    if method not in ("average", "min", "max", "dense", "ordinal"):
        raise ValueError(f"unknown method '{method}'")
    x, axis, flat = _along(a, axis)
    if flat:
        return _rank(x, method)
    moved = jnp.moveaxis(x, axis, 0)
    columns = moved.reshape(moved.shape[0], math.prod(moved.shape[1:]))
    ranks = vmap(lambda column: _rank(column, method), in_axes=1, out_axes=1)(columns)
    return jnp.moveaxis(ranks.reshape(moved.shape), 0, axis)


def _rank(x: Any, method: str) -> Any:
    """The ranks of a vector, in time that grows as that of sorting it; all nan where one of its elements is."""
    dtype = dtypes.canonicalize_dtype(float)
    if x.size == 0:
        return jnp.zeros((0,), dtype)
    order = jnp.argsort(x)
    first, start, end = _runs(x[order])
    if method == "ordinal":
        ranks = jnp.arange(1, x.size + 1)
    elif method == "dense":
        ranks = jnp.cumsum(first)
    elif method == "average":
        ranks = 0.5 * (start + 1 + end).astype(dtype)
    else:
        ranks = start + 1 if method == "min" else end
    ranks = jnp.zeros((x.size,), dtype).at[order].set(ranks.astype(dtype), unique_indices=True)
    return jnp.where(jnp.isnan(x).any(), jnp.asarray(np.nan, dtype), ranks)


def _runs(ordered: Any) -> tuple[Any, Any, Any]:
    """Of each element of a sorted vector: whether it is the first of those equal to it, where these start, and end."""
    n = ordered.shape[0]
    place, edge = jnp.arange(n), jnp.ones((1,), bool)
    changes = ordered[1:] != ordered[:-1]
    first, last = jnp.concatenate([edge, changes]), jnp.concatenate([changes, edge])
    start = lax.cummax(jnp.where(first, place, 0))
    end = lax.cummin(jnp.where(last, place + 1, n), reverse=True)
    return first, start, end


def sem(a: Any, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The standard error of the mean along `axis` (None: of all): std(ddof) / sqrt(n); 'omit' leaves nans out.

    Raises ValueError for a bad policy, NotImplementedError for 'raise'.
    """
    check_arraylike("sem", a)
    check_flags("sem", keepdims=keepdims)
    _policy("sem", nan_policy)
    x = jnp.asarray(a)
    x = x.astype(dtypes.to_inexact_dtype(x.dtype))
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis=axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(count.astype(x.dtype))
    deviation = jnp.std(x, axis=axis, ddof=ddof, keepdims=keepdims)
    return deviation / np.sqrt(x.size if axis is None else x.shape[axis]).astype(x.dtype)
