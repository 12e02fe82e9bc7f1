"""Pages of functions that take and put elements by number, mask or condition."""

from pullback.manual._arguments import AXIS_OR_FLAT, INPLACE, OUT, SIZE

PAGES = {
    "take": f"""
Arguments:
    a: array of any shape.
    indices: array of integers; negative ones count from the end.
{AXIS_OR_FLAT}
{OUT}
    mode: None or 'fill', 'clip', or 'wrap'.
    unique_indices: promise that no index repeats.
    indices_are_sorted: promise that indices rise.
    fill_value: what indices out of range give with mode 'fill'; None for NaN, the least integer, or the largest
        unsigned one.
Returns:
    Array of the shape of a, with that of the indices in place of the axis.
Raises:
    TypeError for lists; ValueError for indices that are no integers.
Unlike numpy.take:
    Indices out of range do not raise: the default mode is 'fill'.

>>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, 0]))
Array([30, 10], dtype=int32)
>>> jnp.take(jnp.array([1.0, 2.0]), jnp.array([1, 5]))
Array([ 2., nan], dtype=float32)
""",
    "take_along_axis": """
Arguments:
    arr: array of n axes.
    indices: array of integers of n axes, which broadcasts with arr but along the axis.
    axis: integer; None takes all elements in C order.
    mode: None or 'fill', 'clip', or 'promise_in_bounds'.
    fill_value: what indices out of range give with mode 'fill'; None for NaN, the least integer, or the largest
        unsigned one.
    wrap_negative_indices: whether negative indices count from the end; None is True.
Returns:
    Array of the shape of the indices.
Raises:
    TypeError for lists and for indices that are no integers.
Unlike numpy.take_along_axis:
    Indices out of range do not raise.

>>> x = jnp.array([[3, 1], [2, 4]])
>>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "put": f"""
Arguments:
    a: array of any shape.
    ind: array of integers: numbers of elements in C order.
    v: array of values.
    mode: None or 'clip', or 'wrap'.
{INPLACE}
Returns:
    Array of the shape and dtype of a.
Raises:
    ValueError unless inplace=False.
Unlike numpy.put:
    The result is new: a is not changed. Mode 'raise' is not available.

>>> jnp.put(jnp.zeros(4, int), jnp.array([0, 2]), jnp.array([5, 6]), inplace=False)
Array([5, 0, 6, 0], dtype=int32)
""",
    "put_along_axis": f"""
Arguments:
    arr: array of n axes.
    indices: array of integers of n axes, which broadcasts with arr but along the axis.
    values: array or scalar that broadcasts with the indices.
    axis: integer; None takes all elements in C order.
{INPLACE}
    mode: what happens to indices out of range, as for `x.at[...]`; None leaves them out.
Returns:
    Array of the shape and dtype of arr.
Raises:
    ValueError unless inplace=False.
Unlike numpy.put_along_axis:
    The result is new: arr is not changed.

>>> jnp.put_along_axis(jnp.zeros((2, 2)), jnp.array([[1], [0]]), 5.0, axis=1, inplace=False)
Array([[0., 5.],
       [5., 0.]], dtype=float32)
""",
    "place": f"""
Arguments:
    arr: array of any shape.
    mask: array of booleans of as many elements.
    vals: vector of values, taken over and over.
{INPLACE}
Returns:
    Array of the shape and dtype of arr.
Raises:
    ValueError unless inplace=False.
Unlike numpy.place:
    The result is new: arr is not changed.

>>> jnp.place(jnp.arange(4), jnp.array([True, False, True, False]), jnp.array([9, 8]), inplace=False)
Array([9, 1, 8, 3], dtype=int32)
""",
    "fill_diagonal": f"""
Arguments:
    a: array of two or more axes, of one length if there are more than two.
    val: scalar, or array of values for the diagonal.
    wrap: must be False.
{INPLACE}
Returns:
    Array of the shape and dtype of a.
Raises:
    NotImplementedError unless inplace=False.
Unlike numpy.fill_diagonal:
    The result is new: a is not changed.

>>> jnp.fill_diagonal(jnp.ones((2, 2)), 5.0, inplace=False)
Array([[5., 1.],
       [1., 5.]], dtype=float32)
""",
    "choose": f"""
Arguments:
    a: array of integers.
    choices: list of arrays, or an array of them along the first axis, which broadcast with a.
{OUT}
    mode: 'raise', 'wrap' or 'clip': what happens to numbers out of range.
Returns:
    Array of the broadcast shape.
Raises:
    ValueError unless a has integers, and for numbers out of range with mode 'raise'.

>>> jnp.choose(jnp.array([1, 0]), [jnp.array([1, 2]), jnp.array([10, 20])])
Array([10,  2], dtype=int32)
""",
    "compress": f"""
Arguments:
    condition: vector of booleans.
    a: array of any shape.
{AXIS_OR_FLAT}
{SIZE}
    fill_value: what fills the result up to `size`.
{OUT}
Returns:
    Array of a's shape, with the number of True elements along the axis.
Unlike numpy.compress:
    Under jit `size` must be given.

>>> jnp.compress(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
Array([1, 3], dtype=int32)
""",
    "extract": f"""
Arguments:
    condition: array of booleans of as many elements as arr.
    arr: array of any shape.
{SIZE}
    fill_value: what fills the result up to `size`.
Returns:
    Vector.
Unlike numpy.extract:
    Under jit `size` must be given.

>>> jnp.extract(jnp.array([True, False, True]), jnp.array([1, 2, 3]))
Array([1, 3], dtype=int32)
""",
    "nonzero": f"""
Arguments:
    a: array of one or more axes.
{SIZE}
    fill_value: number, or a tuple of one for each axis, that fills the result up to `size`; None is 0.
Returns:
    Tuple of a vector of integers for each axis.
Raises:
    TypeError for lists; ConcretizationTypeError for a traced array without size.
Unlike numpy.nonzero:
    Under jit `size` must be given.

>>> jnp.nonzero(jnp.array([0, 5, 0, 7]))
(Array([1, 3], dtype=int32),)
>>> jnp.nonzero(jnp.array([0, 5, 0, 7]), size=3, fill_value=-1)
(Array([ 1,  3, -1], dtype=int32),)
""",
    "flatnonzero": f"""
Arguments:
    a: array of any shape.
{SIZE}
    fill_value: number that fills the result up to `size`; None is 0.
Returns:
    Vector of integers.
Raises:
    TypeError for lists.
Unlike numpy.flatnonzero:
    Under jit `size` must be given.

>>> jnp.flatnonzero(jnp.array([[0, 5], [7, 0]]))
Array([1, 2], dtype=int32)
""",
    "argwhere": f"""
Arguments:
    a: array of any shape.
{SIZE}
    fill_value: number, or a vector of one for each axis, that fills the result up to `size`; None is 0.
Returns:
    Array of integers [number of elements that are not zero, a.ndim].
Raises:
    TypeError for lists.
Unlike numpy.argwhere:
    Under jit `size` must be given.

>>> jnp.argwhere(jnp.array([[0, 5], [7, 0]]))
Array([[0, 1],
       [1, 0]], dtype=int32)
""",
    "where": f"""
Arguments:
    condition: array of booleans, or of numbers that are True unless they are 0.
    x: array or scalar: the values where the condition holds.
    y: array or scalar: the values elsewhere. All three broadcast.
{SIZE}
    fill_value: number that fills the result up to `size`; None is 0.
Returns:
    Array of the broadcast shape and the promoted dtype of x and y; with a condition alone as `nonzero`.
Unlike numpy.where:
    Both x and y are computed, and derivatives of the one not chosen are 0, unless they are NaN.

>>> jnp.where(jnp.array([True, False]), jnp.array([1, 2]), 10)
Array([ 1, 10], dtype=int32)
""",
    "select": """
Arguments:
    condlist: list of arrays of booleans.
    choicelist: list of as many arrays.
    default: value where no condition holds.
Returns:
    Array of the broadcast shape.
Raises:
    ValueError if the lists have different lengths.

>>> x = jnp.arange(5)
>>> jnp.select([x < 2, x > 3], [x, 10 * x], default=-1)
Array([ 0,  1, -1, -1, 40], dtype=int32)
""",
    "piecewise": """
Arguments:
    x: array or scalar.
    condlist: list of arrays of booleans, or an array of them along the first axis.
    funclist: list of functions or scalars, one for each condition, and maybe one more.
    args: further arguments of the functions.
    kw: further arguments of the functions by name.
Returns:
    Array of the shape and dtype of x.
Unlike numpy.piecewise:
    Functions are called on all of x, so that they can be traced.

>>> x = jnp.array([-2.0, 0.0, 3.0])
>>> jnp.piecewise(x, [x < 0, x >= 0], [lambda x: -x, lambda x: 10 * x])
Array([ 2.,  0., 30.], dtype=float32)
""",
    "diagonal": """
Arguments:
    a: array of two or more axes.
    offset: static integer: number of the diagonal.
    axis1, axis2: integers: the axes of the matrices.
Returns:
    Array without the two axes, and a new last one.
Raises:
    TypeError for lists.

>>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
Array([1, 4], dtype=int32)
""",
    "diag_indices": """
Arguments:
    n: static integer: the length of the axes.
    ndim: static integer: the number of axes.
Returns:
    Tuple of `ndim` vectors of integers.

>>> jnp.diag_indices(2)
(Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
""",
    "diag_indices_from": """
Arguments:
    arr: array of two or more axes of one length.
Returns:
    Tuple of a vector of integers for each axis.

>>> jnp.diag_indices_from(jnp.ones((2, 2)))
(Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
""",
    "tril_indices": """
Arguments:
    n: static integer: number of rows.
    k: static integer: number of the highest diagonal.
    m: static integer: number of columns; None for n.
Returns:
    Pair of vectors of integers.

>>> jnp.tril_indices(2)
(Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
""",
    "triu_indices": """
Arguments:
    n: static integer: number of rows.
    k: static integer: number of the lowest diagonal.
    m: static integer: number of columns; None for n.
Returns:
    Pair of vectors of integers.

>>> jnp.triu_indices(2)
(Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
""",
    "tril_indices_from": """
Arguments:
    arr: array of two axes.
    k: static integer: number of the highest diagonal.
Returns:
    Pair of vectors of integers.
Raises:
    ValueError unless arr has two axes.

>>> jnp.tril_indices_from(jnp.ones((2, 3)))
(Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
""",
    "triu_indices_from": """
Arguments:
    arr: array of two axes.
    k: static integer: number of the lowest diagonal.
Returns:
    Pair of vectors of integers.
Raises:
    ValueError unless arr has two axes.

>>> jnp.triu_indices_from(jnp.ones((2, 3)))
(Array([0, 0, 0, 1, 1], dtype=int32), Array([0, 1, 2, 1, 2], dtype=int32))
""",
    "mask_indices": f"""
Arguments:
    n: static integer: number of rows and columns.
    mask_func: function of a matrix and k, such as `triu`.
    k: second argument of the function.
{SIZE}
Returns:
    Pair of vectors of integers.

>>> jnp.mask_indices(2, jnp.triu)
(Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
""",
    "ravel_multi_index": """
Arguments:
    multi_index: tuple of arrays of integers, one for each axis.
    dims: tuple of static integers: the lengths of the axes.
    mode: 'raise', 'wrap', 'clip' or 'ignore', or a tuple of one for each axis: what happens out of range.
    order: 'C' or 'F'.
    dtype: integer dtype of the result; None for the default integer.
Returns:
    Array of integers.
Unlike numpy.ravel_multi_index:
    Under jit the mode cannot be 'raise'.

>>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 1])), (2, 3))
Array([2, 4], dtype=int32)
""",
    "unravel_index": """
Arguments:
    indices: array of integers: numbers in C order.
    shape: tuple of static integers.
Returns:
    Tuple of arrays of integers, one for each axis.
Unlike numpy.unravel_index:
    Numbers out of range do not raise. There is no `order`.

>>> jnp.unravel_index(jnp.array([2, 4]), (2, 3))
(Array([0, 1], dtype=int32), Array([2, 1], dtype=int32))
""",
    "packbits": f"""
Arguments:
    a: array of integers or booleans.
{AXIS_OR_FLAT}
    bitorder: 'big' or 'little': which bit the first element is.
Returns:
    Array of uint8.
Raises:
    TypeError for floats.

>>> jnp.packbits(jnp.array([0, 1, 1]))
Array([96], dtype=uint8)
""",
    "unpackbits": f"""
Arguments:
    a: array of uint8.
{AXIS_OR_FLAT}
    count: static integer: how many bits; None for all, negative to leave as many out at the end.
    bitorder: 'big' or 'little': which bit comes first.
Returns:
    Array of uint8.
Raises:
    TypeError for other dtypes.

>>> jnp.unpackbits(jnp.array([160], dtype=jnp.uint8))
Array([1, 0, 1, 0, 0, 0, 0, 0], dtype=uint8)
""",
}
