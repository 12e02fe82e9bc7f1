"""Where an exported library gets BLAS and LAPACK from: a dependency by name, never a copy."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from pullback.util import lapack
from pullback.util.record import frozen_record

_SYSTEM = (("-lopenblas",), ("-llapack", "-lblas"))
INT = np.dtype(np.int32)  # what libraries take that are named by linker flags


@frozen_record
class Blas:
    """What to tell the linker, how the routines are spelled, and the type of integers that they take."""

    flags: tuple[str, ...] = ()
    spelling: str = "{}_"
    description: str = ""
    integer: np.dtype = INT


def find_blas(wanted: str | None, routines: Collection[str], links: Callable[[Blas], bool]) -> Blas:
    """The library that has all `routines`; `links` tells whether the linker agrees.

    wanted: 'numpy', the file of a library, linker flags such as '-lmkl_rt', or None: the system's OpenBLAS or LAPACK,
    else the library that NumPy has, with a warning. Raises ValueError for a file without the routines, RuntimeError
    where nothing is found.
    """
    if not routines:
        return Blas()
    if wanted == "numpy":
        return _of_numpy()
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
        found = _of_numpy()
    except ImportError as error:
        raise RuntimeError(
            f"to_c: the functions call BLAS and LAPACK ({some}), which are not found: {advice}"
        ) from error
    warnings.warn(
        f"to_c: the linker finds no BLAS and LAPACK of the system; the library will load {found.description}, which "
        f"other machines do not have. To deploy it, {advice}; blas='numpy' says that this one is meant",
        UserWarning,
        stacklevel=3,
    )
    return found


def _of_numpy() -> Blas:
    """The library that this process calls. Raises ImportError if there is none."""
    found = lapack.library()
    return _named(found, Path(found.file))


def _of_file(path: Path, routines: Collection[str]) -> Blas:
    path = path.resolve()
    if not path.is_file():
        raise ValueError(f"to_c: argument 'blas' names the file {path}, which does not exist")
    if path.suffix == ".a":
        return Blas((str(path),), "{}_", str(path))
    try:
        return _named(lapack.opened(str(path), str(path), tuple(sorted(routines))), path)
    except OSError as error:
        raise ValueError(f"to_c: argument 'blas' names {path}, which does not serve: {error}") from None


def _named(library: lapack.Library, path: Path) -> Blas:
    return Blas((str(path), f"-Wl,-rpath,{path.parent}"), library.spelling, str(path), library.integer)
