"""Pages of linear algebra."""

from pullback.manual._arguments import AXES, AXIS, KEEPDIMS, MATRICES, OUT_SHARDING, PRECISION, PREFERRED, RECTANGLES

PAGES = {
    "cholesky": """
Arguments:
    a: array [..., n, n], Hermitian and positive definite; integers become the default float.
    upper: whether to give U instead of L.
    symmetrize_input: whether to take the mean of a and its conjugate transpose first.
Returns:
    Array of the shape of a.
Raises:
    TypeError unless the matrices are square.
Unlike numpy.linalg.cholesky:
    A matrix that is not positive definite gives NaN instead of an error.

>>> jnp.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
Array([[2., 0.],
       [1., 2.]], dtype=float32)
""",
    "cond": """
Arguments:
    x: array [..., m, n].
    p: None, 2, -2, 'fro', 'nuc', 1, -1, inf or -inf: the norm. Other norms than 2 need square matrices.
Returns:
    Array [...] of floats.

>>> jnp.linalg.cond(jnp.array([[4.0, 0.0], [0.0, 2.0]])).round(3)
Array(2., dtype=float32)
""",
    "cross": f"""
Arguments:
    x1, x2: arrays with 3 elements along the axis; their other axes broadcast.
{AXIS}
Returns:
    Array of the broadcast shape.
Raises:
    ValueError for other lengths.

>>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
Array([0, 0, 1], dtype=int32)
""",
    "det": f"""
Arguments:
{MATRICES}
Returns:
    Array [...].
Raises:
    ValueError unless the matrices are square.

>>> jnp.linalg.det(jnp.array([[2.0, 1.0], [0.0, 3.0]]))
Array(6., dtype=float32)
""",
    "slogdet": f"""
Arguments:
{MATRICES}
    method: 'lu', 'qr', or None for 'lu'.
Returns:
    Named tuple of two arrays [...].
Raises:
    ValueError unless the matrices are square.

>>> sign, logarithm = jnp.linalg.slogdet(jnp.array([[-1.0, 0.0], [0.0, 1.0]]))
>>> sign, logarithm
(Array(-1., dtype=float32), Array(0., dtype=float32))
""",
    "diagonal": """
Arguments:
    x: array [..., m, n].
    offset: static integer: number of the diagonal.
Returns:
    Array [..., length of the diagonal].

>>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
Array([1, 4], dtype=int32)
""",
    "trace": """
Arguments:
    x: array [..., m, n].
    offset: static integer: number of the diagonal.
    dtype: dtype in which to add, and of the result; None for that of x.
Returns:
    Array [...].

>>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
Array(5, dtype=int32)
""",
    "eig": f"""
Arguments:
{MATRICES}
Returns:
    Named tuple of complex arrays [..., n] and [..., n, n].
Raises:
    ValueError unless the matrices are square.
Unlike numpy.linalg.eig:
    The results are always complex. Eigenvectors have no derivative.

>>> values, vectors = jnp.linalg.eig(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
>>> values
Array([2.+0.j, 3.+0.j], dtype=complex64)
""",
    "eigvals": f"""
Arguments:
{MATRICES}
Returns:
    Complex array [..., n].
Raises:
    ValueError unless the matrices are square.
Unlike numpy.linalg.eigvals:
    The result is always complex.

>>> jnp.linalg.eigvals(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
Array([2.+0.j, 3.+0.j], dtype=complex64)
""",
    "eigh": """
Arguments:
    a: array [..., n, n], Hermitian; integers become the default float.
    UPLO: 'L' or 'U': the triangle that is read, if symmetrize_input is False; None for 'L'.
    symmetrize_input: whether to take the mean of a and its conjugate transpose first.
Returns:
    Named tuple of arrays [..., n] and [..., n, n].
Raises:
    TypeError unless the matrices are square.

>>> values, vectors = jnp.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
>>> values.round(3)
Array([1., 3.], dtype=float32)
""",
    "eigvalsh": """
Arguments:
    a: array [..., n, n], Hermitian; integers become the default float.
    UPLO: 'L' or 'U': the triangle that is read, if symmetrize_input is False.
    symmetrize_input: whether to take the mean of a and its conjugate transpose first.
Returns:
    Array [..., n].
Raises:
    TypeError unless the matrices are square.

>>> jnp.linalg.eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
Array([1., 3.], dtype=float32)
""",
    "inv": f"""
Arguments:
{MATRICES}
Returns:
    Array of the shape of a.
Raises:
    ValueError unless the matrices are square.
Unlike numpy.linalg.inv:
    A singular matrix gives infinities or NaN instead of an error.

>>> jnp.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
Array([[0.5 , 0.  ],
       [0.  , 0.25]], dtype=float32)
""",
    "pinv": f"""
Arguments:
{RECTANGLES}
    rtol: number or array [...]: singular values up to this part of the largest count as 0; None for 10 max(m, n) eps.
    hermitian: whether a is Hermitian, which is quicker.
    rcond: another name of rtol.
Returns:
    Array [..., n, m].
Raises:
    ValueError below rank 2.
Unlike numpy.linalg.pinv:
    The default of rtol is another one.

>>> jnp.linalg.pinv(jnp.array([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]])).round(3)
Array([[0.5 , 0.  , 0.  ],
       [0.  , 0.25, 0.  ]], dtype=float32)
""",
    "lstsq": """
Arguments:
    a: array [m, n]; integers become the default float.
    b: array [m] or [m, k].
    rcond: singular values below this part of the largest count as 0; None for eps max(m, n).
    numpy_resid: whether residuals are empty where NumPy's are: for low rank, and for n >= m.
Returns:
    Tuple of arrays [n] or [n, k], residuals, rank, and singular values.
Raises:
    TypeError for other ranks; ValueError if the numbers of rows differ.
Unlike numpy.linalg.lstsq:
    Residuals are always computed unless `numpy_resid` is set.

>>> a = jnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
>>> x, residuals, rank, s = jnp.linalg.lstsq(a, jnp.array([1.0, 3.0, 5.0]))
>>> x.round(3)
Array([1., 2.], dtype=float32)
""",
    "solve": f"""
Arguments:
{MATRICES}
    b: array [n] or [..., n, k].
Returns:
    Array of the shape of b, with the axes before the matrices broadcast.
Raises:
    ValueError unless a is square and the shapes go together.
Unlike numpy.linalg.solve:
    A singular matrix gives infinities or NaN instead of an error.

>>> jnp.linalg.solve(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
Array([1., 2.], dtype=float32)
""",
    "qr": f"""
Arguments:
{RECTANGLES}
    mode: 'reduced' (or 'full', its old name), 'complete', 'r', or 'raw'.
Returns:
    Named tuple of Q and R; R alone for 'r'; a pair of arrays [..., n, m] and [..., k] for 'raw'.
Raises:
    ValueError for other modes.

>>> q, r = jnp.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
>>> jnp.abs(r).round(3)
Array([[5. , 2.2],
       [0. , 0.4]], dtype=float32)
""",
    "svd": f"""
Arguments:
{RECTANGLES}
    full_matrices: whether U is [..., m, m] and V^H [..., n, n]; else both have k = min(m, n) columns or rows.
    compute_uv: whether to give U and V^H; else s alone.
    hermitian: whether a is Hermitian, which is quicker.
    subset_by_index: pair of static integers (first, last): which singular values; None for all.
Returns:
    Named tuple of U, s [..., k] and V^H; or s.
Raises:
    TypeError below rank 2.

>>> u, s, vh = jnp.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
>>> s.round(3)
Array([3., 2.], dtype=float32)
""",
    "svdvals": """
Arguments:
    x: array [..., m, n]; integers become the default float.
Returns:
    Array [..., min(m, n)].
Raises:
    TypeError below rank 2.

>>> jnp.linalg.svdvals(jnp.array([[0.0, 2.0], [3.0, 0.0]])).round(3)
Array([3., 2.], dtype=float32)
""",
    "matmul": f"""
Arguments:
    x1: array [n] or [..., m, n].
    x2: array [n] or [..., n, k].
{PRECISION}
{PREFERRED}
Returns:
    Array [..., m, k], without m where x1 is a vector, and without k where x2 is one.
Raises:
    ValueError for scalars.

>>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "matrix_norm": """
Arguments:
    x: array [..., m, n].
    keepdims: whether the last two axes stay, with size 1.
    ord: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.
Returns:
    Array [...] of floats.

>>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
Array(5., dtype=float32)
""",
    "matrix_power": """
Arguments:
    a: array [..., n, n].
    n: static integer.
Returns:
    Array of the shape of a.
Raises:
    TypeError unless the matrices are square.

>>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
Array([[1, 5],
       [0, 1]], dtype=int32)
""",
    "matrix_rank": """
Arguments:
    M: array [..., m, n]; integers become the default float.
    rtol: singular values up to this part of the largest count as 0; None for max(m, n) eps.
    hermitian: must be False.
    tol: the same as a number that does not depend on the largest; None for what rtol says.
Returns:
    Array [...] of integers.

>>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
Array(1, dtype=int32)
""",
    "matrix_transpose": """
Arguments:
    x: array [..., m, n].
Returns:
    Array [..., n, m].
Raises:
    ValueError below rank 2.

>>> jnp.linalg.matrix_transpose(jnp.array([[1, 2], [3, 4]]))
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "multi_dot": f"""
Arguments:
    arrays: list of two or more matrices; the first and the last may be vectors.
{PRECISION}
Returns:
    Array.

>>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
Array([12., 12.], dtype=float32)
""",
    "norm": f"""
Arguments:
    x: array of numbers; integers become the default float.
    ord: number, 'fro' or 'nuc'; None for the root of the sum of squares.
    axis: integer for vectors, pair of integers for matrices; None for all axes.
{KEEPDIMS}
Returns:
    Array of floats, of the shape of x without the axes.
Raises:
    ValueError for other orders.

>>> jnp.linalg.norm(jnp.array([[3.0, 4.0], [5.0, 12.0]]), axis=1)
Array([ 5., 13.], dtype=float32)
""",
    "vector_norm": f"""
Arguments:
    x: array of numbers.
{AXES}
{KEEPDIMS}
    ord: number, inf or -inf.
Returns:
    Array of the shape of x without the axes.

>>> jnp.linalg.vector_norm(jnp.array([3.0, -4.0]), ord=1)
Array(7., dtype=float32)
""",
    "outer": """
Arguments:
    x1, x2: vectors.
Returns:
    Array [x1.size, x2.size].
Raises:
    ValueError for other ranks.

>>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([1, 10]))
Array([[ 1, 10],
       [ 2, 20]], dtype=int32)
""",
    "tensordot": f"""
Arguments:
    x1, x2: arrays of any shape.
    axes: static integer, or pair of lists of axes of x1 and of x2.
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array of the other axes of x1, then of x2.

>>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 2)), axes=1).shape
(2, 2)
""",
    "vecdot": f"""
Arguments:
    x1, x2: arrays [..., n], which broadcast but along the axis.
{AXIS}
{PRECISION}
{PREFERRED}
Returns:
    Array of the broadcast shape without the axis.

>>> jnp.linalg.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "tensorinv": """
Arguments:
    a: array whose first `ind` lengths have the product of the others.
    ind: static integer: number of axes of the results of the map.
Returns:
    Array with the last axes of a first.
Raises:
    ValueError unless both have the same size.

>>> jnp.linalg.tensorinv(jnp.array([[2.0, 0.0], [0.0, 4.0]]), ind=1)
Array([[0.5 , 0.  ],
       [0.  , 0.25]], dtype=float32)
""",
    "tensorsolve": """
Arguments:
    a: array of the axes of b, then of those of the result.
    b: array of any shape.
    axes: tuple of integers: axes of a that belong to the result; None if they are the last.
Returns:
    Array.

>>> jnp.linalg.tensorsolve(jnp.array([[2.0, 0.0], [0.0, 4.0]]), jnp.array([2.0, 8.0]))
Array([1., 2.], dtype=float32)
""",
}
