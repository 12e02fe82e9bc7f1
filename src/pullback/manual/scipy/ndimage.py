"""Pages of interpolation in arrays."""

PAGES = {
    "map_coordinates": """
Arguments:
    input: array of n axes.
    coordinates: list of n arrays of one shape.
    order: 0 or 1.
    mode: 'constant', 'nearest', 'wrap', 'mirror' or 'reflect'.
    cval: number outside of the array for 'constant'.
Returns:
    Array of the shape of the coordinates.
Raises:
    NotImplementedError for higher orders.

>>> jax.scipy.ndimage.map_coordinates(jnp.array([1.0, 2.0, 4.0]), [jnp.array([0.5, 1.5])], order=1)
Array([1.5, 3. ], dtype=float32)
""",
}
