"""Two small libraries that programs of the documents use: layers (`stax`) and optimizers (`optimizers`)."""

from __future__ import annotations

import importlib
import sys as _sys

from pullback.util.absent import no_attribute as _no_attribute
from pullback.util.tracebacks import shorten as _shorten

__all__ = ["optimizers", "stax"]


def __getattr__(name: str):
    if name in __all__:
        return importlib.import_module(f"pullback.example_libraries.{name}")
    try:
        raise _no_attribute(__name__, name)
    except AttributeError as error:
        _shorten(error, _sys._getframe())
        raise
