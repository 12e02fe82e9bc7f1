"""Reductions over segments: `jax.ops`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from pullback import numpy as jnp
from pullback.api.eager import remember_all as _remember_all
from pullback.core import typeof
from pullback.core.explain import explain_all as _explain_all
from pullback.core.kinds import ARRAY, INTEGER, table
from pullback.core.parameters import COMMON
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.reductions.reductions import one as _identity_of_products
from pullback.lax.reductions.reductions import zero as _identity_of_sums
from pullback.manual import add_pages as _add_pages
from pullback.manual.ops import PAGES as _PAGES
from pullback.numpy._arguments import check_arraylike, static_int
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.static import check_flags


def _segments(
    name: str,
    method: str,
    empty: Any,
    data,
    segment_ids,
    num_segments,
    indices_are_sorted,
    unique_indices,
    mode,
    out_sharding,
):
    check_arraylike(name, data, segment_ids)
    check_flags(name, indices_are_sorted=indices_are_sorted, unique_indices=unique_indices)
    data, segment_ids = jnp.asarray(data), jnp.asarray(segment_ids)
    if segment_ids.ndim == 0:
        raise ValueError(f"{name}: argument 'segment_ids' must have at least one dimension, got a scalar")
    if not dtypes.issubdtype(typeof(segment_ids).dtype, np.integer):
        raise TypeError(f"{name}: argument 'segment_ids' must have an integer dtype, got {typeof(segment_ids).short()}")
    if method in ("add", "multiply") and data.dtype == np.bool_:
        raise TypeError(f"{name}: argument 'data' must be of numbers, got {typeof(data).short()}")
    if num_segments is None:
        num_segments = int(jnp.max(segment_ids)) + 1 if segment_ids.size else 0
    num_segments = static_int(num_segments, f"{name}: argument 'num_segments'")
    if num_segments < 0:
        raise ValueError(f"{name}: argument 'num_segments' must be non-negative, got {num_segments}")
    start = jnp.full((num_segments, *data.shape[1:]), empty(data.dtype), data.dtype)
    update = getattr(start.at[segment_ids], method)
    try:
        found = update(
            data,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            wrap_negative_indices=False,
        )
    except ValueError:
        if data.shape[: segment_ids.ndim] == segment_ids.shape:
            raise
        raise ValueError(
            f"{name}: argument 'segment_ids' has shape {segment_ids.shape}, but 'data' {data.shape}; expected an id "
            "for each row of data"
        ) from None
    return out_placed(name, found, out_sharding)


def _check_buckets(name: str, bucket_size: int | None) -> None:
    """Sums are made pairwise, whatever size of buckets JAX would make them in; it must be one."""
    if bucket_size is not None and operator.index(bucket_size) < 1:
        raise ValueError(f"{name}: argument 'bucket_size' must be positive, got {bucket_size}")


def _lowest(dtype):
    if dtype == np.bool_:
        return False
    return jnp.iinfo(dtype).min if dtypes.issubdtype(dtype, np.integer) else -np.inf


def _highest(dtype):
    if dtype == np.bool_:
        return True
    return jnp.iinfo(dtype).max if dtypes.issubdtype(dtype, np.integer) else np.inf


def segment_sum(
    data,
    segment_ids,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
):
    """out[s] = sum of data[i] over i with segment_ids[i] == s, of shape (num_segments, ...); 0 for empty segments.

    Ids outside of the range are dropped. Without num_segments it is the largest id + 1, which must not be traced.
    """
    _check_buckets("segment_sum", bucket_size)
    return _segments(
        "segment_sum",
        "add",
        _identity_of_sums,
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        mode,
        out_sharding,
    )


def segment_prod(
    data,
    segment_ids,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
):
    """As `segment_sum` for products; 1 for empty segments."""
    _check_buckets("segment_prod", bucket_size)
    return _segments(
        "segment_prod",
        "multiply",
        _identity_of_products,
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        mode,
        out_sharding,
    )


def segment_max(
    data,
    segment_ids,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
):
    """As `segment_sum` for maxima; the lowest value of the dtype for empty segments."""
    _check_buckets("segment_max", bucket_size)
    return _segments(
        "segment_max",
        "max",
        _lowest,
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        mode,
        out_sharding,
    )


def segment_min(
    data,
    segment_ids,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: Any = None,
    out_sharding: Any = None,
):
    """As `segment_sum` for minima; the highest value of the dtype for empty segments."""
    _check_buckets("segment_min", bucket_size)
    return _segments(
        "segment_min",
        "min",
        _highest,
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        mode,
        out_sharding,
    )


__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_KINDS = COMMON | table(data__segment_ids=ARRAY, num_segments__bucket_size=INTEGER)
_remember_all(globals(), _KINDS)
_explain_all(globals(), _KINDS, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
