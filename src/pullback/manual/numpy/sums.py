"""Pages of sums, means and other reductions over axes."""

PAGES = {
    "sum": """
Arguments:
    a: array of any shape and dtype.
    axis: integer, tuple of integers, or None for all axes. A negative one counts from the last.
    dtype: dtype in which to add, and of the result; None for that of a, or the default integer for shorter ones.
    out: must be None.
    keepdims: whether the axes stay, with size 1.
    initial: number to start from; None is 0.
    where: mask that broadcasts with a: what is False is left out. None takes all.
    promote_integers: whether integers shorter than the default one are added in it.
Returns:
    Array of the shape of a without the axes.
Raises:
    ValueError if an axis is out of range or named twice; TypeError if an argument is of another kind.
Unlike numpy.sum:
    Nothing is written into `out`. Floats are added in their own dtype, 16-bit ones in 32 bits.

>>> jnp.sum(jnp.array([[1, 2], [3, 4]]), axis=0)
Array([4, 6], dtype=int32)
>>> jnp.sum(jnp.array([1.0, 2.0, 4.0]), where=jnp.array([True, False, True]))
Array(5., dtype=float32)
""",
}
