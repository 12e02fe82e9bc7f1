"""Pages of functions that change shapes and the order of axes."""

from pullback.manual._arguments import AXIS_OR_FLAT, OUT_SHARDING

PAGES = {
    "reshape": f"""
Arguments:
    a: array of any shape.
    shape: integer or tuple of static integers; one may be -1.
    order: 'C' or 'F'.
    copy: whether to copy; None and False leave it open.
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for lists.
Unlike numpy.reshape:
    The result is never a view. Order 'A' is not available.

>>> jnp.reshape(jnp.arange(6), (2, -1))
Array([[0, 1, 2],
       [3, 4, 5]], dtype=int32)
>>> jnp.reshape(jnp.arange(6), (2, 3), order="F")
Array([[0, 2, 4],
       [1, 3, 5]], dtype=int32)
""",
    "ravel": f"""
Arguments:
    a: array of any shape.
    order: 'C' or 'F'.
{OUT_SHARDING}
Returns:
    Vector of a.size elements.
Raises:
    TypeError for lists.
Unlike numpy.ravel:
    The result is never a view.

>>> jnp.ravel(jnp.array([[1, 2], [3, 4]]))
Array([1, 2, 3, 4], dtype=int32)
""",
    "resize": """
Arguments:
    a: array of any shape.
    new_shape: integer or tuple of static integers.
Returns:
    Array of the new shape; zeros if a is empty.
Raises:
    TypeError for lists.

>>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
Array([[1, 2],
       [3, 1]], dtype=int32)
""",
    "transpose": """
Arguments:
    a: array of n axes.
    axes: tuple of the n axes in their new order; None reverses them.
Returns:
    Array with a.shape in the new order.
Raises:
    TypeError for lists.

>>> jnp.transpose(jnp.array([[1, 2], [3, 4]]))
Array([[1, 3],
       [2, 4]], dtype=int32)
>>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
(3, 2, 4)
""",
    "permute_dims": """
Arguments:
    a: array of n axes.
    axes: tuple of the n axes in their new order.
Returns:
    Array with a.shape in the new order.

>>> jnp.permute_dims(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
(3, 2, 4)
""",
    "matrix_transpose": """
Arguments:
    x: array [..., m, n].
Returns:
    Array [..., n, m].

>>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
(5, 3, 2)
""",
    "swapaxes": """
Arguments:
    a: array of at least one axis.
    axis1, axis2: integers; negative ones count from the last axis.
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
(4, 3, 2)
""",
    "moveaxis": """
Arguments:
    a: array of at least one axis.
    source: integer or tuple of integers: axes of a.
    destination: integer or tuple of as many integers: their places in the result.
Returns:
    Array.
Raises:
    ValueError if axes are out of range, repeated, or of another number.

>>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
(3, 4, 2)
""",
    "rollaxis": """
Arguments:
    a: array of at least one axis.
    axis: integer: the axis that is moved.
    start: integer: it comes to be in front of this one.
Returns:
    Array.
Raises:
    ValueError if an axis is out of range.

>>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
(4, 2, 3)
""",
    "squeeze": """
Arguments:
    a: array of any shape.
    axis: integer or tuple of integers; None for all axes of length 1.
Returns:
    Array without the axes.
Raises:
    TypeError for lists.

>>> jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
(3, 1)
""",
    "expand_dims": """
Arguments:
    a: array of any shape.
    axis: integer or tuple of integers: places in the result.
Returns:
    Array with new axes of length 1.
Raises:
    ValueError if an axis is out of range.

>>> jnp.expand_dims(jnp.ones((2, 3)), (0, -1)).shape
(1, 2, 3, 1)
""",
    "atleast_1d": """
Arguments:
    arys: arrays or scalars.
Returns:
    Array, or a list of them.
Raises:
    TypeError for lists.
Unlike numpy.atleast_1d:
    Lists are not converted. Several arrays give a list, not a tuple.

>>> jnp.atleast_1d(5)
Array([5], dtype=int32, weak_type=True)
""",
    "atleast_2d": """
Arguments:
    arys: arrays or scalars.
Returns:
    Array, or a list of them.
Raises:
    TypeError for lists.
Unlike numpy.atleast_2d:
    Lists are not converted. Several arrays give a list, not a tuple.

>>> jnp.atleast_2d(jnp.array([1, 2]))
Array([[1, 2]], dtype=int32)
""",
    "atleast_3d": """
Arguments:
    arys: arrays or scalars.
Returns:
    Array, or a list of them.
Raises:
    TypeError for lists.
Unlike numpy.atleast_3d:
    Lists are not converted. Several arrays give a list, not a tuple.

>>> jnp.atleast_3d(jnp.ones((2, 3))).shape
(2, 3, 1)
""",
    "broadcast_to": f"""
Arguments:
    array: array or scalar.
    shape: integer or tuple of static integers.
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for lists.
Unlike numpy.broadcast_to:
    The result is an array as any other, not a view that is read-only.

>>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
Array([[1, 2],
       [1, 2]], dtype=int32)
""",
    "broadcast_arrays": """
Arguments:
    args: arrays or scalars.
Returns:
    List of arrays of the common shape, each of its own dtype.
Raises:
    TypeError for lists.

>>> jnp.broadcast_arrays(jnp.array([1, 2]), jnp.array([[3], [4]]))
[Array([[1, 2],
       [1, 2]], dtype=int32), Array([[3, 3],
       [4, 4]], dtype=int32)]
""",
    "broadcast_shapes": """
Arguments:
    shapes: tuples of integers, or integers.
Returns:
    Tuple of integers.

>>> jnp.broadcast_shapes((2, 1), (3,))
(2, 3)
""",
    "flip": """
Arguments:
    m: array of any shape.
    axis: integer or tuple of integers; None for all axes.
Returns:
    Array of the shape and dtype of m.
Raises:
    ValueError if an axis is out of range.

>>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
Array([[2, 1],
       [4, 3]], dtype=int32)
""",
    "fliplr": """
Arguments:
    m: array of two or more axes.
Returns:
    Array of the shape and dtype of m.
Raises:
    ValueError below rank 2.

>>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
Array([[2, 1],
       [4, 3]], dtype=int32)
""",
    "flipud": """
Arguments:
    m: array of one or more axes.
Returns:
    Array of the shape and dtype of m.
Raises:
    ValueError for scalars.

>>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
Array([[3, 4],
       [1, 2]], dtype=int32)
""",
    "rot90": """
Arguments:
    m: array of two or more axes.
    k: static integer: number of turns; negative ones turn the other way.
    axes: pair of integers: the plane.
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
Array([[2, 4],
       [1, 3]], dtype=int32)
""",
    "roll": """
Arguments:
    a: array of any shape.
    shift: integer, or array or tuple of one for each axis; it may be traced.
    axis: integer or tuple of integers; None takes all elements in C order.
Returns:
    Array of the shape and dtype of a.
Raises:
    ValueError if an axis is out of range; TypeError for lists.

>>> jnp.roll(jnp.arange(5), 2)
Array([3, 4, 0, 1, 2], dtype=int32)
>>> jnp.roll(jnp.array([[1, 2], [3, 4]]), 1, axis=0)
Array([[3, 4],
       [1, 2]], dtype=int32)
""",
    "tile": """
Arguments:
    A: array or scalar.
    reps: integer or tuple of static integers, one for each axis; the shorter of it and A.shape gets 1 in front.
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.tile(jnp.array([1, 2]), (2, 2))
Array([[1, 2, 1, 2],
       [1, 2, 1, 2]], dtype=int32)
""",
    "repeat": f"""
Arguments:
    a: array of any shape.
    repeats: integer, or vector of one for each element along the axis.
{AXIS_OR_FLAT}
    total_repeat_length: static length of the result; needed where `repeats` is traced.
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for lists.
Unlike numpy.repeat:
    `total_repeat_length` does not exist there.

>>> jnp.repeat(jnp.array([1, 2, 3]), jnp.array([2, 0, 1]))
Array([1, 1, 3], dtype=int32)
>>> jnp.repeat(jnp.array([[1, 2]]), 2, axis=0)
Array([[1, 2],
       [1, 2]], dtype=int32)
""",
    "pad": """
Arguments:
    array: array of any shape.
    pad_width: integer, pair (before, behind), or a pair for each axis; a dictionary gives them by axis.
    mode: name of a mode, or a function as NumPy's.
    kwargs: options of the mode by name.
Returns:
    Array.
Raises:
    TypeError for lists.
Unlike numpy.pad:
    A function as mode must return the vector that it fills.

>>> jnp.pad(jnp.array([1, 2, 3]), (2, 1))
Array([0, 0, 1, 2, 3, 0], dtype=int32)
>>> jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect")
Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
""",
    "trim_zeros": """
Arguments:
    filt: concrete array.
    trim: 'f', 'b' or 'fb'.
    axis: integer or tuple of integers; None for all axes.
Returns:
    Array.

>>> jnp.trim_zeros(jnp.array([0, 1, 2, 0]))
Array([1, 2], dtype=int32)
""",
    "ix_": """
Arguments:
    args: vectors of integers or booleans.
Returns:
    Tuple of arrays of as many axes as there are vectors.

>>> x = jnp.arange(9).reshape(3, 3)
>>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 2]))]
Array([[1, 2],
       [7, 8]], dtype=int32)
""",
    "shape": """
Arguments:
    a: array, scalar or nested list.
Returns:
    Tuple of integers.
Raises:
    Nothing.

>>> jnp.shape(jnp.ones((2, 3)))
(2, 3)
""",
    "ndim": """
Arguments:
    a: array, scalar or nested list.
Returns:
    int.
Raises:
    Nothing.

>>> jnp.ndim(jnp.ones((2, 3)))
2
""",
    "size": """
Arguments:
    a: array, scalar or nested list.
    axis: integer or tuple of integers; None for all axes.
Returns:
    int.
Raises:
    Nothing.

>>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
(6, 3)
""",
}
