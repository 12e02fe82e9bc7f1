"""Pages of functions that join arrays, cut them into parts, or put elements in and take them out."""

from pullback.manual._arguments import AXIS, AXIS_OR_FLAT, OUT

PAGES = {
    "concatenate": f"""
Arguments:
    arrays: list or tuple of arrays, or an array whose slices along the first axis are joined.
{AXIS_OR_FLAT}
    dtype: dtype of the result; None for the promoted one.
Returns:
    Array.
Raises:
    TypeError for lists of numbers.
Unlike numpy.concatenate:
    There is no `out` and no `casting`.

>>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
Array([1, 2, 3], dtype=int32)
>>> jnp.concatenate([jnp.ones((2, 1)), jnp.zeros((2, 2))], axis=1)
Array([[1., 0., 0.],
       [1., 0., 0.]], dtype=float32)
""",
    "concat": f"""
Arguments:
    arrays: list or tuple of arrays, or an array whose slices along the first axis are joined.
{AXIS_OR_FLAT}
Returns:
    Array.
Raises:
    TypeError for lists of numbers.

>>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
Array([1, 2, 3], dtype=int32)
""",
    "stack": f"""
Arguments:
    arrays: list or tuple of arrays of one shape, or an array whose slices are stacked.
    axis: integer: place of the new axis in the result.
{OUT}
    dtype: dtype of the result; None for the promoted one.
Returns:
    Array of one axis more.
Raises:
    TypeError for lists of numbers.

>>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "vstack": """
Arguments:
    tup: list or tuple of arrays, or an array whose slices are joined.
    dtype: dtype of the result; None for the promoted one.
Returns:
    Array of two or more axes.
Raises:
    TypeError for lists of numbers.

>>> jnp.vstack([jnp.array([1, 2]), jnp.array([3, 4])])
Array([[1, 2],
       [3, 4]], dtype=int32)
""",
    "hstack": """
Arguments:
    tup: list or tuple of arrays, or an array whose slices are joined.
    dtype: dtype of the result; None for the promoted one.
Returns:
    Array of one or more axes.
Raises:
    TypeError for lists of numbers.

>>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
Array([1, 2, 3], dtype=int32)
""",
    "dstack": """
Arguments:
    tup: list or tuple of arrays, or an array whose slices are joined.
    dtype: dtype of the result; None for the promoted one.
Returns:
    Array of three or more axes.
Raises:
    TypeError for lists of numbers.

>>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
Array([[[1, 3],
        [2, 4]]], dtype=int32)
""",
    "column_stack": """
Arguments:
    tup: list or tuple of vectors and matrices of as many rows.
Returns:
    Matrix.
Raises:
    TypeError for lists of numbers.

>>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "block": """
Arguments:
    arrays: array or scalar, or nested lists of them.
Returns:
    Array.
Raises:
    ValueError for tuples instead of lists.

>>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
Array([[1., 0., 0.],
       [0., 1., 0.],
       [1., 1., 1.]], dtype=float32)
""",
    "split": f"""
Arguments:
    ary: array of one or more axes.
    indices_or_sections: static integer: number of parts; or list of static integers: where the next part begins.
{AXIS}
Returns:
    List of arrays.
Raises:
    TypeError for lists.
Unlike numpy.split:
    The parts are never views.

>>> jnp.split(jnp.arange(6), 3)
[Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4, 5], dtype=int32)]
>>> jnp.split(jnp.arange(5), [2, 3])
[Array([0, 1], dtype=int32), Array([2], dtype=int32), Array([3, 4], dtype=int32)]
""",
    "array_split": f"""
Arguments:
    ary: array of one or more axes.
    indices_or_sections: static integer: number of parts; or list of static integers: where the next part begins.
{AXIS}
Returns:
    List of arrays.
Raises:
    TypeError for lists.

>>> jnp.array_split(jnp.arange(5), 2)
[Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
""",
    "hsplit": """
Arguments:
    ary: array of one or more axes.
    indices_or_sections: static integer: number of parts; or list of static integers: where the next part begins.
Returns:
    List of arrays.

>>> jnp.hsplit(jnp.array([[1, 2], [3, 4]]), 2)
[Array([[1],
       [3]], dtype=int32), Array([[2],
       [4]], dtype=int32)]
""",
    "vsplit": """
Arguments:
    ary: array of two or more axes.
    indices_or_sections: static integer: number of parts; or list of static integers: where the next part begins.
Returns:
    List of arrays.

>>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
[Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
""",
    "dsplit": """
Arguments:
    ary: array of three or more axes.
    indices_or_sections: static integer: number of parts; or list of static integers: where the next part begins.
Returns:
    List of arrays.
Raises:
    IndexError for arrays of fewer than three dimensions, ValueError for parts of different sizes.

>>> [part.shape for part in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
[(1, 2, 2), (1, 2, 2)]
""",
    "unstack": f"""
Arguments:
    x: array of one or more axes.
{AXIS}
Returns:
    Tuple of arrays without the axis.

>>> jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
(Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
""",
    "append": """
Arguments:
    arr: array of any shape.
    values: array of the same rank and lengths but along the axis; any without an axis.
    axis: integer; None lays both out in C order.
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.append(jnp.array([1, 2]), jnp.array([3, 4]))
Array([1, 2, 3, 4], dtype=int32)
""",
    "insert": f"""
Arguments:
    arr: array of any shape.
    obj: integer, array of integers, or slice: places in arr before which values come.
    values: array or scalar that broadcasts to the new elements.
{AXIS_OR_FLAT}
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.insert(jnp.array([1, 2, 3]), 1, 9)
Array([1, 9, 2, 3], dtype=int32)
""",
    "delete": f"""
Arguments:
    arr: array of any shape.
    obj: integer, array of integers or booleans, or slice: what is left out.
{AXIS_OR_FLAT}
    assume_unique_indices: whether no index of an array repeats, so that it may be traced.
Returns:
    Array.
Raises:
    TypeError for lists; ValueError or IndexError for indices out of range.

>>> jnp.delete(jnp.arange(5), jnp.array([1, 3]))
Array([0, 2, 4], dtype=int32)
""",
}
