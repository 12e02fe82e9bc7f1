"""Elementwise functions that NumPy calls universal: arithmetic, powers, trigonometry, rounding, complex numbers.

Tables first: one line a function that lax has. What needs more than one lax function is written out above its line.
"""

from __future__ import annotations

import builtins
import math
import operator
from typing import Any

import numpy as np

from pullback import lax
from pullback.core.types import in_use
from pullback.numpy._arguments import (
    Array,
    Tracer,
    arrays,
    as_array,
    broadcast_alike,
    broadcast_shapes_of,
    broadcast_to,
    check_arraylike,
    const,
    convert,
    dtype_of,
    is_weak,
    make_array,
    of_operands,
    of_scalars,
    promote_dtypes_numeric,
    promote_inexact,
    promote_numeric,
    refuse_out,
    static_int,
)
from pullback.numpy._ufunc_tables import SAME, TO_INEXACT, TO_NUMERIC, as_ufunc, binary, named, unary
from pullback.util import dtypes
from pullback.util.static import check_flags

_BOOL = np.dtype(bool)


def has_kind(x: Any, kind: Any) -> bool:
    """Whether x's dtype is of a kind, as np.inexact."""
    return dtypes.issubdtype(x.dtype, kind)


def where(condition: Any, on_true: Any, on_false: Any) -> Any:
    """lax.select whose operands broadcast as those of other operations do; a condition may stay a scalar."""
    shape = broadcast_shapes_of("where", [condition.shape, on_true.shape, on_false.shape])
    condition = broadcast_to(condition, shape) if condition.shape else condition
    return lax.select(condition, broadcast_to(on_true, shape), broadcast_to(on_false, shape))


# ---- arithmetic


def _add(x: Any, y: Any) -> Any:
    return lax.bitwise_or(x, y) if x.dtype == _BOOL else lax.add(x, y)


def _multiply(x: Any, y: Any) -> Any:
    return lax.bitwise_and(x, y) if x.dtype == _BOOL else lax.mul(x, y)


add_ = binary("add", _add, SAME, "Sum of the arguments, elementwise; of booleans, their disjunction.")
subtract_ = binary("subtract", lax.sub, SAME, "Difference of the arguments, elementwise; TypeError for booleans.")
_product = binary("multiply", _multiply, SAME, "")
_SELECTED = frozenset(np.dtype(t) for t in "efdFD")


def multiply_(x1: Any, x2: Any, /) -> Any:
    mask, x = (x1, x2) if getattr(x1, "dtype", None) == _BOOL else (x2, x1)
    if isinstance(mask, (Array, Tracer)) and mask.dtype == _BOOL and getattr(x, "dtype", None) != _BOOL:
        check_arraylike("multiply", x)
        # What a mask of the result's shape leaves out is zero, whatever it is, as XLA has it; narrower types are
        # multiplied there in float32.
        first = mask.ndim - np.ndim(x)
        if dtypes.result_type(x) in _SELECTED and first >= 0:
            x = as_array(x)
            if builtins.all([n in (1, m) for n, m in zip(x.shape, mask.shape[first:])]):
                x = x if x.shape == mask.shape else lax.broadcast_in_dim(x, mask.shape, range(first, mask.ndim))
                return lax.select_n(mask, lax.full_like(x, 0), x)
    return _product(x1, x2)


multiply_ = named(
    multiply_,
    "multiply",
    "Product of the arguments, elementwise; of booleans, their conjunction. A boolean array of the result's shape\n"
    "selects: what is multiplied by False is zero, also if it is infinite or NaN.",
)
true_divide = binary("true_divide", lax.div, TO_INEXACT, "Quotient of the arguments, elementwise, as a float.")
divide = binary("divide", lax.div, TO_INEXACT, "Quotient of the arguments, elementwise, as a float.")
negative_ = unary("negative", lax.neg, SAME, "-x, elementwise; TypeError for booleans.")


