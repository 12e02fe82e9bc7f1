"""Pages of functions that round floats, take them apart or limit them."""

from pullback.manual._arguments import BROADCAST, ELEMENTWISE, OUT, PAIR_REAL_FLOATS, X_FLOATS, X_REAL

PAGES = {
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
