"""Pages of sparse matrices in the formats COO and CSR, of sparse arrays that are made, and of functions of them."""

from pullback.manual._arguments import ARGNUMS, COO_MATRIX, CSR_MATRIX, HAS_AUX, INDEX_DTYPE, KEY, NSE

PAGES = {
    "coo_fromdense": f"""
Arguments:
    mat: matrix.
{NSE}
{INDEX_DTYPE}
Returns:
    COO.

>>> jax.experimental.sparse.coo_fromdense(jnp.array([[0, 5], [7, 0]])).data
Array([5, 7], dtype=int32)
""",
    "coo_todense": f"""
Arguments:
{COO_MATRIX}
Returns:
    Matrix.

>>> jax.experimental.sparse.coo_todense(jax.experimental.sparse.COO.fromdense(jnp.array([[0, 5]])))
Array([[0, 5]], dtype=int32)
""",
    "coo_matvec": f"""
Arguments:
{COO_MATRIX}
    v: vector.
    transpose: whether the transpose is taken.
Returns:
    Vector.

>>> jax.experimental.sparse.coo_matvec(jax.experimental.sparse.COO.fromdense(jnp.array([[0, 5]])), jnp.array([1, 2]))
Array([10], dtype=int32)
""",
    "coo_matmat": f"""
Arguments:
{COO_MATRIX}
    B: matrix.
    transpose: whether the transpose is taken.
Returns:
    Matrix.

>>> mat = jax.experimental.sparse.COO.fromdense(jnp.array([[0, 5]]))
>>> jax.experimental.sparse.coo_matmat(mat, jnp.array([[1], [2]]))
Array([[10]], dtype=int32)
""",
    "csr_fromdense": f"""
Arguments:
    mat: matrix.
{NSE}
{INDEX_DTYPE}
Returns:
    CSR.
Raises:
    ValueError for what has not two dimensions.

>>> jax.experimental.sparse.csr_fromdense(jnp.array([[0, 5], [7, 0]])).indptr
Array([0, 1, 2], dtype=int32)
""",
    "csr_todense": f"""
Arguments:
{CSR_MATRIX}
Returns:
    Matrix.

>>> jax.experimental.sparse.csr_todense(jax.experimental.sparse.CSR.fromdense(jnp.array([[0, 5]])))
Array([[0, 5]], dtype=int32)
""",
    "csr_matvec": f"""
Arguments:
{CSR_MATRIX}
    v: vector.
    transpose: whether the transpose is taken.
Returns:
    Vector.

>>> jax.experimental.sparse.csr_matvec(jax.experimental.sparse.CSR.fromdense(jnp.array([[0, 5]])), jnp.array([1, 2]))
Array([10], dtype=int32)
""",
    "csr_matmat": f"""
Arguments:
{CSR_MATRIX}
    B: matrix.
    transpose: whether the transpose is taken.
Returns:
    Matrix.

>>> mat = jax.experimental.sparse.CSR.fromdense(jnp.array([[0, 5]]))
>>> jax.experimental.sparse.csr_matmat(mat, jnp.array([[1], [2]]))
Array([[10]], dtype=int32)
""",
    "empty": f"""
Arguments:
    shape: tuple of static integers.
    dtype: dtype of the elements; None for the default float.
{INDEX_DTYPE}
    sparse_format: 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'.
    nse: static integer: room for that many entries.
    n_batch, n_dense: static integers: the first axes that are a batch, the last that are dense.
Returns:
    Sparse array.
Raises:
    ValueError for another format.

>>> jax.experimental.sparse.empty((2, 2)).todense()
Array([[0., 0.],
       [0., 0.]], dtype=float32)
""",
    "eye": f"""
Arguments:
    N: static integer: number of rows.
    M: static integer: number of columns; None for N.
    k: static integer: number of the diagonal.
    dtype: dtype of the elements; None for the default float.
{INDEX_DTYPE}
    sparse_format: 'bcoo', 'bcsr', 'coo', 'csr' or 'csc'.
    n_batch, n_dense: static integers, in the format 'bcoo'.
Returns:
    Sparse array.
Raises:
    ValueError for another format, and for more than two dimensions.

>>> jax.experimental.sparse.eye(2).todense()
Array([[1., 0.],
       [0., 1.]], dtype=float32)
""",
    "random_bcoo": f"""
Arguments:
{KEY}
    shape: tuple of static integers.
    dtype: dtype of the elements.
    indices_dtype: integer dtype of the indices; None for the default one.
    nse: number of entries, or the part of all places.
    n_batch, n_dense: static integers: the first axes that are a batch, the last that are dense.
    unique_indices: whether no place has several entries.
    sorted_indices: whether the places rise.
    generator: function of a key, a shape and a dtype that gives the elements.
    kwds: further arguments of the generator by name.
Returns:
    BCOO.
Raises:
    TypeError if nse is no number.

>>> jax.experimental.sparse.random_bcoo(jax.random.key(0), (4, 4), nse=3).nse
3
""",
    "sparsify": """
Arguments:
    f: function of arrays.
    use_tracer: has no effect.
Returns:
    Function of sparse and other arrays.
Raises:
    NotImplementedError for operations that have no sparse form.

>>> f = jax.experimental.sparse.sparsify(lambda x, y: x @ y)
>>> f(jax.experimental.sparse.eye(2), jnp.array([1.0, 2.0]))
Array([1., 2.], dtype=float32)
""",
    "grad": f"""
Arguments:
    fun: function of arrays and sparse arrays with a scalar result.
{ARGNUMS}
{HAS_AUX}
    kwargs: further arguments of `pullback.grad`.
Returns:
    Function of the arguments of fun.

>>> f = lambda mat: (mat.data**2).sum()
>>> jax.experimental.sparse.grad(f)(jax.experimental.sparse.eye(2)).todense()
Array([[2., 0.],
       [0., 2.]], dtype=float32)
""",
    "value_and_grad": f"""
Arguments:
    fun: function of arrays and sparse arrays with a scalar result.
{ARGNUMS}
{HAS_AUX}
    options: further arguments of `pullback.value_and_grad`.
Returns:
    Function of the arguments of fun.

>>> f = lambda mat: (mat.data**2).sum()
>>> jax.experimental.sparse.value_and_grad(f)(jax.experimental.sparse.eye(2))[0]
Array(2., dtype=float32)
""",
    "jacfwd": f"""
Arguments:
    fun: function of arrays and sparse arrays.
{ARGNUMS}
{HAS_AUX}
    kwargs: further arguments of `pullback.jacfwd`.
Returns:
    Function of the arguments of fun.

>>> f = lambda mat: (mat.data**2).sum()
>>> jax.experimental.sparse.jacfwd(f)(jax.experimental.sparse.eye(2)).todense()
Array([[2., 0.],
       [0., 2.]], dtype=float32)
""",
    "jacrev jacobian": f"""
Arguments:
    fun: function of arrays and sparse arrays.
{ARGNUMS}
{HAS_AUX}
    kwargs: further arguments of `pullback.jacrev`.
Returns:
    Function of the arguments of fun.

>>> f = lambda mat: (mat.data**2).sum()
>>> jax.experimental.sparse.jacrev(f)(jax.experimental.sparse.eye(2)).todense()
Array([[2., 0.],
       [0., 2.]], dtype=float32)
""",
    "BCOO": """
Arguments:
    args: (data [*batch, nse, *dense], indices [*batch, nse, n_sparse]).
    shape: tuple of integers.
    indices_sorted, unique_indices: what is known of the indices.
Raises:
    ValueError where shapes do not fit.

>>> from pullback.experimental import sparse
>>> matrix = sparse.BCOO((jnp.array([2.0, 3.0]), jnp.array([[0, 1], [1, 1]])), shape=(2, 2))
>>> matrix.todense()
Array([[0., 2.],
       [0., 3.]], dtype=float32)
""",
    "BCSR": """
Arguments:
    args: (data [*batch, nse, *dense], indices [*batch, nse], indptr [*batch, rows + 1]).
    shape: tuple of integers.
    indices_sorted, unique_indices: what is known of the indices.
Raises:
    ValueError where shapes do not fit.

>>> from pullback.experimental import sparse
>>> matrix = sparse.BCSR((jnp.array([2.0, 3.0]), jnp.array([1, 1]), jnp.array([0, 1, 2])), shape=(2, 2))
>>> matrix.todense()
Array([[0., 2.],
       [0., 3.]], dtype=float32)
""",
    "COO": """
Arguments:
    args: (data [nse], row [nse], col [nse]).
    shape: tuple of integers.
    rows_sorted, cols_sorted: what is known of the order.
Raises:
    ValueError where shapes do not fit.

>>> from pullback.experimental import sparse
>>> matrix = sparse.COO((jnp.array([2.0, 3.0]), jnp.array([0, 1]), jnp.array([1, 1])), shape=(2, 2))
>>> matrix.todense()
Array([[0., 2.],
       [0., 3.]], dtype=float32)
""",
    "CSR": """
Arguments:
    args: (data [nse], indices [nse], indptr [rows + 1]).
    shape: tuple of integers.
Raises:
    ValueError where shapes do not fit.

>>> from pullback.experimental import sparse
>>> matrix = sparse.CSR((jnp.array([2.0, 3.0]), jnp.array([1, 1]), jnp.array([0, 1, 2])), shape=(2, 2))
>>> matrix.todense()
Array([[0., 2.],
       [0., 3.]], dtype=float32)
""",
    "CSC": """
Arguments:
    args: (data [nse], indices [nse], indptr [columns + 1]).
    shape: tuple of integers.
Raises:
    ValueError where shapes do not fit.

>>> from pullback.experimental import sparse
>>> matrix = sparse.CSC((jnp.array([2.0, 3.0]), jnp.array([0, 1]), jnp.array([0, 0, 2])), shape=(2, 2))
>>> matrix.todense()
Array([[0., 2.],
       [0., 3.]], dtype=float32)
""",
    "JAXSparse": """
>>> from pullback.experimental import sparse
>>> isinstance(sparse.BCOO.fromdense(jnp.eye(2)), sparse.JAXSparse)
True
""",
}
