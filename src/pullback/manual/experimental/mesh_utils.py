"""Pages of devices as arrays."""

PAGES = {
    "create_device_mesh": """
Arguments:
    mesh_shape: sequence of integers.
    devices: sequence of Device; None for all.
    contiguous_submeshes, allow_split_physical_axes: have no effect: they speak of wires between TPUs.
Returns:
    NumPy array of Device.
Raises:
    ValueError unless the shape uses each device.

>>> jax.experimental.mesh_utils.create_device_mesh((1, 1), jax.devices()[:1]).shape
(1, 1)
""",
    "create_hybrid_device_mesh": """
Arguments:
    mesh_shape, dcn_mesh_shape: sequences of integers: devices within a machine, and machines.
    devices: sequence of Device; None for all.
    process_is_granule: whether a machine is a process, as it must be here.
    should_sort_granules_by_key: whether processes come in order of their numbers, not of the devices given.
    allow_split_physical_axes: has no effect.
Returns:
    NumPy array of Device, whose shape is the product of both.
Raises:
    ValueError unless dcn_mesh_shape has as many machines as there are, and the shape uses each device.

>>> create = jax.experimental.mesh_utils.create_hybrid_device_mesh
>>> create((1,), (1,), jax.devices()[:1], process_is_granule=True).shape
(1,)
""",
}
