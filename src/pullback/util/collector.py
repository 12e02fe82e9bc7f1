"""The cyclic garbage collector rests while much is made and nothing is let go of: at import, and while we compile.

It would search all of the process's memory again and again, to find nothing: 4 to 19 % of a compilation, and a sixth
of `import pullback`.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_resting: set[int] = set()  # threads that have disabled it


@contextmanager
def collector_rests(all_stays: bool = False) -> Iterator[None]:
    """No automatic collection meanwhile, in any thread; with `all_stays`, what was made meanwhile counts as old."""
    collects, thread = gc.isenabled(), threading.get_ident()
    if collects:
        _resting.add(thread)
    gc.disable()
    try:
        yield
    finally:
        if all_stays and gc.get_freeze_count() == 0:  # the next collection would search it all, for 15 ms
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()
            _resting.discard(thread)


def _after_fork() -> None:
    if _resting - {threading.get_ident()}:  # which are not in the child, and will not enable it
        gc.enable()
        _resting.clear()


os.register_at_fork(after_in_child=_after_fork)
