"""Pages of products of vectors, matrices and tensors, of polynomials (vectors of coefficients, the highest power
first), and of windows.
"""

from pullback.manual._arguments import AXIS, OUT, OUT_SHARDING, PRECISION, PREFERRED

PAGES = {
    "dot": f"""
Arguments:
    a: array [..., n], or scalar.
    b: array [n] or [..., n, m], or scalar.
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array of the shape of a without its last axis and of b without the axis summed over.
Raises:
    TypeError for lists.
Unlike numpy.dot:
    There is no `out`.

>>> jnp.dot(jnp.array([1, 2]), jnp.array([3, 4]))
Array(11, dtype=int32)
>>> jnp.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "matmul": f"""
Arguments:
    a: array [n] or [..., m, n].
    b: array [n] or [..., n, k].
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array [..., m, k], without m where a is a vector, and without k where b is one.
Unlike numpy.matmul:
    There is no `out`.

>>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 10]]))
Array([[ 1, 20],
       [ 3, 40]], dtype=int32)
""",
    "matvec": """
Arguments:
    x1: array [..., m, n].
    x2: array [..., n].
Returns:
    Array [..., m].
Raises:
    ValueError if the lengths n differ.

>>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "vecmat": """
Arguments:
    x1: array [..., m].
    x2: array [..., m, n].
Returns:
    Array [..., n].
Raises:
    ValueError if the lengths m differ.

>>> jnp.vecmat(jnp.array([1, 10]), jnp.array([[1, 2], [3, 4]]))
Array([31, 42], dtype=int32)
""",
    "vecdot": f"""
Arguments:
    x1, x2: arrays [..., n], which broadcast but along the axis.
{AXIS}
{PRECISION}
{PREFERRED}
Returns:
    Array of the broadcast shape without the axis.

>>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "vdot": f"""
Arguments:
    a, b: arrays of n elements in any shape.
{PRECISION}
{PREFERRED}
Returns:
    Array without axes.
Raises:
    TypeError if the numbers of elements differ.

>>> jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 3]))
Array(7.+0.j, dtype=complex64)
""",
    "inner": f"""
Arguments:
    a: array [..., n], or scalar.
    b: array [..., n], or scalar.
{PRECISION}
{PREFERRED}
Returns:
    Array of the shape of a, then of b, both without their last axis.
Raises:
    TypeError if the lengths n differ.

>>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
""",
    "outer": f"""
Arguments:
    a, b: arrays of any shape, taken in C order.
{OUT}
Returns:
    Array [a.size, b.size].
Raises:
    TypeError for lists.

>>> jnp.outer(jnp.array([1, 2]), jnp.array([1, 10]))
Array([[ 1, 10],
       [ 2, 20]], dtype=int32)
""",
    "kron": """
Arguments:
    a, b: arrays of any shape; the one of fewer axes gets new ones in front.
Returns:
    Array whose lengths are the products of theirs.
Raises:
    TypeError for lists.

>>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3]))
Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
""",
    "tensordot": f"""
Arguments:
    a, b: arrays of any shape.
    axes: static integer, or pair of lists of axes of a and of b.
{PRECISION}
{PREFERRED}
{OUT_SHARDING}
Returns:
    Array of the other axes of a, then of b.
Raises:
    TypeError for lists.

>>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
(2, 5)
""",
    "cross": """
Arguments:
    a, b: arrays with 2 or 3 elements along an axis; their other axes broadcast.
    axisa, axisb: integers: these axes.
    axisc: integer: the axis of the result.
    axis: integer: all three axes at once.
Returns:
    Array of the broadcast shape.
Raises:
    TypeError for lists.

>>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
Array([0, 0, 1], dtype=int32)
""",
    "einsum": f"""
Arguments:
    subscripts: text such as 'ij,jk->ik'; `...` stands for axes that broadcast. Without '->' what occurs once is kept.
    operands: arrays, or arrays and lists of the numbers of their axes in turn, and maybe one of the result's.
{OUT}
    optimize: 'auto', 'optimal', 'greedy', True, False or a path of `einsum_path`: the order of contractions.
{PRECISION}
{PREFERRED}
    _dot_general: function that is called as `lax.dot_general` for the products of two operands.
{OUT_SHARDING}
Returns:
    Array.
