"""Exponentials and logarithms, elementwise, and the logarithms of sums of exponentials."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.api import custom_jvp
from pullback.numpy._arguments import (
    const,
    convert,
    of_scalars,
)
from pullback.numpy._ufunc_tables import TO_INEXACT, as_ufunc, binary, unary
from pullback.numpy._ufuncs import has_kind, where


def _in_base(x: Any, base: float) -> Any:
    """The logarithm of complex numbers, each part for itself, so that an infinite one leaves the other."""
    natural = lax.log(x)
    parts = (lax.real(natural), lax.imag(natural))
    return lax.complex(*(lax.div(part, convert(math.log(base), part.dtype)) for part in parts))


def _log2(x: Any) -> Any:
    if has_kind(x, np.complexfloating):
        return _in_base(x, 2.0)
    return lax.div(lax.log(x), lax.log(convert(2, x.dtype)))  # never weakly typed


LOG10_E = (0.4342944819032518, 1.098319650216765e-17)  # 1 / log(10), and what its rounding to float64 leaves


def _log10(x: Any) -> Any:
    if has_kind(x, np.complexfloating):
        return _in_base(x, 10.0)
    natural = lax.log(x)
    # The factor in two parts, both positive in every dtype, as infinities of both signs, or times 0, were NaN.
    nearest = np.asarray(LOG10_E[0], x.dtype)
    high = nearest if float(nearest) <= LOG10_E[0] else np.nextafter(nearest, nearest.dtype.type(0))
    low = (LOG10_E[0] - float(high)) + LOG10_E[1]
    return lax.fma_p.bind(natural, lax.full_like(x, float(high)), lax.mul(natural, convert(low, x.dtype)))


exp = unary("exp", lax.exp, TO_INEXACT, "e to the power x, elementwise.")
exp2 = unary("exp2", lax.exp2, TO_INEXACT, "2 to the power x, elementwise.")
expm1 = unary("expm1", lax.expm1, TO_INEXACT, "exp(x) - 1, elementwise, accurate near 0.")
log = unary("log", lax.log, TO_INEXACT, "Natural logarithm, elementwise.")
log2 = unary("log2", _log2, TO_INEXACT, "Logarithm of base 2, elementwise.")
log10 = unary("log10", _log10, TO_INEXACT, "Logarithm of base 10, elementwise.")
log1p = unary("log1p", lax.log1p, TO_INEXACT, "log(1 + x), elementwise, accurate near 0.")


def _logaddexp_value(x1: Any, x2: Any) -> Any:
    if has_kind(x1, np.complexfloating):
        # The larger real part comes out; the imaginary part is brought back to (-pi, pi].
        first = lax.ge(lax.real(x1), lax.real(x2))
        large, small = where_pair(first, x1, x2)
        total = lax.add(large, lax.log1p(lax.exp(lax.sub(small, large))))
        infinite = lax.bitwise_and(lax.eq(x1, x2), lax.eq(lax.real(x1), const(lax.real(x1), -math.inf)))
        total = where(infinite, large, total)
        phase = lax.imag(total)
        turn = const(phase, 2 * math.pi)
        wrapped = lax.sub(phase, lax.mul(turn, lax.round(lax.div(phase, turn))))
        return of_scalars(lax.complex(lax.real(total), wrapped), x1, x2)
    large = lax.max(x1, x2)
    difference = lax.sub(x1, x2)
    # Equal infinities have no difference.
    undefined = lax.ne(difference, difference)
    return where(undefined, lax.add(x1, x2), lax.add(large, lax.log1p(lax.exp(lax.neg(lax.abs(difference))))))


_logaddexp_value.__name__ = "logaddexp"  # which jaxprs show
_logaddexp = custom_jvp(_logaddexp_value)


def where_pair(first: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """(x, y) where first holds, (y, x) elsewhere."""
    shape = lax.broadcast_shapes(first.shape, x.shape, y.shape)
    first, x, y = (
        lax.broadcast_in_dim(a, shape, tuple(range(len(shape) - a.ndim, len(shape)))) if a.shape != shape else a
        for a in (first, x, y)
    )
    return lax.select(first, x, y), lax.select(first, y, x)


def _share(x: Any, total: Any, exponential: Any = lax.exp) -> Any:
    """exp(x - total), where +inf that is the total counts as 1; NaN where x or the total is, and for two of -inf."""
    known = lax.eq(x, total)
    if not has_kind(x, np.complexfloating):
        known = lax.bitwise_and(known, lax.gt(x, const(total, 0)))
    difference = lax.sub(x, total)
    return exponential(where(known, lax.full_like(difference, 0), difference))


@_logaddexp.defjvp
def _logaddexp_jvp(primals: Any, tangents: Any) -> Any:
    x1, x2 = primals
    t1, t2 = tangents
    total = _logaddexp(x1, x2)
    first, second = (_real_shares if not has_kind(x1, np.complexfloating) else _shares)(x1, x2, total)
    return total, lax.add(lax.mul(t1, first), lax.mul(t2, second))


def _shares(x1: Any, x2: Any, total: Any) -> tuple[Any, Any]:
    return _share(x1, total), _share(x2, total)


def _real_shares(x1: Any, x2: Any, total: Any) -> tuple[Any, Any]:
    """exp(x - total) of both, which is the logistic function of what one is more than the other: the total need not be
    known, nor is it rounded. Both are 1 for two of +inf, which have no difference.
    """
    both = lax.eq(lax.min(x1, x2), const(x1, math.inf))
    one = lax.full_like(total, 1)
    return where(both, one, lax.logistic(lax.sub(x1, x2))), where(both, one, lax.logistic(lax.sub(x2, x1)))


def _logaddexp2(x1: Any, x2: Any) -> Any:
    if not has_kind(x1, np.complexfloating):
        return _real_logaddexp2(x1, x2)
    scale = const(x1, math.log(2))
    return lax.div(_logaddexp(lax.mul(x1, scale), lax.mul(x2, scale)), scale)


@custom_jvp
def _real_logaddexp2(x1: Any, x2: Any) -> Any:
    difference = lax.sub(x1, x2)
    more = lax.div(lax.log1p(lax.exp2(lax.neg(lax.abs(difference)))), const(difference, math.log(2)))
    return where(lax.ne(difference, difference), lax.add(x1, x2), lax.add(lax.max(x1, x2), more))


@_real_logaddexp2.defjvp
def _real_logaddexp2_jvp(primals: Any, tangents: Any) -> Any:
    (x1, x2), (t1, t2) = primals, tangents
    total = _real_logaddexp2(x1, x2)
    first, second = _share(x1, total, lax.exp2), _share(x2, total, lax.exp2)
    return total, lax.add(lax.mul(t1, first), lax.mul(t2, second))


logaddexp_ = binary("logaddexp", _logaddexp, TO_INEXACT, "log(exp(x1) + exp(x2)), elementwise, without overflow.")
logaddexp2_ = binary(
    "logaddexp2", _logaddexp2, TO_INEXACT, "log2(2**x1 + 2**x2), elementwise, without overflow.", apart=True
)

logaddexp = as_ufunc(logaddexp_, "logaddexp", 2, -math.inf)
logaddexp2 = as_ufunc(logaddexp2_, "logaddexp2", 2, -math.inf)
