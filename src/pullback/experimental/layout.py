"""Layouts of arrays in memory, as `pullback.sharding` has them."""

from pullback.sharding._layout import Format, Layout

__all__ = ["Format", "Layout"]
