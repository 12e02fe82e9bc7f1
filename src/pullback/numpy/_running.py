"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.tracer import Array
from pullback.numpy._arguments import (
    arrays,
    canonical_axis,
    convert,
    is_integer,
    refuse_out,
    static_int,
)
from pullback.numpy._nan_reducers import _without_nan
from pullback.numpy._reducers import _BOOL, widened
from pullback.util import dtypes


def _cumulate(
    name: str, lax_fn: Callable[..., Any], a: Any, axis: Any, dtype: Any, out: Any, widen: bool = False
) -> Any:
    refuse_out(name, out)
    # Numbers, and arrays without axes that are as weakly typed as these, count as arrays of one.
    number = type(a) in (int, float, complex) or (isinstance(a, Array) and not a.ndim and a.weak_type)
    (a,) = arrays(name, a)
    if axis is None or number:
        canonical_axis(name, 0 if axis is None else axis, 1)
        a, axis = lax.reshape(a, (a.size,)), 0
    elif not is_integer(axis):
        raise TypeError(f"{name}: argument 'axis' must be None or an integer, got {axis!r}")
    axis = canonical_axis(name, axis, a.ndim)
    if dtype is not None:
        target = np.dtype(dtypes.check_user_dtype_supported(dtype, name))
    elif widen:
        target = widened(a.dtype)
    else:
        target = np.dtype(dtypes.canonicalize_dtype(np.int64)) if a.dtype == _BOOL else a.dtype
    if target == _BOOL:  # running disjunctions and conjunctions
        ones = convert(convert(a, target), np.dtype(np.int8))
        return convert(_RUNNING_BOOLEANS.get(lax_fn, lax_fn)(ones, axis=axis), target)
    return lax_fn(convert(a, target), axis=axis)


_RUNNING_BOOLEANS: dict[Any, Callable[..., Any]] = {lax.cumsum: lax.cummax, lax.cumprod: lax.cummin}


def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Sums of all elements up to each along an axis, or of all in C order; booleans count as the default integer."""
    return _cumulate("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """Products of all elements up to each along an axis, or of all in C order."""
    return _cumulate("cumprod", lax.cumprod, a, axis, dtype, out)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """As `cumsum`, with NaN counted as 0."""
    return _cumulate("nancumsum", lax.cumsum, _counted(a, "nancumsum", 0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """As `cumprod`, with NaN counted as 1."""
    return _cumulate("nancumprod", lax.cumprod, _counted(a, "nancumprod", 1), axis, dtype, out)


def _counted(a: Any, name: str, value: int) -> Any:
    """a with the value in the place of NaN."""
    if isinstance(a, (bool, int, float, complex, np.generic)):
        return a if a == a else type(a)(value)
    return _without_nan(name, a, lambda dtype: value)[0]


def _cumulative(
    name: str, lax_fn: Callable[..., Any], first: int, x: Any, axis: Any, dtype: Any, include_initial: bool
) -> Any:
    (x,) = arrays(name, x)
    if x.ndim == 0:
        raise ValueError(f"{name}: argument is a scalar, with no axis to accumulate along; pass jnp.atleast_1d of it")
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                f"{name}: pass 'axis', one of the {x.ndim} axes of the array, to say along which to accumulate"
            )
        axis = 0
    axis = canonical_axis(name, static_int(axis, f"{name}: argument 'axis'"), x.ndim)
    result = _cumulate(name, lax_fn, x, axis, dtype, None, widen=lax_fn is lax.cumsum)
    if not include_initial:
        return result
    start = tuple(1 if k == axis else n for k, n in enumerate(result.shape))
    return lax.concatenate([lax.full(start, first, result.dtype), result], axis)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Sums of all elements up to each along an axis, from 0 if `include_initial`; integers are widened as by `sum`."""
    return _cumulative("cumulative_sum", lax.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Products of all elements up to each along an axis, from 1 if `include_initial`, in the dtype of x."""
    return _cumulative("cumulative_prod", lax.cumprod, 1, x, axis, dtype, include_initial)
