"""How many threads the BLAS of util/lapack.py takes: one, where we ask it (ext/programs/blas_threads.h).

OpenBLAS's threads wait by spinning. Measured on two cores: a pseudoinverse of 100 x 100, for which one OpenBLAS
decomposed and another multiplied, took 4 to 16 ms, on one thread 0.8.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from pullback._ext import _core
from pullback.util import lapack

Control = tuple[Callable[[], int], Callable[[int], None]]

_NAMES = (
    "scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)  # fmt: skip


@functools.cache
def control() -> Control | None:
    """(function that gives the number of threads, one that sets it), in C; None if the library has none. From then on
    `blas_begin` and `blas_end` do something.
    """
    handle = lapack.library().handle
    for name in _NAMES:
        try:
            get, set_ = [handle[name.format(verb)] for verb in ("get", "set")]
        except AttributeError:
            continue
        get.argtypes, get.restype, set_.argtypes, set_.restype = [], ctypes.c_int, [ctypes.c_int], None
        addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (get, set_)]
        _core.set_blas_control(*addresses)
        return get, set_
    return None


def on_one_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, during whose calls BLAS runs on the calling thread alone."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        control()
        _core.blas_begin()
        try:
            return function(*args, **kwargs)
        finally:
            _core.blas_end()

    return call


__all__ = ["control", "on_one_thread"]
