"""Where operations come from: files left out of the search for the user's line, and named scopes."""

from __future__ import annotations

from pullback.core.source import NameStack, SourceInfo, exclude, names_inside, scopes, user_source
from pullback.util.absent import absent_names


def register_exclusion(path: str) -> None:
    """Take lines of this file for a library's, not for the user's own."""
    exclude(path)


def current() -> SourceInfo | None:
    """The user's line that is running, with the scopes in force; None if there is none."""
    return user_source()


def current_name_stack() -> NameStack:
    """The named scopes in force."""
    return scopes()


def new_name_stack(name: str = "") -> NameStack:
    """Scopes that begin with `name`."""
    return NameStack((name,) if name else ())


def extend_name_stack(name: str) -> names_inside:
    """Context manager: operations inside also belong to the scope `name`."""
    return names_inside(name)


def summarize(source_info: SourceInfo | None, num_frames: int = 1) -> str:
    """'file:line (function)', or 'unknown'."""
    return "unknown" if source_info is None else str(source_info)


__getattr__ = absent_names(__name__)

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "register_exclusion", "summarize",
]  # fmt: skip
