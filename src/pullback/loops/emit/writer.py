"""A thread that writes files of the code cache, while the programs run for whose code they are.

A file takes 0.2 to 0.7 ms, most of it the system's, which makes it and perhaps its folder: a tenth of what a short
program took to compile (of 68 programs: 0.94 of the time, on a busy disk 0.8). The end of the process waits for what is
not written yet; a process that is killed leaves less on the disk, and no half of a file. The thread ends when there
is nothing to do: a fork of a process with one thread is the safer one. A forked child writes at once, as such processes
often end by `os._exit`, which waits for nobody.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from pullback.util.locks import Lock

IDLE = 1.0  # seconds that the thread waits for more to do

_lock = Lock()  # for a job and the thread that does it
_jobs: SimpleQueue[Callable[[], object]] = SimpleQueue()
_left = 0  # jobs that are not done
_thread: threading.Thread | None = None
_forked = False


def write_later(job: Callable[[], object]) -> None:
    """Runs `job` after all jobs before it; what it raises is dropped."""
    global _left, _thread
    if _forked:
        _do(job)
        return
    with _lock:
        if _thread is None:
            thread = threading.Thread(target=_work, name="pullback-cache", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # there are too many, or the process is ending
                _do(job)
                return
            _thread = thread
        _left += 1
        _jobs.put(job)


def finish_writing() -> None:
    """Waits until all jobs so far are done."""
    if _left:
        done = threading.Event()
        write_later(done.set)
        done.wait()


def _work() -> None:
    global _left, _thread
    while True:
        try:
            job = _jobs.get(timeout=IDLE)
        except Empty:
            with _lock:
                if _jobs.empty():
                    _thread = None
                    return
            continue
        _do(job)
        with _lock:
            _left -= 1


def _do(job: Callable[[], object]) -> None:
    with contextlib.suppress(Exception):
        job()


def _after_fork() -> None:
    """A child has no such thread, and what the parent has to write, the parent writes."""
    global _jobs, _left, _thread, _forked
    _jobs, _left, _thread, _forked = SimpleQueue(), 0, None, True


atexit.register(finish_writing)
os.register_at_fork(after_in_child=_after_fork)

__all__ = ["finish_writing", "write_later"]
