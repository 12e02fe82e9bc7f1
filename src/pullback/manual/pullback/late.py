"""Pages of names whose modules are loaded when they are first used."""

from pullback.manual._arguments import BACKEND

MESH = '>>> mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))'

PAGES = {
    "make_mesh": """
Arguments:
    axis_shapes: sequence of integers: how many devices there are along each axis.
    axis_names: sequence of names.
    axis_types: sequence of AxisType; None for Explicit.
    devices: sequence of Device; None for the first ones.
Returns:
    Mesh.
Raises:
    ValueError if there are not as many devices, a name repeats, or shapes and names differ in number; TypeError for
    sizes that are no integers.

>>> jax.make_mesh((1, 1), ("i", "j")).axis_names
('i', 'j')
""",
    "pmap": f"""
Arguments:
    fun: function of arrays.
    axis_name: name of the axis for collectives; None for none.
    in_axes, out_axes: as of `vmap`.
    static_broadcasted_argnums: positions of arguments that are constants of the program.
    devices: list of devices; None for all.
{BACKEND}
    axis_size: static integer: the size of the axis; None for that of the arguments.
    donate_argnums: positions of arguments whose memory results may take.
Returns:
    Function of the arguments with a further axis.
Raises:
    ValueError for more elements than devices.

>>> jax.pmap(lambda x: x + 1)(jnp.array([1]))
Array([2], dtype=int32)
""",
    "shard_map": f"""
Arguments:
    f: function of the parts that one device has; None for a decorator.
    out_specs, in_specs: PartitionSpecs, or tree prefixes of them: along which mesh axes dimensions are cut.
    mesh: Mesh; None for that of `set_mesh`.
    axis_names: names of the mesh axes that are meant; empty for all.
    check_vma: whether results that out_specs call the same on devices are checked to be so.
Returns:
    Function of whole arrays.
Raises:
    ValueError for specs that do not fit the mesh or the arrays; TypeError for a loop whose carry varies along an axis
    only after a step.

{MESH}
>>> mean = jax.shard_map(lambda x: jax.lax.pmean(x, "i"), mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P())
>>> mean(jnp.array([1.0, 2.0]))
Array([1., 2.], dtype=float32)
""",
    "smap": f"""
Arguments:
    f: function of the parts that one device has; None for a decorator.
    in_axes, out_axes: axes along which arrays are cut, as of `vmap`; None for arrays that all devices have whole.
    axis_name: name of a mesh axis.
Returns:
    Function of whole arrays.
Raises:
    TypeError for axes that are no integers; ValueError where no mesh is set.

{MESH}
>>> with jax.set_mesh(mesh):
...     print(jax.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="i")(jnp.array([1.0, 2.0])))
[2. 4.]
""",
    "report": """
Arguments:
    fun: function that `jit` takes, a jitted one, or what `pmap` gives.
    args, kwargs: its arguments.
    path: file for the page; None for none.
Returns:
    Report: facts, html and save.
Raises:
    ArgumentError if fun cannot be called, and inside of another transformation; FileNotFoundError for a path in a
    folder that is not there.

>>> found = jax.report(lambda x: jnp.sin(x).sum(), jnp.ones(1000), path=None)
>>> found.facts["kernels"][0]["name"]
'reduce_sum'
""",
    "progress": """
Arguments:
    description: text in front of the bar; None for the name of the jitted function.
    total: steps to expect of loops that do not say how many they have.
    style: 'tqdm', 'line' or 'log'; None to choose by the file.
    every: seconds between two lines.
    file: file that is written to; None for sys.stderr.
Raises:
    TypeError, ValueError for other arguments; ImportError for style 'tqdm' without tqdm.

>>> with jax.progress():
...     y = jax.jit(lambda x: jax.lax.fori_loop(0, 1000, lambda i, x: x / 2, x))(1.0)
""",
    "print_environment_info": """
Arguments:
    return_string: whether the text is given, not printed.
Returns:
    None, or text.
Raises:
    Nothing.

>>> "numpy" in jax.print_environment_info(return_string=True)
True
""",
    "make_array_from_callback": f"""
Arguments:
    shape: tuple of integers.
    sharding: sharding, or Format.
    data_callback: function from an index (tuple of slices) to the array that lies there.
    dtype: dtype; None for that of the data.
Returns:
    Array of the shape.
Raises:
    ValueError for parts of another shape.

{MESH}
>>> x = np.arange(4.0, dtype=np.float32)
>>> jax.make_array_from_callback((4,), jax.NamedSharding(mesh, jax.P("i")), lambda index: x[index])
Array([0., 1., 2., 3.], dtype=float32)
""",
    "make_array_from_process_local_data": f"""
Arguments:
    sharding: sharding over the devices of all processes.
    local_data: array, or tree of arrays: what the devices of this process hold.
    global_shape: shape of the whole, or tree of shapes; None, or a size of None: what the data says.
Returns:
    Array, or tree of them.
Raises:
    ValueError for data of another shape.

{MESH}
>>> jax.make_array_from_process_local_data(jax.NamedSharding(mesh, jax.P("i")), np.arange(2, dtype=np.int32))
Array([0, 1], dtype=int32)
""",
    "make_array_from_single_device_arrays": f"""
Arguments:
    shape: tuple of integers.
    sharding: sharding.
    arrays: sequence of arrays, each on one device of the sharding.
    dtype: dtype, needed where this process has no device of the sharding.
Returns:
    Array of the shape.
Raises:
    ValueError if a device has no array or several, for a part of another shape, and for arrays of several dtypes.

{MESH}
>>> jax.make_array_from_single_device_arrays((2,), jax.NamedSharding(mesh, jax.P("i")), [jnp.arange(2)])
Array([0, 1], dtype=int32)
""",
    "Shard": """
>>> [(shard.device.id, shard.data) for shard in jnp.arange(2).addressable_shards]
[(0, Array([0, 1], dtype=int32))]
""",
    "ds": """
Arguments:
    start: integer or integer scalar, traced or not.
    size: integer; None for the first `start` elements.
    stride: integer: distance of the elements; None for 1.
Returns:
    Index of the elements from start on.
Raises:
    TypeError where it is used, for what are no integers.

>>> jnp.arange(5)[jax.ds(1, 3)]
Array([1, 2, 3], dtype=int32)
""",
}
