"""Layouts of arrays in memory, as `pullback.sharding` has them."""

from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.layout import PAGES as _PAGES
from pullback.sharding._layout import Format, Layout
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)

__all__ = ["Format", "Layout"]

_add_pages(globals(), _PAGES)
