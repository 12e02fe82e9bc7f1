"""Comparison, maxima, logic, bits, and kinds of numbers (finite, nan, real), element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pullback import lax
from pullback.numpy._arguments import (
    arrays,
    broadcast_arrays,
    const,
    convert,
    of_scalars,
    promote,
    promote_numeric,
    refuse_out,
)
from pullback.numpy._ufunc_tables import SAME, TO_NUMERIC, as_ufunc, binary, unary
from pullback.numpy._ufuncs import _BOOL, has_kind, imag, magnitude

# ---- maxima


maximum_ = binary("maximum", lax.max, SAME, "Larger of the arguments, elementwise; NaN where either is NaN.")
minimum_ = binary("minimum", lax.min, SAME, "Smaller of the arguments, elementwise; NaN where either is NaN.")


def fmax(x1: Any, x2: Any) -> Any:
    """Larger of the arguments, elementwise; where one is NaN, the other."""
    x1, x2 = broadcast_arrays("fmax", *promote("fmax", x1, x2))
    return lax.select(lax.bitwise_or(greater(x1, x2), isnan(x2)), x1, x2)


def fmin(x1: Any, x2: Any) -> Any:
    """Smaller of the arguments, elementwise; where one is NaN, the other."""
    x1, x2 = broadcast_arrays("fmin", *promote("fmin", x1, x2))
    return lax.select(lax.bitwise_or(less(x1, x2), isnan(x2)), x1, x2)


# ---- comparison


def _comparison(name: str, lax_fn: Any, doc: str) -> Any:
    """Order of complex numbers: by real part, then by imaginary part."""
    strict = lax.gt if lax_fn in (lax.gt, lax.ge) else lax.lt

    def compare(x: Any, y: Any) -> Any:
        if not has_kind(x, np.complexfloating):
            return lax_fn(x, y)
        rx, ry = lax.real(x), lax.real(y)
        by_imaginary = lax.bitwise_and(lax.eq(rx, ry), lax_fn(lax.imag(x), lax.imag(y)))
        return lax.bitwise_or(strict(rx, ry), by_imaginary)

    return binary(name, compare, SAME, doc)


equal = binary("equal", lax.eq, SAME, "x1 == x2, elementwise.")
not_equal = binary("not_equal", lax.ne, SAME, "x1 != x2, elementwise.")
greater = _comparison("greater", lax.gt, "x1 > x2, elementwise; complex numbers by real, then imaginary part.")
greater_equal = _comparison(
    "greater_equal", lax.ge, "x1 >= x2, elementwise; complex numbers by real, then imaginary part."
)
less = _comparison("less", lax.lt, "x1 < x2, elementwise; complex numbers by real, then imaginary part.")
less_equal = _comparison("less_equal", lax.le, "x1 <= x2, elementwise; complex numbers by real, then imaginary part.")


# ---- logic and bits


def _truth(x: Any) -> Any:
    return x if x.dtype == _BOOL else lax.ne(x, const(x, 0))


def _logical(lax_fn: Any) -> Any:
    def apply(x: Any, y: Any) -> Any:
        return lax_fn(_truth(x), _truth(y))

    return apply


def _logical_not(x: Any) -> Any:
    return lax.bitwise_not(x) if x.dtype == _BOOL else of_scalars(lax.eq(x, const(x, 0)), x)


logical_and_ = binary(
    "logical_and", _logical(lax.bitwise_and), SAME, "Whether both arguments are nonzero, elementwise.", apart=True
)
logical_or_ = binary(
    "logical_or", _logical(lax.bitwise_or), SAME, "Whether an argument is nonzero, elementwise.", apart=True
)
logical_xor_ = binary(
    "logical_xor", _logical(lax.bitwise_xor), SAME, "Whether one argument alone is nonzero, elementwise.", apart=True
)
logical_not = unary("logical_not", _logical_not, SAME, "Whether x is zero, elementwise.")
bitwise_and_ = binary("bitwise_and", lax.bitwise_and, SAME, "Conjunction of the bits of integers or booleans.")
bitwise_or_ = binary("bitwise_or", lax.bitwise_or, SAME, "Disjunction of the bits of integers or booleans.")
bitwise_xor_ = binary(
    "bitwise_xor", lax.bitwise_xor, SAME, "Exclusive disjunction of the bits of integers or booleans."
)
invert = unary("invert", lax.bitwise_not, SAME, "Complement of the bits of integers; negation of booleans.")
bitwise_not = unary("bitwise_not", lax.bitwise_not, SAME, "Complement of the bits of integers; negation of booleans.")
bitwise_invert = unary(
    "bitwise_invert", lax.bitwise_not, SAME, "Complement of the bits of integers; negation of booleans."
)


def _shift_right(x: Any, y: Any) -> Any:
    # Zeros come in for unsigned integers, copies of the sign for signed ones.
    return lax.shift_right_logical(x, y) if has_kind(x, np.unsignedinteger) else lax.shift_right_arithmetic(x, y)


_LEFT, _RIGHT = (
    "x1 with its bits moved up by x2 places, elementwise.",
    "x1 with its bits moved down by x2 places, elementwise.",
)
left_shift = binary("left_shift", lax.shift_left, TO_NUMERIC, _LEFT)
bitwise_left_shift = binary("bitwise_left_shift", lax.shift_left, TO_NUMERIC, _LEFT)
right_shift = binary("right_shift", _shift_right, TO_NUMERIC, _RIGHT)
bitwise_right_shift = binary("bitwise_right_shift", _shift_right, TO_NUMERIC, _RIGHT)


def bitwise_count(x: Any, /) -> Any:
    """Number of ones among the bits of |x|, elementwise, as uint8; TypeError for floats."""
    (x,) = promote_numeric("bitwise_count", x)
    return lax.convert_element_type(lax.population_count(magnitude(x)), np.uint8)


# ---- kinds of numbers


def isnan(x: Any, /) -> Any:
    """Whether x is NaN, elementwise; a complex number is if either part is."""
    (x,) = arrays("isnan", x)
    return lax.ne(x, x)


def isfinite(x: Any, /) -> Any:
    """Whether x is neither infinite nor NaN, elementwise."""
    (x,) = arrays("isfinite", x)
    if has_kind(x, np.complexfloating):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    if has_kind(x, np.floating):
        return lax.is_finite(x)
    return lax.full_like(x, True, np.bool_)


def isinf(x: Any, /) -> Any:
    """Whether x is infinite, elementwise; a complex number is if either part is."""
    (x,) = arrays("isinf", x)
    if has_kind(x, np.complexfloating):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    if has_kind(x, np.floating):
        return convert(lax.eq(lax.abs(x), const(x, math.inf)), np.bool_)
    return lax.full_like(x, False, np.bool_)


def _is_signed_inf(name: str, value: float, x: Any, out: Any) -> Any:
    refuse_out(name, out)
    (x,) = arrays(name, x)
    if has_kind(x, np.complexfloating):
        raise ValueError(f"{name}: complex numbers have no sign, got dtype {x.dtype}; pass x.real or x.imag")
    if has_kind(x, np.floating):
        return convert(lax.eq(x, const(x, value)), np.bool_)
    return lax.full_like(x, False, np.bool_)


def isposinf(x: Any, /, out: None = None) -> Any:
    """Whether x is +inf, elementwise; ValueError for complex numbers."""
    return _is_signed_inf("isposinf", math.inf, x, out)


def isneginf(x: Any, /, out: None = None) -> Any:
    """Whether x is -inf, elementwise; ValueError for complex numbers."""
    return _is_signed_inf("isneginf", -math.inf, x, out)


def iscomplex(x: Any) -> Any:
    """Whether the imaginary part is not 0, elementwise."""
    i = imag(x)
    return of_scalars(lax.ne(i, const(i, 0)), i)


def isreal(x: Any) -> Any:
    """Whether the imaginary part is 0, elementwise."""
    i = imag(x)
    return of_scalars(lax.eq(i, const(i, 0)), i)


# ---- the ones that are ufunc objects

maximum = as_ufunc(maximum_, "maximum", 2, None)
minimum = as_ufunc(minimum_, "minimum", 2, None)
logical_and = as_ufunc(logical_and_, "logical_and", 2, True)
logical_or = as_ufunc(logical_or_, "logical_or", 2, False)
logical_xor = as_ufunc(logical_xor_, "logical_xor", 2, False)
bitwise_and = as_ufunc(bitwise_and_, "bitwise_and", 2, -1)
bitwise_or = as_ufunc(bitwise_or_, "bitwise_or", 2, 0)
bitwise_xor = as_ufunc(bitwise_xor_, "bitwise_xor", 2, 0)
