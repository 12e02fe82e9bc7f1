"""Powers and roots: `sqrt`, `rsqrt`, `cbrt`, `square`, `integer_pow`, `pow` and `reciprocal`."""

from __future__ import annotations

import operator
from typing import Any

from pullback.core import hooks
from pullback.lax.elementwise.arithmetic import div_p, mul_p, op, sub_p, where
from pullback.lax.records import quotients
from pullback.lax.records.families import *
from pullback.lax.records.families import FLOAT_EDGES, broadcast_operands
from pullback.lax.records.operands import check_kind, dtype_name
from pullback.util.tracebacks import api_boundary

__all__ = [
    "cbrt",
    "cbrt_p",
    "integer_pow",
    "integer_pow_p",
    "pow",
    "pow_p",
    "reciprocal",
    "rsqrt",
    "rsqrt_p",
    "sqrt",
    "sqrt_p",
    "square",
    "square_p",
]

Array = Any
ArrayLike = Any


def _of_float(x, value):
    return mul_p.bind(x, constant(x, value))


sqrt_p = unary(
    "sqrt",
    doc="The square root, elementwise.",
    accepts=INEXACT,
    reference=np.sqrt,
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, div_p.bind(constant(x, 0.5), y)),
    lower=op("sqrt"),
    cost=8,
    samples=Samples(low=0.01, high=9.0, edges=FLOAT_EDGES, ulp=1),
)


def _rsqrt_reference(x):
    if x.dtype.kind == "c":
        return quotients.quotient(x.dtype.type(1), np.sqrt(x))
    return (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


rsqrt_p = unary(
    "rsqrt",
    doc="1 / sqrt(x), elementwise.",
    accepts=INEXACT,
    reference=_rsqrt_reference,
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, mul_p.bind(constant(x, -0.5), div_p.bind(y, x))),
    lower=op("rsqrt"),
    cost=12,
    samples=Samples(low=0.01, high=9.0, edges=FLOAT_EDGES, ulp=2),
)


def _cube_root(x):
    """In the type beyond f64, as C libraries, which NumPy calls on some processors, err by up to 2.6 ulp in f64."""
    return np.cbrt(x.astype(np.longdouble)).astype(x.dtype)


cbrt_p = unary(
    "cbrt",
    doc="The real cube root, elementwise.",
    accepts=FLOAT,
    reference=computed_wide(_cube_root),
    # Of the result alone, so that it is infinite at 0 and vanishes at infinity.
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, _of_float(integer_pow_p.bind(y, y=-2), 1 / 3)),
    lower=op("cbrt"),
    cost=20,
    samples=Samples(low=0.01, high=9.0, edges=FLOAT_EDGES, ulp=2),
)
square_p = unary(
    "square",
    doc="x * x, elementwise.",
    accepts=NUMERIC,
    reference=quotients.square,
    jvp=lambda x_dot, y, x: mul_p.bind(x_dot, mul_p.bind(constant(x, 2), x)),
    lower=op("square"),
    samples=Samples(edges=FLOAT_EDGES, ulp=1),
)


def _integer_pow_reference(x, y):
    if x.dtype.kind == "c":
        return quotients.power(x, y)
    if x.dtype.kind in "iu":
        return np.power(x, x.dtype.type(y)) if y < 128 else _wrapping_power(x, y)
    return np.power(x.astype(np.float64), float(y)).astype(x.dtype)


def _wrapping_power(x, y):
    out = np.ones_like(x)
    while y:
        if y & 1:
            out = out * x
        x, y = x * x, y >> 1
    return out


def _integer_pow_jvp(x_dot, out, x, y):
    if y == 0:
        return tangent_zero(x)
    if y == 1:
        return mul_p.bind(x_dot, constant(x, 1))
    return mul_p.bind(x_dot, mul_p.bind(constant(x, y), integer_pow_p.bind(x, y=y - 1) if y != 2 else x))


def _integer_pow_check(dtype, y, **params):
    if y < 0 and dtypes.kind_of(dtype) in "iu":
        raise TypeError(f"integer_pow: {dtype} cannot hold negative powers, got y={y}")
    return dtype


