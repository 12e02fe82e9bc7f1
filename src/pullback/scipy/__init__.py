"""SciPy's functions on arrays: special functions, statistics, linear algebra, signals, optimization, images."""

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.util.absent import no_attribute as _no_attribute
from pullback.util.tracebacks import shorten as _shorten

if _TYPE_CHECKING:  # for editors and type checkers
    from pullback.scipy import cluster as cluster
    from pullback.scipy import fft as fft
    from pullback.scipy import integrate as integrate
    from pullback.scipy import interpolate as interpolate
    from pullback.scipy import linalg as linalg
    from pullback.scipy import ndimage as ndimage
    from pullback.scipy import optimize as optimize
    from pullback.scipy import signal as signal
    from pullback.scipy import sparse as sparse
    from pullback.scipy import spatial as spatial
    from pullback.scipy import special as special
    from pullback.scipy import stats as stats

_MODULES = (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"pullback.scipy.{name}")
    try:
        raise _no_attribute(__name__, name)
    except AttributeError as error:
        _shorten(error, _sys._getframe())
        raise


def __dir__() -> list[str]:
    return [*_MODULES]


__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip
