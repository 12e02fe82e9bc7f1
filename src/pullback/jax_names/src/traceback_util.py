"""Stands for jax._src.traceback_util: libraries name files here that are not the user's own."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

from pullback.core.source import exclude, excluded

_exclude_paths = excluded  # flax reads it


def register_exclusion(path: str) -> None:
    """Take the lines of this file for a library's, not for the user's own."""
    exclude(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is of a file that nobody excluded."""
    return frame.f_code.co_filename not in excluded


def api_boundary(fun: Callable[..., Any], **_: Any) -> Callable[..., Any]:
    """The function itself."""
    return fun