Raises:
    TypeError for lists.
Unlike numpy.einsum:
    The order of contractions is optimized by default.

>>> jnp.einsum("ij,j->i", jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
Array([21, 43], dtype=int32)
>>> jnp.einsum("ii", jnp.array([[1, 2], [3, 4]]))
Array(5, dtype=int32)
""",
    "einsum_path": """
Arguments:
    subscripts: text as of `einsum`.
    operands: arrays as of `einsum`.
    optimize: as of `einsum`.
Returns:
    Pair of a list of tuples of the operands' numbers, and a text.

>>> a, b, c = jnp.ones((9, 2)), jnp.ones((2, 9)), jnp.ones((9, 1))
>>> jnp.einsum_path("ij,jk,kl->il", a, b, c)[0]
[(1, 2), (0, 1)]
""",
    "trace": f"""
Arguments:
    a: array of two or more axes.
    offset: integer: number of the diagonal; it may be traced.
    axis1, axis2: integers: the axes of the matrices.
    dtype: dtype in which to add, and of the result; None for that of a, or the default integer for shorter ones.
{OUT}
Returns:
    Array without the two axes.
Raises:
    TypeError for lists.

>>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
Array(5, dtype=int32)
""",
    "convolve": f"""
Arguments:
    a, v: vectors of m and n elements.
    mode: 'full', 'same' or 'valid'.
{PRECISION}
{PREFERRED}
Returns:
    Vector of m + n - 1 elements, of max(m, n), or of |m - n| + 1.
Raises:
    TypeError for lists.
Unlike numpy.convolve:
    Integers give floats.

>>> jnp.convolve(jnp.array([1, 2, 3]), jnp.array([1, 10]))
Array([ 1., 12., 23., 30.], dtype=float32)
""",
    "correlate": f"""
Arguments:
    a, v: vectors of m and n elements.
    mode: 'full', 'same' or 'valid'.
{PRECISION}
{PREFERRED}
Returns:
    Vector of m + n - 1 elements, of max(m, n), or of |m - n| + 1.
Raises:
    TypeError for lists.
Unlike numpy.correlate:
    Integers give floats.

>>> jnp.correlate(jnp.array([1, 2, 3]), jnp.array([1, 10]))
Array([21., 32.], dtype=float32)
""",
    "polyval": """
Arguments:
    p: array of coefficients along its first axis.
    x: array or scalar.
    unroll: static integer: how many steps of the loop are laid out one after the other.
Returns:
    Array of the shape of x, and of the other axes of p.
Raises:
    TypeError for lists.
Unlike numpy.polyval:
    The result is never a polynomial object. `unroll` does not exist there.

>>> jnp.polyval(jnp.array([1, 2, 3]), jnp.array([0, 10]))
Array([  3, 123], dtype=int32)
""",
    "polyfit": """
Arguments:
    x: vector of m places.
    y: vector of m values, or matrix [m, k].
    deg: static integer: the degree.
    rcond: singular values below this part of the largest count as 0; None for m eps.
    full: whether to give residuals, rank, singular values and rcond, too.
    w: vector of m weights of the residuals; None for equal ones.
    cov: whether to give the covariance, too; 'unscaled' does not scale it by the variance of the residuals.
Returns:
    Array [deg + 1] or [deg + 1, k], or a tuple that begins with it.
Raises:
    ValueError for a negative degree.
Unlike numpy.polyfit:
    There is no warning if the fit is badly conditioned.

>>> jnp.polyfit(jnp.array([0.0, 1.0, 2.0]), jnp.array([1.0, 3.0, 5.0]), 1).round(3)
Array([2., 1.], dtype=float32)
""",
    "polyadd": """
Arguments:
    a1, a2: vectors of coefficients.
Returns:
    Vector as long as the longer one.

>>> jnp.polyadd(jnp.array([1, 2]), jnp.array([10, 0, 5]))
Array([10,  1,  7], dtype=int32)
""",
    "polysub": """
Arguments:
    a1, a2: vectors of coefficients.
Returns:
    Vector as long as the longer one.

>>> jnp.polysub(jnp.array([1, 2]), jnp.array([10, 0, 5]))
Array([-10,   1,  -3], dtype=int32)
""",
    "polymul": """
Arguments:
    a1, a2: vectors of coefficients.
    trim_leading_zeros: whether leading zeros are cut first; the factors must be concrete.
Returns:
    Vector of floats.
Unlike numpy.polymul:
    Leading zeros stay by default. The result has floats.

>>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, 3]))
Array([1., 5., 6.], dtype=float32)
""",
    "polydiv": """
