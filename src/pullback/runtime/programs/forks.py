"""What os.fork waits for: calls of libraries in other threads (ext/threads/fork_gate.h)."""

from __future__ import annotations

import os

from pullback._ext import _core

PATIENCE = 10.0  # seconds; a program may itself wait for the thread that forks

os.register_at_fork(
    before=lambda: _core.hold_libraries(PATIENCE),
    after_in_parent=_core.release_libraries,
    after_in_child=_core.release_libraries_in_child,
)
