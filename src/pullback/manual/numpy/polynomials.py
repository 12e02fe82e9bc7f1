"""Pages of polynomials, given by vectors of coefficients with the highest power first, and of windows."""

PAGES = {
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
