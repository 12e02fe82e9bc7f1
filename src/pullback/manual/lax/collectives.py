"""Pages of functions that act across a mapped axis, and of layouts over meshes."""

from pullback.manual._arguments import AXIS_GROUPS, AXIS_NAME, PYTREE

PAGES = {
    "psum": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
{AXIS_GROUPS}
Returns:
    Pytree as x.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: x - jax.lax.psum(x, "i"), axis_name="i")(jnp.array([1, 2]))
Array([-2, -1], dtype=int32)
""",
    "pmean": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
{AXIS_GROUPS}
Returns:
    Pytree as x.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 2.0]))
Array([-0.5,  0.5], dtype=float32)
""",
    "pmax": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
{AXIS_GROUPS}
Returns:
    Pytree as x.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: jax.lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 2]))
Array([2, 2], dtype=int32)
""",
    "pmin": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
{AXIS_GROUPS}
Returns:
    Pytree as x.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: jax.lax.pmin(x, "i"), axis_name="i")(jnp.array([1, 2]))
Array([1, 1], dtype=int32)
""",
    "axis_index": f"""
Arguments:
{AXIS_NAME}
Returns:
    Scalar of int32.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: x + jax.lax.axis_index("i"), axis_name="i")(jnp.array([10, 10]))
Array([10, 11], dtype=int32)
""",
    "axis_size": f"""
Arguments:
{AXIS_NAME}
Returns:
    int.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: x * jax.lax.axis_size("i"), axis_name="i")(jnp.array([1, 2]))
Array([2, 4], dtype=int32)
""",
    "all_gather": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
{AXIS_GROUPS}
    axis: integer: where the new axis is.
    tiled: whether the parts are joined along an axis instead.
    to: 'varying', or what the result is for shard_map.
Returns:
    Pytree of arrays of one axis more.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: jax.lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
Array([[1, 2],
       [1, 2]], dtype=int32)
""",
    "all_to_all": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    split_axis: integer: the axis that is cut into parts.
    concat_axis: integer: the axis along which parts are put together.
{AXIS_GROUPS}
    tiled: whether parts are joined along the axes that are there.
Returns:
    Pytree of arrays.
Raises:
    NameError for an axis that nothing around maps; ValueError for sizes that do not fit.

>>> x = jnp.array([[1, 2], [3, 4]])
>>> jax.vmap(lambda x: jax.lax.all_to_all(x, "i", 0, 0), axis_name="i")(x)
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "ppermute": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    perm: list of (source, destination).
Returns:
    Pytree as x.
Raises:
    NameError for an unknown axis.

>>> jax.vmap(lambda x: jax.lax.ppermute(x, "i", [(0, 1)]), axis_name="i")(jnp.array([1, 2]))
Array([0, 1], dtype=int32)
""",
    "pshuffle": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    perm: list of all places: the sources.
Returns:
    Pytree as x.

>>> jax.vmap(lambda x: jax.lax.pshuffle(x, "i", [1, 0]), axis_name="i")(jnp.array([1, 2]))
Array([2, 1], dtype=int32)
""",
    "pbroadcast": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    source: integer: the place.
Returns:
    Pytree as x.
Raises:
    NameError for an axis that nothing around maps; ValueError for sizes that do not fit.

>>> jax.vmap(lambda x: jax.lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1, 2]))
Array([2, 2], dtype=int32)
""",
    "pswapaxes": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    axis: integer: an axis of the size of the mapped one.
{AXIS_GROUPS}
Returns:
    Pytree as x.
Raises:
    NameError for an axis that nothing around maps; ValueError for sizes that do not fit.

>>> x = jnp.array([[1, 2], [3, 4]])
>>> jax.vmap(lambda x: jax.lax.pswapaxes(x, "i", 0), axis_name="i")(x)
Array([[1, 3],
       [2, 4]], dtype=int32)
""",
    "psum_scatter": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    scatter_dimension: integer: the axis that is cut.
{AXIS_GROUPS}
    tiled: whether the axis stays, with a part of its length.
Returns:
    Pytree of arrays.
Raises:
    NameError for an axis that nothing around maps; ValueError for sizes that do not fit.

>>> x = jnp.array([[1, 2], [3, 4]])
>>> jax.vmap(lambda x: jax.lax.psum_scatter(x, "i"), axis_name="i")(x)
Array([4, 6], dtype=int32)
""",
    "pcast": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    to: 'varying', 'unreduced' or 'reduced'.
Returns:
    Pytree as x.

>>> jax.vmap(lambda x: jax.lax.pcast(3, "i", to="varying") + x, axis_name="i")(jnp.array([1, 2]))
Array([4, 5], dtype=int32)
""",
    "psend": f"""
Arguments:
{PYTREE}
{AXIS_NAME}
    perm: list of (source, destination).
Returns:
    Nothing: it raises.
Raises:
    NotImplementedError: there are no such transfers on CPUs.

>>> try:
...     jax.lax.psend(jnp.ones(1), "i", [(0, 0)])
... except Exception:
...     print("use ppermute")
use ppermute
""",
    "precv": f"""
Arguments:
    token: token.
    out_shape: shape and dtype.
{AXIS_NAME}
    perm: list of (source, destination).
Returns:
    Nothing: it raises.
Raises:
    NotImplementedError: there are no such transfers on CPUs.

>>> try:
...     jax.lax.precv(None, None, "i", [(0, 0)])
... except Exception:
...     print("use ppermute")
use ppermute
""",
    "ragged_all_to_all": f"""
Arguments:
    operand: array.
    output: array, with rows of the operand's shape.
    input_offsets, send_sizes, output_offsets, recv_sizes: vectors of integers, of which each device has its part.
{AXIS_NAME}
{AXIS_GROUPS}
Returns:
    Array as output.

>>> send = lambda x, n: jax.lax.ragged_all_to_all(x, jnp.zeros(3), *jnp.array([[0], [2], [1], [2]]), axis_name="i")
>>> jax.vmap(send, (0, None), axis_name="i")(jnp.array([[5.0, 6.0]]), 0).tolist()
[[0.0, 5.0, 6.0]]
""",
    "with_sharding_constraint": f"""
Arguments:
{PYTREE}
    shardings: Sharding, or PartitionSpec over the mesh in force, or tree prefix of them.
Returns:
    Pytree as x.
Raises:
    TypeError for what is no sharding.

>>> mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
>>> spec = jax.sharding.PartitionSpec("x")
>>> jax.lax.with_sharding_constraint(jnp.arange(2), jax.sharding.NamedSharding(mesh, spec))
Array([0, 1], dtype=int32)
""",
}
