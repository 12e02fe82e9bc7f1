"""Layouts of arrays in memory: there is one here, row by row, so that these only say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """The order of axes in memory, slowest first, and how elements are tiled."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        rows = tuple(range(len(self.major_to_minor)))
        if tuple(self.major_to_minor) != rows or self.tiling:
            raise NotImplementedError(
                f"Layout: arrays lie row by row, major_to_minor={rows} without tiles; "
                f"got major_to_minor={self.major_to_minor}, tiling={self.tiling}"
            )


@dataclass(frozen=True)
class Format:
    """A layout and a sharding; None leaves the choice open."""

    layout: Layout | None = None
    sharding: Any = None


__all__ = ["Format", "Layout"]