def _positive(x: Any) -> Any:
    return x


def magnitude(x: Any) -> Any:
    """|x|; x itself where no element can be negative."""
    return x if has_kind(x, np.unsignedinteger) or x.dtype == _BOOL else lax.abs(x)


def _square(x: Any) -> Any:
    return lax.square(x)


def _reciprocal(x: Any) -> Any:
    return lax.integer_pow(x, -1)


def _sign(x: Any) -> Any:
    return lax.sign(x)


positive = unary("positive", _positive, SAME, "x itself, as an array.")
absolute = unary("absolute", magnitude, SAME, "Absolute value, elementwise; of complex numbers their modulus, a float.")
abs = unary("abs", magnitude, SAME, "Absolute value, elementwise; of complex numbers their modulus, a float.")
fabs = unary("fabs", lax.abs, TO_INEXACT, "Absolute value of real numbers as a float; TypeError for complex ones.")
square = unary("square", _square, TO_NUMERIC, "x * x, elementwise.")
reciprocal = unary("reciprocal", _reciprocal, TO_INEXACT, "1 / x, elementwise.")
sign = unary("sign", _sign, SAME, "Sign, elementwise: -1, 0, 1 or NaN; of complex numbers x / |x|.")


def _no_complex(name: str, x: Any) -> None:
    if has_kind(x, np.complexfloating):
        raise TypeError(f"{name} does not support complex-valued inputs, got dtype {x.dtype}")


def _fabs(x: Any, /) -> Any:
    (x,) = promote_inexact("fabs", x)
    _no_complex("fabs", x)
    return lax.abs(x)


fabs = named(_fabs, "fabs", fabs.__doc__ or "")


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Largest integer not above the quotient x1 / x2, elementwise, in the promoted dtype; TypeError for complex
    numbers.
    """
    x1, x2 = promote_numeric("floor_divide", x1, x2)
    dtype = x1.dtype
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        return lax.div(x1, x2)
    if dtypes.issubdtype(dtype, np.integer):
        quotient = lax.div(x1, x2)
        # Division truncates towards 0; one less is right where the signs differ and something remains.
        differs = lax.bitwise_and(lax.ne(lax.sign(x1), lax.sign(x2)), lax.ne(lax.rem(x1, x2), const(x1, 0)))
        return where(differs, lax.sub(quotient, const(quotient, 1)), quotient)
    _no_complex("floor_divide", x1)
    return _float_divmod(x1, x2)[0]


def remainder(x1: Any, x2: Any, /) -> Any:
    """x1 - x2 * floor(x1 / x2), elementwise: the remainder with the sign of x2; TypeError for complex numbers."""
    x1, x2 = promote_numeric("remainder", x1, x2)
    _no_complex("remainder", x1)
    x2 = _nonzero_divisor(x2)
    truncated = lax.rem(x1, x2)
    zero = const(truncated, 0)
    nonzero = lax.ne(truncated, zero)
    if has_kind(x1, np.unsignedinteger):
        return truncated
    differs = lax.bitwise_and(lax.ne(lax.lt(truncated, zero), lax.lt(x2, const(x2, 0))), nonzero)
    return where(differs, lax.add(truncated, x2), truncated)


def _nonzero_divisor(x: Any) -> Any:
    """Integers with 1 in place of 0: the remainder of a division by 0 is 0."""
    return where(lax.eq(x, const(x, 0)), const(x, 1), x) if has_kind(x, np.integer) else x


def _float_divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Quotient rounded down and remainder with the sign of x2, consistent with each other as in Python's divmod."""
    if in_use() and x1.ndim and x2.ndim:  # beside choices whose cases must be cut alike
        x1, x2 = broadcast_alike("floor_divide", x1, x2)
    mod = lax.rem(x1, x2)
    # x1 - mod is a multiple of x2, but NaN where x2 is 0: there the quotient is that of x1 itself.
    quotient = lax.div(where(lax.eq(x2, const(x2, 0)), x1, lax.sub(x1, mod)), x2)
    zero = const(mod, 0)
    differs = lax.bitwise_and(lax.ne(mod, zero), lax.ne(lax.sign(x2), lax.sign(mod)))
    mod = where(differs, lax.add(mod, x2), mod)
    quotient = where(differs, lax.sub(quotient, const(quotient, 1)), quotient)
    return lax.round(quotient), mod


