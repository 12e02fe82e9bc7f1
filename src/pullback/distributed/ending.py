"""The end of a process among several: what fails on one is told to all, so that none waits for ever.

A process that an exception ends says so (`sys.excepthook`, or at the end where another hook has taken its place, as
those of libraries that print tracebacks do); the others raise it where they wait next. It then waits a little for them
to end, too, since launchers kill all processes when one has ended badly, and the others would not get to say why. MPI
is not finalized after a failure: that could wait for ever.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from pullback._ext import _core
from pullback.util.switches import switches

_status: list[int] = []  # the exit status after an exception that nobody caught
_asked: list[int] = []  # that of the last call of sys.exit, where it says that something is wrong
_watched: list[Callable[[], Any]] = []
_PATIENCE = 20.0  # seconds that a failed process waits for the others' messages, at least


def watch(rank: int, leave: Callable[[], Any], fail: Callable[[str], Any]) -> None:
    """Tell the other processes of exceptions that end this one, and call `fail` with the text; call `leave` at its
    regular end.
    """
    inner, inner_thread = sys.excepthook, threading.excepthook
    before = _uncaught()

    def hook(kind: Any, value: Any, traceback: Any) -> None:
        inner(kind, value, traceback)
        tell_uncaught(kind, value)

    def tell_uncaught(kind: Any, value: Any) -> None:
        _tell(rank, kind, value, fail)
        _status[:] = [130 if issubclass(kind, KeyboardInterrupt) else 1]

    def tell_at_end() -> None:
        value = _uncaught()
        if not _status and value is not None and value is not before:
            tell_uncaught(type(value), value)
        elif _asked:
            fail(f"process {rank} ended with status {_asked[0]}")

    def thread_hook(given: Any) -> None:
        inner_thread(given)
        _tell(rank, given.exc_type, given.exc_value, fail)

    def asked_exit(status: Any = None, /) -> NoReturn:
        """As sys.exit, of which nothing is left to be read when the program ends."""
        _asked[:] = [status & 255] if isinstance(status, int) and status & 255 else []
        inner_exit(status)

    sys.excepthook, threading.excepthook = hook, thread_hook
    if not _watched:
        inner_exit, sys.exit = sys.exit, asked_exit
        atexit.register(_at_exit)
    _watched[:] = [leave, tell_at_end]


def _tell(rank: int, kind: Any, value: Any, fail: Callable[[str], Any]) -> None:
    if not _watched:
        return
    try:
        said = str(value)[:400].encode(errors="backslashreplace").decode().replace("\0", "\\0")
    except Exception as error:
        said = f"(its text raised {type(error).__name__})"
    reason = f"process {rank} ended with {kind.__name__}: {said}"
    fail(reason)
    if _core.process_failure() is None:
        _core.fail_processes(reason)


def _uncaught() -> Any:
    """The last exception that nobody caught, which ends the program unless there is a prompt."""
    return None if hasattr(sys, "ps1") else getattr(sys, "last_value", None)


def forget() -> None:
    """Nothing is to be done at the end any more."""
    _watched.clear()


def _at_exit() -> None:
    if not _watched:
        return
    leave, tell_at_end = _watched
    tell_at_end()
    if _status or _core.process_failure() is not None:
        end_after_failure(None)
    leave()


def end_after_failure(message: str | None) -> NoReturn:
    """Give the others time to say what has happened, and end, with the status that the program has asked for."""
    if message is not None:
        print(message, file=sys.stderr)
    _flush()
    with contextlib.suppress(KeyboardInterrupt):
        _core.part_processes(max(_PATIENCE, switches.comm_timeout))
    os._exit((*_status, *_asked, 1)[0])


def end_at_once(message: str) -> NoReturn:
    """End with a message."""
    print(message, file=sys.stderr)
    _flush()
    os._exit(1)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
