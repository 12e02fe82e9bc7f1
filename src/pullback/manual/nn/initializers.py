"""Pages of functions that make initial values of weights."""

from pullback.manual._arguments import INITIALIZER, INITIALIZER_AXES, INITIALIZER_DTYPE, RANDOM_OUT_SHARDING

PAGES = {
    "zeros": f"""
Arguments:
    key: is not used.
    shape: tuple of static integers.
    dtype: dtype of the result; None for the default float.
{RANDOM_OUT_SHARDING}
Returns:
    Array of the shape.

>>> jax.nn.initializers.zeros(None, (2,))
Array([0., 0.], dtype=float32)
""",
    "ones": f"""
Arguments:
    key: is not used.
    shape: tuple of static integers.
    dtype: dtype of the result; None for the default float.
{RANDOM_OUT_SHARDING}
Returns:
    Array of the shape.

>>> jax.nn.initializers.ones(None, (2,), jnp.int32)
Array([1, 1], dtype=int32)
""",
    "constant": f"""
Arguments:
    value: number or array that broadcasts to the shape.
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> jax.nn.initializers.constant(5.0)(None, (2,))
Array([5., 5.], dtype=float32)
""",
    "uniform": f"""
Arguments:
    scale: number: the upper limit.
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> x = jax.nn.initializers.uniform(0.5)(jax.random.key(0), (100,))
>>> bool(x.min() >= 0), bool(x.max() < 0.5)
(True, True)
""",
    "normal": f"""
Arguments:
    stddev: number: the standard deviation.
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> x = jax.nn.initializers.normal(2.0)(jax.random.key(0), (1000,))
>>> bool(abs(x.std() - 2) < 0.2)
True
""",
    "truncated_normal": f"""
Arguments:
    stddev: number: the factor of the normal numbers.
{INITIALIZER_DTYPE}
    lower, upper: numbers: the limits before the factor is applied.
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> x = jax.nn.initializers.truncated_normal(0.5)(jax.random.key(0), (100,))
>>> bool(abs(x).max() <= 1)
True
""",
    "variance_scaling": f"""
Arguments:
    scale: number: the variance times n.
    mode: 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg': what n is.
    distribution: 'normal', 'truncated_normal' or 'uniform'.
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> init = jax.nn.initializers.variance_scaling(1.0, "fan_in", "normal")
>>> bool(abs(init(jax.random.key(0), (100, 50)).std() - 0.1) < 0.01)
True
""",
    "glorot_normal xavier_normal": f"""
Arguments:
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> jax.nn.initializers.glorot_normal()(jax.random.key(0), (3, 4)).shape
(3, 4)
""",
    "glorot_uniform xavier_uniform": f"""
Arguments:
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> x = jax.nn.initializers.glorot_uniform()(jax.random.key(0), (3, 3))
>>> bool(abs(x).max() <= 1)
True
""",
    "he_normal kaiming_normal": f"""
Arguments:
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> jax.nn.initializers.he_normal()(jax.random.key(0), (3, 4)).shape
(3, 4)
""",
    "he_uniform kaiming_uniform": f"""
Arguments:
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> x = jax.nn.initializers.he_uniform()(jax.random.key(0), (6, 3))
>>> bool(abs(x).max() <= 1)
True
""",
    "lecun_normal": f"""
Arguments:
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> jax.nn.initializers.lecun_normal()(jax.random.key(0), (3, 4)).shape
(3, 4)
""",
    "lecun_uniform": f"""
Arguments:
{INITIALIZER_AXES}
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    Nothing; the initializer raises TypeError or ValueError for other keys, shapes and dtypes.

>>> x = jax.nn.initializers.lecun_uniform()(jax.random.key(0), (3, 4))
>>> bool(abs(x).max() <= 1)
True
""",
    "orthogonal": f"""
Arguments:
    scale: number: the factor.
    column_axis: integer: the axis of the columns.
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    ValueError, when it is used, below two axes.

>>> q = jax.nn.initializers.orthogonal()(jax.random.key(0), (3, 3))
>>> jnp.abs(q @ q.T).round(3)
Array([[1., 0., 0.],
       [0., 1., 0.],
       [0., 0., 1.]], dtype=float32)
""",
    "delta_orthogonal": f"""
Arguments:
    scale: number: the factor.
    column_axis: integer: the axis of the columns.
{INITIALIZER_DTYPE}
Returns:
    {INITIALIZER}
Raises:
    ValueError, when it is used, for more inputs than outputs.

>>> jax.nn.initializers.delta_orthogonal()(jax.random.key(0), (3, 2, 2))[0]
Array([[0., 0.],
       [0., 0.]], dtype=float32)
""",
    "Initializer": """
The type of initializers, for annotations.

>>> init: jax.nn.initializers.Initializer = jax.nn.initializers.normal(0.1)
>>> init(jax.random.key(0), (2, 3)).shape
(2, 3)
""",
}
