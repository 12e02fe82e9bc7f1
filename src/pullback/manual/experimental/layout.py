"""Pages of layouts."""

PAGES = {
    "Layout": """
Arguments:
    major_to_minor: order of the axes in memory, slowest first.
    tiling: sizes of tiles; None: not said.
    sub_byte_element_size_in_bits: bits of elements that are smaller than a byte.

Values always lie row by row; an array says the layout that it was given.

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
    "with_layout_constraint": """
Arguments:
    x: tree of arrays.
    layouts: Layout, or a tree prefix of them.
Returns:
    Tree of arrays; traced values stay as they are.
Raises:
    ValueError for what is no Layout, one of another rank, and outside of jit for what is no array.

>>> layout = jax.experimental.layout
>>> layout.with_layout_constraint(jnp.ones((2, 3)), layout.Layout((1, 0))).format.layout.major_to_minor
(1, 0)
""",
}
