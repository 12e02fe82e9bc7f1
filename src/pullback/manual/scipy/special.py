"""Pages of special functions."""

from pullback.manual._arguments import FLOATS, SPECIAL_AB, SPECIAL_ANY, SPECIAL_PQ, SPECIAL_X

PAGES = {
    "beta": f"""
Arguments:
{SPECIAL_AB}
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.beta(2.0, 3.0).round(3)
Array(0.083, dtype=float32)
""",
    "betaln": f"""
Arguments:
{SPECIAL_AB}
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.betaln(1.0, 2.0).round(3)
Array(-0.693, dtype=float32, weak_type=True)
""",
    "betainc": """
Arguments:
    a, b, x: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.betainc(1.0, 1.0, 0.25).round(3)
Array(0.25, dtype=float32, weak_type=True)
""",
    "gamma": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.gamma(jnp.array([1.0, 5.0])).round(3)
Array([ 1., 24.], dtype=float32)
""",
    "gammaln": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.gammaln(jnp.array([3.0, 0.5])).round(3)
Array([0.693, 0.572], dtype=float32)
""",
    "gammasgn": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.gammasgn(jnp.array([2.0, -0.5]))
Array([ 1., -1.], dtype=float32)
""",
    "loggamma": f"""
Arguments:
{SPECIAL_ANY}
Returns:
    Array of the shape of x.

>>> jax.scipy.special.loggamma(jnp.array([3.0, 0.5])).round(3)
Array([0.693, 0.572], dtype=float32)
""",
    "gammainc": """
Arguments:
    a, x: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.gammainc(1.0, jnp.array([0.0, 1.0])).round(3)
Array([0.   , 0.632], dtype=float32)
""",
    "gammaincc": """
Arguments:
    a, x: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.gammaincc(1.0, jnp.array([0.0, 1.0])).round(3)
Array([1.   , 0.368], dtype=float32)
""",
    "multigammaln": """
Arguments:
    a: array or scalar of real numbers.
    d: static integer.
Returns:
    Array of floats of the shape of a.

>>> jax.scipy.special.multigammaln(3.0, 1).round(3)
Array(0.693, dtype=float32)
""",
    "digamma": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.digamma(1.0).round(3)
Array(-0.577, dtype=float32, weak_type=True)
""",
    "polygamma": """
Arguments:
    n: array or scalar of integers.
    x: array or scalar of real numbers. Both broadcast.
Returns:
    Array of the broadcast shape.
Raises:
    ValueError unless n is of integers.

>>> jax.scipy.special.polygamma(1, 1.0).round(3)
Array(1.645, dtype=float32, weak_type=True)
""",
    "poch": """
Arguments:
    z, m: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.poch(2.0, 3.0).round(3)
Array(24., dtype=float32)
""",
    "comb": """
Arguments:
    N, k: arrays or scalars of real numbers, which broadcast.
    repetition: whether an element may be chosen twice.
Returns:
    Array of floats of the broadcast shape.

>>> jax.scipy.special.comb(5, 2).round(3)
Array(10., dtype=float32, weak_type=True)
""",
    "factorial": """
Arguments:
    n: array or scalar of real numbers.
    exact: must be False.
Returns:
    Array of floats of the shape of n.
Raises:
    NotImplementedError for exact.

>>> jax.scipy.special.factorial(jnp.array([0, 3])).round(3)
Array([1., 6.], dtype=float32)
""",
    "bernoulli": """
Arguments:
    n: static integer.
Returns:
    Vector of n + 1 floats.
Raises:
    ValueError for a negative n.

>>> jax.scipy.special.bernoulli(2).round(3)
Array([ 1.   , -0.5  ,  0.167], dtype=float32)
""",
    "zeta": """
Arguments:
    x: array or scalar of real numbers: the exponent.
    q: array or scalar of real numbers; None for 1.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.zeta(2.0, 1.0).round(3)
Array(1.645, dtype=float32, weak_type=True)
""",
    "erf": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.erf(jnp.array([0.0, 1.0])).round(3)
Array([0.   , 0.843], dtype=float32)
""",
    "erfc": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.erfc(jnp.array([0.0, 1.0])).round(3)
Array([1.   , 0.157], dtype=float32)
""",
    "erfcx": f"""
Arguments:
{SPECIAL_ANY}
Returns:
    Array of the shape of x.

>>> jax.scipy.special.erfcx(jnp.array([0.0, 1.0])).round(3)
Array([1.   , 0.428], dtype=float32)
""",
    "erfinv": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS} Numbers outside of [-1, 1] give NaN.

