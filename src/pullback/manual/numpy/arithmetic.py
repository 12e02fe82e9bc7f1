"""Pages of sums, products, quotients, signs, parts, bits and logical operations, elementwise."""

from pullback.manual._arguments import (
    ARGS_ANY,
    ARGS_BITS,
    ARGS_NUMBERS,
    BOOLEAN_PAIRS,
    BOOLEANS,
    BROADCAST,
    ELEMENTWISE,
    PAIR_BITS,
    PAIR_FLOATS,
    PAIR_NUMBERS,
    PAIR_REAL,
    UFUNC_OUT,
    X_ANY,
    X_BITS,
    X_NUMBERS,
    X_REAL,
)

PAGES = {
    "abs absolute": f"""
Arguments:
{X_NUMBERS}
Returns:
    Array of the shape and dtype of x; of complex numbers a float of the same precision.
Raises:
    TypeError for lists.
Unlike numpy.abs:
    Lists are not accepted. The absolute value of the smallest integer of a type is itself.

>>> jnp.abs(jnp.array([-2, 0, 3]))
Array([2, 0, 3], dtype=int32)
>>> jnp.abs(jnp.array([3 + 4j]))
Array([5.], dtype=float32)
""",
    "fabs": f"""
Arguments:
{X_REAL}
Returns:
    {ELEMENTWISE}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.fabs(jnp.array([-2, 3]))
Array([2., 3.], dtype=float32)
""",
    "negative": f"""
Arguments:
    args: the operand, an array or scalar of numbers.
{UFUNC_OUT}
Returns:
    Array of the shape and dtype of the operand; unsigned integers wrap.
Raises:
    TypeError for booleans and lists.

>>> jnp.negative(jnp.array([1, -2]))
Array([-1,  2], dtype=int32)
>>> jnp.negative(jnp.uint8(1))
Array(255, dtype=uint8)
""",
    "positive": f"""
Arguments:
{X_NUMBERS}
Returns:
    x as an array.
Raises:
    TypeError for lists.

>>> jnp.positive(jnp.array([-1.0, 2.0]))
Array([-1.,  2.], dtype=float32)
""",
    "sign": f"""
Arguments:
{X_NUMBERS}
Returns:
    Array of the shape and dtype of x; of complex numbers x / |x|, and 0 for 0.
Raises:
    TypeError for lists.

>>> jnp.sign(jnp.array([-3.5, 0.0, 2.0]))
Array([-1.,  0.,  1.], dtype=float32)
>>> jnp.sign(jnp.array([3 + 4j]))
Array([0.6+0.8j], dtype=complex64)
""",
    "add": f"""
Arguments:
{ARGS_NUMBERS}
{UFUNC_OUT}
Returns:
    {BROADCAST} Integers wrap around; booleans give their disjunction.
Raises:
    TypeError for lists; ValueError if the shapes do not broadcast.
Unlike numpy.add:
    Nothing is written into `out`. Methods of the ufunc (reduce, accumulate, at, reduceat, outer) return new arrays.

>>> jnp.add(jnp.array([1, 2]), 10)
Array([11, 12], dtype=int32)
>>> jnp.add.reduce(jnp.array([1, 2, 3]))
Array(6, dtype=int32)
""",
    "subtract": f"""
Arguments:
{ARGS_NUMBERS}
{UFUNC_OUT}
Returns:
    {BROADCAST} Integers wrap around.
Raises:
    TypeError for booleans and lists.

>>> jnp.subtract(jnp.array([5, 7]), jnp.array([1, 2]))
Array([4, 5], dtype=int32)
>>> jnp.subtract(jnp.uint8(1), jnp.uint8(2))
Array(255, dtype=uint8)
""",
    "multiply": f"""
Arguments:
{ARGS_NUMBERS}
{UFUNC_OUT}
Returns:
    {BROADCAST} Integers wrap around; booleans give their conjunction.
Raises:
    TypeError for lists.

>>> jnp.multiply(jnp.array([[1], [2]]), jnp.array([10, 20]))
Array([[10, 20],
       [20, 40]], dtype=int32)
""",
    "divide true_divide": f"""
Arguments:
{PAIR_FLOATS}
Returns:
    {BROADCAST} Division by 0 gives an infinity or NaN.
Raises:
    TypeError for lists.
Unlike numpy.divide:
    Integers give float32, not float64, unless `jax_enable_x64` is set. There are no warnings.

>>> jnp.divide(jnp.array([1, 3, -1]), jnp.array([2, 2, 0]))
Array([ 0.5,  1.5, -inf], dtype=float32)
""",
    "floor_divide": f"""
Arguments:
{PAIR_REAL}
Returns:
    {BROADCAST} An integer divided by 0 gives a number that means nothing.
Raises:
    TypeError for complex numbers and lists.

>>> jnp.floor_divide(jnp.array([7, -7]), 2)
Array([ 3, -4], dtype=int32)
>>> jnp.floor_divide(7.5, 2)
Array(3., dtype=float32, weak_type=True)
""",
    "remainder mod": f"""
Arguments:
{PAIR_REAL}
Returns:
    {BROADCAST}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.remainder(jnp.array([7, -7]), 3)
Array([1, 2], dtype=int32)
>>> jnp.remainder(jnp.array([5.5, -5.5]), 2.0)
Array([1.5, 0.5], dtype=float32)
""",
    "fmod": f"""
Arguments:
{PAIR_REAL}
Returns:
    {BROADCAST}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.fmod(jnp.array([7, -7]), 3)
Array([ 1, -1], dtype=int32)
""",
    "divmod": f"""
Arguments:
{PAIR_REAL}
Returns:
    A pair of arrays of the broadcast shape and the promoted dtype.
Raises:
    TypeError for complex numbers and lists.

>>> jnp.divmod(jnp.array([7, -7]), 3)
(Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
""",
    "heaviside": f"""
Arguments:
    x1: array or scalar of real numbers.
    x2: array or scalar of real numbers: the value at 0. Both are promoted to one float dtype and broadcast.
Returns:
    {BROADCAST}
Raises:
    TypeError for complex numbers and lists.

>>> jnp.heaviside(jnp.array([-2.0, 0.0, 2.0]), 0.5)
Array([0. , 0.5, 1. ], dtype=float32)
""",
    "maximum": f"""
Arguments:
{ARGS_NUMBERS}
{UFUNC_OUT}
Returns:
    {BROADCAST} Complex numbers are compared by their real, then imaginary
    parts.
Raises:
    TypeError for lists.

>>> jnp.maximum(jnp.array([1.0, jnp.nan, 5.0]), 3.0)
Array([ 3., nan,  5.], dtype=float32)
""",
    "minimum": f"""
Arguments:
{ARGS_NUMBERS}
{UFUNC_OUT}
Returns:
    {BROADCAST} Complex numbers are compared by their real, then imaginary
    parts.
Raises:
    TypeError for lists.

>>> jnp.minimum(jnp.array([1.0, jnp.nan, 5.0]), 3.0)
Array([ 1., nan,  3.], dtype=float32)
""",
    "fmax": f"""
Arguments:
{PAIR_NUMBERS}
Returns:
    {BROADCAST} NaN only where both are.
Raises:
    TypeError for lists.

>>> jnp.fmax(jnp.array([1.0, jnp.nan, 5.0]), 3.0)
Array([3., 3., 5.], dtype=float32)
""",
    "fmin": f"""
Arguments:
{PAIR_NUMBERS}
Returns:
    {BROADCAST} NaN only where both are.
Raises:
    TypeError for lists.

>>> jnp.fmin(jnp.array([1.0, jnp.nan, 5.0]), 3.0)
Array([1., 3., 3.], dtype=float32)
""",
    "real": """
Arguments:
    val: array or scalar of numbers.
Returns:
    Array of the shape of val, of real numbers of the same precision.
Raises:
    TypeError for lists.

>>> jnp.real(jnp.array([1 + 2j, 3.0]))
Array([1., 3.], dtype=float32)
""",
    "imag": """
Arguments:
    val: array or scalar of numbers.
Returns:
    Array of the shape of val, of real numbers of the same precision.
Raises:
    TypeError for lists.

>>> jnp.imag(jnp.array([1 + 2j, 3.0]))
Array([2., 0.], dtype=float32)
""",
    "conjugate conj": f"""
Arguments:
{X_NUMBERS}
Returns:
    Array of the shape and dtype of x.
Raises:
    TypeError for lists.

>>> jnp.conj(jnp.array([1 + 2j, 3.0]))
Array([1.-2.j, 3.-0.j], dtype=complex64)
""",
    "gcd": f"""
Arguments:
    x1, x2: arrays or scalars of integers, which are promoted to one dtype and broadcast.
Returns:
    {BROADCAST}
Raises:
    ValueError for other dtypes.

>>> jnp.gcd(jnp.array([12, 18, 0]), 8)
Array([4, 2, 8], dtype=int32)
""",
    "lcm": f"""
Arguments:
    x1, x2: arrays or scalars of integers, which are promoted to one dtype and broadcast.
Returns:
    {BROADCAST}
Raises:
    ValueError for other dtypes.

>>> jnp.lcm(jnp.array([4, 6]), 10)
Array([20, 30], dtype=int32)
""",
    "bitwise_and": f"""
Arguments:
{ARGS_BITS}
{UFUNC_OUT}
Returns:
    {BROADCAST}
Raises:
    TypeError for floats and lists.

>>> jnp.bitwise_and(jnp.array([0b1100, 0b1010]), 0b0110)
Array([4, 2], dtype=int32)
""",
    "bitwise_or": f"""
Arguments:
{ARGS_BITS}
{UFUNC_OUT}
Returns:
    {BROADCAST}
Raises:
    TypeError for floats and lists.

>>> jnp.bitwise_or(jnp.array([0b1100, 0b1010]), 0b0110)
Array([14, 14], dtype=int32)
""",
    "bitwise_xor": f"""
Arguments:
{ARGS_BITS}
{UFUNC_OUT}
Returns:
    {BROADCAST}
Raises:
    TypeError for floats and lists.

>>> jnp.bitwise_xor(jnp.array([0b1100, 0b1010]), 0b0110)
Array([10, 12], dtype=int32)
""",
    "invert bitwise_not bitwise_invert": f"""
Arguments:
{X_BITS}
Returns:
    Array of the shape and dtype of x.
Raises:
    TypeError for floats and lists.

>>> jnp.invert(jnp.array([0, 5]))
Array([-1, -6], dtype=int32)
>>> jnp.invert(jnp.array([True, False]))
Array([False,  True], dtype=bool)
""",
    "bitwise_count": f"""
Arguments:
{X_BITS}
Returns:
    Array of uint8, of the shape of x.
Raises:
    TypeError for floats and lists.

>>> jnp.bitwise_count(jnp.array([0, 7, -7]))
Array([0, 3, 3], dtype=uint8)
""",
    "left_shift bitwise_left_shift": f"""
Arguments:
{PAIR_BITS}
Returns:
    {BROADCAST} Shifts by the number of bits or more give 0.
Raises:
    TypeError for floats and lists.

>>> jnp.left_shift(jnp.array([1, 3]), 2)
Array([ 4, 12], dtype=int32)
>>> jnp.left_shift(jnp.int8(1), 8)
Array(0, dtype=int8)
""",
    "right_shift bitwise_right_shift": f"""
Arguments:
{PAIR_BITS}
Returns:
    {BROADCAST} The sign of signed integers is kept.
Raises:
    TypeError for floats and lists.

>>> jnp.right_shift(jnp.array([8, -8]), 2)
Array([ 2, -2], dtype=int32)
""",
    "logical_and": f"""
Arguments:
{ARGS_ANY}
{UFUNC_OUT}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.logical_and(jnp.array([0, 1, 2]), jnp.array([1, 0, 5]))
Array([False, False,  True], dtype=bool)
""",
    "logical_or": f"""
Arguments:
{ARGS_ANY}
{UFUNC_OUT}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.logical_or(jnp.array([0, 1, 0]), jnp.array([0, 0, 5]))
Array([False,  True,  True], dtype=bool)
""",
    "logical_xor": f"""
Arguments:
{ARGS_ANY}
{UFUNC_OUT}
Returns:
    {BOOLEAN_PAIRS}
Raises:
    TypeError for lists.

>>> jnp.logical_xor(jnp.array([0, 1, 2]), jnp.array([0, 0, 5]))
Array([False,  True, False], dtype=bool)
""",
    "logical_not": f"""
Arguments:
{X_ANY}
Returns:
    {BOOLEANS}
Raises:
    TypeError for lists.

>>> jnp.logical_not(jnp.array([0.0, 2.5]))
Array([ True, False], dtype=bool)
""",
    "ufunc": """
>>> jnp.add.reduce(jnp.array([1, 2, 3])), jnp.add.nin, jnp.add.identity
(Array(6, dtype=int32), 2, 0)
>>> jnp.multiply.outer(jnp.array([1, 2]), jnp.array([3, 4]))
Array([[3, 4],
       [6, 8]], dtype=int32)
""",
}
