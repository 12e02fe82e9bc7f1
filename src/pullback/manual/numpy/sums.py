"""Pages of sums, means and other reductions over axes, and of cumulative ones."""

from pullback.manual._arguments import (
    AXES,
    AXIS,
    AXIS_OR_FLAT,
    DTYPE,
    INITIAL_LEAST,
    KEEPDIMS,
    OUT,
    REDUCED,
    WHERE_TAKEN,
)

PAGES = {
    "sum": f"""
Arguments:
    a: array of any shape and dtype.
{AXES}
    dtype: dtype in which to add, and of the result; None for that of a, or the default integer for shorter ones.
{OUT}
{KEEPDIMS}
    initial: number to start from; None is 0.
{WHERE_TAKEN}
    promote_integers: whether integers shorter than the default one are added in it.
Returns:
    {REDUCED}
Raises:
    ValueError if an axis is out of range or named twice; TypeError if an argument is of another kind.
Unlike numpy.sum:
    Nothing is written into `out`. Floats are added in their own dtype, 16-bit ones in 32 bits.

>>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
Array([4, 6], dtype=int32)
>>> jnp.sum(jnp.array([1.0, 2.0, 4.0]), where=jnp.array([True, False, True]))
Array(5., dtype=float32)
""",
    "prod": f"""
Arguments:
    a: array of any shape and dtype.
{AXES}
    dtype: dtype in which to multiply, and of the result; None for that of a, or the default integer for shorter ones.
{OUT}
{KEEPDIMS}
    initial: number to start from; None is 1.
{WHERE_TAKEN}
    promote_integers: whether integers shorter than the default one are multiplied in it.
Returns:
    {REDUCED}
Raises:
    ValueError if an axis is out of range; TypeError for lists.
Unlike numpy.prod:
    Integers are int32 unless `jax_enable_x64` is set, and wrap around sooner.

>>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1)
Array([ 2, 12], dtype=int32)
""",
    "max amax": f"""
Arguments:
    a: array of real or complex numbers.
{AXES}
{OUT}
{KEEPDIMS}
{INITIAL_LEAST}
{WHERE_TAKEN}
Returns:
    {REDUCED} Complex numbers are compared by their real, then imaginary parts.
Raises:
    ValueError without elements, and for `where` without `initial`; TypeError for lists.

>>> jnp.max(jnp.array([[1, 5], [4, 2]]), axis=0)
Array([4, 5], dtype=int32)
>>> jnp.max(jnp.array([1.0, jnp.nan]))
Array(nan, dtype=float32)
""",
    "min amin": f"""
Arguments:
    a: array of real or complex numbers.
{AXES}
{OUT}
{KEEPDIMS}
{INITIAL_LEAST}
{WHERE_TAKEN}
Returns:
    {REDUCED} Complex numbers are compared by their real, then imaginary parts.
Raises:
    ValueError without elements, and for `where` without `initial`; TypeError for lists.

>>> jnp.min(jnp.array([[1, 5], [4, 2]]), axis=0)
Array([1, 2], dtype=int32)
>>> jnp.min(jnp.arange(3), initial=-5)
Array(-5, dtype=int32)
""",
    "ptp": f"""
Arguments:
    a: array of numbers.
{AXES}
{OUT}
{KEEPDIMS}
Returns:
    {REDUCED}
Raises:
    TypeError for booleans and lists.

>>> jnp.ptp(jnp.array([[1, 5], [4, 2]]), axis=1)
Array([4, 2], dtype=int32)
""",
    "all": f"""
Arguments:
    a: array of any dtype.
{AXES}
{OUT}
{KEEPDIMS}
{WHERE_TAKEN}
Returns:
    Array of bool, of the shape of a without the axes; True without elements.
Raises:
    ValueError if an axis is out of range; TypeError for lists.

>>> jnp.all(jnp.array([[1, 0], [2, 3]]), axis=1)
Array([False,  True], dtype=bool)
""",
    "any": f"""
Arguments:
    a: array of any dtype.
{AXES}
{OUT}
{KEEPDIMS}
{WHERE_TAKEN}
Returns:
    Array of bool, of the shape of a without the axes; False without elements.
Raises:
    ValueError if an axis is out of range; TypeError for lists.

>>> jnp.any(jnp.array([[1, 0], [0, 0]]), axis=1)
Array([ True, False], dtype=bool)
""",
    "count_nonzero": f"""
Arguments:
    a: array of any dtype.
{AXES}
{KEEPDIMS}
Returns:
    {REDUCED} Its dtype is the default integer.
Raises:
    TypeError for lists.

>>> jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0)
Array([2, 1], dtype=int32)
""",
    "mean": f"""
Arguments:
    a: array of numbers.
{AXES}
    dtype: dtype in which to add, and of the result; None for that of a, or the default float for integers.
{OUT}
{KEEPDIMS}
{WHERE_TAKEN}
Returns:
    {REDUCED}
Raises:
    ValueError if an axis is out of range; TypeError for lists.
Unlike numpy.mean:
    Integers give float32 unless `jax_enable_x64` is set. There is no warning for the mean of nothing.

>>> jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0)
Array([2., 3.], dtype=float32)
""",
    "average": f"""
Arguments:
    a: array of numbers.
{AXES}
    weights: array of the shape of a, or of that of the axes; None for equal weights.
    returned: whether to give the sum of the weights, too.
{KEEPDIMS}
Returns:
    {REDUCED} With `returned` a pair: it, and the sums of the weights, of the same
    shape.
Raises:
    TypeError for lists.
Unlike numpy.average:
    Weights whose sum is 0 give NaN instead of an error.

>>> jnp.average(jnp.array([1.0, 2.0, 4.0]), weights=jnp.array([1, 1, 2]))
Array(2.75, dtype=float32)
""",
    "var": f"""
Arguments:
    a: array of numbers.
{AXES}
    dtype: dtype of the computation and of the result; None for that of a, or the default float for integers.
{OUT}
    ddof: number that is subtracted from the count, to give the divisor.
{KEEPDIMS}
{WHERE_TAKEN}
    mean: the mean, if known, with the axes kept with size 1.
    correction: another name of ddof.
Returns:
    {REDUCED} It is real.
Raises:
    ValueError if both ddof and correction are given; TypeError for lists.
Unlike numpy.var:
    Integers give float32 unless `jax_enable_x64` is set.

>>> jnp.var(jnp.array([1.0, 2.0, 3.0, 4.0]))
Array(1.25, dtype=float32)
>>> jnp.var(jnp.array([1.0, 3.0]), ddof=1)
Array(2., dtype=float32)
""",
    "std": f"""
Arguments:
    a: array of numbers.
{AXES}
    dtype: dtype of the computation and of the result; None for that of a, or the default float for integers.
{OUT}
    ddof: number that is subtracted from the count, to give the divisor.
{KEEPDIMS}
{WHERE_TAKEN}
    mean: the mean, if known, with the axes kept with size 1.
    correction: another name of ddof.
Returns:
    {REDUCED} It is real.
Raises:
    ValueError if both ddof and correction are given; TypeError for lists.
Unlike numpy.std:
    Integers give float32 unless `jax_enable_x64` is set.

>>> jnp.std(jnp.array([[1.0, 3.0], [2.0, 10.0]]), axis=1)
Array([1., 4.], dtype=float32)
""",
    "nansum": f"""
Arguments:
    a: array of numbers.
{AXES}
    dtype: dtype in which to add, and of the result; None for that of a, or the default integer for shorter ones.
{OUT}
{KEEPDIMS}
    initial: number to start from; None is 0.
{WHERE_TAKEN}
Returns:
    {REDUCED}
Raises:
    ValueError if an axis is out of range; TypeError for lists.

>>> jnp.nansum(jnp.array([1.0, jnp.nan, 2.0]))
Array(3., dtype=float32)
""",
    "nanprod": f"""
Arguments:
    a: array of numbers.
{AXES}
    dtype: dtype in which to multiply, and of the result; None for that of a, or the default integer for shorter ones.
{OUT}
{KEEPDIMS}
    initial: number to start from; None is 1.
{WHERE_TAKEN}
Returns:
    {REDUCED}
Raises:
    ValueError if an axis is out of range; TypeError for lists.

>>> jnp.nanprod(jnp.array([3.0, jnp.nan, 2.0]))
Array(6., dtype=float32)
""",
    "nanmax": f"""
Arguments:
    a: array of numbers.
{AXES}
{OUT}
{KEEPDIMS}
{INITIAL_LEAST}
{WHERE_TAKEN}
Returns:
    {REDUCED}
Raises:
    ValueError without elements; TypeError for lists.
Unlike numpy.nanmax:
    There is no warning where all are NaN.

>>> jnp.nanmax(jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]]), axis=1)
Array([ 1., nan], dtype=float32)
""",
    "nanmin": f"""
Arguments:
    a: array of numbers.
{AXES}
{OUT}
{KEEPDIMS}
{INITIAL_LEAST}
{WHERE_TAKEN}
Returns:
    {REDUCED}
Raises:
    ValueError without elements; TypeError for lists.
Unlike numpy.nanmin:
    There is no warning where all are NaN.

>>> jnp.nanmin(jnp.array([[1.0, jnp.nan], [jnp.nan, jnp.nan]]), axis=1)
Array([ 1., nan], dtype=float32)
""",
    "nanmean": f"""
Arguments:
    a: array of numbers.
{AXES}
{DTYPE}
{OUT}
{KEEPDIMS}
{WHERE_TAKEN}
Returns:
    {REDUCED}
Raises:
    TypeError for lists.
Unlike numpy.nanmean:
    There is no warning where all are NaN.

>>> jnp.nanmean(jnp.array([1.0, jnp.nan, 2.0]))
Array(1.5, dtype=float32)
""",
    "nanvar": f"""
Arguments:
    a: array of numbers.
{AXES}
{DTYPE}
{OUT}
    ddof: number that is subtracted from the count, to give the divisor.
{KEEPDIMS}
{WHERE_TAKEN}
    mean: the mean, if known, with the axes kept with size 1.
Returns:
    {REDUCED} It is real.
Raises:
    TypeError for lists.
Unlike numpy.nanvar:
    There is no warning where too few are left.

>>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
Array(1., dtype=float32)
""",
    "nanstd": f"""
Arguments:
    a: array of numbers.
{AXES}
{DTYPE}
{OUT}
    ddof: number that is subtracted from the count, to give the divisor.
{KEEPDIMS}
{WHERE_TAKEN}
    mean: the mean, if known, with the axes kept with size 1.
Returns:
    {REDUCED} It is real.
Raises:
    TypeError for lists.
Unlike numpy.nanstd:
    There is no warning where too few are left.

>>> jnp.nanstd(jnp.array([1.0, jnp.nan, 5.0]))
Array(2., dtype=float32)
""",
    "cumsum": f"""
Arguments:
    a: array of any shape and dtype.
{AXIS_OR_FLAT}
    dtype: dtype in which to add, and of the result; None for that of a.
{OUT}
Returns:
    Array of the shape of a, or a vector of a.size elements if the axis is None.
Raises:
    ValueError if the axis is out of range; TypeError for lists.
Unlike numpy.cumsum:
    Integers are not widened.

>>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]), axis=1)
Array([[1, 3],
       [3, 7]], dtype=int32)
>>> jnp.cumsum(jnp.array([[1, 2], [3, 4]]))
Array([ 1,  3,  6, 10], dtype=int32)
""",
    "cumprod": f"""
Arguments:
    a: array of any shape and dtype.
{AXIS_OR_FLAT}
    dtype: dtype in which to multiply, and of the result; None for that of a.
{OUT}
Returns:
    Array of the shape of a, or a vector of a.size elements if the axis is None.
Raises:
    ValueError if the axis is out of range; TypeError for lists.
Unlike numpy.cumprod:
    Integers are not widened.

>>> jnp.cumprod(jnp.array([1, 2, 3, 4]))
Array([ 1,  2,  6, 24], dtype=int32)
""",
    "nancumsum": f"""
Arguments:
    a: array of any shape and dtype.
{AXIS_OR_FLAT}
    dtype: dtype in which to add, and of the result; None for that of a.
{OUT}
Returns:
    Array of the shape of a, or a vector of a.size elements if the axis is None.
Raises:
    TypeError for lists.

>>> jnp.nancumsum(jnp.array([1.0, jnp.nan, 2.0]))
Array([1., 1., 3.], dtype=float32)
""",
    "nancumprod": f"""
Arguments:
    a: array of any shape and dtype.
{AXIS_OR_FLAT}
    dtype: dtype in which to multiply, and of the result; None for that of a.
{OUT}
Returns:
    Array of the shape of a, or a vector of a.size elements if the axis is None.
Raises:
    TypeError for lists.

>>> jnp.nancumprod(jnp.array([3.0, jnp.nan, 2.0]))
Array([3., 3., 6.], dtype=float32)
""",
    "cumulative_sum": """
Arguments:
    x: array of one or more axes.
    axis: integer; may be None if x has a single axis.
    dtype: dtype in which to add, and of the result; None for that of x, or the default integer for shorter ones.
    include_initial: whether the result begins with 0, and is longer by one.
Returns:
    Array of the shape of x, or one longer along the axis.
Raises:
    ValueError without an axis if x has several, and for scalars.

>>> jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True)
Array([0, 1, 3, 6], dtype=int32)
""",
    "cumulative_prod": """
Arguments:
    x: array of one or more axes.
    axis: integer; may be None if x has a single axis.
    dtype: dtype in which to multiply, and of the result; None for that of x.
    include_initial: whether the result begins with 1, and is longer by one.
Returns:
    Array of the shape of x, or one longer along the axis.
Raises:
    ValueError without an axis if x has several, and for scalars.

>>> jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True)
Array([1, 1, 2, 6], dtype=int32)
""",
    "trapezoid": f"""
Arguments:
    y: array of the values.
    x: array of their places, of the shape of y or a vector along the axis; None for equal distances.
    dx: distance of the places if x is None.
{AXIS}
Returns:
    Array of the shape of y without the axis, of an inexact dtype.
Raises:
    TypeError for lists.

>>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=2.0)
Array(8., dtype=float32)
""",
    "diff": f"""
Arguments:
    a: array of one or more axes.
    n: static integer: how many times differences are taken.
{AXIS}
    prepend: array or scalar joined in front before the differences; None for nothing.
    append: array or scalar joined behind before the differences; None for nothing.
Returns:
    Array as a, n shorter along the axis.
Raises:
    TypeError for lists.

>>> jnp.diff(jnp.array([1, 4, 9, 16]))
Array([3, 5, 7], dtype=int32)
>>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
Array([2, 2], dtype=int32)
""",
    "ediff1d": """
Arguments:
    ary: array of any shape.
    to_end: array or scalar put behind the differences; None for nothing.
    to_begin: array or scalar put in front of them; None for nothing.
Returns:
    Vector.
Raises:
    TypeError for lists.

>>> jnp.ediff1d(jnp.array([1, 4, 9]), to_begin=0)
Array([0, 3, 5], dtype=int32)
""",
    "gradient": """
Arguments:
    f: array of the values, of one or more axes.
    varargs: distances of the places: nothing for 1, one number, one number for each axis, or a vector of places for
        each.
    axis: integer or tuple of integers; None for all axes.
    edge_order: must be None: one-sided differences of first order at the ends.
Returns:
    Array of the shape of f, or a list of one for each axis.
Raises:
    TypeError for lists; NotImplementedError for edge_order.

>>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
Array([3., 4., 6., 7.], dtype=float32)
""",
    "unwrap": f"""
Arguments:
    p: array of real numbers.
    discont: smallest jump that is mended; None for half of the period.
{AXIS}
    period: length of the period.
Returns:
    Array of the shape of p.
Raises:
    TypeError for lists.

>>> jnp.unwrap(jnp.array([0, 170, 350, 10]), period=360)
Array([  0, 170, 350, 370], dtype=int32)
""",
}
