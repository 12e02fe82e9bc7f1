"""Pages of meshes and of layouts over them."""

PAGES = {
    "get_mesh": """
Returns:
    Mesh.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
...     print(jax.sharding.get_mesh().axis_names)
('i',)
""",
    "get_abstract_mesh": """
Returns:
    AbstractMesh.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
...     print(jax.sharding.get_abstract_mesh().axis_names)
('i',)
""",
    "make_single_device_sharding": """
Arguments:
    device: Device.
    memory_kind: name of a memory; None for the default one.
Returns:
    SingleDeviceSharding.

>>> type(jax.sharding.make_single_device_sharding(jax.devices()[0])).__name__
'SingleDeviceSharding'
""",
    "reshard": """
Arguments:
    xs: tree of arrays.
    out_shardings: NamedSharding, or PartitionSpec over the mesh in force, or tree prefix of them.
Returns:
    Tree of arrays.
Raises:
    TypeError for what is neither.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))):
...     print(jax.sharding.reshard(jnp.arange(2), jax.P("i")).sharding.spec)
P('i',)
""",
    "auto_axes": """
Arguments:
    f: function of arrays; None for a decorator.
    axes: name of an axis or tuple of names; None for all.
    out_sharding: tree prefix of PartitionSpecs or shardings for the result; None if the call gives it.
Returns:
    Function like f.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))):
...     print(jax.sharding.auto_axes(lambda x: 2 * x, out_sharding=jax.P("i"))(jnp.arange(2)))
[0 2]
""",
    "explicit_axes": """
Arguments:
    f: function of arrays; None for a decorator.
    axes: name of an axis or tuple of names; None for all.
    in_sharding: tree prefix of PartitionSpecs or shardings for the arguments; None if the call gives it.
Returns:
    Function like f.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))):
...     print(jax.sharding.explicit_axes(lambda x: 2 * x, in_sharding=jax.P("i"))(jnp.arange(2)))
[0 2]
""",
}
