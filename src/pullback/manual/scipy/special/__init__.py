"""Pages of `pullback.scipy.special`."""

from pullback.manual import by_name
from pullback.manual.scipy.special import functions

PAGES = by_name(functions.PAGES)
