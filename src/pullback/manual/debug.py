"""Pages of functions that look inside of programs."""

from pullback.manual._arguments import PRINTED

PAGES = {
    "print": f"""
Arguments:
{PRINTED}
    _use_logging: whether the text goes to the logger.
Returns:
    None.
Raises:
    TypeError if fmt is no text.

>>> jax.jit(lambda x: jax.debug.print("x = {{}}", x))(jnp.array(3))
x = 3
""",
    "log": f"""
Arguments:
{PRINTED}
    _use_logging: whether the text goes to the logger; else it is printed.
Returns:
    None.
Raises:
    TypeError if fmt is no text.

>>> jax.debug.log("x = {{}}", jnp.array(3))
""",
    "callback": """
Arguments:
    callback: function of NumPy values or arrays; None for a decorator.
    args: pytrees of arrays.
    ordered: whether calls keep their order.
    partitioned: whether it is called for each part of an array over a mesh.
    kwargs: pytrees of arrays by name.
Returns:
    None.
Raises:
    TypeError if it is no function.

>>> jax.jit(lambda x: jax.debug.callback(lambda x: print(int(x)), x))(jnp.array(3))
3
""",
    "breakpoint": """
Arguments:
    backend: None or 'cli'.
    filter_frames: whether calls of libraries are left out.
    num_frames: integer: how many calls at most; None for all.
    ordered: whether stops keep their order.
    token: tree of arrays; None for none.
    stdin, stdout: files; None for those of the process.
Returns:
    The token.
Raises:
    ValueError for another backend.

>>> import io
>>> jax.jit(lambda x: jax.debug.breakpoint(stdin=io.StringIO("c"), stdout=io.StringIO()))(jnp.array(3))
""",
    "inspect_array_sharding": """
Arguments:
    value: tree of arrays.
    callback: function of a Sharding.
Returns:
    None.

>>> jax.debug.inspect_array_sharding(jnp.ones(2), callback=lambda s: print(type(s).__name__))
SingleDeviceSharding
""",
    "visualize_array_sharding": """
Arguments:
    arr: array of one or two axes.
    kwargs: options of `visualize_sharding`.
Returns:
    None.
Raises:
    ValueError for other ranks.

>>> jax.debug.visualize_array_sharding(jnp.ones(2))
┌───────┐
│ CPU 0 │
└───────┘
""",
    "visualize_sharding": """
Arguments:
    shape: tuple of one or two integers.
    sharding: Sharding.
    use_color, color_map: have no effect.
    scale: number by which boxes of matrices are stretched.
    min_width, max_width: integers: the least and largest width of a box.
Returns:
    None.
Raises:
    ValueError for other ranks.

>>> jax.debug.visualize_sharding((2,), jnp.ones(2).sharding)
┌───────┐
│ CPU 0 │
└───────┘
""",
}
