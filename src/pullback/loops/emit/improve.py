"""Better code for drafts (drafts.py) that have run for long enough, made by a thread beside the program.

A draft may run on any thread, with or without Python's lock, while others wait for it. So it starts the thread itself,
by pthread_create, and the thread waits for the lock. Calls that are under way end in the draft, the next ones run the
better code.
"""

from __future__ import annotations

import atexit
import ctypes
from collections.abc import Callable
from weakref import WeakValueDictionary

from pullback.util.locks import Lock

from .cache import Entry, ObjectCache, cache_key
from .load import CompiledFunction, load_object

# What the function that runs a draft or better code goes by: the addresses of both; calls until the next one whose time
# is taken; cycles until better code is worth making; what starts a thread then, and what that does.
TABLE = BETTER, DRAFT, WAIT, LEFT, START, IMPROVE = "better", "draft", "wait", "left", "start", "improve"
NEVER = (1 << 63) - 1  # cycles
LINE, MODULE = 14_000, 1_000_000  # nanoseconds of LLVM's for better code
CYCLES = 2.5  # of the processor's counter in a nanosecond, about


def cost(lines: int) -> float:
    """Nanoseconds that LLVM takes for better code from so many lines, about."""
    return LINE * lines + MODULE


class Draft:
    """What stands in front of the code of a draft; `better` makes the entry of better code, until that is there."""

    def __init__(self, code: CompiledFunction, front: Entry, better: Callable[[], Entry]) -> None:
        self.better: Callable[[], Entry] | None = better
        self.address, self._table, owner = load_object(front.code, TABLE)
        self._code_table, self._owners = code.table, code.owners
        self._owners.append(owner)

    def __getitem__(self, name: str) -> int:
        return self._table[TABLE.index(name)] or 0

    def __setitem__(self, name: str, value: int) -> None:
        self._table[TABLE.index(name)] = value

    @property
    def table_address(self) -> int:
        """By which it is known to those who ask."""
        return ctypes.addressof(self._table)

    def improve(self) -> None:
        """Makes the better code now, unless it is there."""
        with _working:
            better, self.better = self.better, None
            if better is None:
                return
            entry = better()
            address, table, owner = load_object(entry.code, entry.slots)
            for k in range(len(entry.slots)):
                table[k] = self._code_table[k]
            self._owners.append(owner)
            self[BETTER] = address


_working = Lock()  # held while code is made, and when no more is to be made
_watched: WeakValueDictionary[int, Draft] = WeakValueDictionary()


def watch(code: CompiledFunction, lines: int, front: Entry, better: Callable[[], Entry]) -> None:
    """Has calls of a draft run what `better` gives, once they have run for as long as LLVM takes for it, from `lines`.

    `front`: the function that does so (drafts.py).
    """
    draft = Draft(code, front, better)
    draft[DRAFT], draft[LEFT] = code.address, int(CYCLES * cost(lines))
    draft[START], draft[IMPROVE] = _START, _IMPROVE
    _watched[draft.table_address] = draft
    code.draft, code.address = draft, draft.address


def front(cache: ObjectCache | None, make: Callable[[], bytes]) -> Entry:
    """What stands in front of drafts: as it was found or made first, by `make`."""
    if not _front:
        key = cache_key("draft", "", "x86-64")
        found = cache.get(key) if cache is not None else None
        if found is None:
            found = Entry(make(), TABLE, 0)
            if cache is not None:
                cache.put(key, found)
        _front.append(found)
    return _front[0]


_front: list[Entry] = []


def settle() -> None:
    """Makes the better code of all drafts now: for measurements."""
    for draft in list(_watched.values()):
        draft.improve()


_process = ctypes.CDLL(None)
_process.pthread_self.restype = ctypes.c_void_p
_process.pthread_detach.argtypes = [ctypes.c_void_p]


def _improve(table: int) -> None:
    """What such a thread does; nobody waits for its end."""
    _process.pthread_detach(_process.pthread_self())
    draft = _watched.get(table)
    if draft is not None:
        draft.improve()


_callback = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(_improve)
_IMPROVE = ctypes.cast(_callback, ctypes.c_void_p).value or 0
_START = ctypes.cast(_process.pthread_create, ctypes.c_void_p).value or 0

# LLVM must not be at work when its library is taken down.
atexit.register(_working.acquire)

__all__ = ["BETTER", "LEFT", "TABLE", "Draft", "cost", "front", "settle", "watch"]
