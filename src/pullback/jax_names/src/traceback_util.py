"""Stands for jax._src.traceback_util: libraries name files here that are not the user's own."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from pullback.core.source import exclude
from pullback.util import tracebacks
from pullback.util.tracebacks import UnfilteredStackTrace as UnfilteredStackTrace
from pullback.util.tracebacks import excluded, is_shown, shown_frames

_exclude_paths = excluded  # flax reads it


def register_exclusion(path: str) -> None:
    """Take the lines of this file for a library's, not for the user's own."""
    exclude(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is of a file that nobody excluded."""
    return is_shown(frame.f_code.co_filename)


def filter_traceback(tb: TracebackType) -> TracebackType | None:
    """A traceback without frames of this package and of excluded files; None if nothing is left (jaxls, brainstate)."""
    return shown_frames(tb)


def api_boundary(fun: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """`fun`, without frames of this package and of excluded files in the tracebacks of its errors."""
    return tracebacks.api_boundary(fun)
