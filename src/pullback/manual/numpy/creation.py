"""Pages of functions that make arrays."""

from pullback.manual._arguments import DEVICE, DTYPE_DEFAULT_FLOAT, OUT_SHARDING

PAGES = {
    "array": f"""
Arguments:
    object: array, scalar, nested list or tuple of them, or what NumPy can convert.
    dtype: dtype of the result; None for that of the object, with 64 bits cut to 32 unless `jax_enable_x64` is set.
    args: must be empty: what follows must be given by name.
    copy: whether the result has memory of its own; False raises where a copy is needed.
    order: must be 'K' or None.
    ndmin: least number of axes; new ones are put in front.
{DEVICE}
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for what is not numeric; ValueError for lists of unequal lengths.
Unlike numpy.array:
    Floats are float32 and integers int32 by default. Arrays are immutable. There is no `subok` and no `like`.

>>> jnp.array([1, 2, 3])
Array([1, 2, 3], dtype=int32)
>>> jnp.array([1.5, 2], ndmin=2)
Array([[1.5, 2. ]], dtype=float32)
""",
    "asarray": f"""
Arguments:
    a: array, scalar, nested list or tuple of them, or what NumPy can convert.
    dtype: dtype of the result; None for that of a, with 64 bits cut to 32 unless `jax_enable_x64` is set.
    order: must be 'K' or None.
    copy: whether to copy; None where needed.
{DEVICE}
{OUT_SHARDING}
Returns:
    Array; a itself if it is one already.
Raises:
    TypeError for what is not numeric; ValueError for lists of unequal lengths.

>>> jnp.asarray([1, 2, 3])
Array([1, 2, 3], dtype=int32)
>>> jnp.asarray(np.float64(0.5))
Array(0.5, dtype=float32)
""",
    "copy": """
Arguments:
    a: array, scalar or nested list.
    order: must be 'K' or None.
Returns:
    Array with memory of its own.

>>> jnp.copy(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "zeros": f"""
Arguments:
    shape: integer or tuple of integers.
{DTYPE_DEFAULT_FLOAT}
{DEVICE}
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for negative lengths and such that are no integers.
Unlike numpy.zeros:
    The dtype is float32 by default. There is no `order`.

>>> jnp.zeros((2, 3), dtype=int)
Array([[0, 0, 0],
       [0, 0, 0]], dtype=int32)
""",
    "ones": f"""
Arguments:
    shape: integer or tuple of integers.
{DTYPE_DEFAULT_FLOAT}
{DEVICE}
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for negative lengths and such that are no integers.
Unlike numpy.ones:
    The dtype is float32 by default. There is no `order`.

>>> jnp.ones(3)
Array([1., 1., 1.], dtype=float32)
""",
    "empty": f"""
Arguments:
    shape: integer or tuple of integers.
{DTYPE_DEFAULT_FLOAT}
{DEVICE}
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for negative lengths and such that are no integers.
Unlike numpy.empty:
    The elements are zeros.

>>> jnp.empty(2)
Array([0., 0.], dtype=float32)
""",
    "full": f"""
Arguments:
    shape: integer or tuple of integers.
    fill_value: scalar, or array that broadcasts to the shape.
    dtype: dtype of the result; None for that of the fill value.
{DEVICE}
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for negative lengths and such that are no integers.

>>> jnp.full((2, 2), 7)
Array([[7, 7],
       [7, 7]], dtype=int32, weak_type=True)
>>> jnp.full((2, 2), jnp.array([1, 2]))
Array([[1, 2],
       [1, 2]], dtype=int32)
""",
    "zeros_like": f"""
Arguments:
    a: array or scalar.
    dtype: dtype of the result; None for that of a.
    shape: shape of the result; None for that of a.
{DEVICE}
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.zeros_like(jnp.array([1, 2]))
Array([0, 0], dtype=int32)
""",
    "ones_like": f"""
Arguments:
    a: array or scalar.
    dtype: dtype of the result; None for that of a.
    shape: shape of the result; None for that of a.
{DEVICE}
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.ones_like(jnp.array([1, 2]), shape=(3,))
Array([1, 1, 1], dtype=int32)
""",
    "empty_like": f"""
Arguments:
    prototype: array or scalar.
    dtype: dtype of the result; None for that of the prototype.
    shape: shape of the result; None for that of the prototype.
{DEVICE}
Returns:
    Array.
Raises:
    TypeError for lists.
Unlike numpy.empty_like:
    The elements are zeros.

>>> jnp.empty_like(jnp.array([1, 2]))
Array([0, 0], dtype=int32)
""",
    "full_like": f"""
Arguments:
    a: array or scalar.
    fill_value: scalar, or array that broadcasts to the shape.
    dtype: dtype of the result; None for that of a.
    shape: shape of the result; None for that of a.
{DEVICE}
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for lists.

>>> jnp.full_like(jnp.array([1, 2]), 9.5)
Array([9, 9], dtype=int32)
""",
    "arange": f"""
Arguments:
    start: first value, or the bound if it is the only argument (then the first value is 0).
    stop: bound that is not reached; None if start is the bound.
    step: distance of the values; None is 1.
    dtype: dtype of the result; None for the promoted one of the bounds.
{DEVICE}
{OUT_SHARDING}
Returns:
    Vector.
Unlike numpy.arange:
    Bounds cannot be traced. Floats are float32 by default.

>>> jnp.arange(6)
Array([0, 1, 2, 3, 4, 5], dtype=int32)
>>> jnp.arange(1, 3, 0.5)
Array([1. , 1.5, 2. , 2.5], dtype=float32)
""",
    "linspace": f"""
Arguments:
    start: first value, scalar or array.
    stop: last value, or the bound if `endpoint` is False; it broadcasts with start.
    num: static integer: how many values.
    endpoint: whether stop is one of them.
    retstep: whether to give the distance, too.
    dtype: dtype of the result; None for that of the bounds, or the default float for integers.
    axis: static integer: where the new axis is.
{DEVICE}
Returns:
    Array of the shape of the bounds and a new axis of length num; with `retstep` a pair of it and the distance.

>>> jnp.linspace(0, 1, 5)
Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
>>> jnp.linspace(jnp.array([0, 10]), jnp.array([2, 30]), 3, axis=1)
Array([[ 0.,  1.,  2.],
       [10., 20., 30.]], dtype=float32)
""",
    "logspace": """
Arguments:
    start: exponent of the first value, scalar or array.
    stop: exponent of the last value, or the bound if `endpoint` is False.
    num: static integer: how many values.
    endpoint: whether stop is one of the exponents.
    base: number that is raised to the powers.
    dtype: dtype of the result; None for that of the bounds, or the default float for integers.
    axis: static integer: where the new axis is.
Returns:
    Array of the shape of the bounds and a new axis of length num.

>>> jnp.logspace(0, 3, 4, base=2.0).round(3)
Array([1., 2., 4., 8.], dtype=float32)
""",
    "geomspace": """
Arguments:
    start: first value, scalar or array.
    stop: last value, or the bound if `endpoint` is False.
    num: static integer: how many values.
    endpoint: whether stop is one of them.
    dtype: dtype of the result; None for that of the bounds, or the default float for integers.
    axis: static integer: where the new axis is.
Returns:
    Array of the shape of the bounds and a new axis of length num.
Unlike numpy.geomspace:
    Bounds that are 0 or of different signs give NaN instead of an error.

>>> jnp.geomspace(1, 8, 4).round(3)
Array([1., 2., 4., 8.], dtype=float32)
""",
    "eye": f"""
Arguments:
    N: static integer: number of rows.
    M: static integer: number of columns; None for N.
    k: number of the diagonal: positive above the main one, negative below.
{DTYPE_DEFAULT_FLOAT}
{DEVICE}
Returns:
    Array [N, M].

>>> jnp.eye(2, 3, k=1)
Array([[0., 1., 0.],
       [0., 0., 1.]], dtype=float32)
""",
    "identity": f"""
Arguments:
    n: static integer: number of rows and columns.
{DTYPE_DEFAULT_FLOAT}
Returns:
    Array [n, n].

>>> jnp.identity(2, dtype="int8")
Array([[1, 0],
       [0, 1]], dtype=int8)
""",
    "tri": f"""
Arguments:
    N: static integer: number of rows.
    M: static integer: number of columns; None for N.
    k: number of the highest diagonal with ones.
{DTYPE_DEFAULT_FLOAT}
Returns:
    Array [N, M].

>>> jnp.tri(3, dtype=int)
Array([[1, 0, 0],
       [1, 1, 0],
       [1, 1, 1]], dtype=int32)
""",
    "diag": """
Arguments:
    v: array [n] or [m, n].
    k: static integer: number of the diagonal: positive above the main one, negative below.
Returns:
    Array [n + |k|, n + |k|] of a vector, a vector of a matrix.
Raises:
    TypeError for lists.
Unlike numpy.diag:
    The diagonal of a matrix is a copy, not a view.

>>> jnp.diag(jnp.array([1, 2]))
Array([[1, 0],
       [0, 2]], dtype=int32)
>>> jnp.diag(jnp.array([[1, 2], [3, 4]]), k=1)
Array([2], dtype=int32)
""",
    "diagflat": """
Arguments:
    v: array of any shape, taken in C order.
    k: static integer: number of the diagonal: positive above the main one, negative below.
Returns:
    Array [n + |k|, n + |k|] for n elements.
Raises:
    TypeError for lists.

>>> jnp.diagflat(jnp.array([1, 2]), k=1)
Array([[0, 1, 0],
       [0, 0, 2],
       [0, 0, 0]], dtype=int32)
""",
    "tril": """
Arguments:
    m: array [..., r, c].
    k: static integer: number of the highest diagonal that is kept.
Returns:
    Array of the shape and dtype of m.

>>> jnp.tril(jnp.ones((3, 3), int))
Array([[1, 0, 0],
       [1, 1, 0],
       [1, 1, 1]], dtype=int32)
""",
    "triu": """
Arguments:
    m: array [..., r, c].
    k: static integer: number of the lowest diagonal that is kept.
Returns:
    Array of the shape and dtype of m.

>>> jnp.triu(jnp.ones((3, 3), int), k=1)
Array([[0, 1, 1],
       [0, 0, 1],
       [0, 0, 0]], dtype=int32)
""",
    "vander": """
Arguments:
    x: vector of n elements.
    N: static integer: number of columns; None for n.
    increasing: whether powers rise from the left.
Returns:
    Array [n, N].
Raises:
    TypeError for lists.

>>> jnp.vander(jnp.array([1, 2, 3]), 3)
Array([[1, 1, 1],
       [4, 2, 1],
       [9, 3, 1]], dtype=int32)
""",
    "meshgrid": """
Arguments:
    xi: vectors of n1, n2, ... elements.
    copy: must be True.
    sparse: whether each array has length 1 along the axes of the others.
    indexing: 'xy' for shapes [n2, n1, ...], 'ij' for [n1, n2, ...].
Returns:
    List of as many arrays as vectors.

>>> x, y = jnp.meshgrid(jnp.array([1, 2, 3]), jnp.array([10, 20]))
>>> y
Array([[10, 10, 10],
       [20, 20, 20]], dtype=int32)
""",
    "indices": """
Arguments:
    dimensions: tuple of static integers.
    dtype: dtype of the result; None for the default integer.
    sparse: whether to give a tuple of arrays with length 1 along all other axes.
Returns:
    Array [len(dimensions), *dimensions], or a tuple of arrays.

>>> jnp.indices((2, 2))
Array([[[0, 0],
        [1, 1]],
<BLANKLINE>
       [[0, 1],
        [0, 1]]], dtype=int32)
""",
    "fromfunction": """
Arguments:
    function: function of as many scalars as the shape has axes; it is mapped by `vmap`.
    shape: tuple of static integers.
    dtype: dtype of the indices.
    kwargs: arguments passed on to the function by name.
Returns:
    Array whose first axes are the shape, or a tree of such arrays.
Unlike numpy.fromfunction:
    The function gets scalars, not arrays of all indices.

>>> jnp.fromfunction(lambda i, j: i + 10 * j, (2, 3), dtype=int)
Array([[ 0, 10, 20],
       [ 1, 11, 21]], dtype=int32)
""",
    "frombuffer": """
Arguments:
    buffer: object with bytes, as `bytes` or a memoryview.
    dtype: dtype as which they are read; 64 bits become 32 unless `jax_enable_x64` is set.
    count: number of elements; -1 for all.
    offset: number of bytes that are skipped.
Returns:
    Vector.

>>> jnp.frombuffer(b"abc", dtype=jnp.uint8)
Array([97, 98, 99], dtype=uint8)
""",
    "fromstring": """
Arguments:
    string: text with numbers.
    dtype: dtype of the result.
    count: number of elements; -1 for all.
    sep: text between the numbers; must be given.
Returns:
    Vector.

>>> jnp.fromstring("40 7", dtype=int, sep=" ")
Array([40,  7], dtype=int32)
""",
    "fromfile": """
Arguments:
    args: anything.
    kwargs: anything.
Returns:
    Nothing: it raises.
Raises:
    NotImplementedError always.
Unlike numpy.fromfile:
    It is not available.

>>> try:
...     jnp.fromfile("name")
... except NotImplementedError:
...     print("use jnp.asarray(np.fromfile(...))")
use jnp.asarray(np.fromfile(...))
""",
    "fromiter": """
Arguments:
    args: anything.
    kwargs: anything.
Returns:
    Nothing: it raises.
Raises:
    NotImplementedError always.
Unlike numpy.fromiter:
    It is not available.

>>> try:
...     jnp.fromiter(iter([1]), int)
... except NotImplementedError:
...     print("use jnp.asarray(np.fromiter(...))")
use jnp.asarray(np.fromiter(...))
""",
    "from_dlpack": """
Arguments:
    x: object with `__dlpack__` and `__dlpack_device__`, as an array of NumPy or PyTorch.
    device: device of the result; None for that of x.
    copy: whether to copy; None where needed, False raises where needed.
Returns:
    Array.
Raises:
    TypeError for other objects.

>>> jnp.from_dlpack(np.array([1.0, 2.0], np.float32))
Array([1., 2.], dtype=float32)
""",
    "load": """
Arguments:
    file: path, or file open for reading bytes.
    args: further arguments of numpy.load.
    kwargs: further arguments of numpy.load by name.
Returns:
    Array, or for an .npz file the object that holds its arrays.
Unlike numpy.load:
    64 bits become 32 unless `jax_enable_x64` is set.

>>> import io
>>> file = io.BytesIO()
>>> jnp.save(file, jnp.array([1, 2]))
>>> _ = file.seek(0)
>>> jnp.load(file)
Array([1, 2], dtype=int32)
""",
    "astype": f"""
Arguments:
    x: array or scalar.
    dtype: dtype of the result; None for the default float.
    copy: whether to copy if the dtype is that of x already.
{DEVICE}
Returns:
    Array of the shape of x.
Raises:
    TypeError for lists.

>>> jnp.astype(jnp.array([1.7, -1.7]), int)
Array([ 1, -1], dtype=int32)
""",
}
