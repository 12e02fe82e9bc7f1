"""Pages of functions that sort, search and select by order, and of sets of different elements."""

from pullback.manual._arguments import AXIS, AXIS_OR_FLAT, FILL_VALUE, OUT, SIZE

PAGES = {
    "sort": f"""
Arguments:
    a: array of any shape; not of keys.
{AXIS_OR_FLAT}
    kind: must be None.
    order: must be None.
    stable: whether equal elements keep their order.
    descending: whether the largest come first.
Returns:
    Array of the shape and dtype of a, or a vector without an axis.
Raises:
    TypeError for lists; ValueError if the axis is out of range.
Unlike numpy.sort:
    The sort is stable by default, and may be descending.

>>> jnp.sort(jnp.array([3, 1, 2]))
Array([1, 2, 3], dtype=int32)
>>> jnp.sort(jnp.array([3.0, jnp.nan, 2.0]), descending=True)
Array([nan,  3.,  2.], dtype=float32)
""",
    "argsort": f"""
Arguments:
    a: array of any shape.
{AXIS_OR_FLAT}
    kind: must be None.
    order: must be None.
    stable: whether equal elements keep their order.
    descending: whether the largest come first.
    dtype: integer dtype of the result; None for the default one.
Returns:
    Array of integers of the shape of a, or a vector without an axis.
Raises:
    TypeError for lists.
Unlike numpy.argsort:
    The sort is stable by default, and may be descending.

>>> jnp.argsort(jnp.array([3, 1, 2]))
Array([1, 2, 0], dtype=int32)
""",
    "sort_complex": """
Arguments:
    a: array of numbers of one or more axes.
Returns:
    Array of complex numbers, sorted along the last axis.

>>> jnp.sort_complex(jnp.array([2 + 1j, 1 + 5j, 2 - 1j]))
Array([1.+5.j, 2.-1.j, 2.+1.j], dtype=complex64)
""",
    "lexsort": f"""
Arguments:
    keys: list or tuple of arrays of one shape, or an array with keys along its first axis.
{AXIS}
Returns:
    Array of integers of the shape of a key.
Raises:
    TypeError for lists of numbers.

>>> names, ages = jnp.array([2, 1, 3]), jnp.array([30, 30, 20])
>>> jnp.lexsort((names, ages))
Array([2, 1, 0], dtype=int32)
""",
    "partition": f"""
Arguments:
    a: array of one or more axes.
    kth: static integer: a place along the axis.
{AXIS}
Returns:
    Array of the shape and dtype of a.
Raises:
    ValueError if kth is out of range.
Unlike numpy.partition:
    kth is one integer, and axis cannot be None.

>>> jnp.partition(jnp.array([3, 1, 2]), 1)
Array([1, 2, 3], dtype=int32)
""",
    "argpartition": f"""
Arguments:
    a: array of one or more axes.
    kth: static integer: a place along the axis.
{AXIS}
Returns:
    Array of int32 of the shape of a.
Raises:
    ValueError if kth is out of range.
Unlike numpy.argpartition:
    kth is one integer, and axis cannot be None.

>>> jnp.argpartition(jnp.array([3, 1, 2]), 1)
Array([1, 2, 0], dtype=int32)
""",
    "argmax": f"""
Arguments:
    a: array of any shape.
{AXIS_OR_FLAT}
{OUT}
    keepdims: whether the axis stays, with size 1.
Returns:
    Array of the default integer, of the shape of a without the axis.
Raises:
    ValueError without elements; TypeError for lists.

>>> jnp.argmax(jnp.array([[1, 5], [4, 2]]), axis=1)
Array([1, 0], dtype=int32)
""",
    "argmin": f"""
Arguments:
    a: array of any shape.
{AXIS_OR_FLAT}
{OUT}
    keepdims: whether the axis stays, with size 1.
Returns:
    Array of the default integer, of the shape of a without the axis.
Raises:
    ValueError without elements; TypeError for lists.

>>> jnp.argmin(jnp.array([[1, 5], [4, 2]]), axis=1)
Array([0, 1], dtype=int32)
""",
    "nanargmax": f"""
Arguments:
    a: array of any shape.
{AXIS_OR_FLAT}
{OUT}
    keepdims: whether the axis stays, with size 1.
Returns:
    Array of the default integer, of the shape of a without the axis.
Raises:
    ValueError without elements; TypeError for lists.
Unlike numpy.nanargmax:
    Where all are NaN the result is -1 instead of an error.

>>> jnp.nanargmax(jnp.array([1.0, jnp.nan, 3.0]))
Array(2, dtype=int32)
""",
    "nanargmin": f"""
Arguments:
    a: array of any shape.
{AXIS_OR_FLAT}
{OUT}
    keepdims: whether the axis stays, with size 1.
Returns:
    Array of the default integer, of the shape of a without the axis.
Raises:
    ValueError without elements; TypeError for lists.
Unlike numpy.nanargmin:
    Where all are NaN the result is -1 instead of an error.

>>> jnp.nanargmin(jnp.array([2.0, jnp.nan, 1.0]))
Array(2, dtype=int32)
""",
    "searchsorted": """
Arguments:
    a: vector in order, or in the order that `sorter` gives.
    v: array or scalar: the values to be inserted.
    side: 'left' or 'right'.
    sorter: vector of integers, as of `argsort`; None if a is sorted.
    method: 'scan', 'scan_unrolled', 'sort' or 'compare_all': how it is computed.
Returns:
    Array of integers of the shape of v.
Raises:
    TypeError for lists.

>>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 5]))
Array([1, 4], dtype=int32)
>>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), 2, side="right")
Array(3, dtype=int32)
""",
    "unique": f"""
Arguments:
    ar: array of any shape.
    return_index: whether to give where each element comes first.
    return_inverse: whether to give which of them each element of ar is.
    return_counts: whether to give how often each comes.
    axis: integer: slices along it are compared; None compares all elements.
    equal_nan: whether all NaN count as one.
{SIZE}
    fill_value: what fills the result up to `size`; None is the smallest element.
    sorted: whether the elements must be in order; they always are.
Returns:
    Vector, or an array of slices; a tuple of it and the arrays asked for.
Raises:
    TypeError for lists; ConcretizationTypeError for a traced array without size.
Unlike numpy.unique:
    Under jit `size` must be given.

>>> jnp.unique(jnp.array([3, 1, 3, 2]), return_counts=True)
(Array([1, 2, 3], dtype=int32), Array([1, 1, 2], dtype=int32))
>>> jnp.unique(jnp.array([3, 1, 3]), size=4, fill_value=0)
Array([1, 3, 0, 0], dtype=int32)
""",
    "unique_all": f"""
Arguments:
    x: array of any shape.
{SIZE}
    fill_value: what fills the values up to `size`; None is the smallest element.
Returns:
    Named tuple of four arrays of integers but for the values; the inverse has the shape of x.
Raises:
    TypeError for lists.
Unlike numpy.unique_all:
    Under jit `size` must be given.

>>> jnp.unique_all(jnp.array([3, 1, 3])).values
Array([1, 3], dtype=int32)
""",
    "unique_counts": f"""
Arguments:
    x: array of any shape.
{SIZE}
    fill_value: what fills the values up to `size`; None is the smallest element.
Returns:
    Named tuple of two vectors.
Raises:
    TypeError for lists.
Unlike numpy.unique_counts:
    Under jit `size` must be given.

>>> values, counts = jnp.unique_counts(jnp.array([3, 1, 3]))
>>> counts
Array([1, 2], dtype=int32)
""",
    "unique_inverse": f"""
Arguments:
    x: array of any shape.
{SIZE}
    fill_value: what fills the values up to `size`; None is the smallest element.
Returns:
    Named tuple of a vector and an array of the shape of x.
Raises:
    TypeError for lists.
Unlike numpy.unique_inverse:
    Under jit `size` must be given.

>>> values, inverse = jnp.unique_inverse(jnp.array([3, 1, 3]))
>>> inverse
Array([1, 0, 1], dtype=int32)
""",
    "unique_values": f"""
Arguments:
    x: array of any shape.
{SIZE}
    fill_value: what fills the result up to `size`; None is the smallest element.
Returns:
    Vector.
Raises:
    TypeError for lists.
Unlike numpy.unique_values:
    Under jit `size` must be given.

>>> jnp.unique_values(jnp.array([3, 1, 3]))
Array([1, 3], dtype=int32)
""",
    "union1d": f"""
Arguments:
    ar1, ar2: arrays of any shape.
{SIZE}
    fill_value: what fills the result up to `size`; None is the smallest element.
Returns:
    Vector.
Raises:
    TypeError for lists.
Unlike numpy.union1d:
    Under jit `size` must be given.

>>> jnp.union1d(jnp.array([1, 2]), jnp.array([2, 3]))
Array([1, 2, 3], dtype=int32)
""",
    "intersect1d": f"""
Arguments:
    ar1, ar2: arrays of any shape.
    assume_unique: promise that neither has an element twice.
    return_indices: whether to give where the elements come first in both.
{SIZE}
{FILL_VALUE}
Returns:
    Vector, or a tuple of three vectors.
Raises:
    TypeError for lists.
Unlike numpy.intersect1d:
    Under jit `size` must be given.

>>> jnp.intersect1d(jnp.array([1, 2, 3]), jnp.array([2, 3, 4]))
Array([2, 3], dtype=int32)
""",
    "setdiff1d": f"""
Arguments:
    ar1, ar2: arrays of any shape.
    assume_unique: promise that neither has an element twice.
{SIZE}
    fill_value: what fills the result up to `size`; None is the smallest element.
Returns:
    Vector.
Raises:
    TypeError for lists.
Unlike numpy.setdiff1d:
    Under jit `size` must be given.

>>> jnp.setdiff1d(jnp.array([1, 2, 3]), jnp.array([2]))
Array([1, 3], dtype=int32)
""",
    "setxor1d": f"""
Arguments:
    ar1, ar2: arrays of any shape.
    assume_unique: promise that neither has an element twice.
{SIZE}
    fill_value: what fills the result up to `size`; None is the smallest element.
Returns:
    Vector.
Raises:
    TypeError for lists.
Unlike numpy.setxor1d:
    Under jit `size` must be given.

>>> jnp.setxor1d(jnp.array([1, 2]), jnp.array([2, 3]))
Array([1, 3], dtype=int32)
""",
}
