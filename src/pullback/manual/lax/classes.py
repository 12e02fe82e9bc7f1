"""Pages of the classes of arguments that functions of `lax` take: dimension numbers, choices by name."""

PAGES = {
    "AccuracyMode": """
>>> float(lax.exp(1.0, accuracy=lax.AccuracyMode.HIGHEST)) == float(lax.exp(1.0))
True
""",
    "ConvDimensionNumbers": """
Fields:
    lhs_spec, out_spec: positions of the batch, the features, and each dimension of space.
    rhs_spec: positions of the results' features, the operand's features, and each dimension of space.

>>> lax.conv_dimension_numbers((8, 32, 32, 3), (5, 5, 3, 16), ("NHWC", "HWIO", "NHWC"))
ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
""",
    "DotAlgorithm": """
Fields:
    lhs_precision_type, rhs_precision_type, accumulation_type: dtypes in which factors are multiplied and summed.
    lhs_component_count, rhs_component_count, num_primitive_operations: into how many parts a factor is cut, and how
        many products of parts are made.
    allow_imprecise_accumulation: whether sums may lose digits on the way.

>>> lax.DotAlgorithm(jnp.float32, jnp.float32, jnp.float32).num_primitive_operations
1
""",
    "DotAlgorithmPreset": """
>>> x = jnp.ones((2, 3))
>>> lax.dot(x, x.T, precision=lax.DotAlgorithmPreset.F32_F32_F32)[0, 0]
Array(3., dtype=float32)
""",
    "FftType": """
>>> lax.fft(jnp.arange(4.0), lax.FftType.RFFT, (4,))
Array([ 6.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
""",
    "GatherDimensionNumbers": """
Here rows 2 and 0 of a matrix: dimension 1 of the result is one of the window, dimension 0 of the operand has size 1 in
it and is left out, and an index is a place along dimension 0.

>>> numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
>>> x = jnp.arange(6).reshape(3, 2)
>>> lax.gather(x, jnp.array([[2], [0]]), numbers, slice_sizes=(1, 2))
Array([[4, 5],
       [0, 1]], dtype=int32)
""",
    "GatherScatterMode": """
CLIP moves an index to the nearest element, FILL_OR_DROP reads a fill value and writes nothing, PROMISE_IN_BOUNDS says
that there are none, ONE_HOT reads by a product.

>>> jnp.arange(3).at[7].get(mode=lax.GatherScatterMode.CLIP)
Array(2, dtype=int32)
""",
    "Precision": """
>>> x = jnp.ones((2, 2))
>>> lax.dot(x, x, precision=lax.Precision.HIGHEST)
Array([[2., 2.],
       [2., 2.]], dtype=float32)
""",
    "RaggedDotDimensionNumbers": """
Fields:
    dot_dimension_numbers: the contracting and batch dimensions, as `dot_general` takes them.
    lhs_ragged_dimensions: the one dimension of lhs that consists of groups.
    rhs_group_dimensions: the dimension of rhs that numbers the groups.

>>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
>>> lhs, rhs = jnp.ones((3, 2)), jnp.arange(8.0).reshape(2, 2, 2)
>>> lax.ragged_dot_general(lhs, rhs, jnp.array([1, 2]), numbers)
Array([[ 2.,  4.],
       [10., 12.],
       [10., 12.]], dtype=float32)
""",
    "RandomAlgorithm": """
>>> state, bits = lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)
>>> bits.shape
(3,)
""",
    "RoundingMethod": """
>>> lax.round(jnp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
Array([0., 2.], dtype=float32)
""",
    "ScatterDimensionNumbers": """
Here rows 2 and 0 of a matrix are replaced, as `GatherDimensionNumbers` reads them.

>>> numbers = lax.ScatterDimensionNumbers((1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
>>> lax.scatter(jnp.zeros((3, 2)), jnp.array([[2], [0]]), jnp.array([[4.0, 5.0], [0.0, 1.0]]), numbers)
Array([[0., 1.],
       [0., 0.],
       [4., 5.]], dtype=float32)
""",
}
