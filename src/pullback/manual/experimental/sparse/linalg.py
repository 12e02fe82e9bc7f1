"""Pages of solvers for sparse matrices."""

PAGES = {
    "spsolve": """
Arguments:
    data, indices, indptr: the matrix by rows: float[nse], int[nse] and int[n + 1].
    b: float[n].
    tol: has no effect.
    reorder: 0 to 3; has no effect.
Returns:
    Array [n].
Raises:
    TypeError for b of another shape; ValueError for another `reorder`.

>>> from pullback.experimental.sparse import linalg
>>> linalg.spsolve(jnp.array([2.0, 4.0]), jnp.array([0, 1]), jnp.array([0, 1, 2]), jnp.ones(2))
Array([0.5 , 0.25], dtype=float32)
""",
    "lobpcg_standard": """
Arguments:
    A: Hermitian matrix [n, n], sparse or dense, or function from arrays [n, k] to such.
    X: array [n, k]: where the search begins.
    m: most iterations.
    tol: residual that is small enough, relative; None for the dtype's.
Returns:
    (eigenvalues [k], the largest; eigenvectors [n, k]; number of iterations).
Raises:
    ValueError unless 0 < 5 k < n, and for shapes that do not fit.

>>> from pullback.experimental.sparse import linalg
>>> values, vectors, count = linalg.lobpcg_standard(jnp.diag(jnp.arange(1.0, 21.0)), jnp.ones((20, 1)))
>>> jnp.round(values, 2)
Array([20.], dtype=float32)
""",
}
