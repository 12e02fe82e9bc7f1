"""Pages of sparse arrays in the formats BCOO and BCSR."""

from pullback.manual._arguments import BCOO, INDEX_DTYPE, NSE

PAGES = {
    "bcoo_fromdense": f"""
Arguments:
    mat: array.
{NSE}
    n_batch, n_dense: static integers: the first axes that are a batch, the last that are dense.
{INDEX_DTYPE}
Returns:
    BCOO.
Raises:
    TypeError for a traced array without nse.

>>> jax.experimental.sparse.bcoo_fromdense(jnp.array([[0, 5], [7, 0]])).data
Array([5, 7], dtype=int32)
""",
    "bcoo_todense": f"""
Arguments:
{BCOO}
Returns:
    Array.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5], [7, 0]]))
>>> jax.experimental.sparse.bcoo_todense(mat)
Array([[0, 5],
       [7, 0]], dtype=int32)
""",
    "todense": """
Arguments:
    arr: sparse or other array.
Returns:
    Array.
Raises:
    Nothing.

>>> jax.experimental.sparse.todense(jax.experimental.sparse.eye(2))
Array([[1., 0.],
       [0., 1.]], dtype=float32)
""",
    "bcoo_broadcast_in_dim": f"""
Arguments:
{BCOO}
    shape: tuple of static integers.
    broadcast_dimensions: tuple of a rising integer for each axis of mat.
    sharding: must be None.
Returns:
    BCOO.
Raises:
    ValueError if the sizes do not fit.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([5, 0]))
>>> jax.experimental.sparse.bcoo_broadcast_in_dim(mat, shape=(1, 2), broadcast_dimensions=(1,)).todense()
Array([[5, 0]], dtype=int32)
""",
    "bcoo_concatenate": """
Arguments:
    operands: list of BCOO.
    dimension: static integer.
Returns:
    BCOO.

>>> mat = jax.experimental.sparse.eye(2)
>>> jax.experimental.sparse.bcoo_concatenate([mat, mat], dimension=0).shape
(4, 2)
""",
    "bcoo_conv_general_dilated": """
Arguments:
    lhs, rhs: BCOO [1, 1, n] and [1, 1, k].
    window_strides: (1,).
    padding: 'SAME', 'VALID', or a list of a pair.
    lhs_dilation, rhs_dilation: must be None.
    dimension_numbers: must be None.
    feature_group_count, batch_group_count: must be 1.
    precision: has no effect.
    preferred_element_type: dtype of the result; None for the promoted one.
    out_sharding: must be None.
Returns:
    BCOO.

>>> x = jax.experimental.sparse.BCOO.fromdense(jnp.array([[[1.0, 0.0, 2.0]]]))
>>> k = jax.experimental.sparse.BCOO.fromdense(jnp.array([[[1.0, 10.0]]]))
>>> jax.experimental.sparse.bcoo_conv_general_dilated(x, k, window_strides=(1,), padding="VALID").todense()
Array([[[ 1., 20.]]], dtype=float32)
""",
    "bcoo_dot_general": """
Arguments:
    lhs, rhs: BCOO and array, in any order, or two BCOO.
    dimension_numbers: as of `lax.dot_general`.
    precision: as of `lax.dot_general`.
    preferred_element_type: dtype of the result; None for the promoted one.
    out_sharding: must be None.
Returns:
    Array, or BCOO for two of them.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5], [7, 0]]))
>>> jax.experimental.sparse.bcoo_dot_general(mat, jnp.array([1, 10]), dimension_numbers=(((1,), (0,)), ((), ())))
Array([50,  7], dtype=int32)
""",
    "bcoo_dot_general_sampled": """
Arguments:
    A, B: arrays.
    indices: array of integers [*batch, nse, n].
    dimension_numbers: as of `lax.dot_general`.
Returns:
    Array [*batch, nse].

>>> numbers = (((1,), (0,)), ((), ()))
>>> a, b = jnp.ones((2, 3)), jnp.ones((3, 2))
>>> jax.experimental.sparse.bcoo_dot_general_sampled(a, b, jnp.array([[0, 1]]), dimension_numbers=numbers)
Array([3.], dtype=float32)
""",
    "bcoo_dynamic_slice": f"""
Arguments:
{BCOO}
    start_indices: tuple of scalar integers.
    slice_sizes: tuple of static integers.
Returns:
    BCOO.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
>>> jax.experimental.sparse.bcoo_dynamic_slice(mat, (1,), (2,)).todense()
Array([5, 7], dtype=int32)
""",
    "bcoo_gather": """
Arguments:
    operand: BCOO.
    start_indices: integers[..., k].
    dimension_numbers: GatherDimensionNumbers.
    slice_sizes: tuple of static integers.
    unique_indices, indices_are_sorted: bool, promises.
    mode: None, 'clip' or 'promise_in_bounds'.
    fill_value: not used, as there is no mode 'fill'.
Returns:
    BCOO.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
>>> numbers = jax.lax.GatherDimensionNumbers((1,), (), (0,))
>>> jax.experimental.sparse.bcoo_gather(mat, jnp.array([[0], [1]]), numbers, (2,)).todense()
Array([[0, 5],
       [5, 7]], dtype=int32)
""",
    "bcoo_eliminate_zeros": f"""
Arguments:
{BCOO}
{NSE}
Returns:
    BCOO.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO((jnp.array([0, 5]), jnp.array([[0], [1]])), shape=(3,))
>>> jax.experimental.sparse.bcoo_eliminate_zeros(mat).nse
1
""",
    "bcoo_extract": """
Arguments:
    sparr: BCOO.
    arr: array of its shape.
    assume_unique: whether no place has several entries; None for what sparr says.
Returns:
    BCOO.
Raises:
    ValueError if the shapes differ.

>>> jax.experimental.sparse.bcoo_extract(jax.experimental.sparse.eye(2), jnp.array([[1, 2], [3, 4]])).data
Array([1, 4], dtype=int32)
""",
    "bcoo_multiply_dense": """
Arguments:
    sp_mat: BCOO.
    v: array that broadcasts to its shape.
Returns:
    Array: the data.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
>>> jax.experimental.sparse.bcoo_multiply_dense(mat, jnp.array([1, 2, 3]))
Array([10, 21], dtype=int32)
""",
    "bcoo_multiply_sparse": """
Arguments:
    lhs, rhs: BCOO.
Returns:
    BCOO.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
>>> jax.experimental.sparse.bcoo_multiply_sparse(mat, mat).todense()
Array([ 0, 25, 49], dtype=int32)
""",
    "bcoo_reduce_sum": f"""
Arguments:
{BCOO}
    axes: tuple of integers.
Returns:
    BCOO.

>>> jax.experimental.sparse.bcoo_reduce_sum(jax.experimental.sparse.eye(2), axes=(0,)).todense()
Array([1., 1.], dtype=float32)
""",
    "bcoo_reshape": f"""
Arguments:
{BCOO}
    new_sizes: tuple of static integers.
    dimensions: must be None.
    sharding: must be None.
Returns:
    BCOO.
Raises:
    TypeError for another size.

>>> jax.experimental.sparse.bcoo_reshape(jax.experimental.sparse.eye(2), new_sizes=(4,)).todense()
Array([1., 0., 0., 1.], dtype=float32)
""",
    "bcoo_rev": """
Arguments:
    operand: BCOO.
    dimensions: tuple of integers.
Returns:
    BCOO.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
>>> jax.experimental.sparse.bcoo_rev(mat, dimensions=(0,)).todense()
Array([7, 5, 0], dtype=int32)
""",
    "bcoo_slice": f"""
Arguments:
{BCOO}
    start_indices, limit_indices: tuples of static integers.
    strides: tuple of static integers; None for 1.
Returns:
    BCOO.
Raises:
    ValueError beyond the array.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([0, 5, 7]))
>>> jax.experimental.sparse.bcoo_slice(mat, start_indices=(1,), limit_indices=(3,)).todense()
Array([5, 7], dtype=int32)
""",
    "bcoo_sort_indices": f"""
Arguments:
{BCOO}
Returns:
    BCOO.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO((jnp.array([7, 5]), jnp.array([[2], [1]])), shape=(3,))
>>> jax.experimental.sparse.bcoo_sort_indices(mat).data
Array([5, 7], dtype=int32)
""",
    "bcoo_squeeze": """
Arguments:
    arr: BCOO.
    dimensions: tuple of integers.
Returns:
    BCOO.

>>> jax.experimental.sparse.bcoo_squeeze(jax.experimental.sparse.eye(1), dimensions=(0,)).shape
(1,)
""",
    "bcoo_sum_duplicates": f"""
Arguments:
{BCOO}
{NSE}
    remove_zeros: whether entries of value 0 are dropped.
Returns:
    BCOO.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> mat = jax.experimental.sparse.BCOO((jnp.array([5, 6]), jnp.array([[1], [1]])), shape=(3,))
>>> jax.experimental.sparse.bcoo_sum_duplicates(mat).data
Array([11], dtype=int32)
""",
    "bcoo_transpose": f"""
Arguments:
{BCOO}
    permutation: tuple of all axes.
Returns:
    BCOO.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.array([[0, 5]]))
>>> jax.experimental.sparse.bcoo_transpose(mat, permutation=(1, 0)).todense()
Array([[0],
       [5]], dtype=int32)
""",
    "bcoo_update_layout": f"""
Arguments:
{BCOO}
    n_batch, n_dense: static integers; None for those of mat.
    on_inefficient: 'error', 'warn' or None.
Returns:
    BCOO.
Raises:
    ValueError for numbers that do not fit.

>>> mat = jax.experimental.sparse.BCOO.fromdense(jnp.ones((2, 2)))
>>> jax.experimental.sparse.bcoo_update_layout(mat, n_batch=1, on_inefficient=None).n_batch
1
""",
    "bcsr_fromdense": f"""
Arguments:
    mat: array.
{NSE}
    n_batch, n_dense: static integers: the first axes that are a batch, the last that are dense.
{INDEX_DTYPE}
Returns:
    BCSR.
Raises:
    ValueError unless two axes are sparse.

>>> jax.experimental.sparse.bcsr_fromdense(jnp.array([[0, 5], [7, 0]])).indptr
Array([0, 1, 2], dtype=int32)
""",
    "bcsr_todense": """
Arguments:
    mat: BCSR.
Returns:
    Array.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> jax.experimental.sparse.bcsr_todense(jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5]])))
Array([[0, 5]], dtype=int32)
""",
    "bcsr_broadcast_in_dim": """
Arguments:
    mat: BCSR.
    shape: tuple of static integers.
    broadcast_dimensions: tuple of a rising integer for each axis of mat.
    sharding: must be None.
Returns:
    BCSR.

>>> mat = jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5]]))
>>> jax.experimental.sparse.bcsr_broadcast_in_dim(mat, shape=(2, 2), broadcast_dimensions=(0, 1)).todense()
Array([[0, 5],
       [0, 5]], dtype=int32)
""",
    "bcsr_concatenate": """
Arguments:
    operands: list of BCSR.
    dimension: static integer.
Returns:
    BCSR.

>>> mat = jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5]]))
>>> jax.experimental.sparse.bcsr_concatenate([mat, mat], dimension=0).todense()
Array([[0, 5],
       [0, 5]], dtype=int32)
""",
    "bcsr_dot_general": """
Arguments:
    lhs, rhs: BCSR and array, in any order.
    dimension_numbers: as of `lax.dot_general`.
    precision: as of `lax.dot_general`.
    preferred_element_type: dtype of the result; None for the promoted one.
    out_sharding: must be None.
Returns:
    Array.

>>> mat = jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5], [7, 0]]))
>>> jax.experimental.sparse.bcsr_dot_general(mat, jnp.array([1, 10]), dimension_numbers=(((1,), (0,)), ((), ())))
Array([50,  7], dtype=int32)
""",
    "bcsr_eliminate_zeros": f"""
Arguments:
    mat: BCSR.
{NSE}
Returns:
    BCSR.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> jax.experimental.sparse.bcsr_eliminate_zeros(jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5]]), nse=2)).nse
1
""",
    "bcsr_extract": """
Arguments:
    indices: array of integers [*batch, nse].
    indptr: array of integers [*batch, rows + 1].
    mat: array.
Returns:
    Array [*batch, nse, *dense].

>>> jax.experimental.sparse.bcsr_extract(jnp.array([1, 0]), jnp.array([0, 1, 2]), jnp.array([[1, 2], [3, 4]]))
Array([2, 3], dtype=int32)
""",
    "bcsr_sum_duplicates": f"""
Arguments:
    mat: BCSR.
{NSE}
Returns:
    BCSR.
Raises:
    AttributeError for what is no sparse matrix of this kind.

>>> jax.experimental.sparse.bcsr_sum_duplicates(jax.experimental.sparse.BCSR.fromdense(jnp.array([[0, 5]]))).data
Array([5], dtype=int32)
""",
}
