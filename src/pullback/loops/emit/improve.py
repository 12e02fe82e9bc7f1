"""Better code for drafts (drafts.py) that have run for long enough, made by a thread beside the program.

A draft may run on any thread, with or without Python's lock. So it says what it wants by a pending call, which Python
makes soon on its main thread; that starts the thread. Calls that are under way end in the draft, the next ones run the
better code.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import ctypes
from collections.abc import Callable
from weakref import WeakValueDictionary

from pullback.util.locks import Lock

from .cache import Entry, ObjectCache, cache_key
from .load import CompiledFunction, load_object

# What the function that runs a draft or better code goes by: the addresses of both; calls until the next one whose time
# is taken; cycles until better code is worth making; whom to tell then, and what.
TABLE = BETTER, DRAFT, WAIT, LEFT, TELL, WHAT = "better", "draft", "wait", "left", "tell", "what"
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
    draft[TELL], draft[WHAT] = _TELL, _WHAT
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


def _wanted(table: int) -> int:
    draft = _watched.get(table)
    if draft is not None:
        with contextlib.suppress(RuntimeError):  # the interpreter ends
            _thread.start_new_thread(draft.improve, ())
    return 0


_callback = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_wanted)
_WHAT = ctypes.cast(_callback, ctypes.c_void_p).value or 0
_TELL = ctypes.cast(ctypes.pythonapi.Py_AddPendingCall, ctypes.c_void_p).value or 0

# LLVM must not be at work when its library is taken down.
atexit.register(_working.acquire)

__all__ = ["BETTER", "LEFT", "TABLE", "Draft", "cost", "front", "settle", "watch"]
