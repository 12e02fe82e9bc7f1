"""Pages of products and convolutions."""

from pullback.manual._arguments import OUT_SHARDING, PRECISION, PREFERRED

PAGES = {
    "dot": f"""
Arguments:
    lhs, rhs: arrays.
    dimension_numbers: as of `dot_general`; None for vectors and matrices.
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array.

>>> jax.lax.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "dot_general": f"""
Arguments:
    lhs, rhs: arrays.
    dimension_numbers: ((axes of lhs, axes of rhs) that are summed over, (axes of lhs, axes of rhs) that go together).
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for sizes that do not fit.

>>> x = jnp.array([[1, 2], [3, 4]])
>>> jax.lax.dot_general(x, x, (((1,), (1,)), ((0,), (0,))))
Array([ 5, 25], dtype=int32)
""",
    "batch_matmul": f"""
Arguments:
    lhs: array [..., m, n].
    rhs: array [..., n, k], of the same leading axes.
{PRECISION}
Returns:
    Array [..., m, k].
Raises:
    ValueError for vectors.

>>> jax.lax.batch_matmul(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4))).shape
(5, 2, 4)
""",
    "scaled_dot": """
Arguments:
    lhs, rhs: arrays.
    lhs_scale, rhs_scale: arrays of the same ranks whose lengths divide theirs; None for no scales.
    dimension_numbers: as of `dot_general`; None for the last axis of lhs and the last but one of rhs.
    preferred_element_type: dtype of the result; None for bfloat16.
Returns:
    Array.
Raises:
    TypeError for vectors.

>>> scale = jnp.array([[[1.0, 2.0]]])
>>> jax.lax.scaled_dot(jnp.ones((1, 1, 4)), jnp.ones((1, 4, 1)), lhs_scale=scale, rhs_scale=jnp.ones((1, 2, 1)))
Array([[[6]]], dtype=bfloat16)
""",
    "ragged_dot": f"""
Arguments:
    lhs: array [m, k]; its rows come in groups.
    rhs: array [g, k, n].
    group_sizes: array of integers [g]: the rows of each group.
{PRECISION}
{PREFERRED}
    group_offset: must be None.
{OUT_SHARDING}
Returns:
    Array [m, n].
Raises:
    TypeError for other ranks.

>>> jax.lax.ragged_dot(jnp.array([[1], [2], [3]]), jnp.array([[[1]], [[10]]]), jnp.array([1, 2]))
Array([[ 1],
       [20],
       [30]], dtype=int32)
""",
    "ragged_dot_general": f"""
Arguments:
    lhs, rhs: arrays.
    group_sizes: array of integers [..., g]: the lengths of the groups.
    ragged_dot_dimension_numbers: lax.RaggedDotDimensionNumbers.
{PRECISION}
{PREFERRED}
    group_offset: must be None.
{OUT_SHARDING}
Returns:
    Array.

>>> numbers = jax.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
>>> jax.lax.ragged_dot_general(jnp.array([[1], [2], [3]]), jnp.array([[[1]], [[10]]]), jnp.array([1, 2]), numbers)
Array([[ 1],
       [20],
       [30]], dtype=int32)
""",
    "conv": f"""
Arguments:
    lhs: array [batch, features, ...].
    rhs: array [results, features, ...]: the kernel.
    window_strides: tuple of static integers.
    padding: 'SAME', 'SAME_LOWER', 'VALID', or a list of (before, after).
{PRECISION}
{PREFERRED}
Returns:
    Array [batch, results, ...].

>>> jax.lax.conv(jnp.array([[[1, 2, 3]]]), jnp.array([[[1, 10]]]), (1,), "VALID")
Array([[[21, 32]]], dtype=int32)
""",
    "conv_with_general_padding": f"""
Arguments:
    lhs: array [batch, features, ...].
    rhs: array [results, features, ...]: the kernel.
    window_strides: tuple of static integers.
    padding: 'SAME', 'SAME_LOWER', 'VALID', or a list of (before, after).
    lhs_dilation, rhs_dilation: tuples of static integers: distances of the elements; None for 1.
{PRECISION}
{PREFERRED}
Returns:
    Array [batch, results, ...].

>>> jax.lax.conv_with_general_padding(jnp.array([[[1, 2, 3]]]), jnp.array([[[1, 10]]]), (1,), [(0, 1)], None, None)
Array([[[21, 32,  3]]], dtype=int32)
""",
    "conv_general_dilated": f"""
Arguments:
    lhs: array: the input.
    rhs: array: the kernel.
    window_strides: tuple of static integers.
    padding: 'SAME', 'SAME_LOWER', 'VALID', or a list of (before, after).
    lhs_dilation, rhs_dilation: tuples of static integers: distances of the elements; None for 1.
    dimension_numbers: triple of texts, where N is the batch, C features, I and O those of the kernel; None for NCHW,
        OIHW, NCHW.
    feature_group_count: static integer: groups of features that do not mix.
    batch_group_count: static integer: groups of the batch, one for each group of results.
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for bad texts.

