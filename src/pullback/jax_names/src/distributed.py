"""Stands for jax._src.distributed: which process this is among those of the program."""

from pullback.distributed import initialize, is_initialized, shutdown


class State:
    """The one process of the program, which talks to no other."""

    process_id = 0
    num_processes = 1
    service = None
    client = None
    preemption_sync_manager = None
    coordinator_address = None
    slice_index = None
    partition_index = None


global_state = State()

__all__ = ["State", "global_state", "initialize", "is_initialized", "shutdown"]
