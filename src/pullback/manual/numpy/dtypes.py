"""Pages of questions about dtypes, and of functions that make functions of arrays."""

PAGES = {
    "finfo": """
Arguments:
    dtype: float or complex dtype, or an array of one.
Returns:
    finfo.

>>> jnp.finfo(jnp.bfloat16).bits, float(jnp.finfo(jnp.float32).max) > 3e38
(16, True)
""",
    "iinfo": """
Arguments:
    int_type: integer dtype, or an array of one.
Returns:
    iinfo.

>>> jnp.iinfo(jnp.int8).max
127
""",
    "isdtype": """
Arguments:
    dtype: dtype.
    kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric', a
        dtype, or a tuple of them.
Returns:
    bool.

>>> jnp.isdtype(jnp.bfloat16, "real floating")
True
""",
    "issubdtype": """
Arguments:
    arg1: dtype or abstract type.
    arg2: dtype or abstract type, such as `jnp.floating`.
Returns:
    bool.

>>> jnp.issubdtype(jnp.int4, jnp.integer)
True
""",
    "promote_types": """
Arguments:
    a, b: dtypes.
Returns:
    numpy.dtype.
Unlike numpy.promote_types:
    Integers and floats give the float: int32 and float16 are float16, not float64.

>>> jnp.promote_types(jnp.int32, jnp.float16)
dtype('float16')
>>> jnp.promote_types(jnp.bfloat16, jnp.float16)
dtype('float32')
""",
    "result_type": """
Arguments:
    args: arrays, scalars and dtypes; Python scalars are weak, and change kinds but not widths.
Returns:
    numpy.dtype.
Unlike numpy.result_type:
    Python scalars are weak, 64 bits become 32 unless `jax_enable_x64` is set.

>>> jnp.result_type(jnp.int8, 1.0)
dtype('float32')
>>> jnp.result_type(jnp.float16, 1.0)
dtype('float16')
""",
    "vectorize": """
Arguments:
    pyfunc: function of arrays of the core shapes; it is traced.
    excluded: set of positions and names of arguments that are passed on as they are.
    signature: text as '(n),(n)->()': the core axes of arguments and results; None for scalars.
Returns:
    Function of arrays.
Unlike numpy.vectorize:
    The function is mapped by `vmap`, and so must be traceable; there is no `otypes` and no `cache`.

>>> dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
>>> dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "frompyfunc": """
Arguments:
    func: function of scalars that can be traced.
    nin: number of its arguments.
    nout: number of its results.
    identity: scalar that changes nothing, for reductions without elements; None for none.
Returns:
    ufunc, with reduce, accumulate, at, reduceat and outer for two arguments.
Unlike numpy.frompyfunc:
    The function is traced, and dtypes are kept instead of objects.

>>> add = jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)
>>> add(jnp.array([1, 2]), 10)
Array([21, 22], dtype=int32)
""",
    "apply_along_axis": """
Arguments:
    func1d: function of a vector that can be traced.
    axis: integer.
    arr: array of one or more axes.
    args: further arguments of the function.
    kwargs: further arguments of the function by name.
Returns:
    Array of arr's other axes, and of the result's axes in place of the axis.
Raises:
    TypeError for lists.

>>> jnp.apply_along_axis(jnp.sum, 1, jnp.array([[1, 2], [3, 4]]))
Array([3, 7], dtype=int32)
""",
    "apply_over_axes": """
Arguments:
    func: function of an array and an axis, such as `jnp.sum`.
    a: array of any shape.
    axes: list or tuple of integers.
Returns:
    Array of a.ndim axes.
Raises:
    TypeError if axes is no sequence.

>>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3)), [0, 1])
Array([[6.]], dtype=float32)
""",
}
