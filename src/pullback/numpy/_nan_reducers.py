"""Functions that combine the elements along axes that are not NaN; each is its reducer after NaN became what changes
nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.numpy._arguments import (
    arrays,
    as_enabled,
    broadcast_to,
    canonical_axes,
    const,
    convert,
    refuse_out,
    to_real_dtype,
)
from pullback.numpy._comparison import isnan
from pullback.numpy._reducers import (
    _MAX,
    _MIN,
    _PROD,
    _SUM,
    _ddof,
    _highest,
    _lowest,
    _reduce,
    _Reduction,
    _variance_dtypes,
    all,
    argmax,
    argmin,
    mean,
    sum,
)
from pullback.numpy._ufuncs import imag, real, where
from pullback.util import dtypes
from pullback.util.static import check_flags


def _without_nan(name: str, a: Any, value: Any) -> tuple[Any, Any]:
    """(a with NaN replaced by value(dtype), where NaN was or None if a has no NaN by its dtype)."""
    a = as_enabled(*arrays(name, a))
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return a, None
    missing = isnan(a)
    return where(missing, const(a, value(a.dtype)), a), missing


def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Sum over axes, with NaN counted as 0."""
    x, _ = _without_nan("nansum", a, lambda dtype: 0)
    return _reduce(dataclasses.replace(_SUM, name="nansum"), x, axis, dtype, out, keepdims, initial, where)


def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Product over axes, with NaN counted as 1."""
    x, _ = _without_nan("nanprod", a, lambda dtype: 1)
    return _reduce(dataclasses.replace(_PROD, name="nanprod"), x, axis, dtype, out, keepdims, initial, where)


def _nan_extremum(op: _Reduction, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, mask: Any) -> Any:
    name = f"nan{op.name}"
    x, missing = _without_nan(name, a, op.identity)
    result = _reduce(dataclasses.replace(op, name=name), x, axis, None, out, keepdims, initial, mask)
    if missing is None or initial is not None:
        return result
    nothing = all(missing, axis, None, keepdims, where=mask)
    return lax.select(nothing, lax.full_like(result, math.nan), result)


def nanmax(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Largest element over axes that is not NaN; NaN if there is none."""
    return _nan_extremum(_MAX, a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Any:
    """Smallest element over axes that is not NaN; NaN if there is none."""
    return _nan_extremum(_MIN, a, axis, out, keepdims, initial, where)


def _nan_count(name: str, a: Any, axes: Any, dtype: Any, keepdims: bool, mask: Any) -> Any:
    present = lax.bitwise_not(isnan(a))
    if mask is not None:
        (mask,) = arrays(name, mask)
        present = lax.bitwise_and(present, broadcast_to(convert(mask, np.dtype(bool)), a.shape))
    return sum(present, axes, dtype, None, keepdims)


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, where: Any = None
) -> Any:
    """Mean over axes of the elements that are not NaN; NaN if there are none."""
    check_flags("nanmean", keepdims=keepdims)
    refuse_out("nanmean", out)
    a = as_enabled(*arrays("nanmean", a))
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return mean(a, axis, dtype, None, keepdims, where=where)
    result_dtype = a.dtype if dtype is None else np.dtype(dtypes.check_user_dtype_supported(dtype, "nanmean"))
    count = _nan_count("nanmean", a, axis, to_real_dtype(result_dtype), keepdims, where)
    total = nansum(a, axis, result_dtype, None, keepdims, where=where)
    return lax.div(total, convert(count, result_dtype))


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """Variance over axes of the elements that are not NaN; NaN where fewer than ddof + 1 remain."""
    return _nan_var("nanvar", a, axis, dtype, out, _ddof("nanvar", ddof, None), keepdims, where, mean)


def _nan_var(
    name: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, keepdims: bool, mask: Any, center: Any
) -> Any:
    check_flags(name, keepdims=keepdims)
    refuse_out(name, out)
    a = as_enabled(*arrays(name, a))
    work, result_dtype = _variance_dtypes(a.dtype, dtype, name)
    axes = canonical_axes(name, axis, a.ndim)
    x = convert(a, work)
    if center is None:
        center = nanmean(x, axes, work, None, True, mask)
    center = broadcast_to(convert(center, work), x.shape)
    centered = where(isnan(x), const(x, 0), lax.sub(x, center))
    squared = (
        lax.add(lax.square(real(centered)), lax.square(imag(centered)))
        if np.dtype(work).kind == "c"
        else lax.square(centered)
    )
    # Where integers are asked for, squares are such, and their mean is that of floats.
    inexact = dtypes.to_inexact_dtype(squared.dtype)
    count = _nan_count(name, x, axes, inexact, keepdims, mask)
    divisor = lax.sub(count, convert(ddof, count.dtype))
    wide = squared.dtype if inexact == squared.dtype else None
    total = convert(sum(squared, axes, wide, None, keepdims, None, mask), inexact)
    invalid = lax.le(divisor, const(divisor, 0))
    safe = where(invalid, const(divisor, 1), divisor)
    result = convert(lax.div(total, safe), result_dtype)
    return where(invalid, const(result, math.nan if wide is not None else 0), result)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: Any = None,
    mean: Any = None,
) -> Any:
    """Square root of `nanvar`."""
    return lax.sqrt(_nan_var("nanstd", a, axis, dtype, out, _ddof("nanstd", ddof, None), keepdims, where, mean))


def _nan_argument(
    name: str, find: Callable[..., Any], filler: Callable[..., Any], a: Any, axis: Any, out: Any, keepdims: Any
) -> Any:
    refuse_out(name, out)
    x, missing = _without_nan(name, a, filler)
    result = find(x, axis, None, keepdims)
    if missing is None:
        return result
    nothing = all(missing, axis, None, bool(keepdims))
    return lax.select(nothing, lax.full_like(result, -1), result)


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the largest element that is not NaN; -1 if there is none."""
    return _nan_argument("nanargmax", argmax, _lowest, a, axis, out, keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool | None = None) -> Any:
    """Position of the smallest element that is not NaN; -1 if there is none."""
    return _nan_argument("nanargmin", argmin, _highest, a, axis, out, keepdims)
