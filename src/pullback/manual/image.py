"""Pages of functions that scale images."""

PAGES = {
    "ResizeMethod": """
>>> jax.image.resize(jnp.arange(2.0), (4,), jax.image.ResizeMethod.NEAREST)
Array([0., 0., 1., 1.], dtype=float32)
""",
    "resize": """
Arguments:
    image: array of any rank.
    shape: tuple of static integers of the same rank.
    method: 'nearest', 'linear', 'bilinear', 'cubic', 'cubic-pytorch', 'lanczos3', 'lanczos5', 'area', or ResizeMethod.
    antialias: whether smaller images are means over what their samples cover.
    precision: as of the products of `pullback.lax`.
Returns:
    Array of the shape.
Raises:
    ValueError for another rank and unknown methods.

>>> jax.image.resize(jnp.array([1.0, 2.0]), (4,), "nearest")
Array([1., 1., 2., 2.], dtype=float32)
>>> jax.image.resize(jnp.array([1.0, 2.0, 3.0, 4.0]), (2,), "linear", antialias=False)
Array([1.5, 3.5], dtype=float32)
""",
    "scale_and_translate": """
Arguments:
    image: array of any rank.
    shape: tuple of static integers of the same rank.
    spatial_dims: tuple of integers: the axes.
    scale: array of a factor for each of these axes.
    translation: array of a distance for each of these axes.
    method: as of `resize`, but 'nearest'.
    antialias: whether smaller images are means over what their samples cover.
    precision: as of the products of `pullback.lax`.
Returns:
    Array of the shape.
Raises:
    ValueError for the method 'nearest'.

>>> one = jnp.array([1.0])
>>> jax.image.scale_and_translate(jnp.array([1.0, 2.0, 3.0]), (3,), (0,), one, one, "linear").round(3)
Array([0., 1., 2.], dtype=float32)
""",
}
