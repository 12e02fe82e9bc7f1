"""Tracebacks without this package's own frames: what users read are the lines of their program.

Errors pass through functions of the API on their way to the user. The outermost one leaves only other files' frames,
not those of files that libraries exclude either, as the option `jax_traceback_filtering` (environment:
JAX_TRACEBACK_FILTERING) says:

off                   all frames stay
tracebackhide         all stay, and ours are marked for IPython and pytest, which leave them out (the last stays)
remove_frames         ours go; the error's cause is one with the whole traceback
quiet_remove_frames   ours go; a note says so
auto                  quiet_remove_frames, in IPython too, which shows the last frame whatever its mark
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

from .other_arrays import CALLED_BY_TORCH

P = ParamSpec("P")
R = TypeVar("R")
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STARTER = _PACKAGE + "__main__.py"  # below it the user's program begins
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
excluded: list[str] = []  # files that libraries named as theirs, whose frames are left out as ours are
_NOTE = (
    "--------------------\n"
    "Frames of pullback itself were left out of this traceback; JAX_TRACEBACK_FILTERING=off shows them."
)


class _ByDefault:
    value = "auto"


option: Any = _ByDefault  # util/config.py, whose functions are boundaries too, sets the option here


class UnfilteredStackTrace(Exception):
    """The cause of an error whose traceback was shortened: it has the whole one."""


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) and file != _STARTER


def is_shown(file: str) -> bool:
    """Whether frames of a file stay in shortened tracebacks."""
    return not _is_ours(file) and file not in excluded


def _serves_us(file: str) -> bool:
    """Whether a function that one of ours called belongs to Python or a library that we use."""
    if "site-packages" in file:
        return any(f"{os.sep}{library}{os.sep}" in file for library in ("numpy", "opt_einsum", "scipy"))
    return file.startswith((_STANDARD, "<frozen "))


def _is_within_ours(frame: FrameType | None) -> bool:
    """Whether a function of this package called, however far away: then that one shortens tracebacks."""
    while frame is not None:
        if _is_ours(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def _split(at: TracebackType | None) -> tuple[list[TracebackType], list[TracebackType]]:
    """(frames to be shown, the others)."""
    shown: list[TracebackType] = []
    hidden: list[TracebackType] = []
    inside = False
    while at is not None:
        file = at.tb_frame.f_code.co_filename
        inside = not is_shown(file) or (inside and _serves_us(file))
        (hidden if inside else shown).append(at)
        at = at.tb_next
    return shown, hidden


def _joined(parts: list[TracebackType]) -> TracebackType | None:
    joined = None
    for part in reversed(parts):
        joined = TracebackType(joined, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return joined


def shown_frames(at: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that are not shown."""
    return _joined(_split(at)[0])


def _mode() -> str:
    return "quiet_remove_frames" if option.value == "auto" else option.value


def _before(error: BaseException) -> BaseException | None:
    """The error that is shown before this one."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _chain(error: BaseException) -> list[BaseException]:
    """An error and those that are shown before it."""
    found: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in found:
        found.append(at)
        at = _before(at)
    return found


def _without_ours(error: BaseException) -> None:
    """Leave out the causes in whose tracebacks is no line of the user's: the error says what they say."""
    last = error
    for earlier in _chain(error)[1:]:
        if earlier.__traceback__ is None or _split(earlier.__traceback__)[0]:
            if _before(last) is not earlier:
                last.__cause__ = earlier
            last = earlier
    if _before(last) is not None:
        last.__cause__ = None  # its context is not shown either then


def _explain_call(error: BaseException) -> None:
    """Add what x.size() and its like should be to Python's error that a number cannot be called."""
    if type(error) is not TypeError or not str(error).endswith("object is not callable"):
        return
    import traceback

    line = traceback.extract_tb(error.__traceback__)[-1].line or ""
    called = re.search(rf"\.({'|'.join(CALLED_BY_TORCH)})\(", line)
    if called:
        error.add_note(f".{called[1]} of arrays is no method but {CALLED_BY_TORCH[called[1]]}.")


def shorten(error: BaseException, boundary: FrameType) -> None:
    """Leave out frames of this package from the traceback of an error that passes a function of the API.

    boundary: the frame of that function. Nothing happens where another function of ours is further out. Functions are
    `api_boundary`s; only those whose calls a wrapper would make a tenth slower (operators, indexing, jnp.array, trees)
    and lookups of modules, which type checkers want as functions, call this themselves.
    """
    mode = _mode()
    if mode == "off" or _is_within_ours(boundary.f_back):
        return
    _explain_call(error)
    if mode != "remove_frames":
        _without_ours(error)
    if mode == "tracebackhide":
        for part in _split(error.__traceback__)[1]:
            part.tb_frame.f_locals["__tracebackhide__"] = True
        return
    shown, hidden = _split(error.__traceback__)
    # The boundary's own frame is hidden, too. An error that a caller's mistake raised in it has no other.
    if mode == "remove_frames":
        whole = UnfilteredStackTrace("The whole traceback of the error below, with frames of pullback itself.")
        whole.__cause__, whole.__context__ = error.__cause__, error.__context__
        whole.__suppress_context__ = error.__suppress_context__
        error.__cause__ = whole.with_traceback(error.__traceback__)
    else:
        for earlier in _chain(error)[1:]:
            earlier.__traceback__ = _joined(_split(earlier.__traceback__)[0])
        if hidden and _NOTE not in getattr(error, "__notes__", ()):
            error.add_note(_NOTE)
    error.__traceback__ = _joined(shown)


def api_boundary(fun: Callable[P, R]) -> Callable[P, R]:
    """`fun`, a function of the API, without this package's frames in the tracebacks of its errors."""

    @functools.wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            shorten(error, sys._getframe())
            raise  # by itself: it adds no frame

    return call


__all__ = ["UnfilteredStackTrace", "api_boundary", "excluded", "is_shown", "shorten"]
