"""Pages of trees as vectors."""

PAGES = {
    "ravel_pytree": """
Arguments:
    pytree: tree of arrays and numbers of any dtypes.
Returns:
    (vector of all elements, in one common dtype; function that makes such a tree from such a vector).
Raises:
    TypeError for leaves that are no arrays. The function raises ValueError for a vector of another size, TypeError for
    one of another dtype.

>>> vector, unravel = jax.flatten_util.ravel_pytree({"a": jnp.array([1.0, 2.0]), "b": 3.0})
>>> vector
Array([1., 2., 3.], dtype=float32)
>>> unravel(2 * vector)
{'a': Array([2., 4.], dtype=float32), 'b': Array(6., dtype=float32)}
""",
}
