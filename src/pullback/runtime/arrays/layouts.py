"""Which layout an array was given. Memory is always row by row: a layout changes no value and no speed here, but
programs that name one get arrays that say so, and errors where two disagree.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from pullback._ext import _core
from pullback.sharding._layout import Format, Layout
from pullback.util.memory import while_it_lives

_given: dict[int, tuple[weakref.ref, Layout]] = {}  # by id, of arrays that were given another than rows


def rows(ndim: int) -> Layout:
    """The layout of arrays that nobody said anything of."""
    return Layout(tuple(range(ndim)), ())


def layout_of(x: Any) -> Layout:
    """The layout that an array was given."""
    found = _given.get(id(x)) if _given else None
    return rows(x.ndim) if found is None or found[0]() is not x else found[1]


def format_of(x: Any) -> Format:
    """How an array lies in memory, and where."""
    return Format(layout_of(x), x.sharding)


def with_layout(x: Any, layout: Layout | None) -> Any:
    """The array under a layout: itself if it has that; None: rows."""
    wanted = rows(x.ndim) if layout is None else layout.in_full()
    if wanted == layout_of(x):
        return x
    x = _core.with_aval(x, x._aval, x._device)  # others hold the array as it was
    if wanted != rows(x.ndim):
        _given[id(x)] = while_it_lives(x, _given, id(x)), wanted
    return x


def laid_out(run: Any, layouts: Sequence[Layout | None]) -> Any:
    """A program whose results are given layouts."""
    if not any(isinstance(layout, Layout) for layout in layouts):
        return run

    def call(arrays: Sequence[Any]) -> list[Any]:
        return [
            with_layout(y, layout) if isinstance(layout, Layout) else y
            for y, layout in zip(run(arrays), layouts, strict=True)
        ]

    return call


__all__ = ["format_of", "laid_out", "layout_of", "rows", "with_layout"]
