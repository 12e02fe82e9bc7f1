"""Pages of elementary functions: powers, exponentials, trigonometric ones, and those that round floats, take them apart
or limit them.
"""

from pullback.manual._arguments import (
    ARGS_FLOATS,
    BROADCAST,
    ELEMENTWISE,
    OUT,
    PAIR_FLOATS,
    PAIR_NUMBERS,
    PAIR_REAL_FLOATS,
    UFUNC_OUT,
    X_FLOATS,
    X_NUMBERS,
    X_REAL,
)

PAGES = {
    "power pow": f"""
Arguments:
{PAIR_NUMBERS}
Returns:
    {BROADCAST} A negative real number to a power that is no integer is NaN.
Raises:
    TypeError for an integer to a negative power that is a Python integer, and for lists.
Unlike numpy.power:
    Integers to negative powers in an array do not raise. Integers wrap around.

>>> jnp.power(jnp.array([1, 2, 3]), 2)
Array([1, 4, 9], dtype=int32)
>>> jnp.power(2.0, jnp.array([-1, 0, 3]))
Array([0.5, 1. , 8. ], dtype=float32)
""",
    "float_power": f"""
Arguments:
{PAIR_FLOATS}
Returns:
    {BROADCAST}
Raises:
    TypeError for lists.
Unlike numpy.float_power:
    The result has the default float, not at least float64.

>>> jnp.float_power(jnp.array([2, 4]), -1)
Array([0.5 , 0.25], dtype=float32)
""",
    "reciprocal": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.
Unlike numpy.reciprocal:
    Integers give floats.

>>> jnp.reciprocal(jnp.array([1, 2, 4]))
Array([1.  , 0.5 , 0.25], dtype=float32)
""",
    "square": f"""
Arguments:
{X_NUMBERS}
Returns:
    Array of the shape and dtype of x; integers wrap around.
Raises:
    TypeError for lists.

>>> jnp.square(jnp.array([-3, 4]))
Array([ 9, 16], dtype=int32)
""",
    "sqrt": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.
Unlike numpy.sqrt:
    Negative numbers give NaN without a warning.

>>> jnp.sqrt(jnp.array([4.0, 9.0, -1.0]))
Array([ 2.,  3., nan], dtype=float32)
""",
    "cbrt": f"""
Arguments:
{X_REAL}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.cbrt(jnp.array([8.0, -27.0]))
Array([ 2., -3.], dtype=float32)
""",
    "exp": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.exp(jnp.array([0.0, 1.0])).round(3)
Array([1.   , 2.718], dtype=float32)
""",
    "exp2": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.exp2(jnp.array([-1, 0, 3]))
Array([0.5, 1. , 8. ], dtype=float32)
""",
    "expm1": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> print(f"{{jnp.expm1(1e-7):.3e}} {{jnp.exp(1e-7) - 1:.3e}}")
1.000e-07 1.192e-07
""",
    "log": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} 0 gives -inf, negative real numbers NaN.
Raises:
    TypeError for lists.
Unlike numpy.log:
    There are no warnings.

>>> jnp.log(jnp.array([1.0, 0.0, -1.0]))
Array([  0., -inf,  nan], dtype=float32)
""",
    "log2": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} 0 gives -inf, negative real numbers NaN.
Raises:
    TypeError for lists.

>>> jnp.log2(jnp.array([1, 2, 8]))
Array([0., 1., 3.], dtype=float32)
""",
    "log10": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} 0 gives -inf, negative real numbers NaN.
Raises:
    TypeError for lists.

>>> jnp.log10(jnp.array([1.0, 10.0, 100.0])).round(3)
Array([0., 1., 2.], dtype=float32)
""",
    "log1p": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} -1 gives -inf, real numbers below it NaN.
Raises:
    TypeError for lists.

>>> print(f"{{jnp.log1p(1e-10):.3e}} {{jnp.log(1 + jnp.float32(1e-10)):.3e}}")
1.000e-10 0.000e+00
""",
    "logaddexp": f"""
Arguments:
{ARGS_FLOATS}
{UFUNC_OUT}
Returns:
    {BROADCAST}
Raises:
    TypeError for lists.

>>> jnp.logaddexp(-1000.0, jnp.array([-1000.0, 0.0])).round(3)
Array([-999.307,    0.   ], dtype=float32)
""",
    "logaddexp2": f"""
Arguments:
{ARGS_FLOATS}
{UFUNC_OUT}
Returns:
    {BROADCAST}
Raises:
    TypeError for lists.

>>> jnp.logaddexp2(jnp.array([0.0, 3.0]), jnp.array([0.0, 3.0]))
Array([1., 4.], dtype=float32)
""",
    "i0": f"""
Arguments:
{X_REAL}
Returns:
    {ELEMENTWISE}

>>> jnp.i0(jnp.array([0.0, 1.0])).round(3)
Array([1.   , 1.266], dtype=float32)
""",
    "sin": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.sin(jnp.array([0.0, jnp.pi / 2])).round(3)
Array([0., 1.], dtype=float32)
""",
    "cos": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.cos(jnp.array([0.0, jnp.pi])).round(3)
Array([ 1., -1.], dtype=float32)
""",
    "tan": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.tan(jnp.array([0.0, jnp.pi / 4])).round(3)
Array([0., 1.], dtype=float32)
""",
    "arcsin asin": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} Real numbers outside of [-1, 1] give NaN.
Raises:
    TypeError for lists.

>>> jnp.arcsin(jnp.array([0.0, 1.0, 2.0])).round(3)
Array([0.   , 1.571,   nan], dtype=float32)
""",
    "arccos acos": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} Real numbers outside of [-1, 1] give NaN.
Raises:
    TypeError for lists.

>>> jnp.arccos(jnp.array([1.0, -1.0, 2.0])).round(3)
Array([0.   , 3.142,   nan], dtype=float32)
""",
    "arctan atan": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.arctan(jnp.array([0.0, 1.0, jnp.inf])).round(3)
Array([0.   , 0.785, 1.571], dtype=float32)
""",
    "arctan2 atan2": f"""
Arguments:
    x1: array or scalar of real numbers: the second coordinate of the point, y.
    x2: the same, the first coordinate, x. Both are promoted to one float dtype and broadcast.
Returns:
    {BROADCAST}
Raises:
    TypeError for lists.

>>> jnp.arctan2(jnp.array([1.0, -1.0]), jnp.array([-1.0, -1.0])).round(3)
Array([ 2.356, -2.356], dtype=float32)
""",
    "sinh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.sinh(jnp.array([0.0, 1.0])).round(3)
Array([0.   , 1.175], dtype=float32)
""",
    "cosh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.cosh(jnp.array([0.0, 1.0])).round(3)
Array([1.   , 1.543], dtype=float32)
""",
    "tanh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.tanh(jnp.array([0.0, 1.0, 100.0])).round(3)
Array([0.   , 0.762, 1.   ], dtype=float32)
""",
    "arcsinh asinh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.arcsinh(jnp.array([0.0, 1.0])).round(3)
Array([0.   , 0.881], dtype=float32)
""",
    "arccosh acosh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} Real numbers below 1 give NaN.
Raises:
    TypeError for lists.

>>> jnp.arccosh(jnp.array([1.0, 2.0, 0.0])).round(3)
Array([0.   , 1.317,   nan], dtype=float32)
""",
    "arctanh atanh": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} -1 and 1 give infinities, real numbers beyond them
    NaN.
Raises:
    TypeError for lists.

