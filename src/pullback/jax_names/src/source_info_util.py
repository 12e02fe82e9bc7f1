"""Stands for jax._src.source_info_util: the public names (equinox), and the user's frame of an equation (jaxls)."""

from typing import Any

from pullback.extend import source_info_util
from pullback.jax_names.src import names_of
from pullback.util.record import NamedTuple


class Frame(NamedTuple):
    """A place in a file: where the call begins."""

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


def user_frame(traceback: Any) -> Frame | None:
    """The user's frame that an equation comes from, by its `source_info` or the `traceback` in it, if that is known."""
    source = getattr(traceback, "traceback", None)
    if source is None:
        return None
    function = source.qualified or source.function
    return Frame(source.file, function, source.line, source.column, source.line, source.column)


__getattr__ = names_of(__name__, source_info_util)

__all__ = ["Frame", "user_frame"]
