"""Pages of `pullback.extend.random`."""

PAGES = {
    "define_prng_impl": """
Arguments:
    key_shape: (number of uint32 words of a key,).
    seed: function of a scalar integer array that gives a key's words.
    split: function of a key's words and a shape that gives words of that shape of keys.
    random_bits: function of a key's words, a width in bits and a shape that gives unsigned integers.
    fold_in: function of a key's words and a uint32 that gives a key's words.
    name, tag: how it is shown.
Returns:
    A PRNGSpec, which `jax.random.key` takes as `impl`.
Raises:
    ValueError unless keys have one dimension.

>>> from pullback.extend.random import define_prng_impl
>>> spec = define_prng_impl(
...     key_shape=(1,),
...     seed=lambda seed: seed.astype("uint32")[None] * jnp.uint32(2654435761),
...     split=lambda key, shape: key + jnp.arange(1, 1 + int(np.prod(shape)), dtype="uint32").reshape(*shape, 1),
...     random_bits=lambda key, width, shape: jnp.broadcast_to(key[0], shape),
...     fold_in=lambda key, data: key ^ data,
...     name="mine",
...     tag="mine",
... )
>>> jax.random.key(1, impl=spec).dtype
key<mine>
""",
    "threefry_2x32": """
Arguments:
    keypair: two uint32, as a sequence or an array.
    count: array of uint32.
Returns:
    An array of uint32 of the shape of count.
Raises:
    TypeError for counters of another dtype.

>>> from pullback.extend.random import threefry_2x32
>>> threefry_2x32((jnp.uint32(0), jnp.uint32(0)), jnp.zeros(2, jnp.uint32))
Array([1797259609, 2579123966], dtype=uint32)
""",
}
