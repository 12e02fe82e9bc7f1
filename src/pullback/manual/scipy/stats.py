"""Pages of summaries of samples."""

PAGES = {
    "mode": """
Arguments:
    a: array of numbers.
    axis: integer, or None for all elements.
    nan_policy: must be 'propagate'.
    keepdims: whether the axis stays, with size 1.
Returns:
    Named tuple of two arrays.
Raises:
    NotImplementedError for the policy 'omit'.

>>> jax.scipy.stats.mode(jnp.array([1, 2, 2, 3])).count
Array(2, dtype=int32)
""",
    "rankdata": """
Arguments:
    a: array of numbers.
    method: 'average', 'min', 'max', 'dense' or 'ordinal'.
    axis: integer, or None for all elements as a vector.
    nan_policy: must be 'propagate'.
Returns:
    Array of floats.
Raises:
    ValueError for another method.

>>> jax.scipy.stats.rankdata(jnp.array([10, 30, 10]))
Array([1.5, 3. , 1.5], dtype=float32)
""",
    "sem": """
Arguments:
    a: array of numbers.
    axis: integer, or None for all elements.
    ddof: number that is subtracted from the count, to give the divisor.
    nan_policy: 'propagate' or 'omit'.
    keepdims: whether the axis stays, with size 1.
Returns:
    Array without the axis.
Raises:
    ValueError for another policy.

>>> jax.scipy.stats.sem(jnp.array([1.0, 3.0])).round(3)
Array(1., dtype=float32)
""",
    "gaussian_kde": """
Arguments:
    dataset: array [d, n] or [n] of real points.
    bw_method: 'scott', 'silverman', number, or function of the estimate; None for 'scott'.
    weights: array [n]; None for equal ones.
Raises:
    ValueError for shapes or methods that do not fit, or one point; NotImplementedError for complex points.

>>> density = jax.scipy.stats.gaussian_kde(jnp.array([-1.0, 0.0, 1.0]))
>>> density(jnp.array([0.0])).shape
(1,)
""",
}
