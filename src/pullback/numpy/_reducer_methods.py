"""The methods of ufunc objects that are reducers: `reduce`, `accumulate`, `at`, put on the objects here."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pullback import lax
from pullback.numpy._arguments import arrays, broadcast_to, canonical_axes, const, convert, promote_dtypes
from pullback.numpy._comparison import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
)
from pullback.numpy._exponentials import logaddexp, logaddexp2
from pullback.numpy._reducers import _ALL, _ANY, _BOOL, _reduce, _Reduction, kept, max, min, prod, sum
from pullback.numpy._running import _cumulate
from pullback.numpy._ufunc_object import check_one_axis
from pullback.numpy._ufuncs import add as add_ufunc
from pullback.numpy._ufuncs import multiply, subtract, where
from pullback.util import dtypes


def _reduce_method(reducer: Callable[..., Any], has_dtype: bool = True) -> Callable[..., Any]:
    def method(
        a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        options: dict[str, Any] = {"axis": axis, "keepdims": keepdims, "where": where}
        if initial is not None:
            options["initial"] = initial
        if has_dtype:
            options["dtype"] = dtype
            return reducer(a, **options)
        result = reducer(a, **options)
        return result if dtype is None else convert(result, np.dtype(dtype))

    return method


def _logical_method(op: _Reduction) -> Callable[..., Any]:
    def method(
        a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        start = None if initial is None else bool(initial)
        result = _reduce(op, a, axis, None, None, keepdims, start, where)
        return result if dtype is None else convert(result, np.dtype(dtype))

    return method


def _bits_method(
    lax_reduce: Callable[..., Any], combine: Callable[..., Any], identity: int, name: str
) -> Callable[..., Any]:
    op = _Reduction(
        name, lambda x, axes: lax_reduce(x, axes), combine, lambda dtype: bool(identity) if dtype == _BOOL else identity
    )

    def method(
        a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        given = dtypes.dtype_of(a) if dtype is None else np.dtype(dtype)
        if not (given == _BOOL or dtypes.issubdtype(given, np.integer)):
            raise ValueError(f"{name}.reduce: integer argument required; got dtype={given}")
        return _reduce(op, a, axis, dtype, None, keepdims, initial, where)

    return method


def _logsumexp_method(ufunc_object: Any, base: float) -> Callable[..., Any]:
    """Reduction by logaddexp: the largest element is taken out, so that nothing overflows."""

    def method(
        a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
    ) -> Any:
        (a,) = arrays("logaddexp.reduce", a)
        x = convert(a, np.dtype(dtypes.to_inexact_dtype(a.dtype)) if dtype is None else np.dtype(dtype))
        if where is not None:
            (where,) = arrays("logaddexp.reduce", where)
            x = lax.select(broadcast_to(convert(where, np.dtype(bool)), x.shape), x, lax.full_like(x, -math.inf))
        axes = canonical_axes("logaddexp.reduce", axis, x.ndim)
        scale = const(x, math.log(base))
        x = lax.mul(x, scale) if base != math.e else x
        top = kept(
            max(lax.real(x) if dtypes.issubdtype(x.dtype, np.complexfloating) else x, axes, initial=-math.inf), axes
        )
        top = convert(lax.stop_gradient(_finite_or_zero(top)), x.dtype)
        total = sum(lax.exp(lax.sub(x, broadcast_to(top, x.shape))), axes, keepdims=True)
        result = lax.add(lax.log(total), top)
        result = lax.div(result, scale) if base != math.e else result
        result = result if keepdims else lax.squeeze(result, axes)
        return result if initial is None else ufunc_object(initial, result)

    return method


def _finite_or_zero(x: Any) -> Any:
    return where(lax.is_finite(x), x, const(x, 0))


def _accumulate_method(lax_fn: Callable[..., Any]) -> Callable[..., Any]:
    def method(a: Any, axis: int = 0, dtype: Any = None) -> Any:
        return _cumulate("accumulate", lax_fn, a, axis, dtype, None)

    return method


def _extreme_accumulate(lax_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Running maxima and minima are of the type of the elements, booleans too."""

    def method(a: Any, axis: int = 0, dtype: Any = None) -> Any:
        check_one_axis(axis)
        (a,) = arrays("accumulate", a)
        return _cumulate("accumulate", lax_fn, a, axis, a.dtype if dtype is None else dtype, None)

    return method


def _logical_accumulate(lax_fn: Callable[..., Any]) -> Callable[..., Any]:
    """By a running minimum, maximum or sum of zeros and ones, of which the lowest bit is the truth."""

    def method(a: Any, axis: int = 0, dtype: Any = None) -> Any:
        check_one_axis(axis)
        (a,) = arrays("accumulate", a)
        ones = convert(a if a.dtype == _BOOL else lax.ne(a, const(a, 0)), np.dtype(np.int32))
        result = _cumulate("accumulate", lax_fn, ones, axis, None, None)
        result = lax.ne(lax.bitwise_and(result, const(result, 1)), const(result, 0))
        return result if dtype is None else convert(result, np.dtype(dtype))

    return method


_OF_BOOLEANS = {"add": "max", "multiply": "min"}  # what sums and products of truths are


def _at_method(update: str) -> Callable[..., Any]:
    def method(a: Any, indices: Any, b: Any) -> Any:
        (a,) = arrays("at", a)
        if update in ("max", "min"):  # results have the type of both; others keep that of a
            a, b = promote_dtypes(a, *arrays("at", b))
        of_booleans = a.dtype == _BOOL and dtypes.dtype_of(b) == _BOOL
        op = _OF_BOOLEANS.get(update, update) if of_booleans else update
        return getattr(a.at[indices], op)(b)  # which remembers

    return method


add_ufunc._reduce, add_ufunc._accumulate, add_ufunc._at = (
    _reduce_method(sum),
    _accumulate_method(lax.cumsum),
    _at_method("add"),
)
subtract._at = _at_method("subtract")
multiply._reduce, multiply._accumulate, multiply._at = (
    _reduce_method(prod),
    _accumulate_method(lax.cumprod),
    _at_method("multiply"),
)
maximum._reduce, maximum._accumulate, maximum._at = (
    _reduce_method(max, False),
    _extreme_accumulate(lax.cummax),
    _at_method("max"),
)
minimum._reduce, minimum._accumulate, minimum._at = (
    _reduce_method(min, False),
    _extreme_accumulate(lax.cummin),
    _at_method("min"),
)
_XOR = _Reduction(
    "logical_xor",
    lambda x, axes: lax.reduce_xor(x, axes),
    lambda a, b: lax.bitwise_xor(a, b),
    lambda dtype: False,
    truth=True,
)
logical_and._reduce, logical_and._accumulate = _logical_method(_ALL), _logical_accumulate(lax.cummin)
logical_or._reduce, logical_or._accumulate = _logical_method(_ANY), _logical_accumulate(lax.cummax)
logical_xor._reduce, logical_xor._accumulate = _logical_method(_XOR), _logical_accumulate(lax.cumsum)
bitwise_and._reduce = _bits_method(lax.reduce_and, lambda a, b: lax.bitwise_and(a, b), -1, "bitwise_and")
bitwise_or._reduce = _bits_method(lax.reduce_or, lambda a, b: lax.bitwise_or(a, b), 0, "bitwise_or")
bitwise_xor._reduce = _bits_method(lax.reduce_xor, lambda a, b: lax.bitwise_xor(a, b), 0, "bitwise_xor")
logaddexp._reduce = _logsumexp_method(logaddexp, math.e)
logaddexp2._reduce = _logsumexp_method(logaddexp2, 2.0)
