"""The cyclic garbage collector rests while much is made and nothing is let go of: at import, and while we compile.

It would search all of the process's memory again and again, to find nothing: 4 to 19 % of a compilation, and a sixth
of `import pullback`. What an import makes stays until the process ends, so the collector leaves it alone from then on
(`gc.freeze`): each of its searches of all memory is shorter by 45,000 objects. Python does three at exit, which took
43 ms more than after `import numpy`, and now takes no more.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_resting: set[int] = set()  # threads that have disabled it


@contextmanager
def collector_rests(all_stays: bool = False, unless_beside: int | None = None) -> Iterator[None]:
    """No automatic collection meanwhile, in any thread; with `all_stays`, none ever of what was made meanwhile.

    unless_beside: of so many objects, or more, that were there before, those that the collector searches again and
    that are made young by this, it takes longer to tell them from the new ones than that saves.
    """
    collects, thread = gc.isenabled(), threading.get_ident()
    before = gc.get_objects() if all_stays else []
    if unless_beside is not None and len(before) >= unless_beside:
        all_stays = False
    if collects:
        _resting.add(thread)
    gc.disable()
    try:
        yield
        if all_stays:
            gc.freeze()
            from pullback._ext import _core

            _core.track_anew(before)  # what is not ours is collected as ever
    finally:
        if collects:
            gc.enable()
            _resting.discard(thread)


def _after_fork() -> None:
    if _resting - {threading.get_ident()}:  # which are not in the child, and will not enable it
        gc.enable()
        _resting.clear()


os.register_at_fork(after_in_child=_after_fork)
