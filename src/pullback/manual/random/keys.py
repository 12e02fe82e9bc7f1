"""Pages of random keys."""

PAGES = {
    "key": """
Arguments:
    seed: scalar integer.
    impl: 'threefry2x32', 'threefry4x32', 'rbg', 'unsafe_rbg', 'philox2x32', 'philox4x32', or None for the default,
        the first.
    dtype: key type as of `key_dtype`, in place of impl.
Returns:
    Array of keys without axes.
Raises:
    TypeError if the seed is no integer; ValueError for an unknown generator.

>>> jax.random.key(0)
Array((), dtype=key<fry>) overlaying:
[0 0]
""",
    "PRNGKey": """
Arguments:
    seed: scalar integer.
    impl: 'threefry2x32', 'threefry4x32', 'rbg', 'unsafe_rbg', 'philox2x32', 'philox4x32', or None for the default,
        the first.
Returns:
    Array u32[2], or as many words as the generator's keys have: of 'philox2x32' 1, of 'rbg', 'unsafe_rbg' and
    'threefry4x32' 4.
Raises:
    TypeError if the seed is no integer; ValueError for an unknown generator.

>>> jax.random.PRNGKey(7)
Array([0, 7], dtype=uint32)
""",
    "split": """
Arguments:
    key: random key.
    num: static integer or tuple of static integers: how many keys.
Returns:
    Array of keys of the shape num, typed or raw as the key is.

>>> first, second = jax.random.split(jax.random.key(0))
>>> jax.random.split(jax.random.key(0), (2, 3)).shape
(2, 3)
""",
    "fold_in": """
Arguments:
    key: random key.
    data: scalar integer; it may be traced.
Returns:
    Random key.

>>> keys = [jax.random.fold_in(jax.random.key(0), step) for step in range(2)]
>>> bool((jax.random.key_data(keys[0]) == jax.random.key_data(keys[1])).all())
False
""",
    "clone": """
Arguments:
    key: random key, or array of keys.
Returns:
    The same keys.

>>> key = jax.random.key(0)
>>> jax.random.clone(key) == key
Array(True, dtype=bool)
""",
    "key_data": """
Arguments:
    keys: array of keys.
Returns:
    Array u32[..., n], with n = 2 or 4.

>>> jax.random.key_data(jax.random.key(7))
Array([0, 7], dtype=uint32)
""",
    "wrap_key_data": """
Arguments:
    key_bits_array: array u32[..., n].
    impl: name of the generator; None for the default.
    dtype: key type as of `key_dtype`, in place of impl.
Returns:
    Array of keys [...].

>>> jax.random.wrap_key_data(jnp.array([0, 7], dtype=jnp.uint32)) == jax.random.key(7)
Array(True, dtype=bool)
""",
    "key_impl": """
Arguments:
    keys: array of keys, or raw keys.
Returns:
    str, as `key` takes it.

>>> jax.random.key_impl(jax.random.key(0))
'threefry2x32'
""",
    "key_dtype": """
Arguments:
    impl_spec: name of a generator; None for the default.
Returns:
    dtype.

>>> jax.random.key_dtype() == jax.random.key(0).dtype
True
""",
}
