"""Pages of primitives of several operands that work on each element, and of conversions."""

from pullback.manual._arguments import (
    LAX_BITS,
    LAX_PAIR,
    LAX_REAL,
    NO_OTHERS,
    OPERAND,
    PAIR_BOOL,
    PAIR_SAME,
    SAME,
    X_BITS,
    X_NUMBERS,
)

PAGES = {
    "add": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.add(jnp.array([1, 2]), jnp.array([10, 20]))
Array([11, 22], dtype=int32)
""",
    "sub": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.sub(jnp.array([1, 2]), jnp.array([10, 20]))
Array([ -9, -18], dtype=int32)
""",
    "div": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.div(jnp.array([7, -7]), jnp.array([2, 2]))
Array([ 3, -3], dtype=int32)
""",
    "rem": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.rem(jnp.array([7, -7]), jnp.array([3, 3]))
Array([ 1, -1], dtype=int32)
""",
    "max": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.max(jnp.array([1.0, 5.0]), jnp.array([3.0, 3.0]))
Array([3., 5.], dtype=float32)
""",
    "min": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.min(jnp.array([1.0, 5.0]), jnp.array([3.0, 3.0]))
Array([1., 3.], dtype=float32)
""",
    "atan2": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.atan2(jnp.array([0.0]), jnp.array([1.0]))
Array([0.], dtype=float32)
""",
    "eq": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_BOOL}
Raises:
    {NO_OTHERS}.

>>> jax.lax.eq(jnp.array([1, 2]), jnp.array([1, 3]))
Array([ True, False], dtype=bool)
""",
    "ne": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_BOOL}
Raises:
    {NO_OTHERS}.

>>> jax.lax.ne(jnp.array([1, 2]), jnp.array([1, 3]))
Array([False,  True], dtype=bool)
""",
    "ge": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_BOOL}
Raises:
    {NO_OTHERS}.

>>> jax.lax.ge(jnp.array([1, 2]), jnp.array([1, 3]))
Array([ True, False], dtype=bool)
""",
    "gt": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_BOOL}
Raises:
    {NO_OTHERS}.

>>> jax.lax.gt(jnp.array([1, 2]), jnp.array([1, 1]))
Array([False,  True], dtype=bool)
""",
    "le": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_BOOL}
Raises:
    {NO_OTHERS}.

>>> jax.lax.le(jnp.array([1, 2]), jnp.array([1, 1]))
Array([ True, False], dtype=bool)
""",
    "lt": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_BOOL}
Raises:
    {NO_OTHERS}.

>>> jax.lax.lt(jnp.array([1, 2]), jnp.array([1, 3]))
Array([False,  True], dtype=bool)
""",
    "bitwise_and": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.bitwise_and(jnp.array([12]), jnp.array([10]))
Array([8], dtype=int32)
""",
    "bitwise_or": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.bitwise_or(jnp.array([12]), jnp.array([10]))
Array([14], dtype=int32)
""",
    "bitwise_xor": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.bitwise_xor(jnp.array([12]), jnp.array([10]))
Array([6], dtype=int32)
""",
    "shift_left": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.shift_left(jnp.array([1]), jnp.array([3]))
Array([8], dtype=int32)
""",
    "shift_right_arithmetic": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.shift_right_arithmetic(jnp.array([-8]), jnp.array([2]))
Array([-2], dtype=int32)
""",
    "shift_right_logical": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.shift_right_logical(jnp.array([8]), jnp.array([2]))
Array([2], dtype=int32)
""",
    "mulhi": f"""
Arguments:
{LAX_BITS}
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.mulhi(jnp.array([2**30]), jnp.array([8]))
Array([2], dtype=int32)
""",
    "mul": f"""
Arguments:
{LAX_PAIR}
    out_dtype: dtype to which both are converted first; None for their own.
Returns:
    {PAIR_SAME}
Raises:
    {NO_OTHERS}.