>>> jax.scipy.special.erfinv(jnp.array([0.0, 1.0]))
Array([ 0., inf], dtype=float32)
""",
    "wofz": """
Arguments:
    z: array or scalar of numbers.
Returns:
    Complex array of the shape of z.

>>> jax.scipy.special.wofz(jnp.array([0.0]))
Array([1.+0.j], dtype=complex64)
""",
    "dawsn": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}
Raises:
    ValueError for complex numbers.

>>> jax.scipy.special.dawsn(1.0).round(3)
Array(0.538, dtype=float32)
""",
    "fresnel": f"""
Arguments:
{SPECIAL_X}
Returns:
    Pair of arrays of the shape of x.
Raises:
    ValueError for complex numbers.

>>> s, c = jax.scipy.special.fresnel(1.0)
>>> s.round(3), c.round(3)
(Array(0.438, dtype=float32), Array(0.78, dtype=float32))
""",
    "sici": f"""
Arguments:
{SPECIAL_X}
Returns:
    Pair of arrays of the shape of x.
Raises:
    ValueError for complex numbers.

>>> si, ci = jax.scipy.special.sici(1.0)
>>> si.round(3), ci.round(3)
(Array(0.946, dtype=float32), Array(0.337, dtype=float32))
""",
    "exp1": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}
Raises:
    ValueError for complex numbers.

>>> jax.scipy.special.exp1(1.0).round(3)
Array(0.219, dtype=float32)
""",
    "expi": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}
Raises:
    ValueError for complex numbers.

>>> jax.scipy.special.expi(1.0).round(3)
Array(1.895, dtype=float32)
""",
    "expn": """
Arguments:
    n: array or scalar of integers, not negative.
    x: array or scalar of real numbers. Both broadcast.
Returns:
    Array of the broadcast shape.
Raises:
    ValueError for complex numbers.

>>> jax.scipy.special.expn(2, 1.0).round(3)
Array(0.148, dtype=float32)
""",
    "spence": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}
Raises:
    ValueError for complex numbers.

>>> jax.scipy.special.spence(jnp.array([0.0, 1.0])).round(3)
Array([1.645, 0.   ], dtype=float32)
""",
    "owens_t": """
Arguments:
    h, a: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.
Raises:
    ValueError for complex numbers.

>>> jax.scipy.special.owens_t(0.0, 1.0).round(3)
Array(0.125, dtype=float32)
""",
    "ndtr": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.ndtr(jnp.array([-100.0, 0.0, 100.0]))
Array([0. , 0.5, 1. ], dtype=float32)
""",
    "log_ndtr": f"""
Arguments:
    x: array or scalar of floats.
    series_order: integer; it has no effect.
Returns:
    {FLOATS}
Raises:
    TypeError for complex numbers.

>>> jax.scipy.special.log_ndtr(0.0).round(3)
Array(-0.693, dtype=float32)
""",
    "ndtri": """
Arguments:
    p: array or scalar of floats.
Returns:
    Array of the shape of p.
Raises:
    TypeError for complex numbers.

>>> jax.scipy.special.ndtri(jnp.array([0.5, 1.0]))
Array([ 0., inf], dtype=float32)
""",
    "entr": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.entr(jnp.array([-1.0, 0.0, 1.0])) + 0
Array([-inf,   0.,   0.], dtype=float32)
""",
    "kl_div": f"""
Arguments:
{SPECIAL_PQ}
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.kl_div(1.0, jnp.array([1.0, 2.0])).round(3)
Array([0.   , 0.307], dtype=float32)
""",
    "rel_entr": f"""
Arguments:
{SPECIAL_PQ}
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.rel_entr(jnp.array([0.0, 1.0, -1.0]), 1.0)
Array([ 0.,  0., inf], dtype=float32)
""",
    "expit": f"""
