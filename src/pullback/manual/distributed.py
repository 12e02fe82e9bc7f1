"""Pages of programs of several processes."""

PAGES = {
    "initialize": """
Arguments:
    coordinator_address: "host:port", where process 0 listens; None where a launcher has started the processes.
    num_processes: integer; None for what the launcher's environment says, else 1.
    process_id: integer from 0 to num_processes - 1; None for what the launcher says.
    local_device_ids, heartbeat_timeout_seconds: have no effect.
    cluster_detection_method: the name of a kind of launcher that a library has defined, which is asked; 'deactivate'
        for none.
    initialization_timeout, shutdown_timeout_seconds: seconds to wait for the other processes, to come and to end.
    coordinator_bind_address: where process 0 listens, if that is another interface or port.
    slice_index, partition_index: have no effect.
Returns:
    None.
Raises:
    RuntimeError at a second call, where processes do not come in time, and where two have one process_id.
    ValueError for a process_id or an address that is none, and counts that disagree; ImportError without mpi4py.

>>> jax.distributed.initialize()
>>> jax.process_count()
1
>>> jax.distributed.shutdown()
""",
    "is_initialized": """
Returns:
    bool.

>>> jax.distributed.is_initialized()
False
""",
    "shutdown": """
Returns:
    None.

>>> jax.distributed.initialize()
>>> jax.distributed.shutdown()
>>> jax.distributed.is_initialized()
False
""",
}
