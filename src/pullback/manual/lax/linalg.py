"""Pages of factorizations and solvers."""

PAGES = {
    "EigImplementation": """
>>> values, *_ = lax.linalg.eig(jnp.eye(2), implementation=lax.linalg.EigImplementation.LAPACK)
>>> values
Array([1.+0.j, 1.+0.j], dtype=complex64)
""",
    "EighImplementation": """
>>> vectors, values = lax.linalg.eigh(jnp.eye(2), implementation=lax.linalg.EighImplementation.QR)
>>> values
Array([1., 1.], dtype=float32)
""",
    "SvdAlgorithm": """
>>> lax.linalg.svd(jnp.eye(2), compute_uv=False, algorithm=lax.linalg.SvdAlgorithm.QR)
Array([1., 1.], dtype=float32)
""",
    "cholesky": """
Arguments:
    x: array of inexact numbers [..., n, n].
    symmetrize_input: whether to take the mean of x and its conjugate transpose first.
Returns:
    Array of the shape of x.
Raises:
    ValueError unless the matrices are square.

>>> jax.lax.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
Array([[2., 0.],
       [1., 2.]], dtype=float32)
""",
    "cholesky_update": """
Arguments:
    r_matrix: array of floats [n, n], upper triangular.
    w_vector: array of floats [n].
Returns:
    Array [n, n].

>>> jax.lax.linalg.cholesky_update(jnp.array([[3.0]]), jnp.array([4.0])).round(3)
Array([[5.]], dtype=float32)
""",
    "eig": """
Arguments:
    x: array of inexact numbers [..., n, n].
    compute_left_eigenvectors, compute_right_eigenvectors: whether to give them.
    enable_eigvec_derivs: whether eigenvectors may be differentiated.
    implementation: None, or lax.linalg.EigImplementation.LAPACK.
    use_magma: None or False.
Returns:
    List of complex arrays [..., n] and [..., n, n].
Raises:
    ValueError unless the matrices are square.

>>> jax.lax.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]), compute_left_eigenvectors=False)[0]
Array([2.+0.j, 3.+0.j], dtype=complex64)
""",
    "eigh": """
Arguments:
    x: array of inexact numbers [..., n, n], Hermitian.
    lower: whether the lower triangle is read, unless symmetrize_input.
    symmetrize_input: whether to take the mean of x and its conjugate transpose first.
    sort_eigenvalues: whether eigenvalues ascend; they do anyway.
    subset_by_index: pair of static integers (first, last): which eigenvalues; None for all.
    implementation: None, or lax.linalg.EighImplementation.
Returns:
    Pair of arrays [..., n, n] and [..., n].
Raises:
    ValueError unless the matrices are square.

>>> vectors, values = jax.lax.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
>>> values.round(3)
Array([1., 3.], dtype=float32)
""",
    "geqrf": """
Arguments:
    a: array of inexact numbers [..., m, n].
Returns:
    Pair of arrays [..., m, n] and [..., min(m, n)].

>>> packed, taus = jax.lax.linalg.geqrf(jnp.array([[3.0], [4.0]]))
>>> jnp.abs(packed[0]).round(3)
Array([5.], dtype=float32)
""",
    "hessenberg": """
Arguments:
    a: array of inexact numbers [..., n, n].
Returns:
    Pair of arrays [..., n, n] and [..., n - 1].

>>> packed, taus = jax.lax.linalg.hessenberg(jnp.ones((3, 3)))
>>> packed.shape, taus.shape
((3, 3), (2,))
""",
    "householder_product": """
Arguments:
    a: array of inexact numbers [..., m, n].
    taus: array [..., k].
Returns:
    Array of the shape of a.

>>> q = jax.lax.linalg.householder_product(*jax.lax.linalg.geqrf(jnp.array([[3.0], [4.0]])))
>>> jnp.abs(q).round(3)
Array([[0.6],
       [0.8]], dtype=float32)
""",
    "ormqr": """
Arguments:
    a: array of inexact numbers [..., m, k].
    taus: array [..., k].
    c: array [..., m, n], or [..., n, m] for left=False.
    left: whether Q stands on the left.
    transpose: whether its conjugate transpose is taken.
Returns:
    Array of the shape of c.

>>> a, taus = jax.lax.linalg.geqrf(jnp.array([[3.0], [4.0]]))
>>> jnp.abs(jax.lax.linalg.ormqr(a, taus, jnp.array([[3.0], [4.0]]), transpose=True)).round(3)
Array([[5.],
       [0.]], dtype=float32)
""",
    "lu": """
Arguments:
    x: array of inexact numbers [..., m, n].
Returns:
    Triple of arrays [..., m, n], i32[..., min(m, n)] and i32[..., m].

>>> lu, pivots, permutation = jax.lax.linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
>>> lu, permutation
(Array([[4.  , 4.  ],
       [0.25, 1.  ]], dtype=float32), Array([1, 0], dtype=int32))
""",
    "lu_pivots_to_permutation": """
Arguments:
    pivots: array of int32 [..., k].
    permutation_size: static integer.
Returns:
    Array i32[..., permutation_size].

>>> jax.lax.linalg.lu_pivots_to_permutation(jnp.array([1, 1]), 2)
Array([1, 0], dtype=int32)
""",
    "qdwh": """
Arguments:
    x: array of inexact numbers [m, n].
    is_hermitian: whether x is Hermitian; the result is the same.
    max_iterations, eps: have no effect, as nothing is iterated.
    dynamic_shape: pair of integers, which may be traced: the rows and columns of x that count, outside of which
        the results are 0; all of x by default.
Returns:
    Tuple of arrays [m, n] and [n, n], the number of iterations, and whether it converged.

>>> u, h, iterations, converged = jax.lax.linalg.qdwh(jnp.array([[-2.0, 0.0], [0.0, 3.0]]))
>>> h.round(3)
Array([[2., 0.],
       [0., 3.]], dtype=float32)
""",
    "qr": """
Arguments:
    x: array of inexact numbers [..., m, n].
    pivoting: whether columns are exchanged so that the diagonal of R falls.
    full_matrices: whether Q is [..., m, m]; else it has min(m, n) columns.
    use_magma: None or False.
Returns:
    Pair of arrays, or triple with the columns i32[..., n].
Raises:
    TypeError for vectors.

>>> q, r = jax.lax.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
>>> jnp.abs(r).round(3)
Array([[5. , 2.2],
       [0. , 0.4]], dtype=float32)
""",
    "schur": """
Arguments:
    x: array of inexact numbers [..., n, n].
    compute_schur_vectors: whether to give Z.
    sort_eig_vals: whether eigenvalues that are chosen come first.
    select_callable: function of an eigenvalue that chooses.
Returns:
    List of arrays [..., n, n].

>>> t, z = jax.lax.linalg.schur(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
>>> t
Array([[2., 0.],
       [0., 3.]], dtype=float32)
""",
    "svd": """
Arguments:
    x: array of inexact numbers [..., m, n].
    full_matrices: whether U and V^H are square.
    compute_uv: whether to give them.
    subset_by_index: pair of static integers (first, last): which singular values; None for all.
    algorithm: None, or lax.linalg.SvdAlgorithm.
Returns:
    Triple of arrays, or the singular values alone.
Raises:
    TypeError for vectors.

>>> jax.lax.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False).round(3)
Array([3., 2.], dtype=float32)
""",
    "symmetric_product": """
Arguments:
    a_matrix: array [..., n, k].
    c_matrix: array [..., n, n], symmetric.
    alpha, beta: numbers.
    symmetrize_output: whether both triangles of the result are right.
Returns:
    Array [..., n, n].
Raises:
    ValueError for shapes that do not fit.

>>> jax.lax.linalg.symmetric_product(jnp.array([[1.0], [2.0]]), jnp.zeros((2, 2)), symmetrize_output=True)
Array([[1., 2.],
       [2., 4.]], dtype=float32)
""",
    "triangular_solve": """
Arguments:
    a: array of inexact numbers [..., n, n].
    b: array [..., n, k], or [..., k, n] unless left_side.
    left_side: whether a stands on the left.
    lower: whether the lower triangle is read.
    transpose_a, conjugate_a: whether a is transposed, and conjugated.
    unit_diagonal: whether the diagonal counts as ones.
Returns:
    Array of the shape of b.
Raises:
    ValueError for shapes that do not fit.

>>> a = jnp.array([[2.0, 0.0], [1.0, 4.0]])
>>> jax.lax.linalg.triangular_solve(a, jnp.array([[2.0], [9.0]]), left_side=True, lower=True)
Array([[1.],
       [2.]], dtype=float32)
""",
    "tridiagonal": """
Arguments:
    a: array of inexact numbers [..., n, n], Hermitian.
    lower: whether the lower triangle is read.
Returns:
    Tuple of arrays [..., n, n], [..., n], [..., n - 1] and [..., n - 1].

>>> packed, d, e, taus = jax.lax.linalg.tridiagonal(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
>>> d
Array([2., 3.], dtype=float32)
""",
    "tridiagonal_solve": """
Arguments:
    dl, d, du: arrays of floats [..., n].
    b: array [..., n, k].
    perturb_singular: whether pivots that are 0 are replaced by small numbers.
Returns:
    Array of the shape of b.
Raises:
    TypeError for shapes that do not fit.

>>> jax.lax.linalg.tridiagonal_solve(jnp.zeros(2), jnp.array([2.0, 4.0]), jnp.zeros(2), jnp.array([[2.0], [8.0]]))
Array([[1.],
       [2.]], dtype=float32)
""",
}
