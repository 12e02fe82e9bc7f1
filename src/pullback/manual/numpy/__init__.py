"""Pages of `pullback.numpy`."""

from pullback.manual import by_name
from pullback.manual.numpy import sums

PAGES = by_name(sums.PAGES)
