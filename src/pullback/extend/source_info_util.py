"""Where operations come from: files left out of the search for the user's line, and named scopes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pullback.core.source import UNKNOWN, NameStack, SourceInfo, exclude, names_inside, scopes, user_source


def register_exclusion(path: str) -> None:
    """Take lines of this file for a library's, not for the user's own."""
    exclude(path)


def current() -> SourceInfo:
    """The user's line that is running, with the scopes in force; that of nothing known if there is none."""
    return user_source() or new_source_info()


def new_source_info() -> SourceInfo:
    """That of an operation of which nothing is known."""
    return UNKNOWN


def current_name_stack() -> NameStack:
    """The named scopes in force."""
    return scopes()


def new_name_stack(name: str = "") -> NameStack:
    """Scopes that begin with `name`."""
    return NameStack((name,) if name else ())


def extend_name_stack(name: str) -> names_inside:
    """Context manager: operations inside also belong to the scope `name`."""
    return names_inside(name)


def set_name_stack(name_stack: NameStack) -> names_inside:
    """Context manager: operations inside belong to these scopes alone."""
    return names_inside(*name_stack, fresh=True)


def reset_name_stack() -> names_inside:
    """Context manager: operations inside belong to no scope but those that are opened there."""
    return names_inside(fresh=True)


def transform_name_stack(name: str) -> names_inside:
    """Context manager: a transformation, which is written around the scopes opened inside: `name(scope)`."""
    return names_inside((name,))


@contextmanager
def user_context(traceback: SourceInfo | None, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Context manager: errors raised inside say that they are about what comes from a line, `source_info.traceback`.

    Operations inside belong to the scopes `name_stack`, if given.
    """
    with set_name_stack(scopes() if name_stack is None else name_stack):
        try:
            yield
        except Exception as error:
            if traceback is not None:
                error.add_note(f"It is about what comes from {traceback}.")
            raise


def summarize(source_info: SourceInfo | None, num_frames: int = 1) -> str:
    """'file:line:column (function)', or 'unknown'."""
    return "unknown" if source_info is None else source_info.in_full


__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "new_source_info", "register_exclusion", "reset_name_stack", "set_name_stack", "summarize", "transform_name_stack",
    "user_context",
]  # fmt: skip
