"""What os.fork waits for: calls of libraries in other threads (ext/threads/fork_gate.h)."""

from __future__ import annotations

import os

from pullback._ext import _core
from pullback.util.locks import PATIENCE, held_at_fork


class _Libraries:
    """The libraries, as a lock; a program that calls some may itself wait for the thread that forks."""

    def acquire(self) -> None:
        _core.hold_libraries(PATIENCE)

    def release(self) -> None:
        _core.release_libraries()


held_at_fork(_Libraries())
os.register_at_fork(after_in_child=_core.release_libraries_in_child)