>>> jnp.arctanh(jnp.array([0.0, 0.5, 1.0])).round(3)
Array([0.   , 0.549,   inf], dtype=float32)
""",
    "sinc": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.sinc(jnp.array([0.0, 0.5])).round(3)
Array([1.   , 0.637], dtype=float32)
""",
    "deg2rad radians": f"""
Arguments:
{X_REAL}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.deg2rad(jnp.array([0, 180])).round(3)
Array([0.   , 3.142], dtype=float32)
""",
    "rad2deg degrees": f"""
Arguments:
{X_REAL}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.rad2deg(jnp.array([0.0, jnp.pi])).round(3)
Array([  0., 180.], dtype=float32)
""",
    "hypot": f"""
Arguments:
{PAIR_REAL_FLOATS}
Returns:
    {BROADCAST}
Raises:
    TypeError for lists.

>>> jnp.hypot(jnp.array([3.0, 5.0]), jnp.array([4.0, 12.0]))
Array([ 5., 13.], dtype=float32)
""",
    "angle": """
Arguments:
    z: array or scalar of numbers.
    deg: whether to give degrees instead of radians.
Returns:
    Array of floats of the shape of z.
Raises:
    TypeError for lists.

>>> jnp.angle(jnp.array([1.0, 1j, -1.0]), deg=True)
Array([  0.,  90., 180.], dtype=float32)
""",
    "floor": f"""
Arguments:
{X_REAL}
Returns:
    Array of the shape and dtype of x; integers stay as they are.
Raises:
    TypeError for complex numbers and lists.

>>> jnp.floor(jnp.array([1.5, -1.5]))
Array([ 1., -2.], dtype=float32)
""",
    "ceil": f"""
Arguments:
{X_REAL}
Returns:
    Array of the shape and dtype of x; integers stay as they are.
Raises:
    TypeError for complex numbers and lists.

>>> jnp.ceil(jnp.array([1.5, -1.5]))
Array([ 2., -1.], dtype=float32)
""",
    "trunc": """
Arguments:
    x: array or scalar of real numbers.
Returns:
    Array of the shape and dtype of x; integers stay as they are.
Raises:
    TypeError for lists.

>>> jnp.trunc(jnp.array([1.5, -1.5]))
Array([ 1., -1.], dtype=float32)
""",
    "rint": f"""
Arguments:
{X_FLOATS}
Returns:
    {ELEMENTWISE} Of complex numbers both parts are rounded.
Raises:
    TypeError for lists.

>>> jnp.rint(jnp.array([0.5, 1.5, -1.2]))
Array([ 0.,  2., -1.], dtype=float32)
""",
    "round around": f"""
Arguments:
    a: array or scalar of numbers; of complex ones both parts are rounded.
    decimals: static integer: places behind the point. Negative ones round before it.
{OUT}
Returns:
    Array of the shape and dtype of a.
Raises:
    TypeError for lists.
Unlike numpy.round:
    Nothing is written into `out`. Integers are not rounded to tens or hundreds.

>>> jnp.round(jnp.array([0.5, 1.5, 2.25]))
Array([0., 2., 2.], dtype=float32)
>>> jnp.round(jnp.array([1.25, 123.0]), 1)
Array([  1.2, 123. ], dtype=float32)
""",
    "modf": f"""
Arguments:
    x: array or scalar of real numbers; integers become the default float.
{OUT}
Returns:
    A pair of arrays of the shape of x: what is behind the point, and the integers.
Raises:
    TypeError for lists.

>>> jnp.modf(jnp.array([1.5, -2.25]))
(Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
""",
    "frexp": """
Arguments:
    x: array or scalar of real numbers; integers become the default float.
Returns:
    A pair of arrays of the shape of x: mantissas of its dtype and exponents of int32.
Raises:
    TypeError for lists.

>>> jnp.frexp(jnp.array([8.0, 0.75]))
(Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
""",
    "ldexp": """
Arguments:
    x1: array or scalar of real numbers; integers become the default float.
    x2: array or scalar of integers: the powers of two. Both broadcast.
Returns:
    Array of the broadcast shape, of the float dtype of x1.
Raises:
    ValueError if x2 is not of integers.

>>> jnp.ldexp(jnp.array([0.5, 3.0]), jnp.array([4, -1]))
Array([8. , 1.5], dtype=float32)
""",
    "copysign": f"""
Arguments:
{PAIR_REAL_FLOATS}
Returns:
    {BROADCAST}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.copysign(jnp.array([1.0, 2.0]), jnp.array([-0.0, 3.0]))
Array([-1.,  2.], dtype=float32)
""",
    "nextafter": f"""
Arguments:
    x, y: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    {BROADCAST}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.nextafter(jnp.float32(1), 2) - 1 == jnp.finfo(jnp.float32).eps
Array(True, dtype=bool)
""",
    "spacing": f"""
Arguments:
    x: array or scalar of real numbers; integers become the default float.
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for lists.

>>> jnp.spacing(jnp.array([1.0, 4.0])) / jnp.finfo(jnp.float32).eps
Array([1., 4.], dtype=float32)
""",
    "clip": """
Arguments:
    arr: array or scalar of real numbers.
    min: array or scalar, or None for no lower bound. It broadcasts with arr.
    max: array or scalar, or None for no upper bound. Where min is above max, max is taken.
Returns:
    Array of the broadcast shape, of the promoted dtype.
Raises:
    ValueError for complex numbers.

>>> jnp.clip(jnp.arange(6), 1, 4)
Array([1, 1, 2, 3, 4, 4], dtype=int32)
>>> jnp.clip(jnp.array([-1.5, 0.5]), max=0.0)
Array([-1.5,  0. ], dtype=float32)
""",
    "nan_to_num": """
Arguments:
    x: array or scalar of numbers; integers stay as they are.
    copy: ignored, since arrays are immutable.
    nan: number for NaN.
    posinf: number for inf; None for the largest of the dtype.
    neginf: number for -inf; None for the smallest of the dtype.
Returns:
    Array of the shape and dtype of x; of complex numbers both parts are replaced.
Raises:
    TypeError for lists.
Unlike numpy.nan_to_num:
    x is never changed, also with copy=False.

>>> jnp.nan_to_num(jnp.array([1.0, jnp.nan, jnp.inf]), posinf=9.0)
Array([1., 0., 9.], dtype=float32)
""",
}
