"""Packages that a few functions need, and an installation may be without."""

from __future__ import annotations

import importlib
from types import ModuleType


def scipy_module(name: str, what: str) -> ModuleType:
    """The module scipy.NAME. Raises ImportError, which says what needs it, where SciPy is not installed."""
    try:
        return importlib.import_module(f"scipy.{name}")
    except ModuleNotFoundError as error:
        raise ImportError(f"{what} needs SciPy, which is not installed: pip install 'pullback[scipy]'") from error


__all__ = ["scipy_module"]
