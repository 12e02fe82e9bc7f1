"""Pages of what several processes do together."""

TREE = "    in_tree: tree of arrays; all processes give the same structure, shapes and dtypes."
OVER = """    global_mesh: Mesh.
    pspecs: PartitionSpec, or tree prefix of them."""
SPECS = "    ValueError for None among pspecs, and what cannot be cut so."
MESH = """>>> from pullback.experimental import multihost_utils
>>> mesh = jax.make_mesh((1,), ("i",))"""

PAGES = {
    "broadcast_one_to_all": f"""
Arguments:
{TREE}
    is_source: whether this process is the one that gives; None: the first is.
Returns:
    Tree of NumPy arrays.
Raises:
    ValueError if none is the source, or several are, and for values of another type.

>>> jax.experimental.multihost_utils.broadcast_one_to_all([1.0])
[array(1.)]
""",
    "process_allgather": f"""
Arguments:
{TREE}
    tiled: whether values are joined along the first axis, not stacked along a new one.
Returns:
    Tree of NumPy arrays.
Raises:
    ValueError for different types, and for an array over several processes unless tiled.

>>> jax.experimental.multihost_utils.process_allgather(np.arange(3, dtype=np.int32))
array([[0, 1, 2]], dtype=int32)
""",
    "sync_global_devices": """
Arguments:
    name: text, the same on all processes.
Returns:
    None.
Raises:
    AssertionError if processes come with different names; TypeError for what is no text.

>>> jax.experimental.multihost_utils.sync_global_devices("after loading")
""",
    "assert_equal": f"""
Arguments:
{TREE}
    fail_message: text at the front of the error's.
Returns:
    None.
Raises:
    AssertionError if processes have different values.

>>> jax.experimental.multihost_utils.assert_equal({{"step": 3}}, "steps differ")
""",
    "reached_preemption_sync_point": """
Arguments:
    step_id: integer.
Returns:
    False: nobody asks processes to stop.

>>> jax.experimental.multihost_utils.reached_preemption_sync_point(7)
False
""",
    "host_local_array_to_global_array": f"""
Arguments:
    local_inputs: tree of arrays: the parts that lie on the devices of this process.
{OVER}
Returns:
    Tree of arrays over the mesh.
Raises:
{SPECS}

{MESH}
>>> x = multihost_utils.host_local_array_to_global_array(jnp.arange(2), mesh, jax.P("i"))
>>> x.sharding.spec
P('i',)
""",
    "global_array_to_host_local_array": f"""
Arguments:
    global_inputs: tree of arrays over the mesh.
{OVER}
Returns:
    Tree of arrays over the devices of this process.
Raises:
{SPECS}

{MESH}
>>> multihost_utils.global_array_to_host_local_array(jnp.arange(2), mesh, jax.P("i"))
Array([0, 1], dtype=int32)
""",
    "live_devices": """
Arguments:
    devices: sequence of Device.
Returns:
    Context manager of the list of those that have not failed.
Raises:
    ValueError if none of them is of this process.

>>> with jax.experimental.multihost_utils.live_devices(jax.devices()) as alive:
...     len(alive) == jax.device_count()
True
""",
    "ProcessFailureError": """
Arguments:
    failed_devices: sequence of Device.

>>> str(jax.experimental.multihost_utils.ProcessFailureError([3]))
'devices failed: [3]...'
""",
}
