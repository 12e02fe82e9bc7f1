"""What is imported late: the compiler, when a program is made that is not on disk."""

from __future__ import annotations

from types import ModuleType

from pullback.util.locks import Lock, held_at_fork

importing = held_at_fork(Lock())  # the child would wait for ever for what another thread imports at the fork


def making() -> ModuleType:
    """runtime/programs/making.py: passes, lowering, emission and LLVM."""
    with importing:
        from pullback.runtime.programs import making as found

    return found