>>> jax.lax.mul(jnp.array([1, 2]), jnp.array([10, 20]))
Array([10, 40], dtype=int32)
""",
    "add_any": f"""
Arguments:
{LAX_PAIR}
Returns:
    {PAIR_SAME}

>>> jax.lax.add_any(jnp.array([1.0]), jnp.array([2.0]))
Array([3.], dtype=float32)
""",
    "pow": f"""
Arguments:
    x: array or scalar of floats or complex numbers.
    y: array or scalar of the dtype of x, or of integers.
Returns:
    {SAME}

>>> jax.lax.pow(jnp.array([2.0, 3.0]), 2)
Array([4., 9.], dtype=float32)
""",
    "integer_pow": f"""
Arguments:
{X_NUMBERS}
    y: static integer.
Returns:
    {SAME}
Raises:
    TypeError for integers to a negative power.

>>> jax.lax.integer_pow(jnp.array([2, 3]), 3)
Array([ 8, 27], dtype=int32)
""",
    "nextafter": f"""
Arguments:
    x1, x2: arrays of floats of one shape and dtype, or scalars.
Returns:
    {PAIR_SAME}

>>> jax.lax.nextafter(jnp.float32(1), jnp.float32(2)) > 1
Array(True, dtype=bool)
""",
    "clamp": f"""
Arguments:
    min: array of the shape of x, or scalar: the lower limit.
    x: array.
    max: array of the shape of x, or scalar: the upper limit.
Returns:
    {SAME}
Raises:
    TypeError if the dtypes differ.

>>> jax.lax.clamp(0, jnp.array([-1, 1, 5]), 3)
Array([0, 1, 3], dtype=int32)
""",
    "round": f"""
Arguments:
{LAX_REAL}
    rounding_method: lax.RoundingMethod: AWAY_FROM_ZERO or TO_NEAREST_EVEN.
Returns:
    {SAME}

>>> jax.lax.round(jnp.array([0.5, 1.5]))
Array([1., 2.], dtype=float32)
>>> jax.lax.round(jnp.array([0.5, 1.5]), jax.lax.RoundingMethod.TO_NEAREST_EVEN)
Array([0., 2.], dtype=float32)
""",
    "complex": """
Arguments:
    x, y: arrays of float32 or float64 of one shape.
Returns:
    Array of complex64 or complex128.
Raises:
    TypeError for other dtypes.

>>> jax.lax.complex(jnp.array([1.0]), jnp.array([2.0]))
Array([1.+2.j], dtype=complex64)
""",
    "conj": """
Arguments:
    x: array of complex numbers, float32 or float64.
Returns:
    Complex array of the shape of x.

>>> jax.lax.conj(jnp.array([1 + 2j]))
Array([1.-2.j], dtype=complex64)
""",
    "real": """
Arguments:
    x: array of complex numbers.
Returns:
    Array of floats of the shape of x.
Raises:
    TypeError for other dtypes.

>>> jax.lax.real(jnp.array([1 + 2j]))
Array([1.], dtype=float32)
""",
    "imag": """
Arguments:
    x: array of complex numbers.
Returns:
    Array of floats of the shape of x.
Raises:
    TypeError for other dtypes.

>>> jax.lax.imag(jnp.array([1 + 2j]))
Array([2.], dtype=float32)
""",
    "bitwise_not": f"""
Arguments:
{X_BITS}
Returns:
    {SAME}

>>> jax.lax.bitwise_not(jnp.array([0, 5]))
Array([-1, -6], dtype=int32)
""",
    "clz": f"""
Arguments:
    x: array or scalar of integers.
Returns:
    {SAME}

>>> jax.lax.clz(jnp.array([1, 2**30]))
Array([31,  1], dtype=int32)
""",
    "population_count": f"""
Arguments:
    x: array or scalar of integers.
Returns:
    {SAME}

>>> jax.lax.population_count(jnp.array([0, 7]))
Array([0, 3], dtype=int32)
""",
    "betainc": """
Arguments:
    a, b, x: arrays of floats of one shape and dtype, or scalars.
