"""Where an exported library gets BLAS and LAPACK from: a dependency by name, never a copy."""

from __future__ import annotations

import ctypes
import shlex
import warnings
from collections.abc import Callable, Collection
from pathlib import Path

from pullback.util.record import frozen_record

# How builds of the libraries spell a Fortran routine. SciPy's wheels bring an OpenBLAS whose names have a prefix.
_SPELLINGS = ("{}_", "scipy_{}_", "{}")
_SPELLING_64 = ("{}_64_", "scipy_{}_64_", "{}64_")
_SYSTEM = (("-lopenblas",), ("-llapack", "-lblas"))


@frozen_record
class Blas:
    """What to tell the linker, and how the routines are spelled."""

    flags: tuple[str, ...] = ()
    spelling: str = "{}_"
    description: str = ""


def find_blas(wanted: str | None, routines: Collection[str], links: Callable[[Blas], bool]) -> Blas:
    """The library that has all `routines`; `links` tells whether the linker agrees.

    wanted: 'scipy', the file of a library, linker flags such as '-lmkl_rt', or None: the system's OpenBLAS or LAPACK,
    else the OpenBLAS in SciPy's wheel with a warning. Raises ValueError for a file without the routines, RuntimeError
    where nothing is found.
    """
    if not routines:
        return Blas()
    if wanted == "scipy":
        return _of_scipy(routines)
    if wanted is not None and not wanted.startswith("-"):
        return _of_file(Path(wanted), routines)
    choices = _SYSTEM if wanted is None else (tuple(shlex.split(wanted)),)
    for flags in choices:
        blas = Blas(flags, "{}_", " ".join(flags))
        if links(blas):
            return blas
    some = ", ".join(sorted(routines)[:6])
    if wanted is not None:
        raise ValueError(f"to_c: argument 'blas' is {wanted!r}, but the linker finds no {some} with these flags")
    advice = (
        "install OpenBLAS or LAPACK for developers (Debian: libopenblas-dev), or give blas='/path/to/library.so' or "
        "linker flags such as blas='-lmkl_rt'"
    )
    try:
        found = _of_scipy(routines)
    except RuntimeError as error:
        raise RuntimeError(
            f"to_c: the functions call BLAS and LAPACK ({some}), which are not found: {advice}"
        ) from error
    warnings.warn(
        f"to_c: the linker finds no BLAS and LAPACK of the system; the library will load {found.description}, which "
        f"other machines do not have. To deploy it, {advice}; blas='scipy' says that this one is meant",
        UserWarning,
        stacklevel=3,
    )
    return found


def _of_scipy(routines: Collection[str]) -> Blas:
    import scipy

    folder = Path(scipy.__file__).parent
    for path in sorted([*folder.parent.glob("scipy.libs/libscipy_openblas*"), *folder.glob(".dylibs/*openblas*")]):
        return _of_file(path, routines)
    raise RuntimeError(f"to_c: this SciPy ({folder}) was not installed from a wheel that brings an OpenBLAS")


def _of_file(path: Path, routines: Collection[str]) -> Blas:
    path = path.resolve()
    if not path.is_file():
        raise ValueError(f"to_c: argument 'blas' names the file {path}, which does not exist")
    if path.suffix == ".a":
        return Blas((str(path),), "{}_", str(path))
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ValueError(f"to_c: argument 'blas' names {path}, which cannot be loaded: {error}") from None
    missing = sorted(routines)
    for spelling in _SPELLINGS:
        absent = [name for name in sorted(routines) if not hasattr(library, spelling.format(name))]
        if not absent:
            return Blas((str(path), f"-Wl,-rpath,{path.parent}"), spelling, str(path))
        missing = min(missing, absent, key=len)
    if any(hasattr(library, spelling.format(missing[0])) for spelling in _SPELLING_64):
        raise ValueError(f"to_c: {path} takes integers of 64 bits; a library that takes 32 bits (LP64) is needed")
    raise ValueError(f"to_c: {path} has no {', '.join(missing[:6])}")
