"""Softmax and its kin: functions that reduce along axes, with `where` masks."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import jit
from pullback.numpy._arguments import check_arraylike, plain_float, promote_dtypes_inexact
from pullback.numpy._reducers import check_mask
from pullback.util import dtypes
from pullback.util.static import check_flags


def _axes(name: str, axis: Any, ndim: int) -> tuple[int, ...]:
    axes = tuple(range(ndim)) if axis is None else tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    for a in axes:
        if isinstance(a, str):
            raise NameError(f"{name}: argument 'axis' takes integers, got {a!r}")
        if not hasattr(a, "__index__"):
            raise TypeError(f"{name}: argument 'axis' must be an integer, got {a!r}")
        if not -ndim <= a < ndim:
            raise ValueError(f"{name}: argument 'axis' names axis {a}, but x has {ndim} dimensions")
    return tuple(a % ndim for a in axes)


def _inexact(x: Any) -> Any:
    x = jnp.asarray(plain_float(x))
    return lax.convert_element_type(x, dtypes.to_inexact_dtype(x.dtype))


def _exponentials(name: str, x: Any, axis: Any, where: Any) -> tuple[Any, Any, Any]:
    """(x - max, exp of it, its sum along the axes): masked elements are -inf, 0 and left out."""
    check_arraylike(name, x)
    if where is None and dtypes.dtype_of(x) == np.bool_:
        raise TypeError(f"{name} does not accept dtype bool; accepted are numbers")
    x = _inexact(x)
    axes = _axes(name, axis, x.ndim)
    largest = lax.stop_gradient(jnp.max(x, axes, where=where, initial=-np.inf, keepdims=True))
    shifted = (x if where is None else jnp.where(where, x, -np.inf)) - largest
    powers = jnp.exp(shifted)
    return shifted, powers, jnp.sum(powers, axes, where=where, keepdims=True)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis` (an int, several, or None for all); 0 where the mask `where` is False.

    Raises ValueError for an axis that x does not have.
    """
    _, powers, total = _exponentials("softmax", x, axis, where)
    out = powers / total
    return out if where is None else jnp.where(where, out, 0)


@functools.partial(jit, static_argnames=("axis",))
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """x - log(sum(exp(x))) along `axis`; -inf where the mask `where` is False. Errors as softmax."""
    shifted, _, total = _exponentials("log_softmax", x, axis, where)
    out = shifted - jnp.log(total)
    return out if where is None else jnp.where(where, out, -np.inf)


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None
) -> Any:
    """log(sum(b exp(a))) along `axis` (default: all), accurate for large a; b is 1 by default and may be negative.

    With `return_sign`, (log |sum|, its sign); without, the result of a negative real sum is nan. Errors as softmax.
    """
    check_flags("logsumexp", keepdims=keepdims)
    check_mask("logsumexp", where)
    if b is None:
        check_arraylike("logsumexp", a)
        a = _inexact(a)
    else:
        check_arraylike("logsumexp", a, b)
        a, b = jnp.broadcast_arrays(*promote_dtypes_inexact(a, b))
        a = jnp.where(b != 0, a, -np.inf)
    if where is not None:  # what is left out may be larger than all that is summed
        a = jnp.where(where, a, -np.inf)
    axes = _axes("logsumexp", axis, a.ndim)
    is_complex = dtypes.issubdtype(a.dtype, np.complexfloating)
    largest = jnp.max(a.real if is_complex else a, axes, initial=-np.inf, keepdims=True)
    largest = lax.stop_gradient(jnp.where(jnp.isfinite(largest), largest, 0))
    subtracted = largest.astype(a.dtype)  # of complex numbers, too, by no promotion
    powers = jnp.exp(a - subtracted)
    if b is not None:
        powers = powers * b
    total = jnp.sum(powers, axes, keepdims=True)
    if return_sign:
        sign = jnp.sign(total)
        out = jnp.log(jnp.abs(total)) + largest
    elif is_complex or b is None:
        sign, out = None, jnp.log(total) + subtracted
    else:
        out = jnp.where(total < 0, np.nan, jnp.log(jnp.abs(total)) + largest)
        sign = None
    if not keepdims:
        out = jnp.squeeze(out, axes)
        sign = None if sign is None else jnp.squeeze(sign, axes)
    return (out, sign) if return_sign else out


def logmeanexp(x: Any, axis: Any = None, where: Any = None, keepdims: bool = False) -> Any:
    """log(mean(exp(x))) along `axis` (default: all)."""
    check_arraylike("logmeanexp", x)
    check_flags("logmeanexp", keepdims=keepdims)
    check_mask("logmeanexp", where)
    x = jnp.asarray(plain_float(x))
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        count = math.prod(x.shape[i] for i in _axes("logmeanexp", axis, x.ndim))
        return total - (math.log(count) if count else -math.inf)  # of nothing: nan
    count = jnp.sum(jnp.broadcast_to(where, x.shape), axis=axis, keepdims=keepdims)
    return total - jnp.log(count.astype(total.dtype))


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
    *,
    algorithm: str = "fast",
) -> Any:
    """(x - mean) / sqrt(variance + epsilon), mean and variance along `axis` unless given.

    `algorithm`: 'fast' takes the variance as mean(x^2) - mean(x)^2, 'stable' as mean((x - mean)^2). ValueError for
    others.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: argument 'algorithm' is 'fast' or 'stable', got {algorithm!r}")
    check_arraylike("standardize", x, *(given for given in (mean, variance, where) if given is not None))
    x = _inexact(x)
    axes = _axes("standardize", axis, x.ndim)
    if mean is None:
        mean = jnp.mean(x, axes, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            square = jnp.mean(jnp.square(x), axes, keepdims=True, where=where)
            variance = jnp.clip(square - jnp.square(mean), 0)
        else:
            variance = jnp.mean(jnp.square(x - mean), axes, keepdims=True, where=where)
    return (x - jnp.asarray(mean)) * lax.rsqrt(jnp.asarray(variance) + epsilon)
