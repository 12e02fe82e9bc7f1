"""What is imported late: the compiler, when a program is made that is not on disk."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from pullback.util.collector import collector_rests
from pullback.util.locks import Lock, held_at_fork

MADE = 40_000  # objects that the compiler makes when it is imported

_lock = held_at_fork(Lock())  # the child would wait for ever for what another thread imports at the fork


@contextmanager
def importing(all_stays: bool = False) -> Iterator[None]:
    """Around late imports: by one thread at a time, the garbage collector rests, and Ctrl-C stays a KeyboardInterrupt.

    Python 3.11 makes a RuntimeError of one that comes where a dataclass is made (until 3.12: gh-77757).
    """
    with _lock, collector_rests(all_stays, unless_beside=MADE):
        try:
            yield
        except RuntimeError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):
                raise error.__cause__ from None
            raise


@functools.cache
def making() -> ModuleType:
    """runtime/programs/making.py: passes, lowering, emission and LLVM."""
    with importing(all_stays=True):
        from pullback.runtime.programs import making as found

    return found
