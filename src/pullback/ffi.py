"""Foreign functions: JAX calls them through XLA. Here a C function is called by `pure_callback`."""

from __future__ import annotations

import ctypes
from typing import Any

from pullback.util.absent import absent_names


def pycapsule(funcptr: Any) -> Any:
    """A PyCapsule around a function of ctypes. Raises TypeError for what is none."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(funcptr, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


__getattr__ = absent_names(__name__)

__all__ = ["pycapsule"]
