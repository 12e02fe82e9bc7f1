"""Pages of reductions, windows, sorting and selection."""

from pullback.manual._arguments import AXIS, OPERAND, OUT_SHARDING, POSITIVE_AXIS, REDUCED_AXES, REVERSE

PAGES = {
    "reduce_sum": f"""
Arguments:
{OPERAND}
{REDUCED_AXES}
{OUT_SHARDING}
Returns:
    Array without the axes.
Raises:
    ValueError for axes that are not there.

>>> jax.lax.reduce_sum(jnp.array([[1, 2], [3, 4]]), (0,))
Array([4, 6], dtype=int32)
""",
    "reduce_prod": f"""
Arguments:
{OPERAND}
{REDUCED_AXES}
Returns:
    Array without the axes.

>>> jax.lax.reduce_prod(jnp.array([[1, 2], [3, 4]]), (0,))
Array([3, 8], dtype=int32)
""",
    "reduce_max": f"""
Arguments:
{OPERAND}
{REDUCED_AXES}
Returns:
    Array without the axes.

>>> jax.lax.reduce_max(jnp.array([[1, 2], [3, 4]]), (0,))
Array([3, 4], dtype=int32)
""",
    "reduce_min": f"""
Arguments:
{OPERAND}
{REDUCED_AXES}
Returns:
    Array without the axes.

>>> jax.lax.reduce_min(jnp.array([[1, 2], [3, 4]]), (0,))
Array([1, 2], dtype=int32)
""",
    "reduce_and": f"""
Arguments:
    operand: array of integers or booleans.
{REDUCED_AXES}
Returns:
    Array without the axes.

>>> jax.lax.reduce_and(jnp.array([True, False]), (0,))
Array(False, dtype=bool)
""",
    "reduce_or": f"""
Arguments:
    operand: array of integers or booleans.
{REDUCED_AXES}
Returns:
    Array without the axes.

>>> jax.lax.reduce_or(jnp.array([True, False]), (0,))
Array(True, dtype=bool)
""",
    "reduce_xor": f"""
Arguments:
    operand: array of integers or booleans.
{REDUCED_AXES}
Returns:
    Array without the axes.

>>> jax.lax.reduce_xor(jnp.array([5, 3]), (0,))
Array(6, dtype=int32)
""",
    "reduce": f"""
Arguments:
    operands: pytree of arrays of one shape.
    init_values: pytree of scalars.
    computation: associative function of two trees of scalars.
    dimensions: tuple of integers.
{OUT_SHARDING}
Returns:
    Pytree of arrays without the axes.

>>> jax.lax.reduce(jnp.array([1, 2, 3]), 0, jax.lax.add, (0,))
Array(6, dtype=int32)
""",
    "argmax": f"""
Arguments:
{OPERAND}
    axis: integer, not negative.
    index_dtype: integer dtype.
Returns:
    Array without the axis.
Raises:
    TypeError for another index_dtype.

>>> jax.lax.argmax(jnp.array([1, 5, 3]), 0, jnp.int32)
Array(1, dtype=int32)
""",
    "argmin": f"""
Arguments:
{OPERAND}
    axis: integer, not negative.
    index_dtype: integer dtype.
Returns:
    Array without the axis.
Raises:
    TypeError for another index_dtype.

>>> jax.lax.argmin(jnp.array([4, 1, 3]), 0, jnp.int32)
Array(1, dtype=int32)
""",
    "cumsum": f"""
Arguments:
{OPERAND}
{POSITIVE_AXIS}
{REVERSE}
Returns:
    Array of the shape and dtype of operand.
Raises:
    ValueError for an axis that is not there.

>>> jax.lax.cumsum(jnp.array([1, 2, 3]), reverse=True)
Array([6, 5, 3], dtype=int32)
""",
    "cumprod": f"""
Arguments:
{OPERAND}
{POSITIVE_AXIS}
{REVERSE}
Returns:
    Array of the shape and dtype of operand.
Raises:
    ValueError for an axis that is not there.

>>> jax.lax.cumprod(jnp.array([1, 2, 3]))
Array([1, 2, 6], dtype=int32)
""",
    "cummax": f"""
Arguments:
{OPERAND}
{POSITIVE_AXIS}
{REVERSE}
Returns:
    Array of the shape and dtype of operand.
Raises:
    ValueError for an axis that is not there.

>>> jax.lax.cummax(jnp.array([1, 3, 2]))
Array([1, 3, 3], dtype=int32)
""",
    "cummin": f"""
Arguments:
{OPERAND}
{POSITIVE_AXIS}
{REVERSE}
Returns:
    Array of the shape and dtype of operand.
Raises:
    ValueError for an axis that is not there.

>>> jax.lax.cummin(jnp.array([3, 1, 2]))
Array([3, 1, 1], dtype=int32)
""",
    "cumlogsumexp": f"""
Arguments:
{OPERAND}
{POSITIVE_AXIS}
{REVERSE}
Returns:
    Array of the shape and dtype of operand.
Raises:
    ValueError for an axis that is not there.

>>> jax.lax.cumlogsumexp(jnp.array([0.0, 0.0])).round(3)
Array([0.   , 0.693], dtype=float32)
""",
    "reduce_window": """
Arguments:
    operand: pytree of arrays of one shape.
    init_value: pytree of scalars.
    computation: associative function of two trees of scalars.
    window_dimensions: tuple of a static integer for each axis.
    window_strides: the same: distances of the windows; None for 1.
    padding: 'SAME', 'SAME_LOWER', 'VALID', or a list of (before, after) for each axis.
    base_dilation: tuple of a static integer for each axis: distances of the elements; None for 1.
    window_dilation: the same within windows; None for 1.
Returns:
    Pytree of arrays.

>>> jax.lax.reduce_window(jnp.array([1, 2, 3, 4]), 0, jax.lax.add, (2,), (2,))
Array([3, 7], dtype=int32)
""",
    "reduce_window_shape_tuple": """
Arguments:
    operand_shape: tuple of integers.
    window_dimensions: tuple of integers.
    window_strides: tuple of integers; None for 1.
    padding: list of (before, after) for each axis.
    base_dilation: tuple of integers; None for 1.
    window_dilation: tuple of integers; None for 1.
Returns:
    Tuple of integers.

>>> jax.lax.reduce_window_shape_tuple((5,), (2,), (2,), [(0, 0)])
(2,)
""",
    "sort": """
Arguments:
    operand: array, or tuple of arrays of one shape.
    dimension: static integer.
    is_stable: whether equal elements keep their order.
    num_keys: static integer: how many of the arrays decide.
Returns:
    Array, or tuple of arrays.
Raises:
    TypeError for differing shapes.

>>> jax.lax.sort((jnp.array([2, 1]), jnp.array([20, 10])))
(Array([1, 2], dtype=int32), Array([10, 20], dtype=int32))
""",
    "sort_key_val": """
Arguments:
    keys: array.
    values: array of the same shape.
    dimension: static integer.
    is_stable: whether equal keys keep their order.
Returns:
    Pair of arrays.

>>> jax.lax.sort_key_val(jnp.array([2, 1]), jnp.array([20, 10]))
(Array([1, 2], dtype=int32), Array([10, 20], dtype=int32))
""",
    "top_k": f"""
Arguments:
{OPERAND}
    k: static integer.
{AXIS}
Returns:
    List of two arrays with k elements along the axis.
Raises:
    ValueError for k above the size.

>>> jax.lax.top_k(jnp.array([1, 5, 3]), 2)
[Array([5, 3], dtype=int32), Array([1, 2], dtype=int32)]
""",
    "approx_max_k": f"""
Arguments:
{OPERAND}
    k: static integer.
    reduction_dimension: static integer.
    recall_target: has no effect: the result is exact.
    reduction_input_size_override: has no effect.
    aggregate_to_topk: whether there are k elements only.
Returns:
    List of two arrays with k elements along the axis.

>>> jax.lax.approx_max_k(jnp.array([1.0, 5.0, 3.0]), 2)
[Array([5., 3.], dtype=float32), Array([1, 2], dtype=int32)]
""",
    "approx_min_k": f"""
Arguments:
{OPERAND}
    k: static integer.
    reduction_dimension: static integer.
    recall_target: has no effect: the result is exact.
    reduction_input_size_override: has no effect.
    aggregate_to_topk: whether there are k elements only.
Returns:
    List of two arrays with k elements along the axis.

>>> jax.lax.approx_min_k(jnp.array([1.0, 5.0, 3.0]), 2)
[Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32)]
""",
    "fft": """
Arguments:
    x: array of one to three or more axes: complex, or real for RFFT.
    fft_type: 'FFT', 'IFFT', 'RFFT', 'IRFFT', or lax.FftType.
    fft_lengths: tuple of static integers: the lengths of the last axes; of the result for IRFFT.
Returns:
    Complex array, or real for IRFFT.
Raises:
    ValueError for an unknown type.

>>> jax.lax.fft(jnp.array([1.0, 0.0]), "RFFT", (2,))
Array([1.+0.j, 1.+0.j], dtype=complex64)
""",
    "rng_bit_generator": f"""
Arguments:
    key: array u32[4] or u64[2]: the state.
    shape: tuple of static integers.
    dtype: uint8, uint16, uint32 or uint64.
    algorithm: lax.RandomAlgorithm.
{OUT_SHARDING}
Returns:
    Pair of arrays: the next state, and the words.

>>> state, words = jax.lax.rng_bit_generator(jnp.array([1, 2, 3, 4], "uint32"), (2,))
>>> words.shape
(2,)
""",
    "rng_uniform": """
Arguments:
    a, b: scalars of one dtype: the limits.
    shape: tuple of static integers.
Returns:
    Array of the shape.

>>> x = jax.lax.rng_uniform(0.0, 1.0, (3,))
>>> bool((x >= 0).all() & (x < 1).all())
True
""",
}
