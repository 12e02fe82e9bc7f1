"""BLAS and LAPACK: which library has them, where each routine is, and how wide the integers are that it takes.

NumPy has loaded one, and programs call that: a second library would bring threads of its own, and 127 MB of SciPy.
It is found by asking NumPy's extension module, which sees what it was linked with, whatever that is called: the
OpenBLAS of its wheels (integers of 64 bits, names with a prefix), or what conda and Debian link it with. A NumPy
without a whole LAPACK leaves it to SciPy, if that is there, or to the system's libraries.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from pullback.util.record import frozen_record

# How builds of the libraries spell a routine: the OpenBLAS of wheels, Apple's Accelerate, and Fortran compilers.
SPELLINGS = (
    "scipy_{}_64_", "scipy_{}_", "{}_64_", "{}64_", "{}$NEWLAPACK$ILP64", "{}$NEWLAPACK", "{}_", "{}",
)  # fmt: skip
NEEDED = ("dgemm", "dgesdd", "dgees", "dlaed1")  # those that a part of a LAPACK, as NumPy has its own, is without
SYSTEM = ("openblas", "lapack")


@frozen_record
class Library:
    """A library with BLAS and LAPACK."""

    handle: Any
    spelling: str
    integer: np.dtype  # int32 or int64
    origin: str  # for messages: whose it is

    def address(self, name: str) -> int | None:
        """The address of a routine ('dgemm'), all of whose arguments go by reference; None if there is none."""
        return _address(self.handle, self.spelling.format(name))

    @property
    def file(self) -> str:
        """The file that the routines are in. Raises ImportError where the system does not tell."""
        found = _Symbol()
        try:
            known = ctypes.CDLL(None).dladdr(ctypes.c_void_p(self.address(NEEDED[1])), ctypes.byref(found))
        except (AttributeError, OSError, TypeError):
            known = 0
        if not known or not found.file:
            raise ImportError(f"cannot tell in which file the LAPACK is that was found ({self.origin})")
        return os.path.realpath(os.fsdecode(found.file))


class _Symbol(ctypes.Structure):
    """Dl_info, as dladdr fills it."""

    _fields_ = (
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p),
    )  # fmt: skip


def opened(path: str, origin: str, routines: tuple[str, ...] = NEEDED) -> Library:
    """The library of a file, or one that it was linked with. Raises OSError if it has not all the routines."""
    handle = ctypes.CDLL(path)
    missing = routines
    for spelling in SPELLINGS:
        absent = tuple([name for name in routines if _address(handle, spelling.format(name)) is None])
        if not absent:
            return Library(handle, spelling, _integer(handle, spelling), origin)
        missing = min(missing, absent, key=len)
    raise OSError(f"{path} has no {', '.join(missing[:6])}")


def _address(handle: Any, symbol: str) -> int | None:
    try:
        return ctypes.cast(handle[symbol], ctypes.c_void_p).value
    except AttributeError:
        return None


def _integer(handle: Any, spelling: str) -> np.dtype:
    """The type of a library's integers: of 1 - 2^32 elements, 32 bits see one, and 64 see none."""
    try:
        dot = ctypes.CFUNCTYPE(ctypes.c_double, *5 * [ctypes.c_void_p])((spelling.format("ddot"), handle))
    except AttributeError:  # LAPACK without BLAS
        return np.dtype(np.int64 if "64" in spelling else np.int32)
    count, step, one = np.array([1 - (1 << 32)]), np.array([1]), np.ones(1)
    found = dot(*[x.ctypes.data for x in (count, one, step, one, step)])
    return np.dtype(np.int32 if found else np.int64)


def _candidates() -> Iterator[tuple[str, str]]:
    from numpy.linalg import _umath_linalg

    yield _umath_linalg.__file__, "NumPy's"
    found = importlib.util.find_spec("scipy")
    if found is not None and found.origin is not None:
        folder = os.path.join(os.path.dirname(found.origin), "linalg")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.startswith("_flapack"):
                yield os.path.join(folder, name), "SciPy's"
    from ctypes.util import find_library  # which loads what runs the linker

    for name in SYSTEM:
        named = find_library(name)
        if named is not None:
            yield named, f"the system's {named}"


@functools.cache
def library() -> Library:
    """The library that programs and eager work call. Raises ImportError where there is none."""
    for path, origin in _candidates():
        try:
            return opened(path, origin)
        except OSError:
            continue
    raise ImportError(
        f"pullback needs a LAPACK, and found none: NumPy {np.__version__} ({os.path.dirname(np.__file__)}) was built "
        "without one. Install NumPy from a wheel (pip install numpy), or SciPy (pip install 'pullback[scipy]'), or the "
        "system's OpenBLAS (Debian: libopenblas0)"
    )


def identity() -> str:
    """What programs on disk depend on: the width of integers is written in them."""
    try:
        return f"lapack {library().integer}"
    except ImportError:
        return "no lapack"


_chosen: ContextVar[np.dtype | None] = ContextVar("pullback_lapack_integer", default=None)


def integer() -> np.dtype:
    """The type of integers that routines take in programs that are lowered now: int32 or int64."""
    return _chosen.get() or library().integer


@contextmanager
def integers_of(dtype: Any) -> Iterator[None]:
    """Programs lowered inside are for another library than this process has, with integers of a type."""
    token = _chosen.set(np.dtype(dtype))
    try:
        yield
    finally:
        _chosen.reset(token)


@functools.cache
def _function(name: str, arguments: int) -> Callable[..., None]:
    address = library().address(name)
    if address is None:
        raise NotImplementedError(f"the LAPACK found here ({library().origin}) has no routine {name!r}")
    return ctypes.CFUNCTYPE(None, *arguments * [ctypes.c_void_p])(address)


def call(name: str, *args: Any) -> int:
    """Call a routine. Arrays and functions of ctypes go as they are, numbers and letters in cells; of arrays the caller
    sees that they are column-major and of the right type. The value of the last cell, LAPACK's `info`.
    """
    cells = np.zeros(len(args), library().integer)
    pointers = []
    first, step = cells.ctypes.data, cells.itemsize
    for k, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            pointers.append(arg.ctypes.data)
        elif isinstance(arg, (int, str)):
            cells[k] = arg if isinstance(arg, int) else ord(arg)  # whose first byte is the letter
            pointers.append(first + k * step)
        else:
            pointers.append(ctypes.cast(arg, ctypes.c_void_p).value or 0)
    _function(name, len(args))(*pointers)
    return int(cells[-1])


__all__ = ["Library", "call", "identity", "integer", "integers_of", "library", "opened"]
