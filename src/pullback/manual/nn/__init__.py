"""Pages of `pullback.nn`."""

from pullback.manual import by_name
from pullback.manual.nn import functions

PAGES = by_name(functions.PAGES)
