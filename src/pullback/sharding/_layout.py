"""Layouts of arrays in memory. There is one here, row by row; others can be named, and arrays remember that
(`runtime/arrays/layouts.py`).
"""

from __future__ import annotations

from typing import Any, ClassVar

from pullback.util.record import frozen_record


class _Auto:
    """The layout that the compiler likes best: row by row, as there is no other."""

    def __repr__(self) -> str:
        return "AUTO"


@frozen_record
class Layout:
    """The order of axes in memory, slowest first, and how elements are tiled; `Layout.AUTO`: as the compiler likes."""

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0
    AUTO: ClassVar[_Auto] = _Auto()

    def __post_init__(self) -> None:
        object.__setattr__(self, "major_to_minor", tuple(self.major_to_minor))
        if sorted(self.major_to_minor) != list(range(len(self.major_to_minor))):
            raise ValueError(f"Layout: major_to_minor must be an order of axes, got {self.major_to_minor}")

    def in_full(self) -> Layout:
        """The layout as an array says it: without tiles, if none were named."""
        return self if self.tiling is not None else Layout(self.major_to_minor, (), self.sub_byte_element_size_in_bits)

    def check(self, shape: Any, what: str) -> None:
        """ValueError unless it is of arrays with as many axes; `what` names the array."""
        if len(self.major_to_minor) != len(shape):
            raise ValueError(
                f"one of {what} has shape {tuple(shape)}, but its layout {self} orders {len(self.major_to_minor)} axes"
            )


@frozen_record
class Format:
    """A layout and a sharding; None leaves the choice open."""

    layout: Layout | _Auto | None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None and not isinstance(self.layout, (Layout, _Auto)):
            raise TypeError(
                f"Format: argument 'layout' is a Layout, Layout.AUTO or None, got {self.layout!r} of type "
                f"{type(self.layout)}"
            )
        if self.sharding is not None and not hasattr(type(self.sharding), "device_set"):
            raise TypeError(
                f"Format: argument 'sharding' is a Sharding or None, got {self.sharding!r} of type "
                f"{type(self.sharding)}"
            )
        if isinstance(self.layout, Layout):
            self.with_sharding()

    def with_sharding(self) -> Any:
        """The sharding; ValueError if there is none."""
        if self.sharding is None:
            raise ValueError(
                f"Format: beside the layout {self.layout}, argument 'sharding' must say on which devices, as a "
                "NamedSharding or a SingleDeviceSharding does; got None"
            )
        return self.sharding


__all__ = ["Format", "Layout"]
