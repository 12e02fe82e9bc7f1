"""Pages of vector quantization."""

PAGES = {
    "vq": """
Arguments:
    obs: array [m, n] or [m].
    code_book: array [k, n] or [k].
    check_finite: has no effect.
Returns:
    Pair of arrays [m] of integers and of floats.
Raises:
    ValueError for other ranks.

>>> jax.scipy.cluster.vq.vq(jnp.array([[0.0], [9.0]]), jnp.array([[1.0], [10.0]]))
(Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
""",
}
