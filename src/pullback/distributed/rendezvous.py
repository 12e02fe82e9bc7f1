"""Processes that are started by hand meet at an address: process 0 does for them what mpiexec does for its own.

MPICH, and libraries made from it, ask their launcher through a file descriptor who they are and where the others are:
short lines of text, of the process management interface, version 1 (PMI-1; W. Gropp and E. Lusk's PMI of MPICH). Here
that descriptor is a TCP connection to process 0, where a thread for each process answers. MPI has started then as under
mpiexec, so all else is the same; messages go through shared memory, or through MPICH's own network.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Sequence

from pullback.util.locks import Lock

_HELLO = "pullback"
_waiting: list[threading.Thread] = []  # at process 0, those that answer
_open: list[int] = []


def place(address: str, argument: str) -> tuple[str, int]:
    """Host and port; ValueError for what is no `host:port`."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 1 << 16:
        raise ValueError(f"distributed.initialize: {argument} must be 'host:port', got {address!r}")
    return host.strip("[]"), int(port)


def meet(address: str, count: int, number: int, timeout: float, bind_address: str | None = None) -> None:
    """Connect with process 0 at `address`, and tell MPI, which starts next, how to ask.

    Process 0 listens at `bind_address`, by default at its port on all interfaces. Raises ValueError for addresses that
    are none, RuntimeError where others do not come within `timeout` seconds, a number comes twice, or counts differ.
    """
    host, port = place(address, "coordinator_address")
    end = time.monotonic() + timeout
    if number == 0:
        bound = ("", port) if bind_address is None else place(bind_address, "coordinator_bind_address")
        mine = _gather(bound, count, end, timeout)
    else:
        mine = _connect(host, port, count, number, end, timeout)
    _open.append(mine.detach())  # MPI's from now on: Python must not close it
    os.environ.update(PMI_FD=str(_open[-1]), PMI_RANK=str(number), PMI_SIZE=str(count))


def _gather(bound: tuple[str, int], count: int, end: float, timeout: float) -> socket.socket:
    """At process 0: wait for all others, and serve them; its own connection."""
    try:
        listener = _listener(bound)
    except OSError as error:
        raise RuntimeError(
            f"distributed.initialize: process 0 cannot listen at port {bound[1]} of {bound[0] or 'all interfaces'}: "
            f"{error}"
        ) from error
    mine, other_end = socket.socketpair()
    found: dict[int, socket.socket] = {0: other_end}
    hosts = {0: socket.gethostname()}
    try:
        with listener:
            _take_in(listener, count, found, hosts, bound[1], end, timeout)
    except BaseException:
        for connection in (mine, *found.values()):
            connection.close()
        raise
    for connection in found.values():
        connection.settimeout(None)
    for number, connection in found.items():
        if number:
            connection.sendall(b"start\n")
    server = _Server(found, [hosts[k] for k in range(count)])
    _waiting.extend(threading.Thread(target=server.serve, args=item, daemon=True) for item in found.items())
    for thread in _waiting:
        thread.start()
    return mine


def _take_in(
    listener: socket.socket, count: int, found: dict, hosts: dict, port: int, end: float, timeout: float
) -> None:
    """Wait for all others."""
    while len(found) < count:
        listener.settimeout(max(0.01, end - time.monotonic()))
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            missing = sorted(set(range(count)) - set(found))
            raise RuntimeError(
                f"distributed.initialize: processes {missing} of {count} have not come to process 0, port {port}, "
                f"within {timeout:g} s (initialization_timeout)"
            ) from None
        _greet(connection, count, found, hosts, end)