integer_pow_p = unary(
    "integer_pow",
    doc="x ** y for a static integer y.",
    accepts=NUMERIC,
    reference=_integer_pow_reference,
    jvp=_integer_pow_jvp,
    result=_integer_pow_check,
    cost=4,
    lower=lambda b, x, y: b.integer_pow(x, y=y),
    samples=Samples(
        cases=lambda rng: [
            Case((rng.uniform(0.5, 2.0, (5,)).astype(np.float32),), {"y": y}) for y in (-2, -1, 0, 1, 2, 3, 7)
        ]
    ),
)


def _pow_reference(x, y):
    if x.dtype.kind == "c":
        found = np.power(x.astype(np.complex128), y.astype(np.complex128))  # which errs by |y log x| units
        return np.where(x == 1, x.dtype.type(1), found.astype(x.dtype))  # 1 for NaN and infinity, too
    if y.size == 1 and y.reshape(())[()] == 0.5:
        # NumPy takes this for a square root, which differs at -inf and -0.
        x, y = np.broadcast_arrays(x, y)
        return np.where(x == -np.inf, np.inf, np.sqrt(x.astype(np.float64) + 0.0)).astype(x.dtype)
    return np.power(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)


def _pow_jvp_x(x_dot, out, x, y):
    # Strongly typed, as in JAX, whatever x and y are.
    x = _strong(x)
    exponent = _strong(y, x.dtype)
    zero, one = constant(x, 0), constant(x, 1)
    is_zero_power = lax.eq_p.bind(exponent, zero)
    lower_power = where(is_zero_power, one, sub_p.bind(exponent, one))  # keeps 0 ** 0 free of NaN
    return mul_p.bind(x_dot, where(is_zero_power, zero, mul_p.bind(exponent, pow_p.bind(x, lower_power))))


def _pow_jvp_y(y_dot, out, x, y):
    # log(0) stands for a limit that is 0 where 0 ** y is.
    base = where(lax.eq_p.bind(x, constant(x, 0)), constant(x, 1), x)
    return _strong(mul_p.bind(y_dot, mul_p.bind(lax.log_p.bind(base), out)))


def _strong(x, dtype=None):
    return hooks.convert(x, dtype or x.dtype, False)


def _pow_lower(b, x, y):
    return b.op("pow", x, y if y.dtype == x.dtype else b.convert(y, x.dtype))


pow_p = nary(
    "pow",
    2,
    doc="x ** y, elementwise; y may be of an integer dtype.",
    accepts=(INEXACT, REAL + COMPLEX),
    reference=_pow_reference,
    jvp=(_pow_jvp_x, _pow_jvp_y),
    lower=_pow_lower,
    cost=30,
    weak=True,
    samples=Samples(low=(0.1, -3.0), high=(3.0, 3.0), edges=FLOAT_EDGES, ulp=2),
)

sqrt = unary_function(sqrt_p, accuracy=True)
rsqrt = unary_function(rsqrt_p, accuracy=True)
cbrt = unary_function(cbrt_p, accuracy=True)
square = unary_function(square_p)


@api_boundary
def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x ** y, elementwise: x inexact, y of the same dtype or of an integer dtype. Raises TypeError for other dtypes."""
    x, y = broadcast_operands("pow", x, y, same_dtypes=False)
    base, exponent = typeof(x).dtype, typeof(y).dtype
    check_kind("pow", base, INEXACT, 0)
    if dtypes.kind_of(exponent) not in "iu" and exponent != base:
        raise TypeError(
            f"pow: a base of {dtype_name(base)} takes an exponent of the same dtype or of integers, got "
            f"{dtype_name(exponent)}"
        )
    return pow_p.bind(x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """x ** y for a static integer y. Raises TypeError for integers to a negative power."""
    return integer_pow_p.bind(as_array(x, "integer_pow"), y=operator.index(y))


@api_boundary
def reciprocal(x: ArrayLike) -> Array:
    """1 / x, elementwise."""
    return integer_pow_p.bind(as_array(x, "reciprocal"), y=-1)
