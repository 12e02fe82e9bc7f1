"""How many threads SciPy's BLAS takes: one, where we ask it (ext/programs/blas_threads.h).

OpenBLAS's threads wait by spinning, and NumPy brings another OpenBLAS with threads of its own. Measured on two cores: a
pseudoinverse of 100 x 100, for which SciPy decomposes and NumPy multiplies, took 4 to 16 ms, now 0.8.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback._ext import _core

Control = tuple[Callable[[], int], Callable[[int], None]]

_NAMES = ("scipy_openblas_{}_num_threads", "scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads")


@functools.cache
def control() -> Control | None:
    """(function that gives the number of threads, one that sets it) of the BLAS that SciPy calls, in C; None if it has
    none. From then on `blas_begin` and `blas_end` do something. To load SciPy and its BLAS takes 20 ms.
    """
    import scipy

    folder = Path(scipy.__file__).parent
    candidates = [*folder.parent.glob("scipy.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")]
    for path in [*map(str, candidates), None]:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _NAMES:
            try:
                get, set_ = [getattr(library, name.format(verb)) for verb in ("get", "set")]
            except AttributeError:
                continue
            get.argtypes, get.restype, set_.argtypes, set_.restype = [], ctypes.c_int, [ctypes.c_int], None
            addresses = [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (get, set_)]
            _core.set_blas_control(*addresses)
            return get, set_
    return None


def on_one_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, during whose calls SciPy's BLAS runs on the calling thread alone."""

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
