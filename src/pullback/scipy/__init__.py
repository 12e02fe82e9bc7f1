"""SciPy's functions on arrays: special functions, statistics, linear algebra, signals, optimization, images."""

import importlib as _importlib

_MODULES = (
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
)  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return _importlib.import_module(f"pullback.scipy.{name}")
    raise AttributeError(f"module 'pullback.scipy' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*_MODULES]


__all__ = [
    "cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial",
    "special", "stats",
]  # fmt: skip