def divmod(x1: Any, x2: Any, /) -> tuple[Any, Any]:
    """(floor_divide(x1, x2), remainder(x1, x2)); TypeError for complex numbers."""
    x1, x2 = promote_numeric("divmod", x1, x2)
    if has_kind(x1, np.integer):
        return floor_divide(x1, x2), remainder(x1, x2)
    _no_complex("divmod", x1)
    return _float_divmod(x1, x2)


def _fmod(x1: Any, x2: Any) -> Any:
    _no_complex("fmod", x1)
    return lax.rem(x1, _nonzero_divisor(x2))


mod = named(lambda x1, x2, /: remainder(x1, x2), "mod", remainder.__doc__ or "")
_fmod_of_numbers = binary("fmod", _fmod, TO_NUMERIC, "")


def fmod(x1: Any, x2: Any, /) -> Any:
    """Remainder with the sign of x1, elementwise, as C's fmod; TypeError for complex."""
    if getattr(x1, "dtype", None) == getattr(x2, "dtype", 0) == np.bool_:  # True by False leaves True, as in JAX
        return lax.rem(*TO_NUMERIC("fmod", x1, x2))
    return _fmod_of_numbers(x1, x2)


# ---- powers


def power(x1: Any, x2: Any, /) -> Any:
    """x1 to the power x2, elementwise.

    A static integer exponent multiplies repeatedly (exact, defined for negative x1); an integer to a negative static
    power raises TypeError. Integers to an integer array's power wrap, and negative powers of them give 0 or +-1 as for
    1 and -1.
    """
    if (
        type(x2) in (int, bool)
        or isinstance(x2, np.integer)
        or (type(x2) is Array and x2.ndim == 0 and has_kind(x2, np.integer))
    ):
        exponent = operator.index(x2) if not isinstance(x2, Tracer) else None
        if exponent is not None and (type(x2) is not Array or not has_kind(as_array_or_none(x1), np.inexact)):
            if type(x2) is Array and isinstance(x1, Tracer):
                return _general_power(x1, x2)
            check_arraylike("power", x1, x2)
            (base,) = promote_dtypes_numeric(x1)
            return lax.integer_pow(base, exponent)
    return _general_power(x1, x2)


def as_array_or_none(x: Any) -> Any:
    """as_array of array-likes; a scalar array of a float dtype for others, which the caller refuses later."""
    try:
        return as_array(x)
    except (TypeError, ValueError):
        return make_array(0.0, np.dtype(np.float32))


def _general_power(x1: Any, x2: Any) -> Any:
    check_arraylike("power", x1, x2)
    if dtypes.issubdtype(dtype_of(x2), np.integer) and dtypes.issubdtype(dtype_of(x1), np.inexact):
        a, b = as_array(x1), as_array(x2)
        if b.ndim == 0:  # the type is the base's, weak or not
            return convert(lax.pow(a, b), a.dtype, is_weak(a))
        # Weakly typed only if the exponent is, too, although promoted together they would be.
        base, exponent = promote_numeric("power", a, b)
        return of_operands(lax.pow(base, exponent), a, b)
    weak = type(x2) is bool and is_weak(x1) and dtype_of(x1) != _BOOL
    x1, x2 = promote_numeric("power", x1, x2)
    if has_kind(x1, np.integer):
        return convert(_integer_power(x1, x2), x1.dtype, weak)
    return lax.pow(x1, x2)


def _integer_power(base: Any, exponent: Any) -> Any:
    """Power of integers by repeated squaring over the bits of the exponent; wraps on overflow."""
    base, exponent = broadcast_alike("power", base, exponent)
    bits = dtypes.iinfo(exponent.dtype).bits - (0 if has_kind(exponent, np.unsignedinteger) else 1)
    one, zero = const(base, 1), const(exponent, 0)

    def step(_: Any, state: Any) -> Any:
        result, square_, left = state
        odd = lax.ne(lax.bitwise_and(left, const(left, 1)), zero)
        return (
            where(odd, lax.mul(result, square_), result),
            lax.mul(square_, square_),
            lax.shift_right_logical(left, lax.full_like(left, 1)),
        )

    # Negative exponents: 1 and -1 have integer inverses; of all others the inverse rounds to 0 (of 0, too, by
    # convention).
    negative_exponent = lax.lt(exponent, zero)
    steps = lax.fori_loop(
        0,
        bits,
        step,
        (lax.full_like(base, 1), base, lax.abs(exponent) if has_kind(exponent, np.signedinteger) else exponent),
    )
    unit = lax.eq(lax.abs(base), one) if has_kind(base, np.signedinteger) else lax.eq(base, one)
    return where(lax.bitwise_and(negative_exponent, lax.bitwise_not(unit)), const(base, 0), steps[0])


pow = named(lambda x1, x2, /: power(x1, x2), "pow", power.__doc__ or "")
float_power = binary("float_power", lax.pow, TO_INEXACT, "x1 to the power x2, elementwise, as a float.")
sqrt = unary("sqrt", lax.sqrt, TO_INEXACT, "Square root, elementwise; NaN for negative real numbers.")
cbrt = unary("cbrt", lax.cbrt, TO_INEXACT, "Cube root of real numbers, elementwise.")


def hypot(x1: Any, x2: Any, /) -> Any:
    """sqrt(x1**2 + x2**2), elementwise, without overflow on the way; inf where either is infinite, even with NaN.

    Raises ValueError for complex numbers.
    """
    given = x1, x2 = promote_inexact("hypot", x1, x2)
    if has_kind(x1, np.complexfloating):
        raise ValueError(f"hypot: the arguments are of dtype {x1.dtype}; pass the abs() of complex numbers")
    x1, x2 = lax.abs(x1), lax.abs(x2)
    inf = const(x1, math.inf)
    infinite = lax.bitwise_or(lax.eq(x1, inf), lax.eq(x2, inf))
    large, small = lax.max(x1, x2), lax.min(x1, x2)
    at_zero = lax.eq(large, const(large, 0))
    ratio = lax.div(small, where(at_zero, const(large, 1), large))
    length = lax.mul(large, lax.sqrt(lax.add(const(ratio, 1), lax.square(ratio))))
    return of_scalars(where(infinite, inf, where(at_zero, large, length)), *given)


# ---- trigonometry


def _degrees_to_radians(x: Any) -> Any:
    return of_scalars(lax.mul(x, const(x, math.pi / 180)), x)


def _radians_to_degrees(x: Any) -> Any:
    return of_scalars(lax.mul(x, const(x, 180 / math.pi)), x)


_TRIGONOMETRIC = {
    "sin": (lax.sin, "Sine, elementwise."),
    "cos": (lax.cos, "Cosine, elementwise."),
    "tan": (lax.tan, "Tangent, elementwise."),
    "arcsin": (lax.asin, "Inverse sine, elementwise, in [-pi/2, pi/2]."),
    "arccos": (lax.acos, "Inverse cosine, elementwise, in [0, pi]."),
    "arctan": (lax.atan, "Inverse tangent, elementwise, in [-pi/2, pi/2]."),
    "sinh": (lax.sinh, "Hyperbolic sine, elementwise."),
    "cosh": (lax.cosh, "Hyperbolic cosine, elementwise."),
    "tanh": (lax.tanh, "Hyperbolic tangent, elementwise."),
    "arcsinh": (lax.asinh, "Inverse hyperbolic sine, elementwise."),
    "arccosh": (lax.acosh, "Inverse hyperbolic cosine, elementwise."),
    "arctanh": (lax.atanh, "Inverse hyperbolic tangent, elementwise."),
    "asin": (lax.asin, "Inverse sine, elementwise, in [-pi/2, pi/2]."),
    "acos": (lax.acos, "Inverse cosine, elementwise, in [0, pi]."),
    "atan": (lax.atan, "Inverse tangent, elementwise, in [-pi/2, pi/2]."),
    "asinh": (lax.asinh, "Inverse hyperbolic sine, elementwise."),
    "acosh": (lax.acosh, "Inverse hyperbolic cosine, elementwise."),
    "atanh": (lax.atanh, "Inverse hyperbolic tangent, elementwise."),
    "deg2rad": (_degrees_to_radians, "Degrees to radians, elementwise."),
    "radians": (_degrees_to_radians, "Degrees to radians, elementwise."),
    "rad2deg": (_radians_to_degrees, "Radians to degrees, elementwise."),
    "degrees": (_radians_to_degrees, "Radians to degrees, elementwise."),
}
_made = {name: unary(name, lax_fn, TO_INEXACT, doc) for name, (lax_fn, doc) in _TRIGONOMETRIC.items()}
sin, cos, tan, arcsin, arccos, arctan = (_made[n] for n in ("sin", "cos", "tan", "arcsin", "arccos", "arctan"))
sinh, cosh, tanh, arcsinh, arccosh, arctanh = (
    _made[n] for n in ("sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh")
)
asin, acos, atan, asinh, acosh, atanh = (_made[n] for n in ("asin", "acos", "atan", "asinh", "acosh", "atanh"))
deg2rad, radians, rad2deg, degrees = (_made[n] for n in ("deg2rad", "radians", "rad2deg", "degrees"))
arctan2 = binary("arctan2", lax.atan2, TO_INEXACT, "Angle of the point (x2, x1), elementwise, in [-pi, pi].")
atan2 = binary("atan2", lax.atan2, TO_INEXACT, "Angle of the point (x2, x1), elementwise, in [-pi, pi].")


def sinc(x: Any, /) -> Any:
    """sin(pi x) / (pi x), elementwise, 1 at 0; all derivatives up to the ninth are right at 0, too."""
    (x,) = promote_inexact("sinc", x)
    # The series also around 0, where the derivative of the quotient cancels.
    size = lax.abs(x)
    near = lax.lt(size, const(size, 0.1))
    y = lax.mul(x, const(x, math.pi))
    safe = where(near, const(y, 1), y)
    squared = lax.square(where(near, y, const(y, 0)))  # far away it would be inf, and its cotangent nan
    series = lax.full_like(y, (-1) ** 5 / math.factorial(11))
    for k in range(4, -1, -1):  # Horner's rule for the Maclaurin series in y**2
        series = lax.add(lax.mul(series, squared), lax.full_like(y, (-1) ** k / math.factorial(2 * k + 1)))
    return of_scalars(where(near, series, lax.div(lax.sin(safe), safe)), x)


# ---- rounding


def _rounding(name: str, lax_fn: Any, doc: str) -> Any:
    """Integers and booleans are rounded already."""

    def apply(x: Any) -> Any:
        return x if has_kind(x, np.integer) or x.dtype == _BOOL else lax_fn(x)

    return unary(name, apply, SAME, doc)


def _trunc(x: Any) -> Any:
    return where(lax.lt(x, const(x, 0)), lax.ceil(x), lax.floor(x))


