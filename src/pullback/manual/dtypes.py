"""Pages of dtypes."""

PAGES = {
    "canonicalize_dtype": """
Arguments:
    dtype: dtype, or what names one; None for the default float.
    allow_extended_dtype: whether dtypes that NumPy does not have, as those of keys, are handed on.
Returns:
    dtype.
Raises:
    TypeError for what is no dtype.

>>> jax.dtypes.canonicalize_dtype(np.float64)
dtype('float32')
""",
    "itemsize_bits": """
Arguments:
    dtype: dtype.
Returns:
    int.

>>> jax.dtypes.itemsize_bits(jnp.float32), jax.dtypes.itemsize_bits(jnp.int4)
(32, 4)
""",
    "result_type": """
Arguments:
    args: arrays, numbers and dtypes.
    return_weak_type_flag: whether the result is (dtype, whether it is weak).
Returns:
    dtype.
Raises:
    ValueError without arguments; TypePromotionError for dtypes that have no common one.

>>> jax.dtypes.result_type(jnp.int32, 1.0)
dtype('float32')
""",
    "scalar_type_of": """
Arguments:
    x: array, number or dtype.
Returns:
    bool, int, float or complex.
Raises:
    TypeError for other kinds.

>>> jax.dtypes.scalar_type_of(jnp.ones(2))
<class 'float'>
""",
    "extended": """
>>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.extended)
True
""",
    "prng_key": """
>>> jnp.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
True
""",
}