Returns:
    Array of their shape and dtype.

>>> jax.lax.betainc(1.0, 1.0, jnp.array([0.25])).round(3)
Array([0.25], dtype=float32)
""",
    "igamma": """
Arguments:
    a, x: arrays of floats of one shape and dtype, or scalars.
Returns:
    Array of their shape and dtype.

>>> jax.lax.igamma(1.0, jnp.array([0.0, 1.0])).round(3)
Array([0.   , 0.632], dtype=float32)
""",
    "igammac": """
Arguments:
    a, x: arrays of floats of one shape and dtype, or scalars.
Returns:
    Array of their shape and dtype.

>>> jax.lax.igammac(1.0, jnp.array([0.0, 1.0])).round(3)
Array([1.   , 0.368], dtype=float32)
""",
    "igamma_grad_a": """
Arguments:
    a, x: arrays of floats of one shape and dtype, or scalars.
Returns:
    Array of their shape and dtype.

>>> jax.lax.igamma_grad_a(1.0, jnp.array([1.0])).round(3)
Array([-0.432], dtype=float32)
""",
    "random_gamma_grad": """
Arguments:
    a, x: arrays of floats of one shape and dtype, or scalars.
Returns:
    Array of their shape and dtype.

>>> jax.lax.random_gamma_grad(1.0, jnp.array([1.0])).round(3)
Array([1.174], dtype=float32)
""",
    "polygamma": """
Arguments:
    m: array or scalar of floats that are integers: the order.
    x: array of floats of the same shape and dtype, or scalar.
Returns:
    Array of their shape and dtype.

>>> jax.lax.polygamma(1.0, jnp.array([1.0])).round(3)
Array([1.645], dtype=float32)
""",
    "zeta": """
Arguments:
    x: array or scalar of floats: the exponent.
    q: array of floats of the same shape and dtype, or scalar.
Returns:
    Array of their shape and dtype.

>>> jax.lax.zeta(2.0, jnp.array([1.0])).round(3)
Array([1.645], dtype=float32)
""",
    "select": """
Arguments:
    pred: array of bool of the shape of the others, or without axes.
    on_true, on_false: arrays of one shape and dtype.
Returns:
    Array of their shape and dtype.

>>> jax.lax.select(jnp.array([True, False]), jnp.array([1, 2]), jnp.array([10, 20]))
Array([ 1, 20], dtype=int32)
""",
    "select_n": """
Arguments:
    which: array of bool for two cases, or of int32 that number them; of their shape, or without axes.
    cases: arrays of one shape and dtype.
Returns:
    Array of their shape and dtype.
Raises:
    TypeError for other dtypes, ValueError for other shapes.

>>> jax.lax.select_n(jnp.array([2, 0]), jnp.array([1, 2]), jnp.array([10, 20]), jnp.array([100, 200]))
Array([100,   2], dtype=int32)
""",
    "convert_element_type": f"""
Arguments:
{OPERAND}
    new_dtype: dtype.
Returns:
    Array of the shape of operand.
Raises:
    TypeError for what is no dtype.

>>> jax.lax.convert_element_type(jnp.array([1.7, -1.7, jnp.nan]), jnp.int32)
Array([ 1, -1,  0], dtype=int32)
""",
    "bitcast_convert_type": f"""
Arguments:
{OPERAND}
    new_dtype: dtype.
Returns:
    Array, with a last axis more or less if the widths differ.

>>> jax.lax.bitcast_convert_type(jnp.float32(1), jnp.int32) == 0x3F800000
Array(True, dtype=bool)
""",
    "reduce_precision": """
Arguments:
    operand: array of floats.
    exponent_bits: static integer.
    mantissa_bits: static integer.
Returns:
    Array of the shape and dtype of operand.
Raises:
    ValueError for less than one exponent bit.

>>> jax.lax.reduce_precision(jnp.array([1.15]), exponent_bits=5, mantissa_bits=3)
Array([1.125], dtype=float32)
""",
}
