"""Pages of functions of parts of arrays."""

PAGES = {
    "shard_map": """
Arguments:
    f: function of the parts that one device has.
    mesh: Mesh.
    in_specs, out_specs: PartitionSpecs, or tree prefixes of them.
    check_rep: whether results that out_specs call equal on devices are checked to be so.
Returns:
    Function of whole arrays.
Raises:
    ValueError for specs that do not fit; TypeError for what is no PartitionSpec.

>>> from pullback.experimental.shard_map import shard_map
>>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
>>> shard_map(lambda x: jax.lax.psum(x.sum(), "i"), mesh, jax.P("i"), jax.P())(jnp.arange(4))
Array(6, dtype=int32)
""",
}