Arguments:
    u: vector of coefficients of the dividend.
    v: vector of coefficients of the divisor.
    trim_leading_zeros: whether leading zeros of the remainder are cut; the arguments must be concrete.
Returns:
    Pair of vectors of floats.
Unlike numpy.polydiv:
    Leading zeros of the remainder stay by default.

>>> jnp.polydiv(jnp.array([1.0, 5.0, 6.0]), jnp.array([1.0, 2.0]))
(Array([1., 3.], dtype=float32), Array([0., 0., 0.], dtype=float32))
""",
    "polyder": """
Arguments:
    p: vector of coefficients.
    m: static integer: how many times.
Returns:
    Vector of floats, m shorter.

>>> jnp.polyder(jnp.array([1, 2, 3]))
Array([2., 2.], dtype=float32)
""",
    "polyint": """
Arguments:
    p: vector of coefficients.
    m: static integer: how many times.
    k: scalar, or vector of m constants, the first of the first integration; None is 0.
Returns:
    Vector of floats, m longer.

>>> jnp.polyint(jnp.array([3.0, 2.0]), k=5)
Array([1.5, 2. , 5. ], dtype=float32)
""",
    "poly": """
Arguments:
    seq_of_zeros: vector of roots, or square matrix.
Returns:
    Vector of coefficients, the first of which is 1.
Unlike numpy.poly:
    Roots that are complex give complex coefficients, also where these are real.

>>> jnp.poly(jnp.array([1.0, 2.0]))
Array([ 1., -3.,  2.], dtype=float32)
""",
    "roots": """
Arguments:
    p: vector of coefficients.
    strip_zeros: whether leading zeros are cut first; p must be concrete.
Returns:
    Vector of complex numbers.
Raises:
    TypeError for lists.

>>> jnp.sort(jnp.roots(jnp.array([1.0, -3.0, 2.0])).real).round(3)
Array([1., 2.], dtype=float32)
""",
    "bartlett": """
Arguments:
    M: static integer: number of points.
Returns:
    Vector of M floats.
Raises:
    TypeError for a negative M.

>>> jnp.bartlett(5)
Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
""",
    "blackman": """
Arguments:
    M: static integer: number of points.
Returns:
    Vector of M floats.
Raises:
    TypeError for a negative M.

>>> jnp.abs(jnp.blackman(3).round(3))
Array([0., 1., 0.], dtype=float32)
""",
    "hamming": """
Arguments:
    M: static integer: number of points.
Returns:
    Vector of M floats.
Raises:
    TypeError for a negative M.

>>> jnp.hamming(3).round(3)
Array([0.08, 1.  , 0.08], dtype=float32)
""",
    "hanning": """
Arguments:
    M: static integer: number of points.
Returns:
    Vector of M floats.
Raises:
    TypeError for a negative M.

>>> jnp.hanning(3).round(3)
Array([0., 1., 0.], dtype=float32)
""",
    "kaiser": """
Arguments:
    M: static integer: number of points.
    beta: number: the larger, the narrower is the window.
Returns:
    Vector of M floats.
Raises:
    TypeError for a negative M.

>>> jnp.kaiser(3, 2.0).round(3)
Array([0.439, 1.   , 0.439], dtype=float32)
""",
}
