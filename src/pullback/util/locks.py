"""Locks that outlive fork().

The child of a fork has one thread, and locks as other threads held them, for ever. So every lock of the package is one
of these:

    _lock = Lock()               # the child has it new; what it guards is whole whenever a thread may lose the GIL
    _changed = Condition()       # the same, for threads that wait for each other
    _lock = held_at_fork(Lock()) # a fork waits for it: what it guards must not be copied half done

What must not be copied half done is the state of LLVM, and imports; for calls of BLAS, which hang in forks, see
ext/threads/fork_gate.h.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

_generation = 0  # how many forks this process is away from the first
_renewal = threading.Lock()


class Lock:
    """A lock for `with` statements; a thread may take it again while it holds it."""

    __slots__ = ("_generation", "_lock")

    def __init__(self) -> None:
        self._generation = _generation
        self._lock: Any = threading.RLock()

    def acquire(self) -> None:
        """Wait until no other thread holds it."""
        if self._generation != _generation:
            with _renewal:
                if self._generation != _generation:
                    if not self._lock._is_owned():  # by a thread that is here; others stayed in the parent
                        self._lock = threading.RLock()
                    self._generation = _generation
        self._lock.acquire()

    def release(self) -> None:
        """Let others have it."""
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Condition:
    """A lock whose holders may wait until others have changed what it guards."""

    __slots__ = ("_condition", "_generation")

    def __init__(self) -> None:
        self._generation = _generation
        self._condition = threading.Condition()

    def __enter__(self) -> None:
        if self._generation != _generation:
            with _renewal:
                if self._generation != _generation:
                    self._condition, self._generation = threading.Condition(), _generation
        self._condition.__enter__()

    def __exit__(self, *_: object) -> None:
        self._condition.__exit__(None, None, None)

    def wait_for(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Let others have the lock until something is so, or time is up; whether it is so."""
        return self._condition.wait_for(is_so, seconds)

    def notify_all(self) -> None:
        """Let all who wait look again."""
        self._condition.notify_all()


_Held = TypeVar("_Held")  # has acquire() and release()
_held: list[Any] = []
_taken = 0  # how many of them the thread that forks has; written by this thread only


def held_at_fork(lock: _Held) -> _Held:
    """The lock, which `os.fork` takes first; so a holder of it must not wait for a thread that may fork.

    Such locks are taken in the order in which they were made known, by forks and by everybody else.
    """
    _held.append(lock)
    return lock


PATIENCE = 10.0  # seconds; an import may itself wait for the thread that forks


def _others_import() -> bool:
    """Whether another thread is importing a module, for whose lock the child would wait for ever."""
    own = threading.get_ident()
    known: Any = getattr(importlib, "_bootstrap", None)  # nothing public tells
    locks = [found() for found in list(getattr(known, "_module_locks", {}).values())]
    return any(getattr(lock, "owner", None) not in (None, own) for lock in locks)


def _before_fork() -> None:
    global _taken
    until = time.monotonic() + PATIENCE
    while True:
        while _others_import() and time.monotonic() < until:
            time.sleep(0.001)
        count = 0
        while count < len(_held):  # it may grow meanwhile: a thread imports the module of a lock that is waited for
            _held[count].acquire()
            count += 1
        _taken = count
        if not _others_import() or time.monotonic() > until:
            return
        _release()  # a module that is being imported may want them


def _release() -> None:
    for lock in reversed(_held[:_taken]):
        lock.release()


def _after_fork() -> None:
    global _generation, _renewal
    _release()
    _generation += 1
    _renewal = threading.Lock()


os.register_at_fork(before=_before_fork, after_in_parent=_release, after_in_child=_after_fork)

__all__ = ["Lock", "held_at_fork"]
