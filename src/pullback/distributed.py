"""Programs of several processes: so far a program is one process, which may say so.

`initialize` takes what a cluster's launcher would say, so that scripts run unchanged where there is one process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["initialize", "is_initialized", "shutdown"]

_initialized = False

# Where launchers put the number of processes: Slurm, Open MPI, MPICH and Intel MPI.
_COUNTS = ("SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Join the other processes of the program; with one process there are none, and nothing needs an address.

    Without `num_processes` the launcher's environment variables (Slurm, MPI) say how many there are, else it is one.
    Raises RuntimeError at a second call, ValueError for a process_id that does not exist, NotImplementedError for
    several processes.
    """
    global _initialized
    if _initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    count = _launched() if num_processes is None else num_processes
    if count < 1:
        raise ValueError(f"distributed.initialize: num_processes must be at least 1, got {num_processes}")
    if count > 1:
        origin = f"num_processes={count}" if num_processes is not None else f"the launcher started {count} processes"
        raise NotImplementedError(
            f"distributed.initialize: {origin}, but programs of several processes are not supported yet. On one "
            "machine, jax_num_cpu_devices gives one process several devices, which run in parallel."
        )
    if process_id not in (None, 0):
        raise ValueError(f"distributed.initialize: process_id is {process_id}; of one process the number is 0")
    _initialized = True


def _launched() -> int:
    for name in _COUNTS:
        text = os.environ.get(name, "")
        if text.isdigit():
            return max(1, int(text))
    return 1


def is_initialized() -> bool:
    """Whether `initialize` has been called, and `shutdown` not since."""
    return _initialized


def shutdown() -> None:
    """Leave the other processes; without effect before `initialize`."""
    global _initialized
    _initialized = False