Arguments:
{SPECIAL_ANY}
Returns:
    Array of the shape of x.

>>> jax.scipy.special.expit(jnp.array([-100.0, 0.0])).round(3)
Array([0. , 0.5], dtype=float32)
""",
    "logit": f"""
Arguments:
{SPECIAL_ANY}
Returns:
    Array of the shape of x.

>>> jax.scipy.special.logit(jnp.array([0.0, 0.5, 1.0]))
Array([-inf,   0.,  inf], dtype=float32)
""",
    "xlogy": """
Arguments:
    x, y: arrays or scalars of numbers, promoted to one inexact dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.xlogy(jnp.array([0.0, 2.0]), jnp.array([0.0, 1.0]))
Array([0., 0.], dtype=float32)
""",
    "xlog1py": """
Arguments:
    x, y: arrays or scalars of numbers, promoted to one inexact dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.xlog1py(jnp.array([0.0, 2.0]), jnp.array([-1.0, 0.0]))
Array([0., 0.], dtype=float32)
""",
    "boxcox": """
Arguments:
    x, lmbda: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.boxcox(3.0, jnp.array([0.0, 2.0])).round(3)
Array([1.099, 4.   ], dtype=float32)
""",
    "boxcox1p": """
Arguments:
    x, lmbda: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.boxcox1p(2.0, jnp.array([0.0, 2.0])).round(3)
Array([1.099, 4.   ], dtype=float32)
""",
    "softmax": """
Arguments:
    x: array of floats.
    axis: integer, tuple of integers, or None for all axes: what sums to 1.
Returns:
    Array of the shape of x.
Raises:
    ValueError if an axis is out of range.

>>> jax.scipy.special.softmax(jnp.array([1.0, 1.0]))
Array([0.5, 0.5], dtype=float32)
""",
    "log_softmax": """
Arguments:
    x: array of floats.
    axis: integer, tuple of integers, or None for all axes: what sums to 1.
Returns:
    Array of the shape of x.
Raises:
    ValueError if an axis is out of range.

>>> jax.scipy.special.log_softmax(jnp.array([0.0, 0.0])).round(3)
Array([-0.693, -0.693], dtype=float32)
""",
    "i0": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.i0(1.0).round(3)
Array(1.266, dtype=float32, weak_type=True)
""",
    "i0e": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.i0e(1.0).round(3)
Array(0.466, dtype=float32, weak_type=True)
""",
    "i1": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.i1(1.0).round(3)
Array(0.565, dtype=float32, weak_type=True)
""",
    "i1e": f"""
Arguments:
{SPECIAL_X}
Returns:
    {FLOATS}

>>> jax.scipy.special.i1e(1.0).round(3)
Array(0.208, dtype=float32, weak_type=True)
""",
    "bessel_jn": """
Arguments:
    z: array or scalar of real numbers.
    v: static integer: the largest order.
    n_iter: has no effect.
Returns:
    Array [v + 1, *z.shape].
Raises:
    ValueError if v is negative.

>>> jax.scipy.special.bessel_jn(jnp.array([1.0]), v=1).round(3)
Array([[0.765],
       [0.44 ]], dtype=float32)
""",
    "hyp1f1": """
Arguments:
    a, b, x: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.hyp1f1(1.0, 1.0, 0.0).round(3)
Array(1., dtype=float32)
""",
    "hyp2f1": """
Arguments:
    a, b, c, x: arrays or scalars of real numbers, promoted to one float dtype and broadcast.
Returns:
    Array of the broadcast shape.

>>> jax.scipy.special.hyp2f1(1.0, 2.0, 2.0, 0.5).round(3)
Array(2., dtype=float32)
""",
    "sph_harm_y": """
Arguments:
    n, m: arrays of integers.
    theta, phi: arrays of real numbers. All four broadcast.
    diff_n: must be None.
    n_max: static integer, not less than all of n; None for concrete n.
Returns:
    Complex array of the broadcast shape.
Raises:
    ValueError if n are no integers.

>>> jax.scipy.special.sph_harm_y(jnp.array([0]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0])).real.round(3)
Array([0.282], dtype=float32)
""",
}
