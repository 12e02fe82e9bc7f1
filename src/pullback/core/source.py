"""The user's own line: where in their code an equation or an error came from, and in which named scopes."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class NameStack(tuple):
    """The named scopes and transformations around an operation, outermost first: 'name' or ('transformation',).

    As text: outer/vmap(jvp(inner)).
    """

    __slots__ = ()

    def __str__(self):
        text = ""
        for item in reversed(self):
            text = f"{item[0]}({text})" if isinstance(item, tuple) else f"{item}/{text}" if text else item
        return text

    def __add__(self, other):
        return NameStack((*self, *other))

    def inside(self) -> NameStack:
        """What remains after the scopes in force, where it begins with them."""
        outer = _names.get()
        return NameStack(self[len(outer) :]) if self[: len(outer)] == outer else self


_no_names = NameStack()
_names: ContextVar[NameStack] = ContextVar("pullback_name_stack", default=_no_names)


class names_inside:
    """Context manager: operations inside also belong to `items`, inside the scopes in force (or only to them:
    `fresh`)."""

    __slots__ = ("fresh", "items", "token")

    def __init__(self, *items, fresh: bool = False):
        self.items, self.fresh = items, fresh

    def __enter__(self):
        self.token = _names.set(NameStack(self.items) if self.fresh else _names.get() + self.items)

    def __exit__(self, *exc):
        _names.reset(self.token)
        return False


class SourceInfo(NamedTuple):
    """A line of the user's code, and the scopes around it."""

    file: str
    line: int
    function: str
    name_stack: NameStack = _no_names

    def __str__(self):
        return f"{self.file}:{self.line} ({self.function})"


class _IsUsers(dict[str, bool]):
    """file name -> whether it is outside of this package"""

    def __missing__(self, file: str) -> bool:
        found = self[file] = not file.startswith((_PACKAGE, "<"))
        return found


_is_users = _IsUsers()


def exclude(file: str) -> None:
    """Take the lines of this file for those of a library, not for the user's own."""
    _is_users[file] = False


def scopes() -> NameStack:
    """The named scopes in force."""
    return _names.get()


def user_source() -> SourceInfo | None:
    """The innermost frame outside this package, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if _is_users[code.co_filename]:
            return SourceInfo(code.co_filename, frame.f_lineno, code.co_name, _names.get())
        frame = frame.f_back  # type: ignore[assignment]
    return None
