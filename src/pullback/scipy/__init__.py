"""SciPy's functions on arrays: special functions, statistics, linear algebra, signals, optimization, images."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from pullback.util.absent import late_modules as _late_modules

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

__getattr__ = _late_modules(__name__, _MODULES)


def __dir__() -> list[str]:
    return [*_MODULES]


__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip
