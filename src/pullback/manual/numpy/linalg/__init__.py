"""Pages of `pullback.numpy.linalg`."""

from pullback.manual import by_name
from pullback.manual.numpy.linalg import linalg

PAGES = by_name(linalg.PAGES)
