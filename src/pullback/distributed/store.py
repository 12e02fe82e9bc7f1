"""Keys and values that all processes see, and barriers between threads of theirs, as libraries ask JAX's client for.

Process 0 holds them; the others ask it over a connection for each of their threads, so that a thread which waits keeps
no other from asking. One more connection of each stays open while the process lives: whoever waits for a process that
has failed, or is gone, hears of it. Who connects proves to know a secret that process 0 makes and MPI brings to the
others; whoever does not is answered by a thread of its own, too, and keeps nobody waiting.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Container, Sequence
from multiprocessing import ProcessError
from multiprocessing.connection import Client as Connection
from multiprocessing.connection import Listener, answer_challenge, deliver_challenge
from typing import Any

from pullback.util.errors import JaxRuntimeError
from pullback.util.locks import Condition


class Store:
    """What process 0 holds. Methods wait, and raise JaxRuntimeError, as those of `Client`."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.values: dict[str, Any] = {}
        self.arrived: dict[str, set[int]] = {}
        self.passed: dict[str, int] = {}
        self.lost: dict[int, str] = {}  # processes that come no more, and why
        self.changed = Condition()

    def lose(self, process: int, reason: str) -> None:
        with self.changed:
            self.lost.setdefault(process, reason)
            self.changed.notify_all()

    def set(self, key: str, value: Any, allow_overwrite: bool) -> None:
        with self.changed:
            if key in self.values and not allow_overwrite:
                raise JaxRuntimeError(f"ALREADY_EXISTS: Config key {key} already exists.")
            self.values[key] = value
            self.changed.notify_all()

    def get(self, key: str, timeout_ms: int) -> Any:
        with self.changed:
            self.changed.wait_for(lambda: key in self.values or bool(self.lost), timeout_ms / 1000)
            if key not in self.values:
                if self.lost and timeout_ms:
                    raise JaxRuntimeError(f"UNAVAILABLE: no value came for the key {key}: {self._reason(self.lost)}")
                raise JaxRuntimeError(f"DEADLINE_EXCEEDED: no value came for the key {key} in {timeout_ms} ms")
            return self.values[key]

    def below(self, prefix: str) -> list[tuple[str, Any]]:
        prefix = prefix.rstrip("/") + "/"
        with self.changed:
            return sorted((k, v) for k, v in self.values.items() if k.startswith(prefix))

    def delete(self, key: str) -> None:
        with self.changed:
            for k in [k for k in self.values if k == key or k.startswith(key.rstrip("/") + "/")]:
                del self.values[k]

    def increment(self, key: str, by: int) -> int:
        with self.changed:
            self.values[key] = str(int(self.values.get(key, 0)) + by)
            self.changed.notify_all()
            return int(self.values[key])

    def wait(self, name: str, process: int, timeout_ms: int, members: Sequence[int] | None) -> None:
        """Until all members have come to the barrier."""
        wanted = set(range(self.size)) if members is None else set(members)
        end = time.monotonic() + timeout_ms / 1000
        with self.changed:
            generation = self.passed.get(name, 0)
            here = self.arrived.setdefault(name, set())
            here.add(process)
            if here >= wanted:
                del self.arrived[name]
                self.passed[name] = generation + 1
                self.changed.notify_all()
                return

            def is_over() -> bool:
                return self.passed.get(name, 0) > generation or not (wanted - here).isdisjoint(self.lost)

            self.changed.wait_for(is_over, max(0.0, end - time.monotonic()))
            if self.passed.get(name, 0) > generation:
                return
            missing = wanted - here
            here.discard(process)
            if gone := missing.intersection(self.lost):
                raise JaxRuntimeError(f"UNAVAILABLE: Barrier failed. Id: {name}: {self._reason(gone)}")
            raise JaxRuntimeError(
                f"DEADLINE_EXCEEDED: Barrier timed out. Id: {name}. Processes {sorted(missing)} have not come to it in "
                f"{timeout_ms} ms"
            )

    def _reason(self, processes: Container[int]) -> str:
        """Of the first that was lost: what others say may only follow from it."""
        return next(reason for p, reason in self.lost.items() if p in processes)


