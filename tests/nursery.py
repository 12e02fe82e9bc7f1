"""Processes for the tests of several processes, forked from one that has loaded the package and the compiler.

To start a process takes a second of a processor, which are imports, and the tests start a hundred. So mpiexec starts
this file as a small stand-in, which hands its descriptors (the connection to the launcher among them), environment and
arguments to the nursery, and ends as the forked process ends; signals and its own death are handed on.

    python nursery.py serve ADDRESS                              the nursery: ends with its standard input
    python nursery.py ADDRESS FILE | -m MODULE arguments...      a stand-in
"""

import contextlib
import os
import select
import signal
import socket
import sys
from typing import NoReturn

# What the programs come to import, but orbax, and what draws.
LOADED = [
    "mpi4py.MPI",
    "pullback.numpy",
    *(f"pullback.{name}" for name in ("nn", "random", "scipy.special", "scipy.linalg", "experimental.multihost_utils")),
    *(f"pullback.distributed.{name}" for name in ("programs", "rendezvous", "store")),
    *(f"pullback.{name}" for name in ("api.shard_map", "api.global_arrays", "partition.explicit", "partition.report")),
    *(f"pullback.runtime.programs.{name}" for name in ("making", "partitioned")),
    "examples.distributed._start",
]


def stand_in(address: str, arguments: list[str]) -> NoReturn:
    """Have the nursery run the program, and end as that does."""
    nurse = socket.socket(socket.AF_UNIX)
    nurse.connect(address)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: nurse.sendall(bytes([number])))
    launcher = [int(os.environ["PMI_FD"])] if "PMI_FD" in os.environ else []
    request = repr((dict(os.environ), os.getcwd(), [0, 1, 2, *launcher], arguments)).encode()
    socket.send_fds(nurse, [len(request).to_bytes(4, "little")], [0, 1, 2, *launcher])
    nurse.sendall(request)
    status = int(nurse.recv(16))
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def serve(address: str) -> list[str]:
    """Fork a process for each stand-in. Returns in these, with the program and its arguments."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(64)
        print("ready", flush=True)
        while door in select.select([door, 0], [], [])[0]:
            caller, _ = door.accept()
            with caller:
                if os.fork() == 0:
                    door.close()
                    return nurse(caller)
            with contextlib.suppress(ChildProcessError):  # all have ended
                while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG) is not None:
                    pass
    os._exit(0)


def nurse(caller: socket.socket) -> list[str]:
    """Fork the process that a stand-in asks for, hand on what becomes of each, and end. Returns in that process."""
    head, given, *_ = socket.recv_fds(caller, 4, 8)
    request = b""
    while len(request) < int.from_bytes(head, "little"):
        request += caller.recv(1 << 16)
    if (child := os.fork()) == 0:
        caller.close()
        return born(*eval(request), given)
    for fd in given:
        os.close(fd)
    ended = os.pidfd_open(child)
    while ended not in select.select([caller, ended], [], [])[0]:
        for number in caller.recv(16) or [signal.SIGKILL]:
            os.kill(child, number)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        caller.sendall(str(status).encode())
    finally:
        os._exit(0)


def born(environment: dict[str, str], folder: str, numbers: list[int], arguments: list[str], given: list[int]):
    """Become what the stand-in would have been: its descriptors, environment and folder. Returns the arguments."""
    import fcntl

    signal.signal(signal.SIGINT, signal.default_int_handler)
    copies = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in given]
    for fd in given:
        os.close(fd)
    for copy, number in zip(copies, numbers, strict=True):
        os.dup2(copy, number)
        os.close(copy)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    return arguments


def run(arguments: list[str]) -> None:
    """Run a program, as Python would that had just been started; switches are read from the environment again."""
    import runpy

    from pullback.util.switches import TABLE, switches

    with contextlib.ExitStack() as stack:
        for switch in TABLE:
            if switch.variable in os.environ:
                stack.enter_context(switches.set(**{switch.name: switch.parse(os.environ[switch.variable])}))
        is_module = arguments[0] == "-m"
        sys.argv = arguments[is_module:]
        if is_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")


def load() -> None:
    """Import what the programs will use; nothing is started."""
    import gc
    import importlib

    import mpi4py

    mpi4py.rc.initialize = False
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()


if __name__ == "__main__":
    if sys.argv[1] != "serve":
        stand_in(sys.argv[1], sys.argv[2:])
    load()
    run(serve(sys.argv[2]))
