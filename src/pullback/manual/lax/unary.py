"""Pages of primitives of one operand that work on each element."""

from pullback.manual._arguments import ACCURACY, LAX_FLOATS, LAX_REAL, SAME, X_NUMBERS

PAGES = {
    "abs": f"""
Arguments:
{X_NUMBERS}
Returns:
    Array of the shape of x; of complex numbers of floats.

>>> jax.lax.abs(jnp.array([-1.5, 2.0]))
Array([1.5, 2. ], dtype=float32)
""",
    "acos": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.acos(jnp.array([1.0]))
Array([0.], dtype=float32)
""",
    "acosh": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.acosh(jnp.array([1.0]))
Array([0.], dtype=float32)
""",
    "asin": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.asin(jnp.array([0.0, 2.0]))
Array([ 0., nan], dtype=float32)
""",
    "asinh": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.asinh(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "atan": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.atan(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "atanh": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.atanh(jnp.array([0.0, 1.0]))
Array([ 0., inf], dtype=float32)
""",
    "bessel_i0e": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.bessel_i0e(jnp.array([0.0]))
Array([1.], dtype=float32)
""",
    "bessel_i1e": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.bessel_i1e(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "cbrt": f"""
Arguments:
{LAX_REAL}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.cbrt(jnp.array([8.0])).round(3)
Array([2.], dtype=float32)
""",
    "ceil": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.ceil(jnp.array([1.5]))
Array([2.], dtype=float32)
""",
    "cos": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.cos(jnp.array([0.0]))
Array([1.], dtype=float32)
""",
    "cosh": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.cosh(jnp.array([0.0]))
Array([1.], dtype=float32)
""",
    "digamma": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.digamma(jnp.array([1.0])).round(3)
Array([-0.577], dtype=float32)
""",
    "erf": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.erf(jnp.array([0.0, 10.0]))
Array([0., 1.], dtype=float32)
""",
    "erf_inv": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.erf_inv(jnp.array([0.0, 1.0]))
Array([ 0., inf], dtype=float32)
""",
    "erfc": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.erfc(jnp.array([0.0]))
Array([1.], dtype=float32)
""",
    "exp": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.exp(jnp.array([0.0]))
Array([1.], dtype=float32)
""",
    "exp2": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.exp2(jnp.array([3.0]))
Array([8.], dtype=float32)
""",
    "expm1": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.expm1(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "floor": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.floor(jnp.array([1.5]))
Array([1.], dtype=float32)
""",
    "is_finite": f"""
Arguments:
{LAX_REAL}
Returns:
    Array of bool, of the shape of x.
Raises:
    TypeError for integers.

>>> jax.lax.is_finite(jnp.array([1.0, jnp.inf]))
Array([ True, False], dtype=bool)
""",
    "lgamma": f"""
Arguments:
{LAX_REAL}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.lgamma(jnp.array([3.0])).round(3)
Array([0.693], dtype=float32)
""",
    "log": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.log(jnp.array([1.0, 0.0]))
Array([  0., -inf], dtype=float32)
""",
    "log1p": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.log1p(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "logistic": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.logistic(jnp.array([0.0]))
Array([0.5], dtype=float32)
""",
    "neg": f"""
Arguments:
{X_NUMBERS}
Returns:
    {SAME}

>>> jax.lax.neg(jnp.array([1, -2]))
Array([-1,  2], dtype=int32)
""",
    "reciprocal": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.reciprocal(jnp.array([4.0]))
Array([0.25], dtype=float32)
""",
    "rsqrt": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.rsqrt(jnp.array([4.0])).round(3)
Array([0.5], dtype=float32)
""",
    "sign": f"""
Arguments:
{X_NUMBERS}
Returns:
    {SAME}

>>> jax.lax.sign(jnp.array([-3.0, 0.0, 2.0]))
Array([-1.,  0.,  1.], dtype=float32)
""",
    "sin": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.sin(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "sinh": f"""
Arguments:
{LAX_FLOATS}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.sinh(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "sqrt": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.sqrt(jnp.array([4.0]))
Array([2.], dtype=float32)
""",
    "square": f"""
Arguments:
{X_NUMBERS}
Returns:
    {SAME}

>>> jax.lax.square(jnp.array([-3]))
Array([9], dtype=int32)
""",
    "tan": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.tan(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
    "tanh": f"""
Arguments:
{LAX_FLOATS}
{ACCURACY}
Returns:
    {SAME}
Raises:
    TypeError for integers.

>>> jax.lax.tanh(jnp.array([0.0]))
Array([0.], dtype=float32)
""",
}