class Client:
    """What a process asks for; the names are those of JAX's client. Raises JaxRuntimeError: NOT_FOUND, ALREADY_EXISTS,
    DEADLINE_EXCEEDED, or UNAVAILABLE where process 0 does not answer, or one that is waited for comes no more.
    """

    def __init__(self, process: int, store: Store | None, address: Any = None, secret: bytes = b"") -> None:
        self.process, self.store, self.address, self.secret = process, store, address, secret
        self.own = threading.local()
        self.life: Any = None  # the connection that stays open
        self.parted = ""  # why nothing can be asked any more

    def join(self) -> None:
        """Let process 0 see for how long this process lives."""
        if self.store is None:
            self._ask("join", self.process)
            self.life = self.own.connection
            del self.own.connection

    def part(self, reason: str) -> None:
        """Ask nothing from now on, in a process that is not the one which joined."""
        self.parted = reason
        if self.life is not None:
            self.life.close()  # that of the process which joined stays open as long as that lives

    def fail(self, reason: str) -> None:
        """Tell whoever waits for this process that it comes no more."""
        if self.store is not None:
            self.store.lose(self.process, reason)
        elif self.life is not None:
            with contextlib.suppress(OSError):
                self.life.send(("lose", (self.process, reason)))

    def _ask(self, method: str, *args: Any) -> Any:
        if self.parted:
            raise JaxRuntimeError(f"UNAVAILABLE: {self.parted}")
        if self.store is not None:
            return getattr(self.store, method)(*args)
        try:
            if not hasattr(self.own, "connection"):
                self.own.connection = Connection(self.address, authkey=self.secret)
            self.own.connection.send((method, args))
            done, value = self.own.connection.recv()
        except (OSError, EOFError, ProcessError) as error:
            raise JaxRuntimeError(
                f"UNAVAILABLE: process 0, which holds keys and values, does not answer: {error}"
            ) from error
        if not done:
            raise JaxRuntimeError(value)
        return value

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """Give a key its value."""
        self._ask("set", key, value, allow_overwrite)

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        """The value of a key, once it has one."""
        return self._ask("get", key, timeout_in_ms)

    def key_value_try_get(self, key: str) -> str:
        """The value that a key has now."""
        try:
            return self._ask("get", key, 0)
        except JaxRuntimeError as error:
            if not str(error).startswith("DEADLINE_EXCEEDED"):
                raise
            raise JaxRuntimeError(f"NOT_FOUND: Config key {key} not found.") from None

    key_value_set_bytes, blocking_key_value_get_bytes = key_value_set, blocking_key_value_get
    key_value_try_get_bytes = key_value_try_get

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        """(key, value) of all keys below one, as of files in a folder."""
        return self._ask("below", key)

    key_value_dir_get_bytes = key_value_dir_get

    def key_value_delete(self, key: str) -> None:
        """Forget a key, and all below it."""
        self._ask("delete", key)

    def key_value_increment(self, key: str, increment: int = 1) -> int:
        """The value of a counter, after adding to it."""
        return self._ask("increment", key, increment)

    def wait_at_barrier(self, barrier_id: str, timeout_in_ms: int, process_ids: Sequence[int] | None = None) -> None:
        """Wait until all processes, or those that are named, are here."""
        self._ask("wait", barrier_id, self.process, timeout_in_ms, None if process_ids is None else list(process_ids))


def opened(process: int, size: int, broadcast: Any, one_host: bool) -> Client:
    """The client of this process; `broadcast(value)` brings that of process 0 to all. All processes call it."""
    if process == 0:
        store, secret = Store(size), secrets.token_bytes(32)
        listener = Listener(("127.0.0.1" if one_host else "0.0.0.0", 0), backlog=size)
        host = "127.0.0.1" if one_host else socket.gethostname()
        broadcast(((host, listener.address[1]), secret))
        threading.Thread(
            target=_serve, args=(listener, store, secret), name="pullback keys and values", daemon=True
        ).start()
        return Client(process, store)
    address, secret = broadcast(None)
    client = Client(process, None, address, secret)
    client.join()
    return client


def _serve(listener: Listener, store: Store, secret: bytes) -> None:
    while True:
        try:
            connection = listener.accept()
        except ConnectionError:  # one who has gone again
            continue
        threading.Thread(target=_answer, args=(connection, store, secret), daemon=True).start()


def _answer(connection: Any, store: Store, secret: bytes) -> None:
    """Answer who knows the secret, until they go; nothing is read of what others send but their proof."""
    with connection:
        try:
            deliver_challenge(connection, secret)
            answer_challenge(connection, secret)
        except (OSError, EOFError, ProcessError):
            return
        member = None
        while True:
            try:
                method, args = connection.recv()
            except (OSError, EOFError):
                if member is not None:
                    store.lose(member, f"process {member} is gone")
                return
            if method == "join":
                (member,) = args
            try:
                answer = True, None if method == "join" else getattr(store, method)(*args)
            except JaxRuntimeError as error:
                answer = False, str(error)
            try:
                connection.send(answer)
            except OSError:
                return


__all__ = ["Client", "Store", "opened"]