def _listener(bound: tuple[str, int]) -> socket.socket:
    if not bound[0] and socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # a machine without IPv6
            return socket.create_server(bound, family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    return socket.create_server(bound, backlog=1024)


def _greet(connection: socket.socket, count: int, found: dict, hosts: dict, end: float) -> None:
    """Take a process in, or tell it why not; what does not speak as one of ours is left out."""
    try:
        connection.settimeout(max(0.01, min(5.0, end - time.monotonic())))
        words = _line(connection).split()
        if len(words) != 4 or words[0] != _HELLO:
            connection.close()
            return
        number, theirs, host = int(words[1]), int(words[2]), words[3]
        problem = ""
        if theirs != count:
            problem = f"process {number} has num_processes={theirs}, but process 0 has {count}"
        elif number in found:
            problem = f"two processes have process_id={number}"
        if problem:
            for other in (connection, *found.values()):
                with contextlib.suppress(OSError):
                    other.sendall(f"error {problem}\n".encode())
            connection.close()
            raise RuntimeError(f"distributed.initialize: {problem}")
        found[number], hosts[number] = connection, host
    except (OSError, ValueError):
        connection.close()


def _connect(host: str, port: int, count: int, number: int, end: float, timeout: float) -> socket.socket:
    """The connection to process 0, which may not listen yet."""
    while True:
        try:
            connection = socket.create_connection((host, port), timeout=max(0.01, end - time.monotonic()))
            break
        except OSError as error:
            if time.monotonic() > end or isinstance(error, socket.gaierror):
                raise RuntimeError(
                    f"distributed.initialize: process {number} does not reach process 0 at {host}:{port} within "
                    f"{timeout:g} s (initialization_timeout): {error}"
                ) from error
            time.sleep(0.05)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(f"{_HELLO} {number} {count} {socket.gethostname()}\n".encode())
    connection.settimeout(max(0.01, end - time.monotonic()))
    try:
        answer = _line(connection)
    except OSError:
        answer = ""
    if answer != "start":
        connection.close()
        why = answer.removeprefix("error ") or f"process 0 has ended, or others have not come within {timeout:g} s"
        raise RuntimeError(f"distributed.initialize: process {number} at {host}:{port}: {why}")
    connection.settimeout(None)
    return connection


def _line(connection: socket.socket) -> str:
    """One line, byte by byte: what follows is for MPI to read."""
    data = b""
    while not data.endswith(b"\n") and len(data) < 4096:
        if not (more := connection.recv(1)):
            break
        data += more
    return data.decode(errors="replace").strip()


def mapping(hosts: Sequence[str]) -> str:
    """Which processes share a machine, as MPICH reads it: (first machine, machines, processes on each) for each run."""
    numbers = {host: k for k, host in enumerate(dict.fromkeys(hosts))}
    runs: list[list[int]] = []
    for host in hosts:
        if runs and runs[-1][0] == numbers[host]:
            runs[-1][1] += 1
        else:
            runs.append([numbers[host], 1])
    return f"(vector,{','.join(f'({node},1,{n})' for node, n in runs)})"


class _Server:
    """What answers MPI's questions, at process 0: a store of texts that processes put and get, and barriers."""

    def __init__(self, connections: dict[int, socket.socket], hosts: Sequence[str]) -> None:
        self.connections = connections
        self.lock = Lock()
        self.store = {"PMI_process_mapping": mapping(hosts)}
        self.come: set[int] = set()
        # MPICH names shared memory by it: of each start its own.
        self.name = f"pullback_{os.getpid()}_{secrets.token_hex(8)}"

    def serve(self, number: int, connection: socket.socket) -> None:
        """Answer one process until it takes its leave, or is gone."""
        with contextlib.suppress(OSError), connection, connection.makefile("r") as lines:
            for line in lines:
                answer = self.answer(number, line.rstrip("\n"))
                if answer:
                    connection.sendall(f"cmd={answer}\n".encode())
                if answer == "finalize_ack rc=0":
                    return

    def answer(self, number: int, line: str) -> str:
        """What is said to a line `cmd=name key=value ...`; nothing until all have come to a barrier."""
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        command = words.get("cmd", "")
        if command == "put":
            with self.lock:
                self.store[words["key"]] = line.partition("value=")[2]
            return "put_result rc=0 msg=success"
        if command == "get":
            with self.lock:
                found = self.store.get(words["key"])
            if found is None:
                return "get_result rc=-1 msg=key_not_found value=unknown"
            return f"get_result rc=0 msg=success value={found}"
        if command == "barrier_in":
            self._wait(number)
            return ""
        return {
            "init": "response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0",
            "get_appnum": "appnum appnum=0 rc=0",
            "get_my_kvsname": f"my_kvsname kvsname={self.name} rc=0",
            "get_universe_size": f"universe_size size={len(self.connections)} rc=0",
            "finalize": "finalize_ack rc=0",
        }.get(command, f"{command}_result rc=-1 msg=not_supported")

    def _wait(self, number: int) -> None:
        with self.lock:
            self.come.add(number)
            if len(self.come) < len(self.connections):
                return
            self.come.clear()
        for connection in self.connections.values():
            with contextlib.suppress(OSError):
                connection.sendall(b"cmd=barrier_out rc=0\n")


def part(timeout: float) -> None:
    """After MPI has ended: process 0 waits until the others need it no more.

    MPICH says good-bye when the process exits, after Python is gone, and waits for an answer: it finds that in a socket
    of its own, which takes the place of the connection.
    """
    for number in _open:
        own, answering = socket.socketpair()
        answering.sendall(b"cmd=finalize_ack rc=0\n")
        answering.detach()
        os.dup2(own.detach(), number, inheritable=False)
    _open.clear()
    end = time.monotonic() + timeout
    for thread in _waiting:
        thread.join(max(0.0, end - time.monotonic()))
    _waiting.clear()
