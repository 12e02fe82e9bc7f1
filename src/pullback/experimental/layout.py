"""Layouts of arrays in memory, as `pullback.sharding` has them."""

from pullback.sharding._layout import Format, Layout
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)

__all__ = ["Format", "Layout"]
