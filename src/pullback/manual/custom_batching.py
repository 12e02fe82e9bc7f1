"""Pages of functions with a rule for vmap of their own."""

PAGES = {
    "custom_vmap": """
Arguments:
    fun: function of trees of arrays.
Raises:
    AttributeError if it is mapped before there is a rule; TypeError for keyword arguments that are no positional ones.

>>> @jax.custom_batching.custom_vmap
... def dot(x, y):
...     return x @ y
>>> @dot.def_vmap
... def dot_rule(axis_size, in_batched, xs, ys):
...     return jnp.einsum("ij,ij->i", xs, ys), True
>>> jax.vmap(dot)(jnp.ones((2, 3)), jnp.ones((2, 3)))
Array([3., 3.], dtype=float32)
""",
    "sequential_vmap": """
Arguments:
    f: function of trees of arrays.
Returns:
    Function like f.

>>> jax.vmap(jax.custom_batching.sequential_vmap(lambda x: x.sum()))(jnp.ones((2, 3)))
Array([3., 3.], dtype=float32)
""",
}
