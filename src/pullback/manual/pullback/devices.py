"""Pages of devices, values on them, and options."""

from pullback.manual._arguments import BACKEND

PAGES = {
    "devices": f"""
Arguments:
{BACKEND}
Returns:
    List of Device.
Raises:
    RuntimeError for a platform that is not there.

>>> jax.devices()[0].platform
'cpu'
""",
    "local_devices": f"""
Arguments:
    process_index: integer; None for this process.
{BACKEND}
    host_id: another name of process_index.
Returns:
    List of Device.
Raises:
    ValueError for a process, RuntimeError for a platform that is not there.

>>> len(jax.local_devices()) == jax.local_device_count()
True
""",
    "device_count": f"""
Arguments:
{BACKEND}
Returns:
    int.
Raises:
    RuntimeError for a platform that is not there.

>>> jax.device_count() >= 1
True
""",
    "local_device_count": f"""
Arguments:
{BACKEND}
Returns:
    int.
Raises:
    RuntimeError for a platform that is not there.

>>> jax.local_device_count() >= 1
True
""",
    "process_count host_count": f"""
Arguments:
{BACKEND}
Returns:
    int.
Raises:
    RuntimeError for a platform that is not there.

>>> jax.process_count()
1
""",
    "process_index host_id": f"""
Arguments:
{BACKEND}
Returns:
    int.
Raises:
    RuntimeError for a platform that is not there.

>>> jax.process_index()
0
""",
    "process_indices host_ids": f"""
Arguments:
{BACKEND}
Returns:
    List of int.
Raises:
    RuntimeError for a platform that is not there.

>>> len(jax.process_indices())
1
""",
    "default_backend": """
Returns:
    str.

>>> jax.default_backend()
'cpu'
""",
    "live_arrays": """
Arguments:
    platform: name of a platform; None for all.
Returns:
    List of arrays that are held by variables and containers, in no order; those that were deleted are left out.
Raises:
    RuntimeError for a platform that is not there.

>>> x = jnp.ones(12345)
>>> [a.shape for a in jax.live_arrays() if a.size == 12345]
[(12345,)]
""",
    "get_num_threads": """
Returns:
    int.

>>> jax.get_num_threads() >= 1
True
""",
    "device_put": """
Arguments:
    x: tree of arrays and numbers.
    device: Device, Sharding, PartitionSpec, Format or memory.Space, or tree prefix of them; None: where it is.
    src: where traced values come from; None for nothing said.
    donate: whether the memory of the arrays may be taken; it changes nothing.
    may_alias: False for copies; None and True leave memory shared.
Returns:
    Tree of arrays.
Raises:
    TypeError for what is no array; ValueError for what is no device.

>>> jax.device_put([1, 2.5])
[Array(1, dtype=int32, weak_type=True), Array(2.5, dtype=float32, weak_type=True)]
""",
    "device_get": """
Arguments:
    x: tree of arrays.
Returns:
    Tree of NumPy arrays.
Raises:
    Nothing for leaves that are no arrays; JaxRuntimeError for what failed while it ran.

>>> jax.device_get(jnp.array([1, 2]))
array([1, 2], dtype=int32)
""",
    "block_until_ready": """
Arguments:
    x: tree of arrays.
Returns:
    The tree.
Raises:
    Nothing for leaves that are no arrays; JaxRuntimeError for what failed while it ran.

>>> jax.block_until_ready(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "copy_to_host_async": """
Arguments:
    x: tree of arrays.
Returns:
    The tree.
Raises:
    Nothing for leaves that are no arrays; JaxRuntimeError for what failed while it ran.

>>> jax.copy_to_host_async(jnp.array([1, 2]))
Array([1, 2], dtype=int32)
""",
    "effects_barrier": """
Returns:
    None.

>>> jax.effects_barrier()
""",
    "clear_caches": """
Returns:
    None.

>>> jax.clear_caches()
""",
    "ensure_compile_time_eval": """
Returns:
    Context manager.

>>> @jax.jit
... def f(x):
...     with jax.ensure_compile_time_eval():
...         n = int(jnp.sum(jnp.ones(3)))
...     return x * n
>>> f(2)
Array(6, dtype=int32, weak_type=True)
""",
    "checking_leaks": """
Returns:
    Context manager.

>>> with jax.checking_leaks():
...     y = jax.jit(lambda x: x + 1)(1)
""",
    "disable_jit": """
Arguments:
    disable: whether they do.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.disable_jit():
...     jax.jit(lambda x: print(int(x)))(3)
3
""",
    "enable_x64": """
Arguments:
    new_val: bool.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.enable_x64(True):
...     print(jnp.array(1.0).dtype)
float64
""",
    "debug_nans": """
Arguments:
    new_val: bool: whether a NaN in a result raises FloatingPointError.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.debug_nans(True):
...     try:
...         jnp.log(-1.0).block_until_ready()
...     except FloatingPointError:
...         print("a NaN")
a NaN
""",
    "debug_infs": """
Arguments:
    new_val: bool: whether an infinity in a result raises FloatingPointError.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.debug_infs(True):
...     try:
...         jnp.log(0.0).block_until_ready()
...     except FloatingPointError:
...         print("an infinity")
an infinity
""",
    "default_device": """
Arguments:
    new_val: Device, name of a platform, or None.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.default_device(jax.devices()[0]):
...     x = jnp.ones(2)
""",
    "default_matmul_precision": """
Arguments:
    new_val: 'default', 'high', 'highest' or other names of precisions, or None.
Returns:
    Context manager.
Raises:
    ValueError for other values.

>>> with jax.default_matmul_precision("highest"):
...     x = jnp.ones((2, 2)) @ jnp.ones((2, 2))
""",
    "default_prng_impl": """
Arguments:
    new_val: 'threefry2x32', 'threefry4x32', 'rbg', 'unsafe_rbg', 'philox2x32' or 'philox4x32'.
Returns:
    Context manager.
Raises:
    ValueError for other values.

>>> with jax.default_prng_impl("rbg"):
...     print(jax.random.key_impl(jax.random.key(0)))
rbg
""",
    "numpy_dtype_promotion": """
Arguments:
    new_val: 'standard' or 'strict', with which dtypes that differ raise TypePromotionError.
Returns:
    Context manager.
Raises:
    ValueError for other values.

>>> with jax.numpy_dtype_promotion("strict"):
...     try:
...         jnp.ones(1) + jnp.arange(1)
...     except Exception as error:
...         print(type(error).__name__)
TypePromotionError
""",
    "numpy_rank_promotion": """
Arguments:
    new_val: 'allow', 'warn' or 'raise': what happens to operands of different ranks.
Returns:
    Context manager.
Raises:
    ValueError for other values.

>>> with jax.numpy_rank_promotion("raise"):
...     try:
...         jnp.ones((2, 2)) + jnp.ones(2)
...     except ValueError:
...         print("ranks differ")
ranks differ
""",
    "array_garbage_collection_guard": """
Arguments:
    new_val: 'allow', 'log' or 'fatal': what happens to arrays that only the garbage collector can free.
Returns:
    Context manager.
Raises:
    ValueError for other values.

>>> with jax.array_garbage_collection_guard("log"):
...     x = jnp.ones(2)
""",
    "transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device": """
Arguments:
    new_val: 'allow', 'log', 'disallow', 'log_explicit' or 'disallow_explicit'.
Returns:
    Context manager. `transfer_guard` sets the three others.
Raises:
    JaxRuntimeError inside, where values of the host become arrays ('disallow': but by device_put), or arrays go to
    other devices. Arguments of functions count; what a function makes for itself may.

>>> x = jnp.ones(2)
>>> with jax.transfer_guard("disallow"):
...     y = jnp.sin(x) * x
...     z = jax.device_put(1.0)
>>> try:
...     with jax.transfer_guard("disallow"):
...         x * 2
... except jax.errors.JaxRuntimeError:
...     print("refused")
refused
""",
    "check_tracer_leaks debug_key_reuse enable_checks no_execution no_tracing": """
Arguments:
    new_val: bool.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.check_tracer_leaks(True):
...     x = jax.jit(lambda x: x + 1)(1)
""",
    "allow_f16_reductions auto_pcast jax2tf_associative_scan_reductions remove_size_one_mesh_axis_from_type "
    "enable_custom_prng explain_cache_misses log_compiles softmax_custom_jvp threefry_partitionable": """
Arguments:
    new_val: bool.
Returns:
    Context manager.
Raises:
    Nothing for leaves that are no arrays; JaxRuntimeError for what failed while it ran.

>>> jax.log_compiles.value
False
>>> with jax.log_compiles(False):
...     x = jnp.ones(2)
""",
    "legacy_prng_key": """
Arguments:
    new_val: 'allow', 'warn' or 'error': what happens to raw keys.
Returns:
    Context manager.
Raises:
    ValueError for other values.

>>> with jax.legacy_prng_key("allow"):
...     x = jax.random.normal(jax.random.PRNGKey(0))
""",
    "thread_guard": """
Arguments:
    new_val: bool.
Returns:
    Context manager.
Raises:
    ValueError for text, where the block is entered; other values count by their truth.

>>> with jax.thread_guard(False):
...     x = jnp.ones(2)
""",
}