>>> x, kernel = jnp.array([1, 2, 3]).reshape(1, 3, 1), jnp.array([1, 10]).reshape(2, 1, 1)
>>> jax.lax.conv_general_dilated(x, kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")).ravel()
Array([21, 32], dtype=int32)
""",
    "conv_general_dilated_local": f"""
Arguments:
    lhs: array: the input.
    rhs: array: a kernel for each place, its window with the features first as input features.
    window_strides: tuple of static integers.
    padding: 'SAME', 'SAME_LOWER', 'VALID', or a list of (before, after).
    filter_shape: tuple of static integers: the window.
    lhs_dilation, rhs_dilation: tuples of static integers: distances of the elements; None for 1.
    dimension_numbers: as of `conv_general_dilated`.
{PRECISION}
Returns:
    Array.

>>> kernels = jnp.array([[1.0, 10.0], [1.0, 100.0]]).reshape(1, 2, 2).transpose(0, 2, 1)
>>> jax.lax.conv_general_dilated_local(jnp.array([[[1.0, 2.0, 3.0]]]), kernels, (1,), "VALID", (2,))
Array([[[ 21., 302.]]], dtype=float32)
""",
    "conv_general_dilated_patches": f"""
Arguments:
    lhs: array: the input.
    filter_shape: tuple of static integers: the window.
    window_strides: tuple of static integers.
    padding: 'SAME', 'SAME_LOWER', 'VALID', or a list of (before, after).
    lhs_dilation, rhs_dilation: tuples of static integers: distances of the elements; None for 1.
    dimension_numbers: as of `conv_general_dilated`.
{PRECISION}
{PREFERRED}
Returns:
    Array whose features are the windows.

>>> jax.lax.conv_general_dilated_patches(jnp.array([[[1.0, 2.0, 3.0]]]), (2,), (1,), "VALID")
Array([[[1., 2.],
        [2., 3.]]], dtype=float32)
""",
    "conv_transpose": f"""
Arguments:
    lhs: array: the input.
    rhs: array: the kernel.
    strides: tuple of static integers.
    padding: 'SAME', 'VALID', or a list of (before, after).
    rhs_dilation: tuple of static integers; None for 1.
    dimension_numbers: as of `conv_general_dilated`; None for features last.
    transpose_kernel: whether the kernel is reversed and its features swapped.
{PRECISION}
{PREFERRED}
    use_consistent_padding: whether given padding is that of the convolution whose gradient this is.
Returns:
    Array.

>>> x, kernel = jnp.array([1.0, 2.0]).reshape(1, 2, 1), jnp.array([1.0, 10.0]).reshape(2, 1, 1)
>>> jax.lax.conv_transpose(x, kernel, (2,), "VALID").ravel()
Array([10.,  1., 20.,  2.], dtype=float32)
""",
    "conv_dimension_numbers": """
Arguments:
    lhs_shape, rhs_shape: tuples of integers.
    dimension_numbers: as of `conv_general_dilated`.
Returns:
    ConvDimensionNumbers.
Raises:
    TypeError for bad texts.

>>> jax.lax.conv_dimension_numbers((1, 3, 1), (2, 1, 1), ("NWC", "WIO", "NWC")).lhs_spec
(0, 2, 1)
""",
    "conv_general_permutations": """
Arguments:
    dimension_numbers: triple of texts.
Returns:
    Triple of tuples of integers.

>>> jax.lax.conv_general_permutations(("NWC", "WIO", "NWC"))
((0, 2, 1), (2, 1, 0), (0, 2, 1))
""",
    "conv_general_shape_tuple": """
Arguments:
    lhs_shape, rhs_shape: tuples of integers.
    window_strides: tuple of integers.
    padding: 'SAME', 'VALID', or a list of (before, after).
    dimension_numbers: as of `conv_general_dilated`.
Returns:
    Tuple of integers.

>>> jax.lax.conv_general_shape_tuple((1, 3, 1), (2, 1, 1), (1,), "VALID", ("NWC", "WIO", "NWC"))
(1, 2, 1)
""",
    "conv_shape_tuple": """
Arguments:
    lhs_shape, rhs_shape: tuples of integers, as of `conv`.
    strides: tuple of integers.
    pads: 'SAME' or 'VALID'.
    batch_group_count: integer.
Returns:
    Tuple of integers.

>>> jax.lax.conv_shape_tuple((1, 1, 3), (1, 1, 2), (1,), "VALID")
(1, 1, 2)
""",
    "conv_transpose_shape_tuple": """
Arguments:
    lhs_shape, rhs_shape: tuples of integers.
    window_strides: tuple of integers.
    padding: 'SAME', 'VALID', or a list of (before, after).
    dimension_numbers: as of `conv_general_dilated`.
Returns:
    Tuple of integers.

>>> jax.lax.conv_transpose_shape_tuple((1, 2, 1), (2, 1, 1), (2,), "VALID", ("NWC", "WIO", "NWC"))
(1, 4, 1)
""",
    "padtype_to_pads": """
Arguments:
    in_shape: tuple of integers.
    window_shape: tuple of integers.
    window_strides: tuple of integers.
    padding: 'SAME', 'SAME_LOWER' or 'VALID'.
Returns:
    List of (before, after).
Raises:
    RuntimeError for other texts.

>>> jax.lax.padtype_to_pads((3,), (2,), (1,), "SAME")
[(0, 1)]
""",
}
