"""Programs of several processes: each runs the same Python program, and arrays lie on the devices of all.

    mpiexec -n 4 python train.py            or: python -m pullback launch -n 4 train.py
    jax.distributed.initialize()            in train.py, first of all

The design, from below:

- ext/collectives: messages between processes (over MPI, whose functions it gets by address), and the collective
  operations that compiled code calls by pointer. What can go wrong between processes is found there, in the one place
  that waits: a process that is gone, failed, elsewhere in the program, or late.
- lax/collectives/native.py: these operations as primitives of the program that one device runs.
- connection.py joins the processes: mpi4py is imported here and nowhere else, and only where there are several.
  rendezvous.py is the launcher of those that no launcher has started: they meet at an address.
  ending.py sees to it that all processes end when one fails.
- arrays.py: an array of which this process has a part only. What a process has whole is an ordinary array, whatever
  its sharding says, so only such arrays are new. They are tracers of the interpreter that evaluates: operators, `jit`
  and transformations treat them as values without numbers, and hand what is to be done to `programs.py`.
- clusters.py: kinds of launchers, which libraries add to.
- store.py: keys and values that all see, for libraries (orbax, in background threads), which ask JAX's client.
- local.py: from a program on whole arrays to that of one device, by the places of the arguments: what is mapped or
  elementwise stays local, all else is done on whole arrays, gathered where needed.
- compared.py: whether all processes have come to the same program; once, before it runs for the first time.
- programs.py compiles that, and runs it on the devices of this process.

The first run of a program compares fingerprints, so that processes which run different programs, or shapes, learn it
before they exchange anything; later the tags of messages tell.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pullback.distributed import clusters
from pullback.manual import add_pages as _add_pages
from pullback.manual.distributed import PAGES as _PAGES
from pullback.util.absent import listed as _listed

__all__ = ["initialize", "is_initialized", "shutdown"]

_initialized = False
_has_left = False  # after shutdown among several

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

    Without `num_processes` the launcher's environment variables (Slurm, MPI) say how many there are, then the kinds of
    launchers that libraries define (clusters.py; `cluster_detection_method` is the name of one), else it is one.
    Nothing is asked where that is 'deactivate', and num_processes must be given; ValueError for other methods.
    Several processes meet through MPI (`pip install 'pullback[mpi]'`, or a cluster's own): mpiexec, srun or `python -m
    pullback launch` starts them, and they need no address. Processes that are started by hand (with MPICH) need
    coordinator_address, num_processes and process_id.
    """
    global _initialized
    if _initialized:
        raise RuntimeError("distributed.initialize should only be called once.")
    if _has_left:
        raise RuntimeError("distributed.initialize: after distributed.shutdown, MPI cannot be started again")
    launched, kind = _launched(), clusters.defined_elsewhere(cluster_detection_method)
    if cluster_detection_method == clusters.NONE and num_processes is None:
        raise ValueError(
            f"distributed.initialize: num_processes must be given where cluster_detection_method is {clusters.NONE!r}"
        )
    if launched == 1 and kind is not None:
        coordinator_address, num_processes, process_id, _ = kind.auto_detect_unset_distributed_params(
            coordinator_address, num_processes, process_id, None, cluster_detection_method, initialization_timeout
        )
    count = launched if num_processes is None else num_processes
    if count < 1:
        raise ValueError(f"distributed.initialize: num_processes must be at least 1, got {num_processes}")
    if process_id is not None and not 0 <= process_id < count:
        numbers = "of one process the number is 0" if count == 1 else f"expected 0 to {count - 1}"
        raise ValueError(f"distributed.initialize: process_id is {process_id}; {numbers}")
    if count > 1:
        if launched == 1 and coordinator_address is None:
            raise ValueError(
                f"distributed.initialize: num_processes={count}, but no launcher has started this process, and "
                "coordinator_address was not given; start the program by mpiexec, or python -m pullback launch, or "
                "give coordinator_address and process_id"
            )
        from pullback.distributed import connection, programs

        connection.join(
            coordinator_address if launched == 1 else None,
            count,
            process_id,
            initialization_timeout,
            shutdown_timeout_seconds,
            coordinator_bind_address,
        )
        programs.install()
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
    """Leave the other processes, once all have come here; without effect before `initialize`."""
    global _initialized, _has_left
    if _initialized:
        import sys

        if (connection := sys.modules.get("pullback.distributed.connection")) is not None:
            _has_left = connection.leave()
    _initialized = False


_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