def _rint(x: Any) -> Any:
    if has_kind(x, np.complexfloating):
        return lax.complex(_rint(lax.real(x)), _rint(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


floor = _rounding("floor", lax.floor, "Largest integer not above x, elementwise, in x's dtype.")
ceil = _rounding("ceil", lax.ceil, "Smallest integer not below x, elementwise, in x's dtype.")
_truncated = _rounding("trunc", _trunc, "Integer part, elementwise, in x's dtype.")


def trunc(x: Any) -> Any:
    """Integer part, elementwise, in x's dtype."""
    return _truncated(x)


def rint(x: Any, /) -> Any:
    """Nearest integer, elementwise, in a float dtype; halves go to the even neighbour."""
    check_arraylike("rint", x)
    x = as_array(x)
    if not has_kind(x, np.inexact):
        return convert(x, np.dtype(dtypes.canonicalize_dtype(np.float64)))
    return _rint(x)


def round(a: Any, decimals: int = 0, out: None = None) -> Any:
    """a rounded to a number of decimals, halves to the even neighbour; integers unchanged.

    Raises NotImplementedError for integers with decimals < 0, and for `out`.
    """
    (a,) = arrays("round", a)
    decimals = static_int(decimals, "round: argument 'decimals'")
    refuse_out("round", out)
    if has_kind(a, np.integer):
        if decimals < 0:
            raise NotImplementedError(f"round: decimals={decimals} is not supported for integers; expected at least 0")
        return a
    if not has_kind(a, np.inexact):
        raise ValueError(f"round: argument 'a' has dtype {a.dtype}, which is not inexact; expected integers or floats")
    if decimals == 0:
        return _rint(a)
    if has_kind(a, np.complexfloating):
        return lax.complex(round(lax.real(a), decimals), round(lax.imag(a), decimals))
    # float16 and bfloat16 would overflow in the product with the power of ten.
    small = dtypes.finfo(a.dtype).bits < 32
    work = lax.convert_element_type(a, np.float32) if small else a
    # Beyond every exponent of the type the power is infinite, whatever it is exactly.
    factor = const(work, 10 ** builtins.abs(decimals) if -400 < decimals < 400 else math.inf)
    if decimals > 0:
        result = lax.div(_rint(lax.mul(work, factor)), factor)
    else:
        result = lax.mul(_rint(lax.div(work, factor)), factor)
    return convert(result, a.dtype, is_weak(a) and a.ndim == 0)


around = named(lambda a, decimals=0, out=None: round(a, decimals, out), "around", round.__doc__ or "")


# ---- complex numbers


def real(val: Any, /) -> Any:
    """Real part, elementwise; real arrays as they are."""
    (val,) = arrays("real", val)
    return lax.real(val) if has_kind(val, np.complexfloating) else val


def imag(val: Any, /) -> Any:
    """Imaginary part, elementwise; zeros for real arrays."""
    (val,) = arrays("imag", val)
    return lax.imag(val) if has_kind(val, np.complexfloating) else lax.full_like(val, 0)


def conjugate(x: Any, /) -> Any:
    """Complex conjugate, elementwise; real arrays as they are."""
    (x,) = arrays("conjugate", x)
    return lax.conj(x) if has_kind(x, np.complexfloating) else x


def conj(x: Any, /) -> Any:
    """Complex conjugate, elementwise; real arrays as they are."""
    return conjugate(x)


def angle(z: Any, deg: bool = False) -> Any:
    """Phase of complex numbers in (-pi, pi], or in degrees."""
    check_flags("angle", deg=deg)
    (z,) = arrays("angle", z)
    re, im = real(z), imag(z)
    if not has_kind(re, np.inexact) or (has_kind(z, np.floating) and z.ndim == 0):
        dtype = dtypes.canonicalize_dtype(np.float64)
        re, im = convert(re, dtype), convert(im, dtype)
    result = lax.atan2(im, re)
    return _radians_to_degrees(result) if deg else result


# ---- the ones that are ufunc objects

add = as_ufunc(add_, "add", 2, 0)
subtract = as_ufunc(subtract_, "subtract", 2, None)
multiply = as_ufunc(multiply_, "multiply", 2, 1)
negative = as_ufunc(negative_, "negative", 1, None)
