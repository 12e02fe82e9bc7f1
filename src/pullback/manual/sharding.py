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
Raises:
    ValueError for names of axes that the mesh has not, when the function is called.

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
Raises:
    ValueError for names of axes that the mesh has not, when the function is called.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))):
...     print(jax.sharding.explicit_axes(lambda x: 2 * x, in_sharding=jax.P("i"))(jnp.arange(2)))
[0 2]
""",
    "Mesh": """
Arguments:
    devices: array of Device, or nested lists of them.
    axis_names: sequence of names, one for each dimension; one name for one dimension.
    axis_types: sequence of AxisType, one for each dimension; None for Auto.

>>> jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",)).shape
OrderedDict([('i', 1)])
""",
    "AbstractMesh": """
Arguments:
    axis_sizes: sequence of integers.
    axis_names: sequence of names.
    axis_types: sequence of AxisType; None for Auto.
    abstract_device: what kind of device it has; None leaves it open.

>>> jax.sharding.AbstractMesh((2, 4), ("i", "j")).size
8
""",
    "AbstractDevice": """
>>> import pullback as jax
>>> mesh = jax.make_mesh((1,), ("i",))
>>> mesh.abstract_mesh.abstract_device
AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)
""",
    "ManualAxisType": """
>>> from pullback.sharding import ManualAxisType
>>> ManualAxisType(varying=frozenset({"i"}))
ManualAxisType(varying=frozenset({'i'}), unreduced=frozenset(), reduced=frozenset())
""",
    "AxisType": """
>>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
>>> mesh.axis_types
(Auto,)
""",
    "PartitionSpec": """
Arguments:
    partitions: for each dimension the name of a mesh axis, a tuple of names, None or UNCONSTRAINED.
    unreduced, reduced: sets of names of mesh axes.

>>> spec = jax.P("i", None)
>>> spec[0], len(spec)
('i', 2)
""",
    "NamedSharding": """
Arguments:
    mesh: Mesh or AbstractMesh.
    spec: PartitionSpec.
    memory_kind: name of a memory; None for the default one.

>>> mesh = jax.make_mesh((1,), ("i",))
>>> x = jax.device_put(jnp.arange(4), jax.NamedSharding(mesh, jax.P("i")))
>>> x.sharding.shard_shape(x.shape)
(4,)
""",
    "Sharding": """
>>> isinstance(jnp.ones(2).sharding, jax.sharding.Sharding)
True
""",
    "SingleDeviceSharding": """
Arguments:
    device: Device.
    memory_kind: name of a memory; None for the default one.

>>> sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
>>> jax.device_put(jnp.ones(2), sharding).devices() == {jax.devices()[0]}
True
""",
    "DuplicateSpecError": """
>>> mesh = jax.make_mesh((1,), ("i",))
>>> try:
...     jax.NamedSharding(mesh, jax.P("i", "i"))
... except jax.sharding.DuplicateSpecError as error:
...     print('duplicate' in str(error))
True
""",
    "IndivisibleError": """
>>> issubclass(jax.sharding.IndivisibleError, ValueError)
True
""",
    "set_mesh": """
Arguments:
    mesh: Mesh; None for no mesh.
Raises:
    ValueError for what is no mesh, and while a function is transformed or traced.

>>> with jax.set_mesh(jax.make_mesh((1,), ("i",))):
...     print(jax.device_put(jnp.arange(2), jax.P("i")).sharding.spec)
P('i',)
""",
    "use_abstract_mesh": """
Arguments:
    mesh: AbstractMesh.
Raises:
    ValueError for what is no abstract mesh.

>>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("i",))):
...     print(jax.sharding.get_abstract_mesh().shape["i"])
2
""",
}
