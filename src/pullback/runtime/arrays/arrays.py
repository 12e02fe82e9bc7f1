"""Making arrays from what users pass: numbers, NumPy arrays, other arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback._ext import _core
from pullback.core import extended, hooks
from pullback.core.avals import ShapedArray, typeof
from pullback.core.dimensions import Dimension
from pullback.util import dtypes


def asarray(x: Any, dtype: Any = None, weak_type: bool | None = None, device: Any = None) -> Any:
    """`x` as an Array; NumPy data is copied, so that later changes to it do not show.

    `dtype` converts, `weak_type` overrides, `device` commits. TypeError for what is not an array, number or key array.
    """
    kind = type(x)
    if hooks.transfers is not None and kind is not _core.Array and not hasattr(x, "_base_array"):
        hooks.transfers.from_host(x)
    if kind is Dimension:
        value = hooks.dimension_as_value(x)
        asked = value.dtype if dtype is None else dtypes.canonicalize_dtype(dtype)
        return hooks.convert(value, asked, dtype is None if weak_type is None else weak_type)
    if kind is np.ndarray and (held := dtypes.held_as(x.dtype)) is not None:
        return _core.copy_of(x, held if dtype is None else dtypes.canonicalize_dtype(dtype), bool(weak_type), device)
    if dtype is not None and kind in dtypes.python_scalar_dtypes:  # as below, in fewer steps: traces ask often
        target = dtypes.canonicalize_dtype(dtype)
        return _core.copy_of(np.asarray(x, target if kind is int else None), target, bool(weak_type), device)
    if kind is _core.Array or hasattr(x, "_base_array"):
        aval = x.aval
        if dtype is not None and aval.dtype != dtype:
            place = x._device if device is None and kind is _core.Array else device
            return _from_numpy(np.asarray(x), ShapedArray(aval.shape, dtype, bool(weak_type)), place)
        if (weak_type is None or aval.weak_type == weak_type) and device is None:
            return x
        if type(x) is not _core.Array:  # keys lie where their words do
            return type(x)(x._impl, asarray(x._base_array, device=device))
        new = aval if weak_type is None else aval.update(weak_type=weak_type)
        return _core.with_aval(x, new.untyped, x._device if device is None else device)
    aval = typeof(x)
    if not isinstance(aval.dtype, np.dtype):
        raise TypeError(f"asarray: cannot make an array of {type(x).__name__} with element type {aval.dtype}")
    if dtype is not None:
        aval = ShapedArray(aval.shape, dtypes.canonicalize_dtype(dtype), False)
    if weak_type is not None:
        aval = aval.update(weak_type=weak_type)
    if aval.dtype == dtypes.float0:
        return np.asarray(x)  # there is nothing in its elements: such arrays stay NumPy's
    if type(x) is int:
        return _from_numpy(np.asarray(x, aval.dtype), aval, device)  # OverflowError rather than wrapping around
    return _from_numpy(np.asarray(x), aval, device)


def exactly(x: Any) -> Any:
    """A NumPy array or scalar as an Array of its own type, be it of 64 bits where these are not enabled."""
    return _from_numpy(np.asarray(x), ShapedArray(x.shape, x.dtype), None)


def _from_numpy(x: np.ndarray, aval: ShapedArray, device: Any) -> Any:
    return _core.from_numpy(x, aval, device, True)


def words_of(x: Any) -> Any:
    """The words of a key array, zeros that are never read for tangents of integers, anything else as it is."""
    if getattr(x, "dtype", None) == dtypes.float0:
        return asarray(np.zeros(x.shape, np.bool_))
    return getattr(x, "_base_array", x)


def is_plain(dtype: Any) -> bool:
    """Whether elements are numbers in memory: not keys, nor float0, which has none."""
    return isinstance(dtype, np.dtype) and dtype != dtypes.float0


def dressed(x: Any, dtype: Any) -> Any:
    """What a program has computed in place of an array of a dtype that is not plain, as such an array."""
    return np.zeros(x.shape, dtypes.float0) if dtype == dtypes.float0 else extended.holding(dtype, x)


def physical(aval: ShapedArray) -> ShapedArray:
    """The aval of what is in memory: words for keys, booleans for float0."""
    dtype = aval.dtype
    if dtype == dtypes.float0:
        return ShapedArray(aval.shape, np.dtype(np.bool_))
    if isinstance(dtype, np.dtype):
        return aval
    return ShapedArray(aval.shape + tuple(dtype.base_shape), dtype.base)
