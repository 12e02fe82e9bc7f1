"""Pages of layouts."""

PAGES = {
    "Layout": """
Arguments:
    major_to_minor: order of the axes in memory, slowest first.
    tiling: must be None.
    sub_byte_element_size_in_bits: must be 0.

>>> jax.experimental.layout.Layout((0, 1)).major_to_minor
(0, 1)
""",
    "Format": """
Arguments:
    layout: Layout; None leaves it open.
    sharding: sharding; None leaves it open.

>>> x = jnp.ones((2, 3))
>>> x.format.layout.major_to_minor
(0, 1)
""",
}
