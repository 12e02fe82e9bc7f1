"""Pages of `pullback.debug`."""

from pullback.manual import by_name
from pullback.manual.debug import debug

PAGES = by_name(debug.PAGES)
