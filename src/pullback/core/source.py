"""The user's own line: where in their code an equation or an error came from."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class SourceInfo(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int
    function: str

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})"


def user_source() -> SourceInfo | None:
    """The innermost frame outside this package, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_PACKAGE) and not code.co_filename.startswith("<"):
            return SourceInfo(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return None
