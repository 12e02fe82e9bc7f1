"""Tiles (AMX) are a state of 8 KB that Linux saves for processes which asked for it."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_ARCH_PRCTL = 158  # system calls of x86-64
_REQUEST, _TILE_DATA = 0x1023, 18  # ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA


@functools.cache
def tiles_are_ours() -> bool:
    """Whether threads of this process may use tiles, once it asked; those of forked processes may then, too."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64":
        return False
    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    return bool(call(ctypes.c_long(_ARCH_PRCTL), ctypes.c_long(_REQUEST), ctypes.c_long(_TILE_DATA)) == 0)
