"""Pages of primitives that make, move and join arrays."""

from pullback.manual._arguments import (
    AXIS,
    NEGATIVE,
    OPERAND,
    OUT_SHARDING,
    PYTREE,
    SAME,
    SCATTER_ARGUMENTS,
    SORTED,
    UNIQUE,
    WINDOW_MODE,
)

PAGES = {
    "broadcast": f"""
Arguments:
{OPERAND}
    sizes: tuple of static integers.
{OUT_SHARDING}
Returns:
    Array [*sizes, *operand.shape].

>>> jax.lax.broadcast(jnp.array([1, 2]), (2,))
Array([[1, 2],
       [1, 2]], dtype=int32)
""",
    "broadcast_in_dim": f"""
Arguments:
{OPERAND}
    shape: tuple of static integers.
    broadcast_dimensions: tuple of as many integers as operand has axes.
{OUT_SHARDING}
Returns:
    Array of the shape.
Raises:
    TypeError for sizes that do not fit.

>>> jax.lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
Array([[1, 1, 1],
       [2, 2, 2]], dtype=int32)
""",
    "broadcast_like": """
Arguments:
    arr: array.
    like_arr: array whose shape is taken.
Returns:
    Array of the shape of like_arr.

>>> jax.lax.broadcast_like(jnp.array([1, 2]), jnp.ones((2, 2)))
Array([[1, 2],
       [1, 2]], dtype=int32)
""",
    "broadcast_shapes": """
Arguments:
    shapes: tuples of integers.
Returns:
    Tuple of integers.
Raises:
    ValueError if they do not broadcast.

>>> jax.lax.broadcast_shapes((2, 1), (3,))
(2, 3)
""",
    "broadcast_to_rank": """
Arguments:
    x: array.
    rank: static integer.
Returns:
    Array of that many axes.

>>> jax.lax.broadcast_to_rank(jnp.ones(3), 2).shape
(1, 3)
""",
    "broadcasted_iota": f"""
Arguments:
    dtype: dtype that counts.
    shape: tuple of static integers.
    dimension: static integer.
{OUT_SHARDING}
Returns:
    Array of the shape.

>>> jax.lax.broadcasted_iota(int, (2, 3), 1)
Array([[0, 1, 2],
       [0, 1, 2]], dtype=int32)
""",
    "iota": """
Arguments:
    dtype: dtype that counts.
    size: static integer.
Returns:
    Vector.
Raises:
    TypeError for a negative size.

>>> jax.lax.iota(int, 3)
Array([0, 1, 2], dtype=int32)
""",
    "full": """
Arguments:
    shape: tuple of static integers.
    fill_value: scalar.
    dtype: dtype of the result; None for that of the value.
    sharding: sharding of the result; None for the default device.
Returns:
    Array of the shape.
Raises:
    TypeError unless the value is a scalar.

>>> jax.lax.full((2,), 7)
Array([7, 7], dtype=int32, weak_type=True)
""",
    "full_like": """
Arguments:
    x: array.
    fill_value: scalar.
    dtype: dtype of the result; None for that of x.
    shape: tuple of static integers; None for that of x.
    sharding: sharding of the result; None for the default device.
Returns:
    Array.

>>> jax.lax.full_like(jnp.array([1, 2]), 7)
Array([7, 7], dtype=int32)
""",
    "empty": f"""
Arguments:
    shape: tuple of static integers.
    dtype: dtype of the result.
{OUT_SHARDING}
Returns:
    Array of zeros of the shape.

>>> jax.lax.empty((2,), jnp.int32).shape
(2,)
""",
    "copy": f"""
Arguments:
    x: array.
Returns:
    {SAME}

>>> jax.lax.copy(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "collapse": f"""
Arguments:
{OPERAND}
    start_dimension: integer.
    stop_dimension: integer; None for all that follow.
Returns:
    Array.

>>> jax.lax.collapse(jnp.ones((2, 3, 4)), 1).shape
(2, 12)
""",
    "expand_dims": """
Arguments:
    array: array.
    dimensions: tuple of integers: places in the result.
Returns:
    Array with new axes of length 1.

>>> jax.lax.expand_dims(jnp.ones(3), (0, 2)).shape
(1, 3, 1)
""",
    "squeeze": """
Arguments:
    array: array.
    dimensions: tuple of integers: axes of length 1.
Returns:
    Array without the axes.
Raises:
    ValueError for axes of another length.

>>> jax.lax.squeeze(jnp.ones((1, 3)), (0,)).shape
(3,)
""",
    "reshape": f"""
Arguments:
{OPERAND}
    new_sizes: tuple of static integers.
    dimensions: tuple of all axes in the order in which they are read; None for their own.
{OUT_SHARDING}
Returns:
    Array of the new sizes.
Raises:
    ValueError if the sizes do not agree; TypeError for negative ones.

>>> jax.lax.reshape(jnp.arange(4), (2, 2))
Array([[0, 1],
       [2, 3]], dtype=int32)
""",
    "rev": f"""
Arguments:
{OPERAND}
    dimensions: tuple of integers.
Returns:
    Array of the shape and dtype of operand.
Raises:
    TypeError for axes that are not there.

>>> jax.lax.rev(jnp.array([1, 2, 3]), (0,))
Array([3, 2, 1], dtype=int32)
""",
    "transpose": f"""
Arguments:
{OPERAND}
    permutation: tuple of all axes.
Returns:
    Array.
Raises:
    TypeError for what is no permutation.

>>> jax.lax.transpose(jnp.array([[1, 2], [3, 4]]), (1, 0))
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "tile": f"""
Arguments:
{OPERAND}
    reps: tuple of a static integer for each axis.
Returns:
    Array.
Raises:
    TypeError for another number of them.

>>> jax.lax.tile(jnp.array([1, 2]), (2,))
Array([1, 2, 1, 2], dtype=int32)
""",
    "pad": f"""
Arguments:
{OPERAND}
    padding_value: scalar of the dtype of operand.
    padding_config: list of (before, after, between) for each axis; negative numbers cut.
Returns:
    Array.
Raises:
    TypeError if the dtypes differ.

>>> jax.lax.pad(jnp.array([1, 2]), 0, [(1, 0, 1)])
Array([0, 1, 0, 2], dtype=int32)
""",
    "slice": f"""
Arguments:
{OPERAND}
    start_indices: tuple of static integers.
    limit_indices: tuple of static integers.
    strides: tuple of static integers; None for 1.
Returns:
    Array.
Raises:
    TypeError for indices outside of the operand.

>>> jax.lax.slice(jnp.arange(6), (1,), (6,), (2,))
Array([1, 3, 5], dtype=int32)
""",
    "slice_in_dim": f"""
Arguments:
{OPERAND}
    start_index: static integer, or None for the start.
    limit_index: static integer, or None for the end.
    stride: static integer.
{AXIS}
Returns:
    Array.

>>> jax.lax.slice_in_dim(jnp.arange(6), 1, -1)
Array([1, 2, 3, 4], dtype=int32)
""",
    "index_in_dim": f"""
Arguments:
{OPERAND}
    index: static integer.
{AXIS}
    keepdims: whether the axis stays, with size 1.
Returns:
    Array.
Raises:
    IndexError if it is out of range.

>>> jax.lax.index_in_dim(jnp.array([5, 6]), -1, keepdims=False)
Array(6, dtype=int32)
""",
    "dynamic_slice": f"""
Arguments:
{OPERAND}
    start_indices: tuple of scalar integers, or vector of them; they may be traced.
    slice_sizes: tuple of static integers.
{NEGATIVE}
Returns:
    Array of the slice sizes.
Raises:
    TypeError for sizes above the operand's.

>>> jax.lax.dynamic_slice(jnp.arange(5), (4,), (2,))
Array([3, 4], dtype=int32)
""",
    "dynamic_slice_in_dim": f"""
Arguments:
{OPERAND}
    start_index: scalar integer; it may be traced.
    slice_size: static integer.
{AXIS}
{NEGATIVE}
Returns:
    Array.

>>> jax.lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
Array([1, 2], dtype=int32)
""",
    "dynamic_index_in_dim": f"""
Arguments:
{OPERAND}
    index: scalar integer; it may be traced.
{AXIS}
    keepdims: whether the axis stays, with size 1.
{NEGATIVE}
Returns:
    Array.

>>> jax.lax.dynamic_index_in_dim(jnp.arange(5), 3, keepdims=False)
Array(3, dtype=int32)
""",
    "dynamic_update_slice": f"""
Arguments:
{OPERAND}
    update: array of as many axes, of the same dtype, not larger.
    start_indices: tuple of scalar integers, or vector of them; they may be traced.
{NEGATIVE}
Returns:
    Array of the shape and dtype of operand.
Raises:
    TypeError for updates that are larger.

>>> jax.lax.dynamic_update_slice(jnp.zeros(4, int), jnp.array([7, 8]), (1,))
Array([0, 7, 8, 0], dtype=int32)
""",
    "dynamic_update_slice_in_dim": f"""
Arguments:
{OPERAND}
    update: array of as many axes, of the same dtype, not larger.
    start_index: scalar integer; it may be traced.
{AXIS}
{NEGATIVE}
Returns:
    Array of the shape and dtype of operand.

>>> jax.lax.dynamic_update_slice_in_dim(jnp.zeros(4, int), jnp.array([7, 8]), 1, axis=0)
Array([0, 7, 8, 0], dtype=int32)
""",
    "dynamic_update_index_in_dim": f"""
Arguments:
{OPERAND}
    update: array of the shape of operand, with length 1 along the axis or without it.
    index: scalar integer; it may be traced.
{AXIS}
{NEGATIVE}
Returns:
    Array of the shape and dtype of operand.

>>> jax.lax.dynamic_update_index_in_dim(jnp.zeros(3, int), 7, 1, axis=0)
Array([0, 7, 0], dtype=int32)
""",
    "concatenate": """
Arguments:
    operands: list of arrays of one dtype.
    dimension: static integer.
Returns:
    Array.
Raises:
    TypeError if dtypes or other lengths differ; ValueError without operands.

>>> jax.lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
Array([1, 2, 3], dtype=int32)
""",
    "stack": f"""
Arguments:
    operands: list of arrays of one shape and dtype.
{AXIS}
Returns:
    Array of one axis more.
Raises:
    ValueError without operands.

>>> jax.lax.stack([jnp.array([1, 2]), jnp.array([3, 4])])
Array([[1, 2],
       [3, 4]], dtype=int32)
""",
    "split": f"""
Arguments:
{OPERAND}
    sizes: tuple of static integers.
{AXIS}
Returns:
    List of arrays.
Raises:
    ValueError unless they add up.

>>> jax.lax.split(jnp.arange(3), (1, 2))
[Array([0], dtype=int32), Array([1, 2], dtype=int32)]
""",
    "unstack": f"""
Arguments:
    x: array of one or more axes.
{AXIS}
Returns:
    Tuple of arrays.

>>> jax.lax.unstack(jnp.array([[1, 2], [3, 4]]))
(Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
""",
    "gather": f"""
Arguments:
{OPERAND}
    start_indices: array of integers [..., k].
    dimension_numbers: lax.GatherDimensionNumbers.
    slice_sizes: tuple of static integers.
{UNIQUE}
{SORTED}
{WINDOW_MODE}
    fill_value: what is outside with mode 'fill'; None for NaN, or an extreme integer.
Returns:
    Array.
Raises:
    ValueError for an unknown mode.

>>> numbers = jax.lax.GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))
>>> jax.lax.gather(jnp.array([10, 20, 30]), jnp.array([[2], [0]]), numbers, slice_sizes=(1,))
Array([30, 10], dtype=int32)
""",
    "index_take": """
Arguments:
    src: array.
    idxs: tuple of vectors of integers of one length.
    axes: tuple of as many integers.
Returns:
    Array of one axis in front in place of those.

>>> jax.lax.index_take(jnp.array([[1, 2], [3, 4]]), (jnp.array([0, 1]), jnp.array([1, 0])), (0, 1))
Array([2, 3], dtype=int32)
""",
    "scatter": f"""
Arguments:
{SCATTER_ARGUMENTS}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter(jnp.zeros(3, int), jnp.array([[2]]), jnp.array([5]), numbers)
Array([0, 0, 5], dtype=int32)
""",
    "scatter_add": f"""
Arguments:
{SCATTER_ARGUMENTS}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter_add(jnp.zeros(3, int), jnp.array([[2], [2]]), jnp.array([5, 6]), numbers)
Array([ 0,  0, 11], dtype=int32)
""",
    "scatter_sub": f"""
Arguments:
{SCATTER_ARGUMENTS}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter_sub(jnp.zeros(3, int), jnp.array([[2], [2]]), jnp.array([5, 6]), numbers)
Array([  0,   0, -11], dtype=int32)
""",
    "scatter_mul": f"""
Arguments:
{SCATTER_ARGUMENTS}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter_mul(jnp.ones(3, int), jnp.array([[2], [2]]), jnp.array([5, 6]), numbers)
Array([ 1,  1, 30], dtype=int32)
""",
    "scatter_max": f"""
Arguments:
{SCATTER_ARGUMENTS}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter_max(jnp.zeros(3, int), jnp.array([[2], [2]]), jnp.array([5, 6]), numbers)
Array([0, 0, 6], dtype=int32)
""",
    "scatter_min": f"""
Arguments:
{SCATTER_ARGUMENTS}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter_min(jnp.full(3, 9), jnp.array([[2], [2]]), jnp.array([5, 6]), numbers)
Array([9, 9, 5], dtype=int32)
""",
    "scatter_apply": f"""
Arguments:
{OPERAND}
    scatter_indices: array of integers [..., k].
    func: function of a scalar.
    dimension_numbers: lax.ScatterDimensionNumbers.
    update_shape: tuple of static integers.
{SORTED}
{UNIQUE}
{WINDOW_MODE}
Returns:
    Array of the shape and dtype of operand.

>>> numbers = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
>>> jax.lax.scatter_apply(jnp.array([1, 2, 3]), jnp.array([[2]]), lambda x: 10 * x, numbers, update_shape=(1,))
Array([ 1,  2, 30], dtype=int32)
""",
    "stop_gradient": f"""
Arguments:
{PYTREE}
Returns:
    The same tree.

>>> jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0)
Array(3., dtype=float32, weak_type=True)
""",
    "stage": """
Arguments:
    x: array.
Returns:
    The array.

>>> jax.lax.stage(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "optimization_barrier": """
Arguments:
    operand: pytree of arrays.
Returns:
    The same tree.

>>> jax.lax.optimization_barrier(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "dce_sink": """
Arguments:
    val: pytree of arrays.
    prevent_mlir_dce: has no effect.
Returns:
    None.

>>> jax.lax.dce_sink(jnp.array([1]))
""",
    "dimension_as_value": """
Arguments:
    dim: integer, or symbolic dimension of an exported function.
Returns:
    Scalar integer.

>>> jax.lax.dimension_as_value(3)
Array(3, dtype=int32, weak_type=True)
""",
    "shape_as_value": """
Arguments:
    shape: tuple of integers.
Returns:
    Vector of integers.

>>> jax.lax.shape_as_value((2, 3))
Array([2, 3], dtype=int32)
""",
}
