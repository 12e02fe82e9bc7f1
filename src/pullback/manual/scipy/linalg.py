"""Pages of SciPy's linear algebra."""

from pullback.manual._arguments import OVERWRITE_A, SQUARE

PAGES = {
    "block_diag": """
Arguments:
    arrs: arrays of at most two axes.
Returns:
    Matrix.
Raises:
    ValueError for more axes.

>>> jax.scipy.linalg.block_diag(jnp.array([[1, 2]]), jnp.array([[3]]))
Array([[1, 2, 0],
       [0, 0, 3]], dtype=int32)
""",
    "cho_factor": f"""
Arguments:
{SQUARE}
    lower: whether the lower triangle is read, and given.
{OVERWRITE_A}
Returns:
    Pair of an array and lower.

>>> c, lower = jax.scipy.linalg.cho_factor(jnp.array([[4.0]]))
>>> c
Array([[2.]], dtype=float32)
""",
    "cho_solve": """
Arguments:
    c_and_lower: pair as of `cho_factor`.
    b: array [n] or [..., n, k].
    overwrite_b, check_finite: have no effect.
Returns:
    Array of the shape of b.

>>> jax.scipy.linalg.cho_solve((jnp.array([[2.0]]), False), jnp.array([8.0]))
Array([2.], dtype=float32)
""",
    "cholesky": f"""
Arguments:
{SQUARE}
    lower: whether the lower triangle is read, and given.
{OVERWRITE_A}
Returns:
    Array of the shape of a.

>>> jax.scipy.linalg.cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]]))
Array([[2., 1.],
       [0., 2.]], dtype=float32)
""",
    "circulant": """
Arguments:
    c: array [..., n].
Returns:
    Array [..., n, n].

>>> jax.scipy.linalg.circulant(jnp.array([1, 2, 3]))
Array([[1, 3, 2],
       [2, 1, 3],
       [3, 2, 1]], dtype=int32)
""",
    "companion": """
Arguments:
    a: vector of n + 1 coefficients.
Returns:
    Matrix [n, n].
Raises:
    ValueError for fewer than two.

>>> jax.scipy.linalg.companion(jnp.array([1.0, -3.0, 2.0]))
Array([[ 3., -2.],
       [ 1.,  0.]], dtype=float32)
""",
    "convolution_matrix": """
Arguments:
    a: array [..., m].
    n: static integer.
    mode: 'full', 'same' or 'valid'.
Returns:
    Array [..., rows, n].
Raises:
    ValueError for another mode.

>>> jax.scipy.linalg.convolution_matrix(jnp.array([1, 10]), 2)
Array([[ 1,  0],
       [10,  1],
       [ 0, 10]], dtype=int32)
""",
    "det": f"""
Arguments:
{SQUARE}
{OVERWRITE_A}
Returns:
    Array [...].

>>> jax.scipy.linalg.det(jnp.array([[2.0, 1.0], [0.0, 3.0]]))
Array(6., dtype=float32)
""",
    "dft": """
Arguments:
    n: static integer.
    scale: None, 'sqrtn' or 'n'.
    dtype: complex dtype of the result; None for the default one.
Returns:
    Matrix [n, n].

>>> jax.scipy.linalg.dft(2).real.round(3)
Array([[ 1.,  1.],
       [ 1., -1.]], dtype=float32)
""",
    "eigh": f"""
Arguments:
{SQUARE}
    b: must be None.
    lower: whether the lower triangle is read.
    eigvals_only: whether to give eigenvalues alone.
    overwrite_a, overwrite_b, turbo, check_finite: have no effect.
    eigvals: must be None.
    type: must be 1.
Returns:
    Pair of arrays [..., n] and [..., n, n], or the eigenvalues.
Raises:
    NotImplementedError for b.

>>> jax.scipy.linalg.eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]]), eigvals_only=True).round(3)
Array([1., 3.], dtype=float32)
""",
    "eigh_tridiagonal": """
Arguments:
    d: array [..., n].
    e: array [..., n - 1].
    eigvals_only: whether to give eigenvalues alone.
    select: 'a' or 'i'.
    select_range: pair of static integers for 'i'.
    tol, key: have no effect.
Returns:
    Pair of arrays [..., k] and [..., n, k], or the eigenvalues.
Raises:
    ValueError for another select.

>>> jax.scipy.linalg.eigh_tridiagonal(jnp.array([2.0, 2.0]), jnp.array([1.0]), eigvals_only=True).round(3)
Array([1., 3.], dtype=float32)
""",
    "expm": """
Arguments:
    A: array [..., n, n].
    upper_triangular: promise that A is.
    max_squarings: static integer.
Returns:
    Array of the shape of A.

>>> jax.scipy.linalg.expm(jnp.array([[0.0, 1.0], [0.0, 0.0]])).round(3)
Array([[1., 1.],
       [0., 1.]], dtype=float32)
""",
    "expm_frechet": """
Arguments:
    A, E: arrays [n, n].
    method: None, or a name; it has no effect.
    compute_expm: whether to give expm(A), too.
Returns:
    Pair of arrays [n, n], or the second.
Raises:
    ValueError if the shapes differ.

>>> jax.scipy.linalg.expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)), compute_expm=False).round(3)
Array([[1.]], dtype=float32)
""",
    "fiedler": """
Arguments:
    a: array [..., n].
Returns:
    Array [..., n, n].

>>> jax.scipy.linalg.fiedler(jnp.array([1, 4]))
Array([[0, 3],
       [3, 0]], dtype=int32)
""",
    "fiedler_companion": """
Arguments:
    a: vector of n + 1 coefficients.
Returns:
    Matrix [n, n].

>>> jax.scipy.linalg.fiedler_companion(jnp.array([1.0, -3.0, 2.0]))
Array([[ 3., -2.],
       [ 1.,  0.]], dtype=float32)
""",
    "funm": """
Arguments:
    A: array [n, n].
    func: function of an array of complex numbers.
    disp: whether to give the result alone.
Returns:
    Array [n, n]; for disp=False a pair of it and a number.

>>> jax.scipy.linalg.funm(jnp.array([[1.0, 0.0], [0.0, 4.0]]), jnp.sqrt).real.round(3)
Array([[1., 0.],
       [0., 2.]], dtype=float32)
""",
    "hadamard": """
Arguments:
    n: static integer, a power of two.
    dtype: dtype of the result.
Returns:
    Matrix [n, n].
Raises:
    ValueError for other n.

>>> jax.scipy.linalg.hadamard(2)
Array([[ 1,  1],
       [ 1, -1]], dtype=int32)
""",
    "hankel": """
Arguments:
    c: array [..., n].
    r: array [..., m]; None for zeros.
Returns:
    Array [..., n, m].

>>> jax.scipy.linalg.hankel(jnp.array([1, 2, 3]))
Array([[1, 2, 3],
       [2, 3, 0],
       [3, 0, 0]], dtype=int32)
""",
    "helmert": """
Arguments:
    n: static integer.
    full: whether to give the first row, too.
Returns:
    Matrix [n - 1, n] or [n, n].

>>> jax.scipy.linalg.helmert(2).round(3)
Array([[ 0.707, -0.707]], dtype=float32)
""",
    "hessenberg": f"""
Arguments:
{SQUARE}
    calc_q: whether to give Q, too.
{OVERWRITE_A}
Returns:
    Array [..., n, n], or pair of them.

>>> jax.scipy.linalg.hessenberg(jnp.array([[1.0, 2.0], [3.0, 4.0]]))
Array([[1., 2.],
       [3., 4.]], dtype=float32)
""",
    "hilbert": """
Arguments:
    n: static integer.
Returns:
    Matrix [n, n].

>>> jax.scipy.linalg.hilbert(4)[3]
Array([0.25      , 0.2       , 0.16666667, 0.14285715], dtype=float32)
""",
    "inv": f"""
Arguments:
{SQUARE}
{OVERWRITE_A}
Returns:
    Array of the shape of a.

>>> jax.scipy.linalg.inv(jnp.array([[2.0, 0.0], [0.0, 4.0]]))
Array([[0.5 , 0.  ],
       [0.  , 0.25]], dtype=float32)
""",
    "invhilbert": """
Arguments:
    n: static integer.
Returns:
    Matrix [n, n].

>>> jax.scipy.linalg.invhilbert(2)
Array([[ 4., -6.],
       [-6., 12.]], dtype=float32)
""",
    "invpascal": """
Arguments:
    n: static integer.
    kind: None or 'symmetric', 'lower' or 'upper'.
Returns:
    Matrix [n, n].

>>> jax.scipy.linalg.invpascal(2)
Array([[ 2., -1.],
       [-1.,  1.]], dtype=float32)
""",
    "leslie": """
Arguments:
    f: array [..., n].
    s: array [..., n - 1].
Returns:
    Array [..., n, n].
Raises:
    ValueError for other sizes.

>>> jax.scipy.linalg.leslie(jnp.array([0.5, 2.0]), jnp.array([0.25]))
Array([[0.5 , 2.  ],
       [0.25, 0.  ]], dtype=float32)
""",
    "lu": f"""
Arguments:
    a: array [..., m, n]; integers become the default float.
    permute_l: whether P and L are multiplied.
{OVERWRITE_A}
Returns:
    Triple or pair of arrays.

>>> p, l, u = jax.scipy.linalg.lu(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
>>> u
Array([[4., 4.],
       [0., 1.]], dtype=float32)
""",
    "lu_factor": f"""
Arguments:
    a: array [..., m, n]; integers become the default float.
{OVERWRITE_A}
Returns:
    Pair of arrays.

>>> lu, pivots = jax.scipy.linalg.lu_factor(jnp.array([[1.0, 2.0], [4.0, 4.0]]))
>>> pivots
Array([1, 1], dtype=int32)
""",
    "lu_solve": """
Arguments:
    lu_and_piv: pair as of `lu_factor`.
    b: array [n] or [..., n, k].
    trans: 0, 1 or 2.
    overwrite_b, check_finite: have no effect.
Returns:
    Array of the shape of b.
Raises:
    ValueError for another trans.

>>> factors = jax.scipy.linalg.lu_factor(jnp.array([[0.0, 2.0], [4.0, 0.0]]))
>>> jax.scipy.linalg.lu_solve(factors, jnp.array([2.0, 8.0]))
Array([2., 1.], dtype=float32)
""",
    "pascal": """
Arguments:
    n: static integer.
    kind: None or 'symmetric', 'lower' or 'upper'.
Returns:
    Matrix [n, n].
Raises:
    ValueError for another kind.

>>> jax.scipy.linalg.pascal(3)
Array([[1., 1., 1.],
       [1., 2., 3.],
       [1., 3., 6.]], dtype=float32)
""",
    "polar": """
Arguments:
    a: array [m, n].
    side: 'right' or 'left'.
    method: 'qdwh' or 'svd'.
    eps, max_iterations: have no effect.
Returns:
    Pair of arrays.
Raises:
    ValueError for another side.

>>> u, p = jax.scipy.linalg.polar(jnp.array([[-2.0, 0.0], [0.0, 3.0]]))
>>> p.round(3)
Array([[2., 0.],
       [0., 3.]], dtype=float32)
""",
    "qr": """
Arguments:
    a: array [..., m, n]; integers become the default float.
    overwrite_a, lwork, check_finite: have no effect.
    mode: 'full', 'economic' or 'r'.
    pivoting: whether columns are exchanged so that the diagonal of R falls.
Returns:
    Tuple of arrays.
Raises:
    ValueError for another mode.

>>> q, r = jax.scipy.linalg.qr(jnp.array([[3.0, 1.0], [4.0, 2.0]]))
>>> jnp.abs(r).round(3)
Array([[5. , 2.2],
       [0. , 0.4]], dtype=float32)
""",
    "qr_multiply": """
Arguments:
    a: array [..., m, n]; integers become the default float.
    c: matrix or vector.
    mode: 'right' or 'left'.
    pivoting: whether columns are exchanged so that the diagonal of R falls.
    conjugate: whether the conjugate of Q is taken.
    overwrite_a, overwrite_c: have no effect.
Returns:
    Pair or triple of arrays.
Raises:
    ValueError for another mode.

>>> product, r = jax.scipy.linalg.qr_multiply(jnp.array([[3.0, 1.0], [4.0, 2.0]]), jnp.array([3.0, 4.0]))
>>> jnp.abs(product).round(3)
Array([5., 0.], dtype=float32)
""",
    "rsf2csf": """
Arguments:
    T, Z: real arrays [n, n], as of `schur`.
    check_finite: has no effect.
Returns:
    Pair of complex arrays [n, n].

>>> t, z = jax.scipy.linalg.rsf2csf(jnp.array([[1.0, 2.0], [0.0, 3.0]]), jnp.eye(2))
>>> jnp.diagonal(t).real.round(3)
Array([1., 3.], dtype=float32)
""",
    "schur": """
Arguments:
    a: array [n, n].
    output: 'real' or 'complex'.
Returns:
    Pair of arrays [n, n].
Raises:
    ValueError for another output.

>>> t, z = jax.scipy.linalg.schur(jnp.array([[2.0, 0.0], [0.0, 3.0]]))
>>> t
Array([[2., 0.],
       [0., 3.]], dtype=float32)
""",
    "solve": f"""
Arguments:
{SQUARE}
    b: array [n] or [..., n, k].
    lower: whether the lower triangle is read, for assume_a='pos'.
    overwrite_a, overwrite_b, debug, check_finite: have no effect.
    assume_a: 'gen', 'sym', 'her' or 'pos'.
Returns:
    Array of the shape of b.
Raises:
    ValueError for another assume_a.

>>> jax.scipy.linalg.solve(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([4.0, 8.0]))
Array([1., 2.], dtype=float32)
""",
    "solve_sylvester": """
Arguments:
    A: array [..., m, m].
    B: array [..., n, n].
    C: array [..., m, n].
    method: 'schur' or 'eigen'.
    tol: number: eigenvalues that are nearer give NaN.
Returns:
    Array [..., m, n].
Raises:
    ValueError for another method.

>>> jax.scipy.linalg.solve_sylvester(jnp.array([[2.0]]), jnp.array([[1.0]]), jnp.array([[6.0]])).round(3)
Array([[2.]], dtype=float32)
""",
    "solve_triangular": f"""
Arguments:
{SQUARE}
    b: array [n] or [..., n, k].
    trans: 0 or 'N', 1 or 'T', 2 or 'C'.
    lower: whether the lower triangle is read.
    unit_diagonal: whether the diagonal counts as ones.
    overwrite_b, debug, check_finite: have no effect.
Returns:
    Array of the shape of b.
Raises:
    ValueError for another trans.

>>> jax.scipy.linalg.solve_triangular(jnp.array([[2.0, 0.0], [1.0, 4.0]]), jnp.array([2.0, 9.0]), lower=True)
Array([1., 2.], dtype=float32)
""",
    "sqrtm": """
Arguments:
    A: array [n, n].
    blocksize: must be 1.
Returns:
    Complex array [n, n].
Raises:
    NotImplementedError for another blocksize.

>>> jax.scipy.linalg.sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real.round(3)
Array([[2., 0.],
       [0., 3.]], dtype=float32)
""",
    "svd": """
Arguments:
    a: array [..., m, n]; integers become the default float.
    full_matrices: whether U and V^H are square.
    compute_uv: whether to give them.
    overwrite_a, check_finite, lapack_driver: have no effect.
Returns:
    Triple of arrays, or the singular values.

>>> jax.scipy.linalg.svd(jnp.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False).round(3)
Array([3., 2.], dtype=float32)
""",
    "toeplitz": """
Arguments:
    c: array [..., n].
    r: array [..., m]; None for the conjugate of c.
Returns:
    Array [..., n, m].

>>> jax.scipy.linalg.toeplitz(jnp.array([1, 2, 3]))
Array([[1, 2, 3],
       [2, 1, 2],
       [3, 2, 1]], dtype=int32)
""",
}
