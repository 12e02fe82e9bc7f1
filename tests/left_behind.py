"""What tests may change of the process and must give back: the next ones would see it, and whether that matters depends
on which these are, and so on the machine.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from patience import PATIENCE

import pullback
from pullback._ext import _core
from pullback.util import flags
from pullback.util.switches import switches


def _set_options(before: dict[str, Any]) -> None:
    for name, value in before.items():
        if flags._global[name] != value:
            flags.set_globally(flags.options[name], value)


def _set_overrides(before: dict[str, Any]) -> None:
    flags._thread.overrides = before
    flags._resolve()


def _environment() -> dict[str, str]:
    # But what pytest says of the test, and threadpoolctl when it is imported.
    return {k: v for k, v in os.environ.items() if k not in ("PYTEST_CURRENT_TEST", "KMP_DUPLICATE_LIB_OK")}


def _set_environment(before: dict[str, str]) -> None:
    for name in _environment().keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


# name: (what it is now, how it is given back)
STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "options": (lambda: dict(flags._global), _set_options),
    "options of this thread": (lambda: flags._thread.overrides, _set_overrides),
    "switches": (lambda: dict(vars(switches)), lambda before: vars(switches).update(before)),
    "environment variables": (_environment, _set_environment),
    "number of threads": (_core.num_threads, pullback.set_num_threads),
    "working directory": (os.getcwd, os.chdir),
    "handler of Ctrl-C": (lambda: signal.getsignal(signal.SIGINT), lambda before: signal.signal(signal.SIGINT, before)),
    "floating-point errors": (np.geterr, lambda before: np.seterr(**before)),
    "switch interval": (sys.getswitchinterval, sys.setswitchinterval),
    "recursion limit": (sys.getrecursionlimit, sys.setrecursionlimit),
    "collector": (gc.isenabled, lambda before: gc.enable() if before else gc.disable()),
}


def state() -> dict[str, Any]:
    """All of it, and the threads there are."""
    return {name: look() for name, (look, _) in STATE.items()} | {"threads": set(threading.enumerate())}


def give_back(before: dict[str, Any]) -> list[str]:
    """Wait for the threads that were begun since, and set what has changed as it was before; what that is, in words."""
    for thread in threading.enumerate():
        if not thread.daemon and thread not in before["threads"] and thread is not threading.current_thread():
            thread.join(PATIENCE)
    found = []
    for name, (look, set_back) in STATE.items():
        old, new = before[name], look()
        if new != old:
            found.append(f"{name}: {_difference(old, new)}")
            set_back(old)
    return found


def _difference(old: Any, new: Any) -> str:
    if not isinstance(old, dict):
        return f"{old!r} to {new!r}"
    absent = object()
    return ", ".join(sorted(name for name in {*old, *new} if old.get(name, absent) != new.get(name, absent)))
