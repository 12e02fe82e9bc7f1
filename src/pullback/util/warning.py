"""Warnings of our own functions, which each call must give, also where its like has been remembered."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _Mode(threading.local):
    strict = False


_mode = _Mode()


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """As `warn_user`; raises the warning inside of `strict`."""
    if _mode.strict:
        raise category(text)
    warn_user(text, category)


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """As warnings.warn, at the line of the user's that led here: Python shows each line's warnings once."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, level)


def warn_if_real(have: Any, want: Any) -> None:
    """ComplexWarning where values of the dtype `have` lose their imaginary parts as ones of `want`."""
    if getattr(have, "kind", "") == "c" and getattr(want, "kind", "c") != "c":
        warn(
            "Casting complex values to real: their imaginary parts are lost; x.real says that",
            np.exceptions.ComplexWarning,
        )


@contextmanager
def strict() -> Iterator[None]:
    """What would warn raises, in this thread only: the filters of `warnings` are those of the whole process."""
    before, _mode.strict = _mode.strict, True
    loud = {kind: "raise" for kind, how in np.geterr().items() if how == "warn"}
    try:
        with np.errstate(**loud):  # type: ignore[arg-type]
            yield
    finally:
        _mode.strict = before


def deprecated_names(module: str, names: dict[str, Any]) -> Callable[[str], Any]:
    """A module's `__getattr__` for names that are on their way out: who asks for one is warned."""

    def getattr_of_module(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_user(f"{module}.{name} is deprecated; no replacement is planned.", DeprecationWarning)
        return names[name]

    return getattr_of_module


__all__ = ["deprecated_names", "strict", "warn", "warn_user"]
